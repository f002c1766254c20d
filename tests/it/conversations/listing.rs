//! `GET /v1/agent/conversations` and `GET …/{id}`.

use std::collections::HashSet;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{get, is_time, refusal, said};
use crate::runs::{background, gated, header, read_until, scripted};
use crate::support::app::TestApp;
use crate::support::model::{Scripted, says, turn};

#[tokio::test]
async fn a_conversation_shows_who_said_what_and_what_became_of_calls() {
    let s = Scripted::playing([
        turn()
            .text("Let me see.")
            .call("t1", "discover_trigger_types", &json!({}))
            .call("t2", "nowhere", &json!({}))
            .done(),
        says("There are four."),
    ])
    .await;
    s.app.say("c.1", "How many triggers?\nPlease.").await;
    let mut conversation = get(&s.app, "/c.1").await;
    let mut run = String::new();
    for message in conversation["messages"].as_array_mut().unwrap() {
        assert!(is_time(&message["created_at"].take()));
        let id = message["id"].take();
        let (of_run, seq) = id.as_str().unwrap().split_once('.').unwrap();
        run = of_run.to_owned();
        message["id"] = json!(seq);
    }
    assert_eq!(run.len(), 36, "the run is a UUID");
    for time in ["created_at", "updated_at"] {
        assert!(is_time(&conversation[time].take()));
    }
    let runs = conversation.as_object_mut().unwrap().remove("runs").unwrap();
    assert_eq!((&runs[0]["id"], &runs[0]["state"], &runs[1]), (&json!(run), &json!("completed"), &Value::Null));
    assert_eq!(
        conversation,
        json!({
            "id": "c.1", "title": "How many triggers?", "context_type": "workflow", "created_at": null, "updated_at": null,
            "message_count": 3, "pinned": false, "archived": false,
            "usage": {"runs": 1, "turns": 2, "input_tokens": 20, "output_tokens": 10, "cached_input_tokens": 0, "cost_usd": 0.0},
            "messages": [
                {"id": "0", "role": "user", "text": "How many triggers?\nPlease.", "created_at": null},
                {"id": "1", "role": "assistant", "text": "Let me see.", "created_at": null, "tool_calls": [
                    {"id": "t1", "name": "discover_trigger_types", "state": "done"},
                    {"id": "t2", "name": "nowhere", "state": "failed"},
                ]},
                {"id": "3", "role": "assistant", "text": "There are four.", "created_at": null},
            ],
        })
    );
}

#[tokio::test]
async fn a_conversation_names_its_run_while_that_lives() {
    let gate = Arc::new(Notify::new());
    let s = scripted([gated(&gate, "Once ", "more.")]).await;
    let mut response = s.app.post(&background("Tell")).await;
    let run = header(&response, "x-run-id");
    let conversation = get(&s.app, "/c").await;
    assert_eq!((&conversation["live_run_id"], &conversation["message_count"]), (&json!(run), &json!(1)));
    gate.notify_one();
    read_until(&mut response, "message_complete").await;
    assert_eq!(get(&s.app, "/c").await.get("live_run_id"), None, "it has ended");
}

#[tokio::test]
async fn the_list_goes_from_the_newest_change_on_in_parts() {
    let s = Scripted::playing((0..6).map(|nth| says(&format!("Answer {nth}.")))).await;
    for conversation in ["a", "b", "c", "d", "e"] {
        s.app.say(conversation, &format!("This is {conversation}")).await;
    }
    s.app.say("b", "More").await;
    let mut ids = Vec::new();
    let mut path = "?limit=2".to_owned();
    loop {
        let page = get(&s.app, &path).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(ids, ["b", "e", "d", "c", "a"], "each once, what changed last first");
    let whole = get(&s.app, "").await;
    assert_eq!(whole["items"].as_array().unwrap().len(), 5);
    assert_eq!(whole.get("next_cursor"), None, "nothing follows");
    assert_eq!((&whole["items"][0]["title"], &whole["items"][0]["message_count"]), (&json!("This is b"), &json!(4)));
    let keys: HashSet<&str> = whole["items"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        HashSet::from([
            "id",
            "title",
            "context_type",
            "created_at",
            "updated_at",
            "message_count",
            "pinned",
            "archived"
        ])
    );
}

#[tokio::test]
async fn what_is_no_part_of_a_list_is_refused() {
    let app = TestApp::demo().await;
    app.say("c", "hello").await;
    let rows = [
        ("?limit=0", "invalid_request", "nothing is asked for"),
        ("?limit=101", "invalid_request", "too many"),
        ("?limit=-1", "invalid_request", "a sign"),
        ("?limit=1.5", "invalid_request", "no whole number"),
        ("?limit=ten", "invalid_request", "no number"),
        ("?limit=1&limit=2", "invalid_request", "twice"),
        ("?cursor=x", "cursor_invalid", "no cursor"),
        ("?cursor=17", "cursor_invalid", "half a cursor"),
        ("?cursor=17.", "cursor_invalid", "the other half is missing"),
        ("?cursor=-17.c", "cursor_invalid", "before all times"),
        ("?cursor=17.a%20b", "cursor_invalid", "an id that is none"),
    ];
    for (query, code, reason) in rows {
        assert_eq!(refusal(&app, Method::GET, query, None).await, (400, code.to_owned()), "{reason}");
        if let Some(bad) = query.strip_prefix("?limit") {
            let trail = format!("/c/trail?limit{bad}");
            assert_eq!(refusal(&app, Method::GET, &trail, None).await, (400, code.to_owned()), "{reason}");
        }
    }
    for cursor in ["x", "-1", "01", "1.c", "99999999999999999999"] {
        let trail = format!("/c/trail?cursor={cursor}");
        assert_eq!(refusal(&app, Method::GET, &trail, None).await, (400, "cursor_invalid".to_owned()), "{cursor}");
    }
    assert_eq!(get(&app, "?limit=&cursor=").await["items"].as_array().unwrap().len(), 1, "empty is absent");
}

#[tokio::test]
async fn an_answer_in_another_language_that_was_rejected_is_not_shown() {
    let s = Scripted::playing([says("你好，你好吗"), says("Hello.")]).await;
    s.app.say("c", "Hi").await;
    assert_eq!(said(&s.app, "c").await, ["user: Hi", "assistant: Hello."]);
}

#[tokio::test]
async fn a_message_without_an_answer_is_shown() {
    let s = Scripted::with(&[("LLM__RETRY__ATTEMPTS", "1")], [turn().breaks().answer()]).await;
    s.app.say("c", "Hi").await;
    assert_eq!(said(&s.app, "c").await, ["user: Hi"]);
}
