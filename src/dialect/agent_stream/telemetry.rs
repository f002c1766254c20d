//! Frames for whoever may see how a turn is carried out.

use bytes::BytesMut;
use serde_json::{Value, json};

use super::frames::{Frame, Origin, error_type, write};
use crate::chat::day::rfc3339;
use crate::chat::fate::CallFate;
use crate::chat::observation::{Observation, Prepared};
use crate::chat::origin::CallOrigin;

/// Appends the frames of `observation`, which is of the model that answers unless `origin` says otherwise.
pub(super) fn tell(observation: &Observation, origin: Option<&CallOrigin>, out: &mut BytesMut) {
    match observation {
        Observation::Prepared(prepared) => {
            write(out, &Frame::Telemetry { event: "tool_selection", data: selection(prepared) });
            write(out, &Frame::DebugContext { debug: debug(prepared) });
        }
        Observation::NotOffered { tool, context_type, offered } => {
            let data = json!({"toolName": tool, "contextType": context_type, "loadedToolCount": offered});
            write(out, &Frame::Telemetry { event: "tool_selection_miss", data });
        }
        Observation::Called { id, tool, duration_ms, error } => {
            let mut data = json!({
                "toolName": tool,
                "toolCallId": id,
                "durationMs": duration_ms,
                "success": error.is_none(),
                "source": Origin::of(origin).source,
            });
            if let Some(error) = error {
                data["errorType"] = json!(error_type(CallFate::Failed, Some(*error)));
            }
            write(out, &Frame::Telemetry { event: "tool_execution", data });
        }
    }
}

/// How the tools were chosen. Nothing here is guessed, so there is no confidence but where all are there.
fn selection(prepared: &Prepared) -> Value {
    let Prepared { tools, of_profile, is_chosen, context_type, .. } = prepared;
    let without = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|name| !those.contains(name)).cloned().collect()
    };
    let (mode, strategy) = match is_chosen {
        true => ("selected", "ranked_by_question"),
        false => ("default", "all_of_context"),
    };
    json!({
        "mode": mode,
        "defaultToolCount": of_profile.len(),
        "selectedToolCount": tools.len(),
        "addedTools": without(tools, of_profile),
        "removedTools": without(of_profile, tools),
        "strategy": strategy,
        "confidence": (!is_chosen).then_some(1),
        "contextType": context_type,
    })
}

fn debug(prepared: &Prepared) -> Value {
    let Prepared { system_prompt_tokens, tools_tokens, conversation_tokens, .. } = prepared;
    let tools: Vec<Value> = prepared.tools.iter().map(|name| json!({"name": name})).collect();
    json!({
        "requestId": prepared.run,
        "timestamp": rfc3339(prepared.at_ms),
        "contextType": prepared.context_type,
        "systemPrompt": prepared.system_prompt,
        "systemPromptTokens": system_prompt_tokens,
        "availableTools": tools,
        "toolsTokens": tools_tokens,
        "conversationTokens": conversation_tokens,
        "totalTokens": system_prompt_tokens + tools_tokens + conversation_tokens,
        "projectFocus": prepared.focus,
    })
}
