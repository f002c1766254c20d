//! Two replicas on one PostgreSQL, one of which is ten minutes late and the other ten minutes early: what becomes of
//! directives and plans. Only the database's clock can say when something is due, and whoever writes, it is once.

use std::collections::BTreeMap;

use reqwest::Response;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use super::clock::{WrongClock, library};
use crate::death::{Client, Machine, backend, end_of, message, rest, without_ids};
use crate::support::frames;
use crate::support::model::{calls, messages, says};
use crate::support::postgres::{TestDatabase, TestPostgres};
use crate::support::process::Serving;
use crate::support::redis::TestRedis;
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;

const APART_S: i64 = 600;

const TOOLS: &str = r#"
[[tool]]
name = "send"
description = "Sends something."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
request = { method = "POST", path = "/v1/sent/{id}" }
[tool.directive]
name = "post.send"
runs_as = "service"
wait_s = 30

[[tool]]
name = "pay"
description = "Pays money."
approval = "role:chief"
not_requester = true
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
request = { method = "POST", path = "/v1/paid/{id}" }
[tool.directive]
name = "post.pay"
runs_as = "service"

[[tool]]
name = "erase"
description = "Erases something."
approval = "user"
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
request = { method = "DELETE", path = "/v1/things/{id}" }
"#;

const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["close_ticket", "send", "pay", "erase"]
[plan]
"#;

/// The replicas and what they work with.
struct Apart {
    late: Serving,
    early: Serving,
    model: Upstream,
    backend: Upstream,
    database: TestDatabase,
    library: std::path::PathBuf,
    machines: [Machine; 2],
    _redis: TestRedis,
}

impl Apart {
    /// `None` when the tests go without what they need.
    async fn start() -> Option<Self> {
        let (library, postgres, redis) = (library()?, TestPostgres::shared()?, TestRedis::start()?);
        let database = postgres.new_database().await;
        let (model, backend) = (Upstream::choosing(model).await, backend().await);
        let redis_url = redis.url();
        let settings = [
            ("STORE__URL", database.url.as_str()),
            ("EVENTS__URL", &redis_url),
            ("RUNS__APPROVAL_S", "120"),
            ("BACKEND__SERVICE__MODE", "token"),
            ("BACKEND__SERVICE__TOKEN", "the-token-of-the-service"),
            ("DIRECTIVES__POLL_MS", "50"),
        ];
        let machines = [(); 2].map(|()| Machine::new(&model, &backend, &settings));
        for machine in &machines {
            machine.folder.write("config/tools/apart.toml", TOOLS);
            machine.folder.write("config/profiles/tickets.toml", PROFILE);
        }
        let late = WrongClock::of(&machines[0], &library, -APART_S).serve(&machines[0]);
        let early = WrongClock::of(&machines[1], &library, APART_S).serve(&machines[1]);
        Some(Self { late, early, model, backend, database, library, machines, _redis: redis })
    }

    /// This user's ways to both, by a token that is valid at either.
    fn clients(&self, user: &str, roles: &[&str]) -> [Client; 2] {
        let roles = roles.iter().flat_map(|role| ["--role", role]);
        let args: Vec<&str> = ["--user", user, "--ttl", "2h"].into_iter().chain(roles).collect();
        let token = self.machines[0].token_of(&args, |command| {
            command.env("LD_PRELOAD", &self.library).env("FAKETIME", "-1h");
        });
        [&self.late, &self.early].map(|serving| Client::of(serving, &token))
    }

    /// How often each thing was written.
    fn written(&self) -> BTreeMap<String, usize> {
        let mut written = BTreeMap::new();
        for request in self.backend.requests() {
            *written.entry(format!("{} {}", request.method, request.path)).or_default() += 1;
        }
        written
    }
}

/// Does what its user says in one line.
fn model(request: &Request) -> Option<Answer> {
    let messages = messages(request);
    let last = messages.last().unwrap();
    let question = last["content"].as_str().unwrap().lines().last().unwrap_or_default();
    let words: Vec<&str> = question.split(' ').collect();
    let plan = |mode: &str, steps: Value| {
        calls("c1", "create_plan", &json!({"objective": "All", "execution_mode": mode, "plan": {"steps": steps}}))
    };
    let step = |tool: &str, id: &str, needs: Value| {
        let id: u64 = id.parse().unwrap();
        json!({"type": "action", "tools": [tool], "arguments": {"id": id}, "depends_on": needs})
    };
    let turn = match (last["role"].as_str().unwrap(), &words[..]) {
        ("user", ["send", id]) => calls("c1", "send", &json!({"id": id.parse::<u64>().unwrap()})),
        ("user", ["draft", id]) => plan("draft_only", json!([step("close_ticket", id, json!([]))])),
        ("user", ["carry", plan]) => calls("c2", "create_plan", &json!({"plan_id": plan})),
        ("user", ["erase", id]) => {
            let steps = json!([step("close_ticket", id, json!([])), step("erase", id, json!([1]))]);
            plan("auto_execute", steps)
        }
        _ => says("Done."),
    };
    Some(turn.answer())
}

/// A time so many seconds from now, by the true clock.
fn in_seconds(seconds: i64) -> String {
    jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() + seconds).unwrap().to_string()
}

/// Requests a directive: its path.
async fn requested(client: &Client, name: &str, id: usize, at: Option<String>) -> String {
    let mut body = json!({"name": name, "payload": {"id": id}});
    if let Some(at) = at {
        body["scheduled_at"] = json!(at);
    }
    path_of(client.post("/v1/agent/directives", &body).await).await
}

async fn path_of(response: Response) -> String {
    let body: Value = response.json().await.unwrap();
    format!("/v1/agent/directives/{}", body["directive"]["id"].as_str().unwrap_or_else(|| panic!("{body}")))
}

async fn status(client: &Client, path: &str) -> Value {
    let directive: Value = client.get(path).await.json().await.unwrap();
    directive["status"].clone()
}

async fn until(client: &Client, path: &str, wanted: &str) {
    eventually(&format!("{path} is {wanted}"), async || (status(client, path).await == wanted).then_some(())).await;
}

/// The same three requests at once at both: how many were taken. The others are told that they came too late.
async fn taken_of_three(near: &Client, far: &Client, path: &str, body: &Value) -> usize {
    let tries = futures::future::join_all([far, near, far].map(|client| client.post(path, body))).await;
    let mut taken = 0;
    for response in tries {
        match response.status().as_u16() {
            200 => {
                response.text().await.unwrap();
                taken += 1;
            }
            status => assert_eq!(status, 409, "{path}"),
        }
    }
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directive_is_sent_once_and_when_it_is_due_by_the_databases_clock() {
    let Some(mut apart) = Apart::start().await else { return };
    let [late, early] = apart.clients("ada", &[]);
    let [chief_late, chief_early] = apart.clients("zoe", &["chief"]);
    let mut expected = BTreeMap::new();
    let mut connection = PgConnection::connect(&apart.database.url).await.unwrap();
    for (nth, (asks, other, chief)) in
        [(&late, &early, &chief_early), (&early, &late, &chief_late)].into_iter().enumerate()
    {
        let first = 10 * nth;
        // In five minutes: by the clock of the early one that is over, by that of the late one it is a quarter of an hour.
        let scheduled = requested(asks, "post.send", first, Some(in_seconds(300))).await;
        let cancelled = requested(asks, "post.send", first + 1, Some(in_seconds(300))).await;
        let at_once = requested(asks, "post.send", first + 2, None).await;
        let held = requested(asks, "post.pay", first + 3, None).await;
        let refused = requested(asks, "post.pay", first + 4, None).await;
        until(other, &at_once, "succeeded").await;

        let body = json!({"name": "post.send", "payload": {"id": first + 5}});
        let key = format!("key-{nth}");
        let (one, same) = tokio::join!(asks.try_directive(&key, &body), other.try_directive(&key, &body));
        let (one, same) = (path_of(one.unwrap()).await, path_of(same.unwrap()).await);
        assert_eq!(one, same, "asked for at both under one name");
        until(asks, &one, "succeeded").await;

        let waiting: Value = chief.get("/v1/agent/approvals").await.json().await.unwrap();
        assert_eq!(waiting["items"].as_array().unwrap().len(), 2, "{nth}: none has expired: {waiting}");
        assert_eq!(status(other, &held).await, "pending_approval");
        let [near_chief, far_chief] = if nth == 0 { [&chief_late, &chief_early] } else { [&chief_early, &chief_late] };
        let no = json!({"decision": "reject"});
        assert_eq!(taken_of_three(near_chief, far_chief, &format!("{refused}/decision"), &no).await, 1);
        let yes = json!({"decision": "approve"});
        assert_eq!(taken_of_three(near_chief, far_chief, &format!("{held}/decision"), &yes).await, 1);
        until(asks, &held, "succeeded").await;
        assert_eq!(status(asks, &refused).await, "canceled");

        // Whoever asked waits for what becomes of it, as long as its tool says.
        asks.says(&message(&format!("c{nth}"), &format!("send {}", first + 6))).await;
        let asked = apart.model.requests().last().unwrap().json();
        let read = asked["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        assert!(read.contains("post.send.succeeded"), "{nth}: {read}");

        assert_eq!(other.post(&format!("{cancelled}/cancel"), &json!({})).await.status(), 200);
        // The commands above were taken after these two: nobody takes these for due.
        for client in [asks, other] {
            assert_eq!(status(client, &scheduled).await, "requested", "{nth}");
            assert_eq!(status(client, &cancelled).await, "canceled", "{nth}");
        }
        for id in [2, 5, 6] {
            expected.insert(format!("POST /v1/sent/{}", first + id), 1);
        }
        expected.insert(format!("POST /v1/paid/{}", first + 3), 1);
        assert_eq!(apart.written(), expected, "{nth}");

        // Five minutes later.
        let done = sqlx::query(
            "UPDATE directives SET due_at = due_at - 300000 WHERE due_at > 0 AND status IN ('requested', 'canceled')",
        )
        .execute(&mut connection)
        .await
        .unwrap();
        assert!(done.rows_affected() >= 2, "{nth}");
        until(other, &scheduled, "succeeded").await;
        assert_eq!(status(asks, &cancelled).await, "canceled");
        expected.insert(format!("POST /v1/sent/{first}"), 1);
    }
    // The late one is alone: by its own clock, what is due now is so in ten minutes.
    apart.early.kill();
    let last = requested(&late, "post.send", 99, Some(in_seconds(0))).await;
    until(&late, &last, "succeeded").await;
    expected.insert("POST /v1/sent/99".to_owned(), 1);
    assert_eq!(apart.written(), expected);
}

/// The only plan of a conversation.
async fn plan_of(client: &Client, conversation: &str) -> Value {
    let path = format!("/v1/agent/conversations/{conversation}/plans");
    let list: Value = client.get(&path).await.json().await.unwrap();
    let [plan] = &list["items"].as_array().unwrap()[..] else { panic!("{list:#}") };
    plan.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_that_is_carried_out_at_both_is_carried_out_once() {
    let Some(apart) = Apart::start().await else { return };
    let clients = apart.clients("ada", &[]);
    let mut expected = BTreeMap::new();
    for (nth, drafts) in clients.iter().enumerate() {
        let conversation = format!("c{nth}");
        drafts.says(&message(&conversation, &format!("draft {nth}"))).await;
        let plan = plan_of(drafts, &conversation).await;
        assert_eq!(plan["status"], "draft", "{plan:#}");
        assert_eq!(apart.written(), expected, "nothing of it is done");
        let mut carry = message(&conversation, &format!("carry {}", plan["id"].as_str().unwrap()));
        carry["on_busy"] = json!("enqueue");
        let answers = futures::future::join_all([0, 1, 0, 1].map(|at| clients[at].chat(&carry))).await;
        for answer in answers {
            assert_eq!(answer.status(), 200);
            assert_eq!(end_of(&rest(answer).await), "message_complete");
        }
        expected.insert(format!("POST /v1/tickets/{nth}/close"), 1);
        assert_eq!(apart.written(), expected);
        for client in &clients {
            assert_eq!(plan_of(client, &conversation).await["status"], "completed");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_waits_is_decided_once_at_the_other_one() {
    let Some(apart) = Apart::start().await else { return };
    let [late, early] = apart.clients("ada", &[]);
    let mut expected = BTreeMap::new();
    for (nth, (asks, decides)) in [(&late, &early), (&early, &late)].into_iter().enumerate() {
        let conversation = format!("c{nth}");
        let told = rest(asks.chat(&message(&conversation, &format!("erase {nth}"))).await).await;
        let shown = frames::parse(&without_ids(&told));
        let id = frames::data(&shown, "approval_request")["approval_id"].as_str().unwrap().to_owned();
        expected.insert(format!("POST /v1/tickets/{nth}/close"), 1);
        assert_eq!(apart.written(), expected, "{nth}");
        for client in [asks, decides] {
            assert_eq!(plan_of(client, &conversation).await["status"], "paused", "{nth}");
        }
        let yes = json!({"decision": "approve"});
        assert_eq!(taken_of_three(asks, decides, &format!("/v1/agent/approvals/{id}"), &yes).await, 1, "{nth}");
        expected.insert(format!("DELETE /v1/things/{nth}"), 1);
        assert_eq!(apart.written(), expected, "{nth}");
        for client in [asks, decides] {
            assert_eq!(plan_of(client, &conversation).await["status"], "completed", "{nth}");
        }
    }
}
