//! `[model]` of a profile's file: which models answer on its screen, with which options, and what of that a request may
//! choose. What it does not set is as in `[llm]` of the settings.

use std::collections::BTreeSet;

use crate::agent::offer::menu::{Menu, Offer};
use crate::chat::message::ModelOrigin;
use crate::chat::model::{Effort, ModelChoice};
use crate::config::document::{Entry, Location, Problems, Table};
use crate::config::{Problem, check};
use crate::llm::{self, Refusal, VendorConfig};

/// The settings that profiles choose from.
pub(super) struct Models<'a> {
    llm: &'a llm::LlmConfig,
    /// What applies where a profile says nothing.
    default: ModelChoice,
}

/// The models of a profile that names none: the settings' provider and its fallbacks, else the demo model. Where the settings
/// want none, one that nobody has.
pub fn default_models(llm: &llm::LlmConfig, problems: &mut Vec<Problem>) -> Vec<ModelOrigin> {
    let mut models = check::configured_models(llm, problems);
    match llm.has_none() {
        true => models.push(ModelOrigin { provider: llm::NO_MODEL.to_owned(), model: llm::NO_MODEL.to_owned() }),
        false if models.is_empty() => models.extend(llm::demo_model()),
        false => {}
    }
    models
}

impl<'a> Models<'a> {
    /// What `llm` says.
    pub(super) fn new(llm: &'a llm::LlmConfig, problems: &Problems) -> Self {
        let mut found = Vec::new();
        let models = default_models(llm, &mut found);
        problems.extend(found);
        Self { llm, default: ModelChoice { models, max_tokens: llm.answer_tokens(), temperature: None, effort: None } }
    }

    /// The menu of a profile that says nothing.
    pub(super) fn default_menu(&self) -> Menu {
        Menu::only(self.default.clone())
    }

    /// The menu that the `[model]` in `table` describes; what is wrong with it is noted.
    pub(super) fn menu(&self, mut table: Table<'_>) -> Menu {
        let location = table.location();
        let mut temperature_locations = [None, None];
        let choice = self.choice(&mut table, &mut temperature_locations[0]);
        let request = table.table("request");
        table.finish();
        let menu = self.offers(choice, request, &mut temperature_locations[1]);
        self.providers(&menu, &location);
        // A value that the profile sets itself is reported before one that it leaves to requests.
        if let Some(location) = temperature_locations.into_iter().flatten().next() {
            self.temperature(&menu, &location);
        }
        menu
    }

    fn choice<'t>(&self, table: &mut Table<'t>, set: &mut Option<Location<'t>>) -> ModelChoice {
        let first = table.take("use").and_then(name);
        let fallbacks = table.take("fallbacks").and_then(names);
        let temperature = table.take("temperature").and_then(|entry| {
            let location = entry.location();
            let number = entry.number()?;
            if !(0.0..=2.0).contains(&number) {
                location.wrong("must be a number from 0 to 2");
                return None;
            }
            *set = Some(location);
            Some(number)
        });
        let max_tokens = table.take("max_tokens").and_then(|entry| {
            let location = entry.location();
            let count = u32::try_from(entry.count()?).ok().filter(|count| *count > 0);
            if count.is_none() {
                location.wrong(format_args!("must be a whole number from 1 to {}", u32::MAX));
            }
            count
        });
        let effort = table.one_of("effort", &Effort::ALL.map(|effort| (effort.name(), effort)));
        let models = self.order(first, fallbacks);
        ModelChoice { models, max_tokens: max_tokens.or(self.default.max_tokens), temperature, effort }
    }

    /// The models in the order of trying: each once.
    fn order(&self, first: Option<Named<'_>>, fallbacks: Option<(Location<'_>, Vec<String>)>) -> Vec<ModelOrigin> {
        let Self { llm, default } = self;
        let mut models = match first {
            None => default.models.iter().take(1).cloned().collect(),
            Some((location, name)) => self.known(&location, &name),
        };
        let is_demo = models.iter().any(|model| model.provider == llm::DEMO);
        match fallbacks {
            // The settings' own fallbacks are simply not needed.
            None if is_demo => return models,
            // The settings' own mistakes are reported once, about the settings.
            None => models.extend(llm.fallbacks.iter().filter_map(|name| llm.model(name).ok())),
            Some((location, names)) if is_demo => {
                if !names.is_empty() {
                    location.wrong("needs another model before it; the demo model never fails");
                }
                return models;
            }
            Some((location, names)) => {
                for name in names {
                    match llm.model(&name) {
                        Ok(model) => models.push(model),
                        Err(error) => location.wrong(error),
                    }
                }
            }
        }
        let mut seen = BTreeSet::new();
        models.retain(|model| seen.insert((model.provider.clone(), model.model.clone())));
        if models.is_empty() { default.models.clone() } else { models }
    }

    /// The model called `name`, as an iterator's worth of it.
    fn known(&self, location: &Location<'_>, name: &str) -> Vec<ModelOrigin> {
        match self.llm.model_or_demo(name) {
            Ok(model) => vec![model],
            Err(error) => {
                location.wrong(error);
                Vec::new()
            }
        }
    }

    fn offers<'t>(&self, choice: ModelChoice, table: Option<Table<'t>>, may_set: &mut Option<Location<'t>>) -> Menu {
        let mut menu = Menu::only(choice);
        let Some(mut table) = table else { return menu };
        menu.temperature = table.take("temperature").is_some_and(|entry| {
            let location = entry.location();
            let may = entry.flag().unwrap_or_default();
            *may_set = may.then_some(location);
            may
        });
        menu.max_tokens = table.flag("max_tokens").unwrap_or_default();
        menu.effort = table.flag("effort").unwrap_or_default();
        if let Some(mut models) = table.table("models") {
            for name in models.keys() {
                menu.offered.extend(models.take(&name).and_then(|entry| self.offer(name, entry)));
            }
        }
        table.finish();
        menu
    }

    fn offer(&self, name: String, entry: Entry<'_>) -> Option<Offer> {
        let location = entry.location();
        if !is_offer_name(&name) {
            location.wrong("a name in requests is 1 to 64 of A-Z a-z 0-9 . _ : -");
        }
        let names = match entry.is_text() {
            true => vec![entry.text()?],
            false if entry.is_list() => entry.texts(),
            false => Vec::new(),
        };
        if names.is_empty() {
            location.wrong("must be such a name, or a list of them in order of trying");
        }
        let models = names.iter().flat_map(|name| self.known(&location, name)).collect();
        Some(Offer { name, models })
    }

    /// The mistakes in providers that the settings alone would not use.
    fn providers(&self, menu: &Menu, location: &Location<'_>) {
        let by_default = self.default.models.iter().map(|model| model.provider.as_str());
        let mut checked: BTreeSet<&str> = by_default.collect();
        for model in menu.origins() {
            if checked.insert(&model.provider) {
                let mut found = Vec::new();
                check::provider(&model.provider, self.llm, &mut found);
                for Problem { key, reason } in found {
                    location.wrong(format_args!("asks {:?}, but {key} {reason}", model.provider));
                }
            }
        }
    }

    /// A temperature where it would be refused.
    fn temperature(&self, menu: &Menu, location: &Location<'_>) {
        let mut reported = BTreeSet::new();
        for model in menu.origins() {
            let section = self.llm.section(&model.provider);
            if let Some(Refusal { reason, key }) = section.and_then(VendorConfig::refuses_temperature)
                && reported.insert(&model.provider)
            {
                let path = llm::LlmConfig::section_path(&model.provider);
                location.wrong(format_args!("{reason}, see {path}.{key}"));
            }
        }
    }
}

/// A name and where it stands.
type Named<'a> = (Location<'a>, String);

/// What names a model, in words for the operator.
const NAME: &str = "a name such as \"claude\" or \"claude:claude-haiku-4-5\"";

fn name(entry: Entry<'_>) -> Option<Named<'_>> {
    let location = entry.location();
    if !entry.is_text() {
        location.wrong(format_args!("must be {NAME}"));
        return None;
    }
    entry.text().map(|name| (location, name))
}

fn names(entry: Entry<'_>) -> Option<(Location<'_>, Vec<String>)> {
    let location = entry.location();
    if !entry.is_list() {
        location.wrong("must be a list of such names");
        return None;
    }
    Some((location, entry.texts()))
}

fn is_offer_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed)
}
