//! What whoever has the role is told of how a turn is carried out, and nobody else.

use serde_json::{Value, json};

use super::{Set, frame, project, read, types};
use crate::support::model::{Script, calls, says, turn};
use crate::support::upstream::{Answer, Upstream};

fn told<'a>(frames: &'a [Value], event: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["event"] == event).map(|frame| &frame["data"]).collect()
}

#[tokio::test]
async fn a_developer_is_told_how_a_turn_is_carried_out() {
    let steps = json!([{"type": "action", "tools": ["list_onto_tasks"], "arguments": {}}]);
    let plan = calls("c3", "agent_create_plan", &json!({"objective": "Look", "plan": {"steps": steps}}));
    let first = turn()
        .call("c1", "list_onto_tasks", &json!({}))
        .call("c2", "fly", &json!({}))
        .call("c4", "list_onto_tasks", &json!({"limit": "many"}))
        .done();
    let look =
        json!({"type": "research", "executorRequired": true, "description": "Look", "tools": ["list_onto_tasks"]});
    let task = calls("c5", "agent_create_plan", &json!({"objective": "Ask", "plan": {"steps": [look]}}));
    let executor = says(r#"{"success": true, "data": {}}"#);
    // A backend that gives the token away.
    let backend = Upstream::choosing(|request| match request.path.as_str() {
        "/api/onto/projects/p1" => {
            let told = request.header("authorization").unwrap().to_owned();
            let project = json!({"data": {"project": {"id": "p1", "name": "Garden", "description": told}}});
            Some(Answer::ok("application/json", project.to_string()))
        }
        _ => project(request),
    });
    let turns = [first, plan, task, executor, says("Done."), says("Hello.")].map(Script::answer);
    let set = Set::over(Upstream::script(turns).await, backend.await, &[]).await;
    let token = set.app().token_of("dev", None, &["developer"]);
    let focus = json!({"focusType": "project-wide", "projectId": "p1", "projectName": "Garden"});
    let body = json!({"message": "What is there?", "context_type": "project", "projectFocus": focus});
    let text = set.post_as(&token, &body).await.text().await.unwrap();
    assert!(!text.contains(&token), "{text}");
    let frames = read(&text);
    let order = types(&frames);
    let at = |kind: &str| order.iter().position(|found| *found == kind).unwrap();
    assert!(at("focus_active") < at("telemetry") && at("telemetry") < at("debug_context"), "{order:?}");
    assert!(at("debug_context") < at("tool_call"), "{order:?}");

    let offered = set.offered(0);
    let selection = told(&frames, "tool_selection");
    let expected = json!({
        "mode": "default", "defaultToolCount": offered.len() - 1, "selectedToolCount": offered.len(),
        "addedTools": ["agent_create_plan"], "removedTools": [], "strategy": "all_of_context", "confidence": 1,
        "contextType": "project",
    });
    assert_eq!(selection, [&expected]);
    let debug = &frame(&frames, "debug_context")["debug"];
    assert!(set.prompt(0).contains("description: Bearer [redacted]"), "{}", set.prompt(0));
    assert_eq!(debug["systemPrompt"], set.prompt(0));
    let debugs = frames.iter().filter(|frame| frame["type"] == "debug_context").count();
    assert_eq!(debugs, 1, "the prompts of executors are not told");
    let names: Vec<&str> =
        debug["availableTools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, offered);
    let count = |key: &str| debug[key].as_u64().unwrap();
    assert_eq!(count("systemPromptTokens"), u64::try_from(set.prompt(0).chars().count().div_ceil(4)).unwrap());
    assert_eq!(count("conversationTokens"), 4);
    assert!(count("toolsTokens") > 1000, "{debug}");
    let sum = count("systemPromptTokens") + count("toolsTokens") + count("conversationTokens");
    assert_eq!(count("totalTokens"), sum);
    assert_eq!(json!([debug["contextType"], debug["projectFocus"]["projectName"]]), json!(["project", "Garden"]));
    assert_eq!(debug.as_object().unwrap().len(), 10);

    let missed = told(&frames, "tool_selection_miss");
    assert_eq!(missed, [&json!({"toolName": "fly", "contextType": "project", "loadedToolCount": offered.len()})]);
    let made: Vec<Value> = told(&frames, "tool_execution")
        .into_iter()
        .map(|data| {
            assert!(data["durationMs"].is_u64(), "{data}");
            json!([data["toolName"], data["success"], data["errorType"], data["source"]])
        })
        .collect();
    let expected = [
        json!(["list_onto_tasks", true, null, "planner"]),
        json!(["list_onto_tasks", false, "validation_error", "planner"]),
        json!(["list_onto_tasks", true, null, "plan_step"]),
        json!(["agent_create_plan", true, null, "planner"]),
        json!(["agent_create_plan", true, null, "planner"]),
    ];
    assert_eq!(made, expected);

    let frames = set.turn(&json!({"message": "Hi"})).await;
    assert!(!types(&frames).iter().any(|kind| matches!(*kind, "telemetry" | "debug_context")), "{frames:#?}");
}
