//! Tools of a profile that a client's own model calls: no model of ours is asked, and all else is as in a run.

use serde_json::{Value, json};

use super::approvals::{again, approves};
use super::{call, error, forms, post, result, result_as, text};
use crate::approvals::World;
use crate::support::model::Scripted;
use crate::support::tickets::{TOOLS, started, write, writes};
use crate::support::upstream::{Answer, Upstream};

const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["close_ticket", "refund", "get_ticket", "note"]
[mcp]
expose = ["close_ticket", "refund", "get_ticket"]
[select_tools]
core = ["note"]
most = 1
"#;

async fn world() -> World {
    let data = tempfile::tempdir().unwrap();
    write(&data, "tools/tickets.toml", TOOLS);
    write(&data, "profiles/tickets.toml", PROFILE);
    let model = Upstream::script([]).await;
    let backend = Upstream::choosing(|_| Some(Answer::ok("application/json", "{\n  \"ok\": true\n}"))).await;
    let app = started(data, (&model, &backend.url()), &[]).await;
    World { s: Scripted { app, model }, backend }
}

#[tokio::test]
async fn a_tool_is_called_without_a_model_and_its_output_is_data() {
    let w = world().await;
    let read = result(&w.s.app, &call("get_ticket", json!({"id": 7}), forms())).await;
    assert_eq!((&read["isError"], &read["structuredContent"]["ok"]), (&json!(false), &json!(true)), "{read}");
    let asked: Vec<String> = w.backend.requests().iter().map(|asked| asked.path.clone()).collect();
    assert_eq!(asked, ["/v1/tickets/7"]);
    assert!(w.s.model.requests().is_empty());
    let wrong = result(&w.s.app, &call("get_ticket", json!({"id": "seven"}), forms())).await;
    assert_eq!(wrong["isError"], true, "{wrong}");
    let (status, error) =
        error(post(&w.s.app, &w.s.app.token, "/mcp", &call("note", json!({"text": "a"}), forms())).await).await;
    assert_eq!((status, &error["code"]), (200, &json!(-32602)), "it is not exposed");
    // It is in the record as any other call, and in no list of conversations.
    let (_, calls) = w.get_as(&w.s.app.token, "/v1/agent/conversations").await;
    assert_eq!(calls["items"], json!([]));
}

#[tokio::test]
async fn a_call_that_a_person_lets_through_waits_for_them() {
    let w = world().await;
    let close = || call("close_ticket", json!({"id": 7}), forms());
    let waits = result(&w.s.app, &close()).await;
    assert_eq!(waits["resultType"], "input_required", "{waits}");
    assert_eq!(writes(&w.backend), [""; 0]);
    let mut other = again(close(), &waits, approves());
    other["params"]["arguments"]["id"] = json!(8);
    let (status, error) = error(post(&w.s.app, &w.s.app.token, "/mcp", &other).await).await;
    assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{error}");
    let done = result(&w.s.app, &again(close(), &waits, approves())).await;
    assert_eq!((&done["isError"], &done["structuredContent"]["ok"]), (&json!(false), &json!(true)), "{done}");
    assert_eq!(writes(&w.backend).len(), 1);
    assert!(w.s.model.requests().is_empty());
}

#[tokio::test]
async fn a_call_that_is_turned_down_is_not_made_and_one_of_a_role_is_told_in_words() {
    let w = world().await;
    let close = || call("close_ticket", json!({"id": 7}), forms());
    let waits = result(&w.s.app, &close()).await;
    let no = result(&w.s.app, &again(close(), &waits, json!({"action": "decline"}))).await;
    assert!(no["isError"] == true && text(&no).contains("turned down"), "{no}");
    let refund: Value = result(&w.s.app, &call("refund", json!({"amount": 5}), forms())).await;
    assert!(refund["resultType"] == "complete" && text(&refund).contains("chief"), "{refund}");
    assert_eq!(writes(&w.backend), [""; 0]);
    assert!(w.s.model.requests().is_empty());
}

#[tokio::test]
async fn another_user_calls_it_with_their_own_token() {
    let w = world().await;
    let bob = w.s.app.token_of("bob", None, &["USER"]);
    result_as(&w.s.app, &bob, &call("get_ticket", json!({"id": 1}), forms())).await;
    let sent = w.backend.requests();
    assert_eq!(sent[0].header("authorization"), Some(format!("Bearer {bob}").as_str()));
}

#[tokio::test]
async fn a_call_that_is_decided_elsewhere_is_made_and_no_model_hears_of_it() {
    let w = world().await;
    let close = || call("close_ticket", json!({"id": 7}), forms());
    for (decision, made) in [("approve", 1), ("reject", 1)] {
        result(&w.s.app, &close()).await;
        let waiting = w.waiting(&w.s.app.token).await;
        let [waits] = &waiting[..] else { panic!("one call waits") };
        let decided = w.decide_as(&w.s.app.token, waits, &json!({"decision": decision})).await;
        assert_eq!(decided.status(), 200, "{decision}");
        let frames = decided.text().await.unwrap();
        assert_eq!((writes(&w.backend).len(), w.s.model.requests().len()), (made, 0), "{decision}: {frames}");
    }
}
