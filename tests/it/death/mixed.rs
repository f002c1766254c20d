//! The same with everything in the mix that people decide: calls that wait for an approval, previews that are accepted, and tools
//! of the client, each followed by a write. Clients do what clients do: they ask again with their key until they are told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::kills::moments;
use super::{Client, Machine, message, said};
use crate::support::environment::{kills, seed};
use crate::support::model::{calls, messages, says, turn};
use crate::support::postgres::TestPostgres;
use crate::support::redis::TestRedis;
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;
use crate::tools::workflow;

/// About how long a round takes when nobody is killed, in milliseconds.
const ROUND_MS: u64 = 700;

/// How long anything may take that a client waits for: a claim of a dead process ends after a minute.
const PATIENCE: Duration = Duration::from_secs(100);

/// A tool that somebody lets through, and one that writes at once.
const TOOLS: &str = r#"
[[tool]]
name = "close_ticket"
description = "Closes a ticket for good."
approval = "user"
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/close"

[[tool]]
name = "note"
description = "Notes something about a ticket."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/note"
"#;

const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["close_ticket", "note", "preview_workflow"]
"#;

/// What a round is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Approval,
    Preview,
    ClientTool,
}

impl Kind {
    fn of(ticket: u64) -> Self {
        [Self::Approval, Self::Preview, Self::ClientTool][(ticket % 3) as usize]
    }

    /// What the user asks for.
    fn asks(self, ticket: u64) -> String {
        let verb = match self {
            Self::Approval => "close",
            Self::Preview => "plan",
            Self::ClientTool => "paint",
        };
        format!("{verb} {ticket}")
    }
}

/// How often the backend has got each key, and for what.
type Writes = Arc<Mutex<BTreeMap<String, Vec<u64>>>>;

/// Calls the tool that is asked for; notes what the client has painted; answers anything else at once.
fn model(request: &Request) -> Option<Answer> {
    let messages = messages(request);
    let last = messages.last().unwrap();
    let pause = Duration::from_millis(20);
    let script = match last["role"].as_str().unwrap() {
        "user" => {
            let question = last["content"].as_str().unwrap().lines().last().unwrap();
            match question.split_once(' ') {
                Some(("close", id)) => calls(&format!("close-{id}"), "close_ticket", &json!({"id": number(id)})),
                Some(("plan", id)) => {
                    let plan = json!({"workflow": workflow::small(&format!("Plan {id}")), "description": "d"});
                    calls(&format!("plan-{id}"), "preview_workflow", &plan)
                }
                Some(("paint", id)) => calls(&format!("paint-{id}"), "paint", &json!({"id": number(id)})),
                _ => says("Fine."),
            }
        }
        // Its call stands there again under an id of the server's.
        "tool" if last["content"].as_str().unwrap().contains("painted") => {
            let arguments = messages[messages.len() - 2].pointer("/tool_calls/0/function/arguments").unwrap();
            let arguments: Value = serde_json::from_str(arguments.as_str().unwrap()).unwrap();
            calls(&format!("note-{}", arguments["id"]), "note", &arguments)
        }
        "tool" => says("It is done."),
        role => panic!("a {role} message is last"),
    };
    Some(turn().text("At once. ").answer().later(pause, script.bytes()))
}

fn number(id: &str) -> u64 {
    id.parse().unwrap()
}

/// A backend that takes its time and counts.
async fn counting(writes: &Writes) -> Upstream {
    let writes = writes.clone();
    let count = move |request: &Request| {
        let path = request.path.as_str();
        let ticket = match path.strip_prefix("/v1/tickets/") {
            Some(rest) => number(rest.split('/').next().unwrap()),
            None if request.method != "GET" && !path.contains("dry_run") => {
                number(request.json()["name"].as_str()?.strip_prefix("Plan ")?)
            }
            None => return workflow::plain(request),
        };
        let key = request.header("idempotency-key").unwrap().to_owned();
        writes.lock().unwrap().entry(key).or_default().push(ticket);
        let answer = json!({"id": format!("saved-{ticket}"), "closed": true}).to_string();
        Some(Answer::ok("application/json", "").later(Duration::from_millis(20), answer))
    };
    Upstream::choosing(count).await
}

/// A client that does not give up before it is told.
struct Stubborn<'a>(&'a Client);

/// An answer: its status, its run and conversation if it names them, and its body, which may have broken off.
struct Told {
    status: u16,
    run: Option<String>,
    conversation: Option<String>,
    body: String,
}

impl Told {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    fn code(&self) -> String {
        let body = self.json();
        let code = if body["error"].is_object() { &body["error"]["code"] } else { &body["code"] };
        code.as_str().unwrap_or_default().to_owned()
    }
}

impl Stubborn<'_> {
    /// Asks until there is an answer that would be the same again.
    async fn ask(&self, method: Method, path: &str, key: Option<&str>, body: Option<&Value>) -> Told {
        let (end, mut newest) = (Instant::now() + PATIENCE, String::new());
        loop {
            let mut request = self.0.request(method.clone(), path);
            request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
            request = body.into_iter().fold(request, |request, body| request.json(body));
            if let Ok(response) = request.send().await {
                let status = response.status().as_u16();
                let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
                let (run, conversation) = (header("x-run-id"), header("x-conversation-id"));
                let body = response.text().await;
                let is_whole = body.is_ok();
                let told = Told { status, run, conversation, body: body.unwrap_or_default() };
                // The same key finds the run that died, however often it is asked.
                let is_later = match status {
                    503 => told.code() != "interrupted",
                    409 => told.code() == "conversation_busy",
                    _ => false,
                };
                if !is_later && (is_whole || told.run.is_some()) {
                    return told;
                }
                newest = format!("{} {}", told.status, told.body);
            }
            assert!(Instant::now() < end, "{method} {path} {body:?}: {newest}");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    async fn read(&self, path: &str) -> Value {
        loop {
            let told = self.ask(Method::GET, path, None, None).await;
            assert_eq!(told.status, 200, "{path}: {}", told.body);
            // The process may have died in the middle of it.
            if let Ok(body) = serde_json::from_str(&told.body) {
                return body;
            }
        }
    }

    /// The run once it has ended.
    async fn ended(&self, run: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let told = self.read(&format!("/v1/agent/runs/{run}")).await;
            if told["finished_at"].is_string() {
                return told["state"].as_str().unwrap().to_owned();
            }
            assert!(Instant::now() < end, "{run} is stuck: {told}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// What waits for a decision in the conversation.
    async fn waiting(&self, conversation: &str) -> Option<String> {
        let list = self.read("/v1/agent/approvals").await;
        let item = list["items"].as_array().unwrap().iter().find(|item| item["conversation_id"] == conversation);
        item.map(|item| item["approval_id"].as_str().unwrap().to_owned())
    }

    /// A message, to the end of its run: its state.
    async fn says(&self, conversation: &str, text: &str, key: &str) -> String {
        let mut body = message(conversation, text);
        body["background"] = json!(true);
        let told = self.ask(Method::POST, "/v1/agent/chat", Some(key), Some(&body)).await;
        assert!(matches!(told.status, 200 | 410), "{}: {}", told.status, told.body);
        self.ended(&told.run.expect("either names the run")).await
    }

    /// Lets the call through until it is made, or nobody knows whether it was.
    async fn approves(&self, ticket: u64, conversation: &str) -> Vec<String> {
        let mut states = vec![self.says(conversation, &Kind::Approval.asks(ticket), &format!("ask-{ticket}")).await];
        for round in 0..10 {
            let Some(approval) = self.waiting(conversation).await else { return states };
            let body = json!({"decision": "approve", "background": true});
            let key = format!("approve-{ticket}-{round}");
            let told =
                self.ask(Method::POST, &format!("/v1/agent/approvals/{approval}"), Some(&key), Some(&body)).await;
            match (told.status, told.run.as_deref()) {
                (200 | 410, Some(run)) => states.push(self.ended(run).await),
                (409, _) if told.code() == "already_decided" => {}
                _ => panic!("{ticket}: {}: {}", told.status, told.body),
            }
        }
        panic!("{ticket}: it still waits: {states:?}");
    }

    /// Accepts the preview; whether that was told. A claim of a process that died is not waited for here.
    async fn accepts(&self, preview: &str) -> bool {
        let path = format!("/v1/agent/previews/{preview}/decision");
        let told = self.ask(Method::POST, &path, None, Some(&json!({"decision": "accept"}))).await;
        match told.status {
            200 => true,
            // Decided, or about to be; or it was not made.
            409 | 502 => false,
            _ => panic!("{preview}: {}: {}", told.status, told.body),
        }
    }

    /// Asks, paints, and says so: how the runs ended that were heard of, and where that was.
    async fn paints(&self, ticket: u64) -> (Vec<String>, Option<String>) {
        let tools = json!([{"type": "function", "function": {"name": "paint", "description": "Paints.",
            "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}}}}]);
        let question = json!({"role": "user", "content": Kind::ClientTool.asks(ticket)});
        let mut body = json!({"model": "tickets", "messages": [question], "tools": tools});
        let told = self.ask(Method::POST, "/v1/chat/completions", Some(&format!("paint-{ticket}")), Some(&body)).await;
        let answer = told.json().pointer("/choices/0/message").cloned().unwrap_or_default();
        let (mut states, conversation) = (Vec::new(), told.conversation.clone());
        if let Some(run) = &told.run {
            states.push(self.ended(run).await);
        }
        if told.status != 200 || answer["tool_calls"][0]["id"].is_null() {
            // Its run died before the client was asked to paint.
            return (states, conversation);
        }
        let result = json!({"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "painted"});
        body["messages"].as_array_mut().unwrap().extend([answer, result]);
        let told =
            self.ask(Method::POST, "/v1/chat/completions", Some(&format!("painted-{ticket}")), Some(&body)).await;
        assert!(told.status < 500 || !told.body.is_empty(), "{ticket}: {}: {}", told.status, told.body);
        if let Some(run) = &told.run {
            states.push(self.ended(run).await);
        }
        (states, conversation)
    }
}

/// What a client knows of a round.
struct Round {
    ticket: u64,
    conversation: String,
    /// How the runs ended that it heard of.
    states: Vec<String>,
    /// The preview that it has accepted, or was about to.
    preview: Option<String>,
}

async fn played(client: &Client, ticket: u64) -> Round {
    let client = Stubborn(client);
    let conversation = format!("c-{ticket}");
    let mut round = Round { ticket, conversation, states: Vec::new(), preview: None };
    match Kind::of(ticket) {
        Kind::Approval => round.states = client.approves(ticket, &round.conversation).await,
        Kind::Preview => {
            let asks = Kind::Preview.asks(ticket);
            round.states.push(client.says(&round.conversation, &asks, &format!("ask-{ticket}")).await);
            round.preview = client.waiting(&round.conversation).await;
            if let Some(preview) = &round.preview {
                client.accepts(preview).await;
            }
        }
        Kind::ClientTool => {
            let (states, conversation) = client.paints(ticket).await;
            // Where nobody was told of a conversation there is none to go on with.
            (round.states, round.conversation) = (states, conversation.unwrap_or_default());
        }
    }
    round
}

fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

async fn killed_in_the_mix(settings: &[(&'static str, &str)]) {
    let seed = seed();
    println!("SWITCHBOARD_TEST_SEED={seed}");
    let mut moments = moments(seed, ROUND_MS);
    let writes = Writes::default();
    let (model, backend) = (Upstream::choosing(model).await, counting(&writes).await);
    // One address, so that clients find the process again.
    let address = free_address();
    let all = [&[("RUNS__LEASE_S", "5"), ("SERVER__BIND", &*address)], settings].concat();
    let machine = Machine::new(&model, &backend, &all);
    machine.folder.write("config/tools/tickets.toml", TOOLS);
    machine.folder.write("config/profiles/tickets.toml", PROFILE);
    let token = machine.token();
    let mut serving = machine.serve();
    let client = Client::of(&serving, &token);
    let mut rounds = Vec::new();
    // A round has all that people decide in it, and takes ten times as long as one of plain runs.
    for ticket in 0..kills().div_ceil(10) as u64 {
        let killing = async {
            tokio::time::sleep(moments.next().unwrap()).await;
            serving.kill();
            serving = machine.serve();
        };
        let (round, ()) = tokio::join!(played(&client, ticket), killing);
        rounds.push(round);
    }
    let count = |ticket: u64| {
        let writes = writes.lock().unwrap();
        let of_it = writes.iter().filter(|(_, tickets)| tickets.contains(&ticket));
        of_it.map(|(key, tickets)| (key.clone(), tickets.len())).collect::<Vec<_>>()
    };
    let (mut written, mut repeated) = (0, 0);
    for Round { ticket, conversation, states, preview } in &rounds {
        let kind = Kind::of(*ticket);
        if let Some(preview) = preview {
            // Whoever died with the claim keeps it for a minute; then it can be decided.
            eventually_decided(&client, preview).await;
        }
        let sent = count(*ticket);
        assert!(sent.len() < 2, "{ticket} {kind:?} was written under two keys: {sent:?}, {states:?}");
        written += sent.len();
        match (kind, &sent[..]) {
            // A save is the same save under its key, however often it comes.
            (Kind::Preview, [(_, times)]) => repeated += times - 1,
            (Kind::Preview, []) => assert!(preview.is_none(), "{ticket}: it was accepted, and is not saved"),
            (_, [(key, times)]) => assert_eq!(*times, 1, "{ticket} {kind:?}: {key} was sent twice"),
            (Kind::Approval, []) => assert_ne!(states.last().unwrap(), "completed", "{ticket}: it is lost"),
            // What it has painted was taken, and noted by the run that went on with it.
            (Kind::ClientTool, []) => {
                assert!(states.len() < 2 || states[1] != "completed", "{ticket}: what was painted is lost: {states:?}");
            }
            (_, _) => {}
        }
        if !conversation.is_empty() {
            goes_on(&client, &model, *ticket, conversation).await;
        }
    }
    println!("{} rounds, {written} writes, {repeated} saves came again under their key", rounds.len());
    assert!(written > rounds.len() / 10, "the moments of death have something to do with the runs");
}

/// Decides the preview, whoever has died with it.
async fn eventually_decided(client: &Client, preview: &str) {
    let client = Stubborn(client);
    let end = Instant::now() + PATIENCE;
    while client.ask(Method::GET, &format!("/v1/agent/previews/{preview}"), None, None).await.status == 200 {
        if client.accepts(preview).await {
            return;
        }
        assert!(Instant::now() < end, "{preview} is stuck");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Asks on in the conversation: what was said before is there once.
async fn goes_on(client: &Client, model: &Upstream, ticket: u64, conversation: &str) {
    let question = format!("check {ticket}");
    eventually(&format!("{conversation} can be gone on with"), async || {
        let response = client.chat(&message(conversation, &question)).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        (status != 409).then(|| assert!(status == 200 && text.contains("message_complete"), "{status}: {text}"))
    })
    .await;
    let requests = model.requests();
    let lines = requests.iter().map(said).find(|lines| lines.last().unwrap().ends_with(&question)).unwrap();
    let asked = lines.iter().filter(|line| line.starts_with("user: ")).flat_map(|line| line[6..].lines());
    let asks = Kind::of(ticket).asks(ticket);
    assert_eq!(asked.filter(|line| *line == asks).count(), 1, "{ticket}: {lines:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_decide_is_done_once_though_processes_are_killed() {
    killed_in_the_mix(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_decide_is_done_once_on_postgresql_and_redis() {
    let (Some(postgres), Some(redis)) = (TestPostgres::shared(), TestRedis::start()) else { return };
    let (database, redis_url) = (postgres.new_database().await, redis.url());
    killed_in_the_mix(&[("STORE__URL", &database.url), ("EVENTS__URL", &redis_url)]).await;
}
