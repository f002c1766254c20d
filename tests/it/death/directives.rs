//! Processes are killed again and again while directives are carried out: alone, and as two that share a database.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::kills::moments;
use super::{Client, Machine};
use crate::support::environment::{kills, seed};
use crate::support::model::says;
use crate::support::postgres::TestPostgres;
use crate::support::redis::TestRedis;
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;

/// About how long a round takes when nobody is killed, in milliseconds.
const ROUND_MS: u64 = 150;

const TOOLS: &str = r#"
[[tool]]
name = "send_keyed"
description = "Sends something that the backend knows by its key."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
request = { method = "POST", path = "/v1/keyed/{id}" }
[tool.directive]
name = "post.keyed.send"
runs_as = "service"
idempotent = true
max_attempts = 20
[[tool.directive.signal]]
name = "post.keyed.sent"

[[tool]]
name = "send_plain"
description = "Sends something that it does not."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
request = { method = "POST", path = "/v1/plain/{id}" }
[tool.directive]
name = "post.plain.send"
runs_as = "service"
[[tool.directive.signal]]
name = "post.plain.sent"
"#;

/// How often each path came, and with which keys.
type Sent = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

async fn counting(sent: &Sent) -> Upstream {
    let sent = sent.clone();
    let count = move |request: &Request| {
        let key = request.header("idempotency-key").unwrap().to_owned();
        let path = request.path.trim_start_matches("/v1/").to_owned();
        sent.lock().unwrap().entry(path).or_default().push(key);
        Some(Answer::ok("application/json", "").later(Duration::from_millis(15), r#"{"sent": true}"#))
    };
    Upstream::choosing(count).await
}

async fn killed_while_directives_are_carried_out(settings: &[(&'static str, &str)], processes: usize) {
    let seed = seed();
    println!("SWITCHBOARD_TEST_SEED={seed}");
    let mut moments = moments(seed, ROUND_MS);
    let sent = Sent::default();
    let (model, backend) = (Upstream::choosing(|_| Some(says("Fine.").answer())).await, counting(&sent).await);
    let of_directives = [
        ("RUNS__LEASE_S", "5"),
        ("BACKEND__SERVICE__MODE", "token"),
        ("BACKEND__SERVICE__TOKEN", "the-token-of-the-service"),
        ("DIRECTIVES__POLL_MS", "50"),
        ("DIRECTIVES__RETRY_BASE_MS", "10"),
        ("DIRECTIVES__MAX_LIVE_PER_USER", "0"),
        ("DIRECTIVES__MAX_LIVE_PER_TENANT", "0"),
        ("DIRECTIVES__READER_ROLES", "auditor"),
    ];
    let machine = Machine::new(&model, &backend, &[&of_directives, settings].concat());
    machine.folder.write("config/tools/post.toml", TOOLS);
    let token = machine.token_of(&["--user", "ada", "--ttl", "2h", "--role", "auditor"], |_| {});
    let mut serving: Vec<_> = (0..processes).map(|_| machine.serve()).collect();
    let mut kept: Vec<(String, String)> = Vec::new();
    for round in 0..kills() as u64 {
        // Each names its request, so that one whose answer was lost can be asked for again.
        let asked: Vec<(String, Value)> = ["keyed", "plain"]
            .iter()
            .map(|kind| {
                (format!("{kind}/{round}"), json!({"name": format!("post.{kind}.send"), "payload": {"id": round}}))
            })
            .collect();
        let victim = usize::try_from(round).unwrap() % processes;
        let client = Client::of(&serving[victim], &token);
        let asking = async {
            let mut answers = Vec::new();
            for (key, body) in &asked {
                answers.push(client.try_directive(key, body).await);
            }
            answers
        };
        let killing = async {
            tokio::time::sleep(moments.next().unwrap()).await;
            serving[victim].kill();
        };
        let (_, ()) = tokio::join!(asking, killing);
        serving[victim] = machine.serve();
        let client = Client::of(&serving[victim], &token);
        for (key, body) in &asked {
            let response = client.try_directive(key, body).await.unwrap();
            let body: Value = response.json().await.unwrap();
            kept.push((key.clone(), body["directive"]["id"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()));
        }
    }
    let client = Client::of(&serving[0], &token);
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for (path, id) in &kept {
        let directive = eventually(&format!("{path} is over"), async || {
            let directive: Value = client.get(&format!("/v1/agent/directives/{id}")).await.json().await.unwrap();
            let is_over = !["requested", "running"].contains(&directive["status"].as_str().unwrap());
            is_over.then_some(directive)
        })
        .await;
        let keys = sent.lock().unwrap().get(path).cloned().unwrap_or_default();
        assert!(keys.iter().all(|key| key == id), "{path}: one key for all attempts: {keys:?}");
        let status = directive["status"].as_str().unwrap();
        *ends.entry(format!("{} {status}", path.split('/').next().unwrap())).or_default() += 1;
        let is_true = match (path.starts_with("keyed"), status) {
            (true, "succeeded") => !keys.is_empty(),
            (false, "succeeded") => keys.len() == 1,
            (false, "unknown") => keys.len() <= 1,
            (_, _) => false,
        };
        assert!(is_true, "{path}: sent {} times: {directive:#}", keys.len());
        // No state without its signal, and none told twice.
        let list: Value =
            client.get(&format!("/v1/agent/signals?of=tenant&limit=500&causation_id={id}")).await.json().await.unwrap();
        let names: Vec<&str> =
            list["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
        let count = |name: &str| names.iter().filter(|known| **known == name).count();
        assert_eq!((count("directive.requested"), count(&format!("directive.{status}"))), (1, 1), "{path}: {names:?}");
        let domain = names.iter().filter(|name| name.starts_with("post.")).count();
        assert_eq!(domain, usize::from(status == "succeeded"), "{path}: {names:?}");
        let attempts = usize::try_from(directive["attempt"].as_u64().unwrap()).unwrap();
        assert_eq!(count("directive.started"), attempts, "{path}: {names:?}");
    }
    println!("{} kills, {processes} processes, {} directives: {ends:?}", kills(), kept.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_directive_is_lost_or_sent_twice_on_sqlite() {
    killed_while_directives_are_carried_out(&[], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_directive_is_lost_or_sent_twice_by_two_processes_on_postgresql() {
    let (Some(postgres), Some(redis)) = (TestPostgres::shared(), TestRedis::start()) else { return };
    let (database, redis_url) = (postgres.new_database().await, redis.url());
    killed_while_directives_are_carried_out(&[("STORE__URL", &database.url), ("EVENTS__URL", &redis_url)], 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_waits_for_its_time_runs_after_its_process_was_killed() {
    let sent = Sent::default();
    let (model, backend) = (Upstream::choosing(|_| Some(says("Fine.").answer())).await, counting(&sent).await);
    let settings = [
        ("RUNS__LEASE_S", "5"),
        ("BACKEND__SERVICE__MODE", "token"),
        ("BACKEND__SERVICE__TOKEN", "the-token-of-the-service"),
        ("DIRECTIVES__POLL_MS", "50"),
    ];
    let machine = Machine::new(&model, &backend, &settings);
    machine.folder.write("config/tools/post.toml", TOOLS);
    let token = machine.token();
    let mut serving = machine.serve();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    // While it is down one becomes due, and the other not.
    let mut ids = Vec::new();
    for (id, seconds) in [(1, 6), (2, 14)] {
        let at = jiff::Timestamp::from_second(i64::try_from(now).unwrap() + seconds).unwrap().to_string();
        let body = json!({"name": "post.plain.send", "payload": {"id": id}, "scheduled_at": at});
        let response = Client::of(&serving, &token).post("/v1/agent/directives", &body).await;
        let made: Value = response.json().await.unwrap();
        assert_eq!(made["directive"]["status"], "requested", "{made}");
        ids.push(made["directive"]["id"].as_str().unwrap().to_owned());
    }
    serving.kill();
    assert!(sent.lock().unwrap().is_empty(), "neither was due");
    tokio::time::sleep(Duration::from_secs(7)).await;
    let serving = machine.serve();
    let client = Client::of(&serving, &token);
    for id in &ids {
        eventually("it is carried out", async || {
            let directive: Value = client.get(&format!("/v1/agent/directives/{id}")).await.json().await.unwrap();
            (directive["status"] == "succeeded").then_some(())
        })
        .await;
    }
    let expected: Vec<_> = ["plain/1", "plain/2"].into_iter().zip(&ids).collect();
    let sent = sent.lock().unwrap();
    let got: Vec<_> = sent.iter().map(|(path, keys)| (path.as_str(), keys.as_slice())).collect();
    assert_eq!(got, expected.iter().map(|(path, id)| (*path, std::slice::from_ref(*id))).collect::<Vec<_>>());
}
