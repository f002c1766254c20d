//! What belongs together, in order; and what the trail and signals know of a model's calls.

use serde_json::{Value, json};

use super::{asked, forum, get, names, post, until};
use crate::support::frames::read_until;
use crate::support::model::{calls, says, turn};
use crate::support::upstream::{Answer, Request};
use crate::support::wait::eventually;
use crate::tools::rest::answer;

fn made(_: &Request) -> Option<Answer> {
    answer(&json!({"id": "t7", "title": "Hello"}))
}

fn args() -> Value {
    json!({"category_id": "c1", "title": "Hello"})
}

fn kinds(timeline: &Value) -> Vec<(&str, &str)> {
    let events = timeline["events"].as_array().unwrap();
    events.iter().map(|event| (event["kind"].as_str().unwrap(), event["name"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_timeline_has_directives_and_signals_the_oldest_first() {
    let (s, _backend) = forum(&[], [], made).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let body = json!({"name": "forum.thread.create", "payload": args(), "correlation_id": "job 7"});
    let (_, requested) = post(&s.app, &ann, "/directives", body).await;
    let id = &requested["directive"]["id"];
    until(&s.app, &ann, id, "succeeded").await;
    let (_, other) =
        post(&s.app, &ann, "/directives", json!({"name": "forum.thread.lock", "payload": {"id": "t9"}})).await;
    until(&s.app, &ann, &other["directive"]["id"], "succeeded").await;

    let by_job = get(&s.app, &ann, "/timeline?correlation_id=job%207").await;
    let all = [
        ("directive", "forum.thread.create"),
        ("signal", "directive.requested"),
        ("signal", "directive.started"),
        ("signal", "forum.thread.created"),
        ("signal", "directive.succeeded"),
    ];
    assert_eq!(kinds(&by_job), all);
    let directive = &by_job["events"][0];
    let expected = json!({
        "kind": "directive", "id": id, "name": "forum.thread.create", "status": "succeeded",
        "occurred_at": requested["directive"]["created_at"], "actor": {"type": "user", "id": "ann"},
        "subject": {"type": "forum.category", "id": "c1"}, "correlation_id": "job 7", "payload": args(), "metadata": {},
    });
    assert_eq!(directive, &expected);
    let created = &by_job["events"][3];
    let (subject, payload) =
        (json!({"type": "forum.thread", "id": "t7"}), json!({"thread_id": "t7", "title": "Hello"}));
    assert_eq!((&created["subject"], &created["payload"]), (&subject, &payload));
    assert_eq!(created.get("status"), None);

    let by_thing = get(&s.app, &ann, "/timeline?subject_type=forum.category&subject_id=c1").await;
    let of_category: Vec<_> = all.into_iter().filter(|(_, name)| *name != "forum.thread.created").collect();
    assert_eq!(kinds(&by_thing), of_category);
    assert_eq!(kinds(&get(&s.app, &ann, "/timeline?correlation_id=job%207&limit=2").await), all[..2]);

    let others = [("ben", "acme", "member"), ("eve", "other", "auditor")];
    for (user, tenant, role) in others {
        let token = s.app.token_of(user, Some(tenant), &[role]);
        assert_eq!(get(&s.app, &token, "/timeline?correlation_id=job%207").await, json!({"events": []}), "{user}");
    }
    let auditor = s.app.token_of("cy", Some("acme"), &["auditor"]);
    assert_eq!(kinds(&get(&s.app, &auditor, "/timeline?correlation_id=job%207&of=tenant").await), all);
    let rows = [
        ("", 422, "invalid_request", "neither"),
        ("?subject_type=forum.category", 422, "invalid_request", "half of a thing"),
        ("?correlation_id=", 422, "invalid_request", "an empty one"),
        ("?correlation_id=a&limit=501", 400, "invalid_request", "too many"),
        ("?correlation_id=a&of=tenant", 403, "role_required", "for readers"),
    ];
    for (query, status, code, reason) in rows {
        let (got, problem) = asked(&s.app, &ann, reqwest::Method::GET, &format!("/timeline{query}"), None).await;
        assert_eq!((got, &problem["code"]), (status, &json!(code)), "{reason}: {problem}");
    }
}

#[tokio::test]
async fn the_trail_names_the_directive_of_a_call() {
    let (s, _backend) = forum(&[], [calls("c1", "create_thread", &args()), says("Done.")], made).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let response = s.app.post_as(&ann, &json!({"message": "Go", "context_type": "mine"})).await;
    let conversation = response.headers()["x-conversation-id"].to_str().unwrap().to_owned();
    response.text().await.unwrap();
    let id = get(&s.app, &ann, "/directives").await["items"][0]["id"].clone();
    let trail = get(&s.app, &ann, &format!("/conversations/{conversation}/trail")).await;
    let items = trail["items"].as_array().unwrap();
    let of = |kind: &str| items.iter().filter(|entry| entry["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of("tool_call").iter().map(|entry| &entry["directive_id"]).collect::<Vec<_>>(), [&id], "{trail:#}");
    let states: Vec<&Value> = of("directive").into_iter().map(|entry| &entry["status"]).collect();
    assert_eq!(states, ["requested", "running", "succeeded"], "{trail:#}");
    assert_eq!(of("user_message").len(), 1);
}

#[tokio::test]
async fn the_trail_is_whole_after_a_models_failure_and_an_abort() {
    let rows = [(turn().text("Half").breaks(), true, "failed"), (turn().text("Half").hangs(), false, "cancelled")];
    for (second, is_read, state) in rows {
        let (s, _backend) = forum(&[], [calls("c1", "create_thread", &args()), second], made).await;
        let ann = s.app.token_of("ann", Some("acme"), &["member"]);
        let mut response = s.app.post_as(&ann, &json!({"message": "Go", "context_type": "mine"})).await;
        let conversation = response.headers()["x-conversation-id"].to_str().unwrap().to_owned();
        read_until(&mut response, "Half").await;
        match is_read {
            true => drop(response.text().await.unwrap()),
            false => drop(response),
        }
        let items = eventually(&format!("the run has ended: {state}"), async || {
            let trail = get(&s.app, &ann, &format!("/conversations/{conversation}/trail")).await;
            let items = trail["items"].as_array().unwrap().clone();
            items.iter().any(|entry| entry["kind"] == "run_ended").then_some(items)
        })
        .await;
        let of = |kind: &str| items.iter().filter(|entry| entry["kind"] == kind).cloned().collect::<Vec<_>>();
        let [message] = &of("user_message")[..] else { panic!("{items:#?}") };
        assert_eq!(message["text"], "Go");
        let [first, second] = &of("model_turn")[..] else { panic!("{items:#?}") };
        assert_eq!((&first["calls"], &second["text"]), (&json!(["create_thread"]), &json!("Half")), "{items:#?}");
        let id = get(&s.app, &ann, "/directives").await["items"][0]["id"].clone();
        let [call] = &of("tool_call")[..] else { panic!("{items:#?}") };
        assert_eq!((&call["directive_id"], &call["arguments"]), (&id, &args()), "{call:#}");
        assert!(call["result"].to_string().contains("Thread Hello is there."), "{call:#}");
        let states: Vec<Value> = of("directive").iter().map(|entry| entry["status"].clone()).collect();
        assert_eq!(states, ["requested", "running", "succeeded"], "{items:#?}");
        assert_eq!(of("run_ended")[0]["state"], state, "{items:#?}");
    }
}

#[tokio::test]
async fn a_call_that_the_callers_roles_do_not_allow_is_told_to_readers() {
    let turns = [calls("c1", "create_thread", &args()), calls("c2", "no_such_tool", &json!({})), says("No.")];
    let (s, backend) = forum(&[], turns, made).await;
    let guest = s.app.token_of("gus", Some("acme"), &["guest"]);
    let response = s.app.post_as(&guest, &json!({"message": "Go", "context_type": "mine"})).await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    response.text().await.unwrap();
    assert_eq!(s.result_of("c1"), json!({"error": "unknown tool: create_thread"}));
    assert_eq!(backend.requests().len(), 0);
    let auditor = s.app.token_of("cy", Some("acme"), &["auditor"]);
    assert_eq!(names(&s.app, &auditor).await, ["tool.denied"], "a tool that nobody has is no denied one");
    let denied = &get(&s.app, &auditor, "/signals?of=tenant").await["items"][0];
    let told = ["payload", "actor", "correlation_id", "causation_id", "source"].map(|key| denied[key].clone());
    let expected = [
        json!({"tool": "create_thread"}),
        json!({"type": "user", "id": "gus"}),
        json!(run),
        json!("c1"),
        json!("runs"),
    ];
    assert_eq!(told, expected);
}
