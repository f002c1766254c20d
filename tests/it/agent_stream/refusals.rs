//! What is refused: before a stream in the protocol's own form, and in a stream where its clients expect one.

use std::time::{Duration, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Value, json};

use super::{Set, types};
use crate::support::model::says;
use crate::support::upstream::Upstream;
use crate::support::wait::eventually;

#[tokio::test]
async fn a_session_that_is_not_there_is_told_in_the_stream() {
    let set = Set::playing([says("Mine.")]).await;
    let own = set.turn(&json!({"message": "a"})).await;
    let id = super::frame(&own, "session")["session"]["id"].clone();
    let eve = set.app().token_of("eve", None, &[]);
    for (token, id) in [(&set.app().token, json!("unknown")), (&set.app().token, json!("no/id")), (&eve, id)] {
        let response = set.post_as(token, &json!({"message": "b", "session_id": id})).await;
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("x-run-id"), "nothing was begun");
        let frames = super::read(&response.text().await.unwrap());
        assert_eq!(types(&frames), ["agent_state", "error", "done"]);
        assert_eq!(frames[1]["error"], "Session not found.");
        let none = json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
        assert_eq!((&frames[2]["usage"], &frames[2]["finished_reason"]), (&none, &json!("error")));
    }
    assert_eq!(set.s.model.requests().len(), 1, "no model is asked");
}

#[tokio::test]
async fn mistakes_have_one_form_on_all_routes() {
    let set = Set::playing([]).await;
    let bad = |field: &str, value: Value| {
        let mut body = json!({"message": "a"});
        body[field] = value;
        body
    };
    let rows = [
        (json!({}), 400, "INVALID_REQUEST", Some("message"), "no message"),
        (bad("message", json!(" ")), 400, "INVALID_REQUEST", Some("message"), "a blank one"),
        (bad("session_id", json!(7)), 400, "INVALID_REQUEST", Some("session_id"), "an id that is no text"),
        (bad("entity_id", json!([])), 400, "INVALID_REQUEST", Some("entity_id"), "an entity that is none"),
        (bad("projectFocus", json!("x")), 400, "INVALID_REQUEST", Some("projectFocus"), "a focus that is none"),
        (json!([]), 400, "INVALID_REQUEST", None, "no object"),
        (bad("message", json!("x".repeat(200_000))), 413, "INVALID_REQUEST", Some("message"), "too long"),
    ];
    for (body, status, code, field, reason) in rows {
        let response = set.post(&body).await;
        assert_eq!(response.status(), status, "{reason}");
        let body: Value = response.json().await.unwrap();
        assert_eq!((&body["code"], body["details"]["field"].as_str()), (&json!(code), field), "{reason}: {body}");
        assert!(body["error"].as_str().is_some_and(|words| !words.is_empty()), "{reason}");
    }
    let bodies: [(&[u8], &str); 5] = [
        (b"", "nothing"),
        (br#"{"message": "a""#, "half of one"),
        (b"{\"message\": \"\xff\"}", "no UTF-8"),
        (br#""a""#, "a text"),
        (br#"{"message": 7}"#, "a message that is no text"),
    ];
    for (body, reason) in bodies {
        let url = set.app().url("/api/agent/stream");
        let request = set.app().http.post(url).bearer_auth(&set.app().token).header("content-type", "application/json");
        let response = request.body(body).send().await.unwrap();
        assert_eq!(response.status(), 400, "{reason}");
        assert_eq!(response.json::<Value>().await.unwrap()["code"], "INVALID_REQUEST", "{reason}");
    }
    let (_, kept) = set.ask(Method::GET, "/v1/agent/conversations", None).await;
    assert_eq!(kept["items"], json!([]), "no session is made");
    let rows = [
        (Method::POST, "/api/agent/nowhere", 404, "NOT_FOUND"),
        (Method::GET, "/api/agentic-chat/nowhere", 404, "NOT_FOUND"),
        (Method::GET, "/api/chat/sessions/unknown", 404, "NOT_FOUND"),
        (Method::DELETE, "/api/agent/stream", 405, "METHOD_NOT_ALLOWED"),
    ];
    for (method, path, status, code) in rows {
        let (found, body) = set.ask(method, path, None).await;
        assert_eq!((found, &body["code"]), (status, &json!(code)), "{path}: {body}");
    }
    let other = set.app().http.post(set.app().url("/api/chat/stream")).bearer_auth(&set.app().token).body("{}");
    let body: Value = other.send().await.unwrap().json().await.unwrap();
    assert!(body.get("detail").is_some(), "the other dialect keeps its form: {body}");
    assert!(set.s.model.requests().is_empty());
}

#[tokio::test]
async fn a_project_that_cannot_be_had_ends_the_turn_before_a_model_is_asked() {
    let set = Set::playing([says("Welcome.")]).await;
    for (entity, words, code) in [
        ("p404", "You do not have access to this context", "data_denied"),
        ("p403", "You do not have access to this context", "data_denied"),
        ("p401", "You do not have access to this context", "data_denied"),
        ("p500", "Failed to load ontology context", "data_unavailable"),
    ] {
        let frames = set.turn(&json!({"message": "a", "context_type": "project", "entity_id": entity})).await;
        assert_eq!(types(&frames), ["agent_state", "error", "done"], "{entity}");
        assert_eq!(frames[0]["contextType"], "project");
        assert_eq!((&frames[1]["error"], &frames[1]["code"]), (&json!(words), &json!(code)));
        assert_eq!((&frames[2]["finished_reason"], &frames[2]["usage"]["total_tokens"]), (&json!("error"), &json!(0)));
    }
    assert!(set.s.model.requests().is_empty(), "no model is asked");
    let rows = async |table: &str| set.ask(Method::GET, table, None).await.1;
    assert_eq!(rows("/api/agent/stream").await["data"]["sessions"], json!([]), "no session is left behind");
    let frames = set.turn(&json!({"message": "a", "context_type": "project", "entity_id": "p1"})).await;
    assert_eq!(super::text(&frames), "Welcome.", "and the next turn works");

    let id = super::frame(&frames, "session")["session"]["id"].clone();
    let path = format!("/api/agent/stream?session_id={}", id.as_str().unwrap());
    let before = rows(&path).await;
    let focus = json!({"focusType": "project-wide", "projectId": "p404"});
    let away = json!({"message": "b", "session_id": id, "context_type": "project", "entity_id": "p404", "projectFocus": focus});
    assert_eq!(types(&set.turn(&away).await), ["agent_state", "error", "done"]);
    assert_eq!(rows(&path).await, before, "the session stays as it was");
    let loads = set.lines().iter().filter(|line| *line == "GET /api/onto/projects/p1").count();
    assert_eq!(loads, 1, "what is loaded first is not loaded again");
}

#[tokio::test]
async fn nobody_gets_in_without_a_good_token_on_any_route() {
    let (model, backend) = (Upstream::script([]).await, Upstream::choosing(|_| None).await);
    let set = Set::over(model, backend, &[("AUTH__LEEWAY_S", "0")]).await;
    let app = set.app();
    let good = &app.token;
    let (body, signature) = good.rsplit_once('.').unwrap();
    let forged = format!("{body}.{}", signature.chars().rev().collect::<String>());
    let expired = app.token_for("ada", None, Duration::ZERO);
    let second = || UNIX_EPOCH.elapsed().unwrap().as_secs();
    let made = second();
    eventually("it has expired", async || (second() > made).then_some(())).await;
    let headers = [
        (None, "nothing"),
        (Some("Bearer no.good.token".to_owned()), "no token"),
        (Some(format!("Bearer {forged}")), "a forged one"),
        (Some(format!("Bearer {expired}")), "an expired one"),
        (Some(format!("Basic {good}")), "another scheme"),
    ];
    let routes = [
        (Method::POST, "/api/agent/stream"),
        (Method::GET, "/api/agent/stream"),
        (Method::POST, "/api/agent/prewarm"),
        (Method::POST, "/api/agentic-chat/agent-message"),
        (Method::GET, "/api/chat/sessions/x"),
        (Method::PATCH, "/api/chat/sessions/x"),
        (Method::DELETE, "/api/chat/sessions/x"),
        (Method::POST, "/api/chat/sessions/x/close"),
        (Method::POST, "/api/chat/sessions/x/classify"),
    ];
    for (method, path) in routes {
        for (header, reason) in &headers {
            let request = app.http.request(method.clone(), app.url(path)).body("no JSON");
            let request = match header {
                Some(header) => request.header("authorization", header),
                None => request,
            };
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 401, "{method} {path}: {reason}");
            assert!(response.headers().contains_key("www-authenticate"), "{method} {path}: {reason}");
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["code"], "UNAUTHORIZED", "{method} {path}: {reason}: {body}");
        }
    }
    assert!(set.s.model.requests().is_empty() && set.lines().is_empty());
}

#[tokio::test]
async fn what_may_be_missing_or_odd_is_no_mistake_and_both_spellings_mean_the_same() {
    let rows = [
        (json!({"lastTurnContext": "x"}), "a recap that is none"),
        (json!({"lastTurnContext": null, "session_id": null, "entity_id": null, "projectFocus": null}), "nothing said"),
        (json!({"ontologyEntityType": "moon"}), "a kind that is none"),
        (json!({"stream_run_id": "7"}), "a number in a text"),
        (json!({"stream_run_id": [7]}), "a list for a number"),
        (json!({"conversation_history": "x"}), "a history that is no list"),
        (json!({"moon": {"a": 1}, "voiceNoteGroupId": null}), "unknown keys"),
    ];
    let set = Set::playing((0..rows.len() + 6).map(|_| says("Yes."))).await;
    for (mut body, reason) in rows {
        body["message"] = json!("Hi");
        let frames = set.turn(&body).await;
        assert_eq!(super::text(&frames), "Yes.", "{reason}");
        let id = super::frame(&frames, "session")["session"]["id"].as_str().unwrap().to_owned();
        let (_, row) = set.ask(Method::GET, &format!("/api/agent/stream?session_id={id}"), None).await;
        assert_eq!(row["data"]["session"]["messages"][0]["metadata"], Value::Null, "{reason}");
    }
    let focus = json!({"focusType": "project-wide", "projectId": "p1", "projectName": "Garden"});
    let recap = json!({"summary": "About the pond", "entities": {}});
    let spellings = [
        ("projectFocus", "lastTurnContext", "ontologyEntityType", "voiceNoteGroupId"),
        ("project_focus", "last_turn_context", "ontology_entity_type", "voice_note_group_id"),
    ];
    let mut seen = Vec::new();
    for (focus_key, recap_key, type_key, group_key) in spellings {
        let body =
            json!({"message": "Hi", "context_type": "project", focus_key: focus, recap_key: recap, group_key: "v1"});
        let frames = set.turn(&body).await;
        assert_eq!(super::frame(&frames, "focus_active")["focus"]["projectName"], "Garden", "{focus_key}");
        let prompt = set.prompt(set.s.model.requests().len() - 1);
        assert!(prompt.contains("About the pond"), "{recap_key}: {prompt}");
        let id = super::frame(&frames, "session")["session"]["id"].as_str().unwrap().to_owned();
        let (_, row) = set.ask(Method::GET, &format!("/api/agent/stream?session_id={id}"), None).await;
        assert_eq!(row["data"]["session"]["messages"][0]["metadata"], json!({"voice_note_group_id": "v1"}));
        let body = json!({"message": "Hi", "context_type": "ontology", "entity_id": "t1", type_key: "task"});
        set.turn(&body).await;
        let prompt = set.prompt(set.s.model.requests().len() - 1);
        assert!(prompt.contains("Dig"), "{type_key}: {prompt}");
        seen.push(set.lines().iter().filter(|line| *line == "GET /api/onto/tasks/t1").count());
    }
    assert!(seen[0] > 0, "what the kind says is loaded");
}
