//! One process is killed again and again while plans are carried out: steps write at once, the backend counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::kills::moments;
use super::{Client, Machine, background};
use crate::runs::header;
use crate::support::environment::{kills, seed};
use crate::support::model::{calls, messages, says};
use crate::support::postgres::TestPostgres;
use crate::support::redis::TestRedis;
use crate::support::upstream::{Answer, Request, Upstream};

/// About how long a round takes when nobody is killed, in milliseconds.
const ROUND_MS: u64 = 300;

const PROFILE: &str = r#"
id = "planner"
context_type = "planner"
instructions = ["workflow/role.md"]
tools = ["close_ticket"]
[plan]
"#;

/// How often each ticket was closed.
type Closed = Arc<Mutex<BTreeMap<u64, usize>>>;

/// Plans to close four tickets for `close N`: three at once, and one behind the first.
fn model(request: &Request) -> Option<Answer> {
    let messages = messages(request);
    let last = messages.last().unwrap();
    let question = last["content"].as_str().unwrap().lines().last().unwrap();
    let answer = match (last["role"].as_str().unwrap(), question.strip_prefix("close ")) {
        ("user", Some(round)) => {
            let round: u64 = round.parse().unwrap();
            let step = |number: u64| json!({"step_number": number, "type": "action", "tools": ["close_ticket"], "arguments": {"id": 10 * round + number}});
            let mut behind = step(4);
            behind["depends_on"] = json!([1]);
            let steps = json!([step(1), step(2), step(3), behind]);
            calls(&format!("call-{round}"), "create_plan", &json!({"objective": "Close", "plan": {"steps": steps}}))
        }
        ("user", None) | ("tool", _) => says("Fine."),
        (role, _) => panic!("a {role} message is last"),
    };
    Some(answer.answer())
}

async fn counting(closed: &Closed) -> Upstream {
    let closed = closed.clone();
    Upstream::choosing(move |request| {
        let ticket = request.path.strip_prefix("/v1/tickets/")?.strip_suffix("/close")?.parse().unwrap();
        *closed.lock().unwrap().entry(ticket).or_default() += 1;
        Some(Answer::ok("application/json", "").later(Duration::from_millis(40), r#"{"closed": true}"#))
    })
    .await
}

async fn killed_while_plans_are_carried_out(settings: &[(&'static str, &str)]) {
    let seed = seed();
    println!("SWITCHBOARD_TEST_SEED={seed}");
    let mut moments = moments(seed, ROUND_MS);
    let closed = Closed::default();
    let (model, backend) = (Upstream::choosing(model).await, counting(&closed).await);
    let machine = Machine::new(&model, &backend, &[&[("RUNS__LEASE_S", "5")], settings].concat());
    machine.folder.write("config/profiles/planner.toml", PROFILE);
    let token = machine.token();
    let mut serving = machine.serve();
    let mut runs = Vec::new();
    for round in 0..kills() as u64 {
        let mut body = background(&format!("c-{round}"), &format!("close {round}"));
        body["context_type"] = json!("planner");
        let client = Client::of(&serving, &token);
        let key = format!("key-{round}");
        let asking = client.try_chat_with_key(&key, &body);
        let killing = async {
            tokio::time::sleep(moments.next().unwrap()).await;
            serving.kill();
        };
        let (answer, ()) = tokio::join!(asking, killing);
        if let Ok(response) = answer {
            runs.push((round, header(&response, "x-run-id")));
        }
        serving = machine.serve();
    }
    let client = Client::of(&serving, &token);
    let (mut ends, mut states) = (BTreeMap::new(), BTreeMap::new());
    for (round, run) in &runs {
        let told = client.run_when(run, |run| run["finished_at"].is_string()).await;
        let path = format!("/v1/agent/conversations/c-{round}/plans");
        // A plan ends with its run.
        let list: Value = client.get(&path).await.json().await.unwrap();
        let Some(plan) = list["items"].get(0) else { continue };
        let (end, status) = (told["state"].as_str().unwrap(), plan["status"].as_str().unwrap());
        let expected = if end == "interrupted" { ["failed", "completed"] } else { ["completed", "completed"] };
        assert!(expected.contains(&status), "round {round}: the run is {end}, its plan {status}: {plan:#}");
        *ends.entry(status.to_owned()).or_insert(0) += 1;
        for step in plan["steps"].as_array().unwrap() {
            let ticket = 10 * round + step["number"].as_u64().unwrap();
            let times = closed.lock().unwrap().get(&ticket).copied().unwrap_or_default();
            let state = step["status"].as_str().unwrap();
            *states.entry(state.to_owned()).or_insert(0) += 1;
            let is_true = match state {
                "completed" => times == 1,
                "skipped" => times == 0,
                "failed" => times <= 1 && step["error"].as_str().unwrap().contains("may have been changed"),
                _ => false,
            };
            assert!(is_true, "round {round}: {times} times: {step:#}");
        }
    }
    let closed = closed.lock().unwrap();
    assert!(closed.values().all(|times| *times == 1), "a ticket was closed twice: {closed:?}");
    println!("{} kills, {} runs, {} writes, plans {ends:?}, steps {states:?}", kills(), runs.len(), closed.len());
    assert!(states.len() > 1, "the moments of death have something to do with the steps");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_step_is_lost_or_made_twice_on_sqlite() {
    killed_while_plans_are_carried_out(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_step_is_lost_or_made_twice_on_postgresql() {
    let (Some(postgres), Some(redis)) = (TestPostgres::shared(), TestRedis::start()) else { return };
    let (database, redis_url) = (postgres.new_database().await, redis.url());
    killed_while_plans_are_carried_out(&[("STORE__URL", &database.url), ("EVENTS__URL", &redis_url)]).await;
}
