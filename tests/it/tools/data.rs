//! Data for prompts: what is asked of the backend before the model is, what the model reads of it, and for how long an
//! answer is good.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::rest::{Setup, answer};
use crate::support::model::{Scripted, calls, says, with_plain_marks};
use crate::support::upstream::{Answer, Request, Upstream};

const PROMPT: &str =
    "Report: {% if data.report %}{{ data.report|fenced }}{% else %}none{% endif %} Sum: {{ data.sum }}";

const DATA: &str = r#"
closing = ["mine.md"]
[[data]]
slot = "report"
when = "{{ context.page == 'reports' }}"
request = { path = "/v1/reports/{id}", query = { user = "{{ user }}" }, headers = { "X-Chat" = "{{ conversation_id }}" } }
args = { id = "{{ context.report_id }}" }
projection = "{title: title}"
tags = ["reports"]
failure = "The report could not be loaded."
[[data]]
slot = "sum"
request = { method = "POST", path = "/v1/sum", body = { of = "{{ context.report_id }}" }, effect = "read" }
projection = "sum"
ttl_s = 0
"#;

const TOOLS: &str = r#"
[[tool]]
name = "rename"
description = "Renames a report."
invalidates = ["reports"]
input_schema = { type = "object", properties = { title = { type = "string" } } }
request = { method = "POST", path = "/v1/rename" }
"#;

async fn start(
    turns: usize,
    backend: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
) -> (Scripted, Upstream) {
    let mut setup = Setup::of(TOOLS);
    setup.files.push(("prompts/mine.md", PROMPT));
    setup.profile = DATA;
    setup.start((0..turns).map(|_| says("Yes.")), backend).await
}

/// A report whose title tells how often it was asked for.
fn counting() -> impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static {
    let asked = AtomicUsize::new(0);
    move |request: &Request| match request.path.starts_with("/api/v1/reports/") {
        true => {
            let n = asked.fetch_add(1, Ordering::Relaxed) + 1;
            answer(&json!({"title": format!("Report {n}"), "body": "secret"}))
        }
        false => answer(&json!({"sum": 7})),
    }
}

fn about(report: &Value, conversation: &str) -> Value {
    let context = json!({"page": "reports", "report_id": report});
    json!({"message": "Go", "context_type": "mine", "context": context, "conversation_id": conversation})
}

/// What the newest prompt says.
fn prompt(s: &Scripted) -> String {
    let messages = s.last_asked();
    let text = messages[0]["content"].as_str().unwrap();
    with_plain_marks(&text[text.find("Report: ").unwrap()..])
}

fn lines(backend: &Upstream) -> Vec<String> {
    backend.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[tokio::test]
async fn a_prompt_shows_what_was_loaded_and_what_was_not() {
    let (s, backend) = start(2, counting()).await;
    s.app.chat(&about(&json!(7), "c1")).await;
    assert_eq!(prompt(&s), "Report: [data MARK]\n```json\n{\"title\":\"Report 1\"}\n```\n[end of data MARK] Sum: 7");
    s.app.chat(&json!({"message": "Go", "context_type": "mine"})).await;
    assert_eq!(prompt(&s), "Report: none Sum: 7");
    let ada = crate::support::app::ADA;
    let mut asked = lines(&backend);
    asked[..2].sort();
    let expected = [format!("GET /api/v1/reports/7?user={ada}"), "POST /api/v1/sum".into(), "POST /api/v1/sum".into()];
    assert_eq!(asked, expected, "on another page there is no report");
    for request in backend.requests() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {}", s.app.token).as_str()));
        assert_eq!(request.header("idempotency-key"), None, "a loader reads");
    }
}

#[tokio::test]
async fn an_answer_is_kept_for_its_user_and_its_request() {
    let (s, backend) = start(5, counting()).await;
    s.app.chat(&about(&json!(7), "c1")).await;
    s.app.chat(&about(&json!(7), "c1")).await;
    assert!(prompt(&s).contains("Report 1"), "kept");
    s.app.chat(&about(&json!(8), "c1")).await;
    assert!(prompt(&s).contains("Report 2"), "another report");
    let somebody = s.app.token_of("somebody", None, &["USER"]);
    s.app.post_as(&somebody, &about(&json!(7), "c2")).await.text().await.unwrap();
    assert!(prompt(&s).contains("Report 3"), "another user");
    let elsewhere = s.app.token_of("somebody", Some("elsewhere"), &["USER"]);
    s.app.post_as(&elsewhere, &about(&json!(7), "c2")).await.text().await.unwrap();
    assert!(prompt(&s).contains("Report 4"), "another tenant");
    let reports = lines(&backend).iter().filter(|line| line.contains("/reports/")).count();
    assert_eq!((reports, lines(&backend).len()), (4, 9), "what is kept for no time is loaded each time");
}

#[tokio::test]
async fn a_write_makes_what_it_changes_stale() {
    let mut setup = Setup::of(TOOLS);
    setup.files.push(("prompts/mine.md", PROMPT));
    setup.profile = DATA;
    let rename = || calls("c1", "rename", &json!({"title": "x"}));
    let refused = std::sync::Arc::new(AtomicUsize::new(1));
    let of_backend = refused.clone();
    let counted = counting();
    let backend = move |request: &Request| match request.path == "/api/v1/rename" {
        true if of_backend.swap(0, Ordering::Relaxed) == 1 => Some(Answer::status(403, "text/plain", "no")),
        true => answer(&json!({})),
        false => counted(request),
    };
    let turns = [rename(), says("No."), says("Still."), rename(), says("Done."), says("New.")];
    let (s, _backend) = setup.start(turns, backend).await;
    s.app.chat(&about(&json!(7), "c1")).await;
    s.app.chat(&about(&json!(7), "c1")).await;
    assert!(prompt(&s).contains("Report 2"), "a write makes it stale when it is sent, whatever comes of it");
    s.app.chat(&about(&json!(7), "c1")).await;
    s.app.chat(&about(&json!(7), "c1")).await;
    assert!(prompt(&s).contains("Report 3"), "one that was made does too");
}

#[tokio::test]
async fn what_cannot_be_loaded_is_said_in_words_and_not_kept() {
    let down = AtomicUsize::new(1);
    let backend = move |request: &Request| match request.path.starts_with("/api/v1/reports/") {
        true if down.swap(0, Ordering::Relaxed) == 1 => Some(Answer::status(500, "text/plain", "boom")),
        true => answer(&json!({"title": "x".repeat(100)})),
        false => Some(Answer::ok("application/json", "[")),
    };
    let (s, _backend) = start(3, backend).await;
    s.app.chat(&about(&json!(7), "c1")).await;
    let failed =
        "Report: [data MARK]\n```json\n{\"error\":\"The report could not be loaded.\"}\n```\n[end of data MARK] Sum: ";
    let said = prompt(&s);
    assert!(said.starts_with(failed), "{said}");
    assert!(said.contains("could not be loaded: the backend's answer is not JSON"), "{said}");
    s.app.chat(&about(&json!(7), "c1")).await;
    assert!(prompt(&s).contains("xxx"), "a failure is not kept");
    s.app.chat(&about(&json!("../admin"), "c1")).await;
    assert!(prompt(&s).contains("xxx"), "whatever is in it, an argument is one segment");
}

#[tokio::test]
async fn a_prewarm_loads_what_is_kept_for_the_next_message() {
    let (s, backend) = start(2, counting()).await;
    let body = json!({"context_type": "mine"});
    let opened = s.app.http.post(s.app.url("/v1/agent/conversations")).bearer_auth(&s.app.token).json(&body).send();
    let id = opened.await.unwrap().json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let prewarm = async |body: String| {
        let url = s.app.url(&format!("/v1/agent/conversations/{id}/prewarm"));
        let response = s.app.http.post(url).bearer_auth(&s.app.token).body(body).send().await.unwrap();
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let states = |body: &Value| {
        let slots = body["slots"].as_array().unwrap().clone();
        slots.into_iter().map(|slot| (slot["state"].clone(), slot.get("loaded_at").is_some())).collect::<Vec<_>>()
    };
    let context = json!({"page": "reports", "report_id": 7});
    let rows = [
        (String::new(), false, [("nothing", false), ("nothing", false)], "there is no report; the other is not kept"),
        (json!({"context": context}).to_string(), true, [("loaded", true), ("nothing", false)], "loaded"),
        (json!({"context": context}).to_string(), false, [("kept", true), ("nothing", false)], "kept"),
    ];
    for (body, warmed, expected, reason) in rows {
        let (status, body) = prewarm(body).await;
        assert_eq!((status, &body["warmed"]), (200, &json!(warmed)), "{reason}: {body}");
        assert_eq!(states(&body), expected.map(|(state, at)| (json!(state), at)), "{reason}");
    }
    s.app.chat(&about(&json!(7), &id)).await;
    assert!(prompt(&s).contains("Report 1"), "{}", prompt(&s));
    assert_eq!(lines(&backend).iter().filter(|line| line.contains("/reports/")).count(), 1);
    for (body, code) in [("[", "malformed_json"), ("[]", "malformed_json"), (r#"{"context": 7}"#, "invalid_request")] {
        let (status, problem) = prewarm(body.to_owned()).await;
        assert_eq!((status, &problem["code"]), (400, &json!(code)), "{body}");
    }
}
