//! The tools of a caller: one for each profile, and those that profiles expose.
//!
//! **Invariant:** what a caller may not use is not listed, and cannot be called by its name either.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::agent::ports::tools::OfferedTool;
use crate::chat::caller::Caller;
use crate::chat::tool::Effect;
use crate::dialect::mcp::{
    self, AnnotationsBody, Era, Id, Tool, ToolBody, ToolListBody, ask_input_schema, ask_output_schema, is_tool_name,
    of_profile,
};
use crate::http::Services;

/// What every description of a profile's tool ends with.
const ANSWERS: &str = "It answers in words, and may look things up or prepare changes by tools of its own. \
                       Send the conversation_id of its answer to go on with the conversation.";

/// A tool that a caller may use.
pub(super) struct Found {
    /// The profile's `context_type`.
    pub(super) context_type: String,
    /// What is called.
    pub(super) tool: Tool,
}

/// The result of a `tools/list`: the tools by their names, so that their order is always the same.
pub(super) fn list(services: &Services, caller: &Caller, only: Option<&str>, (id, era): (&Id, Era)) -> Vec<u8> {
    let exposed = exposed(services, caller, only);
    let mut tools: BTreeMap<String, ToolBody<'_>> = BTreeMap::new();
    for profile in services.runs.profiles_for(caller) {
        if only.is_some_and(|only| only != profile.context_type) {
            continue;
        }
        let name = of_profile(&profile.context_type);
        let title = profile.face.title.as_deref();
        let does = profile.face.description.as_deref().unwrap_or_default().trim();
        let whom = format!("Asks the assistant {}.", title.unwrap_or(&profile.context_type));
        let texts = [whom.as_str(), does, ANSWERS].into_iter().filter(|text| !text.is_empty());
        let tool = ToolBody {
            name: Cow::Owned(name.clone()),
            title,
            description: Cow::Owned(texts.collect::<Vec<_>>().join(" ")),
            input_schema: Cow::Owned(ask_input_schema()),
            output_schema: Some(ask_output_schema()),
            annotations: AnnotationsBody {
                read_only_hint: profile.read_only,
                // What writes asks a person, or makes a preview.
                destructive_hint: false,
                open_world_hint: true,
            },
        };
        tools.entry(name).or_insert(tool);
    }
    for (_, tool) in &exposed {
        let body = ToolBody::of_def(&tool.def, tool.effect == Effect::Read);
        tools.entry(tool.def.name.clone()).or_insert(body);
    }
    mcp::result(id, &ToolListBody::of(tools.into_values().collect(), era))
}

/// The tool of that name; `None` where there is none for the caller.
pub(super) fn find(services: &Services, caller: &Caller, only: Option<&str>, name: &str) -> Option<Found> {
    let mut profiles = services.runs.profiles_for(caller).into_iter().filter(|profile| match only {
        Some(only) => profile.context_type == only,
        None => true,
    });
    if let Some(profile) = profiles.find(|profile| of_profile(&profile.context_type) == name) {
        return Some(Found { context_type: profile.context_type.clone(), tool: Tool::Profile });
    }
    let (context_type, _) = exposed(services, caller, only).into_iter().find(|(_, tool)| tool.def.name == name)?;
    Some(Found { context_type, tool: Tool::Own })
}

fn exposed(services: &Services, caller: &Caller, only: Option<&str>) -> Vec<(String, OfferedTool)> {
    let mut exposed = services.runs.exposed_to(caller);
    exposed.retain(|(profile, tool)| only.is_none_or(|only| only == profile) && is_tool_name(&tool.def.name));
    exposed
}
