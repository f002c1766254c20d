//! What is refused: before a stream in the protocol's own form, and in a stream where its clients expect one.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Set, types};
use crate::support::model::says;

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
    let (status, body) = set.ask_as("no.good.token", Method::GET, "/api/agent/stream", None).await;
    assert_eq!((status, &body["code"]), (401, &json!("UNAUTHORIZED")));
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
