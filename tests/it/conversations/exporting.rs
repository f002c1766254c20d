//! `GET …/conversations/{id}/export` and `…/trail`.

use serde_json::{Value, json};

use super::{get, is_time};
use crate::runs::body;
use crate::support::model::{Scripted, says, turn};

/// A conversation with a tool call and an answer that was given again.
async fn spoken() -> Scripted {
    let s = Scripted::playing([
        turn().text("Let me see.").call("t1", "discover_trigger_types", &json!({})).done(),
        says("Four."),
        says("There are four."),
    ])
    .await;
    s.app.chat(&body("How many?")).await;
    s.app.chat(&json!({"regenerate": true, "context_type": "workflow", "conversation_id": "c"})).await;
    s
}

#[tokio::test]
async fn an_export_holds_all_branches_and_the_trail() {
    let s = spoken().await;
    let url = s.app.url("/v1/agent/conversations/c/export");
    let answer = s.app.http.get(url).bearer_auth(&s.app.token).send().await.unwrap();
    assert_eq!(answer.headers()["content-disposition"], "attachment; filename=\"conversation.json\"");
    assert_eq!(answer.headers()["content-type"], "application/json");
    let export: Value = answer.json().await.unwrap();
    assert_eq!(export["conversation"]["title"], "How many?");
    let runs = export["runs"].as_array().unwrap();
    let kinds = |run: &Value| -> Vec<String> {
        run["messages"].as_array().unwrap().iter().map(|m| m["kind"].as_str().unwrap().to_owned()).collect()
    };
    let whole = ["user", "assistant", "tool_results", "assistant"];
    assert_eq!(runs.iter().map(kinds).collect::<Vec<_>>(), [&whole[..], &["user", "assistant"]]);
    assert_eq!((&runs[0]["parent_message_id"], &runs[1]["parent_message_id"]), (&Value::Null, &Value::Null));
    assert_eq!((&runs[0]["state"], &runs[0]["turns"]), (&json!("completed"), &json!(2)));
    assert_eq!(runs[0]["context_type"], "workflow");
    let first = &runs[0]["messages"][0];
    assert_eq!((&first["body"]["text"], is_time(&first["created_at"])), (&json!("How many?"), true));
    assert_eq!(first["id"], json!(format!("{}.0", runs[0]["id"].as_str().unwrap())));
    let trail = get(&s.app, "/c/trail?limit=100").await;
    assert_eq!(export["trail"], trail["items"]);
}

#[tokio::test]
async fn an_export_says_which_message_each_run_goes_on_from() {
    let s = Scripted::playing(["Hello.", "Seven.", "Eight."].map(says)).await;
    s.app.chat(&body("Hi")).await;
    s.app.chat(&body("Three and four?")).await;
    let shown = get(&s.app, "/c").await;
    let mut edited = body("Four and four?");
    edited["parent_message_id"] = shown["messages"][0]["id"].clone();
    s.app.chat(&edited).await;
    let export = get(&s.app, "/c/export").await;
    let parents: Vec<&Value> = export["runs"].as_array().unwrap().iter().map(|run| &run["parent_message_id"]).collect();
    assert_eq!(parents, [&Value::Null, &shown["messages"][1]["id"], &shown["messages"][0]["id"]]);
}

#[tokio::test]
async fn the_trail_tells_what_happened_in_order_and_in_parts() {
    let s = spoken().await;
    let (mut items, mut path) = (Vec::new(), "/c/trail?limit=2".to_owned());
    loop {
        let page = get(&s.app, &path).await;
        items.extend(page["items"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/c/trail?limit=2&cursor={cursor}");
    }
    let kinds: Vec<&str> = items.iter().map(|item| item["kind"].as_str().unwrap()).collect();
    let first = ["user_message", "model_turn", "tool_call", "model_turn", "run_ended"];
    let second = ["user_message", "model_turn", "run_ended"];
    assert_eq!(kinds, [&first[..], &second[..]].concat());
    assert_eq!(items, *get(&s.app, "/c/trail").await["items"].as_array().unwrap(), "each once");
    assert!(items.iter().all(|item| is_time(&item["at"]) && item["run_id"].is_string()));
    assert_eq!((&items[0]["text"], &items[2]["name"]), (&json!("How many?"), &json!("discover_trigger_types")));
}
