//! Section 7: what the client sees when the model or a tool fails, and that it is told no more than it should know.

use std::time::Duration;

use serde_json::json;

use crate::support::app::LOW_STOCK;
use crate::support::frames;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::upstream::Answer;

/// What fails is not tried again.
const ONCE: [(&str, &str); 1] = [("LLM__RETRY__ATTEMPTS", "1")];

#[tokio::test]
async fn a_model_that_refuses_is_an_error_that_helps_and_leaks_nothing() {
    let body = r#"{"error":{"message":"secret-internal-detail sk-12345","type":"x","code":"y"}}"#;
    let rows = [
        (401, "provider_unauthorized", false),
        (403, "provider_unauthorized", false),
        (404, "model_not_found", false),
        (429, "provider_rate_limited", true),
        (400, "provider_rejected", false),
        (500, "provider_unavailable", true),
        (503, "provider_unavailable", true),
        (302, "provider_rejected", false),
    ];
    for (status, code, retryable) in rows {
        let s = Scripted::with(&ONCE, [Answer::status(status, "application/json", body)]).await;
        let response = s.app.post(&json!({"message": "hi", "context_type": "workflow"})).await;
        let request_id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        let text = response.text().await.unwrap();
        let frames = frames::parse(&text);
        assert_eq!(frames::names(&frames), ["message_start", "error"], "{status}");
        let error = frames::data(&frames, "error");
        assert_eq!((&error["code"], &error["retryable"]), (&json!(code), &json!(retryable)), "{status}");
        assert_eq!(error["request_id"], request_id.as_str());
        assert!(error["message"].as_str().unwrap().starts_with("LLM provider error: "));
        assert!(!text.contains("secret-internal") && !text.contains("127.0.0.1"), "{text}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_cannot_be_read_is_never_called_complete() {
    let rows = [
        (turn().text("Half an ans"), "provider_truncated", "ended without a finish"),
        (turn().text("Half an ans").breaks(), "provider_truncated", "the connection broke"),
        (turn().text("Half an ans").raw("data: {oops\n\n").done(), "provider_malformed", "no JSON"),
        (
            turn().text("Half an ans").raw("data: {\"error\":{\"message\":\"x\"}}\n\n"),
            "provider_unavailable",
            "an error",
        ),
        (turn().text("Half an ans").finish("length"), "max_tokens", "cut off at the limit"),
        (turn().text("Half an ans").finish("content_filter"), "content_filtered", "filtered"),
    ];
    for (script, code, reason) in rows {
        let s = Scripted::playing([script, says("Go on.")]).await;
        let frames = s.app.say("c", "Question").await;
        assert_eq!(frames::names(&frames), ["message_start", "content_chunk", "error"], "{reason}");
        assert_eq!(frames::data(&frames, "error")["code"], code, "{reason}");
        s.app.say("c", "And then?").await;
        let asked = s.last_asked();
        assert_eq!(asked[asked.len() - 2]["content"], "Half an ans", "what was said is kept: {reason}");
    }
}

#[tokio::test]
async fn a_call_that_never_became_complete_does_not_run() {
    let s = Scripted::playing([turn().call("t1", "discover_trigger_types", &json!({})).breaks(), says("Again.")]).await;
    let frames = s.app.say("c", "Question").await;
    assert_eq!(frames::names(&frames), ["message_start", "tool_call_start", "error"]);
    s.app.say("c", "Once more").await;
    assert!(s.last_asked().iter().all(|message| message.get("tool_calls").is_none()));
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more() {
    let s = Scripted::playing([turn().done(), says("Here I am.")]).await;
    let frames = s.app.say("c", "Question").await;
    assert_eq!(frames::names(&frames), ["message_start", "content_chunk", "message_complete"]);
    let asked = s.asked();
    assert_eq!(asked[0], asked[1], "nothing has been added to the conversation");
}

#[tokio::test]
async fn a_second_empty_answer_is_an_error() {
    let s = Scripted::playing([turn().done(), turn().text(" \n").done()]).await;
    let frames = s.app.say("c", "Question").await;
    assert_eq!(frames::names(&frames), ["message_start", "content_chunk", "error"]);
    assert_eq!(frames::data(&frames, "error")["code"], "empty_answer");
}

#[tokio::test]
async fn a_model_that_falls_silent_is_given_up() {
    let s = Scripted::with(&[("LLM__IDLE_TIMEOUT_S", "1")], [turn().text("Well").hangs().answer()]).await;
    let frames = s.app.say("c", "Question").await;
    assert_eq!(frames::names(&frames), ["message_start", "content_chunk", "error"]);
    assert_eq!(frames::data(&frames, "error")["code"], "provider_timeout");
    s.model.clients_gone(1).await;
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_ended() {
    let s = Scripted::with(&[("RUNS__WALL_S", "1")], [turn().text("Well").hangs().answer()]).await;
    let frames = s.app.say("c", "Question").await;
    assert_eq!(frames::data(&frames, "error")["code"], "run_timeout");
    s.model.clients_gone(1).await;
}

#[tokio::test]
async fn a_model_that_is_not_there_is_an_error() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let base_url = format!("http://{nobody}/v1");
    let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", base_url.as_str())];
    let app = crate::support::app::TestApp::start(&settings).await;
    let frames = app.say("c", "Question").await;
    assert_eq!(frames::names(&frames), ["message_start", "error"]);
    assert_eq!(frames::data(&frames, "error")["code"], "provider_unavailable");
}

#[tokio::test]
async fn a_failed_tool_is_data_for_the_model_and_the_run_goes_on() {
    let s = Scripted::playing([
        calls("t1", "get_alert_detail", &json!({"alert_id": "00000000-0000-4000-8000-000000000000"})),
        says("There is no such alert."),
    ])
    .await;
    let frames = s.app.say("c", "Show alert").await;
    assert_eq!(frames::data(&frames, "tool_call_result")["is_error"], true);
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"));
    assert!(s.result_of("t1").to_string().contains("HTTP 40"), "{}", s.result_of("t1"));
}

/// A backend that answers everything with `answer`.
async fn with_backend(answer: Answer, settings: &[(&str, &str)]) -> (Scripted, crate::support::upstream::Upstream) {
    let backend = crate::support::upstream::Upstream::choosing(move |_| Some(answer.clone())).await;
    let base_url = backend.url();
    let mut all = vec![("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &base_url)];
    all.extend(settings);
    let turns = [calls("t1", "discover_trigger_types", &json!({})), says("Hm.")];
    (Scripted::with(&all, turns.map(|turn| turn.answer())).await, backend)
}

#[tokio::test]
async fn whatever_a_backend_answers_is_at_worst_a_tool_error() {
    let endless = Answer::ok("application/json", "[").later(Duration::ZERO, "x".repeat(3 << 20));
    let rows = [
        (Answer::status(500, "application/json", r#"{"code":"internal","message":"boom"}"#), "HTTP 500", "a failure"),
        (Answer::status(302, "text/html", "").header("location", "http://127.0.0.1:1/evil"), "HTTP 302", "a redirect"),
        (Answer::ok("text/html", "<html>hello</html>"), "not JSON", "HTML"),
        (Answer::status(502, "text/html", "<html>proxy</html>"), "HTTP 502", "an HTML error"),
        (endless, "larger than", "over the cap"),
        (Answer::ok("application/json", "{\"a\":").ending(crate::support::upstream::End::Abort), "broke off", "cut"),
    ];
    for (answer, expected, reason) in rows {
        let (s, backend) = with_backend(answer, &[("LIMITS__BACKEND_ANSWER_BYTES", "1048576")]).await;
        let frames = s.app.say("c", "Which triggers?").await;
        assert_eq!(frames::data(&frames, "tool_call_result")["is_error"], true, "{reason}");
        let result = s.result_of("t1").to_string();
        assert!(result.contains(expected) && !result.contains("<html>"), "{reason}: {result}");
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{reason}");
        assert_eq!(backend.requests().len(), 1, "{reason}");
    }
}

#[tokio::test]
async fn a_backend_that_does_not_answer_is_a_tool_error_in_time() {
    let silent = Answer::ok("application/json", "").ending(crate::support::upstream::End::Hang);
    let (s, _backend) = with_backend(silent, &[("BACKEND__TIMEOUT_S", "1")]).await;
    let frames = s.app.say("c", "Which triggers?").await;
    assert_eq!(frames::data(&frames, "tool_call_result")["is_error"], true);
    assert!(s.result_of("t1").to_string().contains("in time"), "{}", s.result_of("t1"));
}

#[tokio::test]
async fn a_backend_that_repeats_the_token_does_not_get_it_to_the_model() {
    for status in [200, 400, 401] {
        let echo = crate::support::upstream::Upstream::choosing(move |request| {
            let seen = json!({"seen": format!("{}{}", "x".repeat(1900), request.header("authorization").unwrap())});
            Some(Answer::status(status, "application/json", seen.to_string()))
        })
        .await;
        let base_url = echo.url();
        let turns = [calls("t1", "get_alert_detail", &json!({"alert_id": LOW_STOCK})), says("Hm.")];
        let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &*base_url)];
        let s = Scripted::with(&settings, turns.map(|turn| turn.answer())).await;
        s.app.say("c", "Show the alert").await;
        let read = s.result_of("t1").to_string();
        let (_, signature) = s.app.token.rsplit_once('.').unwrap();
        assert!(read.contains("Bearer [redacted]"), "{status}: {read}");
        assert!(!read.contains(signature) && !read.contains(&s.app.token[..40]), "{status}: {read}");
    }
}
