//! `[model]` of a profile's file: which models answer on its screen, how they are asked, and what of that a request may
//! choose. What it does not say is as in `[llm]` of the settings.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::agent::menu::{Menu, Offer};
use crate::chat::message::ModelOrigin;
use crate::chat::model::{Effort, ModelChoice};
use crate::config::{Problem, check};
use crate::demo::model::DemoModel;
use crate::llm::{self, Section, UnknownModel};

/// The version of Claude's API whose models take a temperature; later ones refuse the field.
const CLAUDE_WITH_TEMPERATURE: &str = "2023-06-01";

/// The name of the built-in model.
const DEMO: &str = "demo";

/// The settings that profiles choose from.
pub(super) struct Models<'a> {
    llm: &'a llm::Config,
    /// What applies where a profile says nothing.
    default: ModelChoice,
}

/// Who answers where a profile says nothing: the settings' provider and its fallbacks, else the demo model.
pub fn default_models(llm: &llm::Config, problems: &mut Vec<Problem>) -> Vec<ModelOrigin> {
    let mut models = check::asked_models(llm, problems);
    if models.is_empty() {
        models.push(DemoModel::new().origin().clone());
    }
    models
}

impl<'a> Models<'a> {
    /// What `llm` says.
    pub(super) fn new(llm: &'a llm::Config, problems: &mut Vec<Problem>) -> Self {
        let models = default_models(llm, problems);
        Self { llm, default: ModelChoice { models, max_tokens: llm.max_tokens, temperature: None, effort: None } }
    }

    /// The menu that the `[model]` of the file at `path` describes.
    pub(super) fn menu(&self, path: &str, table: Option<Value>, problems: &mut Vec<Problem>) -> Menu {
        let Some(table) = table else { return Menu::only(self.default.clone()) };
        let mut reader = Reader { path, models: self, problems };
        let Some(mut table) = reader.table("model", table) else { return Menu::only(self.default.clone()) };
        let request = table.remove("request").and_then(|request| reader.table("model.request", request));
        let choice = reader.choice(table);
        let menu = reader.menu(choice, request.unwrap_or_default());
        reader.providers(&menu);
        reader.temperature(&menu);
        menu
    }

    fn origin(&self, name: &str) -> Result<ModelOrigin, UnknownModel> {
        match name.trim() {
            DEMO => Ok(DemoModel::new().origin().clone()),
            name => self.llm.model(name),
        }
    }
}

/// Reads one file's tables, noting what is wrong with them.
struct Reader<'a> {
    path: &'a str,
    models: &'a Models<'a>,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn wrong(&mut self, key: &str, reason: impl std::fmt::Display) {
        self.problems.push(Problem::new(self.path, format!("{key}: {reason}")));
    }

    fn table(&mut self, key: &str, value: Value) -> Option<Table> {
        self.read(key, Some(value), "a section", |value| match value {
            Value::Table(table) => Some(table),
            _ => None,
        })
    }

    /// The value of `key` when it is there and right.
    fn read<T>(
        &mut self,
        key: &str,
        value: Option<Value>,
        expected: &str,
        read: impl Fn(Value) -> Option<T>,
    ) -> Option<T> {
        let read = read(value?);
        if read.is_none() {
            self.wrong(key, format_args!("must be {expected}"));
        }
        read
    }

    fn choice(&mut self, mut table: Table) -> ModelChoice {
        let default = &self.models.default;
        let first = self.read("model.use", table.remove("use"), NAME, text);
        let fallbacks = self.read("model.fallbacks", table.remove("fallbacks"), "a list of such names", texts);
        let temperature =
            self.read("model.temperature", table.remove("temperature"), "a number from 0 to 2", temperature);
        let max_tokens =
            self.read("model.max_tokens", table.remove("max_tokens"), "a whole number of at least 1", count);
        let efforts = format!("one of {}", Effort::ALL.map(Effort::name).join(", "));
        let effort =
            self.read("model.effort", table.remove("effort"), &efforts, |value| Effort::parse(value.as_str()?));
        self.nothing_else("model", &table);
        let models = self.order(first.as_deref(), fallbacks.as_deref());
        ModelChoice { models, max_tokens: max_tokens.unwrap_or(default.max_tokens), temperature, effort }
    }

    /// Who is asked first, and who then: each once.
    fn order(&mut self, first: Option<&str>, fallbacks: Option<&[String]>) -> Vec<ModelOrigin> {
        let Models { llm, default } = self.models;
        let mut models = match first {
            None => default.models.iter().take(1).cloned().collect(),
            Some(name) => self.known("model.use", name),
        };
        let is_demo = models.iter().any(|model| model.provider == DEMO);
        let key = if fallbacks.is_some() { "model.fallbacks" } else { "llm.fallbacks" };
        let names = fallbacks.unwrap_or(&llm.fallbacks);
        if is_demo {
            // The settings' own fallbacks are simply not needed.
            if fallbacks.is_some_and(|names| !names.is_empty()) {
                self.wrong(key, "needs another model before it; the demo model never fails");
            }
            return models;
        }
        for name in names {
            match llm.model(name) {
                Ok(model) => models.push(model),
                Err(error) if fallbacks.is_some() => self.wrong(key, error),
                // What is wrong with the settings' own is said once, about the settings.
                Err(_) => {}
            }
        }
        let mut seen = BTreeSet::new();
        models.retain(|model| seen.insert((model.provider.clone(), model.model.clone())));
        if models.is_empty() { default.models.clone() } else { models }
    }

    /// The model called `name`, as an iterator's worth of it.
    fn known(&mut self, key: &str, name: &str) -> Vec<ModelOrigin> {
        match self.models.origin(name) {
            Ok(model) => vec![model],
            Err(error) => {
                self.wrong(key, error);
                Vec::new()
            }
        }
    }

    fn menu(&mut self, choice: ModelChoice, mut table: Table) -> Menu {
        let mut may = |key: &str| {
            let value = table.remove(key);
            self.read(&format!("model.request.{key}"), value, "true or false", |value| value.as_bool())
        };
        let (temperature, max_tokens, effort) = (may("temperature"), may("max_tokens"), may("effort"));
        let models = table.remove("models").and_then(|models| self.table("model.request.models", models));
        self.nothing_else("model.request", &table);
        let mut offered = Vec::new();
        for (name, value) in models.unwrap_or_default() {
            let key = format!("model.request.models.{name}");
            if !is_offer_name(&name) {
                self.wrong(&key, "a name in requests is 1 to 64 of A-Z a-z 0-9 . _ : -");
            }
            let expected = "such a name, or a list of them in order of trying";
            let names = self.read(&key, Some(value), expected, |value| match value {
                Value::Array(_) => texts(value).filter(|names| !names.is_empty()),
                value => text(value).map(|name| vec![name]),
            });
            let models: Vec<_> = names.iter().flatten().flat_map(|name| self.known(&key, name)).collect();
            offered.push(Offer { name, models });
        }
        Menu {
            choice,
            offered,
            temperature: temperature.unwrap_or_default(),
            effort: effort.unwrap_or_default(),
            max_tokens: max_tokens.unwrap_or_default(),
        }
    }

    fn nothing_else(&mut self, section: &str, table: &Table) {
        for key in table.keys() {
            self.wrong(&format!("{section}.{key}"), "is not a known setting");
        }
    }

    /// What is wrong with providers that the settings alone would not ask.
    fn providers(&mut self, menu: &Menu) {
        let by_default = self.models.default.models.iter().map(|model| model.provider.as_str());
        let mut checked: BTreeSet<&str> = by_default.collect();
        for model in menu.origins() {
            if checked.insert(&model.provider) {
                let mut found = Vec::new();
                check::provider(&model.provider, self.models.llm, &mut found);
                for problem in found {
                    self.wrong(
                        "model",
                        format_args!("asks {:?}, but {} {}", model.provider, problem.key, problem.reason),
                    );
                }
            }
        }
    }

    /// A temperature where it would be refused.
    fn temperature(&mut self, menu: &Menu) {
        let key = match (menu.choice.temperature, menu.temperature) {
            (Some(_), _) => "model.temperature",
            (None, true) => "model.request.temperature",
            (None, false) => return,
        };
        let mut told = BTreeSet::new();
        for model in menu.origins() {
            if let Some(Section::Claude(section)) = self.models.llm.section(&model.provider)
                && section.version != CLAUDE_WITH_TEMPERATURE
                && told.insert(&model.provider)
            {
                let path = llm::Config::section_path(&model.provider);
                let reason = format!("is refused by version {:?} of the API, see {path}.version", section.version);
                self.wrong(key, reason);
            }
        }
    }
}

/// What names a model, in words for the operator.
const NAME: &str = "a name such as \"claude\" or \"claude:claude-haiku-4-5\"";

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn texts(value: Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|name| text(name.clone())).collect()
}

fn temperature(value: Value) -> Option<f64> {
    let number = value.as_float().or_else(|| value.as_integer().and_then(|n| i32::try_from(n).ok()).map(f64::from));
    number.filter(|number| (0.0..=2.0).contains(number))
}

fn count(value: Value) -> Option<u32> {
    u32::try_from(value.as_integer()?).ok().filter(|count| *count > 0)
}

fn is_offer_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed)
}
