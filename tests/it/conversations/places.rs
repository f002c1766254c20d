//! Where conversations are: opened before their first run, moved by requests and by tools.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{ask, ask_as, get, refusal};
use crate::support::app::TestApp;
use crate::support::frames::{self, Frame};
use crate::support::model::{Scripted, says, turn};
use crate::support::upstream::{Answer, Upstream};
use crate::tools::rest::{Setup, answer};

const TOOLS: &str = r#"
[[tool]]
name = "make_project"
description = "Makes a project."
request = { method = "POST", path = "/projects" }
move = { to = "project", entity = "{{ result.id }}", name = "{{ args.name }}" }
input_schema = { type = "object", properties = { name = { type = "string" } } }

[[tool]]
name = "look_around"
description = "Looks at what is here."
request = { path = "/around/{at}" }
inject = { at = "{{ place.entity_id or 'nowhere' }}" }

[[tool]]
name = "forbidden_door"
description = "Leads where few may be."
request = { path = "/door" }
move = { to = "vault" }
"#;

const PROJECT: &str = r#"
id = "project"
context_type = "project"
instructions = ["project.md"]
tools = ["look_around", "make_project"]

[[data]]
slot = "project"
request = { path = "/projects/{id}" }
args = { id = "{{ place.entity_id }}" }
"#;

const VAULT: &str = r#"
id = "vault"
context_type = "vault"
instructions = ["project.md"]
roles = ["treasurer"]
"#;

const PROMPT: &str = "You are in {{ place.context_type }} about {{ place.entity_name | flat }}. \
                      Focus: {{ place.focus.kind | flat }}. Data: {{ data.project.state | flat }}.";

/// Two screens and a third one that few may use; the backend has projects.
async fn two_screens(turns: impl IntoIterator<Item = crate::support::model::Script>) -> (Scripted, Upstream) {
    let mut setup = Setup::of(TOOLS);
    setup.files.extend([
        ("profiles/project.toml", PROJECT),
        ("profiles/vault.toml", VAULT),
        ("prompts/project.md", PROMPT),
    ]);
    let backend = |request: &crate::support::upstream::Request| match request.path.as_str() {
        "/api/projects" => answer(&json!({"id": "p7", "state": "made"})),
        "/api/projects/p7" => answer(&json!({"state": "growing"})),
        "/api/projects/none" => Some(Answer::status(404, "application/json", "{}")),
        _ => answer(&json!({"text": "grass"})),
    };
    setup.start(turns, backend).await
}

/// What the model was told in the system prompt of its request `at`.
fn prompt(s: &Scripted, at: usize) -> String {
    s.model.requests()[at].json()["messages"][0]["content"].as_str().unwrap().to_owned()
}

/// The tools of the model's request `at`.
fn offered(s: &Scripted, at: usize) -> Vec<String> {
    let body = s.model.requests()[at].json();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn said(s: &Scripted, body: &Value) -> Vec<Frame> {
    let response = s.app.post(body).await;
    let status = response.status();
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{text}");
    frames::parse(&text)
}

fn moves(frames: &[Frame]) -> Vec<Value> {
    frames.iter().filter(|frame| frame.event == "place_changed").map(|frame| frame.data.clone()).collect()
}

#[tokio::test]
async fn a_conversation_has_a_place_before_its_first_message() {
    let (s, _backend) = two_screens([says("Here."), says("Again.")]).await;
    let wanted =
        json!({"context_type": "project", "entity_id": "p7", "focus": {"kind": "task\n# x"}, "title": "Garden"});
    let (status, head) = ask(&s.app, Method::POST, "", Some(&wanted)).await;
    assert_eq!(status, 201, "{head}");
    let id = head["id"].as_str().unwrap();
    let place =
        json!({"context_type": "project", "entity_id": "p7", "entity_name": null, "focus": {"kind": "task\n# x"}});
    let facts = |head: &Value| json!([head["title"], head["context_type"], head["message_count"], head["place"]]);
    assert_eq!(facts(&head), json!(["Garden", "project", 0, place]));
    assert_eq!(get(&s.app, "").await["items"], json!([]), "no list shows what nobody has said anything in");
    assert_eq!(facts(&get(&s.app, &format!("/{id}")).await), facts(&head), "it is there all the same");

    let frames = said(&s, &json!({"message": "Hello", "conversation_id": id})).await;
    assert_eq!(moves(&frames), Vec::<Value>::new(), "it is where it was");
    assert_eq!(prompt(&s, 0), "You are in project about . Focus: task # x. Data: growing.");
    let list = get(&s.app, "").await;
    assert_eq!(list["items"][0]["title"], "Garden");
    assert_eq!((&list["items"][0]["message_count"], &list["items"][0]["place"]), (&json!(2), &place));

    let (status, head) = ask(&s.app, Method::PATCH, &format!("/{id}"), Some(&json!({"focus": null}))).await;
    assert_eq!((status, &head["place"]["focus"], &head["place"]["entity_id"]), (200, &Value::Null, &json!("p7")));
    said(&s, &json!({"message": "Hello", "conversation_id": id})).await;
    assert!(prompt(&s, 1).ends_with("Focus: . Data: growing."), "{}", prompt(&s, 1));
}

#[tokio::test]
async fn a_request_moves_its_conversation_and_what_it_does_not_say_stays_as_far_as_it_fits() {
    let (s, _backend) = two_screens((0..6).map(|_| says("Here."))).await;
    let place = |context_type: &str, entity: Option<&str>, focus: Value| json!({"by": "request", "context_type": context_type, "entity_id": entity, "entity_name": null, "focus": focus});
    let kind = json!({"kind": "task"});
    let rows = [
        (json!({"context_type": "mine"}), vec![], "no place is asked for"),
        (
            json!({"context_type": "project", "entity_id": "p7"}),
            vec![place("project", Some("p7"), Value::Null)],
            "there",
        ),
        (json!({"focus": kind}), vec![place("project", Some("p7"), kind.clone())], "a focus alone"),
        (json!({"focus": kind, "entity_id": "p7"}), vec![], "the same"),
        (json!({"context_type": "mine"}), vec![place("mine", None, kind.clone())], "an entity is of its screen"),
        (json!({"focus": null}), vec![place("mine", None, Value::Null)], "and away"),
    ];
    for (at, (mut body, expected, reason)) in rows.into_iter().enumerate() {
        body["message"] = json!("Go on");
        body["conversation_id"] = json!("c");
        let frames = said(&s, &body).await;
        assert_eq!(moves(&frames), expected, "{reason}");
        assert!(expected.is_empty() || frames[0].event == "place_changed", "it comes first: {reason}");
        let is_project = s.model.requests()[at].json().to_string().contains("You are in project");
        let now = get(&s.app, "/c").await;
        assert_eq!(is_project, now["context_type"] == "project", "the profile is that of the place: {reason}");
    }
}

#[tokio::test]
async fn one_that_waits_goes_to_its_place_when_its_turn_comes() {
    let mut setup = Setup::of(TOOLS);
    setup.files.extend([
        ("profiles/project.toml", PROJECT),
        ("profiles/vault.toml", VAULT),
        ("prompts/project.md", PROMPT),
    ]);
    let gate = Arc::new(Notify::new());
    let first_ends = gate.clone();
    let backend = move |request: &crate::support::upstream::Request| match request.path.as_str() {
        "/api/around/a" => Some(Answer::ok("application/json", "").gated(&gate, r#"{"text": "grass"}"#)),
        _ => answer(&json!({"state": "growing", "text": "grass"})),
    };
    let look = |call: &str| turn().call(call, "look_around", &json!({})).done();
    let turns = [look("c1"), says("A."), look("c2"), says("B."), look("c3"), says("C."), look("c4"), says("D.")];
    let (s, backend) = setup.start(turns, backend).await;
    let go = |entity: Option<&str>| {
        let mut body = json!({"message": "Go", "conversation_id": "c", "on_busy": "enqueue"});
        if let Some(entity) = entity {
            body["context_type"] = json!("project");
            body["entity_id"] = json!(entity);
        }
        body
    };
    let mut answers = Vec::new();
    for entity in [Some("a"), Some("b"), Some("c"), None] {
        let response = s.app.post(&go(entity)).await;
        assert_eq!(response.status(), 200);
        answers.push(response);
    }
    assert_eq!(get(&s.app, "/c").await["place"]["entity_id"], "a", "where the run is");
    first_ends.notify_one();
    let mut moved = Vec::new();
    for response in answers {
        let frames = frames::parse(&response.text().await.unwrap());
        moved.push(moves(&frames).iter().map(|place| place["entity_id"].clone()).collect::<Vec<_>>());
    }
    assert_eq!(json!(moved), json!([["a"], ["b"], ["c"], []]));
    let looked: Vec<String> =
        backend.requests().into_iter().map(|request| request.path).filter(|path| path.contains("around")).collect();
    assert_eq!(looked, ["/api/around/a", "/api/around/b", "/api/around/c", "/api/around/c"]);
    assert_eq!(get(&s.app, "/c").await["place"]["entity_id"], "c");
}

#[tokio::test]
async fn a_tool_moves_the_conversation_and_the_same_answer_goes_on_there() {
    let make = turn().text("A moment.").call("c1", "make_project", &json!({"name": "Herb\nGarden"})).done();
    let look = turn().call("c2", "look_around", &json!({})).done();
    let (s, backend) = two_screens([make, look, says("It grows."), says("Still here.")]).await;
    let frames = said(&s, &json!({"message": "Make a garden", "conversation_id": "c", "context_type": "mine"})).await;
    let place = json!({"context_type": "project", "entity_id": "p7", "entity_name": "Herb\nGarden", "focus": null});
    let mut moved = place.clone();
    moved["by"] = json!("tool");
    assert_eq!(moves(&frames), [moved]);
    let names = frames::names(&frames);
    let at = |name: &str| names.iter().position(|event| *event == name).unwrap();
    assert!(at("tool_call_result") < at("place_changed") && names.last() == Some(&"message_complete"), "{names:?}");
    assert_eq!(names.iter().filter(|event| **event == "message_start").count(), 3, "one run: {names:?}");

    assert!(!prompt(&s, 0).contains("You are in"), "it began elsewhere");
    assert_eq!(prompt(&s, 1), "You are in project about Herb Garden. Focus: . Data: growing.");
    assert_eq!(offered(&s, 0), ["make_project", "look_around", "forbidden_door"]);
    assert_eq!(offered(&s, 1), ["look_around", "make_project"]);
    let told = s.model.requests()[1].json()["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert_eq!(
        told,
        "[Context shifted to project for \"Herb Garden\" (ID: p7)\nYour instructions and tools are those of that place now. \
         Go on with what the user asked for.]"
    );
    let asked: Vec<String> = backend.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(asked, ["/api/projects", "/api/projects/p7", "/api/around/p7"], "calls are made where it is now");

    let conversation = get(&s.app, "/c").await;
    assert_eq!((&conversation["context_type"], &conversation["place"]), (&json!("project"), &place));
    let texts: Vec<&str> =
        conversation["messages"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Make a garden", "A moment.", "", "It grows."], "nobody sees what the server told the model");
    let run = s.app.http.get(s.app.url("/v1/agent/conversations/c/trail")).bearer_auth(&s.app.token);
    assert_eq!(run.send().await.unwrap().status(), 200);
    said(&s, &json!({"message": "And now?", "conversation_id": "c"})).await;
    assert!(prompt(&s, 3).starts_with("You are in project"), "the next message is there too");
}

#[tokio::test]
async fn nobody_is_moved_where_they_may_not_be_nor_without_end_nor_by_what_fails() {
    let door = turn().call("c1", "forbidden_door", &json!({})).done();
    let (s, backend) = two_screens([door, says("No.")]).await;
    let frames = said(&s, &json!({"message": "Open it", "conversation_id": "c", "context_type": "mine"})).await;
    assert_eq!(moves(&frames), Vec::<Value>::new());
    assert!(backend.requests().is_empty(), "the call was not made");
    let refused = "this leads to a part of the application that its user may not use";
    assert_eq!(s.result_of("c1"), json!({"error": refused}));

    let make = |id: &str| turn().call(id, "make_project", &json!({"name": id})).done();
    let (s, backend) = two_screens([make("a"), make("b"), make("d"), make("e"), says("Enough.")]).await;
    let frames = said(&s, &json!({"message": "Make four", "conversation_id": "c", "context_type": "mine"})).await;
    assert_eq!(moves(&frames).len(), 3);
    let made = backend.requests().iter().filter(|request| request.method == "POST").count();
    assert_eq!(made, 3, "the fourth was not made");
    assert!(s.result_of("e").to_string().contains("moved often enough"), "{}", s.result_of("e"));

    let mut setup = Setup::of(TOOLS);
    setup.files.extend([
        ("profiles/project.toml", PROJECT),
        ("profiles/vault.toml", VAULT),
        ("prompts/project.md", PROMPT),
    ]);
    for (what, reply) in [
        ("an answer without the id", answer(&json!({"name": "x", "move": {"to": "project", "entity": "p9"}}))),
        ("a failure", Some(Answer::status(500, "application/json", r#"{"id": "p7"}"#))),
    ] {
        let reply = std::sync::Mutex::new(reply);
        let (s, _backend) = setup.start([make("a"), says("Hm.")], move |_| reply.lock().unwrap().take()).await;
        let frames = said(&s, &json!({"message": "Make one", "conversation_id": "c", "context_type": "mine"})).await;
        assert_eq!(moves(&frames), Vec::<Value>::new(), "{what}");
        assert!(get(&s.app, "/c").await.get("place").is_none(), "{what}");
    }
}

#[tokio::test]
async fn what_is_opened_is_its_owners_alone_and_goes_away_unused() {
    let (s, _backend) = two_screens([says("Here.")]).await;
    let open = json!({"context_type": "project"});
    let (_, head) = ask(&s.app, Method::POST, "", Some(&open)).await;
    let path = format!("/{}", head["id"].as_str().unwrap());
    let other = s.app.token_of("eve", None, &[]);
    for (method, body) in [(Method::GET, None), (Method::PATCH, Some(json!({"title": "x"}))), (Method::DELETE, None)] {
        let (status, _) = ask_as(&s.app, &other, method.clone(), &path, body.as_ref()).await;
        assert_eq!(status, 404, "{method} of another");
    }
    assert_eq!(ask(&s.app, Method::DELETE, &path, None).await.0, 204);
    assert_eq!(ask(&s.app, Method::GET, &path, None).await.0, 404);

    let (_, oldest) = ask(&s.app, Method::POST, "", Some(&open)).await;
    for _ in 0..100 {
        assert_eq!(ask(&s.app, Method::POST, "", Some(&open)).await.0, 201);
    }
    let path = format!("/{}", oldest["id"].as_str().unwrap());
    assert_eq!(ask(&s.app, Method::GET, &path, None).await.0, 404, "the newest hundred are kept");
}

#[tokio::test]
async fn bad_places_are_refused_and_change_nothing() {
    let app = TestApp::demo().await;
    let workflow = |field: &str, value: Value| json!({"context_type": "workflow", field: value});
    let rows = [
        (json!({}), 400, "no profile"),
        (json!({"context_type": "nowhere"}), 400, "an unknown one"),
        (workflow("entity_id", json!(7)), 422, "an id that is no text"),
        (workflow("entity_id", json!("x".repeat(201))), 422, "a long one"),
        (workflow("focus", json!([])), 422, "a focus that is a list"),
        (workflow("focus", json!({"x": "y".repeat(5000)})), 422, "a large one"),
        (workflow("title", json!(" ")), 422, "no title"),
    ];
    for (mut body, status, reason) in rows {
        let found = refusal(&app, Method::POST, "", Some(&body)).await;
        assert_eq!(found, (status, "invalid_request".to_owned()), "{reason}");
        if body.get("title").is_none() {
            body["message"] = json!("Hello");
            body["conversation_id"] = json!("c");
            assert_eq!(app.post(&body).await.status(), 400, "{reason}");
        }
    }
    assert_eq!(ask(&app, Method::GET, "/c", None).await.0, 404, "nothing was begun");
}
