//! How answers end that do not just end: limits, failures, approvals, clients that leave, servers that stop.

use std::time::Duration;

use serde_json::{Value, json};

use super::page::Page;
use super::{content, forum, forum_over, forum_with, frames, kinds, last, post, post_as, said};
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::upstream::{Answer, End, Request, Upstream};

fn error(frames: &[Value]) -> &Value {
    let at = frames.len() - 2;
    assert_eq!(frames[at]["type"], "error", "right before the end: {frames:#?}");
    &frames[at]
}

/// How it says that it did not end well.
fn ends(frames: &[Value]) -> (&str, &str) {
    (last(frames)["meta"]["stop_reason"].as_str().unwrap(), error(frames)["code"].as_str().unwrap())
}

fn looks(id: &str) -> crate::support::model::Script {
    calls(id, "list_categories", &json!({}))
}

#[tokio::test]
async fn a_limit_of_rounds_ends_with_an_answer_or_a_sentence() {
    let bounds = |on_limit: &str| format!("bounds = {{ max_turns = 2, on_limit = \"{on_limit}\" }}");
    let (s, _backend) = forum_with(&bounds("answer"), &[], [looks("c1"), looks("c2"), says("As far as I got.")]).await;
    let ended = frames(&said(&s.app, "Go").await);
    assert_eq!((content(&ended), &last(&ended)["meta"]["stop_reason"]), ("As far as I got.", &json!("max_rounds")));
    assert_eq!(s.model.requests().len(), 3);

    // It says nothing, and no call is left to ask again.
    let (s, _backend) = forum_with(&bounds("answer"), &[], [looks("c1"), looks("c2"), turn().done()]).await;
    let ended = frames(&said(&s.app, "Go").await);
    assert_eq!(ends(&ended), ("max_rounds", "empty_answer"));
    assert!(content(&ended).starts_with("This needed more steps"), "{ended:#?}");
    assert_eq!(s.model.requests().len(), 3);

    // The same for calls, also where the model then calls again, or says nothing, twice.
    for (nothing, asked) in [(vec![turn().done(), turn().done()], 4), (vec![looks("c9")], 3)] {
        let calls = "bounds = { max_tool_calls = 1, on_limit = \"answer\" }";
        let (s, _backend) = forum_with(calls, &[], [looks("c1"), looks("c2")].into_iter().chain(nothing)).await;
        let text = said(&s.app, "Go").await;
        assert_eq!(ends(&frames(&text)), ("max_rounds", "empty_answer"), "{text}");
        assert_eq!((text.matches("tool_calls").count(), s.model.requests().len()), (2, asked), "{text}");
    }
    let calls = "bounds = { max_tool_calls = 1, on_limit = \"fail\" }";
    let (s, _backend) = forum_with(calls, &[], [looks("c1"), looks("c2")]).await;
    assert_eq!(ends(&frames(&said(&s.app, "Go").await)), ("max_rounds", "tool_call_limit"));

    // An empty answer that is asked for again is a call of a model, too.
    for on_limit in ["answer", "fail"] {
        let bounds = format!("bounds = {{ max_turns = 1, on_limit = \"{on_limit}\" }}");
        let (s, _backend) = forum_with(&bounds, &[], [turn().done(), looks("c1")]).await;
        assert_eq!(ends(&frames(&said(&s.app, "Go").await)), ("max_rounds", "max_turns"), "{on_limit}");
        assert_eq!(s.model.requests().len(), 2, "{on_limit}");
    }

    let (s, _backend) = forum_with(
        &bounds("fail"),
        &[],
        [turn().text("Well").call("c1", "list_categories", &json!({})).done(), looks("c2")],
    )
    .await;
    let ended = frames(&said(&s.app, "Go").await);
    assert_eq!(last(&ended)["meta"]["stop_reason"], "max_rounds");
    assert!(content(&ended).starts_with("Well\n\nThis needed more steps"), "{ended:#?}");
    assert_eq!((&error(&ended)["code"], s.model.requests().len()), (&json!("max_turns"), 2));
}

/// The product over a model that gives these answers.
async fn over(answers: impl IntoIterator<Item = Answer>) -> Scripted {
    Scripted::with(&[("CHAT_MESSAGE__PROFILE", "workflow")], answers).await
}

#[tokio::test]
async fn a_model_that_fails_is_never_an_empty_success() {
    let refused =
        |status: u16| Answer::status(status, "application/json", r#"{"error": {"message": "sk-vendor words"}}"#);
    let rows = [
        (vec![refused(401)], "provider_unauthorized"),
        (vec![refused(400)], "provider_rejected"),
        ((0..6).map(|_| refused(429)).collect(), "provider_rate_limited"),
        ((0..6).map(|_| refused(500)).collect(), "provider_unavailable"),
        ((0..6).map(|_| Answer::ok("text/event-stream", "data: {no json}\n\n")).collect(), "provider_malformed"),
    ];
    for (answers, code) in rows {
        let s = over(answers).await;
        let text = said(&s.app, "Hi").await;
        assert!(!text.contains("sk-vendor"), "{text}");
        let ended = frames(&text);
        assert_eq!((&error(&ended)["code"], &last(&ended)["meta"]["stop_reason"]), (&json!(code), &json!("error")));
        assert_eq!(error(&ended)["error"], content(&ended), "{text}");
        let mut page = Page::default();
        page.read(&[text.as_bytes()]);
        assert_eq!((page.messages[0].content.as_str(), page.bubble), (content(&ended), None));
    }

    // What was said until then stands.
    let s = over([turn().text("Half a").breaks().answer()]).await;
    let ended = frames(&said(&s.app, "Hi").await);
    assert!(content(&ended).starts_with("Half a\n\n"), "{ended:#?}");
    assert_eq!(last(&ended)["meta"]["stop_reason"], "error");
}

#[tokio::test]
async fn an_answer_without_words_says_so_and_a_call_that_waits_offers_its_decisions() {
    let (s, _backend) = forum((0..6).map(|_| turn().done())).await;
    let ended = frames(&said(&s.app, "Hi").await);
    assert!(content(&ended).contains("empty answer"), "{ended:#?}");

    let (s, backend) = forum([calls("c1", "erase", &json!({"id": "t1"})), says("Gone.")]).await;
    let ended = frames(&said(&s.app, "Erase it").await);
    assert_eq!(
        (content(&ended), &last(&ended)["meta"]["stop_reason"]),
        ("erase waits until you approve it.", &json!("awaiting_approval"))
    );
    let actions = &last(&ended)["message"]["actions"];
    let kinds: Vec<&str> = actions.as_array().unwrap().iter().map(|action| action["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["approve_call", "reject_call"]);
    assert_eq!(actions[0]["label"], "Approve erase");
    assert!(backend.requests().is_empty());
    // What asks for a role is offered to whoever has it.
    let refund = || calls("c1", "refund", &json!({"id": "t1"}));
    let (roles, _backend) = forum([refund(), refund()]).await;
    for (held, offered) in [(&["owner"][..], 2), (&["member"], 0)] {
        let token = roles.app.token_of("ann", Some("acme"), held);
        let response = post_as(&roles.app, &token, &json!({"message": "Refund it"})).await;
        let ended = frames(&response.text().await.unwrap());
        assert_eq!(last(&ended)["message"]["actions"].as_array().unwrap().len(), offered);
        let waits = if offered > 0 { "until you approve it" } else { "somebody with the role owner approves it" };
        assert!(content(&ended).contains(waits), "{ended:#?}");
    }
    let (url, digest) = (actions[0]["data"]["url"].as_str().unwrap(), &actions[0]["data"]["digest"]);
    let decision = json!({"decision": "approve", "digest": digest});
    let decided = s.app.http.post(s.app.url(url)).bearer_auth(&s.app.token).json(&decision).send().await.unwrap();
    assert_eq!(decided.status(), 200);
    decided.text().await.unwrap();
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_stops_the_model_and_what_was_said_is_kept() {
    let s = over([turn().text("Half a thought").hangs().answer(), says("Yes.").answer()]).await;
    let mut response = post(&s.app, &json!({"message": "Think", "conversation_id": "c"})).await;
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("Half a thought") {
        seen.extend_from_slice(&response.chunk().await.unwrap().unwrap());
    }
    drop(response);
    tokio::time::timeout(Duration::from_secs(2), s.model.clients_gone(1)).await.unwrap();
    let body = json!({"message": "Go on", "conversation_id": "c"});
    post(&s.app, &body).await.text().await.unwrap();
    assert!(Value::from(s.last_asked()).to_string().contains("Half a thought"));
    assert_eq!(s.model.requests().len(), 2);
}

#[tokio::test]
async fn a_client_that_leaves_while_a_call_runs_stops_it_and_every_further_round() {
    let hangs = |_: &Request| Some(Answer::ok("application/json", "[").ending(End::Hang));
    let (s, backend) = forum_over(hangs, [looks("c1"), says("Never.")]).await;
    let mut response = post(&s.app, &json!({"message": "Look"})).await;
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("tool_start") {
        seen.extend_from_slice(&response.chunk().await.unwrap().unwrap());
    }
    while backend.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(response);
    tokio::time::timeout(Duration::from_secs(10), backend.clients_gone(1)).await.unwrap();
    assert_eq!(s.model.requests().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_broken_off_has_its_end() {
    let hangs = |_: &Request| Some(Answer::ok("application/json", "[").ending(End::Hang));
    let (s, _backend) = forum_over(hangs, [looks("c1")]).await;
    let response = post(&s.app, &json!({"message": "Look", "conversation_id": "c"})).await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let cancels = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let url = s.app.url(&format!("/v1/agent/runs/{run}/cancel"));
        assert!(s.app.http.post(url).bearer_auth(&s.app.token).send().await.unwrap().status().is_success());
    };
    let (text, ()) = tokio::join!(response.text(), cancels);
    let ended = frames(&text.unwrap());
    let expected = ["start", "tool_calls", "tool_start", "tool_result", "chunk", "complete"];
    assert_eq!(kinds(&ended), expected);
    assert_eq!((&ended[3]["is_error"], &last(&ended)["meta"]["stop_reason"]), (&json!(true), &json!("cancelled")));
}

#[tokio::test]
async fn a_server_that_stops_ends_the_stream_as_any_other() {
    let model = Upstream::script([turn().text("Half").hangs().answer()]).await;
    let url = format!("{}/v1", model.url());
    let settings = [
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", url.as_str()),
        ("CHAT_MESSAGE__PROFILE", "workflow"),
        ("SERVER__DRAIN_S", "0"),
    ];
    let app = crate::support::app::TestApp::start(&settings).await;
    let mut response = post(&app, &json!({"message": "Think"})).await;
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("Half") {
        seen.extend_from_slice(&response.chunk().await.unwrap().unwrap());
    }
    let (_data, rest) = tokio::join!(app.stop(), response.bytes());
    seen.extend_from_slice(&rest.unwrap());
    let ended = frames(std::str::from_utf8(&seen).unwrap());
    assert_eq!(last(&ended)["meta"]["stop_reason"], "interrupted");
    assert_eq!(error(&ended)["retryable"], true);
}
