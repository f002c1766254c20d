//! A model that is wholly the attacker's, a backend that lies, and clients that forge: in every story the backend has seen
//! exactly the writes that somebody let through, nobody else was spoken to, and the token went nowhere. Each attack is a row;
//! where it makes sense it has a control, the same call done properly, which does write.

mod addresses;
mod backends;
mod bodies;
mod bounds;
mod clients;
mod fences;
mod models;
mod smuggling;
mod strangers;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::app::{ADA, TestApp};
use crate::support::frames::{self, Frame};
use crate::support::model::{Script, says};
use crate::support::tickets::{started, write};
use crate::support::upstream::{Answer, Request, Upstream};

const FILES: [(&str, &str); 5] = [
    (
        "profiles/tickets.toml",
        r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["close_ticket", "refund", "get_ticket", "search", "tagged", "assign", "wipe", "charge", "get_payload", "show"]
payload_types = ["query"]
"#,
    ),
    ("profiles/admin.toml", "id = \"admin\"\ncontext_type = \"admin\"\nroles = [\"root\"]\ntools = [\"purge\"]\n"),
    ("profiles/any.toml", "id = \"any\"\npage = \"*\"\ntools = [\"close_ticket\", \"wipe\"]\n"),
    (
        "payloads/query.toml",
        "[[payload_type]]\nname = \"query\"\ndescription = \"A query\"\nmarker = \"QUERY:\"\ninstructions = \"Write one.\"\n\
         [[payload_type]]\nname = \"secret\"\ndescription = \"Of another screen\"\nmarker = \"SECRET:\"\ninstructions = \"No.\"\n",
    ),
    ("tools/tickets.toml", TOOLS),
];

/// Everything that writes needs somebody's approval, and ids are of any type, as attackers like them.
const TOOLS: &str = r#"
[[tool]]
name = "close_ticket"
description = "Closes a ticket."
approval = "user"
input_schema = { type = "object", properties = { id = {}, reason = { type = "string" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/close"

[[tool]]
name = "refund"
description = "Pays money back."
approval = "role:chief"
input_schema = { type = "object", properties = { amount = { type = "number" } }, required = ["amount"] }
[tool.request]
method = "POST"
path = "/v1/refunds"

[[tool]]
name = "get_ticket"
description = "Reads a ticket."
input_schema = { type = "object", properties = { id = {} }, required = ["id"] }
[tool.request]
path = "/v1/tickets/{id}"

[[tool]]
name = "search"
description = "Searches."
input_schema = { type = "object", properties = { q = { type = "string" } } }
[tool.request]
path = "/v1/search"
query = { q = "{{ args.q }}" }

[[tool]]
name = "tagged"
description = "Reads with a tag."
input_schema = { type = "object", properties = { tag = { type = "string" } } }
[tool.request]
path = "/v1/tagged"
headers = { x-tag = "{{ args.tag }}" }

[[tool]]
name = "assign"
description = "Gives a ticket to somebody."
approval = "user"
input_schema = { type = "object", properties = { id = {}, person = { type = "string" } }, required = ["id", "person"] }
[tool.resolve.person]
path = "/v1/people"
id = "id"
name = "name"
[tool.request]
method = "PUT"
path = "/v1/tickets/{id}/owner/{person}"

[[tool]]
name = "wipe"
description = "Deletes everything."
roles = ["root"]
approval = "user"
[tool.request]
method = "POST"
path = "/v1/wipe"

[[tool]]
name = "charge"
description = "Charges the account on the screen."
approval = "user"
input_schema = { type = "object", properties = { amount = { type = "number" } }, additionalProperties = false }
[tool.inject]
account = "{{ context.account }}"
[tool.request]
method = "POST"
path = "/v1/charges"

[[tool]]
name = "show"
description = "Shows a query."
input_schema = { type = "object", properties = { n = { type = "integer" } } }
[tool.request]
path = "/v1/shown"
[tool.result]
payload = "query"

[[tool]]
name = "purge"
description = "Deletes more."
approval = "user"
[tool.request]
method = "DELETE"
path = "/v1/everything"
"#;

/// One attack.
pub struct Attack {
    pub name: &'static str,
    /// What the model says, turn by turn; after that it says "Done.".
    pub steps: Vec<Script>,
    pub client: Client,
    /// The writes that somebody lets through, as lines.
    pub writes: Vec<&'static str>,
    /// How many calls are shown for approval in the first run.
    pub held: usize,
    /// Events that no run of the story may have.
    pub never: Vec<&'static str>,
    pub control: Option<Control>,
}

/// What the client does.
pub enum Client {
    /// Says something where the tickets are.
    Says,
    /// Says something with these fields in its request.
    Sends(Value),
    /// Says something, and then this happens.
    Then(Vec<Then>),
    /// Sends this to another route at once.
    Speaks(&'static str, Value),
}

/// What happens after the first run.
pub enum Then {
    /// The user says this in the same conversation.
    Says(&'static str),
    /// Somebody decides the call that waits, or says so in a body of their own; this is the answer's status.
    Decides(Who, Value, u16),
    /// Ada sends this; `{approval}`, `{digest}` and `{conversation}` stand for those of the story. The status is below 500.
    Posts(&'static str, Value),
    /// Ada deletes the conversation.
    Deletes,
}

/// Who speaks.
#[derive(Clone, Copy)]
pub enum Who {
    Ada,
    /// Another user.
    Ben,
    /// Another user, with the role that lets refunds through.
    Chief,
    /// The same of another tenant.
    ForeignChief,
    /// Somebody of another tenant with Ada's name.
    ForeignAda,
    /// Ada with the role that lets her wipe.
    Root,
}

/// The first step of the attack again, properly: who says it where, and approves what is shown; and the writes that come.
pub struct Control {
    pub who: Who,
    pub screen: &'static str,
    /// Who has to let it through before.
    pub granted_by: Option<Who>,
    pub writes: Vec<&'static str>,
}

/// An attack whose client only says something, and after which nothing is written.
pub fn attack(name: &'static str, steps: impl IntoIterator<Item = Script>) -> Attack {
    let (writes, never) = (Vec::new(), vec!["workflow_preview", "table_config_preview", "suggestions", "payload"]);
    Attack { name, steps: steps.into_iter().collect(), client: Client::Says, writes, held: 0, never, control: None }
}

impl Attack {
    /// With so many calls that are shown for approval.
    pub fn held(self, held: usize) -> Self {
        Self { held, ..self }
    }

    pub fn client(self, client: Client) -> Self {
        Self { client, ..self }
    }

    pub fn then(self, then: impl IntoIterator<Item = Then>) -> Self {
        self.client(Client::Then(then.into_iter().collect()))
    }

    pub fn writes(self, writes: &[&'static str]) -> Self {
        Self { writes: writes.to_vec(), ..self }
    }

    /// With the control that Ada approves the call.
    pub fn control(self, write: &'static str) -> Self {
        self.control_by(Who::Ada, "tickets", None, write)
    }

    pub fn control_by(self, who: Who, screen: &'static str, granted_by: Option<Who>, write: &'static str) -> Self {
        Self { control: Some(Control { who, screen, granted_by, writes: vec![write] }), ..self }
    }
}

/// The product among enemies.
pub struct World {
    pub app: TestApp,
    pub model: Upstream,
    pub backend: Upstream,
    /// Every other origin; nobody has business there.
    pub trap: Upstream,
    plan: Arc<Mutex<VecDeque<Answer>>>,
    stories: AtomicUsize,
}

impl World {
    /// With a backend that lies.
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// The same with more settings.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().unwrap();
        for (path, text) in FILES {
            write(&data, path, text);
        }
        let trap = Upstream::choosing(|_| Some(Answer::ok("application/json", "{}"))).await;
        let plan: Arc<Mutex<VecDeque<Answer>>> = Arc::default();
        let next = Arc::clone(&plan);
        let model = Upstream::choosing(move |_| {
            let planned = next.lock().unwrap().pop_front();
            Some(planned.unwrap_or_else(|| says("Done.").answer()))
        })
        .await;
        let elsewhere = trap.url();
        let backend = Upstream::choosing(move |request| Some(backends::answer(request, &elsewhere))).await;
        let mut all = vec![("BACKEND__TIMEOUT_S", "2"), ("LIMITS__BACKEND_ANSWER_BYTES", "1048576")];
        all.extend(settings);
        let app = started(data, (&model, &format!("{}/api", backend.url())), &all).await;
        Self { app, model, backend, trap, plan, stories: AtomicUsize::new(0) }
    }

    /// What the model says next.
    pub fn plan(&self, steps: &[Script]) {
        *self.plan.lock().unwrap() = steps.iter().cloned().map(Script::answer).collect();
    }

    pub fn token(&self, who: Who) -> String {
        match who {
            Who::Ada => self.app.token.clone(),
            Who::Ben => self.app.token_of("ben", None, &["USER", "ADMIN"]),
            Who::Chief => self.app.token_of("cy", None, &["chief"]),
            Who::ForeignChief => self.app.token_of("cy", Some("other"), &["chief"]),
            Who::ForeignAda => self.app.token_of(ADA, Some("other"), &["USER", "ADMIN", "chief"]),
            Who::Root => self.app.token_of(ADA, None, &["USER", "root"]),
        }
    }

    /// The frames of a message, which end with one terminal event.
    pub async fn say(&self, who: Who, body: &Value) -> Vec<Frame> {
        let response = self.app.post_as(&self.token(who), body).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{text}");
        ended(&text)
    }

    /// The writes that the backend got since it had `before` requests, as lines; dry runs are none.
    pub fn writes(&self, before: usize) -> Vec<String> {
        let requests = self.backend.requests().split_off(before);
        let writes =
            requests.into_iter().filter(|request| request.method != "GET" && !request.path.ends_with("?dry_run=true"));
        writes.map(|request| format!("{} {}", request.method, request.path)).collect()
    }

    /// Plays an attack and its control.
    pub async fn play(&self, attack: Attack) {
        let Attack { name, steps, client, writes, held, never, control } = attack;
        println!("{name}");
        let before = self.backend.requests().len();
        let conversation = format!("story-{}", self.stories.fetch_add(1, Ordering::Relaxed));
        self.plan(&steps);
        let frames = self.act(name, &conversation, client).await;
        let shown = frames.iter().filter(|frame| frame.event == "approval_request").count();
        assert_eq!(shown, held, "{name}: what was shown for approval: {frames:#?}");
        for event in never {
            assert!(!frames.iter().any(|frame| frame.event == event), "{name}: {event} in {frames:#?}");
        }
        assert_eq!(self.writes(before), writes, "{name}: the writes that the backend got");
        self.is_safe(name);
        let Some(Control { who, screen, granted_by, writes }) = control else { return };
        let before = self.backend.requests().len();
        self.plan(&steps[..1]);
        let frames =
            self.say(who, &json!({"message": "Go", "context_type": screen, "conversation_id": "control"})).await;
        let id = frames::data(&frames, "approval_request")["approval_id"].as_str().unwrap().to_owned();
        if let Some(chief) = granted_by {
            assert_eq!(self.decide(chief, &id, &json!({"decision": "approve"})).await.0, 200, "{name}: granted");
        }
        let (status, told) = self.decide(who, &id, &json!({"decision": "approve"})).await;
        assert_eq!(
            (status, self.writes(before)),
            (200, writes.into_iter().map(str::to_owned).collect()),
            "{name}: {told}"
        );
    }

    /// What a decision is answered.
    pub async fn decide(&self, who: Who, id: &str, body: &Value) -> (u16, String) {
        let url = self.app.url(&format!("/v1/agent/approvals/{id}"));
        let response = self.app.http.post(url).bearer_auth(self.token(who)).json(body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn act(&self, name: &str, conversation: &str, client: Client) -> Vec<Frame> {
        let body =
            |screen: &str| json!({"message": "Help me", "context_type": screen, "conversation_id": conversation});
        match client {
            Client::Says => self.say(Who::Ada, &body("tickets")).await,
            Client::Sends(more) => {
                let mut body = body("tickets");
                more.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
                self.say(Who::Ada, &body).await
            }
            Client::Speaks(path, body) => {
                self.post(name, path, &body).await;
                Vec::new()
            }
            Client::Then(then) => {
                let frames = self.say(Who::Ada, &body("tickets")).await;
                let shown = frames.iter().find(|frame| frame.event == "approval_request").map(|frame| &frame.data);
                let of = |key: &str| shown.and_then(|shown| shown[key].as_str()).unwrap_or("none").to_owned();
                let (approval, digest) = (of("approval_id"), of("digest"));
                let filled = |text: &str| {
                    let text = text.replace("{approval}", &approval).replace("{digest}", &digest);
                    text.replace("{conversation}", conversation)
                };
                for then in then {
                    match then {
                        Then::Says(words) => {
                            let mut body = body("tickets");
                            body["message"] = json!(words);
                            self.say(Who::Ada, &body).await;
                        }
                        Then::Decides(who, body, status) => {
                            let body: Value = serde_json::from_str(&filled(&body.to_string())).unwrap();
                            let (got, told) = self.decide(who, &approval, &body).await;
                            assert_eq!(got, status, "{name}: {told}");
                        }
                        Then::Posts(path, body) => {
                            let body: Value = serde_json::from_str(&filled(&body.to_string())).unwrap();
                            self.post(name, &filled(path), &body).await;
                        }
                        Then::Deletes => {
                            let url = self.app.url(&format!("/v1/agent/conversations/{conversation}"));
                            let gone = self.app.http.delete(url).bearer_auth(&self.app.token).send().await.unwrap();
                            assert_eq!(gone.status(), 204, "{name}");
                        }
                    }
                }
                frames
            }
        }
    }

    async fn post(&self, name: &str, path: &str, body: &Value) {
        let response =
            self.app.http.post(self.app.url(path)).bearer_auth(&self.app.token).json(body).send().await.unwrap();
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        assert!(status < 500, "{name}: {path} {status} {text}");
    }

    /// Nobody else was spoken to, the backend was asked below its root alone, and no model and no client saw the token.
    pub fn is_safe(&self, name: &str) {
        assert_eq!(self.trap.connections(), 0, "{name}: somebody else was spoken to: {:?}", self.trap.requests());
        for request in self.backend.requests() {
            assert!(request.path.starts_with("/api/v1/"), "{name}: {}", request.path);
            assert_eq!(request.header("host"), self.backend.url().strip_prefix("http://"), "{name}");
            assert_eq!(request.header("cookie"), None, "{name}");
        }
        let token = &self.app.token;
        for Request { headers, body, .. } in self.model.requests() {
            let is_told = headers.iter().any(|(_, value)| value.contains(token.as_str()))
                || String::from_utf8_lossy(&body).contains(token.as_str());
            assert!(!is_told, "{name}: the model got the token");
        }
    }
}

/// The frames of a stream with one terminal event, the last.
pub fn ended(text: &str) -> Vec<Frame> {
    let frames = frames::parse(text);
    let ends: Vec<usize> =
        (0..frames.len()).filter(|at| matches!(&*frames[*at].event, "message_complete" | "error")).collect();
    assert_eq!(ends, [frames.len() - 1], "one end, the last: {frames:#?}");
    frames
}

/// How many attacks there are at least.
const ATTACKS: usize = 60;

#[test]
fn there_are_enough_attacks_and_no_two_are_the_same() {
    let all = [models::attacks(), clients::attacks(), backends::attacks()].into_iter().flatten();
    let mut names: Vec<&str> = all.map(|attack| attack.name).collect();
    assert!(names.len() >= ATTACKS, "{}", names.len());
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
