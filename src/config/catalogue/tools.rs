//! The tools that files describe: `tools/*.json` for the texts of built-in ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::request;
use crate::agent::ports::tools::OfferedTool;
use crate::chat::tool::{Policy, ToolDef};
use crate::config::Problem;
use crate::config::assets::Assets;
use crate::config::document::Problems;
use crate::tools::rest::RestRequest;

/// One entry of `tools/*.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolEntry {
    name: String,
    description: String,
    input_schema: Value,
    /// Read by hand, so that all its mistakes are found.
    request: Option<Value>,
}

/// What the files define.
#[derive(Default)]
pub(super) struct Tools {
    /// The calls of the tools that are declared as data, by the tools' names.
    pub(super) requests: BTreeMap<String, RestRequest>,
    offered: BTreeMap<String, OfferedTool>,
    /// The names with a `request`, be it right or wrong.
    declared: BTreeSet<String>,
}

impl Tools {
    /// The tool of that name as profiles offer it, where files describe one.
    pub(super) fn offered(&self, name: &str) -> Option<&OfferedTool> {
        self.offered.get(name)
    }

    /// Whether files say how to run a tool of that name, be it right or wrong.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.declared.contains(name)
    }
}

/// The tools of `assets`; what is wrong with them is noted. `has_handler` tells whether a tool of that name is built in.
pub(super) fn read(assets: &Assets, has_handler: &dyn Fn(&str) -> bool, problems: &Problems) -> Tools {
    let mut tools = Tools::default();
    for path in assets.list("tools", ".json") {
        let entries: Vec<ToolEntry> = match assets.text(&path).map(|text| serde_json::from_str(&text)) {
            Some(Ok(entries)) => entries,
            Some(Err(error)) => {
                problems.push(Problem::new(path, error.to_string()));
                continue;
            }
            None => {
                problems.push(Problem::new(path, "cannot be read"));
                continue;
            }
        };
        for ToolEntry { name, description, input_schema, request } in entries {
            if !is_tool_name(&name) {
                problems.push(Problem::new(&path, format!("{name:?} must be 1 to 64 of A-Z a-z 0-9 _ -")));
            }
            if input_schema.get("type").and_then(Value::as_str) != Some("object") {
                problems.push(Problem::new(&path, format!("{name}: input_schema must have the type \"object\"")));
            }
            if let Some(entry) = request {
                if has_handler(&name) {
                    let reason = format!("{name}: request must not be given for a built-in tool");
                    problems.push(Problem::new(&path, reason));
                }
                tools.declared.insert(name.clone());
                let mut found = Vec::new();
                let request = request::request(&path, &name, entry, &input_schema, &mut found);
                problems.extend(found);
                tools.requests.extend(request.map(|request| (name.clone(), request)));
            }
            let def = Arc::new(ToolDef { name: name.clone(), description, input_schema });
            let tool = OfferedTool { def, policy: Policy::default(), samples: Vec::new() };
            if tools.offered.insert(name.clone(), tool).is_some() {
                problems.push(Problem::new(&path, format!("{name} is defined twice")));
            }
        }
    }
    tools
}

/// The alphabet that all vendors allow.
fn is_tool_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed)
}
