//! The client of the protocol over a whole day: a page that signs in by its cookie, keeps what the stream tells it, and sends
//! that with its next message, as the protocol's own does.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::plans::{HELPERS, PLAN, Turns, over};
use super::{CLEAR, Set, project, read};
use crate::support::model::{Script, calls, says, turn};
use crate::support::upstream::Upstream;

/// What a page knows, all of it from streams.
struct Page<'s> {
    set: &'s Set,
    cookie: String,
    session: Value,
    place: (Value, Value),
    focus: Value,
    last_turn: Value,
    /// Numbers of its requests.
    turns: u64,
    /// All tokens of `done`.
    tokens: u64,
    seen: Seen,
}

/// What a turn has drawn.
#[derive(Default)]
struct Seen {
    text: String,
    /// Calls that have no result yet, and their tools.
    open: BTreeMap<String, String>,
    /// Tools with whether they went well, in the order of their results.
    results: Vec<(String, bool)>,
    /// What is told of operations: the thing and how it stands.
    toasts: Vec<String>,
    /// Steps that have ended, by their states.
    steps: Vec<String>,
    /// What became of the turn's plan.
    plan: Vec<&'static str>,
    error: Option<String>,
    finished: String,
}

impl<'s> Page<'s> {
    fn open(set: &'s Set, context: &str) -> Self {
        let cookie = format!("theme=dark; session={}", set.app().token);
        let place = (json!(context), Value::Null);
        let (session, focus, last_turn) = (Value::Null, Value::Null, Value::Null);
        Self { set, cookie, session, place, focus, last_turn, turns: 0, tokens: 0, seen: Seen::default() }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let app = self.set.app();
        let origin = format!("http://{}", app.address);
        app.http.request(method, app.url(path)).header("cookie", &self.cookie).header("origin", origin)
    }

    async fn get(&self, path: &str) -> Value {
        let response = self.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.json::<Value>().await.unwrap()["data"].clone()
    }

    /// Sends a message as the page does.
    async fn post(&mut self, message: &str) -> Response {
        (self.turns, self.seen) = (self.turns + 1, Seen::default());
        let (context, entity) = &self.place;
        let is_project = context.as_str().unwrap().starts_with("project");
        let mut body = json!({
            "message": message, "context_type": context, "projectFocus": if is_project { &self.focus } else { &Value::Null },
            "lastTurnContext": self.last_turn, "stream_run_id": self.turns, "voiceNoteGroupId": null,
        });
        if let Some(id) = self.session["id"].as_str() {
            body["session_id"] = json!(id);
        }
        if !entity.is_null() {
            body["entity_id"] = entity.clone();
        }
        let response = self.request(Method::POST, "/api/agent/stream").json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200, "{body}");
        response
    }

    /// A whole turn; what it has said.
    async fn send(&mut self, message: &str) -> String {
        let response = self.post(message).await;
        self.take(&response.text().await.unwrap());
        assert!(self.seen.open.is_empty(), "calls without a result: {:?}", self.seen.open);
        self.seen.text.clone()
    }

    /// Begins a turn that goes on: what came until its first words.
    async fn begin(&mut self, message: &str, words: &str) -> (Response, String) {
        let mut response = self.post(message).await;
        let mut told = String::new();
        while !told.contains(words) {
            told.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
        }
        // A page knows its session from the first frames of a stream.
        for block in told.split("\n\n").filter(|block| block.contains(r#""type":"session""#)) {
            self.frame(&serde_json::from_str(block.strip_prefix("data: ").unwrap()).unwrap());
        }
        (response, told)
    }

    /// Takes a whole stream in.
    fn take(&mut self, stream: &str) {
        for frame in read(stream) {
            self.frame(&frame);
        }
    }

    fn frame(&mut self, frame: &Value) {
        let seen = &mut self.seen;
        match frame["type"].as_str().unwrap() {
            "session" => {
                self.session = frame["session"].clone();
                if !self.session["agent_metadata"]["focus"].is_null() {
                    self.focus = self.session["agent_metadata"]["focus"].clone();
                }
            }
            "focus_changed" | "focus_active" => self.focus = frame["focus"].clone(),
            "last_turn_context" => self.last_turn = frame["context"].clone(),
            "context_shift" => {
                let shift = &frame["context_shift"];
                self.place = (shift["new_context"].clone(), shift["entity_id"].clone());
            }
            "text" => seen.text += frame["content"].as_str().unwrap(),
            "tool_call" => {
                let call = &frame["tool_call"];
                let arguments = call["function"]["arguments"].as_str().unwrap();
                assert!(serde_json::from_str::<Value>(arguments).is_ok(), "{arguments}");
                let [id, name] = [&call["id"], &call["function"]["name"]].map(|text| text.as_str().unwrap().to_owned());
                assert_eq!(seen.open.insert(id, name), None, "{frame}");
            }
            "tool_result" => {
                let result = &frame["result"];
                let name = seen.open.remove(result["toolCallId"].as_str().unwrap());
                assert_eq!(name.as_deref(), result["toolName"].as_str(), "{frame}");
                seen.results.push((name.unwrap(), result["success"].as_bool().unwrap()));
            }
            "operation" => {
                let [name, status] =
                    ["entity_name", "status"].map(|key| frame["operation"][key].as_str().unwrap().to_owned());
                seen.toasts.push(format!("{name} {status}"));
            }
            "plan_created" => seen.plan.push("created"),
            "plan_review" => seen.plan.push("reviewed"),
            "plan_ready_for_review" => seen.plan.push("waits"),
            "step_complete" => seen.steps.push(frame["step"]["status"].as_str().unwrap().to_owned()),
            "error" => seen.error = Some(frame["error"].as_str().unwrap().to_owned()),
            "done" => {
                seen.finished = frame["finished_reason"].as_str().unwrap().to_owned();
                self.tokens += frame["usage"]["total_tokens"].as_u64().unwrap();
            }
            _ => {}
        }
    }
}

/// A plan of these steps, made in this manner.
fn plan(mode: &str, steps: &Value) -> Script {
    calls("c1", PLAN, &json!({"objective": "All of it", "execution_mode": mode, "plan": {"steps": steps}}))
}

#[tokio::test]
async fn a_page_goes_through_its_day_with_its_cookie() {
    let next: Turns = Arc::new(Mutex::new(VecDeque::new()));
    let say = |turns: Vec<Script>| next.lock().unwrap().extend(turns);
    let model = over(next.clone(), |name, _| (name == "reviewer").then(|| says(r#"{"verdict": "approved"}"#))).await;
    let settings = [&HELPERS[..], &[("AUTH__COOKIE", "session")]].concat();
    let set = Set::over(model, Upstream::choosing(project).await, &settings).await;

    // First turns, before any place is known.
    let mut page = Page::open(&set, "global");
    say(vec![says("Hello."), turn().call("c1", "list_onto_tasks", &json!({})).done(), says("One task: Dig.")]);
    assert_eq!(page.send("Hello").await, "Hello.");
    let first = page.session["id"].clone();
    assert_eq!(page.send("What is there?").await, "One task: Dig.");
    assert_eq!(page.session["id"], first, "the session goes on");
    assert_eq!(page.seen.results, [("list_onto_tasks".to_owned(), true)]);
    assert!(!page.last_turn.is_null(), "what was looked at goes with the next message");

    // A project is made, and the page is there with its next message.
    let made = json!({"project": {"name": "Garden", "type_key": "project.home.garden"}});
    say(vec![calls("c1", "create_onto_project", &made), says("It is there."), says("In the garden.")]);
    let mut page = Page::open(&set, "project_create");
    assert_eq!(page.send(CLEAR).await, "It is there.");
    assert_eq!(page.place, (json!("project"), json!("p1")));
    assert!(page.seen.toasts.iter().any(|toast| toast == "Garden success"), "{:?}", page.seen.toasts);
    assert_eq!(page.send("Where am I?").await, "In the garden.");

    // It looks at a task: a tool by its name, and one that fails, which is not the turn's failure.
    page.focus = json!({"focusType": "task", "focusEntityId": "t1", "focusEntityName": "Dig", "projectId": "p1", "projectName": "Garden"});
    let look = |task: &str| turn().call("c1", "get_onto_task_details", &json!({"task_id": task})).done();
    say(vec![look("t1"), look("t404"), says("Only Dig.")]);
    assert_eq!(page.send("Look closer").await, "Only Dig.");
    let looked = "get_onto_task_details".to_owned();
    assert_eq!(page.seen.results, [(looked.clone(), true), (looked, false)]);
    assert_eq!((page.seen.error.as_deref(), page.seen.finished.as_str()), (None, "stop"));
    assert_eq!(page.focus["focusEntityId"], "t1");

    // Plans: one that runs, one that fails, a draft, and one that is reviewed.
    let water = json!([
        {"stepNumber": 1, "type": "research", "description": "List", "tools": ["list_onto_tasks"]},
        {"stepNumber": 2, "type": "action", "description": "Water", "tools": ["create_onto_task"],
         "arguments": {"title": "Water"}, "dependsOn": [1]},
    ]);
    let lost = json!([
        {"stepNumber": 1, "type": "research", "tools": ["get_onto_task_details"], "arguments": {"task_id": "t404"}},
        {"stepNumber": 2, "type": "action", "tools": ["create_onto_task"], "arguments": {"title": "Never"}, "dependsOn": [1]},
    ]);
    let rows = [
        ("auto_execute", &water, vec!["created"], vec!["completed", "completed"], true),
        ("auto_execute", &lost, vec!["created"], vec!["failed", "skipped"], false),
        ("draft_only", &water, vec!["created", "waits"], vec![], true),
        ("agent_review", &water, vec!["created", "reviewed"], vec!["completed", "completed"], true),
    ];
    for (mode, steps, told, ends, went_well) in rows {
        say(vec![plan(mode, steps), says("So.")]);
        assert_eq!(page.send("Go").await, "So.", "{mode}");
        assert_eq!(
            (&page.seen.plan, &page.seen.steps),
            (&told, &ends.into_iter().map(str::to_owned).collect()),
            "{mode}"
        );
        assert_eq!(page.seen.results.last(), Some(&(PLAN.to_owned(), went_well)), "{mode}");
        assert_eq!(page.seen.finished, "stop", "{mode}");
    }
    let written = set.lines().iter().filter(|line| line.starts_with("POST /api/onto/tasks/create")).count();
    assert_eq!(written, 2, "by the plan that ran and the one that was approved");

    // Stopped by leaving, then superseded by a message of the same moment.
    say(vec![turn().text("Once upon").hangs(), turn().text("A second").hangs(), says("Short.")]);
    let (response, _) = page.begin("A long story", "Once upon").await;
    drop(response);
    set.s.model.clients_gone(1).await;
    let (response, mut told) = page.begin("Another", "A second").await;
    let (rest, answer) = tokio::join!(response.text(), page.send("A short one"));
    told.push_str(&rest.unwrap());
    assert_eq!(answer, "Short.");
    let last = read(&told).pop().unwrap();
    assert_eq!(last["finished_reason"], "cancelled", "{last}");
    page.tokens += last["usage"]["total_tokens"].as_u64().unwrap();

    // A model that breaks off loses the turn, not the session.
    say(vec![turn().text("Half").breaks(), says("Whole.")]);
    assert_eq!(page.send("Once more").await, "Half");
    assert!(page.seen.error.is_some() && page.seen.finished == "error");
    assert_eq!(page.send("And now?").await, "Whole.");

    // The page is loaded again: it finds its session and its rows, and goes on in its place.
    let id = page.session["id"].as_str().unwrap().to_owned();
    let list = page.get("/api/agent/stream").await;
    assert_eq!(list["sessions"][0]["id"], id.as_str());
    let kept = page.get(&format!("/api/chat/sessions/{id}?includeVoiceNotes=1")).await;
    let said: Vec<&str> =
        kept["messages"].as_array().unwrap().iter().map(|row| row["content"].as_str().unwrap()).collect();
    assert_eq!((said.first(), said.last()), (Some(&CLEAR), Some(&"Whole.")));
    let mut again = Page::open(&set, "global");
    again.session = kept["session"].clone();
    again.place = (again.session["context_type"].clone(), again.session["entity_id"].clone());
    again.tokens = page.tokens;
    assert_eq!(again.place, (json!("project"), json!("p1")));
    say(vec![says("Still here.")]);
    again.focus = again.session["agent_metadata"]["focus"].clone();
    assert_eq!(again.focus["focusEntityId"], "t1", "kept with the session");
    assert_eq!(again.send("Still there?").await, "Still here.");
    assert_eq!(again.focus["focusEntityId"], "t1");

    // An audit of the same project, and another agent that speaks with it until it has what it wants.
    again.place.0 = json!("project_audit");
    say(vec![says("All is well.")]);
    assert_eq!(again.send("Audit it").await, "All is well.");
    let mut history = Vec::new();
    for (asks, answer) in [("Which tasks are late?", "None."), ("Which are next?", "Dig.")] {
        say(vec![says(asks), says(answer)]);
        let body = json!({
            "agentId": "actionable_insight_agent", "projectId": "p1", "goal": "Find what is late", "history": history,
        });
        let response = again.request(Method::POST, "/api/agentic-chat/agent-message").json(&body).send().await.unwrap();
        let asked = response.json::<Value>().await.unwrap()["data"]["message"].as_str().unwrap().to_owned();
        assert_eq!(asked, asks);
        assert_eq!(again.send(&asked).await, answer);
        history.extend([json!({"role": "agent", "content": asks}), json!({"role": "buildos", "content": answer})]);
    }

    // What all its turns have used is what the session has.
    let row = again.get(&format!("/api/agent/stream?session_id={id}")).await;
    assert_eq!(row["session"]["total_tokens_used"], again.tokens);
    assert!(next.lock().unwrap().is_empty(), "all that the model was to say was asked for");
}
