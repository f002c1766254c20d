//! Clocks that are wrong, or jump: the process runs under `faketime`, whose time is read from a file that the test changes.
//! Only the time of day is faked; what the process waits for goes by the clock that cannot jump.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::death::{Client, Machine, backend, background, end_of, message, rest, without_ids};
use crate::runs::{gated, header, read_until};
use crate::support::environment::skip;
use crate::support::frames;
use crate::support::model::{Script, calls, says};
use crate::support::postgres::TestPostgres;
use crate::support::process::Serving;
use crate::support::redis::TestRedis;
use crate::support::upstream::Upstream;
use crate::support::wait::eventually;

/// The library that does it, for programs with threads.
pub fn library() -> Option<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib64/faketime"];
    let found = folders.iter().map(|folder| Path::new(folder).join("libfaketimeMT.so.1")).find(|path| path.exists());
    if found.is_none() {
        skip("faketime is not installed");
    }
    found
}

/// The clock of one machine: how far it is from the true one, in seconds.
pub struct WrongClock {
    library: PathBuf,
    file: PathBuf,
}

impl WrongClock {
    pub fn of(machine: &Machine, library: &Path, seconds: i64) -> Self {
        let clock = Self { library: library.to_owned(), file: machine.folder.path().join("clock") };
        clock.set(seconds);
        clock
    }

    fn set(&self, seconds: i64) {
        std::fs::write(&self.file, format!("{seconds:+}\n")).unwrap();
    }

    pub fn serve(&self, machine: &Machine) -> Serving {
        let change = |command: &mut Command| {
            command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.file);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("FAKETIME_NO_CACHE", "1");
            command.env("FAKETIME_DONT_RESET", "1");
        };
        machine.serve_as(change)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_ends_no_run_and_lets_in_no_token_whose_time_is_over() {
    let Some(library) = library() else { return };
    let gate = Arc::new(Notify::new());
    let answers = [gated(&gate, "One ", "two."), gated(&gate, "Three ", "four."), says("Five.").answer()];
    let (model, backend) = (Upstream::script(answers).await, backend().await);
    let machine = Machine::new(&model, &backend, &[("RUNS__LEASE_S", "5")]);
    let clock = WrongClock::of(&machine, &library, 0);
    let serving = clock.serve(&machine);
    // Issued before all of these times, or it would come from the future.
    let token = machine.token_as(|command| {
        command.env("LD_PRELOAD", &library).env("FAKETIME", "-1h");
    });
    let client = Client::of(&serving, &token);
    for (conversation, jump) in [("back", -1800), ("ahead", 1800)] {
        let mut response = client.chat(&background(conversation, "Tell")).await;
        let run = header(&response, "x-run-id");
        let seen = read_until(&mut response, if jump < 0 { "One" } else { "Three" }).await;
        clock.set(jump);
        // Longer than a lease: whoever went by the time of day would count the run as dead, or live on for half an hour.
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert_eq!(client.run(&run).await["state"], "running", "{conversation}");
        gate.notify_one();
        assert_eq!(end_of(&(seen + &rest(response).await)), "message_complete", "{conversation}");
        client.run_in(&run, "completed").await;
        clock.set(0);
    }
    // An hour and more is beyond what its token says.
    clock.set(2 * 3600);
    eventually("the token's time is over", async || {
        (client.chat(&message("d", "Hi")).await.status() == 401).then_some(())
    })
    .await;
    clock.set(0);
    assert_eq!(client.says(&message("d", "Hi")).await, "Five.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_whose_clocks_differ_take_no_run_for_dead() {
    let (Some(library), Some(postgres), Some(redis)) = (library(), TestPostgres::shared(), TestRedis::start()) else {
        return;
    };
    let database = postgres.new_database().await;
    let gate = Arc::new(Notify::new());
    let (model, backend) = (Upstream::script([gated(&gate, "One ", "two.")]).await, backend().await);
    let redis_url = redis.url();
    let settings = [("STORE__URL", database.url.as_str()), ("EVENTS__URL", &redis_url), ("RUNS__LEASE_S", "5")];
    let machines = [(); 2].map(|()| Machine::new(&model, &backend, &settings));
    let behind = WrongClock::of(&machines[0], &library, -30).serve(&machines[0]);
    let ahead = WrongClock::of(&machines[1], &library, 30).serve(&machines[1]);
    // Made by the true clock: both are within what a token's time is taken with.
    let token = machines[0].token();
    let (a, b) = (Client::of(&behind, &token), Client::of(&ahead, &token));
    let mut near = a.chat(&background("c", "Count")).await;
    let run = header(&near, "x-run-id");
    let seen = read_until(&mut near, "One").await;
    let newest = frames::numbered(&seen).last().unwrap().0;
    b.run_when(&run, |run| run["last_event_id"] == json!(newest)).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(b.run(&run).await["state"], "running");
    gate.notify_one();
    assert_eq!(end_of(&(seen + &rest(near).await)), "message_complete");
    b.run_in(&run, "completed").await;
}

/// Tools that a person lets through: the run's own user, or somebody else with a role.
const APPROVED: &str = r#"
[[tool]]
name = "close_ticket"
description = "Closes a ticket."
approval = "user"
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/close"

[[tool]]
name = "refund"
description = "Pays money back."
approval = "role:chief"
not_requester = true
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/refunds/{id}"
"#;

const APPROVING: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["close_ticket", "refund"]
"#;

/// A call waits for two minutes, and the clocks of the replicas are ten minutes apart: only the database's can say whether
/// its time is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_whose_clocks_are_ten_minutes_apart_decide_each_call_once_and_let_none_expire() {
    let (Some(library), Some(postgres), Some(redis)) = (library(), TestPostgres::shared(), TestRedis::start()) else {
        return;
    };
    let database = postgres.new_database().await;
    let tools = ["close_ticket", "close_ticket", "refund", "refund"];
    let turns = (1..).zip(tools).flat_map(|(id, tool)| [calls("c1", tool, &json!({"id": id})), says("Done.")]);
    let (model, backend) = (Upstream::script(turns.map(Script::answer)).await, backend().await);
    let redis_url = redis.url();
    let settings = [("STORE__URL", database.url.as_str()), ("EVENTS__URL", &redis_url), ("RUNS__APPROVAL_S", "120")];
    let machines = [(); 2].map(|()| Machine::new(&model, &backend, &settings));
    for machine in &machines {
        machine.folder.write("config/tools/tickets.toml", APPROVED);
        machine.folder.write("config/profiles/tickets.toml", APPROVING);
    }
    let behind = WrongClock::of(&machines[0], &library, -300).serve(&machines[0]);
    let ahead = WrongClock::of(&machines[1], &library, 300).serve(&machines[1]);
    let issued = |user: &str, roles: &[&str]| {
        let roles = roles.iter().flat_map(|role| ["--role", role]);
        let args: Vec<&str> = ["--user", user, "--ttl", "2h"].into_iter().chain(roles).collect();
        machines[0].token_of(&args, |command| {
            command.env("LD_PRELOAD", &library).env("FAKETIME", "-1h");
        })
    };
    let (ada, zoe) = (issued("ada", &["chief"]), issued("zoe", &["chief"]));
    let [a, b] = [&behind, &ahead].map(|serving| Client::of(serving, &ada));
    let [chief_a, chief_b] = [&behind, &ahead].map(|serving| Client::of(serving, &zoe));
    // Asked at one, decided at the other, and the other way round; granted at either.
    let rows = [(&a, &b, None), (&b, &a, None), (&a, &b, Some(&chief_b)), (&b, &a, Some(&chief_a))];
    for (nth, (asks, decides, grants)) in rows.into_iter().enumerate() {
        let conversation = format!("c{nth}");
        let held = rest(asks.chat(&message(&conversation, "Do it")).await).await;
        let shown = frames::parse(&without_ids(&held));
        let id = frames::data(&shown, "approval_request")["approval_id"].as_str().unwrap().to_owned();
        let path = format!("/v1/agent/approvals/{id}");
        for client in [asks, decides] {
            let told: Value = client.get(&path).await.json().await.unwrap();
            assert_eq!(told["state"], "pending", "{nth}: it has not expired anywhere");
            let list: Value = client.get("/v1/agent/approvals").await.json().await.unwrap();
            assert_eq!(list["items"].as_array().unwrap().len(), 1, "{nth}: {list}");
        }
        let yes = json!({"decision": "approve"});
        if let Some(chief) = grants {
            assert_eq!(decides.post(&path, &yes).await.status(), 403, "{nth}: nobody lets their own call through");
            assert_eq!(chief.post(&path, &yes).await.status(), 200, "{nth}");
        }
        let tries = futures::future::join_all([decides, asks, decides].map(|client| client.post(&path, &yes))).await;
        let mut taken = 0;
        for response in tries {
            if response.status() == 200 {
                assert_eq!(end_of(&rest(response).await), "message_complete");
                taken += 1;
            } else {
                assert_eq!(response.status(), 409, "{nth}");
            }
        }
        assert_eq!(taken, 1, "{nth}");
        let waiting: Value = asks.get("/v1/agent/approvals").await.json().await.unwrap();
        assert_eq!(waiting["items"], json!([]), "{nth}");
    }
    let sent: Vec<String> = backend.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(sent, ["/v1/tickets/1/close", "/v1/tickets/2/close", "/v1/refunds/3", "/v1/refunds/4"]);
}

/// What a client's own tool has done is told at either replica, and taken once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_whose_clocks_are_ten_minutes_apart_take_what_a_client_has_done_once() {
    let (Some(library), Some(postgres), Some(redis)) = (library(), TestPostgres::shared(), TestRedis::start()) else {
        return;
    };
    let database = postgres.new_database().await;
    let model = Upstream::choosing(|request| {
        let request = request.json();
        let last = request["messages"].as_array().unwrap().last().unwrap().clone();
        Some(match (last["role"].as_str(), last["content"].as_str()) {
            (Some("user"), _) => calls("w1", "paint", &json!({})).answer(),
            (Some("tool"), Some(text)) if text.contains("painted") => {
                calls("w2", "close_ticket", &json!({"id": 7})).answer()
            }
            _ => says("Done.").answer(),
        })
    })
    .await;
    let (backend, redis_url) = (backend().await, redis.url());
    let settings = [("STORE__URL", database.url.as_str()), ("EVENTS__URL", &redis_url)];
    let machines = [(); 2].map(|()| Machine::new(&model, &backend, &settings));
    let behind = WrongClock::of(&machines[0], &library, -300).serve(&machines[0]);
    let ahead = WrongClock::of(&machines[1], &library, 300).serve(&machines[1]);
    let token = machines[0].token_as(|command| {
        command.env("LD_PRELOAD", &library).env("FAKETIME", "-1h");
    });
    let [a, b] = [&behind, &ahead].map(|serving| Client::of(serving, &token));
    for (nth, (asks, tells)) in [(&a, &b), (&b, &a)].into_iter().enumerate() {
        let tool = json!({"name": "paint", "inputSchema": {"type": "object", "properties": {}}});
        let id = format!("chat-{nth}");
        let user = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": "Paint it"}]});
        let body = json!({"id": id, "messages": [user], "tools": [tool]});
        let path = "/v1/ai-sdk/chat?context_type=tickets";
        let told = rest(asks.post(path, &body).await).await;
        assert!(told.contains("paint"), "{told}");
        let part = json!({"type": "tool-paint", "toolCallId": "w1", "input": {}, "state": "output-available", "output": "painted"});
        let answer = json!({"id": "a", "role": "assistant", "parts": [{"type": "step-start"}, part]});
        let body = json!({"id": id, "messages": [user, answer], "tools": [tool]});
        let tries = futures::future::join_all([tells, asks, tells].map(|client| client.post(path, &body))).await;
        let taken = tries.iter().filter(|response| response.status() == 200).count();
        let ends = futures::future::join_all(tries.into_iter().map(rest)).await;
        assert!(taken >= 1, "{ends:#?}");
        assert_eq!(backend.requests().len(), nth + 1, "{ends:#?}");
    }
}
