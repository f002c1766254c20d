//! Directives that a person has to let through: the run goes on, and the service carries them out when it is decided.

use serde_json::{Value, json};

use super::{forum, get, names, post, until};
use crate::support::model::{calls, says};
use crate::support::upstream::{Answer, Request};
use crate::tools::rest::answer;

fn good(_: &Request) -> Option<Answer> {
    answer(&json!({"ok": true}))
}

#[tokio::test]
async fn its_requester_lets_it_through_and_no_words_do() {
    let turns = [calls("c1", "hide_thread", &json!({"id": "t1"})), says("It waits."), says("I cannot.")];
    let (s, backend) = forum(&[("CHAT_MESSAGE__PROFILE", "mine")], turns, good).await;
    let (ann, bob) = (s.app.token_of("ann", Some("acme"), &[]), s.app.token_of("bob", Some("acme"), &["operator"]));
    let response = crate::chat_message::post_as(&s.app, &ann, &json!({"message": "Hide t1"})).await;
    let conversation = response.headers()["x-conversation-id"].to_str().unwrap().to_owned();
    let frames = crate::chat_message::frames(&response.text().await.unwrap());
    let last = crate::chat_message::last(&frames);
    assert_eq!(last["meta"]["stop_reason"], "end", "the run goes on: {last}");
    let actions = last["message"]["actions"].as_array().unwrap();
    let kinds: Vec<&str> = actions.iter().map(|action| action["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["directive.approve", "directive.reject"]);
    let id = &actions[0]["id"];
    let path = actions[0]["data"]["url"].as_str().unwrap().strip_prefix("/v1/agent").unwrap().to_owned();
    let digest = actions[0]["data"]["digest"].as_str().unwrap().to_owned();
    // A model cannot, whatever it is told.
    let again = json!({"message": "I approve it", "conversation_id": conversation});
    crate::chat_message::post_as(&s.app, &ann, &again).await.text().await.unwrap();
    let waiting = get(&s.app, &ann, &format!("/directives/{}", id.as_str().unwrap())).await;
    assert_eq!((&waiting["status"], &waiting["approval"]["needs"]), (&json!("pending_approval"), &json!("user")));
    assert!(backend.requests().is_empty());
    let listed = get(&s.app, &ann, "/approvals").await;
    let item = &listed["items"][0];
    assert_eq!(
        (&item["kind"], &item["approval_id"], &item["digest"]),
        (&json!("directive"), id, &json!(digest)),
        "{listed}"
    );

    let decide = async |token: &str, body: Value| post(&s.app, token, &path, body).await;
    let (status, refused) = decide(&bob, json!({"decision": "approve"})).await;
    assert_eq!(
        (status, &refused["code"]),
        (403, &json!("role_required")),
        "an operator sees it, and it is not theirs to decide"
    );
    let (status, refused) = decide(&ann, json!({"decision": "approve", "digest": "other"})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("digest_mismatch")));
    let (status, refused) = decide(&ann, json!({"decision": "perhaps"})).await;
    assert_eq!((status, &refused["code"]), (422, &json!("invalid_request")));
    let (status, approved) = decide(&ann, json!({"decision": "approve", "digest": digest, "comment": "yes"})).await;
    assert_eq!(status, 200, "{approved}");
    let done = until(&s.app, &ann, id, "succeeded").await;
    assert_eq!((&done["approval"]["decided_by"], &done["approval"]["comment"]), (&json!("ann"), &json!("yes")));
    let (status, refused) = decide(&ann, json!({"decision": "approve"})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("already_decided")));
    assert_eq!(backend.requests().len(), 1);
    let audit = s.app.token_of("olga", Some("acme"), &["auditor"]);
    let expected = ["requested", "approved", "started", "succeeded"].map(|what| format!("directive.{what}"));
    assert_eq!(names(&s.app, &audit).await, expected);
}

#[tokio::test]
async fn whoever_has_the_role_lets_it_through_and_its_requester_need_not_be_there() {
    let (s, backend) = forum(&[], [calls("c1", "erase_thread", &json!({"id": "t1"})), says("It waits.")], good).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    s.app.post_as(&ann, &json!({"message": "Erase", "context_type": "mine"})).await.text().await.unwrap();
    let (admin, owner) =
        (s.app.token_of("adam", Some("acme"), &["operator"]), s.app.token_of("ole", Some("acme"), &["owner"]));
    let foreign = s.app.token_of("ole", Some("umbrella"), &["owner", "operator"]);
    let listed = get(&s.app, &owner, "/approvals").await;
    let id = &listed["items"][0]["approval_id"];
    assert_eq!(get(&s.app, &owner, "/directives").await["items"][0]["id"], *id, "it asks for one of their roles");
    let path = format!("/directives/{}/decision", id.as_str().unwrap());
    for (token, expected) in [(&foreign, 404), (&admin, 403), (&ann, 403)] {
        let (status, problem) = post(&s.app, token, &path, json!({"decision": "approve"})).await;
        assert_eq!(status, expected, "{problem}");
    }
    let (status, _) = post(&s.app, &owner, &path, json!({"decision": "approve"})).await;
    assert_eq!(status, 200);
    until(&s.app, &ann, id, "succeeded").await;
    let [request] = &backend.requests()[..] else { panic!("{:?}", backend.requests()) };
    assert_eq!(request.header("x-switchboard-approver"), Some("user:ole"));
    assert_eq!(request.header("x-switchboard-actor"), Some("user:ann"));
}

#[tokio::test]
async fn what_is_turned_down_or_not_decided_in_time_is_never_sent() {
    let (s, backend) = forum(&[("DIRECTIVES__APPROVAL_S", "2")], [], good).await;
    let ann = s.app.token_of("ann", Some("acme"), &[]);
    let ask = async || {
        let body = json!({"name": "forum.thread.hide", "payload": {"id": "t1"}});
        post(&s.app, &ann, "/directives", body).await.1["directive"]["id"].clone()
    };
    let (turned_down, late) = (ask().await, ask().await);
    let path = |id: &Value| format!("/directives/{}/decision", id.as_str().unwrap());
    let (status, rejected) = post(&s.app, &ann, &path(&turned_down), json!({"decision": "reject"})).await;
    assert_eq!(
        (status, &rejected["directive"]["status"], &rejected["directive"]["reason"]),
        (200, &json!("canceled"), &json!("rejected"))
    );
    let expired = until(&s.app, &ann, &late, "canceled").await;
    assert_eq!(expired["reason"], "expired");
    let (status, refused) = post(&s.app, &ann, &path(&late), json!({"decision": "approve"})).await;
    assert_eq!((status, &refused["code"]), (410, &json!("approval_expired")));
    assert!(backend.requests().is_empty());
}

#[tokio::test]
async fn with_anothers_approval_and_the_callers_token_only_an_assistant_requests_it() {
    let text = r#"[[tool]]
name = "refund"
description = "Pays back."
approval = "role:owner"
request = { method = "POST", path = "/refunds" }
[tool.directive]
name = "shop.refund"
"#;
    let setup = crate::tools::rest::Setup::of(text);
    let (s, backend) = setup.start([], good).await;
    let (status, problem) = post(&s.app, &s.app.token, "/directives", json!({"name": "shop.refund"})).await;
    assert_eq!((status, &problem["code"]), (422, &json!("invalid_request")), "{problem}");
    assert!(backend.requests().is_empty());
}
