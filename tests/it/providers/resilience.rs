//! A bad day: what is tried again and what is not, who takes over, who is left alone. Through the whole product; a request
//! that nobody expects fails the test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::upstream::{Answer, End, Request, Upstream};
use crate::support::wait::eventually;

/// Tries again at once.
const AT_ONCE: (&str, &str) = ("LLM__RETRY__BASE_MS", "0");

fn refusal(status: u16) -> Answer {
    Answer::status(status, "application/json", r#"{"error":{"message":"no"}}"#)
}

/// How often a model is asked that fails as `answer` says, and the code that the client sees.
async fn asked(answer: Answer, settings: &[(&str, &str)]) -> (usize, Value) {
    let answers = vec![answer; 5];
    let settings: Vec<_> = [AT_ONCE].into_iter().chain(settings.iter().copied()).collect();
    let s = Scripted::with(&settings, answers).await;
    let frames = s.app.say("c", "Question").await;
    assert_eq!(frames::names(&frames), ["message_start", "error"]);
    (s.model.requests().len(), frames::data(&frames, "error")["code"].clone())
}

#[tokio::test]
async fn a_status_that_may_pass_is_tried_again_and_no_other() {
    let rows = [
        (408, 3, "provider_unavailable"),
        (409, 3, "provider_unavailable"),
        (429, 3, "provider_rate_limited"),
        (500, 3, "provider_unavailable"),
        (502, 3, "provider_unavailable"),
        (503, 3, "provider_unavailable"),
        (504, 3, "provider_unavailable"),
        (529, 3, "provider_unavailable"),
        (400, 1, "provider_rejected"),
        (401, 1, "provider_unauthorized"),
        (402, 1, "provider_quota_exceeded"),
        (403, 1, "provider_unauthorized"),
        (404, 1, "model_not_found"),
        (413, 1, "context_too_long"),
        (422, 1, "provider_rejected"),
    ];
    for (status, times, code) in rows {
        assert_eq!(asked(refusal(status), &[]).await, (times, json!(code)), "{status}");
    }
}

#[tokio::test]
async fn a_vendor_that_asks_for_too_much_patience_or_none_is_believed() {
    let wait = |header: &'static str, value: &'static str| refusal(429).header(header, value);
    let rows = [
        (wait("retry-after", "21"), 1, "longer than a user waits"),
        (wait("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT"), 1, "a date far away"),
        (wait("retry-after-ms", "20001"), 1, "the same in milliseconds"),
        (wait("retry-after", "0"), 3, "at once"),
        (wait("retry-after-ms", "1"), 3, "in a moment"),
        (wait("retry-after", "Fri, 20 Nov 2020 23:00:30 GMT"), 3, "a date that is past"),
        (wait("x-should-retry", "false"), 1, "said in so many words"),
        (refusal(400).header("x-should-retry", "true"), 3, "the other way round"),
    ];
    for (answer, times, why) in rows {
        assert_eq!(asked(answer, &[]).await.0, times, "{why}");
    }
}

#[tokio::test]
async fn a_spent_quota_is_not_asked_about_again() {
    let spent = r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    let answer = Answer::status(429, "application/json", spent);
    assert_eq!(asked(answer, &[]).await, (1, json!("provider_quota_exceeded")));
}

#[tokio::test]
async fn nothing_waits_longer_than_the_run_may_last() {
    let answer = refusal(429).header("retry-after", "5");
    assert_eq!(asked(answer, &[("RUNS__WALL_S", "4")]).await, (1, json!("provider_rate_limited")));
}

#[tokio::test]
async fn what_fails_before_its_first_token_is_tried_again_with_the_same_question() {
    let sse = |body: &str| Answer::ok("text/event-stream", body);
    let failures = [
        refusal(503),
        sse(""),
        sse("data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n"),
        sse("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"),
        sse(": ping\n\n").ending(End::Abort),
        Answer::ok("text/html", "<html>a gateway's page</html>"),
        turn().call("t1", "find", &json!({})).answer().ending(End::Abort),
    ];
    for (nth, failure) in failures.into_iter().enumerate() {
        let is_shown = nth == 6;
        let answers = [failure, says("Here.").answer()];
        let answers = answers.into_iter().take(if is_shown { 1 } else { 2 });
        let s = Scripted::with(&[AT_ONCE], answers).await;
        let frames = s.app.say("c", "Question").await;
        if is_shown {
            // A call's name is a token: its client has seen it.
            assert_eq!(frames::names(&frames), ["message_start", "tool_call_start", "error"]);
            continue;
        }
        assert_eq!(frames::names(&frames), ["message_start", "content_chunk", "message_complete"], "{nth}");
        let requests = s.model.requests();
        assert_eq!(requests[0].body, requests[1].body, "{nth}");
    }
}

#[tokio::test]
async fn what_fails_after_its_first_token_is_never_tried_again() {
    let s = Scripted::with(&[AT_ONCE], [turn().text("Half an ans").breaks().answer()]).await;
    let frames = s.app.say("c", "Question").await;
    assert_eq!(frames::names(&frames), ["message_start", "content_chunk", "error"]);
    assert_eq!(frames::data(&frames, "error")["code"], "provider_truncated");
}

#[tokio::test]
async fn a_model_that_only_pings_is_given_up() {
    let mut answers = Vec::new();
    for begun in ["", "data: {\"choices\":[{\"delta\":{\"content\":\"Well\"}}]}\n\n"] {
        let mut answer = Answer::ok("text/event-stream", begun);
        for _ in 0..40 {
            answer = answer.later(Duration::from_millis(100), ": still here\n\n");
        }
        answers.push(answer);
    }
    let settings = [("LLM__PROGRESS_TIMEOUT_S", "1"), ("LLM__FIRST_BYTE_TIMEOUT_S", "1"), ("LLM__IDLE_TIMEOUT_S", "1")];
    let s = Scripted::with(&settings, answers).await;
    for events in [&["message_start", "error"][..], &["message_start", "content_chunk", "error"]] {
        let frames = s.app.say("c", "Question").await;
        assert_eq!(frames::names(&frames), events);
        assert_eq!(frames::data(&frames, "error")["code"], "provider_timeout");
    }
    s.model.clients_gone(2).await;
}

#[tokio::test]
async fn a_client_that_leaves_while_the_server_waits_is_not_asked_for() {
    let settings = [("LLM__RETRY__BASE_MS", "0"), ("RUNS__WALL_S", "0"), ("LLM__RETRY__MAX_WAIT_S", "86400")];
    let s = Scripted::with(&settings, [refusal(429).header("retry-after", "80000")]).await;
    let response = s.app.post(&json!({"message": "hi", "context_type": "workflow"})).await;
    eventually("the model is asked", async || (!s.model.requests().is_empty()).then_some(())).await;
    drop(response);
    // Stopping waits for every run; this one would last a day.
    s.app.stop().await;
    assert_eq!(s.model.requests().len(), 1);
}

/// Two models, the second one standing in for the first.
struct Two {
    app: TestApp,
    claude: Upstream,
    openai: Upstream,
}

impl Two {
    async fn playing(claude: Vec<Answer>, openai: Vec<Answer>, settings: &[(&str, &str)]) -> Self {
        let (claude, openai) = (Upstream::script(claude).await, Upstream::script(openai).await);
        let (claude_url, openai_url) = (claude.url(), format!("{}/v1", openai.url()));
        let mut all = vec![
            ("LLM__PROVIDER", "claude"),
            ("LLM__FALLBACKS", "openai:gpt-small"),
            ("LLM__CLAUDE__BASE_URL", &*claude_url),
            ("LLM__CLAUDE__API_KEY", "sk-1"),
            ("LLM__OPENAI__BASE_URL", &*openai_url),
            AT_ONCE,
            ("LLM__RETRY__ATTEMPTS", "2"),
        ];
        all.extend(settings);
        Self { app: TestApp::start(&all).await, claude, openai }
    }
}

/// An answer on Claude's wire: content blocks as they start, each with one delta, and the reason it stopped.
fn claude_answer(blocks: &[(Value, Value)], stop_reason: &str) -> Answer {
    let mut events = vec![json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}})];
    for (index, (start, delta)) in blocks.iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in delta.as_array().unwrap() {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 3}}));
    events.push(json!({"type": "message_stop"}));
    let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    Answer::ok("text/event-stream", events.iter().map(frame).collect::<String>())
}

fn thinking(text: &str, signature: &str) -> (Value, Value) {
    let deltas = json!([
        {"type": "thinking_delta", "thinking": text},
        {"type": "signature_delta", "signature": signature},
    ]);
    (json!({"type": "thinking", "thinking": ""}), deltas)
}

fn tool_use(id: &str, name: &str) -> (Value, Value) {
    let deltas = json!([{"type": "input_json_delta", "partial_json": "{}"}]);
    (json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas)
}

fn said(text: &str) -> (Value, Value) {
    (json!({"type": "text", "text": ""}), json!([{"type": "text_delta", "text": text}]))
}

fn messages(request: &Request) -> Vec<Value> {
    request.json()["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_next_model_takes_over_in_the_middle_of_a_run() {
    let tool = "discover_trigger_types";
    let first = [thinking("Look.", "SIG-1=="), tool_use("toolu_1", tool)];
    let two = Two::playing(
        vec![
            claude_answer(&first, "tool_use"),
            refusal(529),
            refusal(529),
            claude_answer(&[said("Back again.")], "end_turn"),
        ],
        vec![calls("call_2", tool, &json!({})).answer()],
        &[("LLM__BREAKER__FAILURES", "0")],
    );
    let two = two.await;
    // The third turn is Claude's again to begin with.
    let frames = two.app.say("c", "Which triggers?").await;
    let starts = frames::names(&frames).iter().filter(|name| **name == "message_start").count();
    assert_eq!((starts, frames::names(&frames).last()), (3, Some(&"message_complete")));
    assert_eq!(frames::text(&frames), "Back again.");
    assert!(!format!("{frames:?}").contains("SIG-1"));

    let taken_over = &two.openai.requests()[0];
    assert_eq!(taken_over.json()["model"], "gpt-small");
    let body = String::from_utf8(taken_over.body.clone()).unwrap();
    assert!(!body.contains("SIG-1") && !body.contains("Look."), "another vendor's reasoning: {body}");
    let roles: Vec<Value> = messages(taken_over).iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(messages(taken_over)[2]["tool_calls"][0]["id"], "toolu_1");

    let back = messages(&two.claude.requests()[3]);
    let blocks: Vec<&Value> = back.iter().flat_map(|message| message["content"].as_array().unwrap()).collect();
    let kinds: Vec<&str> = blocks.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "thinking", "tool_use", "tool_result", "tool_use", "tool_result"]);
    assert_eq!(blocks[1]["signature"], "SIG-1==", "its own reasoning comes back to it");
}

#[tokio::test]
async fn any_failure_before_the_first_token_is_a_reason_to_take_over() {
    for failure in [refusal(401), refusal(404), refusal(400), refusal(413), Answer::ok("text/event-stream", "")] {
        let two = Two::playing(vec![failure; 2], vec![says("I am here.").answer()], &[]);
        let frames = two.await.app.say("c", "Question").await;
        assert_eq!(frames::text(&frames), "I am here.");
    }
}

#[tokio::test]
async fn a_refusal_on_safety_grounds_is_not_taken_elsewhere() {
    let filtered = r#"{"error":{"code":"content_filter","message":"no"}}"#;
    let two = Two::playing(vec![Answer::status(400, "application/json", filtered)], vec![], &[]).await;
    let frames = two.app.say("c", "Question").await;
    assert_eq!(frames::data(&frames, "error")["code"], "content_filtered");
}

#[tokio::test]
async fn when_all_fail_a_failure_that_may_pass_is_told_if_there_is_one() {
    let rows = [
        (529, 401, "provider_unavailable", true, "the first may come back"),
        (401, 529, "provider_unavailable", true, "the second may come back"),
        (401, 404, "model_not_found", false, "neither: the last word"),
    ];
    for (first, second, code, retryable, why) in rows {
        let two = Two::playing(vec![refusal(first); 2], vec![refusal(second); 2], &[]).await;
        let frames = two.app.say("c", "Question").await;
        assert_eq!(frames::names(&frames), ["message_start", "error"], "{why}");
        let error = frames::data(&frames, "error");
        assert_eq!((&error["code"], &error["retryable"]), (&json!(code), &json!(retryable)), "{why}");
    }
}

#[tokio::test]
async fn once_a_token_is_there_nobody_takes_over() {
    let delta = json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Half"}});
    let begun = Answer::ok("text/event-stream", format!("data: {delta}\n\n"));
    let two = Two::playing(vec![begun], vec![], &[]).await;
    let frames = two.app.say("c", "Question").await;
    assert_eq!(frames::names(&frames), ["message_start", "content_chunk", "error"]);
    assert_eq!(frames::data(&frames, "error")["code"], "provider_truncated");
}

#[tokio::test]
async fn a_model_that_keeps_failing_is_left_alone_for_a_while() {
    let settings = [("LLM__BREAKER__FAILURES", "4"), ("LLM__BREAKER__OPEN_S", "3600")];
    let answers = (0..4).map(|_| says("I am here.").answer()).collect();
    let two = Two::playing(vec![refusal(500); 4], answers, &settings).await;
    for _ in 0..4 {
        let frames = two.app.say("c", "Question").await;
        assert_eq!(frames::text(&frames), "I am here.");
    }
    assert_eq!(two.claude.requests().len(), 4, "two turns of two tries, then none");
}

#[tokio::test]
async fn a_model_that_is_left_alone_is_asked_again_after_its_time() {
    let settings = [("LLM__BREAKER__FAILURES", "1"), ("LLM__BREAKER__OPEN_S", "0"), ("LLM__RETRY__ATTEMPTS", "1")];
    let claude = vec![refusal(500), claude_answer(&[said("Back again.")], "end_turn")];
    let two = Two::playing(claude, vec![says("I am here.").answer()], &settings).await;
    assert_eq!(frames::text(&two.app.say("c", "Question").await), "I am here.");
    assert_eq!(frames::text(&two.app.say("c", "Question").await), "Back again.");
}

#[tokio::test]
async fn without_anybody_else_the_user_is_told_at_once() {
    let settings = [
        ("LLM__BREAKER__FAILURES", "1"),
        ("LLM__BREAKER__OPEN_S", "3600"),
        ("LLM__BREAKER__LAST_OPEN_S", "3600"),
        ("LLM__RETRY__ATTEMPTS", "1"),
    ];
    for (status, code) in [(500, "provider_unavailable"), (401, "provider_unauthorized"), (404, "model_not_found")] {
        let s = Scripted::with(&settings, [refusal(status)]).await;
        for _ in 0..2 {
            let frames = s.app.say("c", "Question").await;
            assert_eq!(frames::data(&frames, "error")["code"], code, "the same reason without asking");
        }
    }
}

#[tokio::test]
async fn an_only_model_is_asked_again_though_it_would_be_left_alone_beside_another() {
    let settings = [
        ("LLM__BREAKER__FAILURES", "1"),
        ("LLM__BREAKER__OPEN_S", "3600"),
        ("LLM__BREAKER__LAST_OPEN_S", "0"),
        ("LLM__RETRY__ATTEMPTS", "1"),
    ];
    let s = Scripted::with(&settings, [refusal(500), refusal(500), says("Back again.").answer()]).await;
    for _ in 0..2 {
        assert_eq!(frames::data(&s.app.say("c", "Question").await, "error")["code"], "provider_unavailable");
    }
    assert_eq!(frames::text(&s.app.say("c", "Question").await), "Back again.");
    assert_eq!(s.model.requests().len(), 3, "each was asked");
}

#[tokio::test]
async fn when_everything_fails_repetitions_do_not_make_it_worse() {
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    let model = Upstream::choosing(move |_| {
        *counted.lock().unwrap() += 1;
        Some(refusal(503))
    })
    .await;
    let base_url = format!("{}/v1", model.url());
    let settings = [
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", &*base_url),
        ("LLM__BREAKER__FAILURES", "0"),
        ("LLM__RETRY__ATTEMPTS", "10"),
        ("LLM__RETRY__BUDGET_PERCENT", "10"),
        AT_ONCE,
    ];
    let app = TestApp::start(&settings).await;
    for nth in 0..40 {
        app.say(&format!("c{nth}"), "Question").await;
    }
    // 40 questions; a tenth of them and one a second may be repeated. Ten seconds of that are more than this takes.
    let asked = *asked.lock().unwrap();
    assert!((41..=40 + 4 + 20).contains(&asked), "{asked} calls");
}

#[tokio::test]
async fn turns_share_their_connection() {
    let s = Scripted::playing((0..3).map(|_| -> Script { says("Here.") })).await;
    for _ in 0..3 {
        s.app.say("c", "Question").await;
    }
    assert_eq!(s.model.connections(), 1);
}
