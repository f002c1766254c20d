//! What waits is listed: calls, and previews, which are decided the same way.

use serde_json::{Value, json};

use super::{World, approve, id, problem, reject};
use crate::support::frames::data;
use crate::support::model::{Scripted, calls, says};

/// A workflow that can be saved.
fn preview(name: &str) -> Value {
    let wait = json!({"name": "Wait", "action_type": "delay", "action_config": {"duration": "30m"}, "is_active": true});
    let workflow = json!({"name": name, "is_active": true, "entity": "sales.orders", "trigger_type": "on_create",
                          "actions": [wait]});
    json!({"workflow": workflow, "description": "d"})
}

#[tokio::test]
async fn a_call_is_listed_and_read_whole() {
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 7})), says("Closed.")]).await;
    let shown = w.held("Close 7").await;
    let token = w.s.app.token.clone();
    let (status, list) = w.get_as(&token, "/v1/agent/approvals").await;
    let item = &list["items"][0];
    let expected = json!({
        "kind": "call",
        "approval_id": shown["approval_id"],
        "state": "pending",
        "conversation_id": "c",
        "run_id": item["run_id"],
        "user_id": crate::support::app::ADA,
        "tool_use_id": "c1",
        "tool": "close_ticket",
        "arguments": {"id": 7},
        "digest": shown["digest"],
        "needs": "user",
        "created_at": item["created_at"],
        "expires_at": item["expires_at"],
    });
    assert_eq!((status, &list), (200, &json!({"items": [expected]})));
    let path = format!("/v1/agent/approvals/{}", id(&shown));
    assert_eq!(w.get_as(&token, &path).await, (200, expected));
    let seen = async || {
        let (_, seen) = w.get_as(&token, "/v1/agent/conversations/c").await;
        let messages = seen["messages"].as_array().unwrap().iter();
        let calls = messages.filter_map(|message| message["tool_calls"].as_array()).flatten().cloned();
        calls.map(|call| (call["state"].clone(), call.get("approval").cloned())).collect::<Vec<_>>()
    };
    assert_eq!(seen().await, [(json!("not_run"), Some(json!("pending")))]);
    w.decide(&shown, &approve()).await;
    assert_eq!(seen().await, [(json!("not_run"), Some(json!("approved"))), (json!("done"), None)]);
    assert_eq!(w.get_as(&token, "/v1/agent/approvals").await.1, json!({"items": []}));
    assert_eq!(w.get_as(&token, &path).await.1["state"], json!("approved"), "a decided one can still be read");
}

#[tokio::test]
async fn a_preview_waits_in_the_same_list_and_is_decided_there() {
    let turns = ["One", "Two"].map(|name| [calls("p", "preview_workflow", &preview(name)), says("Look.")]);
    let s = Scripted::playing(turns.into_iter().flatten()).await;
    let mut ids = Vec::new();
    for name in ["One", "Two"] {
        let frames = s.app.say("c", name).await;
        ids.push(data(&frames, "workflow_preview")["preview_id"].as_str().unwrap().to_owned());
    }
    let get = async |path: &str| {
        let response = s.app.http.get(s.app.url(path)).bearer_auth(&s.app.token).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let decide = async |id: &str, decision: Value| {
        let url = s.app.url(&format!("/v1/agent/approvals/{id}"));
        s.app.http.post(url).bearer_auth(&s.app.token).json(&decision).send().await.unwrap()
    };
    let (_, list) = get("/v1/agent/approvals").await;
    let items = list["items"].as_array().unwrap();
    let of_item = |item: &Value| json!([item["kind"], item["approval_id"], item["state"], item["what"], item["name"]]);
    let expected = [
        json!(["preview", ids[1], "pending", "workflow", "Two"]),
        json!(["preview", ids[0], "pending", "workflow", "One"]),
    ];
    assert_eq!(items.iter().map(of_item).collect::<Vec<_>>(), expected);
    let (status, one) = get(&format!("/v1/agent/approvals/{}", ids[0])).await;
    assert_eq!((status, &one), (200, &items[1]));

    let decided: Value = decide(&ids[0], approve()).await.json().await.unwrap();
    let saved = decided["saved_id"].clone();
    assert_eq!(decided, json!({"preview_id": ids[0], "decision": "accept", "saved_id": saved}));
    let late = decide(&ids[0], reject()).await;
    assert_eq!(problem(late).await, (409, "already_decided".to_owned()));
    let decided: Value = decide(&ids[1], reject()).await.json().await.unwrap();
    assert_eq!(decided, json!({"preview_id": ids[1], "decision": "reject"}));
    assert_eq!(get("/v1/agent/approvals").await.1, json!({"items": []}));
    assert_eq!(get(&format!("/v1/agent/approvals/{}", ids[0])).await.0, 404, "decided previews are not shown here");
}
