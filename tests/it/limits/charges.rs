//! What is charged though no vendor has said in the end what it was: answers that break off, however they do, and summaries.

use std::time::Duration;

use serde_json::{Value, json};

use super::budgets::usage;
use super::{header, message, refusal, token};
use crate::support::app::TestApp;
use crate::support::frames::read_until;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::upstream::{Answer, End, Upstream};

const ANN: &str = "a/ann";

/// What was used of each kind: model calls, input, output.
async fn used(app: &TestApp) -> (u64, u64, u64) {
    let (status, told) = usage(app, ANN, "").await;
    assert_eq!(status, 200, "{told}");
    let count = |name: &str| told["total"][name].as_u64().unwrap();
    (count("turns"), count("input_tokens"), count("output_tokens"))
}

/// Ann's run, begun and read until it says `text`; its id.
async fn begun(app: &TestApp, body: &Value, text: &str) -> String {
    let mut response = app.post_as(&token(app, ANN), body).await;
    let id = header(&response, "x-run-id").to_owned();
    read_until(&mut response, text).await;
    id
}

async fn cancel(app: &TestApp, run: &str) {
    let url = app.url(&format!("/v1/agent/runs/{run}/cancel"));
    let told: Value = app.http.post(url).bearer_auth(token(app, ANN)).send().await.unwrap().json().await.unwrap();
    assert_eq!(told["state"], "cancelled", "{told}");
}

/// A quarter of the bytes that the model was sent, roughly: what the wire adds to words is no part of the estimate.
fn is_prompt_of(s: &Scripted, tokens: u64) -> bool {
    let quarter = s.model.requests()[0].body.len() as u64 / 4;
    (quarter / 2..=quarter).contains(&tokens)
}

/// Claude's answer that has told of 1000 tokens of the prompt, and breaks off behind ten bytes.
fn claude() -> Answer {
    let frames = [
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1000, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half of it"}}),
    ];
    let body: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    Answer::ok("text/event-stream", body)
}

#[tokio::test]
async fn who_presses_stop_is_charged_with_what_came() {
    let s = Scripted::with(&[], [turn().text("Half of it").hangs().answer()]).await;
    let run = begun(&s.app, &message("hello"), "Half").await;
    cancel(&s.app, &run).await;
    let (turns, input, output) = used(&s.app).await;
    assert_eq!((turns, output), (1, 3), "ten bytes are three tokens");
    assert!(is_prompt_of(&s, input), "{input}");
}

#[tokio::test]
async fn who_presses_stop_before_the_first_token_is_charged_with_the_prompt() {
    let s = Scripted::with(&[], [turn().hangs().answer()]).await;
    let run = begun(&s.app, &message("hello"), "message_start").await;
    for _ in 0..400 {
        if !s.model.requests().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    cancel(&s.app, &run).await;
    let (turns, input, output) = used(&s.app).await;
    assert_eq!((turns, output), (1, 0));
    assert!(is_prompt_of(&s, input), "{input}");
}

#[tokio::test]
async fn an_answer_that_its_vendor_cuts_is_charged_as_far_as_it_came() {
    let s = Scripted::with(&[], [turn().text("Half of it").breaks().answer()]).await;
    begun(&s.app, &message("hello"), "provider_truncated").await;
    let (turns, input, output) = used(&s.app).await;
    assert_eq!((turns, output), (1, 3));
    assert!(is_prompt_of(&s, input), "{input}");
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_charged() {
    let wall = [("RUNS__WALL_S", "1")];
    let s = Scripted::with(&wall, [turn().text("Half of it").hangs().answer()]).await;
    begun(&s.app, &message("hello"), "run_timeout").await;
    let (turns, _, output) = used(&s.app).await;
    assert_eq!((turns, output), (1, 3));
}

#[tokio::test]
async fn what_a_vendor_says_in_the_beginning_is_believed() {
    let model = Upstream::script([claude().ending(End::Abort)]).await;
    let url = model.url();
    let own = [("LLM__PROVIDER", "claude"), ("LLM__CLAUDE__BASE_URL", &*url), ("LLM__CLAUDE__API_KEY", "sk-1")];
    let app = TestApp::start(&own).await;
    begun(&app, &message("hello"), "provider_truncated").await;
    assert_eq!(used(&app).await, (1, 1000, 3), "and the answer is more than the one token it began with");
}

#[tokio::test]
async fn a_vendor_that_refuses_charges_nothing() {
    let refused = || Answer::status(400, "application/json", "{\"error\": {\"message\": \"no\"}}");
    let s = Scripted::with(&[], [refused()]).await;
    begun(&s.app, &message("hello"), "provider_rejected").await;
    assert_eq!(used(&s.app).await, (0, 0, 0));
}

#[tokio::test]
async fn a_vendor_that_never_counts_is_estimated() {
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let answer = turn().text("All of it.").raw(&format!("data: {finish}\n\ndata: [DONE]\n\n")).answer();
    let s = Scripted::with(&[], [answer]).await;
    begun(&s.app, &message("hello"), "message_complete").await;
    let (turns, input, output) = used(&s.app).await;
    assert_eq!((turns, output), (1, 3));
    assert!(is_prompt_of(&s, input), "{input}");
}

#[tokio::test]
async fn stopping_again_and_again_uses_a_budget_up() {
    let s = Scripted::with(&[("LIMITS__TOKENS_PER_USER_DAY", "10")], [turn().text("Half").hangs().answer()]).await;
    let run = begun(&s.app, &message("hello"), "Half").await;
    cancel(&s.app, &run).await;
    let refused = s.app.post_as(&token(&s.app, ANN), &message("hello")).await;
    assert_eq!(refusal(refused).await.1, "quota_exceeded");
}

#[tokio::test]
async fn an_answer_is_charged_whose_conversation_is_deleted_meanwhile() {
    let s = Scripted::with(&[], [turn().text("Half of it").hangs().answer()]).await;
    let body = message("hello");
    begun(&s.app, &body, "Half").await;
    let conversation = body["conversation_id"].as_str().unwrap();
    let url = s.app.url(&format!("/v1/agent/conversations/{conversation}"));
    let deleted = s.app.http.delete(url).bearer_auth(token(&s.app, ANN)).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    s.model.clients_gone(1).await;
    // Nobody is told when a run that is gone has been charged.
    for _ in 0..200 {
        if used(&s.app).await.0 > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let (turns, _, output) = used(&s.app).await;
    assert_eq!((turns, output), (1, 3));
}

/// Runs of Ann's in one conversation that outgrow its history, the last of them ended; then the model is asked for a
/// summary, unless it must not be.
async fn outgrown(s: &Scripted) {
    let mut body = message("hello");
    body["conversation_id"] = json!("c");
    for _ in 0..3 {
        begun(&s.app, &body, "message_complete").await;
    }
}

/// Three runs of two turns each.
fn long_runs() -> Vec<Answer> {
    let long = "x".repeat(1000);
    let runs = (0..3).flat_map(|nth| [calls(&format!("t{nth}"), "discover_trigger_types", &json!({})), says(&long)]);
    runs.map(|turn| turn.answer()).collect()
}

#[tokio::test]
async fn a_summary_is_charged_to_the_user_whose_conversation_it_is() {
    let rows = [
        (says("Ann said hello.").answer(), 5, "what its vendor says"),
        (turn().text("Ann said").breaks().answer(), 2, "and an estimate where it broke off"),
    ];
    for (summary, tokens, reason) in rows {
        let s = Scripted::with(&[("LIMITS__HISTORY_BYTES", "4000")], long_runs().into_iter().chain([summary])).await;
        outgrown(&s).await;
        for _ in 0..400 {
            if used(&s.app).await.0 == 7 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        let (turns, _, output) = used(&s.app).await;
        assert_eq!((turns, output), (7, 6 * 5 + tokens), "{reason}");
        let (_, told) = usage(&s.app, ANN, "").await;
        assert_eq!(told["total"]["runs"], json!(3), "a summary is no run: {told}");
    }
}

#[tokio::test]
async fn nobody_is_asked_for_a_summary_once_a_budget_is_used_up() {
    let settings = [("LIMITS__HISTORY_BYTES", "4000"), ("LIMITS__TOKENS_PER_USER_DAY", "90")];
    let s = Scripted::with(&settings, long_runs()).await;
    outgrown(&s).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(s.model.requests().len(), 6, "one request too many would fail this test");
}
