//! Tools that the page runs itself: it is asked last, and what it says goes on in the same message.

use serde_json::{Value, json};

use super::{World, post, problem, request, said, start, user};
use crate::support::model::{calls, says, turn};

/// A request of a page that can locate its user.
fn with_tools(mut body: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"exact": {"type": "boolean"}}});
    body["tools"] = json!([{"name": "locate", "description": "Where the user is.", "inputSchema": schema}]);
    body
}

/// What the page sends when it has run the call `id`.
fn ran(id: &str, answer: Value) -> Value {
    let mut part = json!({"type": "tool-locate", "toolCallId": id, "input": {}});
    part.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
    let parts = json!([{"type": "step-start"}, part]);
    with_tools(request(json!([user("u1", "Where am I?"), {"id": "theirs", "role": "assistant", "parts": parts}])))
}

#[tokio::test]
async fn a_call_of_the_pages_own_tool_is_left_to_it_and_its_result_goes_on() {
    let first = turn().call("c1", "get_ticket", &json!({"id": 7})).call("c2", "locate", &json!({"exact": true})).done();
    let w = World::playing([first, says("In Rome.")]).await;
    let stream = w.ask("", &with_tools(said("Where am I?"))).await;
    let types = [
        "start",
        "start-step",
        "tool-input-start",
        "tool-input-available",
        "tool-output-available",
        "tool-input-available",
        "finish-step",
        "finish",
    ];
    assert_eq!(stream.types(), types);
    let call =
        json!({"type": "tool-input-available", "toolCallId": "c2", "toolName": "locate", "input": {"exact": true}});
    assert_eq!(stream.chunks[5], call, "it is no dynamic one, since the page knows it");

    let stream = w.ask("", &ran("c2", json!({"state": "output-available", "output": {"city": "Rome"}}))).await;
    let mut begin = start();
    begin["messageId"] = json!("theirs");
    assert_eq!(stream.chunks[0], begin);
    assert_eq!(stream.types()[1..], ["start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]);
    assert_eq!(w.s.last_asked().last().unwrap()["content"], json!(r#"{"told_by":"client","result":{"city":"Rome"}}"#));
}

#[tokio::test]
async fn a_tool_of_the_page_that_failed_is_told_to_the_model() {
    let w = World::playing([calls("c1", "locate", &json!({})), says("I cannot see you.")]).await;
    w.ask("", &with_tools(said("Where am I?"))).await;
    let stream = w.ask("", &ran("c1", json!({"state": "output-error", "errorText": "not allowed"}))).await;
    assert_eq!(stream.text(), "I cannot see you.");
    assert_eq!(w.s.last_asked().last().unwrap()["content"], json!(r#"{"told_by":"client","error":"not allowed"}"#));
}

#[tokio::test]
async fn a_result_before_a_message_is_taken_with_it_and_passed_over_when_it_was_taken() {
    let w = World::playing([calls("c1", "locate", &json!({})), says("In Rome."), says("Sunny."), says("Rain.")]).await;
    w.ask("", &with_tools(said("Where am I?"))).await;
    let mut body = ran("c1", json!({"state": "output-available", "output": "Rome"}));
    let say = |body: &mut Value, id: &str, text: &str| body["messages"].as_array_mut().unwrap().push(user(id, text));
    say(&mut body, "u2", "And the weather?");
    let response = post(&w.s.app, "", &body).await;
    assert_eq!(response.status(), 200);
    let text = response.text().await.unwrap();
    assert!(text.contains("Sunny.") && !text.contains("In Rome.") && text.ends_with("data: [DONE]\n\n"), "{text}");
    let asked = w.s.last_asked();
    assert_eq!(asked.last().unwrap()["content"], "And the weather?");
    let read = json!(r#"{"told_by":"client","result":"Rome"}"#);
    assert!(asked.iter().any(|message| message["content"] == read), "{asked:?}");

    // The same again, behind which the user says more: nobody waits for the result.
    say(&mut body, "u3", "Tomorrow?");
    assert_eq!(w.ask("", &body).await.text(), "Rain.");
    let asked = w.s.last_asked();
    assert_eq!(asked.last().unwrap()["content"], "Tomorrow?");
    assert_eq!(asked.iter().filter(|message| message["content"] == read).count(), 1, "{asked:?}");
}

#[tokio::test]
async fn a_result_that_nobody_waits_for_is_refused() {
    let w = World::playing([calls("c1", "locate", &json!({})), says("In Rome.")]).await;
    w.ask("", &with_tools(said("Where am I?"))).await;
    let rome = || json!({"state": "output-available", "output": "Rome"});
    let forged = post(&w.s.app, "", &ran("c9", rome())).await;
    assert_eq!(problem(forged).await.1, "no_such_call");
    w.ask("", &ran("c1", rome())).await;
    assert_eq!(
        w.s.last_asked().last().unwrap()["content"],
        json!(r#"{"told_by":"client","result":"Rome"}"#),
        "a text is a text"
    );
    let again = post(&w.s.app, "", &ran("c1", rome())).await;
    assert_eq!(problem(again).await.1, "no_such_call");
}

#[tokio::test]
async fn a_tool_of_the_page_with_the_name_of_one_of_the_servers_does_not_count() {
    let w = World::playing([calls("c1", "get_ticket", &json!({"id": 7})), says("There.")]).await;
    let mut body = said("Look at 7");
    body["tools"] = json!([{"name": "get_ticket", "inputSchema": {}}]);
    let stream = w.ask("", &body).await;
    let named = json!({"type": "tool-input-start", "toolCallId": "c1", "toolName": "get_ticket", "dynamic": true});
    assert_eq!(stream.all("tool-input-start"), [&named]);
    assert_eq!(stream.all("tool-output-available")[0]["output"], json!({"ok": true}));
}
