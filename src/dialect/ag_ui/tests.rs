//! The encoder as a fold: events in, a transcript out, read as its clients read it.

use std::sync::Arc;

use bytes::BytesMut;
use serde_json::{Value, json};

use super::encoder::AgUiEncoder;
use super::{Asker, Stream, Version};
use crate::chat::approval::{Approval, Consent};
use crate::chat::cost::Cost;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::fate::CallFate;
use crate::chat::ids::{ApprovalId, ConversationId, RunId, ToolCallId};
use crate::chat::message::ModelOrigin;
use crate::chat::stream::Usage;
use crate::chat::tool::{Progress, ToolCall, ToolInput};
use crate::dialect::{Encoder, RunIds};

fn stream(version: Version) -> Stream {
    Stream::new(Asker { thread: ConversationId::parse("t").unwrap(), run: "theirs".to_owned(), version })
}

/// The events of one of our runs, its id written as `R`.
fn run(stream: &Stream, is_first: bool, is_last: bool, events: &[AgentEvent]) -> Vec<Value> {
    let run = RunId::fresh();
    let of = RunIds { run, conversation: ConversationId::parse("t").unwrap(), number: None, request: "q".to_owned() };
    let mut encoder = AgUiEncoder::new(stream.clone(), of.run, is_first, is_last);
    let mut out = BytesMut::new();
    encoder.opened(&mut out);
    for event in events {
        encoder.encode(None, event, &mut out);
    }
    let text = String::from_utf8(out.to_vec()).unwrap().replace(&run.to_string(), "R");
    let blocks = text.split_terminator("\n\n").map(|block| block.strip_prefix("data: ").unwrap());
    blocks.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn whole(version: Version, events: &[AgentEvent]) -> Vec<Value> {
    run(&stream(version), true, true, events)
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::TextDelta { text: text.to_owned() }
}

fn thinks(text: &str) -> AgentEvent {
    AgentEvent::ThinkingDelta { text: text.to_owned() }
}

fn started(id: &str) -> AgentEvent {
    AgentEvent::ToolCallStarted { id: ToolCallId::from_model(id), name: "look".to_owned() }
}

fn ready(id: &str, input: &Value) -> AgentEvent {
    let input = match input {
        Value::Object(fields) => ToolInput::Object(fields.clone()),
        other => ToolInput::Invalid(other.as_str().unwrap().to_owned()),
    };
    AgentEvent::ToolCallReady { id: ToolCallId::from_model(id), name: "look".to_owned(), input: Box::new(input) }
}

fn finished(id: &str, result: &str) -> AgentEvent {
    AgentEvent::ToolCallFinished {
        id: ToolCallId::from_model(id),
        name: "look".to_owned(),
        fate: CallFate::Done,
        error: None,
        result: Arc::from(result),
    }
}

fn turn(turn: u32) -> AgentEvent {
    AgentEvent::TurnStarted { turn }
}

fn done() -> AgentEvent {
    AgentEvent::Finished { usage: Usage::default() }
}

fn turn_ended(input_tokens: u64, cost: Option<u64>) -> AgentEvent {
    AgentEvent::TurnEnded {
        model: Arc::new(ModelOrigin { provider: "p".to_owned(), model: "m".to_owned() }),
        usage: Usage { input_tokens, output_tokens: 2, cached_input_tokens: 1, reasoning_tokens: 0 },
        cost: cost.map(|nano_usd| Cost { nano_usd }),
    }
}

fn held(id: ApprovalId) -> Approval {
    let arguments = json!({"id": 7}).as_object().unwrap().clone();
    Approval {
        id,
        run: RunId::fresh(),
        conversation: ConversationId::parse("t").unwrap(),
        call: None,
        origin: None,
        tool: "look".to_owned(),
        input: arguments.clone(),
        arguments,
        definition: None,
        digest: "d".to_owned(),
        consent: Consent::Role { role: "chief".to_owned(), not_requester: false },
        created_at_ms: 0,
        expires_at_ms: 1_000,
    }
}

fn begins() -> Value {
    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"})
}

fn ends() -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs"})
}

#[test]
fn a_turn_is_a_step_whose_calls_hang_on_one_message() {
    let events = whole(
        Version::Before1,
        &[
            turn(0),
            thinks("hm"),
            text("I "),
            text("look."),
            started("a"),
            started("b"),
            turn_ended(10, Some(1_000_000_000)),
            ready("a", &json!({"q": 1})),
            finished("a", "one"),
            ready("b", &json!({})),
            finished("b", ""),
            AgentEvent::RoundEnded,
            turn(1),
            text("Done."),
            turn_ended(20, Some(500_000_000)),
            done(),
        ],
    );
    let usage = json!([{"provider": "p", "model": "m", "inputTokens": 30, "outputTokens": 4, "totalTokens": 34,
        "reasoningTokens": 0, "cachedInputTokens": 2}]);
    let expected = json!([
        begins(),
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "REASONING_START", "messageId": "R.t1"},
        {"type": "REASONING_MESSAGE_START", "messageId": "R.t1", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "R.t1", "delta": "hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": "R.t1"},
        {"type": "REASONING_END", "messageId": "R.t1"},
        {"type": "TEXT_MESSAGE_START", "messageId": "R.m2", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m2", "delta": "I "},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m2", "delta": "look."},
        {"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "look", "parentMessageId": "R.m2"},
        {"type": "TOOL_CALL_START", "toolCallId": "b", "toolCallName": "look", "parentMessageId": "R.m2"},
        {"type": "TEXT_MESSAGE_END", "messageId": "R.m2"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": "{\"q\":1}"},
        {"type": "TOOL_CALL_END", "toolCallId": "a"},
        {"type": "TOOL_CALL_RESULT", "messageId": "R.r3", "toolCallId": "a", "content": "one", "role": "tool"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "b", "delta": "{}"},
        {"type": "TOOL_CALL_END", "toolCallId": "b"},
        {"type": "TOOL_CALL_RESULT", "messageId": "R.r4", "toolCallId": "b", "content": "", "role": "tool"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "STEP_STARTED", "stepName": "turn-1"},
        {"type": "TEXT_MESSAGE_START", "messageId": "R.m5", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m5", "delta": "Done."},
        {"type": "TEXT_MESSAGE_END", "messageId": "R.m5"},
        {"type": "STEP_FINISHED", "stepName": "turn-1"},
        {"type": "CUSTOM", "name": "cost", "value": {"usd": 1.5}},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs", "usage": usage},
    ]);
    assert_eq!(json!(events), expected);
}

#[test]
fn whatever_is_open_is_closed_before_each_end() {
    let v1 = |outcome: Value| json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs", "outcome": outcome});
    let failure = Failure { code: FailureCode::ModelFault, message: "Sorry".to_owned(), retryable: false };
    let error = |code: &str, message: &str| json!({"type": "RUN_ERROR", "message": message, "code": code});
    let rows = [
        (Version::V1, AgentEvent::Cancelled, v1(json!({"type": "cancelled"})), "1.0 knows how it ended"),
        (Version::Before1, AgentEvent::Cancelled, ends(), "before, a cancelled run simply ends"),
        (Version::V1, done(), ends(), "success need not be named"),
        (Version::V1, AgentEvent::Failed(failure), error("model_fault", "Sorry"), "a failure says why"),
        (
            Version::Before1,
            AgentEvent::Interrupted,
            error("interrupted", "The server stopped while answering; please ask again"),
            "the server stopped",
        ),
    ];
    for (version, end, expected, reason) in rows {
        let events = whole(version, &[turn(0), text("He"), started("a"), end]);
        let closed = json!([
            {"type": "TEXT_MESSAGE_END", "messageId": "R.m1"},
            {"type": "TOOL_CALL_END", "toolCallId": "a"},
            {"type": "TOOL_CALL_RESULT", "messageId": "R.r2", "toolCallId": "a",
             "content": "{\"error\":\"this call was not made\"}", "role": "tool"},
            {"type": "STEP_FINISHED", "stepName": "turn-0"},
            expected,
        ]);
        assert_eq!(json!(events[events.len() - 5..]), closed, "{reason}");
    }
}

#[test]
fn a_call_that_waits_has_no_result_and_ends_the_run_as_an_interrupt() {
    let id = ApprovalId::fresh();
    let events = whole(
        Version::Before1,
        &[
            turn(0),
            started("c"),
            ready("c", &json!({"id": 7})),
            AgentEvent::ToolCallHeld { id: ToolCallId::from_model("c"), name: "look".to_owned(), approval: id },
            finished("c", "it waits"),
            AgentEvent::RoundEnded,
            AgentEvent::Artifact(Box::new(held(id).artifact())),
            AgentEvent::AwaitingApproval { usage: Usage::default() },
        ],
    );
    let expected = json!([
        begins(),
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look", "parentMessageId": "R.m1"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"id\":7}"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs", "outcome": {"type": "interrupt", "interrupts": [{
            "id": id.to_string(),
            "reason": "tool_call",
            "toolCallId": "c",
            "message": "look waits for the approval of somebody with the role chief",
            "responseSchema": {
                "type": "object",
                "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string"}},
                "required": ["approved"],
            },
            "expiresAt": "1970-01-01T00:00:01.000Z",
            "metadata": {"tool": "look", "arguments": {"id": 7}, "digest": "d", "needs": "role", "role": "chief"},
        }]}},
    ]);
    assert_eq!(json!(events), expected);
}

#[test]
fn decided_calls_get_their_results_under_the_ids_that_the_client_knows() {
    let decided = |requested_as: &str, runs_as: Option<&str>| AgentEvent::CallDecided {
        requested_as: ToolCallId::from_model(requested_as),
        name: "look".to_owned(),
        runs_as: runs_as.map(ToolCallId::from_model),
    };
    let stream = stream(Version::Before1);
    let progress = Progress { stage: "s".to_owned(), message: "m".to_owned(), fraction: Some(0.5), data: None };
    let events = run(
        &stream,
        true,
        false,
        &[
            decided("old", Some("new")),
            turn(0),
            started("new"),
            ready("new", &json!({"id": 7})),
            AgentEvent::ToolProgress {
                id: ToolCallId::from_model("new"),
                name: "look".to_owned(),
                progress: Box::new(progress),
            },
            finished("new", "made"),
            AgentEvent::RoundEnded,
            turn(1),
            turn_ended(1, None),
            done(),
        ],
    );
    let first = json!([
        begins(),
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "CUSTOM", "name": "tool_progress", "value": {"toolCallId": "old", "toolCallName": "look",
            "stage": "s", "message": "m", "fraction": 0.5}},
        {"type": "TOOL_CALL_RESULT", "messageId": "R.r1", "toolCallId": "old", "content": "made", "role": "tool"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "STEP_STARTED", "stepName": "turn-1"},
        {"type": "STEP_FINISHED", "stepName": "turn-1"},
    ]);
    assert_eq!(json!(events), first);
    assert!(stream.goes_on(), "another decision follows");
    let events = run(&stream, false, true, &[decided("other", None), turn(0), turn_ended(2, None), done()]);
    let usage = json!([{"provider": "p", "model": "m", "inputTokens": 3, "outputTokens": 4, "totalTokens": 7,
        "reasoningTokens": 0, "cachedInputTokens": 2}]);
    let second = json!([
        {"type": "TOOL_CALL_RESULT", "messageId": "R.r1", "toolCallId": "other",
         "content": "{\"error\":\"this call was turned down, it was not made\"}", "role": "tool"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs", "usage": usage},
    ]);
    assert_eq!(json!(events), second);
    assert!(!stream.goes_on());
}

#[test]
fn no_end_leaves_a_call_without_a_result_that_the_client_would_make() {
    let held = AgentEvent::ToolCallHeld {
        id: ToolCallId::from_model("h"),
        name: "look".to_owned(),
        approval: ApprovalId::fresh(),
    };
    let decided = AgentEvent::CallDecided {
        requested_as: ToolCallId::from_model("old"),
        name: "look".to_owned(),
        runs_as: Some(ToolCallId::from_model("new")),
    };
    let events = whole(
        Version::Before1,
        &[
            decided,
            turn(0),
            started("new"),
            ready("new", &json!({})),
            started("a"),
            started("h"),
            ready("a", &json!({})),
            ready("h", &json!({})),
            held,
            finished("h", "it waits"),
            AgentEvent::Cancelled,
        ],
    );
    let cut = |nth: u32, call: &str| {
        json!({"type": "TOOL_CALL_RESULT", "messageId": format!("R.r{nth}"), "toolCallId": call, "role": "tool",
            "content": "{\"error\":\"the stream ended before there was an answer to this call\"}"})
    };
    let expected = json!([
        cut(2, "a"),
        cut(3, "h"),
        cut(4, "old"),
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        ends(),
    ]);
    assert_eq!(json!(events[events.len() - 5..]), expected);
}

#[test]
fn calls_for_the_client_have_arguments_and_no_results() {
    let call = |id: &str, input| ToolCall { id: ToolCallId::from_model(id), name: "look".to_owned(), input };
    let calls = vec![call("a", ToolInput::parse(r#"{"x":1}"#)), call("b", ToolInput::Invalid("oops".to_owned()))];
    let events = [
        turn(0),
        started("a"),
        started("b"),
        ready("a", &json!({"x": 1})),
        AgentEvent::AwaitingClient { usage: Usage::default(), calls },
    ];
    for (version, outcome) in
        [(Version::V1, Some(json!({"type": "success", "pendingToolCallIds": ["a", "b"]}))), (Version::Before1, None)]
    {
        let mut end = ends();
        if let Some(outcome) = outcome {
            end["outcome"] = outcome;
        }
        let sent = whole(version, &events);
        let expected = json!([
            {"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "look", "parentMessageId": "R.m1"},
            {"type": "TOOL_CALL_START", "toolCallId": "b", "toolCallName": "look", "parentMessageId": "R.m1"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": "{\"x\":1}"},
            {"type": "TOOL_CALL_END", "toolCallId": "a"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "b", "delta": "{\"invalid\":\"oops\"}"},
            {"type": "TOOL_CALL_END", "toolCallId": "b"},
            {"type": "STEP_FINISHED", "stepName": "turn-0"},
            end,
        ]);
        assert_eq!(json!(sent[2..]), expected);
    }
}
