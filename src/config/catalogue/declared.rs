//! What `tools/*.toml` and overlays of OpenAPI documents say about a tool, read key by key and put together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::defaults::Defaults;
use super::others::Others;
use super::{answers, directive, moves, operations, request, rules};
use crate::agent::offer::profile::PayloadType;
use crate::agent::ports::tools::OfferedTool;
use crate::chat::approval::Consent;
use crate::chat::directive::RunsAs;
use crate::chat::operation::OperationRule;
use crate::chat::template::ValueTemplate;
use crate::chat::tool::{Effect, Policy, ToolDef};
use crate::config::document::{Entry, Location, Table};
use crate::tools::BuiltIn;
use crate::tools::rest::answer::Answer;
use crate::tools::rest::arguments::{Arguments, without_required};
use crate::tools::rest::declared::Declared;
use crate::tools::rest::lookup::Lookup;
use crate::tools::rest::moves::Moves;
use crate::tools::rest::naming::{self, Naming};
use crate::tools::rest::path::PathTemplate;
use crate::tools::rest::reading::{Keep, Reading};
use crate::tools::rest::request::RestRequest;
use crate::tools::rest::rules::{Rule, Rules};
use crate::tools::rest::values;

/// How long lists of names are kept where a file says nothing.
const TTL_S: u64 = 60;

/// What tools and overlays both say.
pub(super) struct Extras<'a> {
    samples: Vec<String>,
    /// The argument that bare text is, and where the file says so.
    bare_text: Option<(Location<'a>, String)>,
    roles: Vec<String>,
    approval: Option<(Location<'a>, Consent)>,
    /// What a call that waits is called, and where the file says so.
    naming: Option<(Location<'a>, Naming)>,
    /// The approval of a write where the file names none.
    default_consent: Consent,
    invalidates: Option<(Location<'a>, Vec<String>)>,
    inject: Vec<(String, ValueTemplate)>,
    rules: Vec<(Location<'a>, String, Vec<Rule>)>,
    lookups: Vec<(Location<'a>, Lookup)>,
    answers: Vec<Answer>,
    reading: Reading,
    moves: Option<(Location<'a>, Moves)>,
    operation: Option<(Location<'a>, OperationRule)>,
    directive: Option<directive::Read<'a>>,
    others: Others<'a>,
}

/// A tool that was put together.
pub(super) struct Made {
    /// As profiles offer it.
    pub(super) offered: OfferedTool,
    /// As it runs.
    pub(super) declared: Declared,
    /// Where it moves a conversation.
    pub(super) lead: Option<Lead>,
    /// The tool that it names to find out what a thing is called.
    pub(super) names_by: Option<Lead>,
    /// The directive that its calls are.
    pub(super) command: Option<Command>,
}

/// A directive that a tool is, as far as others have to know it.
pub(super) struct Command {
    /// Its name.
    pub(super) name: String,
    /// Where that stands: file and line.
    pub(super) at: String,
    /// Of one that a service sends: the backend, and where it says so.
    pub(super) backend: Option<(Option<String>, String)>,
}

/// What a tool names that must be there: a kind of screen, or another tool.
pub(super) struct Lead {
    pub(super) to: String,
    /// The location of that in the tool's file: file and line.
    pub(super) at: String,
}

/// What tools may name that is defined elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Known<'k> {
    /// The built-in tools.
    pub(super) built_in: &'k dyn Fn(&str) -> Option<BuiltIn>,
    /// The types of payloads.
    pub(super) payload_types: &'k BTreeMap<String, PayloadType>,
    /// The names of further backends.
    pub(super) backends: &'k BTreeSet<String>,
}

impl<'a> Extras<'a> {
    /// The keys of `table` that tools and overlays share; what is wrong is noted.
    pub(super) fn read(table: &mut Table<'a>, known: Known<'_>) -> Self {
        let (approval, naming) = table.take("approval").map(approval).unwrap_or_default();
        let approval = not_requester(table, approval);
        let invalidates = table.take("invalidates").map(|entry| (entry.location(), entry.texts()));
        let inject = table.take("inject").and_then(|entry| request::value_templates(entry, &values::NAMES[1..]));
        let rules = table.table("values").map(rules::read).unwrap_or_default();
        let lookups = table.table("resolve").map(lookups).unwrap_or_default();
        let answers = table.tables("answers").into_iter().filter_map(answers::read).collect();
        let reading = table.table("result").map(|table| reading(table, known)).unwrap_or_default();
        Self {
            samples: table.texts("samples"),
            bare_text: table.take("bare_text").and_then(|entry| Some((entry.location(), entry.text()?))),
            roles: table.texts("roles"),
            approval,
            naming,
            default_consent: Consent::Auto,
            invalidates,
            inject: inject.unwrap_or_default(),
            rules,
            lookups,
            answers,
            reading,
            moves: table.table("move").and_then(moves::read),
            operation: table.table("operation").and_then(operations::read),
            directive: table.table("directive").and_then(directive::read),
            others: Others::default(),
        }
    }

    /// An overlay that says nothing.
    pub(super) fn none() -> Self {
        Self {
            samples: Vec::new(),
            bare_text: None,
            roles: Vec::new(),
            approval: None,
            naming: None,
            default_consent: Consent::Auto,
            invalidates: None,
            inject: Vec::new(),
            rules: Vec::new(),
            lookups: Vec::new(),
            answers: Vec::new(),
            reading: Reading::default(),
            moves: None,
            operation: None,
            directive: None,
            others: Others::default(),
        }
    }

    /// The same of a tool that is generated: its user approves each write, unless the file says otherwise.
    pub(super) fn careful(self) -> Self {
        Self { default_consent: Consent::User, ..self }
    }

    /// The same with further calls.
    pub(super) fn with_others(self, others: Others<'a>) -> Self {
        Self { others, ..self }
    }

    /// Adds what the file says of all its tools, where the tool itself says nothing: what is about an argument counts where
    /// `schema` has it.
    pub(super) fn with_defaults(mut self, defaults: &Defaults<'a>, schema: &Value) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let names: Vec<&String> = properties.into_iter().flat_map(|properties| properties.keys()).collect();
        for (name, template) in &defaults.inject {
            if names.contains(&name) && !self.inject.iter().any(|(known, _)| known == name) {
                self.inject.push((name.clone(), template.clone()));
            }
        }
        for name in names {
            let is_new = !self.rules.iter().any(|(_, known, _)| known == name);
            if let Some((place, _, rules)) = rules::find(&defaults.rules, name).filter(|_| is_new) {
                self.rules.push((place.clone(), name.clone(), rules.clone()));
            }
        }
        self
    }

    /// Whether an answer is given whatever the arguments are.
    pub(super) fn always_answers(&self) -> bool {
        self.answers.iter().any(|answer| answer.when.is_none())
    }

    /// The tool; `path` is where its path stands. What does not fit together is noted.
    ///
    /// # Errors
    /// When the schema is none.
    pub(super) fn make(
        self,
        def: ToolDef,
        request: Option<RestRequest>,
        path: Option<&Location<'_>>,
    ) -> Result<Made, String> {
        let ToolDef { name, description, input_schema } = def;
        let has = |argument: &str| {
            let properties = input_schema.get("properties").and_then(Value::as_object);
            properties.is_some_and(|properties| properties.contains_key(argument))
                || self.inject.iter().any(|(injected, _)| injected == argument)
        };
        let in_path: Vec<&str> = request.iter().flat_map(|request| request.path.names()).collect();
        for argument in in_path.iter().filter(|argument| !has(argument)) {
            if let Some(path) = path {
                path.wrong(format_args!("{{{argument}}} is not among the properties of input_schema, nor injected"));
            }
        }
        let others = input_schema.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false));
        let taken = request.iter().flat_map(RestRequest::arguments);
        for argument in taken.filter(|argument| !others && !has(argument)) {
            if let Some(path) = path {
                let reason = "is taken by a template, and is not among the properties of input_schema, nor injected";
                path.wrong(format_args!("stands beside args.{argument}, which {reason}"));
            }
        }
        for (location, lookup) in &self.lookups {
            for argument in lookup.path.names().chain([lookup.argument.as_str()]) {
                if !has(argument) {
                    location
                        .wrong(format_args!("{argument} is not among the properties of input_schema, nor injected"));
                }
            }
        }
        if let Some((location, naming)) = &self.naming {
            for argument in naming.resolve.iter().flat_map(PathTemplate::names).filter(|argument| !has(argument)) {
                location.wrong(format_args!("{argument} is not among the properties of input_schema, nor injected"));
            }
        }
        self.others.check(request.as_ref(), &|argument: &str| others || has(argument));
        for (location, argument, _) in &self.rules {
            if !has(argument.split('.').next().unwrap_or(argument)) {
                location.wrong(format_args!("{argument} is not among the properties of input_schema, nor injected"));
            }
        }
        if let Some((location, rule)) = &self.operation
            && let Some(argument) = rule.id.as_ref().filter(|argument| !has(argument))
        {
            location.wrong(format_args!("{argument} is not among the properties of input_schema, nor injected"));
        }
        if let Some(directive) = &self.directive {
            let has_more = !self.answers.is_empty()
                || self.reading.payload.is_some()
                || self.moves.is_some()
                || !self.others.is_empty();
            directive.check(&self.reading, has_more, request.as_ref());
        }
        let effect = request.as_ref().map_or(Effect::Read, |request| request.effect);
        if effect == Effect::Read {
            let approved =
                self.approval.iter().filter(|(_, consent)| *consent != Consent::Auto).map(|(location, _)| location);
            for location in approved.chain(self.invalidates.iter().map(|(location, _)| location)) {
                location.wrong("is only for tools that write");
            }
        }
        if let Some((location, argument)) = &self.bare_text {
            let is_text = input_schema["properties"][argument]["type"] == "string";
            match (is_text, effect) {
                (true, Effect::Read) => {}
                (true, Effect::Write) => location.wrong("is only for tools that read"),
                (false, _) => location.wrong(format_args!("{argument} is no property of the type \"string\"")),
            }
        }
        let model_schema = without_required(&input_schema, &self.inject);
        let arguments = Arguments::new(
            &input_schema,
            self.inject,
            &in_path,
            request.as_ref().is_none_or(|request| request.verb.has_body()),
        )?;
        let mut rules: Vec<_> = self.rules.into_iter().map(|(_, argument, rules)| (argument, rules)).collect();
        // What is inside of an argument is looked at when the argument itself has its form.
        rules.sort_by_key(|(argument, _)| argument.matches('.').count());
        let default_consent = match effect {
            Effect::Read => Consent::Auto,
            Effect::Write => self.default_consent,
        };
        let consent = self.approval.map_or(default_consent, |(_, consent)| consent);
        let backend = request.as_ref().and_then(|request| request.backend.clone());
        let command = self.directive.as_ref().map(|directive| Command {
            name: directive.name().to_owned(),
            at: directive.name_at.at(),
            backend: (directive.runs_as == RunsAs::Service).then_some((backend, directive.at.at())),
        });
        let directive = self.directive.map(|directive| directive.of_tool(&name, &self.roles, &consent));
        // A service needs nobody: it is the directive that waits, and not its call.
        let consent = match directive.as_ref().map(|directive| directive.rule.runs_as) {
            Some(RunsAs::Service) => Consent::Auto,
            Some(RunsAs::Caller) | None => consent,
        };
        let (instead, before) = self.others.into_calls();
        let lead = self.moves.as_ref().map(|(at, moves)| Lead { to: moves.to.clone(), at: at.at() });
        let names_by = self.operation.as_ref().and_then(|(at, rule)| {
            let to = rule.lookup.clone()?;
            Some(Lead { to, at: at.at() })
        });
        let moves = self.moves.map(|(_, moves)| moves);
        Ok(Made {
            lead,
            names_by,
            command,
            offered: OfferedTool {
                def: Arc::new(ToolDef { name, description, input_schema: model_schema }),
                policy: Policy { roles: self.roles, consent },
                effect,
                moves_to: moves.as_ref().map(|moves| moves.to.clone()),
                operation: self.operation.map(|(_, rule)| Arc::new(rule)),
                samples: self.samples,
                only_if: None,
                bare_text: self.bare_text.map(|(_, argument)| argument),
            },
            declared: Declared {
                arguments: arguments.with_rules(Rules(rules)),
                answers: self.answers,
                lookups: self.lookups.into_iter().map(|(_, lookup)| lookup).collect(),
                request,
                instead,
                before,
                reading: Reading { moves, ..self.reading },
                invalidates: self.invalidates.map(|(_, tags)| tags).unwrap_or_default(),
                directive,
                naming: self.naming.map(|(_, naming)| naming),
            },
        })
    }
}

/// The schema of a tool's arguments: a table, or JSON in a text; none takes no arguments.
pub(super) fn schema(table: &mut Table<'_>) -> Value {
    let none = || serde_json::json!({"type": "object", "properties": {}});
    let Some(entry) = table.take("input_schema") else { return none() };
    let location = entry.location();
    let value = match entry.is_text() {
        false => entry.json(),
        true => entry.text().and_then(|text| match serde_json::from_str(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                location.wrong_below(error.line().max(1), format_args!("is no JSON: {error}"));
                None
            }
        }),
    };
    let Some(value) = value else { return none() };
    if value.get("type").and_then(Value::as_str) != Some("object") {
        location.wrong("must have the type \"object\"");
    } else if let Err(reason) = crate::chat::schema::Schema::parse(&value) {
        location.wrong(format_args!("is no schema: {reason}"));
        return none();
    }
    value
}

/// A day: longer is never meant, and a mistake in the unit is found.
const MAX_TTL_S: u64 = 86_400;

/// How long something is kept, in seconds; 0: not at all.
pub(super) fn ttl(table: &mut Table<'_>, default_s: u64) -> Duration {
    let default = Duration::from_secs(default_s);
    let Some(entry) = table.take("ttl_s") else { return default };
    let location = entry.location();
    match entry.count() {
        Some(seconds) if seconds <= MAX_TTL_S => Duration::from_secs(seconds),
        Some(_) => {
            location.wrong(format_args!("must be at most {MAX_TTL_S}"));
            default
        }
        None => default,
    }
}

/// Something that was said, and its place.
type Placed<'a, T> = (Location<'a>, T);

/// The approval of a call: who has to let it through, or a table of that (`by`), the call's `title`, and the path of what
/// it is about (`resolve`).
fn approval(entry: Entry<'_>) -> (Option<Placed<'_, Consent>>, Option<Placed<'_, Naming>>) {
    let location = entry.location();
    if entry.is_text() {
        return (consent(entry).map(|consent| (location, consent)), None);
    }
    let Some(mut table) = entry.table() else { return (None, None) };
    let by = table.take("by").and_then(|entry| Some((entry.location(), consent(entry)?)));
    let resolve =
        table.keys().iter().any(|key| key == "resolve").then(|| request::path(&mut table, "resolve")).flatten();
    let title = table.take("title").and_then(|entry| {
        let location = entry.location();
        request::template(&location, &entry.text()?, &naming::NAMES)
    });
    if title.is_none() {
        table.wrong("needs a title, or is only the text of who has to let a call through");
    }
    table.finish();
    let naming = title.map(|title| (location, Naming { title, resolve: resolve.map(|(path, _)| path) }));
    (by, naming)
}

/// Who has to let a call through.
fn consent(entry: Entry<'_>) -> Option<Consent> {
    let location = entry.location();
    let text = entry.text()?;
    match (text.as_str(), text.strip_prefix("role:").map(str::trim)) {
        ("auto", _) => Some(Consent::Auto),
        ("user", _) => Some(Consent::User),
        (_, Some(role)) if !role.is_empty() => Some(Consent::Role { role: role.to_owned(), not_requester: false }),
        _ => {
            location.wrong("must be auto, user or role:NAME");
            None
        }
    }
}

/// The same where the call's own user may not let it through.
fn not_requester<'a>(
    table: &mut Table<'a>,
    approval: Option<(Location<'a>, Consent)>,
) -> Option<(Location<'a>, Consent)> {
    let Some(entry) = table.take("not_requester") else { return approval };
    let location = entry.location();
    let not_requester = entry.flag()?;
    match approval {
        Some((at, Consent::Role { role, .. })) => Some((at, Consent::Role { role, not_requester })),
        approval => {
            location.wrong("is of use only with approval = \"role:NAME\"");
            approval
        }
    }
}

fn lookups(mut table: Table<'_>) -> Vec<(Location<'_>, Lookup)> {
    let mut found = Vec::new();
    for argument in table.keys() {
        let Some(entry) = table.take(&argument) else { continue };
        let location = entry.location();
        let Some(mut table) = entry.table() else { continue };
        let path = request::path(&mut table, "path");
        let items = request::projection(&mut table, "items").unwrap_or_default();
        let id = table.required_text("id");
        let name = table.required_text("name");
        let ttl = ttl(&mut table, TTL_S);
        table.finish();
        if let (Some((path, _)), Some(id), Some(name)) = (path, id, name) {
            found.push((location, Lookup { argument, path, items, id, name, ttl }));
        }
    }
    found
}

fn reading(mut table: Table<'_>, known: Known<'_>) -> Reading {
    let found = request::projection(&mut table, "projection").unwrap_or_default();
    let text = table.take("text").and_then(|entry| {
        let location = entry.location();
        let names: Vec<&str> = values::NAMES.into_iter().chain(values::OF_ANSWERS).collect();
        request::template(&location, &entry.text()?, &names)
    });
    let kind = table.take("payload").and_then(|entry| {
        let location = entry.location();
        let kind = entry.text()?;
        if !known.payload_types.contains_key(&kind) {
            location.wrong(format_args!("{kind:?} is not defined in payloads/*.toml"));
        }
        Some(kind)
    });
    let has_projection = table.keys().iter().any(|key| key == "payload_projection");
    let of_payload = request::projection(&mut table, "payload_projection").unwrap_or_default();
    if kind.is_none() && has_projection {
        table.wrong("has a payload_projection and no payload");
    }
    table.finish();
    let payload = kind.map(|kind| Keep { kind, projection: of_payload });
    Reading { projection: found, text, payload, moves: None }
}
