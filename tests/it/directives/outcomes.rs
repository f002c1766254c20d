//! What an attempt comes to, over a backend that fails in each of its ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{forum, names, post, until};
use crate::audit::{READABLE, record, told};
use crate::support::model::{calls, says};
use crate::support::upstream::{Answer, End, Request};

fn args() -> Value {
    json!({"category_id": "c1", "title": "Hello"})
}

/// A backend whose answers are these, one after the other; the last one stays.
fn answering(
    answers: impl IntoIterator<Item = fn() -> Answer>,
) -> impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static {
    let (answers, next): (Vec<_>, _) = (answers.into_iter().collect(), Arc::new(AtomicUsize::new(0)));
    move |_| {
        let number = next.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
        Some(answers[number]())
    }
}

fn good() -> Answer {
    Answer::ok("application/json", r#"{"id": "t7", "title": "Hello"}"#)
}

fn busy() -> Answer {
    Answer::status(503, "application/json", r#"{"error": "later"}"#)
}

fn too_many() -> Answer {
    Answer::status(429, "application/json", "{}").header("retry-after", "1")
}

fn wrong() -> Answer {
    Answer::status(422, "application/json", r#"{"error": "the title is taken"}"#)
}

fn too_many_until() -> Answer {
    let answer = Answer::status(429, "application/json", "{}").header("date", "Fri, 20 Nov 2026 23:00:00 GMT");
    answer.header("retry-after", "Fri, 20 Nov 2026 23:00:01 GMT")
}

fn failing() -> Answer {
    Answer::status(500, "text/plain", "oops")
}

fn gateway() -> Answer {
    Answer::status(502, "text/html", "<h1>Bad gateway</h1>")
}

fn late_gateway() -> Answer {
    Answer::status(504, "text/html", "<h1>Gateway timeout</h1>")
}

fn timed_out() -> Answer {
    Answer::status(408, "application/json", "{}")
}

fn moved() -> Answer {
    Answer::status(307, "text/plain", "").header("location", "http://127.0.0.1:1/")
}

fn empty() -> Answer {
    Answer::status(204, "text/plain", "")
}

fn page() -> Answer {
    Answer::ok("text/html", "<h1>Hello</h1>")
}

fn broken() -> Answer {
    Answer::ok("application/json", r#"{"id": "#).ending(End::Abort)
}

#[tokio::test]
async fn outcomes_are_those_of_the_table() {
    type Row = (&'static str, &'static [fn() -> Answer], &'static str, Value, usize, &'static str);
    let rows: [Row; 18] = [
        ("create", &[busy, busy, good], "succeeded", json!(null), 3, "tried again until it is there"),
        ("create", &[wrong], "failed", json!("backend_refused"), 1, "asking again does not help"),
        ("create", &[busy], "failed", json!("backend_unavailable"), 3, "no attempt is left, and none was in doubt"),
        ("create", &[failing, good], "succeeded", json!(null), 2, "the backend knows it by its key"),
        ("create", &[gateway, good], "succeeded", json!(null), 2, "the same after a gateway's word"),
        ("create", &[broken, busy, busy], "unknown", json!("outcome_unknown"), 3, "one attempt may have been done"),
        ("create", &[page, wrong], "unknown", json!("outcome_unknown"), 2, "a refusal proves nothing of the first"),
        ("lock", &[busy], "failed", json!("backend_unavailable"), 1, "no keys: once"),
        ("lock", &[failing], "failed", json!("backend_unavailable"), 1, "the same"),
        ("lock", &[gateway], "unknown", json!("outcome_unknown"), 1, "no keys: never sent again unseen"),
        ("lock", &[late_gateway], "unknown", json!("outcome_unknown"), 1, "nor after a later one's"),
        ("lock", &[timed_out], "unknown", json!("outcome_unknown"), 1, "nor when it says that it waited"),
        ("lock", &[moved], "failed", json!("backend_refused"), 1, "a redirect is not followed"),
        ("lock", &[empty], "succeeded", json!(null), 1, "nothing to read is an answer"),
        ("lock", &[page], "unknown", json!("outcome_unknown"), 1, "a good status with something else than JSON"),
        ("lock", &[broken], "unknown", json!("outcome_unknown"), 1, "an answer that broke off"),
        ("lock", &[wrong], "failed", json!("backend_refused"), 1, "a refusal"),
        ("lock", &[too_many], "failed", json!("backend_unavailable"), 1, "no attempt is left"),
    ];
    for (command, answers, status, code, requests, reason) in rows {
        let (s, backend) = forum(&[], [], answering(answers.iter().copied())).await;
        let ann = s.app.token_of("ann", Some("acme"), &["member"]);
        let payload = if command == "create" { args() } else { json!({"id": "t1"}) };
        let body = json!({"name": format!("forum.thread.{command}"), "payload": payload});
        let (_, made) = post(&s.app, &ann, "/directives", body).await;
        let id = &made["directive"]["id"];
        let directive = until(&s.app, &ann, id, status).await;
        assert_eq!(directive["error"]["code"], code, "{reason}: {directive}");
        assert_eq!(directive["attempt"], requests, "{reason}: {directive}");
        let keys: Vec<_> = backend.requests().iter().map(|r| r.header("idempotency-key").unwrap().to_owned()).collect();
        assert_eq!(keys, vec![id.as_str().unwrap(); requests], "{reason}: one key");
        let auditor = s.app.token_of("olga", Some("acme"), &["auditor"]);
        let told = names(&s.app, &auditor).await;
        let count = |name: &str| told.iter().filter(|told| *told == name).count();
        assert_eq!(count("directive.attempt_failed"), requests - 1, "{reason}: {told:?}");
        assert_eq!(count(&format!("directive.{status}")), 1, "{reason}: {told:?}");
        let facts = usize::from(command == "create" && status == "succeeded");
        assert_eq!(count("forum.thread.created"), facts, "{reason}: {told:?}");
    }
}

#[tokio::test]
async fn a_backend_that_says_when_is_heard() {
    for busy in [too_many as fn() -> Answer, too_many_until] {
        let (s, backend) = forum(&[], [], answering([busy, good])).await;
        let ann = s.app.token_of("ann", Some("acme"), &["member"]);
        let body = json!({"name": "forum.thread.create", "payload": args()});
        let (_, made) = post(&s.app, &ann, "/directives", body).await;
        let began = std::time::Instant::now();
        until(&s.app, &ann, &made["directive"]["id"], "succeeded").await;
        assert!(began.elapsed() > Duration::from_millis(700), "not before a second: {:?}", began.elapsed());
        assert_eq!(backend.requests().len(), 2);
    }
}

#[tokio::test]
async fn an_operator_has_a_failed_one_run_again() {
    let (s, backend) = forum(&[READABLE], [], answering([wrong as fn() -> Answer, good])).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let operator = s.app.token_of("olga", Some("acme"), &["operator"]);
    let (_, made) = post(&s.app, &ann, "/directives", json!({"name": "forum.thread.create", "payload": args()})).await;
    let id = &made["directive"]["id"];
    let failed = until(&s.app, &ann, id, "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("the title is taken"), "{failed}");
    let path = format!("/directives/{}/rerun", id.as_str().unwrap());
    let (status, refused) = post(&s.app, &ann, &path, json!({})).await;
    assert_eq!((status, &refused["code"]), (403, &json!("role_required")));
    let (status, again) = post(&s.app, &operator, &path, json!({})).await;
    assert_eq!((status, &again["directive"]["status"]), (200, &json!("requested")));
    let done = until(&s.app, &ann, id, "succeeded").await;
    assert_eq!((&done["attempt"], &done["error"]), (&json!(2), &json!(null)));
    let (status, refused) = post(&s.app, &operator, &path, json!({})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("not_rerunnable")));
    assert_eq!(backend.requests().len(), 2);

    // Who looked at it besides, and who had it done.
    let auditor = s.app.token_of("otto", Some("acme"), &["auditor"]);
    let one = format!("/v1/agent/directives/{}", id.as_str().unwrap());
    for (token, path) in [
        (&auditor, one.as_str()),
        (&auditor, "/v1/agent/directives?of=tenant"),
        (&auditor, "/v1/agent/signals?of=tenant"),
        (&auditor, "/v1/agent/timeline?of=tenant&correlation_id=x"),
        (&operator, "/v1/agent/deliveries"),
        (&ann, one.as_str()),
    ] {
        let response = s.app.http.get(s.app.url(path)).bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
    }
    let (status, _) = post(&s.app, &operator, "/signals/replay", json!({"recent": 10})).await;
    assert_eq!(status, 202);
    let lines = record(&s.app, Some("acme")).await;
    let lines = told(&lines, &["act", "actor", "user", "subject"]);
    let expected = [
        json!(["directive.rerun", "olga", "ann", id]),
        json!(["read", "otto", "ann", one]),
        json!(["read", "otto", "", "/v1/agent/directives?of=tenant"]),
        json!(["read", "otto", "", "/v1/agent/signals?of=tenant"]),
        json!(["read", "otto", "", "/v1/agent/timeline?of=tenant"]),
        json!(["read", "olga", "", "/v1/agent/deliveries"]),
        json!(["delivery.retried", "olga", "", "/v1/agent/signals/replay"]),
    ];
    let of_others: Vec<&Value> = lines.iter().filter(|line| line[1] != json!("ann")).collect();
    assert_eq!(of_others, expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn the_model_reads_what_became_of_it() {
    type Row = (&'static [fn() -> Answer], &'static str, &'static str, &'static str);
    let rows: [Row; 2] = [
        (&[wrong], "failed", "backend_refused", "the title is taken"),
        (&[page, wrong], "unknown", "outcome_unknown", "not known whether it was done"),
    ];
    for (answers, status, code, words) in rows {
        let turns = [calls("c1", "create_thread", &args()), says("So be it.")];
        let (s, _backend) = forum(&[], turns, answering(answers.iter().copied())).await;
        let ann = s.app.token_of("ann", Some("acme"), &["member"]);
        let response = s.app.post_as(&ann, &json!({"message": "Go", "context_type": "mine"})).await;
        let frames = crate::support::frames::parse(&response.text().await.unwrap());
        assert_eq!(crate::support::frames::data(&frames, "tool_call_result")["is_error"], true);
        let read = s.model.requests()[1].json()["messages"][3]["content"].as_str().unwrap().to_owned();
        let read: Value = serde_json::from_str(&read).unwrap();
        assert_eq!(
            (&read["ok"], &read["status"], &read["error"]["code"]),
            (&json!(false), &json!(status), &json!(code))
        );
        assert!(read["error"]["message"].as_str().unwrap().contains(words), "{read}");
    }
}

#[tokio::test]
async fn nothing_secret_is_in_the_store_or_told() {
    let data = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", data.path().join("kept.db").display());
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let settings = [
        ("STORE__URL", url.as_str()),
        ("SIGNALS__SUBSCRIBERS__LOG__URL", "http://127.0.0.1:1/hook"),
        ("SIGNALS__SUBSCRIBERS__LOG__EVENTS", "*"),
        ("SIGNALS__SUBSCRIBERS__LOG__SECRET", secret),
    ];
    let turns = [calls("c1", "rename_thread", &json!({"id": "t1", "title": "x"})), says("Done.")];
    let (s, _backend) = forum(&settings, turns, answering([good as fn() -> Answer])).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    s.app.post_as(&ann, &json!({"message": "Go", "context_type": "mine"})).await.text().await.unwrap();
    let (_, made) = post(&s.app, &ann, "/directives", json!({"name": "forum.thread.create", "payload": args()})).await;
    until(&s.app, &ann, &made["directive"]["id"], "succeeded").await;
    for file in std::fs::read_dir(data.path()).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            // That of users' files, of which there are none.
            continue;
        }
        let bytes = std::fs::read(path).unwrap();
        for secret in [ann.as_str(), super::SERVICE, secret, &secret[6..]] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
        }
    }
}
