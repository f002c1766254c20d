//! Calls that wait for their user: shown with buttons, decided by an action of the page.

use serde_json::{Value, json};

use super::{Kh, complete, kinds, typed, within};
use crate::support::model::{Script, calls, says};
use crate::support::upstream::{Answer, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "delete_article"
description = "Deletes an article."
approval = "user"
input_schema = { type = "object", required = ["id"], properties = { id = { type = "integer" } } }
[tool.request]
method = "DELETE"
path = "/v1/articles/{id}"
"#;

const LAB: &str = "id = \"lab\"\npage = \"lab\"\ntools = [\"delete_article\"]\n";

async fn playing(backend: &Upstream, turns: impl IntoIterator<Item = Script>) -> Kh {
    let url = backend.url();
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", url.as_str())];
    let files = [("tools/kh.toml", TOOLS), ("profiles/lab.toml", LAB)];
    Kh::with(&files, &settings, turns.into_iter().map(Script::answer)).await
}

fn lab(message: &str) -> Value {
    typed(message, &json!({"current_page": "lab"}))
}

/// The request of a button.
fn pressed(button: &Value, chat: &Value) -> Value {
    let mut body = within(chat, lab(button["label"].as_str().unwrap()));
    body["interaction_type"] = json!("action_executed");
    body["action_metadata"] = json!({"action_identifier": button["action"], "action_data": button["data"]});
    body
}

#[tokio::test]
async fn a_call_that_waits_is_made_once_its_button_is_pressed() {
    let backend = Upstream::script([Answer::ok("application/json", "{\"deleted\": 7}")]).await;
    let turns = [calls("c", "delete_article", &json!({"id": 7})), says("It is gone.")];
    let kh = playing(&backend, turns).await;
    let payload = kh.answer(&lab("Delete it")).await;
    assert_eq!(backend.requests().len(), 0, "nothing is done before");
    let custom = &payload["custom_payload"];
    let id = custom["data"]["approval_id"].clone();
    assert!(id.is_string(), "{payload:#}");
    assert_eq!((&custom["type"], &custom["data"]["arguments"]), (&json!("approval_request"), &json!({"id": 7})));
    let button = |label: &str, action: &str, style: &str| {
        let data = json!({"approval_id": id, "digest": custom["data"]["digest"]});
        json!({"label": label, "action": action, "handler": "server", "data": data, "style": style})
    };
    let buttons = json!([
        button("Approve delete_article", "approve_call", "primary"),
        button("Reject delete_article", "reject_call", "warning"),
    ]);
    assert_eq!(payload["suggested_actions"], buttons);
    let chat = payload["conversation_id"].clone();
    let kept = kh.get(&format!("/api/chats/{chat}")).await;
    let extras = &kept["messages"][1]["extras"];
    assert_eq!((&extras["custom_payload"], &extras["suggested_actions"]), (custom, &buttons), "also when read again");

    let events = kh.hears(&pressed(&buttons[0], &chat)).await;
    let expected = ["status", "tool_start", "text_delta", "tool_complete", "text_delta", "complete"];
    assert_eq!(kinds(&events), expected);
    assert_eq!(complete(&events)["conversation_id"], chat);
    let kept = kh.get(&format!("/api/chats/{chat}")).await;
    let roles: Vec<_> = kept["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "assistant"], "what tells the model of the decision is nobody's words");
    let requests = backend.requests();
    let sent: Vec<_> = requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    assert_eq!(sent, ["DELETE /v1/articles/7"]);

    let again = kh.hears(&pressed(&buttons[0], &chat)).await;
    assert_eq!(kinds(&again), ["error"], "a second press changes nothing: {again:?}");
    assert_eq!(backend.requests().len(), 1);
    let kept = kh.get(&format!("/api/chats/{chat}")).await;
    assert!(kept["messages"][1]["extras"]["suggested_actions"].is_null(), "what is decided has no buttons");
}

#[tokio::test]
async fn a_call_that_is_turned_down_is_not_made_and_the_model_is_told() {
    let backend = Upstream::script([]).await;
    let kh = playing(&backend, [calls("c", "delete_article", &json!({"id": 7})), says("As you wish.")]).await;
    let payload = kh.answer(&lab("Delete it")).await;
    let mut button = payload["suggested_actions"][1].clone();
    button["data"]["comment"] = json!("wrong article");
    let answer = kh.answer(&pressed(&button, &payload["conversation_id"])).await;
    assert_eq!(answer["message"], "As you wish.");
    let asked = kh.s.last_asked();
    let told = asked.last().unwrap()["content"].as_str().unwrap();
    assert!(told.contains("wrong article"), "{told}");
}

#[tokio::test]
async fn words_or_another_user_approve_nothing() {
    let backend = Upstream::script([]).await;
    let turns = [calls("c", "delete_article", &json!({"id": 7})), says("It waits.")];
    let kh = playing(&backend, turns).await;
    let payload = kh.answer(&lab("Delete it")).await;
    let chat = payload["conversation_id"].clone();
    let button = &payload["suggested_actions"][0];
    for (digest, reason) in [(json!(null), "nothing says what was shown"), (json!("0".repeat(64)), "another call")] {
        let mut other = button.clone();
        other["data"]["digest"] = digest;
        assert_eq!(kinds(&kh.hears(&pressed(&other, &chat)).await), ["error"], "{reason}");
    }
    let press = pressed(button, &chat);
    let other = kh.s.app.token_of("bob", None, &["ADMIN"]);
    let events = super::heard(kh.post_as(&other, &press).await).await;
    assert_eq!(kinds(&events), ["error"]);
    kh.answer(&within(&chat, lab("approve_call"))).await;
    assert_eq!(backend.requests().len(), 0);
}

#[tokio::test]
async fn nobody_lets_their_own_call_through_where_somebody_else_has_to() {
    let backend = Upstream::script([]).await;
    let url = backend.url();
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", url.as_str())];
    let tools = TOOLS.replace("approval = \"user\"", "approval = \"role:USER\"\nnot_requester = true");
    let files = [("tools/kh.toml", tools.as_str()), ("profiles/lab.toml", LAB)];
    let turns = [calls("c", "delete_article", &json!({"id": 7}))];
    let kh = Kh::with(&files, &settings, turns.into_iter().map(Script::answer)).await;
    let payload = kh.answer(&lab("Delete it")).await;
    assert_eq!(payload["custom_payload"]["data"]["not_requester"], json!(true));
    let told = kh.hears(&pressed(&payload["suggested_actions"][0], &payload["conversation_id"])).await;
    assert_eq!(kinds(&told), ["error"], "{told:?}");
    assert!(json!(told).to_string().contains("Somebody else has to approve this first."), "Ada has the role: {told:?}");
    assert_eq!(backend.requests().len(), 0);
}
