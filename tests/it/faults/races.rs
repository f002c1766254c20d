//! Requests that want the same at the same time: one of them gets it, and the others are told.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Chance;
use crate::approvals::{id, problem};
use crate::runs::gated;
use crate::support::app::TestApp;
use crate::support::backend::{Behaviour, ScriptedBackend};
use crate::support::environment::cycles;
use crate::support::frames;
use crate::support::model::{calls, messages, says};
use crate::support::tickets::{PROFILE, TOOLS, write};
use crate::support::upstream::Upstream;

/// The product with a model that calls the tool that a message names, slowly, and a backend that counts.
struct World {
    app: TestApp,
    backend: ScriptedBackend,
    /// Lets one slow answer end.
    gate: Arc<Notify>,
    _model: Upstream,
}

impl World {
    async fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        write(&data, "tools/tickets.toml", TOOLS);
        write(&data, "profiles/tickets.toml", PROFILE);
        let gate = Arc::new(Notify::new());
        let of_model = gate.clone();
        let model = Upstream::choosing(move |request| {
            let messages = messages(request);
            let last = messages.last().unwrap();
            let asked = last["content"].as_str().unwrap().lines().last().unwrap_or_default();
            Some(match (last["role"].as_str().unwrap(), asked) {
                ("user", "close") => calls("t1", "close_ticket", &json!({"id": 7})).answer(),
                ("user", "note") => calls("t1", "note", &json!({"text": "x"})).answer(),
                ("user", "slowly") => gated(&of_model, "Well, ", "yes."),
                _ => says("Well.").answer(),
            })
        })
        .await;
        let backend = ScriptedBackend::start().await;
        let (base, url) = (format!("{}/v1", model.url()), backend.server.url());
        let settings = [
            ("LLM__PROVIDER", "openai"),
            ("LLM__OPENAI__BASE_URL", base.as_str()),
            ("BACKEND__MODE", "http"),
            ("BACKEND__BASE_URL", url.as_str()),
        ];
        Self { app: TestApp::start_in(data, &settings).await, backend, gate, _model: model }
    }

    fn body(conversation: &str, message: &str) -> Value {
        json!({"message": message, "context_type": "tickets", "conversation_id": conversation})
    }

    async fn post(&self, path: &str, body: &Value) -> reqwest::Response {
        self.app.http.post(self.app.url(path)).bearer_auth(&self.app.token).json(body).send().await.unwrap()
    }

    /// The state of the run once it has ended.
    async fn ended(&self, run: &str) -> String {
        for _ in 0..600 {
            let told = self.app.http.get(self.app.url(&format!("/v1/agent/runs/{run}"))).bearer_auth(&self.app.token);
            let told: Value = told.send().await.unwrap().json().await.unwrap();
            if told["finished_at"].is_string() {
                return told["state"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{run} does not end");
    }

    /// A POST after a while: what came of it.
    async fn after(&self, wait: Duration, path: &str, body: &Value) -> reqwest::Response {
        tokio::time::sleep(wait).await;
        self.post(path, body).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_requests_at_the_same_time_in_one_conversation_one_runs() {
    let (world, mut chance) = (World::start().await, Chance::new());
    for round in 0..cycles(8, 300) {
        let body = World::body(&format!("c-{round}"), "slowly");
        let tries = (0..3).map(|_| chance.ms(8)).collect::<Vec<_>>();
        let answers = join_all(tries.into_iter().map(|wait| world.after(wait, "/v1/agent/chat", &body))).await;
        // All have their heads before the one that runs may end.
        let mut ran = 0;
        for answer in answers {
            match answer.status().as_u16() {
                200 => {
                    world.gate.notify_one();
                    let frames = frames::parse(&answer.text().await.unwrap());
                    assert_eq!(frames::text(&frames), "Well, yes.");
                    ran += 1;
                }
                _ => assert_eq!(problem(answer).await, (409, "conversation_busy".to_owned())),
            }
        }
        assert_eq!(ran, 1, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_and_a_rejection_at_the_same_time_are_one_decision() {
    let (world, mut chance) = (World::start().await, Chance::new());
    let mut made = 0;
    for round in 0..cycles(15, 500) {
        let conversation = format!("c-{round}");
        let frames = world.app.chat(&World::body(&conversation, "close")).await;
        let path = format!("/v1/agent/approvals/{}", id(frames::data(&frames, "approval_request")));
        let decision = |word: &str| json!({"decision": word, "on_busy": "enqueue"});
        let (yes, no) = (decision("approve"), decision("reject"));
        let waits = [chance.ms(6), chance.ms(6), chance.ms(6)];
        let tries = waits.into_iter().zip([&yes, &no, &yes]);
        let answers = join_all(tries.map(async |(wait, body)| (body, world.after(wait, &path, body).await))).await;
        let (mut taken, mut approved) = (0, false);
        for (body, answer) in answers {
            match answer.status().as_u16() {
                200 => {
                    approved = *body == yes;
                    taken += 1;
                    answer.text().await.unwrap();
                }
                409 => drop(problem(answer).await),
                status => panic!("round {round}: {status}"),
            }
        }
        assert_eq!(taken, 1, "round {round}");
        made += usize::from(approved);
        assert_eq!(world.backend.writes().len(), made, "round {round}: what is approved is made, and nothing else");
    }
    assert!(world.backend.writes().values().all(|times| *times == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_while_a_write_is_under_way_repeats_nothing_and_the_conversation_goes_on() {
    let (world, mut chance) = (World::start().await, Chance::new());
    for round in 0..cycles(15, 500) {
        world.backend.be(Behaviour::Slow(chance.ms(20)));
        let conversation = format!("c-{round}");
        let mut body = World::body(&conversation, "note");
        body["background"] = json!(true);
        let running = world.post("/v1/agent/chat", &body).await;
        let run = running.headers()["x-run-id"].to_str().unwrap().to_owned();
        let (path, nothing) = (format!("/v1/agent/runs/{run}/cancel"), json!({}));
        let cancels = [chance.ms(40), chance.ms(40)].map(|wait| world.after(wait, &path, &nothing));
        for answer in join_all(cancels).await {
            assert_eq!(answer.status(), 200, "round {round}");
        }
        let whole = running.text().await.unwrap();
        let state = world.ended(&run).await;
        assert!(["cancelled", "completed"].contains(&state.as_str()), "round {round}: {state}");
        let ends = whole.matches("event: error\n").count() + whole.matches("event: message_complete\n").count();
        assert_eq!(ends, 1, "round {round}: {whole}");
        world.backend.be(Behaviour::Good);
        let frames = world.app.chat(&World::body(&conversation, "And?")).await;
        assert_eq!(frames::text(&frames), "Well.", "round {round}");
    }
    let writes = world.backend.writes();
    assert!(writes.values().all(|times| *times == 1), "{writes:?}");
}
