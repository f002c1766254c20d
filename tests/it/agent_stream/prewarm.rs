//! Data that is loaded before a message needs it, and the session that waits for its first message.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Set, frame, project};
use crate::support::model::{Script, calls, says};
use crate::support::postgres::TestPostgres;
use crate::support::upstream::{Answer, Upstream};
use crate::support::wait::eventually;

async fn prewarm(set: &Set, body: &Value) -> Value {
    let (status, body) = set.ask(Method::POST, "/api/agent/prewarm", Some(body)).await;
    assert_eq!((status, &body["success"]), (200, &json!(true)), "{body}");
    body["data"].clone()
}

fn p1() -> Value {
    json!({"context_type": "project", "entity_id": "p1"})
}

/// That request with more in it.
fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// The session of a turn.
fn session(frames: &[Value]) -> &Value {
    &frame(frames, "session")["session"]["id"]
}

/// How often the project was asked for.
fn loads(set: &Set) -> usize {
    set.lines().iter().filter(|line| *line == "GET /api/onto/projects/p1").count()
}

#[tokio::test]
async fn a_prewarm_makes_a_session_and_says_what_is_at_hand() {
    let set = Set::playing([]).await;
    let focus = json!({"focusType": "task", "focusEntityId": "t1", "focusEntityName": "Dig", "projectId": "p1"});
    let body = json!({"context_type": "project", "projectFocus": focus});
    let first = prewarm(&set, &body).await;
    let facts = json!([first["warmed"], first["created"], first["locationSkippedReason"]]);
    assert_eq!(facts, json!([true, true, null]));
    let row = &first["session"];
    assert_eq!(row.as_object().unwrap().len(), 22, "the full row: {row}");
    assert_eq!(json!([row["context_type"], row["entity_id"]]), json!(["project", "p1"]), "the focus tells the project");
    let known = &row["agent_metadata"];
    assert_eq!(known["focus"], Value::Null, "it is the next message's");
    let location = &known["locationContextCache"];
    assert_eq!(location["cacheKey"], "location:project:p1");
    assert!(location["loadedAt"].as_i64().unwrap() > 1_700_000_000_000, "{location}");
    assert_eq!(location.as_object().unwrap().len(), 2, "never the data");
    assert_eq!(known.get("linkedEntitiesCache"), None, "this backend has none");
    assert!(set.lines().iter().any(|line| line.starts_with("GET /api/onto/edges/linked?")), "it was asked for them");

    let again = prewarm(&set, &with(body, &json!({"session_id": row["id"]}))).await;
    assert_eq!(json!([again["warmed"], again["created"]]), json!([false, false]));
    assert_eq!(again["session"]["agent_metadata"]["locationContextCache"], *location);

    let rows = [
        (json!({}), "location:global:global", "nothing is said"),
        (json!({"context_type": "moon"}), "location:global:global", "no such context"),
    ];
    for (body, key, reason) in rows {
        let cache = prewarm(&set, &body).await["session"]["agent_metadata"]["locationContextCache"].clone();
        assert_eq!(cache["cacheKey"], key, "{reason}");
    }
    let missing = prewarm(&set, &json!({"context_type": "project_audit"})).await;
    assert_eq!(missing, json!({"warmed": false, "reason": "missing_entity"}));
    let bare = set.ask(Method::POST, "/v1/agent/conversations", Some(&json!({"context_type": "project"}))).await.1;
    let project = json!({"focusType": "project-wide", "projectId": "p1"});
    let rows = [
        (json!({"session_id": row["id"]}), Value::Null, "location:project:p1", "the session's own"),
        (json!({"session_id": bare["id"], "projectFocus": project}), Value::Null, "location:project:p1", "the focus's"),
        (json!({"session_id": bare["id"]}), json!("missing_entity"), "", "it has none"),
    ];
    for (body, skipped, key, reason) in rows {
        let data = prewarm(&set, &body).await;
        assert_eq!(data["locationSkippedReason"], skipped, "{reason}");
        let cache = data["session"]["agent_metadata"]["locationContextCache"]["cacheKey"].clone();
        assert_eq!(cache.as_str().unwrap_or_default(), key, "{reason}");
    }
    let (_, body) = set.ask(Method::GET, "/api/agent/stream", None).await;
    assert_eq!(body["data"]["sessions"], json!([]), "no list has them");
}

#[tokio::test]
async fn what_was_loaded_is_used_until_a_write_changes_it() {
    let write = calls("c1", "create_onto_task", &json!({"title": "Water", "project_id": "p1"}));
    let set = Set::playing([says("Yes."), write, says("Done."), says("Yes."), says("Eve's.")]).await;
    let id = prewarm(&set, &p1()).await["session"]["id"].clone();
    let message = with(p1(), &json!({"message": "What is there?", "session_id": id}));
    set.turn(&message).await;
    assert_eq!(loads(&set), 1, "the turn asks for nothing");
    set.turn(&message).await;
    assert_eq!(prewarm(&set, &with(p1(), &json!({"session_id": id}))).await["warmed"], true, "a write was made");
    assert_eq!(loads(&set), 2);
    set.turn(&message).await;
    assert_eq!(loads(&set), 2);
    let eve = set.app().token_of("eve", None, &[]);
    let frames = set.post_as(&eve, &with(p1(), &json!({"message": "Hi"}))).await.text().await.unwrap();
    assert!(frames.contains("Eve's."), "{frames}");
    assert_eq!(loads(&set), 3, "it is nobody else's");
}

#[tokio::test]
async fn a_backend_that_fails_fails_no_prewarm_and_mistakes_are_told() {
    let set = Set::playing([]).await;
    let failed = prewarm(&set, &json!({"context_type": "project", "entity_id": "p500"})).await;
    assert_eq!(json!([failed["warmed"], failed["created"]]), json!([false, true]));
    assert_eq!(failed["session"]["agent_metadata"], json!({"focus": null}));
    set.turn(&json!({"message": "Hi", "session_id": failed["session"]["id"]})).await;
    let asked = set.lines().iter().filter(|line| line.ends_with("/p500")).count();
    assert_eq!(asked, 2, "the turn tries it again");

    let eve = set.app().token_of("eve", None, &[]);
    let (_, hers) = set.ask_as(&eve, Method::POST, "/api/agent/prewarm", Some(&p1())).await;
    let rows = [
        ("nonsense".to_owned(), 400, "INVALID_REQUEST", "no JSON"),
        ("[]".to_owned(), 400, "INVALID_REQUEST", "no object"),
        (json!({"session_id": "nobody"}).to_string(), 404, "NOT_FOUND", "no such session"),
        (json!({"session_id": hers["data"]["session"]["id"]}).to_string(), 404, "NOT_FOUND", "another's"),
    ];
    let post = |body: String| {
        let request = set.app().http.post(set.app().url("/api/agent/prewarm")).bearer_auth(&set.app().token);
        async { request.header("content-type", "application/json").body(body).send().await.unwrap() }
    };
    for (body, status, code, reason) in rows {
        let response = post(body).await;
        assert_eq!(response.status(), status, "{reason}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["code"], code, "{reason}");
    }
    assert_eq!(post(String::new()).await.status(), 200, "an empty body is global");
}

#[tokio::test]
async fn a_first_message_finds_the_session_that_waits_for_it() {
    let set = Set::playing((0..9).map(|nth| says(&nth.to_string()))).await;
    let first = async |body: Value| session(&set.turn(&with(body, &json!({"message": "Hi"}))).await).clone();
    let made = prewarm(&set, &p1()).await["session"]["id"].clone();
    let again = prewarm(&set, &p1()).await;
    assert_eq!(json!([again["created"], again["session"]["id"]]), json!([false, made]), "it is still waiting");
    assert_ne!(first(json!({"context_type": "global", "entity_id": "p1"})).await, made, "another place");
    let eve = set.app().token_of("eve", None, &[]);
    let hers = set.post_as(&eve, &with(p1(), &json!({"message": "Hi"}))).await.text().await.unwrap();
    assert!(!hers.contains(made.as_str().unwrap()), "another user: {hers}");
    assert_eq!(first(p1()).await, made);
    assert_ne!(first(p1()).await, made, "it is used");
    assert_eq!(prewarm(&set, &p1()).await["created"], true);

    let late = prewarm(&set, &json!({"context_type": "calendar"})).await["session"]["id"].clone();
    set.app().beside("UPDATE conversation_state SET opened_at = opened_at - 61000").await;
    assert_ne!(first(json!({"context_type": "calendar"})).await, late, "after a minute");
    let opened = set.ask(Method::POST, "/v1/agent/conversations", Some(&json!({"context_type": "calendar"}))).await.1;
    assert_ne!(first(json!({"context_type": "calendar"})).await, opened["id"], "its user has that one");
}

#[tokio::test]
async fn a_message_that_overtakes_its_prewarm_is_in_the_same_session() {
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let backend = Upstream::choosing(move |request| match request.path.as_str() {
        "/api/onto/projects" => {
            let body = json!({"data": {"projects": [{"id": "p1", "name": "Garden"}]}}).to_string();
            Some(Answer::ok("application/json", "").gated(&held, body))
        }
        _ => project(request),
    });
    let model = Upstream::script([says("Hello.")].map(Script::answer)).await;
    let set = Set::over(model, backend.await, &[]).await;
    let (nothing, hi) = (json!({}), json!({"message": "Hi"}));
    let overtaken = prewarm(&set, &nothing);
    let message = async {
        eventually("the prewarm's request", async || (!set.lines().is_empty()).then_some(())).await;
        let answered = set.turn(&hi);
        let opened = async {
            let path = "/api/agent/stream";
            // The session is in the list as soon as its run has begun, which waits for the same data.
            eventually("the session", async || {
                let (_, body) = set.ask(Method::GET, path, None).await;
                body["data"]["sessions"].get(0).cloned()
            })
            .await;
            gate.notify_one();
        };
        tokio::join!(answered, opened).0
    };
    let (prewarmed, frames) = tokio::join!(overtaken, message);
    assert_eq!(session(&frames), &prewarmed["session"]["id"]);
    assert_eq!(set.lines().len(), 1, "one request serves both: {:?}", set.lines());
}

#[tokio::test]
async fn a_write_in_one_replica_is_seen_in_the_other() {
    let Some(server) = TestPostgres::shared() else { return };
    let database = server.new_database().await;
    let settings = [
        ("STORE__URL", database.url.as_str()),
        ("AUTH__MODE", "hs256"),
        ("AUTH__HS256_SECRET", "a secret of the tests, long enough for HS256"),
    ];
    let write = calls("c1", "create_onto_task", &json!({"title": "Water", "project_id": "p1"}));
    let replica = async |turns: Vec<Script>| {
        let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
        Set::over(model, Upstream::choosing(project).await, &settings).await
    };
    let one = replica(vec![says("Yes.")]).await;
    let other = replica(vec![write, says("Done.")]).await;
    let token = one.app().token_of("ada", None, &[]);
    let warm = async |set: &Set, session: Option<&Value>| {
        let body = with(p1(), &json!({"session_id": session}));
        set.ask_as(&token, Method::POST, "/api/agent/prewarm", Some(&body)).await.1["data"].clone()
    };
    let id = warm(&one, None).await["session"]["id"].clone();
    assert_eq!(warm(&one, Some(&id)).await["warmed"], false);
    let message = with(p1(), &json!({"message": "Add one", "session_id": id}));
    let text = other.post_as(&token, &message).await.text().await.unwrap();
    assert!(text.contains("Done."), "{text}");
    // The note of a write is kept beside its run.
    eventually("the change", async || (warm(&one, Some(&id)).await["warmed"] == true).then_some(())).await;
}

#[tokio::test]
async fn a_message_that_is_refused_takes_no_session_and_one_that_is_repeated_finds_its_run() {
    let down = Arc::new(AtomicBool::new(false));
    let is_down = down.clone();
    let backend = Upstream::choosing(move |request| match is_down.load(Ordering::Relaxed) {
        true => Some(Answer::status(500, "application/json", "{}")),
        false => project(request),
    });
    let write = calls("c1", "create_onto_task", &json!({"title": "Water", "project_id": "p1"}));
    let model = Upstream::script([write, says("Done.")].map(Script::answer)).await;
    let set = Set::over(model, backend.await, &[]).await;
    let made = prewarm(&set, &p1()).await["session"]["id"].clone();
    // What is at hand by then is dropped, so that it has to be asked for.
    set.app().beside("INSERT INTO data_changes (tenant, user_id, tag, changed_at) SELECT tenant, user_id, 'ontology', 1 FROM conversation_state").await;
    let send = async || {
        let body = with(p1(), &json!({"message": "Add one"}));
        let request = set.app().http.post(set.app().url("/api/agent/stream")).bearer_auth(&set.app().token);
        let response = request.header("idempotency-key", "k1").json(&body).send().await.unwrap();
        super::read(&response.text().await.unwrap())
    };
    down.store(true, Ordering::Relaxed);
    assert_eq!(frame(&send().await, "error")["code"], "data_unavailable");
    down.store(false, Ordering::Relaxed);
    let frames = send().await;
    assert_eq!(session(&frames), &made, "it waits on");
    down.store(true, Ordering::Relaxed);
    let again = send().await;
    assert_eq!((session(&again), super::text(&again).as_str()), (&made, "Done."), "it asks nobody");
    assert_eq!(set.s.model.requests().len(), 2);
}
