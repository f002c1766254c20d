//! Turns: frames and their order, places, focus, calls, and how they end.

use serde_json::{Value, json};

use super::{Set, frame, project, text, types};
use crate::support::app::ADA;
use crate::support::model::{Script, says, turn};
use crate::support::upstream::{Answer, Upstream};

#[tokio::test]
async fn a_turn_tells_of_its_session_and_ends_once() {
    let set = Set::playing([says("Hello there.")]).await;
    let response = set.post(&json!({"message": "Hi", "context_type": "global"})).await;
    let headers = response.headers().clone();
    assert_eq!(headers["content-type"], "text/event-stream");
    assert_eq!(headers["x-accel-buffering"], "no");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert!(headers["cache-control"].to_str().unwrap().starts_with("no-cache"), "{headers:?}");
    let session = headers["x-conversation-id"].to_str().unwrap().to_owned();
    assert!(headers.contains_key("x-run-id"));
    let frames = super::read(&response.text().await.unwrap());
    assert_eq!(
        types(&frames),
        ["agent_state", "session", "context_usage", "text", "agent_state", "last_turn_context", "done"]
    );
    assert_eq!(text(&frames), "Hello there.");
    let row = &frame(&frames, "session")["session"];
    let keys: Vec<&String> = row.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 22, "every key is there: {keys:?}");
    let facts = json!([row["id"], row["user_id"], row["context_type"], row["entity_id"], row["status"], row["title"]]);
    assert_eq!(facts, json!([session, ADA, "global", null, "active", "Agent Session"]));
    let ends = &frames[frames.len() - 3..];
    assert_eq!(ends[0], json!({"type": "agent_state", "state": "waiting_on_user", "contextType": "global"}));
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    assert_eq!(ends[2], json!({"type": "done", "usage": usage, "finished_reason": "stop"}));
}

#[tokio::test]
async fn every_context_has_its_own_prompt_and_pool_and_an_unknown_one_is_global() {
    let contexts = [
        ("global", "global"),
        ("calendar", "calendar"),
        ("project", "project"),
        ("project_create", "project_create"),
        ("project_audit", "project_audit"),
        ("project_forecast", "project_forecast"),
        ("daily_brief_update", "daily_brief_update"),
        ("brain_dump", "brain_dump"),
        ("ontology", "ontology"),
        ("general", "global"),
        ("moon", "global"),
        ("", "global"),
    ];
    let set = Set::playing(contexts.iter().map(|_| says("Yes."))).await;
    let mut prompts = Vec::new();
    for (at, (asked, expected)) in contexts.into_iter().enumerate() {
        let entity = asked.starts_with("project").then_some("p1");
        let frames = set.turn(&json!({"message": super::CLEAR, "context_type": asked, "entity_id": entity})).await;
        for state in frames.iter().filter(|frame| frame["type"] == "agent_state") {
            assert_eq!(state["contextType"], expected, "{asked}");
        }
        assert_eq!(frame(&frames, "session")["session"]["context_type"], expected);
        let (prompt, tools) = (set.prompt(at), set.offered(at));
        assert!(!prompt.contains("{{") && !prompt.contains("{%"), "{asked}: {prompt}");
        let writes = tools.iter().any(|name| name.starts_with("create_") || name.starts_with("update_"));
        let reads_only = matches!(expected, "project_audit" | "project_forecast" | "daily_brief_update");
        assert_eq!(writes, !reads_only, "{asked}: {tools:?}");
        prompts.push((expected, prompt));
    }
    for (a, prompt) in &prompts {
        let same = prompts.iter().filter(|(b, other)| a != b && prompt == other).count();
        assert_eq!(same, 0, "{a} has a prompt of its own");
    }
}

#[tokio::test]
async fn a_focus_is_kept_changed_and_cleared_and_told_when_it_changes() {
    let set = Set::playing((0..5).map(|_| says("Yes."))).await;
    let focus = |kind: &str, id: Option<&str>| json!({"focusType": kind, "focusEntityId": id, "focusEntityName": id.map(|_| "Dig"), "projectId": "p1", "projectName": "Garden"});
    let first = json!({"message": "a", "context_type": "project", "projectFocus": {"projectId": "p1", "projectName": "Garden"}});
    let frames = set.turn(&first).await;
    let session = frame(&frames, "session")["session"].clone();
    assert_eq!(session["entity_id"], "p1", "a project's place is about it");
    let rows = [
        (json!({}), None, Some(focus("project-wide", None)), "not said"),
        (
            json!({"projectFocus": focus("task", Some("t1"))}),
            Some(focus("task", Some("t1"))),
            Some(focus("task", Some("t1"))),
            "another",
        ),
        (json!({"project_focus": focus("task", Some("t1"))}), None, Some(focus("task", Some("t1"))), "the same"),
        (json!({"projectFocus": null}), Some(Value::Null), None, "none"),
    ];
    for (mut body, changed, active, reason) in rows {
        body["message"] = json!("b");
        body["session_id"] = session["id"].clone();
        let frames = set.turn(&body).await;
        let found = |kind: &str| frames.iter().find(|frame| frame["type"] == kind).map(|frame| frame["focus"].clone());
        assert_eq!(found("focus_changed"), changed, "{reason}");
        assert_eq!(found("focus_active"), active, "{reason}");
        let row = &frame(&frames, "session")["session"];
        assert_eq!(row["agent_metadata"]["focus"], active.unwrap_or(Value::Null), "{reason}");
        assert_eq!(row["entity_id"], "p1", "{reason}");
    }
}

#[tokio::test]
async fn calls_are_told_with_their_results_and_every_one_is_answered() {
    let calls = turn()
        .text("A moment. ")
        .call("c1", "list_onto_tasks", &json!({"limit": 5}))
        .call("c2", "get_onto_task_details", &json!({"task_id": "none"}))
        .call("c3", "create_onto_task", &json!({"title": "Water"}))
        .call("c4", "fly", &json!({}))
        .call("c5", "list_onto_tasks", &json!({"limit": "many"}))
        .done();
    let set = Set::playing([calls, says("Done.")]).await;
    let frames = set.turn(&json!({"message": "Go", "context_type": "project", "entity_id": "p1"})).await;
    let result = |id: &str| {
        let frames = frames.iter().filter(|frame| frame["type"] == "tool_result");
        frames.map(|frame| &frame["result"]).find(|result| result["toolCallId"] == id).unwrap().clone()
    };
    let called: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "tool_call").collect();
    assert_eq!(called.len(), 5, "{called:#?}");
    for call in &called {
        assert_eq!(call["source"], "planner");
        let arguments = call["tool_call"]["function"]["arguments"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(arguments).is_ok(), "{arguments}");
    }
    let good = result("c1");
    assert_eq!((&good["success"], &good["toolName"]), (&json!(true), &json!("list_onto_tasks")));
    assert_eq!(good["data"]["tasks"][0]["title"], "Dig", "{good}");
    assert!(good.get("error").is_none() && good.get("errorType").is_none());
    assert_eq!(result("c3")["success"], true, "{}", result("c3"));
    for (id, kind) in [("c2", "execution_error"), ("c4", "tool_not_loaded"), ("c5", "validation_error")] {
        let failed = result(id);
        assert_eq!(
            (&failed["success"], &failed["data"], &failed["errorType"]),
            (&json!(false), &Value::Null, &json!(kind))
        );
        assert!(failed["error"].as_str().is_some_and(|words| !words.is_empty()), "{failed}");
    }
    assert!(result("c4")["error"].as_str().unwrap().contains("fly"));
    assert_eq!(frame(&frames, "done")["usage"]["total_tokens"], 30, "both model calls");
    let order = types(&frames);
    let at = |kind: &str| order.iter().position(|other| *other == kind).unwrap();
    assert!(at("tool_call") < at("tool_result"), "{order:?}");
    assert_eq!(text(&frames), "A moment. Done.");
}

#[tokio::test]
async fn a_created_project_moves_the_session_and_the_same_turn_goes_on_there() {
    let made = json!({"project": {"name": "Garden", "type_key": "project.home.garden"}});
    let create = turn().call("c1", "create_onto_project", &made).done();
    let add = turn().call("c2", "create_onto_task", &json!({"title": "Water"})).done();
    let set = Set::playing([create, add, says("There it is.")]).await;
    let frames = set.turn(&json!({"message": super::CLEAR, "context_type": "project_create"})).await;
    let shift = &frame(&frames, "context_shift")["context_shift"];
    let facts = json!([shift["new_context"], shift["entity_id"], shift["entity_name"], shift["entity_type"]]);
    assert_eq!(facts, json!(["project", "p1", "Garden", "project"]));
    let order = types(&frames);
    let at = |kind: &str| order.iter().position(|other| *other == kind).unwrap();
    assert!(at("tool_result") < at("context_shift"), "{order:?}");
    assert_eq!(frames[frames.len() - 3]["contextType"], "project");
    assert!(set.offered(1).contains(&"create_onto_task".to_owned()), "the next request has the project's tools");
    assert!(!set.offered(0).contains(&"create_onto_task".to_owned()));
    let task = set.backend.requests().into_iter().find(|request| request.path == "/api/onto/tasks/create").unwrap();
    assert_eq!(task.json()["project_id"], "p1", "calls get its id");
    let id = frame(&frames, "session")["session"]["id"].as_str().unwrap().to_owned();
    let (_, body) = set.ask(reqwest::Method::GET, &format!("/api/agent/stream?session_id={id}"), None).await;
    let session = &body["data"]["session"];
    assert_eq!((&session["context_type"], &session["entity_id"]), (&json!("project"), &json!("p1")));
    let system: Vec<&str> = session["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["role"] == "system")
        .map(|row| row["content"].as_str().unwrap())
        .collect();
    assert_eq!(system.len(), 1, "{session:#}");

    let unsure = json!({"project": {"name": "x", "type_key": "project.a.b"}, "clarifications": [{"key": "k", "question": "Which?"}]});
    let set = Set::playing([turn().call("c1", "create_onto_project", &unsure).done(), says("Which?")]).await;
    let frames = set.turn(&json!({"message": super::CLEAR, "context_type": "project_create"})).await;
    assert!(!types(&frames).contains(&"context_shift"));
    assert!(!set.lines().iter().any(|line| line.starts_with("POST")), "nothing is called: {:?}", set.lines());
}

#[tokio::test]
async fn a_model_that_fails_is_told_once_and_the_next_turn_works() {
    let set = Set::playing([turn().text("I was ab").breaks(), says("Here.")]).await;
    let frames = set.turn(&json!({"message": "Hi"})).await;
    assert_eq!(types(&frames), ["agent_state", "session", "context_usage", "text", "error", "done"]);
    assert_eq!(frame(&frames, "done")["finished_reason"], "error");
    let session = frame(&frames, "session")["session"]["id"].clone();
    let frames = set.turn(&json!({"message": "Again", "session_id": session})).await;
    assert_eq!(text(&frames), "Here.");
}

#[tokio::test]
async fn a_second_message_takes_the_place_of_the_first() {
    let set = Set::playing([turn().text("Once upon").hangs(), says("Short.")]).await;
    let mut first = set.post(&json!({"message": "A long story"})).await;
    let session = first.headers()["x-conversation-id"].to_str().unwrap().to_owned();
    let mut told = String::new();
    while !told.contains("Once upon") {
        told.push_str(&String::from_utf8_lossy(&first.chunk().await.unwrap().unwrap()));
    }
    let frames = set.turn(&json!({"message": "No, a short one", "session_id": session})).await;
    assert_eq!(text(&frames), "Short.");
    told.push_str(&first.text().await.unwrap());
    let frames = super::read(&told);
    assert_eq!(frame(&frames, "done")["finished_reason"], "cancelled");
    assert!(!types(&frames).contains(&"error"));
    let asked = set.s.last_asked();
    assert!(asked.iter().any(|message| message["content"] == "Once upon"), "what was said is there: {asked:#?}");
    let (_, body) = set.ask(reqwest::Method::GET, &format!("/api/agent/stream?session_id={session}"), None).await;
    let rows = body["data"]["session"]["messages"].as_array().unwrap();
    let cut_off = rows.iter().find(|row| row["message_type"] == "assistant_interrupted").unwrap();
    assert_eq!(cut_off["metadata"]["interrupted_reason"], "superseded");
}

#[tokio::test]
async fn the_call_behind_the_last_one_that_is_allowed_ends_the_turn() {
    let many = |from: u32, to: u32| {
        let calls = (from..=to).fold(turn().text("Looking. "), |script, nth| {
            script.call(&format!("c{nth}"), "list_onto_tasks", &json!({"limit": nth}))
        });
        calls.done()
    };
    let set = Set::playing([many(1, 39), many(40, 42), many(1, 40), says("Done.")]).await;
    let frames = set.turn(&json!({"message": "Look"})).await;
    let asked = set.lines().iter().filter(|line| line.starts_with("GET /rest/v1/onto_tasks")).count();
    assert_eq!(asked, 40, "the 41st is not made");
    let (error, done) = (frame(&frames, "error"), frame(&frames, "done"));
    assert_eq!((&error["code"], &done["finished_reason"]), (&json!("tool_call_limit"), &json!("error")));
    let results: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "tool_result").collect();
    let failed = results.iter().filter(|frame| frame["result"]["success"] == false).count();
    assert_eq!((results.len(), failed), (42, 2), "each call has its result");
    let id = &frame(&frames, "session")["session"]["id"];
    let frames = set.turn(&json!({"message": "Once more", "session_id": id})).await;
    assert_eq!(text(&frames), "Looking. Done.", "40 are fine, and what was said and done is kept");
    assert!(set.s.last_asked().iter().any(|message| message["content"] == "Looking. "), "{:#?}", set.s.last_asked());
}

#[tokio::test]
async fn bare_text_is_what_a_search_looks_for() {
    let backend = Upstream::choosing(|request| match request.path.as_str() {
        "/search" => Some(Answer::ok("application/json", r#"{"results": [{"title": "A"}]}"#)),
        _ => project(request),
    })
    .await;
    let searches = ["printing prices", r#""{\"query\": \"printing prices\"}""#];
    let turns = searches.map(|text| turn().call_raw("c1", "web_search", text).done());
    let [bare, quoted] = turns;
    let turns = [bare, says("A."), quoted, says("A.")].map(Script::answer);
    let set = Set::over(Upstream::script(turns).await, backend, &[]).await;
    for _ in searches {
        let frames = set.turn(&json!({"message": "What do prints cost?"})).await;
        assert_eq!(frame(&frames, "tool_result")["result"]["success"], true, "{frames:#?}");
    }
    let sent = set.backend.requests().into_iter().filter(|request| request.path == "/search");
    let queries: Vec<Value> = sent.map(|request| request.json()["query"].clone()).collect();
    assert_eq!(queries, ["printing prices"; 2]);
}
