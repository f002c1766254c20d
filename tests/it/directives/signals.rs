//! Facts that clients tell and look at.

use reqwest::Method;
use serde_json::{Value, json};

use super::{asked, forum, get, post};
use crate::support::upstream::{Answer, Request};

fn nothing(_: &Request) -> Option<Answer> {
    None
}

#[tokio::test]
async fn a_role_tells_facts_each_of_a_key_once() {
    let (s, _backend) = forum(&[], [], nothing).await;
    let (emitter, member) =
        (s.app.token_of("ed", Some("acme"), &["emitter"]), s.app.token_of("ann", Some("acme"), &["member"]));
    let fact = json!({
        "name": "shop.order.paid", "payload": {"order": 7}, "metadata": {"by": "till"}, "dedupe_key": "o7",
        "occurred_at": "2026-01-02T03:04:05Z", "correlation_id": "c", "causation_id": "d",
        "subject": {"type": "shop.order", "id": "7"},
    });
    let (status, refused) = post(&s.app, &member, "/signals", fact.clone()).await;
    assert_eq!((status, &refused["code"]), (403, &json!("role_required")));
    let (status, first) = post(&s.app, &emitter, "/signals", fact.clone()).await;
    assert_eq!((status, &first["created"]), (201, &json!(true)));
    let signal = &first["signal"];
    for key in ["name", "payload", "metadata", "correlation_id", "causation_id", "subject", "dedupe_key"] {
        assert_eq!(signal[key], fact[key], "{key}");
    }
    let rest = [&signal["occurred_at"], &signal["source"], &signal["actor"]];
    assert_eq!(rest, [&json!("2026-01-02T03:04:05.000Z"), &json!("api"), &json!({"type": "user", "id": "ed"})]);
    let (status, again) = post(&s.app, &emitter, "/signals", fact).await;
    assert_eq!((status, &again["created"], &again["signal"]["id"]), (200, &json!(false), &signal["id"]));
    for _ in 0..2 {
        let (status, _) = post(&s.app, &emitter, "/signals", json!({"name": "shop.order.seen"})).await;
        assert_eq!(status, 201, "without a key each is one");
    }
    let rows = [
        (json!({"name": "Order"}), 422, "invalid_request", "no name"),
        (json!({"name": "a.b", "payload": [1]}), 422, "invalid_request", "no object"),
        (json!({"name": "a.b", "occurred_at": "now"}), 422, "invalid_request", "no time"),
        (json!({"name": "a.b", "subject": {"type": "", "id": "1"}}), 422, "invalid_request", "an empty kind"),
        (json!({"name": "a.b", "payload": {"user": {"password": "x"}}}), 422, "secret_in_payload", "a secret"),
        (json!({"name": "a.b", "payload": {"text": "x".repeat(70_000)}}), 413, "field_too_large", "too large"),
        (json!({"name": "a.b", "seq": 1}), 422, "invalid_request", "an unknown field"),
    ];
    for (body, status, code, reason) in rows {
        let (got, problem) = post(&s.app, &emitter, "/signals", body).await;
        assert_eq!((got, &problem["code"]), (status, &json!(code)), "{reason}: {problem}");
    }
    assert_eq!(get(&s.app, &emitter, "/signals").await["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn lists_are_filtered_ordered_and_paged() {
    let (s, _backend) = forum(&[], [], nothing).await;
    let token = s.app.token_of("ed", Some("acme"), &["emitter", "auditor"]);
    for number in 0..7 {
        let name = if number % 2 == 0 { "forum.thread.created" } else { "forum.threads.counted" };
        let subject = json!({"type": "forum.thread", "id": number.to_string()});
        post(&s.app, &token, "/signals", json!({"name": name, "subject": subject, "correlation_id": "run"})).await;
    }
    let seqs =
        |page: &Value| page["items"].as_array().unwrap().iter().map(|s| s["seq"].as_i64().unwrap()).collect::<Vec<_>>();
    for order in ["asc", "desc"] {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = get(&s.app, &token, &format!("/signals?order={order}&limit=3&cursor={cursor}")).await;
            all.extend(seqs(&page));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        if order == "desc" {
            all.reverse();
        }
        assert_eq!(all, (1..=7).collect::<Vec<_>>(), "{order}");
    }
    for (query, count) in [
        ("name=forum.thread.created", 4),
        ("name=forum.*", 7),
        ("name=forum.thread.*", 4),
        ("name=forum.threads.*", 3),
        ("subject_type=forum.thread&subject_id=3", 1),
        ("correlation_id=run&of=tenant", 7),
        ("correlation_id=other", 0),
    ] {
        assert_eq!(
            get(&s.app, &token, &format!("/signals?{query}")).await["items"].as_array().unwrap().len(),
            count,
            "{query}"
        );
    }
    for query in ["name=forum*", "order=up", "limit=501", "cursor=-1", "of=x"] {
        let (status, problem) = asked(&s.app, &token, Method::GET, &format!("/signals?{query}"), None).await;
        assert_eq!(status, 400, "{query}: {problem}");
    }
}
