//! Section 2: every event with exactly its fields, in its order. The document's example sequences are run from the document.

use serde_json::{Value, json};

use crate::support::app::LOW_STOCK;
use crate::support::frames::{self, Frame};
use crate::support::model::{Scripted, calls, says, turn};

/// The fenced block of `docs/protocol/agent-chat.md` below a heading.
fn documented(heading: &str) -> Vec<(String, Value)> {
    let document = include_str!("../../../docs/protocol/agent-chat.md");
    let block = document.split_once(heading).unwrap().1.split("```").nth(1).unwrap();
    block.trim().lines().map(pattern).collect()
}

/// A line of an example: `event: name → {data}`, where `...` stands for what the example leaves out.
fn pattern(line: &str) -> (String, Value) {
    let (event, data) = line.strip_prefix("event: ").unwrap().split_once('→').unwrap();
    let data = data.trim().replace(", ...}", r#", "...": "..."}"#).replace("{...}", r#"{"...": "..."}"#);
    (event.trim().to_owned(), serde_json::from_str(&data).unwrap())
}

fn fits(pattern: &Value, data: &Value) -> bool {
    match (pattern, data) {
        (Value::String(pattern), Value::String(_)) if pattern == "..." => true,
        (Value::Object(pattern), Value::Object(data)) => {
            let open = pattern.contains_key("...");
            let given = pattern.iter().filter(|(key, _)| *key != "...");
            let all_fit = given.clone().all(|(key, value)| data.get(key).is_some_and(|data| fits(value, data)));
            all_fit && (open || data.len() == given.count())
        }
        (pattern, data) => pattern == data,
    }
}

fn assert_documented(heading: &str, frames: &[Frame], beyond: &[(&str, &str)]) {
    let expected = documented(heading);
    assert_eq!(frames::names(frames), expected.iter().map(|(event, _)| event.as_str()).collect::<Vec<_>>());
    for (frame, (event, pattern)) in frames.iter().zip(&expected) {
        let mut data = frame.data.clone();
        for (of, key) in beyond.iter().filter(|(of, _)| of == event) {
            assert!(data.as_object_mut().unwrap().shift_remove(*key).is_some(), "{of} has a {key}");
        }
        assert!(fits(pattern, &data), "{event}: {data} does not fit {pattern}");
    }
}

#[tokio::test]
async fn a_simple_question_without_tools_is_as_documented() {
    let answer = turn().text("The ").text("**Low Stock Alert**").text(" rule triggers...").done();
    let s = Scripted::playing([answer]).await;
    let frames = s.app.say("c", "What does this workflow do?").await;
    assert_documented("**Simple question (no tools):**", &frames, &[]);
}

#[tokio::test]
async fn a_question_that_needs_a_tool_call_is_as_documented() {
    let lookup = turn()
        .text("Let me look up that workflow.")
        .call("t1", "get_workflow_rule", &json!({"workflow_id": LOW_STOCK}))
        .done();
    let s = Scripted::playing([lookup, says("The workflow has 3 actions...")]).await;
    let frames = s.app.say("c", "What does this workflow do?").await;
    assert_documented("**Question requiring a tool call (2 turns):**", &frames, &[]);
}

#[tokio::test]
async fn a_workflow_creation_with_preview_is_as_documented() {
    let workflow = json!({
        "name": "Low Stock Notice", "is_active": true,
        "entity": "inventory.inventory_items", "trigger_type": "on_update",
        "actions": [{
            "name": "Tell", "action_type": "create_alert", "is_active": true,
            "action_config": {"alert_type": "low_stock", "severity": "high", "title": "Low", "message": "Stock is low"}
        }]
    });
    let preview = json!({"description": "Tell when stock is low", "workflow": workflow});
    let s = Scripted::playing([
        calls("t1", "discover_action_types", &json!({})),
        turn().text("I'll build that workflow...").call("t2", "preview_workflow", &preview).done(),
        says("I've sent a preview for your review."),
    ])
    .await;
    let frames = s.app.say("c", "Create a workflow that tells me when stock is low").await;
    let beyond = [("workflow_preview", "preview_id")];
    assert_documented("**Workflow creation with preview (3 turns):**", &frames, &beyond);
    assert_eq!(frames::data(&frames, "tool_call_result")["is_error"], false);
    assert_eq!(s.result_of("t2")["status"], "preview_sent");
}

#[tokio::test]
async fn frames_are_exactly_an_event_line_one_data_line_and_a_blank_line() {
    let s = Scripted::playing([turn().text("a\nb\r\n\"c\" \u{2028}").done()]).await;
    let response = s.app.post(&json!({"message": "hi", "context_type": "workflow"})).await;
    let expected = "event: message_start\ndata: {\"turn\":0}\n\n\
                    event: content_chunk\ndata: {\"chunk\":\"a\\nb\\r\\n\\\"c\\\" \u{2028}\"}\n\n\
                    event: message_complete\ndata: {}\n\n";
    assert_eq!(response.text().await.unwrap(), expected);
}

#[tokio::test]
async fn thinking_is_never_sent() {
    let thinking =
        r#"data: {"choices":[{"index":0,"delta":{"reasoning_content":"secret thought"},"finish_reason":null}]}"#;
    let s = Scripted::playing([turn().raw(&format!("{thinking}\n\n")).text("Hello").done()]).await;
    let response = s.app.post(&json!({"message": "hi", "context_type": "workflow"})).await;
    let body = response.text().await.unwrap();
    assert!(body.contains("Hello") && !body.contains("thought"), "{body}");
}
