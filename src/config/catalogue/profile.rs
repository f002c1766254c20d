//! One table of a profile's file: everything that a profile, a tab and a tab in a tab say in the same way.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::layers::{Layer, Select};
use super::model::Models;
use super::texts::Texts;
use super::tools::Tools;
use crate::agent::offer::profile::{
    ClientAction, DiagnosticsShape, Face, OnLimit, PayloadType, ReplyLanguage, SourcedTool,
};
use crate::agent::ports::tools::OfferedTool;
use crate::chat::template::Template;
use crate::chat::tool::Policy;
use crate::config::document::{Entry, Location, Table};
use crate::tools::BuiltIn;
use crate::tools::rest::data::Loader;

/// What profiles are made of.
pub(super) struct Parts<'a> {
    pub(super) texts: Texts<'a>,
    pub(super) tools: &'a Tools,
    pub(super) payload_types: &'a BTreeMap<String, PayloadType>,
    pub(super) models: &'a Models<'a>,
    /// The sources of tools that the settings name.
    pub(super) sources: &'a BTreeSet<String>,
    /// The further backends that the settings name.
    pub(super) backends: &'a BTreeSet<String>,
    pub(super) built_in: &'a dyn Fn(&str) -> Option<BuiltIn>,
}

impl Parts<'_> {
    /// What `table` says over `outer`, all its keys but those that say where it applies; `owner` is the profile's name.
    /// New loaders go to `loaders`.
    pub(super) fn layer(
        &self,
        table: &mut Table<'_>,
        outer: &Layer,
        owner: &str,
        loaders: &mut BTreeMap<String, Loader>,
    ) -> Layer {
        let mut layer = Layer { roles: roles(table), ..Layer::default() };
        if let Some(entry) = table.take("identity") {
            let location = entry.location();
            layer.identity = entry.text().and_then(|name| self.texts.block(&location, &name));
        }
        layer.instructions = self.blocks(table, "instructions");
        layer.closing = self.blocks(table, "closing");
        for (location, name) in table.names("tools") {
            self.tool(&location, name, &mut layer);
        }
        let is_new =
            |layer: &Layer, tool: &OfferedTool| layer.tools.iter().all(|known| known.def.name != tool.def.name);
        for tool in self.tools.joining(owner) {
            if is_new(&layer, tool) {
                layer.tools.push(tool.clone());
            }
        }
        for (location, name) in table.names("accepts") {
            // A name that only runs has no roles and asks for no approval, so it is one of our own tools.
            let asks = (self.built_in)(&name).is_some_and(|built_in| built_in.policy != Policy::default());
            if asks || self.tools.declares(&name) || self.sourced(&name).is_some() {
                location.wrong(format_args!("{name:?} is not built in, or not for everybody; list it in tools"));
            } else if (self.built_in)(&name).is_none() {
                location.wrong(format_args!("no tool {name:?} can run"));
            }
            layer.accepts.push(name);
        }
        for (location, name) in table.names("sources") {
            if !self.sources.contains(&name) {
                location.wrong(format_args!("{name:?} has no section [mcp.{name}] in the settings"));
            }
            layer.sources.push(name);
        }
        for (location, name) in table.names("payload_types") {
            match self.payload_types.get(&name) {
                Some(kind) => layer.payload_types.push(kind.clone()),
                None => location.wrong(format_args!("{name:?} is not defined in payloads/*.toml")),
            }
        }
        layer.client_actions = client_actions(table);
        layer.suggestions = table.flag("suggestions");
        layer.reply_language = table.one_of("reply_language", &ReplyLanguage::ALL);
        layer.takes_instructions = table.one_of("client_instructions", &[("ignore", false), ("append", true)]);
        layer.background = table.flag("background");
        layer.read_only = table.flag("read_only");
        layer.shows_thinking = table.flag("show_thinking");
        layer.shows_tools = table.flag("show_tools");
        layer.face = face(table);
        bounds(table, &mut layer);
        diagnostics(table, &mut layer);
        super::clarify::read(table, &mut layer);
        super::helpers::read(table, &mut layer);
        super::state::read(table, &mut layer);
        layer.menu = table.table("model").map(|table| self.models.menu(table));
        for (slot, loader) in super::data::read(owner, table.tables("data"), self.backends) {
            loaders.insert(loader.name.clone(), loader);
            layer.data.push(slot);
        }
        let core = select_tools(table, &mut layer);
        let exposed = exposes(table, &mut layer);
        let layer = layer.over(outer);
        for (location, name) in
            core.into_iter().chain(exposed).filter(|(_, name)| !layer.may_offer(name) && !self.is_off(name))
        {
            location.wrong(format_args!("{name:?} is not among the tools"));
        }
        layer
    }

    fn blocks(&self, table: &mut Table<'_>, key: &str) -> Vec<Template> {
        table.names(key).into_iter().filter_map(|(location, name)| self.texts.block(&location, &name)).collect()
    }

    fn tool(&self, location: &Location<'_>, name: String, layer: &mut Layer) {
        match (self.tools.offered(&name), self.sourced(&name)) {
            (Some(tool), _) => {
                match (self.built_in)(&name).filter(|_| !self.tools.declares(&name)) {
                    Some(built_in) => layer.in_workspace |= built_in.in_workspace,
                    None if self.tools.declares(&name) => {}
                    None => location.wrong(format_args!("no tool {name:?} can run")),
                }
                layer.tools.push(tool.clone());
            }
            (None, Some(tool)) => layer.sourced.push(tool),
            (None, None) if self.is_off(&name) => {}
            (None, None) => match name.split_once("__") {
                Some((source, _)) => {
                    location.wrong(format_args!("{name:?} is of {source:?}, which has no section [mcp.{source}]"));
                }
                None => location.wrong(format_args!("{name:?} is no tool that is built in or in a file")),
            },
        }
    }

    /// Whether the settings have switched off the built-in tool of that name, and no file has another one.
    fn is_off(&self, name: &str) -> bool {
        !self.tools.declares(name) && (self.built_in)(name).is_some_and(|built_in| !built_in.is_on)
    }

    /// The tool of a known source that `name` names: `source__tool`.
    fn sourced(&self, name: &str) -> Option<SourcedTool> {
        let (source, _) = name.split_once("__").filter(|(source, _)| self.sources.contains(*source))?;
        Some(SourcedTool { source: source.to_owned(), name: name.to_owned() })
    }
}

fn roles(table: &mut Table<'_>) -> Option<Vec<String>> {
    let entry = table.take("roles")?;
    let location = entry.location();
    let roles = entry.texts();
    if roles.iter().any(|role| role.trim().is_empty()) {
        location.wrong("must not have an empty name");
    }
    Some(roles)
}

fn client_actions(table: &mut Table<'_>) -> Vec<ClientAction> {
    let mut actions: Vec<ClientAction> = Vec::new();
    for mut table in table.tables("client_action") {
        let (name, description) = (table.required_text("name"), table.required_text("description"));
        if let (Some(name), Some(description)) = (name, description) {
            if actions.iter().any(|known| known.name == name) {
                table.wrong(format_args!("{name:?} is listed twice"));
            }
            actions.push(ClientAction { name, description });
        }
        table.finish();
    }
    actions
}

fn face(table: &mut Table<'_>) -> Face {
    let object = |entry: Entry<'_>| {
        let location = entry.location();
        match entry.json()? {
            Value::Object(fields) => Some(fields),
            _ => {
                location.wrong("must be a table");
                None
            }
        }
    };
    Face {
        title: table.text("title"),
        description: table.text("description"),
        starters: table.texts("starters"),
        example_context: table.take("example_context").and_then(object),
    }
}

fn bounds(table: &mut Table<'_>, layer: &mut Layer) {
    let Some(mut table) = table.table("bounds") else { return };
    layer.max_turns = table.whole("max_turns");
    layer.max_tool_calls = table.whole("max_tool_calls");
    layer.failures_in_a_row = table.whole("failures_in_a_row");
    layer.on_limit = table.one_of("on_limit", &[("fail", OnLimit::Fail), ("answer", OnLimit::Answer)]);
    table.finish();
}

fn diagnostics(table: &mut Table<'_>, layer: &mut Layer) {
    let Some(mut table) = table.table("diagnostics") else { return };
    let shapes = [("off", None), ("basic", Some(DiagnosticsShape::Basic)), ("trace", Some(DiagnosticsShape::Trace))];
    layer.shape = table.one_of("shape", &shapes);
    layer.diagnostics_roles = roles(&mut table);
    table.finish();
}

/// Reads `[mcp]`; the names of the tools that it exposes, each with its location.
fn exposes<'a>(table: &mut Table<'a>, layer: &mut Layer) -> Vec<(Location<'a>, String)> {
    let Some(mut table) = table.table("mcp") else { return Vec::new() };
    let exposed = table.names("expose");
    layer.exposes = exposed.iter().map(|(_, name)| name.clone()).collect();
    table.finish();
    exposed
}

/// Reads `[select_tools]`; the names of its core, each with its location.
fn select_tools<'a>(table: &mut Table<'a>, layer: &mut Layer) -> Vec<(Location<'a>, String)> {
    let Some(mut table) = table.table("select_tools") else { return Vec::new() };
    let core = table.names("core");
    let most = table.whole("most").and_then(|most| usize::try_from(most).ok());
    layer.select = Some(Select { core: core.iter().map(|(_, name)| name.clone()).collect(), most });
    table.finish();
    core
}
