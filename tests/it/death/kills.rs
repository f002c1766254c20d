//! One process is killed again and again, each time at a random moment of a run, and starts again on the same data.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::{Client, Machine, background, message, said};
use crate::runs::header;
use crate::support::environment::{kills, seed};
use crate::support::model::{calls, messages, says, turn};
use crate::support::postgres::TestPostgres;
use crate::support::redis::TestRedis;
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;

/// About how long a round takes when nobody is killed, in milliseconds.
const ROUND_MS: u64 = 250;

/// How often the backend has got each key, and for which ticket.
type Writes = Arc<Mutex<BTreeMap<String, Vec<u64>>>>;

/// Calls the tool that writes for `close N`, then tells a little story; answers anything else at once.
fn model(request: &Request) -> Option<Answer> {
    let messages = messages(request);
    let last = messages.last().unwrap();
    let piece = |text: &str| turn().text(text).bytes();
    let pause = Duration::from_millis(20);
    // A question that nobody answered stands before the next one, in one message.
    let question = last["content"].as_str().unwrap().lines().last().unwrap();
    Some(match (last["role"].as_str().unwrap(), question.strip_prefix("close ")) {
        ("user", Some(ticket)) => {
            let ticket: u64 = ticket.parse().unwrap();
            let call = calls(&format!("call-{ticket}"), "close_ticket", &json!({"id": ticket}));
            turn().text("At once. ").answer().later(pause, call.bytes())
        }
        ("user", None) => says("Fine.").answer(),
        ("tool", _) => {
            let told = turn().text("It ").answer().later(pause, piece("has been ")).later(pause, piece("closed "));
            told.later(pause, says("now.").bytes())
        }
        (role, _) => panic!("a {role} message is last"),
    })
}

/// A backend that takes its time and counts.
async fn counting(writes: &Writes) -> Upstream {
    let writes = writes.clone();
    let count = move |request: &Request| {
        let ticket = request.path.strip_prefix("/v1/tickets/")?.strip_suffix("/close")?.parse().unwrap();
        let key = request.header("idempotency-key").unwrap().to_owned();
        writes.lock().unwrap().entry(key).or_default().push(ticket);
        Some(Answer::ok("application/json", "").later(Duration::from_millis(20), r#"{"closed": true}"#))
    };
    Upstream::choosing(count).await
}

/// Random times within a round of so many milliseconds; the same ones for the same seed.
pub fn moments(seed: u64, round_ms: u64) -> impl Iterator<Item = Duration> {
    let mut state = seed | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Duration::from_millis(state % round_ms)
    })
}

/// One round: what a client knows of it.
struct Round {
    ticket: u64,
    conversation: String,
    /// The runs that were acknowledged.
    runs: Vec<String>,
}

async fn killed_again_and_again(settings: &[(&'static str, &str)]) {
    let seed = seed();
    println!("SWITCHBOARD_TEST_SEED={seed}");
    let mut moments = moments(seed, ROUND_MS);

    let writes = Writes::default();
    let (model, backend) = (Upstream::choosing(model).await, counting(&writes).await);
    let machine = Machine::new(&model, &backend, &[&[("RUNS__LEASE_S", "5")], settings].concat());
    let token = machine.token();
    let mut serving = machine.serve();
    let mut rounds = Vec::new();
    for ticket in 0..kills() as u64 {
        let (conversation, key) = (format!("c-{ticket}"), format!("key-{ticket}"));
        let body = background(&conversation, &format!("close {ticket}"));
        let mut round = Round { ticket, conversation, runs: Vec::new() };
        let client = Client::of(&serving, &token);
        let asking = client.try_chat_with_key(&key, &body);
        let killing = async {
            tokio::time::sleep(moments.next().unwrap()).await;
            serving.kill();
        };
        // Its answer's head has come or not; either way the process dies when its time has come.
        let (answer, ()) = tokio::join!(asking, killing);
        if let Ok(response) = answer {
            assert_eq!(response.status(), 200);
            round.runs.push(header(&response, "x-run-id"));
        }
        serving = machine.serve();
        // A client that does not know what became of its request asks again.
        let response = Client::of(&serving, &token).chat_with_key(&key, &body).await;
        let status = response.status().as_u16();
        match status {
            200 => round.runs.push(header(&response, "x-run-id")),
            // The run was there, and its events died with their process.
            410 => {}
            _ => panic!("{status}: {}", response.text().await.unwrap()),
        }
        rounds.push(round);
    }
    let client = Client::of(&serving, &token);
    for round in &mut rounds {
        round.runs.dedup();
        assert!(round.runs.len() < 2, "one request, one run: {:?}", round.runs);
        let mut states = Vec::new();
        for run in &round.runs {
            let told = client.run_when(run, |run| run["finished_at"].is_string()).await;
            states.push(told["state"].as_str().unwrap().to_owned());
        }
        check(round, &states, &client, &model, &writes).await;
    }
    for (key, tickets) in &*writes.lock().unwrap() {
        assert_eq!(tickets.len(), 1, "{key} was sent twice");
    }
    let sent: Vec<u64> = writes.lock().unwrap().values().flatten().copied().collect();
    println!("{} rounds, {} writes", rounds.len(), sent.len());
    assert!(sent.len() > rounds.len() / 10, "the moments of death have something to do with the runs");
}

/// What a result tells the model about its call.
fn fate(result: &str) -> &'static str {
    match result {
        r#"{"closed":true}"# => "done",
        _ if result.contains("the state of this call is unknown") => "unknown",
        _ if result.contains("was not completed") => "not_run",
        _ => panic!("{result}"),
    }
}

/// Asks on in the round's conversation, and checks what the model reads there.
async fn check(round: &Round, states: &[String], client: &Client, model: &Upstream, writes: &Writes) {
    let Round { ticket, conversation, runs } = round;
    let question = format!("check {ticket}");
    eventually(&format!("{conversation} can be gone on with"), async || {
        let response = client.chat(&message(conversation, &question)).await;
        let status = response.status();
        let text = response.text().await.unwrap();
        (status != 409).then(|| assert!(status == 200 && text.contains("message_complete"), "{status}: {text}"))
    })
    .await;
    let requests = model.requests();
    let lines = requests.iter().map(said).find(|lines| lines.last().unwrap().ends_with(&question)).unwrap();
    let asked = lines.iter().filter(|line| line.starts_with("user: ")).flat_map(|line| line[6..].lines());
    let asked: Vec<&str> = asked.filter(|line| !line.is_empty()).collect();
    assert_eq!(asked, [&format!("close {ticket}"), &question], "the acknowledged message: {lines:#?}");
    let results: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("tool: ")).collect();
    let keys: Vec<String> =
        writes.lock().unwrap().iter().filter(|(_, of)| of.contains(ticket)).map(|(key, _)| key.clone()).collect();
    match (&keys[..], &results[..]) {
        ([], []) => {}
        // Noted and not sent, or not even noted.
        ([], [text]) => assert_ne!(fate(text), "done"),
        ([key], [text]) => {
            assert_ne!(fate(text), "not_run");
            if let [run] = &runs[..] {
                assert!(key.starts_with(run.as_str()), "{key} is none of {run}");
            }
        }
        _ => panic!("{keys:?} was written, and the model reads {lines:#?}"),
    }
    let trail = client.trail(conversation).await;
    println!("{ticket}: {states:?}, sent {}, {trail:?}", keys.len());
    let of_kind = |kind: &str| trail.iter().filter_map(|line| line.strip_prefix(kind)).collect::<Vec<_>>();
    assert_eq!(of_kind("user_message "), [&format!("close {ticket}"), &question]);
    assert_eq!(of_kind("run_ended ").len(), 2, "each run ends once");
    let fates: Vec<&str> = results.iter().map(|text| fate(text)).collect();
    assert_eq!(of_kind("tool_call "), fates);
    for state in states {
        match state.as_str() {
            "completed" => assert_eq!(fates, ["done"]),
            "interrupted" => {}
            _ => panic!("{conversation} came to {state}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_at_any_moment_loses_no_message_and_repeats_no_write() {
    killed_again_and_again(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_holds_on_postgresql_and_redis() {
    let (Some(postgres), Some(redis)) = (TestPostgres::shared(), TestRedis::start()) else { return };
    let (database, redis_url) = (postgres.new_database().await, redis.url());
    killed_again_and_again(&[("STORE__URL", &database.url), ("EVENTS__URL", &redis_url)]).await;
}
