//! Whole answers: without `stream`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{ask, playing, post, refused, usage, with};
use crate::support::model::{Scripted, says, turn};
use crate::support::upstream::Answer;

async fn whole(response: reqwest::Response) -> Value {
    let status = response.status();
    let id = format!("chatcmpl-{}", response.headers()["x-run-id"].to_str().unwrap());
    let mut body: Value = response.json().await.unwrap();
    assert_eq!(status, 200, "{body}");
    let fields = body.as_object_mut().unwrap();
    assert_eq!(fields.remove("id"), Some(json!(id)));
    assert!(fields.remove("created").unwrap().as_u64().unwrap() > 1_700_000_000);
    body
}

fn completion(model: &str, message: Value, reason: &str, turns: u64) -> Value {
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reason});
    json!({"object": "chat.completion", "model": model, "choices": [choice], "usage": usage(turns)})
}

#[tokio::test]
async fn the_answer_of_all_turns_is_one_document() {
    let first = turn().text("Let me look.").call("t1", "discover_trigger_types", &json!({})).done();
    let s = playing([first, says("There are three.")]).await;
    let response = post(&s, &[], &ask("How many?")).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let message = json!({"role": "assistant", "content": "Let me look.\n\nThere are three.", "refusal": null});
    assert_eq!(whole(response).await, completion("workflow", message, "stop", 2));
}

#[tokio::test]
async fn an_answer_that_is_cut_off_says_so() {
    let s = playing([turn().text("Half").finish("length")]).await;
    let message = json!({"role": "assistant", "content": "Half", "refusal": null});
    assert_eq!(whole(post(&s, &[], &ask("Hi")).await).await, completion("workflow", message, "length", 1));
}

#[tokio::test]
async fn a_run_that_fails_is_an_error_that_is_not_to_be_sent_again() {
    let rows = [
        (turn().text("Half").breaks().answer(), 502, "provider_truncated", "server_error"),
        (Answer::status(401, "application/json", "{}"), 502, "provider_unauthorized", "server_error"),
        (Answer::status(429, "application/json", "{}"), 429, "provider_rate_limited", "rate_limit_error"),
    ];
    for (answer, status, code, kind) in rows {
        let s = with(&[], &[("LLM__RETRY__ATTEMPTS", "1")], [answer]).await;
        let response = post(&s, &[], &ask("Hi")).await;
        assert_eq!(response.headers()["x-should-retry"], "false", "{code}");
        assert!(response.headers().contains_key("x-run-id"), "{code}");
        let (found, error) = refused(response).await;
        assert_eq!((found, &error["code"], &error["type"]), (status, &json!(code), &json!(kind)));
    }
}

#[tokio::test]
async fn a_long_silence_is_filled_and_the_answer_still_comes() {
    let gate = Arc::new(Notify::new());
    let rows =
        [(says("B").bytes(), false), (turn().text("B").finish("nonsense").bytes(), false), (String::new(), true)];
    for (rest, fails) in rows {
        let answer = turn().text("A").answer().gated(&gate, rest);
        let s = with(&[], &[("SERVER__KEEP_ALIVE_S", "1")], [answer]).await;
        let mut response = post(&s, &[], &ask("Hi")).await;
        assert_eq!(response.status(), 200);
        let filled = crate::support::frames::read_until(&mut response, "\n\n").await;
        gate.notify_one();
        let body: Value = serde_json::from_str(&(filled + &response.text().await.unwrap())).unwrap();
        match fails {
            false => assert_eq!(body["choices"][0]["message"]["content"], "AB", "{body}"),
            true => {
                assert_eq!(body["error"]["code"], "provider_truncated", "{body}");
                assert!(body["choices"].is_null(), "half an answer must not pass for a whole one");
            }
        }
    }
}

/// Asks, and goes away once the model has been asked.
async fn asks_and_leaves(s: &Scripted, headers: &[(&str, &str)], body: &Value) {
    let asked = async {
        while s.model.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        response = post(s, headers, body) => panic!("nothing is sent before the outcome: {response:?}"),
        () = asked => {}
    }
}

#[tokio::test]
async fn a_client_that_does_not_wait_ends_its_run() {
    let s = playing([turn().text("Well").hangs()]).await;
    asks_and_leaves(&s, &[], &ask("Hi")).await;
    s.model.clients_gone(1).await;
}

#[tokio::test]
async fn a_request_with_a_key_is_answered_though_its_first_connection_was_lost() {
    let gate = Arc::new(Notify::new());
    let s = with(&[], &[], [turn().text("A").answer().gated(&gate, says("B").bytes())]).await;
    let key = [("idempotency-key", "k")];
    asks_and_leaves(&s, &key, &ask("Hi")).await;
    gate.notify_one();
    let answer = whole(post(&s, &key, &ask("Hi")).await).await;
    assert_eq!((&answer["choices"][0]["message"]["content"], s.model.requests().len()), (&json!("AB"), 1));
}

#[tokio::test]
async fn the_same_key_gets_the_same_answer_and_begins_no_second_run() {
    let s = playing([says("Once.")]).await;
    let key = [("idempotency-key", "k1"), ("x-stainless-retry-count", "0")];
    let first = whole(post(&s, &key, &ask("Hi")).await).await;
    let again = [("idempotency-key", "k1"), ("x-stainless-retry-count", "1")];
    assert_eq!(whole(post(&s, &again, &ask("Hi")).await).await, first);
    let (status, error) = refused(post(&s, &again, &ask("Other")).await).await;
    assert_eq!((status, &error["code"]), (422, &json!("idempotency_mismatch")));
    assert_eq!(s.model.requests().len(), 1);
}

#[tokio::test]
async fn a_request_chooses_what_the_profile_lets_it_and_nothing_else() {
    for (model, temperature, max_tokens) in [("open", json!(0.5), json!(500)), ("workflow", json!(null), json!(null))] {
        let s = playing([says("Yes.")]).await;
        let mut body = ask("Hi");
        body["model"] = json!(model);
        body["temperature"] = json!(0.5);
        body["max_tokens"] = json!(7);
        body["max_completion_tokens"] = json!(100_000);
        whole(post(&s, &[], &body).await).await;
        let asked = s.model.requests()[0].json();
        assert_eq!(asked["temperature"], temperature, "{model}");
        let tokens = asked["max_tokens"].as_u64().or(asked["max_completion_tokens"].as_u64());
        if max_tokens.is_number() {
            assert_eq!(json!(tokens), max_tokens, "at most what the profile has");
        } else {
            assert_ne!(tokens, Some(7));
        }
    }
}
