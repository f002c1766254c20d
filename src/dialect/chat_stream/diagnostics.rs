//! How a run was carried out, in the two shapes that pages of this protocol know. A page expects one of them and cannot
//! tell which it gets: the profile decides.

use serde::Deserialize;
use serde_json::{Value, json};

use super::words;

/// A mebibyte of messages at most is sent over and over, with each call that they were sent with.
const MESSAGES_BYTES: usize = 1024 * 1024;

/// The loop's report on a run, as far as these shapes have it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Diagnosed {
    shape: String,
    model: Value,
    max_tokens: Value,
    max_turns: Value,
    temperature: Value,
    tools: Vec<Tool>,
    system_prompt: Value,
    messages: Vec<Value>,
    context: Value,
    question: String,
    raw_text: String,
    notes: Vec<Value>,
    turns: Vec<Turn>,
    outcome: String,
    ended: String,
    error: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tool {
    name: String,
    description: Value,
    input_schema: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Turn {
    sent: usize,
    text: String,
    finish: Option<String>,
    usage: Option<Usage>,
    duration_ms: u64,
    tool_calls: Vec<Call>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Call {
    id: Value,
    name: Value,
    input: Value,
    output: Value,
    is_error: bool,
    duration_ms: u64,
    payload: Option<Value>,
}

/// `diagnosed` as a page shows it; `None` where it makes no sense. `run` names a trace, and `final_response` is what
/// the page got.
pub(super) fn trace_body(diagnosed: &Value, run: &str, final_response: impl FnOnce() -> Value) -> Option<Value> {
    match Diagnosed::deserialize(diagnosed) {
        Ok(of) if of.shape == "trace" => Some(trace(of, run, final_response())),
        Ok(of) => Some(basic(of)),
        Err(error) => {
            tracing::warn!(%error, "diagnostics of a run not shown");
            None
        }
    }
}

fn basic(of: Diagnosed) -> Value {
    let tools: Vec<String> = of.tools.into_iter().map(|tool| tool.name).collect();
    let mut body = json!({
        "model": of.model,
        "max_tokens": of.max_tokens,
        "max_iterations": of.max_turns,
        "temperature": of.temperature,
        "tools": tools,
        "system_prompt": of.system_prompt,
        "messages": of.messages,
        "context": of.context,
        "raw_llm_response": of.raw_text,
    });
    if !of.notes.is_empty() {
        body["notes"] = Value::Array(of.notes);
    }
    body
}

fn trace(mut of: Diagnosed, run: &str, final_response: Value) -> Value {
    let usage = || of.turns.iter().filter_map(|turn| turn.usage);
    let input: u64 = usage().map(|usage| usage.input_tokens).sum();
    let output: u64 = usage().map(|usage| usage.output_tokens).sum();
    let peak = usage().map(|usage| usage.input_tokens).max().unwrap_or(0);
    let in_tools = |turn: &Turn| turn.tool_calls.iter().map(|call| call.duration_ms).sum::<u64>();
    let duration: u64 = of.turns.iter().map(|turn| turn.duration_ms + in_tools(turn)).sum();
    let final_text = of.turns.last().map(|turn| turn.text.clone()).unwrap_or_default();
    let sent = |turn: &Turn| of.messages.get(..turn.sent).unwrap_or(&of.messages);
    let first = of.turns.iter().find(|turn| turn.sent > 0).map_or(&*of.messages, sent).to_vec();
    let (mut budget, mut before) = (MESSAGES_BYTES, 0);
    let mut to_model = Vec::new();
    for (at, turn) in of.turns.iter().enumerate() {
        let all = sent(turn);
        let bytes: usize = all.iter().map(|message| message.to_string().len()).sum();
        to_model.push(match budget.checked_sub(bytes) {
            Some(left) => {
                budget = left;
                all.to_vec()
            }
            None => {
                of.notes.push(json!(format!("iteration {} has the messages that were new in it alone", at + 1)));
                all.get(before..).unwrap_or_default().to_vec()
            }
        });
        before = turn.sent;
    }
    let mut iterations = Vec::new();
    for (at, (turn, to_model)) in of.turns.into_iter().zip(to_model).enumerate() {
        let usage =
            turn.usage.map(|usage| json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}));
        iterations.push(json!({
            "iteration": at + 1,
            "messages_to_model": to_model,
            "response_content": content(&turn),
            "stop_reason": stop_reason(&turn),
            "usage": usage,
            "api_call_ms": turn.duration_ms,
            "tool_calls": turn.tool_calls.into_iter().map(call).collect::<Vec<_>>(),
        }));
    }
    let tools = of
        .tools
        .into_iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}));
    let mut body = json!({
        "trace_id": run,
        "model": of.model,
        "max_tokens": of.max_tokens,
        "max_iterations": of.max_turns,
        "temperature": of.temperature,
        "system_prompt": of.system_prompt,
        "tools": tools.collect::<Vec<_>>(),
        "context": of.context,
        "initial_messages": first,
        "total_iterations": iterations.len(),
        "iterations": iterations,
        "final_text": final_text,
        "final_response": final_response,
        "outcome": outcome(&of.outcome, &of.ended),
        "total_input_tokens": input,
        "total_output_tokens": output,
        "peak_input_tokens": peak,
        "total_duration_ms": duration,
    });
    if let Some(error) = of.error.filter(|_| body["outcome"] == "error") {
        body["error_message"] = error;
    }
    if !of.notes.is_empty() {
        body["notes"] = Value::Array(of.notes);
    }
    body
}

/// The model's output of a turn, in blocks.
fn content(turn: &Turn) -> Vec<Value> {
    let text = Some(&turn.text).filter(|text| !text.is_empty()).map(|text| json!({"type": "text", "text": text}));
    let calls = turn
        .tool_calls
        .iter()
        .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}));
    text.into_iter().chain(calls).collect()
}

fn call(call: Call) -> Value {
    json!({
        "tool_use_id": call.id,
        "tool_name": call.name,
        "tool_input": call.input,
        "output_from_executor": call.output,
        "output_type": if call.is_error { "error" } else { "text" },
        "output_to_model": call.output,
        "payload": call.payload,
        "execution_ms": call.duration_ms,
    })
}

/// Why the model stopped, in the words of the service that these pages were made for.
fn stop_reason(turn: &Turn) -> Option<&str> {
    if !turn.tool_calls.is_empty() {
        return Some("tool_use");
    }
    Some(match turn.finish.as_deref()? {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "content_filter" => "refusal",
        finish => finish,
    })
}

/// The loop's word for how a run ended as these pages know it; `code` is its code.
fn outcome<'a>(word: &'a str, code: &str) -> &'a str {
    match word {
        // The answer stands.
        "error" if words::stands(code) => "complete",
        "max_turns" => "max_iterations",
        "awaiting_approval" => "complete",
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::trace_body;

    fn messages() -> Vec<serde_json::Value> {
        let call = json!({"type": "tool_use", "id": "c", "name": "t", "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "c", "content": "x", "is_error": true});
        vec![
            json!({"role": "user", "content": "earlier"}),
            json!({"role": "user", "content": "now"}),
            json!({"role": "assistant", "content": [call]}),
            json!({"role": "user", "content": [result]}),
        ]
    }

    fn diagnosed(shape: &str) -> serde_json::Value {
        json!({
            "shape": shape, "provider": "openai", "model": "m", "max_tokens": 100, "max_turns": 5, "temperature": 0.0,
            "tools": [{"name": "t", "description": "T.", "input_schema": {"type": "object"}}],
            "system_prompt": "S", "messages": messages(), "context": {"a": 1},
            "question": "now", "raw_text": "R", "notes": [],
            "turns": [
                {"turn": 0, "sent": 2, "text": "", "finish": "stop", "usage": {"input_tokens": 10, "output_tokens": 5},
                 "duration_ms": 7, "tool_calls": [
                    {"id": "c", "name": "t", "input": {}, "output": "x", "is_error": true, "duration_ms": 3,
                     "payload": {"type": "p"}}]},
                {"turn": 1, "sent": 4, "text": "R", "finish": "stop", "usage": {"input_tokens": 20, "output_tokens": 5},
                 "duration_ms": 1, "tool_calls": []},
            ],
            "outcome": "max_turns",
            "usage": {"input_tokens": 30, "output_tokens": 10},
        })
    }

    #[test]
    fn the_basic_shape_has_the_names_of_tools_and_the_raw_text() {
        let expected = json!({
            "model": "m", "max_tokens": 100, "max_iterations": 5, "temperature": 0.0, "tools": ["t"],
            "system_prompt": "S", "messages": messages(), "context": {"a": 1},
            "raw_llm_response": "R",
        });
        assert_eq!(trace_body(&diagnosed("basic"), "r", || json!({})), Some(expected));
        assert_eq!(trace_body(&json!([1]), "r", || json!({})), None, "a value that is no report is left out");
    }

    #[test]
    fn the_trace_has_every_call_of_the_model_and_of_tools() {
        let call = json!({
            "tool_use_id": "c", "tool_name": "t", "tool_input": {}, "output_from_executor": "x", "output_type": "error",
            "output_to_model": "x", "payload": {"type": "p"}, "execution_ms": 3,
        });
        let expected = json!({
            "trace_id": "r", "model": "m", "max_tokens": 100, "max_iterations": 5, "temperature": 0.0,
            "system_prompt": "S", "tools": [{"name": "t", "description": "T.", "input_schema": {"type": "object"}}],
            "context": {"a": 1}, "total_iterations": 2,
            "initial_messages": messages()[..2],
            "iterations": [
                {"iteration": 1,
                 "messages_to_model": messages()[..2],
                 "response_content": [{"type": "tool_use", "id": "c", "name": "t", "input": {}}],
                 "stop_reason": "tool_use", "usage": {"input_tokens": 10, "output_tokens": 5}, "api_call_ms": 7,
                 "tool_calls": [call]},
                {"iteration": 2,
                 "messages_to_model": messages(),
                 "response_content": [{"type": "text", "text": "R"}], "stop_reason": "end_turn",
                 "usage": {"input_tokens": 20, "output_tokens": 5}, "api_call_ms": 1, "tool_calls": []},
            ],
            "final_text": "R", "final_response": {"message": "R"}, "outcome": "max_iterations",
            "total_input_tokens": 30, "total_output_tokens": 10, "peak_input_tokens": 20, "total_duration_ms": 11,
        });
        assert_eq!(trace_body(&diagnosed("trace"), "r", || json!({"message": "R"})), Some(expected));
    }
}
