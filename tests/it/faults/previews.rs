//! Previews that two replicas decide, on one PostgreSQL: their clocks are ten minutes apart, and one of them is paused between its
//! claim and its save. Nothing is written twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::clock::{WrongClock, library};
use crate::death::{Client, Machine};
use crate::support::frames;
use crate::support::model::{calls, says};
use crate::support::postgres::{TestDatabase, TestPostgres};
use crate::support::process::Serving;
use crate::support::redis::TestRedis;
use crate::support::upstream::{Answer, Upstream};
use crate::support::wait::eventually;
use crate::tools::workflow::{RULE, backend, json_answer, refusal, small};

/// What the backend does with the next request of a kind.
#[derive(Default)]
struct Next {
    /// The next look at the rule waits for this.
    look: Option<Arc<Notify>>,
    /// The next save does.
    save: Option<Arc<Notify>>,
    /// The next save is not done, and this is said.
    refuses: Option<u16>,
    /// Saves that were done, by their key.
    done: BTreeMap<String, usize>,
}

/// Two replicas and what they work with.
struct Two {
    clients: [Client; 2],
    replicas: [Serving; 2],
    next: Arc<Mutex<Next>>,
    database: TestDatabase,
    backend: Upstream,
    _model: Upstream,
    _redis: TestRedis,
    _machines: [Machine; 2],
}

impl Two {
    /// Replicas that are started with these ideas of the time, in seconds from the true one; `None` when the tests go without
    /// what they need.
    async fn with_clocks(clocks: Option<[i64; 2]>) -> Option<Self> {
        let library = match clocks {
            Some(_) => Some(library()?),
            None => None,
        };
        let (postgres, redis) = (TestPostgres::shared()?, TestRedis::start()?);
        let database = postgres.new_database().await;
        let next = Arc::<Mutex<Next>>::default();
        let now = Arc::clone(&next);
        let backend = backend(move |request| {
            let mut next = now.lock().unwrap();
            let held = |answer: Value, gate: Option<Arc<Notify>>| match gate {
                Some(gate) => Answer::ok("application/json", "").gated(&gate, answer.to_string()),
                None => json_answer(&answer),
            };
            match (request.method.as_str(), request.path.as_str()) {
                ("GET", path) if path.ends_with(&format!("rules/{RULE}")) => {
                    Some(held(json!({"id": RULE, "name": "Night Shift"}), next.look.take()))
                }
                ("PUT", path) if path.ends_with("/full") => Some(match next.refuses.take() {
                    Some(status) => refusal(status, "oh"),
                    None => {
                        *next.done.entry(request.header("idempotency-key").unwrap().to_owned()).or_default() += 1;
                        held(json!({"id": RULE}), next.save.take())
                    }
                }),
                _ => None,
            }
        })
        .await;
        let model = Upstream::choosing(|request| {
            let asked = request.json();
            let args = json!({"workflow": small("Day Shift"), "description": "d", "workflow_id": RULE});
            Some(match asked["messages"].as_array().unwrap().last().unwrap()["role"] == "tool" {
                true => says("Done.").answer(),
                false => calls("t0", "preview_workflow", &args).answer(),
            })
        })
        .await;
        let redis_url = redis.url();
        let settings = [("STORE__URL", database.url.as_str()), ("EVENTS__URL", &redis_url)];
        let machines = [(); 2].map(|()| Machine::new(&model, &backend, &settings));
        let serve = |at: usize| match (clocks, &library) {
            (Some(clocks), Some(library)) => WrongClock::of(&machines[at], library, clocks[at]).serve(&machines[at]),
            _ => machines[at].serve(),
        };
        let replicas = [serve(0), serve(1)];
        let token = match &library {
            // Issued before all of these times, or it would come from the future.
            Some(library) => machines[0].token_as(|command| {
                command.env("LD_PRELOAD", library).env("FAKETIME", "-1h");
            }),
            None => machines[0].token(),
        };
        let clients = replicas.each_ref().map(|replica| Client::of(replica, &token));
        Some(Self { clients, replicas, next, database, backend, _model: model, _redis: redis, _machines: machines })
    }

    fn next<T>(&self, change: impl FnOnce(&mut Next) -> T) -> T {
        change(&mut self.next.lock().unwrap())
    }

    /// A preview of a change to the one rule, made in a conversation of its own.
    async fn preview(&self, conversation: &str) -> String {
        let id = conversation.replace(' ', "-");
        let body = json!({"message": "Go", "context_type": "workflow", "conversation_id": id});
        let text = self.clients[0].chat(&body).await.text().await.unwrap();
        let frames = frames::parse(&crate::death::without_ids(&text));
        let shown = frames.iter().find(|frame| frame.event == "workflow_preview");
        shown.unwrap_or_else(|| panic!("{text}")).data["preview_id"].as_str().unwrap().to_owned()
    }

    /// Status and code of a decision at one replica.
    fn decide(&self, at: usize, preview: &str, decision: &'static str) -> JoinHandle<(u16, String)> {
        let (client, path) = (self.clients[at].clone(), format!("/v1/agent/previews/{preview}/decision"));
        tokio::spawn(async move {
            let response = client.post(&path, &json!({"decision": decision})).await;
            let status = response.status().as_u16();
            let body: Value = response.json().await.unwrap();
            (status, body["code"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// As if that time had passed since a claim.
    async fn age(&self, preview: &str, ms: u64) {
        let sql = format!("UPDATE previews SET claimed_at = claimed_at - {ms} WHERE id = '{preview}'");
        self.database.execute(&sql).await;
    }

    /// How often the change of a preview was sent, and done.
    fn saves(&self, preview: &str) -> (usize, usize) {
        let requests = self.backend.requests();
        let sent = requests
            .iter()
            .filter(|request| request.path.ends_with("/full") && request.header("idempotency-key") == Some(preview));
        (sent.count(), self.next(|next| next.done.get(preview).copied().unwrap_or_default()))
    }
}

fn good() -> (u16, String) {
    (200, String::new())
}

fn taken() -> (u16, String) {
    (409, "already_decided".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_whose_clocks_are_ten_minutes_apart_save_a_preview_once() {
    let Some(two) = Two::with_clocks(Some([-300, 300])).await else { return };
    for first in [0, 1] {
        let second = 1 - first;
        let name = |what: &str| format!("{what} {first}");

        let at_once = two.preview(&name("at once")).await;
        let answers = [0, 1, 0, 1].map(|at| two.decide(at, &at_once, "accept"));
        let mut answers = futures::future::join_all(answers).await.into_iter().map(Result::unwrap).collect::<Vec<_>>();
        answers.sort_unstable();
        assert_eq!(answers, [good(), taken(), taken(), taken()]);
        assert_eq!(two.saves(&at_once), (1, 1));

        for place in ["look", "save"] {
            let held = two.preview(&name(place)).await;
            let gate = Arc::new(Notify::new());
            two.next(|next| match place {
                "look" => next.look = Some(gate.clone()),
                _ => next.save = Some(gate.clone()),
            });
            let deciding = two.decide(first, &held, "accept");
            let is_held = async || two.next(|next| next.look.is_none() && next.save.is_none()).then_some(());
            eventually("the backend is asked", is_held).await;
            for decision in ["accept", "reject"] {
                assert_eq!(two.decide(second, &held, decision).await.unwrap(), taken(), "{place} {decision}");
            }
            gate.notify_one();
            assert_eq!(deciding.await.unwrap(), good(), "{place}");
            assert_eq!(two.decide(second, &held, "accept").await.unwrap(), taken(), "{place}");
            assert_eq!(two.saves(&held), (1, 1), "{place}");
        }

        let unconfirmed = two.preview(&name("unconfirmed")).await;
        two.next(|next| next.refuses = Some(503));
        let unknown = (502, "save_unconfirmed".to_owned());
        assert_eq!(two.decide(first, &unconfirmed, "accept").await.unwrap(), unknown);
        for at in [second, first] {
            assert_eq!(two.decide(at, &unconfirmed, "accept").await.unwrap(), taken());
        }
        two.age(&unconfirmed, 60_001).await;
        assert_eq!(two.decide(second, &unconfirmed, "accept").await.unwrap(), good());
        assert_eq!(two.saves(&unconfirmed), (2, 1), "with the same key");

        let rejected = two.preview(&name("rejected")).await;
        assert_eq!(two.decide(first, &rejected, "reject").await.unwrap(), good());
        assert_eq!(two.decide(second, &rejected, "accept").await.unwrap(), taken());
        assert_eq!(two.saves(&rejected), (0, 0));
    }
    assert!(two.next(|next| next.done.values().all(|times| *times == 1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_paused_between_claim_and_save_sends_nothing() {
    let Some(two) = Two::with_clocks(None).await else { return };
    for is_taken_over in [true, false] {
        let preview = two.preview(&format!("paused {is_taken_over}")).await;
        let gate = Arc::new(Notify::new());
        two.next(|next| next.look = Some(gate.clone()));
        let deciding = two.decide(0, &preview, "accept");
        eventually("it looks", async || two.next(|next| next.look.is_none()).then_some(())).await;
        two.replicas[0].pause();
        two.age(&preview, 60_001).await;
        if is_taken_over {
            assert_eq!(two.decide(1, &preview, "accept").await.unwrap(), good());
        }
        gate.notify_one();
        two.replicas[0].resume();
        assert_eq!(deciding.await.unwrap(), taken());
        assert_eq!(two.saves(&preview).0, usize::from(is_taken_over), "it sent nothing");
        if !is_taken_over {
            assert_eq!(two.decide(1, &preview, "accept").await.unwrap(), good(), "it waits again");
        }
        assert_eq!(two.saves(&preview), (1, 1));
    }
}
