//! Tools that the client of a run brings and runs itself: the check of a call, what is believed of earlier calls, and what the
//! transcript has instead of a result that comes later or never.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::of_profile;
use super::profile::{DELEGATE, FIND_TOOLS, Profile};
use crate::agent::ports::tools::ToolExecutor;
use crate::chat::fate::CallFate;
use crate::chat::input::ClientMessage;
use crate::chat::schema::Schema;
use crate::chat::tool::{ToolCall, ToolDef, ToolInput, ToolOutput};

/// What counts of the history that a client tells: all words; and calls, where the profile takes the client's instructions too,
/// of tools that the request declares and that nobody here has, whoever may use those. What our own tools have done is read
/// from what is kept of it alone.
pub fn believed(
    mut earlier: Vec<ClientMessage>,
    declared: &[Arc<ToolDef>],
    profile: &Profile,
    executor: &dyn ToolExecutor,
) -> Vec<ClientMessage> {
    if !earlier.iter().any(|message| matches!(message, ClientMessage::Calls(_))) {
        return earlier;
    }
    let mut its_own = HashSet::new();
    if profile.takes_instructions {
        its_own.extend(declared.iter().map(|def| def.name.clone()));
        for tool in of_profile(profile, executor) {
            its_own.remove(&tool.def.name);
        }
        let plans = profile.planning.as_ref().map(|planning| planning.tool.as_str());
        for name in profile.accepts.iter().map(String::as_str).chain([FIND_TOOLS, DELEGATE]).chain(plans) {
            its_own.remove(name);
        }
    }
    earlier.retain_mut(|message| match message {
        ClientMessage::User(..) | ClientMessage::Assistant(_) => true,
        ClientMessage::Calls(calls) => {
            calls.retain(|call| its_own.contains(&call.tool));
            !calls.is_empty()
        }
    });
    earlier
}

/// Whether `call` of the client's tool `def` can be left to the client.
///
/// # Errors
/// The output for the model when its arguments are wrong.
pub(in crate::agent) fn check(def: &ToolDef, call: &ToolCall) -> Result<(), Box<ToolOutput>> {
    let wrong = |why: &str| Box::new(ToolOutput::error(&format!("bad params: {why}")));
    let ToolInput::Object(input) = &call.input else { return Err(wrong("the arguments are not a JSON object")) };
    // Read now, not when the tool is offered: most tools that are offered are never called.
    let Some(schema) = Schema::of_stranger(&def.input_schema) else { return Ok(()) };
    schema.check(&Value::Object(input.clone())).map_err(|mistakes| wrong(&mistakes.join("; ")))
}

/// The result, for the model, of a call that was left to the client.
pub(in crate::agent) fn left() -> ToolOutput {
    let note =
        "this call was handed to the user's application, which makes it; where no result is told later, none came";
    let content = json!({"status": "awaiting_client", "note": note}).to_string();
    ToolOutput { fate: CallFate::AwaitsClient, ..ToolOutput::ok(content) }
}

/// Replaces [`left`] when the run ended without leaving its calls to the client.
pub(in crate::agent) fn withdrawn() -> ToolOutput {
    ToolOutput::not_made(
        "this call was not made, because the run ended before the user's application was asked; make it again if it is still \
         wanted",
    )
}

/// Replaces [`left`] when another call of the turn waits for a person.
pub(in crate::agent) fn after_approval() -> ToolOutput {
    ToolOutput::not_made(
        "this call was not made, since another one of the same turn waits for approval; make it again when that is decided",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ids::ToolCallId;

    fn wrong_arguments(schema: Value, input: ToolInput) -> Option<String> {
        let def = ToolDef { name: "locate".to_owned(), description: String::new(), input_schema: schema };
        let call = ToolCall { id: ToolCallId::mint(), name: "locate".to_owned(), input };
        check(&def, &call).err().map(|output| output.content)
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_and_an_invalid_schema_checks_nothing() {
        let object = |value: Value| ToolInput::parse(&value.to_string());
        let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let wrong = |why: &str| Some(json!({"error": format!("bad params: {why}")}).to_string());
        let rows = [
            (city.clone(), object(json!({"city": "Berlin"})), None, "it fits"),
            (city.clone(), object(json!({"city": 7})), wrong("city: 7 is not of type \"string\""), "another type"),
            (city, ToolInput::Invalid("{".into()), wrong("the arguments are not a JSON object"), "no object"),
            (json!({"type": 7}), object(json!({"city": 7})), None, "a schema that is none"),
            (json!({"pattern": "a", "type": 7}), object(json!({})), None, "one that is not read"),
        ];
        for (schema, input, expected, reason) in rows {
            assert_eq!(wrong_arguments(schema, input), expected, "{reason}");
        }
    }
}
