//! Plans and sub-agents for every wire: profiles that say so in their files, other assistants that are asked, and how clients
//! of three protocols see it. What a plan promises is tested by `agent_stream/plans.rs`.

mod approvals;
mod bounds;
mod resuming;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::audit::{READABLE, record, told as lines};
use crate::support::app::TestApp;
use crate::support::frames::{self, Frame};
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::tools::rest::{Setup, answer};

pub const TOOLS: &str = r#"
[[tool]]
name = "look"
description = "Looks."
request = { path = "/things/{id}" }
input_schema = { type = "object", required = ["id"], properties = { id = { type = "string" } } }

[[tool]]
name = "save"
description = "Saves."
request = { method = "POST", path = "/things" }
input_schema = { type = "object", required = ["title"], properties = { title = { type = "string" }, thing_id = { type = "string" } } }

[[tool]]
name = "erase"
description = "Erases."
approval = "user"
request = { method = "DELETE", path = "/things/{id}" }
input_schema = { type = "object", required = ["id"], properties = { id = { type = "string" } } }
"#;

const PROFILE: &str = r#"
[plan]

[delegate]

[[agents]]
profile = "critic"
description = "Finds fault."

[[agents]]
name = "judge"
profile = "court"
description = "Judges."
"#;

const CRITIC: &str = r#"
id = "critic"
context_type = "critic"
instructions = ["critic.md"]
tools = ["look"]
[plan]
[[agents]]
profile = "mine"
description = "Asks back."
"#;

const COURT: &str = r#"
id = "court"
context_type = "court"
instructions = ["critic.md"]
roles = ["LAWYER"]
"#;

/// A profile that makes plans and asks others, over a backend that has things.
pub async fn desk(turns: impl IntoIterator<Item = Script>) -> (Scripted, Upstream) {
    desk_over(turns, things).await
}

/// The same over a backend that answers so.
pub async fn desk_over(
    turns: impl IntoIterator<Item = Script>,
    backend: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
) -> (Scripted, Upstream) {
    let mut setup = Setup::of(TOOLS);
    setup.profile = PROFILE;
    setup.settings = vec![READABLE];
    setup.files.extend([
        ("profiles/critic.toml", CRITIC),
        ("profiles/court.toml", COURT),
        ("prompts/critic.md", "You find fault."),
    ]);
    setup.start(turns, backend).await
}

pub fn things(request: &Request) -> Option<Answer> {
    match request.method.as_str() {
        "POST" => answer(&json!({"thing_id": "t9"})),
        _ => answer(&json!({"id": "t1", "title": "Secret"})),
    }
}

pub fn plans(steps: &Value) -> Script {
    calls("c1", "create_plan", &json!({"objective": "All of it", "plan": {"steps": steps}}))
}

pub async fn told(app: &TestApp, message: &str) -> Vec<Frame> {
    let response = app.post(&json!({"message": message, "context_type": "mine"})).await;
    assert_eq!(response.status(), 200);
    frames::parse(&response.text().await.unwrap())
}

fn of_event<'a>(frames: &'a [Frame], event: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame.event == event).map(|frame| &frame.data).collect()
}

/// What the model has read of its newest call.
fn read(s: &Scripted) -> Value {
    let asked = s.last_asked();
    let result = asked.iter().rev().find(|message| message["role"] == "tool").unwrap();
    serde_json::from_str(result["content"].as_str().unwrap()).unwrap()
}

fn offered(s: &Scripted, at: usize) -> Vec<String> {
    let body = s.model.requests()[at].json();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn native_clients_see_a_plan_without_what_tools_are_given_and_say() {
    let steps = json!([
        {"tools": ["look"], "arguments": {"id": "t1"}},
        {"type": "action", "description": "Keep it", "tools": ["save"], "depends_on": [1]},
    ]);
    let (s, backend) = desk([plans(&steps), says("Done.")]).await;
    let frames = told(&s.app, "Go").await;
    let names: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    let mut kinds = names.clone();
    kinds.dedup();
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
        "step_finished",
        "plan_finished",
        "tool_call_result",
        "message_start",
        "content_chunk",
        "message_complete",
    ];
    assert_eq!(kinds, expected);
    let plan = of_event(&frames, "plan_finished")[0]["plan"].clone();
    let starts = of_event(&frames, "tool_call_start");
    assert!(starts[0].get("origin").is_none(), "the model's own");
    assert_eq!(starts[1]["origin"], json!({"plan_id": plan["id"], "step": 1, "agent_id": null}));
    let all = frames.iter().map(|frame| frame.data.to_string()).collect::<String>();
    assert!(!all.contains("Secret") && !all.contains("toolArguments"), "{all}");
    assert_eq!(read(&s)["status"], "executed");
    let post = backend.requests().into_iter().find(|request| request.method == "POST").unwrap();
    assert_eq!(post.json(), json!({"title": "Keep it"}), "what nothing has is left out");
    // Whoever owns it reads all of it.
    let path = format!("/v1/agent/plans/{}", plan["id"].as_str().unwrap());
    let request = s.app.http.get(s.app.url(&path)).bearer_auth(&s.app.token);
    let kept: Value = serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(kept["steps"][0]["result"]["title"], "Secret");
}

#[tokio::test]
async fn equal_writes_of_two_steps_are_two_writes() {
    let write = json!({"tools": ["save"], "arguments": {"title": "Same"}});
    let (gates, asked) = ([(); 2].map(|()| Arc::new(Notify::new())), AtomicUsize::new(0));
    // Neither is answered before both have come.
    let backend = move |_: &Request| {
        let at = asked.fetch_add(1, Ordering::SeqCst);
        if at == 1 {
            gates.iter().for_each(|gate| gate.notify_one());
        }
        Some(Answer::ok("application/json", "").gated(&gates[at], r#"{"thing_id": "t9"}"#))
    };
    let (s, backend) = desk_over([plans(&json!([write, write])), says("Done.")], backend).await;
    told(&s.app, "Go").await;
    let requests = backend.requests();
    let mut keys: Vec<_> = requests.iter().filter_map(|request| request.header("idempotency-key")).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((requests.len(), keys.len()), (2, 2), "{keys:?}");
}

#[tokio::test]
async fn what_steps_keep_counts_together() {
    let mut setup = Setup::of(
        r#"
[[tool]]
name = "list"
description = "Lists."
request = { path = "/things/{id}" }
input_schema = { type = "object", properties = { id = { type = "string" } } }
result = { payload = "things" }
"#,
    );
    setup.files.push(("payloads/mine.toml", "[[payload_type]]\nname = \"things\"\ndescription = \"Things\""));
    setup.profile = "payload_types = [\"things\"]\n[plan]";
    setup.settings = vec![("LIMITS__PAYLOADS", "2")];
    let steps: Vec<_> = (1..=4).map(|at| json!({"tools": ["list"], "arguments": {"id": at.to_string()}})).collect();
    let (s, _backend) = setup.start([plans(&json!(steps)), says("Done.")], things).await;
    let frames = told(&s.app, "Go").await;
    assert_eq!(of_event(&frames, "payload").len(), 2, "{frames:?}");
}

#[tokio::test]
async fn an_assistant_gives_a_task_to_another_one() {
    let ask = |args: Value| calls("c1", "delegate", &args);
    let looks = || calls("c1", "look", &json!({"id": "t1"}));
    let (s, backend) =
        desk([ask(json!({"task": "Look at t1", "tools": ["look"]})), looks(), says("It is fine."), says("So it is.")])
            .await;
    let frames = told(&s.app, "The word is plover").await;
    assert_eq!(read(&s)["answer"], "It is fine.");
    assert_eq!(offered(&s, 1), ["look"], "what it was given, and neither plans nor others to ask");
    assert!(!s.model.requests()[1].json().to_string().contains("plover"), "nothing of the conversation");
    assert_eq!(backend.requests().len(), 1);
    let done = of_event(&frames, "agent_finished")[0]["agent"].clone();
    let facts = json!([done["status"], done["tool_calls"], done["plan_id"], done["permission"], done["result"]]);
    assert_eq!(facts, json!(["completed", 1, null, "read_only", null]), "{done}");
    assert_eq!(of_event(&frames, "tool_call_start")[1]["origin"]["agent_id"], done["id"]);

    // The assistant of another screen has its own prompt and tools, and asks nobody.
    let (s, _backend) = desk([ask(json!({"task": "Look at t1", "agent": "critic"})), says("Bad."), says("So.")]).await;
    told(&s.app, "Go").await;
    assert_eq!(read(&s)["answer"], "Bad.");
    assert_eq!(offered(&s, 1), ["look"]);
    assert_eq!(s.model.requests()[1].json()["messages"][0]["content"], "You find fault.");

    let refused = [
        (json!({"task": " ", "agent": "critic"}), "task"),
        (json!({"task": "x", "agent": "nobody"}), "agent"),
        (json!({"task": "x", "agent": "judge"}), "agent"),
        (json!({"task": "x", "tools": ["fly"]}), "fly"),
        (json!({"task": "x", "tools": ["create_plan"]}), "create_plan"),
    ];
    for (args, named) in refused {
        let (s, _backend) = desk([ask(args.clone()), says("So.")]).await;
        told(&s.app, "Go").await;
        assert!(read(&s)["error"].as_str().unwrap().contains(named), "{args}: {}", read(&s));
        assert_eq!(s.model.requests().len(), 2, "{args}: nobody was asked");
    }
}

#[tokio::test]
async fn the_audit_record_has_the_writes_of_steps_and_nothing_of_the_call_that_made_the_plan() {
    let step = json!({"type": "action", "tools": ["save"], "arguments": {"title": "Once"}});
    let task = calls("c2", "delegate", &json!({"task": "Save it", "tools": ["save"]}));
    let saves = calls("c1", "save", &json!({"title": "Twice"}));
    let (s, _backend) = desk([plans(&json!([step])), task, saves, says("Saved."), says("Done.")]).await;
    told(&s.app, "Go").await;
    let told = lines(&record(&s.app, None).await, &["act", "tool", "outcome"]);
    let of = |act: &str| told.iter().filter(|line| line[0] == act).cloned().collect::<Vec<Value>>();
    assert_eq!(of("write.dispatched"), vec![json!(["write.dispatched", "save", null]); 2], "{told:#?}");
    assert_eq!(of("write.ended"), vec![json!(["write.ended", "save", "done"]); 2], "{told:#?}");
    assert_eq!(told.len(), 4, "{told:#?}");
}

#[tokio::test]
async fn what_needs_an_approval_is_not_made_by_a_sub_agent_without_a_plan() {
    let task = calls("c1", "delegate", &json!({"task": "Erase it", "tools": ["erase"]}));
    let erases = calls("c1", "erase", &json!({"id": "t1"}));
    let (s, backend) = desk([task, erases, says("I may not."), says("So.")]).await;
    let frames = told(&s.app, "Go").await;
    assert!(s.model.requests()[2].json().to_string().contains("cannot be asked here"), "it reads why");
    assert!(backend.requests().is_empty() && of_event(&frames, "approval_request").is_empty());
}

#[tokio::test]
async fn a_wire_that_cannot_tell_of_it_fails_a_step_that_needs_a_person() {
    let erase = json!({"type": "action", "tools": ["erase"], "arguments": {"id": "t1"}});
    let (s, backend) = desk([plans(&json!([erase])), says("So.")]).await;
    let url = s.app.url("/api/agent/stream");
    let request =
        s.app.http.post(url).bearer_auth(&s.app.token).json(&json!({"message": "Go", "context_type": "mine"}));
    let frames = crate::agent_stream::read(&request.send().await.unwrap().text().await.unwrap());
    let ended = frames.iter().find(|frame| frame["type"] == "step_complete").unwrap();
    assert_eq!(ended["step"]["status"], "failed", "{ended}");
    assert!(
        read(&s)["details"]["steps"][0]["error"].as_str().unwrap().contains("cannot be asked here"),
        "{}",
        read(&s)
    );
    assert!(backend.requests().is_empty());
}

#[tokio::test]
async fn other_wires_draw_the_plan_as_it_stands() {
    let steps = json!([{"tools": ["look"], "arguments": {"id": "t1"}}]);
    let (s, _backend) = desk([plans(&steps), says("Done."), plans(&steps), says("Done.")]).await;
    let post = async |path: &str, body: Value| {
        let request = s.app.http.post(s.app.url(path)).bearer_auth(&s.app.token).json(&body);
        let text = request.send().await.unwrap().text().await.unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|json| serde_json::from_str::<Value>(json).ok()).collect::<Vec<Value>>()
    };
    let message = json!({"id": "u1", "role": "user", "content": "Go"});
    let input = json!({"threadId": "t", "runId": "r", "state": {}, "messages": [message], "tools": [], "context": [], "forwardedProps": {}});
    let events = post("/v1/ag-ui/mine", input).await;
    let shown: Vec<&Value> = events.iter().filter(|event| event["type"] == "ACTIVITY_SNAPSHOT").collect();
    let last = shown.last().unwrap_or_else(|| panic!("{events:#?}"));
    assert_eq!((&last["activityType"], &last["content"]["status"]), (&json!("plan"), &json!("completed")));
    assert_eq!(last["content"]["steps"][0]["calls"][0]["state"], "done", "{last:#}");
    assert!(shown.iter().all(|event| event["messageId"] == last["messageId"]), "one block");
    let calls = events.iter().filter(|event| event["type"] == "TOOL_CALL_START").count();
    assert_eq!(calls, 1, "the model's own alone");

    let parts = json!([{"type": "text", "text": "Go"}]);
    let body =
        json!({"id": "c9", "messages": [{"id": "u1", "role": "user", "parts": parts}], "trigger": "submit-message"});
    let chunks = post("/v1/ai-sdk/chat?context_type=mine", body).await;
    let shown: Vec<&Value> = chunks.iter().filter(|chunk| chunk["type"] == "data-plan").collect();
    let last = shown.last().unwrap_or_else(|| panic!("{chunks:#?}"));
    assert_eq!((&last["id"], &last["data"]["status"]), (&last["data"]["id"], &json!("completed")));
    assert_eq!(last["data"]["steps"][0]["calls"][0]["state"], "done");
}

#[tokio::test]
async fn a_sub_agent_that_calls_without_end_is_ended() {
    let ask = calls("c1", "delegate", &json!({"task": "Look", "tools": ["look"]}));
    let looks = |at: usize| turn().call(&format!("c{at}"), "look", &json!({"id": format!("t{at}")})).done();
    let turns = [vec![ask], (0..41).map(looks).collect(), vec![says("It never ends.")]].concat();
    let (s, backend) = desk(turns).await;
    let frames = told(&s.app, "Go").await;
    assert!(read(&s)["error"].as_str().unwrap().contains("tool calls"), "{}", read(&s));
    assert_eq!(backend.requests().len(), 40);
    assert_eq!(of_event(&frames, "agent_finished")[0]["agent"]["status"], "failed");
    assert_eq!(frames.last().unwrap().event, "message_complete");
}
