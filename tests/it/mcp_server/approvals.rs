//! Calls that wait for a person: asked by a form where the client can show one, and told in words where it cannot.

use serde_json::{Value, json};

use super::{call, error, forms, post, request, result, result_as, text};
use crate::approvals::World;
use crate::support::model::{Script, calls, says};
use crate::support::tickets::writes;

fn closing(id: &str, ticket: u32) -> Script {
    calls(id, "close_ticket", &json!({"id": ticket}))
}

fn ask(capabilities: Value) -> Value {
    call("ask_tickets", json!({"message": "Close 7"}), capabilities)
}

/// The call again, with what its user has said to the form.
pub fn again(mut message: Value, waits: &Value, reply: Value) -> Value {
    let key = waits["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    message["id"] = json!(8);
    message["params"]["requestState"] = waits["requestState"].clone();
    message["params"]["inputResponses"] = json!({key: reply});
    message
}

pub fn approves() -> Value {
    json!({"action": "accept", "content": {"decision": "approve"}})
}

#[tokio::test]
async fn a_user_is_asked_by_a_form_and_the_call_is_made_once() {
    let w = World::playing([closing("c1", 7), says("Closed.")]).await;
    let waits = result(&w.s.app, &ask(forms())).await;
    assert_eq!(waits["resultType"], "input_required");
    let forms_shown: Vec<&Value> = waits["inputRequests"].as_object().unwrap().values().collect();
    let [form] = forms_shown[..] else { panic!("{waits}") };
    assert_eq!((&form["method"], &form["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    let message = form["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("close_ticket") && message.contains("\"id\": 7") && message.contains("digest"),
        "{message}"
    );
    assert_eq!(writes(&w.backend), [""; 0]);

    let retry = again(ask(forms()), &waits, approves());
    let done = result(&w.s.app, &retry).await;
    assert_eq!((text(&done), &done["resultType"]), ("Closed.".to_owned(), &json!("complete")));
    assert_eq!(writes(&w.backend).len(), 1);
    // The same again is refused, and nothing is made.
    let replayed = result(&w.s.app, &retry).await;
    assert_eq!(replayed["isError"], true, "{replayed}");
    assert!(text(&replayed).contains("decided"), "{replayed}");
    assert_eq!(writes(&w.backend).len(), 1);
}

#[tokio::test]
async fn a_user_may_turn_it_down_or_not_answer() {
    let w = World::playing([closing("c1", 7), says("All right.")]).await;
    let waits = result(&w.s.app, &ask(forms())).await;
    let silent = result(&w.s.app, &again(ask(forms()), &waits, json!({"action": "cancel"}))).await;
    assert!(silent["isError"] == true && text(&silent).contains("still waits"), "{silent}");
    let no = json!({"action": "accept", "content": {"decision": "reject", "comment": "not that one"}});
    let done = result(&w.s.app, &again(ask(forms()), &waits, no)).await;
    assert_eq!(text(&done), "All right.");
    assert!(json!(w.s.last_asked()).to_string().contains("not that one"));
    assert_eq!(writes(&w.backend), [""; 0]);
}

#[tokio::test]
async fn a_state_counts_for_its_user_and_its_call_alone() {
    let w = World::playing([closing("c1", 7), closing("c2", 8)]).await;
    let waits = result(&w.s.app, &ask(forms())).await;
    let other = result(&w.s.app, &call("ask_tickets", json!({"message": "Close 8"}), forms())).await;
    let bob = w.s.app.token_of("bob", None, &["USER"]);
    let ada = w.s.app.token.as_str();
    let right = again(ask(forms()), &waits, approves());
    let mut other_words = right.clone();
    other_words["params"]["arguments"]["message"] = json!("Close 9");
    let mut other_tool = right.clone();
    other_tool["params"]["name"] = json!("ask_workflow");
    let mut other_state = right.clone();
    other_state["params"]["requestState"] = other["requestState"].clone();
    let mut other_conversation = right.clone();
    other_conversation["params"]["arguments"]["conversation_id"] = json!("c");
    let rows = [
        (bob.as_str(), &right, "another user"),
        (ada, &other_words, "other arguments"),
        (ada, &other_tool, "another tool"),
        (ada, &other_state, "the state of another call"),
        (ada, &other_conversation, "another conversation"),
    ];
    for (token, message, reason) in rows {
        let (status, error) = error(post(&w.s.app, token, "/mcp", message).await).await;
        assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{reason}: {error}");
    }
    assert_eq!(w.waiting(ada).await.len(), 2, "nothing was decided");
    assert_eq!(writes(&w.backend), [""; 0]);
}

#[tokio::test]
async fn a_state_has_an_end() {
    let w = World::playing([closing("c1", 7)]).await;
    let waits = result(&w.s.app, &ask(forms())).await;
    w.s.app.beside("UPDATE approvals SET expires_at = created_at").await;
    let late = result(&w.s.app, &again(ask(forms()), &waits, approves())).await;
    assert!(late["isError"] == true && text(&late).contains("expired"), "{late}");
    assert_eq!(writes(&w.backend), [""; 0]);
}

#[tokio::test]
async fn what_a_role_decides_and_what_no_form_can_show_is_told_in_words() {
    let refund = || calls("c1", "refund", &json!({"amount": 5}));
    let w = World::playing([refund(), closing("c2", 7), closing("c3", 7)]).await;
    let w = w.with(&[("SERVER__PUBLIC_URL", "https://chat.example.com")]).await;
    let of_role = result(&w.s.app, &ask(forms())).await;
    assert_eq!(of_role["resultType"], "complete", "its own user is not asked");
    let said = text(&of_role);
    assert!(said.contains("chief") && said.contains("https://chat.example.com/v1/agent/approvals/"), "{said}");
    assert_eq!(of_role["structuredContent"]["state"], "awaiting_approval");

    let without = result(&w.s.app, &ask(json!({}))).await;
    assert!(text(&without).contains("/v1/agent/approvals/"), "{without}");
    let mut old = ask(forms());
    old["params"].as_object_mut().unwrap().remove("_meta");
    let old = result(&w.s.app, &old).await;
    assert!(text(&old).contains("/v1/agent/approvals/") && old["resultType"].is_null(), "{old}");
    assert_eq!(writes(&w.backend), [""; 0]);
}

#[tokio::test]
async fn what_a_role_decides_is_not_taken_of_a_client_whose_user_has_that_role() {
    let w = World::playing([calls("c1", "refund", &json!({"amount": 5}))]).await;
    let chief = w.s.app.token_of("chief", None, &["chief"]);
    let told = result_as(&w.s.app, &chief, &ask(forms())).await;
    let waiting = w.waiting(&chief).await;
    let [waits] = &waiting[..] else { panic!("{told}") };
    let mut decides = ask(forms());
    decides["params"]["requestState"] = told["structuredContent"]["run_id"].clone();
    decides["params"]["inputResponses"] = json!({waits: approves()});
    let (status, error) = error(post(&w.s.app, &chief, "/mcp", &decides).await).await;
    assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{error}");
    assert_eq!(w.waiting(&chief).await, [waits.as_str()], "nothing was decided");
    assert_eq!(writes(&w.backend), [""; 0]);
}

#[tokio::test]
async fn a_client_lists_and_another_user_finds_nothing_of_it() {
    let w = World::playing([closing("c1", 7)]).await;
    result(&w.s.app, &ask(forms())).await;
    let bob = w.s.app.token_of("bob", None, &["USER"]);
    assert_eq!(w.waiting(&w.s.app.token).await.len(), 1);
    assert_eq!(w.waiting(&bob).await.len(), 0);
    let listed = result_as(&w.s.app, &bob, &request("tools/list", json!({}), forms())).await;
    assert!(!listed.to_string().contains("Close 7"));
}
