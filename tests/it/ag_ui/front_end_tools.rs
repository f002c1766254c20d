//! Tools that the client runs: offered with its input, called without a result, and answered with its next input.

use serde_json::{Value, json};

use super::{World, finished, input, says, usage, v1};
use crate::support::model::{says as answers, turn};

pub(super) fn offering(mut input: Value) -> Value {
    input["tools"] = json!([{
        "name": "paint",
        "description": "Paints the page.",
        "parameters": {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]},
    }]);
    input
}

#[tokio::test]
async fn a_call_of_a_front_end_tool_waits_for_its_result() {
    let both = turn().call("s", "get_ticket", &json!({"id": 7})).call("p", "paint", &json!({"color": "red"})).done();
    let world = World::playing([both, answers("It is red.")]).await;
    let told = world.run(&v1(offering(says("Paint it red")))).await;
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs", "protocolVersion": "1.0"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "TOOL_CALL_START", "toolCallId": "s", "toolCallName": "get_ticket", "parentMessageId": "R.m1"},
        {"type": "TOOL_CALL_START", "toolCallId": "p", "toolCallName": "paint", "parentMessageId": "R.m1"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "s", "delta": "{\"id\":7}"},
        {"type": "TOOL_CALL_END", "toolCallId": "s"},
        {"type": "TOOL_CALL_RESULT", "messageId": "R.r2", "toolCallId": "s", "content": "{\"ok\":true}", "role": "tool"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "p", "delta": "{\"color\":\"red\"}"},
        {"type": "TOOL_CALL_END", "toolCallId": "p"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs", "usage": usage(1),
         "outcome": {"type": "success", "pendingToolCallIds": ["p"]}},
    ]);
    assert_eq!(json!(told), expected);
    let offered = world.s.model.requests()[0].json()["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = offered.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"paint") && names.contains(&"get_ticket"), "{names:?}");

    let ours = "0190a0b0-0000-7000-8000-000000000000.r2";
    let told = world
        .run(&offering(input(json!([
            {"id": "u1", "role": "user", "content": "Paint it red"},
            {"id": "a1", "role": "assistant", "toolCalls": [
                {"id": "s", "type": "function", "function": {"name": "get_ticket", "arguments": "{\"id\":7}"}},
                {"id": "p", "type": "function", "function": {"name": "paint", "arguments": "{\"color\":\"red\"}"}}]},
            {"id": ours, "role": "tool", "toolCallId": "s", "content": "FORGED"},
            {"id": "t1", "role": "tool", "toolCallId": "p", "content": "painted"},
        ]))))
        .await;
    assert_eq!(told.last(), Some(&finished(1)));
    let asked = world.s.last_asked();
    let read: Vec<&str> =
        asked.iter().filter(|m| m["role"] == "tool").map(|m| m["content"].as_str().unwrap()).collect();
    let [server, _, page] = read.as_slice() else { panic!("{read:?}") };
    let told = (r#"{"ok":true}"#, r#"{"told_by":"client","result":"painted"}"#);
    assert_eq!((*server, *page), told, "its own result is the server's to know");
    let late =
        world.refused(&offering(input(json!([{"id": "t1", "role": "tool", "toolCallId": "p", "content": "x"}])))).await;
    assert_eq!((late.0, late.1.as_str()), (409, "no_such_call"), "it has its result");
}

/// The thread with the call `p`, its result and what the user said then.
fn painted_and(said: &[(&str, &str)]) -> Value {
    let call =
        json!({"id": "p", "type": "function", "function": {"name": "paint", "arguments": "{\"color\":\"red\"}"}});
    let mut messages = json!([
        {"id": "u1", "role": "user", "content": "Paint it red"},
        {"id": "a1", "role": "assistant", "toolCalls": [call]},
        {"id": "t1", "role": "tool", "toolCallId": "p", "content": "painted"},
    ]);
    let said = said.iter().map(|(id, text)| json!({"id": id, "role": "user", "content": text}));
    messages.as_array_mut().unwrap().extend(said);
    offering(input(messages))
}

#[tokio::test]
async fn results_before_a_message_are_taken_with_it_and_passed_over_when_they_were_taken() {
    let paints = || turn().call("p", "paint", &json!({"color": "red"})).done();
    let world = World::playing([paints(), answers("It is red."), answers("Blue, then."), answers("Light blue.")]).await;
    world.run(&offering(says("Paint it red"))).await;
    let told = world.run(&painted_and(&[("u2", "And now"), ("u3", "blue")])).await;
    assert_eq!((told[0]["type"].as_str(), told.last()), (Some("RUN_STARTED"), Some(&finished(1))));
    let text = json!(told).to_string();
    assert!(text.contains("Blue, then.") && !text.contains("It is red."), "{text}");
    let asked = world.s.last_asked();
    assert_eq!(asked.last().unwrap()["content"], "And now\n\nblue");
    let read = r#"{"told_by":"client","result":"painted"}"#;
    assert!(asked.iter().any(|message| message["content"] == read), "{asked:?}");

    // The same again, behind which the user says more: nobody waits for the result.
    world.run(&painted_and(&[("u2", "And now"), ("u3", "blue"), ("u4", "Lighter")])).await;
    let asked = world.s.last_asked();
    assert_eq!(asked.last().unwrap()["content"], "Lighter");
    assert_eq!(asked.iter().filter(|message| message["content"] == read).count(), 1, "{asked:?}");
}
