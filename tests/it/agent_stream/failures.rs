//! Calls that fail: in which words, of which kind, and that everything else goes on.

use serde_json::{Value, json};

use super::{Set, project, read, text};
use crate::support::frames::read_until;
use crate::support::model::{Script, says, turn};
use crate::support::upstream::{Answer, End, Request, Upstream};

/// The result of a call.
fn result(frames: &[Value], id: &str) -> Value {
    let results = frames.iter().filter(|frame| frame["type"] == "tool_result").map(|frame| &frame["result"]);
    let mut of_call = results.filter(|result| result["toolCallId"] == id);
    of_call.next().unwrap_or_else(|| panic!("no result of {id} in {frames:#?}")).clone()
}

#[tokio::test]
async fn a_backend_that_fails_is_told_in_its_own_words_and_the_turn_goes_on() {
    let backend = Upstream::choosing(|request: &Request| {
        let json = |status, body: &str| Some(Answer::status(status, "application/json", body));
        match request.path.as_str() {
            "/api/onto/tasks/t400" => {
                json(400, r#"{"success": false, "error": "No such state", "details": {"field": "state"}}"#)
            }
            "/api/onto/tasks/t403" => json(403, r#"{"message": "Not yours"}"#),
            "/api/onto/tasks/t500" => json(500, r#"{"error": "Broken"}"#),
            "/api/onto/tasks/html" => Some(Answer::ok("text/html", "<html>Sign in</html>")),
            "/api/onto/tasks/cut" => Some(Answer::ok("application/json", r#"{"data""#).ending(End::Abort)),
            "/api/onto/tasks/long" => json(400, &json!({"error": "x".repeat(9000)}).to_string()),
            _ => project(request),
        }
    });
    let rows = [
        ("t400", "No such state", "its words"),
        ("t400", "state", "and its details"),
        ("t403", "Not yours", "a message counts too"),
        ("t500", "Broken", "also of a broken backend"),
        ("html", "not JSON", "a page is no answer"),
        ("cut", "", "nor is half of one"),
        ("long", "xxx", "a long one is cut"),
    ];
    let all = rows.iter().enumerate().fold(turn(), |script, (at, (id, ..))| {
        script.call(&format!("c{at}"), "get_onto_task_details", &json!({"task_id": id}))
    });
    let good = all.call("c9", "get_onto_task_details", &json!({"task_id": "t1"})).done();
    let model = Upstream::script([good, says("Well.")].map(Script::answer)).await;
    let set = Set::over(model, backend.await, &[]).await;
    let frames = set.turn(&json!({"message": "Go", "context_type": "project", "entity_id": "p1"})).await;
    for (at, (id, words, reason)) in rows.iter().enumerate() {
        let failed = result(&frames, &format!("c{at}"));
        let facts = json!([failed["success"], failed["data"], failed["errorType"]]);
        assert_eq!(facts, json!([false, null, "execution_error"]), "{reason}: {failed}");
        let error = failed["error"].as_str().unwrap();
        assert!(error.contains(words), "{id}, {reason}: {error}");
        assert!(error.len() < 2300, "{reason}: {}", error.len());
    }
    assert_eq!(result(&frames, "c9")["success"], true);
    assert_eq!(text(&frames), "Well.");
}

#[tokio::test]
async fn what_is_empty_is_unwrapped_as_everything_else() {
    let backend = Upstream::choosing(|request| match request.path.split('?').next().unwrap() {
        "/api/onto/tasks/t1" => Some(Answer::ok("application/json", r#"{"success": true, "data": {}}"#)),
        _ => project(request),
    });
    let read = turn().call("c1", "get_onto_task_details", &json!({"task_id": "t1"})).done();
    let model = Upstream::script([read, says("Well.")].map(Script::answer)).await;
    let set = Set::over(model, backend.await, &[]).await;
    let frames = set.turn(&json!({"message": "Go", "context_type": "project", "entity_id": "p1"})).await;
    assert_eq!(result(&frames, "c1")["data"], json!({"message": "The task is loaded."}), "{frames:#?}");
}

#[tokio::test]
async fn a_backend_over_its_time_is_a_timeout() {
    let backend = Upstream::choosing(|request| match request.path.starts_with("/api/onto/tasks/") {
        true => Some(Answer::ok("application/json", "{").ending(End::Hang)),
        false => project(request),
    });
    let read = turn().call("c1", "get_onto_task_details", &json!({"task_id": "t1"})).done();
    let model = Upstream::script([read, says("Well.")].map(Script::answer)).await;
    let set = Set::with_files(model, backend.await, &[], |config| {
        let path = config.join("tools/reads.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("timeout_s = 30", "timeout_s = 1")).unwrap();
    })
    .await;
    let frames = set.turn(&json!({"message": "Go", "context_type": "project", "entity_id": "p1"})).await;
    let failed = result(&frames, "c1");
    let facts = json!([failed["success"], failed["data"], failed["errorType"]]);
    assert_eq!(facts, json!([false, null, "timeout"]), "{failed}");
    assert_eq!(text(&frames), "Well.");
}

#[tokio::test]
async fn a_tool_that_was_not_loaded_is_offered_then_and_works_in_the_same_turn() {
    let first = turn()
        .call("c1", "create_onto_task", &json!({"project_id": "0198c0de-0000-7000-8000-000000000001", "title": "Dig"}))
        .call("c2", "list_onto_tasks", &json!({}))
        .call("c3", "fly_to_the_moon", &json!({}))
        .done();
    let again = turn()
        .call("c4", "create_onto_task", &json!({"project_id": "0198c0de-0000-7000-8000-000000000001", "title": "Dig"}))
        .done();
    let set = Set::playing([first, again, says("Done.")]).await;
    let frames = set.turn(&json!({"message": "Go", "context_type": "global"})).await;
    for id in ["c1", "c3"] {
        assert_eq!(
            json!([result(&frames, id)["success"], result(&frames, id)["errorType"]]),
            json!([false, "tool_not_loaded"])
        );
    }
    assert!(result(&frames, "c3")["error"].as_str().unwrap().contains("fly_to_the_moon"));
    assert_eq!((&result(&frames, "c2")["success"], &result(&frames, "c4")["success"]), (&json!(true), &json!(true)));
    let offered = [set.offered(0), set.offered(1)].map(|names| names.contains(&"create_onto_task".to_owned()));
    assert_eq!(offered, [false, true], "it is there from the next request on");
    assert!(!set.offered(1).contains(&"fly_to_the_moon".to_owned()));
    let posts = set.lines().iter().filter(|line| *line == "POST /api/onto/tasks/create").count();
    assert_eq!(posts, 1, "what was not loaded was not sent");
    let told = frames.iter().filter(|frame| frame["type"] == "operation");
    let told: Vec<&str> = told.map(|frame| frame["operation"]["action"].as_str().unwrap()).collect();
    let expected = ["create", "create", "list", "list", "create", "create"];
    assert_eq!(
        told, expected,
        "a tool that is known and was not loaded has begun and failed; one that nobody has is no operation"
    );
}

#[tokio::test]
async fn arguments_that_are_no_json_are_told_and_the_other_calls_are_made() {
    let both =
        turn().call_raw("c1", "list_onto_tasks", "{\"limit\": ").call("c2", "list_onto_tasks", &json!({})).done();
    let set = Set::playing([both, says("Done.")]).await;
    let frames = set.turn(&json!({"message": "Go"})).await;
    let failed = result(&frames, "c1");
    assert_eq!(json!([failed["success"], failed["errorType"]]), json!([false, "validation_error"]), "{failed}");
    assert_eq!(result(&frames, "c2")["success"], true);
    let called = frames.iter().find(|frame| frame["tool_call"]["id"] == failed["toolCallId"]).unwrap();
    let arguments: Value =
        serde_json::from_str(called["tool_call"]["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"invalid": "{\"limit\": "}));
    assert_eq!(set.lines().iter().filter(|line| line.contains("onto_tasks")).count(), 1);
}

#[tokio::test]
async fn what_only_reads_never_makes_a_write_however_often_it_is_asked_for() {
    let write = |id: &str| {
        turn()
            .call(id, "update_onto_task", &json!({"task_id": "0198c0de-0000-7000-8000-000000000001", "title": "x"}))
            .done()
    };
    for context in ["project_audit", "project_forecast"] {
        let find = turn().call("c2", "find_tools", &json!({"query": "update a task"})).done();
        let set = Set::playing([write("c1"), find, write("c3"), says("So.")]).await;
        let frames = set.turn(&json!({"message": "Go", "context_type": context, "entity_id": "p1"})).await;
        for id in ["c1", "c3"] {
            let failed = result(&frames, id);
            assert_eq!(json!([failed["success"], failed["errorType"]]), json!([false, "tool_not_loaded"]), "{failed}");
        }
        for at in 0..4 {
            assert!(!set.offered(at).iter().any(|name| name.starts_with("update_")), "{context}");
        }
        let found = set.s.model.requests()[3].json()["messages"].to_string();
        assert!(!found.contains("Changes a task"), "{context}: it is not found");
        assert!(set.lines().iter().all(|line| line.starts_with("GET ")), "{:?}", set.lines());
    }
}

#[tokio::test]
async fn a_stop_of_the_server_is_told_as_an_error_and_the_stream_ends() {
    let model = Upstream::script([turn().text("Half").hangs().answer()]).await;
    let set = Set::over(model, Upstream::choosing(project).await, &[("SERVER__DRAIN_S", "0")]).await;
    let mut response = set.post(&json!({"message": "Go", "context_type": "project", "entity_id": "p1"})).await;
    let mut seen = read_until(&mut response, "Half").await;
    let (rest, _data) = tokio::join!(response.text(), set.s.app.stop());
    seen.push_str(&rest.unwrap());
    let frames = read(&seen);
    let last: Vec<_> = frames[frames.len() - 2..].iter().map(|frame| frame["type"].clone()).collect();
    assert_eq!(last, ["error", "done"], "{frames:#?}");
}
