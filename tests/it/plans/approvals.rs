//! A call of a plan that needs a person: the plan waits with it, beyond its run, and goes on behind the decision.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{READABLE, desk, desk_over, of_event, plans, read, things, told};
use crate::support::frames::{self, Frame};
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::tickets::started;
use crate::support::upstream::{Answer, Upstream};

/// Looks, erases, and keeps what was erased.
fn steps() -> Value {
    json!([
        {"tools": ["look"], "arguments": {"id": "t1"}},
        {"type": "action", "description": "Erase it", "tools": ["erase"], "arguments": {"id": "t1"}, "depends_on": [1]},
        {"type": "action", "description": "Keep it", "tools": ["save"], "depends_on": [2]},
    ])
}

pub fn erase(id: &str) -> Value {
    json!({"type": "action", "tools": ["erase"], "arguments": {"id": id}})
}

/// A decision on the approval that was shown.
pub async fn decide(s: &Scripted, shown: &Value, decision: &str) -> Vec<Frame> {
    let response = decide_as(s, &s.app.token, shown, decision).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    frames::parse(&text)
}

/// The same of another user.
pub async fn decide_as(s: &Scripted, token: &str, shown: &Value, decision: &str) -> reqwest::Response {
    let url = s.app.url(&format!("/v1/agent/approvals/{}", shown["approval_id"].as_str().unwrap()));
    let body = json!({"decision": decision, "digest": shown["digest"]});
    s.app.http.post(url).bearer_auth(token).json(&body).send().await.unwrap()
}

pub async fn get(s: &Scripted, path: &str) -> Value {
    s.app.http.get(s.app.url(path)).bearer_auth(&s.app.token).send().await.unwrap().json().await.unwrap()
}

/// The plan as its owner reads it.
pub async fn kept(s: &Scripted, frames: &[Frame]) -> Value {
    let event = frames.iter().find(|frame| frame.data["plan"].is_object()).unwrap();
    get(s, &format!("/v1/agent/plans/{}", event.data["plan"]["id"].as_str().unwrap())).await
}

pub fn states(plan: &Value) -> Vec<&str> {
    plan["steps"].as_array().unwrap().iter().map(|step| step["status"].as_str().unwrap()).collect()
}

fn names(frames: &[Frame]) -> Vec<&str> {
    let mut names: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    names.dedup();
    names
}

pub fn writes(backend: &Upstream) -> Vec<String> {
    let requests = backend.requests().into_iter().filter(|request| request.method != "GET");
    requests.map(|request| format!("{} {}", request.method, request.path)).collect()
}

const ERASED: &str = "DELETE /api/things/t1";
const KEPT: &str = "POST /api/things";

#[tokio::test]
async fn a_plan_waits_for_its_user_and_goes_on_where_it_was() {
    let (s, backend) = desk([plans(&steps()), says("Done.")]).await;
    let frames = told(&s.app, "Go").await;
    let expected = [
        "message_start",
        "tool_call_start",
        "plan_created",
        "step_started",
        "tool_call_start",
        "tool_call_result",
        "step_finished",
        "step_started",
        "tool_call_start",
        "tool_call_result",
        "step_paused",
        "tool_call_result",
        "plan_paused",
        "approval_request",
        "message_complete",
    ];
    assert_eq!(names(&frames), expected);
    let paused = &of_event(&frames, "plan_paused")[0]["plan"];
    assert_eq!(
        (&paused["status"], states(paused)),
        (&json!("paused"), vec!["completed", "awaiting_approval", "pending"])
    );
    let shown = of_event(&frames, "approval_request")[0].clone();
    assert_eq!(shown["arguments"], json!({"id": "t1"}));
    assert_eq!(shown["origin"], json!({"plan_id": paused["id"], "step": 2, "agent_id": null}));
    let told_all = frames.iter().map(|frame| frame.data.to_string()).collect::<String>();
    assert!(!told_all.contains("Secret"), "what tools say is nobody's here: {told_all}");
    assert_eq!(writes(&backend), [""; 0]);
    let plan = kept(&s, &frames).await;
    assert_eq!((&plan["status"], &plan["steps"][0]["result"]["title"]), (&json!("paused"), &json!("Secret")));
    let waiting = get(&s, "/v1/agent/approvals").await;
    assert_eq!(
        (&waiting["items"][0]["approval_id"], &waiting["items"][0]["origin"]),
        (&shown["approval_id"], &shown["origin"])
    );

    let frames = decide(&s, &shown, "approve").await;
    let expected = [
        "message_start",
        "tool_call_start",
        "plan_resumed",
        "step_started",
        "tool_call_start",
        "tool_call_result",
        "step_finished",
        "step_started",
        "tool_call_start",
        "tool_call_result",
        "step_finished",
        "plan_finished",
        "tool_call_result",
        "message_start",
        "content_chunk",
        "message_complete",
    ];
    assert_eq!(names(&frames), expected);
    let done = &of_event(&frames, "plan_finished")[0]["plan"];
    assert_eq!(
        (&done["id"], &done["status"], states(done)),
        (&paused["id"], &json!("completed"), vec!["completed"; 3])
    );
    assert_eq!(writes(&backend), [ERASED, KEPT]);
    assert_eq!(backend.requests().len(), 3, "nothing of it is done again");
    let asked = s.last_asked();
    assert!(asked.iter().any(|message| message["content"].to_string().contains("the user approved the call of erase")));
    assert!(
        asked.iter().any(|message| message["content"].to_string().contains("wait until a person has let them through"))
    );
    assert_eq!((&read(&s)["status"], &read(&s)["plan_id"]), (&json!("executed"), &paused["id"]));
    assert_eq!(get(&s, "/v1/agent/approvals").await["items"], json!([]));
}

#[tokio::test]
async fn a_call_of_a_plan_that_is_turned_down_has_failed() {
    let (s, backend) = desk([plans(&steps()), says("I see.")]).await;
    let frames = told(&s.app, "Go").await;
    let frames = decide(&s, of_event(&frames, "approval_request")[0], "reject").await;
    let plan = kept(&s, &frames).await;
    assert_eq!((&plan["status"], states(&plan)), (&json!("failed"), vec!["completed", "failed", "skipped"]));
    assert!(plan["steps"][1]["error"].as_str().unwrap().contains("turned this call down"), "{plan}");
    assert!(read(&s)["error"].as_str().unwrap().contains("turned this call down"), "{}", read(&s));
    assert_eq!(writes(&backend), [""; 0]);

    // Where nothing needs it, the rest goes on.
    let (s, backend) = desk([
        plans(&json!([erase("t1"), {"type": "action", "tools": ["save"], "arguments": {"title": "x"}}])),
        says("I see."),
    ])
    .await;
    let frames = told(&s.app, "Go").await;
    assert_eq!(writes(&backend), [KEPT], "others do not wait");
    let frames = decide(&s, of_event(&frames, "approval_request")[0], "reject").await;
    let plan = kept(&s, &frames).await;
    assert_eq!((&plan["status"], states(&plan)), (&json!("completed_with_errors"), vec!["failed", "completed"]));
}

#[tokio::test]
async fn a_plan_waits_until_all_of_its_calls_are_decided() {
    let both = json!({"type": "action", "tools": ["erase", "look"], "arguments": {"erase": {"id": "t2"}, "look": {"id": "t9"}}});
    let last = json!({"type": "action", "description": "Keep it", "tools": ["save"], "depends_on": [1, 2]});
    let (s, backend) = desk([plans(&json!([erase("t1"), both, last])), says("Done.")]).await;
    let frames = told(&s.app, "Go").await;
    let shown: Vec<Value> = of_event(&frames, "approval_request").into_iter().cloned().collect();
    assert_eq!(shown.len(), 2, "{frames:#?}");
    let frames = decide(&s, &shown[1], "approve").await;
    assert_eq!(names(&frames).last(), Some(&"message_complete"));
    assert_eq!(s.model.requests().len(), 1, "no model is asked before");
    let paused = &of_event(&frames, "plan_paused")[0]["plan"];
    let first = usize::from(shown[0]["origin"]["step"] != 1);
    let mut expected = vec!["completed", "completed", "pending"];
    expected[first] = "awaiting_approval";
    assert_eq!(states(paused), expected);
    assert_eq!(writes(&backend).len(), 1);
    decide(&s, &shown[0], "approve").await;
    assert_eq!(read(&s)["status"], "executed", "{}", read(&s));
    assert_eq!(writes(&backend).len(), 3);
    let looks = backend.requests().into_iter().filter(|request| request.method == "GET").count();
    assert_eq!(looks, 1, "what was done beside it is not done again");
}

#[tokio::test]
async fn a_sub_agent_goes_on_with_all_that_it_knows() {
    let by_agent =
        json!([{"type": "action", "description": "Clear t1", "tools": ["look", "erase"], "executor_required": true}]);
    let erases = || calls("c2", "erase", &json!({"id": "t1"}));
    let looks = || calls("c1", "look", &json!({"id": "t1"}));
    let done = || says(r#"{"success": true, "summary": "Cleared."}"#);
    let (s, backend) = desk([plans(&by_agent), looks(), erases(), done(), says("Done.")]).await;
    let frames = told(&s.app, "The word is plover").await;
    let paused = of_event(&frames, "agent_paused")[0]["agent"].clone();
    assert_eq!((&paused["status"], &paused["tool_calls"]), (&json!("awaiting_approval"), &json!(2)));
    let shown = of_event(&frames, "approval_request")[0].clone();
    assert_eq!(shown["origin"]["agent_id"], paused["id"]);
    let plan = kept(&s, &frames).await;
    assert_eq!(plan["executions"][0]["status"], "awaiting_approval");
    assert!(!plan.to_string().contains("transcript"), "what it has said is its own");
    let frames = decide(&s, &shown, "approve").await;
    assert_eq!(of_event(&frames, "agent_finished")[0]["agent"]["id"], paused["id"], "the same");
    let asked = s.model.requests()[3].json();
    let roles: Vec<&str> =
        asked["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    let expected =
        ["system", "user", "assistant", "tool", "assistant", "tool", "assistant", "user", "assistant", "tool"];
    assert_eq!(roles, expected, "{asked:#}");
    assert!(asked["messages"][1]["content"].as_str().unwrap().contains("Clear t1"));
    assert!(!asked.to_string().contains("plover"), "nothing of the conversation");
    assert_eq!((writes(&backend), read(&s)["status"].clone()), (vec![ERASED.to_owned()], json!("executed")));
    let plan = kept(&s, &frames).await;
    assert_eq!(
        (&plan["executions"][0]["status"], &plan["executions"][0]["tool_calls"]),
        (&json!("completed"), &json!(2))
    );
    let tokens = plan["executions"][0]["usage"]["input_tokens"].as_u64().unwrap();
    assert!(tokens > paused["usage"]["input_tokens"].as_u64().unwrap(), "both parts count");

    // Two calls of one answer: it goes on when both are decided.
    let two = turn().call("c1", "erase", &json!({"id": "t1"})).call("c2", "erase", &json!({"id": "t2"})).done();
    let (s, backend) = desk([plans(&by_agent), two, done(), says("Done.")]).await;
    let frames = told(&s.app, "Go").await;
    let shown: Vec<Value> = of_event(&frames, "approval_request").into_iter().cloned().collect();
    let frames = decide(&s, &shown[0], "reject").await;
    assert_eq!((of_event(&frames, "plan_paused").len(), s.model.requests().len()), (1, 2));
    let frames = decide(&s, &shown[1], "approve").await;
    assert_eq!(writes(&backend), ["DELETE /api/things/t2"]);
    assert_eq!(read(&s)["status"], "executed", "{}", read(&s));
    let plan = kept(&s, &frames).await;
    let results = &plan["steps"][0]["result"];
    assert_eq!(
        (&results["toolResults"][0]["success"], &results["toolResults"][1]["success"]),
        (&json!(false), &json!(true))
    );
    assert!(results["errors"][0].as_str().unwrap().contains("turned this call down"), "{results:#}");
    assert_eq!(plan["executions"][0]["calls"][0]["fate"], "not_run");
    assert!(s.model.requests()[2].json().to_string().contains("turned down the call of erase"));
}

#[tokio::test]
async fn what_ends_a_plan_that_waits_takes_its_calls_along() {
    // It is dropped.
    let (s, _backend) = desk([plans(&steps()), says("All right.")]).await;
    let response = s.app.post(&json!({"message": "Go", "context_type": "mine", "conversation_id": "c"})).await;
    let frames = frames::parse(&response.text().await.unwrap());
    let shown = of_event(&frames, "approval_request")[0].clone();
    let id = of_event(&frames, "plan_paused")[0]["plan"]["id"].as_str().unwrap().to_owned();
    let url = s.app.url(&format!("/v1/agent/plans/{id}"));
    assert_eq!(s.app.http.delete(url).bearer_auth(&s.app.token).send().await.unwrap().status(), 204);
    let path = format!("/v1/agent/approvals/{}", shown["approval_id"].as_str().unwrap());
    let late = s.app.http.post(s.app.url(&path)).bearer_auth(&s.app.token).json(&json!({"decision": "approve"}));
    assert_eq!(late.send().await.unwrap().status(), 409);
    assert_eq!(states(&kept(&s, &frames).await), ["completed", "cancelled", "cancelled"]);
    s.app.post(&json!({"message": "And?", "context_type": "mine", "conversation_id": "c"})).await.text().await.unwrap();
    let asked = s.last_asked().last().unwrap()["content"].to_string();
    assert!(
        asked.contains("the call of erase was not made, since its plan has ended") && !asked.contains("Their words"),
        "{asked}"
    );

    // Another step fails, without which it cannot go on.
    let fails =
        json!([erase("t1"), {"tools": ["look"], "arguments": {"id": "gone"}}, {"tools": ["look"], "depends_on": [2]}]);
    let (s, backend) = desk_over([plans(&fails), says("It failed.")], |request| match request.path.ends_with("gone") {
        true => Some(Answer::status(404, "application/json", "{}")),
        false => things(request),
    })
    .await;
    let frames = told(&s.app, "Go").await;
    assert_eq!(of_event(&frames, "plan_finished")[0]["plan"]["status"], "failed");
    assert!(of_event(&frames, "approval_request").is_empty(), "what does not wait is not asked for");
    assert_eq!(get(&s, "/v1/agent/approvals").await["items"], json!([]));
    assert_eq!(s.model.requests().len(), 2, "the model goes on");
    assert_eq!(writes(&backend), [""; 0]);
}

/// The events of a POST on another wire.
pub async fn post(s: &Scripted, path: &str, body: &Value) -> Vec<Value> {
    let request = s.app.http.post(s.app.url(path)).bearer_auth(&s.app.token).json(body);
    let text = request.send().await.unwrap().text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|json| serde_json::from_str::<Value>(json).ok()).collect()
}

pub fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[tokio::test]
async fn ag_ui_asks_for_the_call_of_a_plan_and_resumes_it() {
    for (approved, status, content) in [(true, "completed", "t1"), (false, "failed", "turned down")] {
        let (s, backend) = desk([plans(&steps()), says("Done.")]).await;
        let message = json!({"id": "u1", "role": "user", "content": "Go"});
        let mut input = json!({"threadId": "t", "runId": "r", "state": {}, "messages": [message], "tools": [], "context": [],
            "forwardedProps": {"protocolVersion": "1.0"}, "protocolVersion": "1.0"});
        let events = post(&s, "/v1/ag-ui/mine", &input).await;
        let shown = &of_type(&events, "RUN_FINISHED")[0]["outcome"]["interrupts"][0];
        let call = &of_type(&events, "TOOL_CALL_START")[1];
        assert_eq!(
            (&call["toolCallName"], &call["toolCallId"]),
            (&json!("erase"), &shown["toolCallId"]),
            "{events:#?}"
        );
        assert_eq!(of_type(&events, "TOOL_CALL_ARGS")[1]["delta"], r#"{"id":"t1"}"#);
        let waits = of_type(&events, "ACTIVITY_SNAPSHOT").into_iter().next_back().unwrap();
        assert_eq!(
            (&waits["content"]["status"], &waits["content"]["steps"][1]["status"]),
            (&json!("paused"), &json!("awaiting_approval"))
        );
        input["resume"] =
            json!([{"interruptId": shown["id"], "status": "resolved", "payload": {"approved": approved}}]);
        input["runId"] = json!("r2");
        let called =
            json!({"id": call["toolCallId"], "type": "function", "function": {"name": "erase", "arguments": "{}"}});
        let answer = json!({"id": "a1", "role": "assistant", "toolCalls": [called]});
        input["messages"].as_array_mut().unwrap().push(answer);
        let events = post(&s, "/v1/ag-ui/mine", &input).await;
        let result = of_type(&events, "TOOL_CALL_RESULT")[0];
        assert_eq!(result["toolCallId"], shown["toolCallId"], "{events:#?}");
        assert!(result["content"].as_str().unwrap().contains(content), "{result}");
        let last = of_type(&events, "ACTIVITY_SNAPSHOT").into_iter().next_back().unwrap();
        assert_eq!((&last["messageId"], &last["content"]["status"]), (&waits["messageId"], &json!(status)));
        assert_eq!(of_type(&events, "RUN_FINISHED").len(), 1, "{events:#?}");
        assert_eq!(writes(&backend).len(), if approved { 2 } else { 0 });
    }
}

#[tokio::test]
async fn the_ai_sdk_asks_for_the_call_of_a_plan_and_goes_on_in_the_same_message() {
    let said = |parts: Value| {
        json!({"id": "c9", "trigger": "submit-message", "messages": [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Go"}]},
        {"id": "theirs", "role": "assistant", "parts": parts}]})
    };
    for (approved, answered, status) in
        [(true, "tool-output-available", "completed"), (false, "tool-output-denied", "failed")]
    {
        let (s, backend) = desk([plans(&steps()), says("Done.")]).await;
        let mut first = said(json!([]));
        first["messages"].as_array_mut().unwrap().truncate(1);
        let path = "/v1/ai-sdk/chat?context_type=mine&sdk=6";
        let chunks = post(&s, path, &first).await;
        let asked = of_type(&chunks, "tool-approval-request")[0];
        let call = of_type(&chunks, "tool-input-available").into_iter().next_back().unwrap();
        assert_eq!((&call["toolName"], &call["input"]), (&json!("erase"), &json!({"id": "t1"})), "{chunks:#?}");
        assert_eq!(asked["toolCallId"], call["toolCallId"]);
        let waits = of_type(&chunks, "data-plan").into_iter().next_back().unwrap();
        assert_eq!(waits["data"]["status"], "paused");
        let decided = json!([{"type": "step-start"}, {"type": "dynamic-tool", "toolName": "erase", "toolCallId": call["toolCallId"],
            "state": "approval-responded", "input": {}, "approval": {"id": asked["approvalId"], "approved": approved}}]);
        let chunks = post(&s, path, &said(decided)).await;
        let outputs = of_type(&chunks, answered);
        assert_eq!(outputs[0]["toolCallId"], call["toolCallId"], "{chunks:#?}");
        let last = of_type(&chunks, "data-plan").into_iter().next_back().unwrap();
        assert_eq!((&last["id"], &last["data"]["status"]), (&waits["id"], &json!(status)));
        assert_eq!(chunks.last().unwrap()["type"], "finish");
        assert_eq!(writes(&backend).len(), if approved { 2 } else { 0 });
    }
}

/// The product once more, with what is there by now.
pub async fn again(data: TempDir, model: Upstream, backend: &Upstream) -> Scripted {
    let app = started(data, (&model, &format!("{}/api", backend.url())), &[READABLE]).await;
    Scripted { app, model }
}

#[tokio::test]
async fn a_tool_that_is_gone_when_its_plan_goes_on_fails_its_step() {
    let later =
        json!([erase("t1"), {"type": "action", "description": "Keep it", "tools": ["save"], "depends_on": [1]}]);
    let (s, backend) = desk([plans(&later), says("So.")]).await;
    let frames = told(&s.app, "Go").await;
    let shown = of_event(&frames, "approval_request")[0].clone();
    let Scripted { app, model } = s;
    let data = app.stop().await;
    let profile = data.path().join("config/profiles/mine.toml");
    let text = std::fs::read_to_string(&profile).unwrap();
    std::fs::write(&profile, text.replace(r#", "save""#, "")).unwrap();
    let s = again(data, model, &backend).await;
    let frames = decide(&s, &shown, "approve").await;
    let plan = kept(&s, &frames).await;
    assert_eq!((&plan["status"], states(&plan)), (&json!("completed_with_errors"), vec!["completed", "failed"]));
    assert!(plan["steps"][1]["error"].as_str().unwrap().contains("save is not available"), "{plan}");
    assert_eq!(writes(&backend), [ERASED]);
}

#[tokio::test]
async fn a_tool_that_has_changed_since_it_was_shown_is_asked_for_again() {
    let (s, backend) = desk([plans(&json!([erase("t1")])), says("Done.")]).await;
    let frames = told(&s.app, "Go").await;
    let shown = of_event(&frames, "approval_request")[0].clone();
    let Scripted { app, model } = s;
    let data = app.stop().await;
    let tools = data.path().join("config/tools/more.toml");
    let text = std::fs::read_to_string(&tools).unwrap();
    std::fs::write(&tools, text.replace("Erases.", "Erases all of it.")).unwrap();
    let s = again(data, model, &backend).await;
    let frames = decide(&s, &shown, "approve").await;
    assert_eq!(writes(&backend), [""; 0], "nothing is sent that nobody was shown");
    let again = of_event(&frames, "approval_request")[0].clone();
    assert_ne!(again["digest"], shown["digest"]);
    assert_eq!(again["origin"], shown["origin"]);
    decide(&s, &again, "approve").await;
    assert_eq!(writes(&backend), [ERASED]);
    assert_eq!(read(&s)["status"], "executed");
}
