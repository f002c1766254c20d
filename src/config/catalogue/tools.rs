//! The tools that files describe: `tools/*.json` for the texts of built-in ones, and `tools/*.toml` for REST calls.
//! `openapi` adds the operations of other APIs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::declared::{self, Command, Extras, Known, Lead, Made};
use super::defaults::{self, Defaults};
use super::others::Others;
use super::request::{self, Call, Maker};
use super::schedule;
use crate::agent::ports::directives::CommandRule;
use crate::agent::ports::tools::OfferedTool;
use crate::chat::tool::{Effect, ToolDef};
use crate::config::Problem;
use crate::config::assets::Assets;
use crate::config::document::{File, Location, Problems, Table};
use crate::tools::BuiltIn;
use crate::tools::rest::declared::Declared;

/// Names that the loop answers to by itself.
const RESERVED: [&str; 1] = ["find_tools"];

/// One entry of `tools/*.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolEntry {
    name: String,
    description: String,
    input_schema: Value,
}

/// What the files define.
#[derive(Default)]
pub(super) struct Tools {
    /// How the tools that are declared as data run, by their names.
    pub(super) requests: BTreeMap<String, Declared>,
    offered: BTreeMap<String, OfferedTool>,
    /// Which file each name is from.
    files: BTreeMap<String, String>,
    joins: Vec<Join>,
    leads: Vec<Lead>,
    names_by: Vec<Lead>,
    commands: Vec<Command>,
    schedules: Vec<schedule::Read>,
}

/// A profile that a tool joins by itself.
pub(super) struct Join {
    tool: String,
    /// The profile's id.
    pub(super) profile: String,
    /// The location of that in the tool's file: file and line.
    pub(super) at: String,
}

impl Tools {
    /// The tool of that name as profiles offer it, where files describe one.
    pub(super) fn offered(&self, name: &str) -> Option<&OfferedTool> {
        self.offered.get(name)
    }

    /// Whether files say how to run a tool of that name, be it right or wrong.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.requests.contains_key(name) || (self.files.contains_key(name) && !self.offered.contains_key(name))
    }

    /// The tools that join the profile of this id by themselves.
    pub(super) fn joining(&self, profile: &str) -> impl Iterator<Item = &OfferedTool> {
        self.joins.iter().filter(move |join| join.profile == profile).filter_map(|join| self.offered.get(&join.tool))
    }

    /// The profiles that tools join.
    pub(super) fn joins(&self) -> &[Join] {
        &self.joins
    }

    /// Where tools move conversations.
    pub(super) fn leads(&self) -> &[Lead] {
        &self.leads
    }

    /// The directives that are requested again and again.
    pub(super) fn schedules(&self) -> &[schedule::Read] {
        &self.schedules
    }

    /// The directives that tools are.
    pub(super) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Which tools others name to find out what a thing is called, but for those that may do that: they read, for everybody.
    pub(super) fn wrong_lookups(&self) -> impl Iterator<Item = &Lead> {
        let may = |tool: &OfferedTool| tool.effect == Effect::Read && tool.policy.roles.is_empty();
        self.names_by
            .iter()
            .filter(move |lead| !self.requests.contains_key(&lead.to) || !self.offered.get(&lead.to).is_some_and(may))
    }

    /// The rule of the directive of that name.
    pub(super) fn command_rule(&self, name: &str) -> Option<&CommandRule> {
        let rules = self.requests.values().filter_map(|declared| Some(&declared.directive.as_ref()?.rule));
        rules.into_iter().find(|rule| rule.name.as_str() == name)
    }

    /// The declared tool of that name, where it reads and needs no arguments.
    pub(super) fn reading_without_arguments(&self, name: &str) -> Option<&OfferedTool> {
        let tool = self.offered.get(name).filter(|tool| tool.effect == Effect::Read)?;
        let required = tool.def.input_schema.get("required").and_then(Value::as_array);
        (self.requests.contains_key(name) && required.is_none_or(Vec::is_empty)).then_some(tool)
    }

    /// Notes that the file at `path` defines `name`; what is wrong with that.
    fn claim(&mut self, path: &str, name: &str) -> Option<String> {
        let first = self.files.insert(name.to_owned(), path.to_owned());
        if !is_tool_name(name) {
            return Some(format!("{name:?} must be 1 to 64 of A-Z a-z 0-9 _ -"));
        }
        match first {
            None => None,
            Some(first) if first == path => Some(format!("{name} is defined twice")),
            Some(first) => Some(format!("{name} is defined twice, first in {first}")),
        }
    }

    /// The same of a tool that is declared as data.
    pub(super) fn claim_declared(&mut self, path: &str, name: &str, known: Known<'_>) -> Option<String> {
        if let wrong @ Some(_) = self.claim(path, name) {
            return wrong;
        }
        if (known.built_in)(name).is_some_and(|built_in| built_in.is_on) || RESERVED.contains(&name) {
            return Some(format!("{name} is the name of a built-in tool"));
        }
        name.contains("__").then(|| format!("{name:?} must not have two _ in a row, as the tools of servers have"))
    }

    /// Adds a tool that is declared as data.
    pub(super) fn add(&mut self, Made { offered, declared, lead, names_by, command }: Made) {
        self.commands.extend(command);
        self.leads.extend(lead);
        self.names_by.extend(names_by);
        let name = offered.def.name.clone();
        self.requests.insert(name.clone(), declared);
        self.offered.insert(name, offered);
    }
}

/// The tools of `assets`; what is wrong with them is noted.
pub(super) fn read(assets: &Assets, known: Known<'_>, problems: &Problems) -> Tools {
    let mut tools = Tools::default();
    for path in assets.list("tools", ".json") {
        texts(&path, assets, known, &mut tools, problems);
    }
    for path in assets.list("tools", ".toml") {
        let Some(text) = assets.text(&path) else {
            problems.push(Problem::new(path, "cannot be read"));
            continue;
        };
        let Some(mut top) = File::read(&path, &text, problems) else { continue };
        let defaults = top.table("defaults").map(|table| defaults::read(table, known.backends)).unwrap_or_default();
        for table in top.tables("tool") {
            tool(&path, table, known, &defaults, &mut tools);
        }
        tools.schedules.extend(top.tables("schedule").into_iter().filter_map(schedule::read));
        top.finish();
    }
    tools
}

/// The texts of built-in tools in the file at `path`.
fn texts(path: &str, assets: &Assets, known: Known<'_>, tools: &mut Tools, problems: &Problems) {
    let entries: Vec<ToolEntry> = match assets.text(path).map(|text| serde_json::from_str(&text)) {
        Some(Ok(entries)) => entries,
        Some(Err(error)) => return problems.push(Problem::new(format!("{path}:{}", error.line()), error.to_string())),
        None => return problems.push(Problem::new(path, "cannot be read")),
    };
    for ToolEntry { name, description, input_schema } in entries {
        // A file may have texts for tools that are not built in: no profile can list those.
        let BuiltIn { policy, effect, is_on, in_workspace: _, only_if } = (known.built_in)(&name).unwrap_or_default();
        if !is_on {
            continue;
        }
        if let Some(reason) = tools.claim(path, &name) {
            problems.push(Problem::new(path, reason));
        }
        if input_schema.get("type").and_then(Value::as_str) != Some("object") {
            problems.push(Problem::new(path, format!("{name}: input_schema must have the type \"object\"")));
        }
        let def = Arc::new(ToolDef { name: name.clone(), description, input_schema });
        let tool = OfferedTool {
            def,
            policy,
            effect,
            moves_to: None,
            operation: None,
            samples: Vec::new(),
            only_if,
            bare_text: None,
        };
        tools.offered.insert(name, tool);
    }
}

/// The tool that `table` of the file at `path` declares.
fn tool<'a>(path: &str, mut table: Table<'a>, known: Known<'_>, defaults: &Defaults<'a>, tools: &mut Tools) {
    let name: Option<(Location<'_>, String)> =
        table.required("name").and_then(|entry| Some((entry.location(), entry.text()?)));
    if let Some((location, name)) = &name
        && let Some(reason) = tools.claim_declared(path, name, known)
    {
        location.wrong(reason);
    }
    let joins = table.names("profiles").into_iter().map(|(location, profile)| (location.at(), profile));
    if let Some((_, tool)) = &name {
        tools.joins.extend(joins.map(|(at, profile)| Join { tool: tool.clone(), profile, at }));
    }
    let description = table.required_text("description");
    let input_schema = declared::schema(&mut table);
    let extras = Extras::read(&mut table, known).with_defaults(defaults, &input_schema);
    let backend = request::backend(&mut table, known.backends);
    let call = match extras.always_answers() {
        true => table.take("request"),
        false => table.required("request"),
    };
    let needs_call = !extras.always_answers() || call.is_some();
    let call = call.and_then(|entry| request::read(entry.table()?, Maker::Tool));
    let others = Others::read(&mut table);
    if let (Some((location, name)), Some(description), true) = (name, description, call.is_some() || !needs_call) {
        let others = others.with_defaults(defaults, backend.as_deref());
        let (request, path) = call.map(|Call { request, path }| (defaults.apply(request, backend), path)).unzip();
        let def = ToolDef { name, description, input_schema };
        match extras.with_others(others).make(def, request, path.as_ref()) {
            Ok(made) => tools.add(made),
            Err(reason) => location.wrong(reason),
        }
    }
    table.finish();
}

/// The alphabet that all vendors allow.
pub(super) fn is_tool_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed)
}
