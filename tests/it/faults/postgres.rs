//! PostgreSQL crashes, is paused, or the answer of a commit is lost, again and again: what was acknowledged is there, and a
//! message is there once.

use std::time::{Duration, Instant};

use serde_json::json;

use super::questions;
use crate::death::{Client, Machine, backend, background, end_of, message, rest};
use crate::support::environment::cycles;
use crate::support::faultproxy::FaultProxy;
use crate::support::model::says;
use crate::support::postgres::{TestDatabase, TestPostgres};
use crate::support::upstream::Upstream;
use crate::support::wait::eventually;

/// How soon readiness must tell of a database that is gone, or back.
const TOLD: Duration = Duration::from_secs(5);

async fn model() -> Upstream {
    Upstream::choosing(|_| Some(says("Noted.").answer())).await
}

/// How long it takes until readiness is `status`.
async fn ready_is(client: &Client, status: u16) -> Duration {
    let began = Instant::now();
    eventually(&format!("readiness {status}"), async || (client.get("/readyz").await.status() == status).then_some(()))
        .await;
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_crashes_again_and_again_loses_no_acknowledged_message() {
    let Some(postgres) = TestPostgres::private() else { return };
    let database = postgres.new_database().await;
    let (model, backend) = (model().await, backend().await);
    let machine = Machine::new(&model, &backend, &[("STORE__URL", &database.url), ("RUNS__LEASE_S", "5")]);
    let serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    let (mut acknowledged, mut slowest) = (Vec::new(), [Duration::ZERO; 2]);
    let rounds = cycles(2, 200);
    for round in 0..rounds {
        // Some are answered before the crash, some are under way, some come when nothing is there.
        for nth in 0..3 {
            let conversation = format!("c-{round}-{nth}");
            let body = background(&conversation, &format!("Remember {round} {nth}"));
            let key = format!("key-{round}-{nth}");
            let asking = client.try_chat_with_key(&key, &body);
            let crashing = async {
                if nth == 1 {
                    tokio::time::sleep(Duration::from_millis(round as u64 * 7 % 40)).await;
                    // Every second one only stands still.
                    if round % 2 == 0 { postgres.stop_immediate() } else { postgres.pause() }
                }
            };
            let (answer, ()) = tokio::join!(asking, crashing);
            let answer = answer.unwrap();
            match answer.status().as_u16() {
                200 => acknowledged.push((conversation, format!("Remember {round} {nth}"))),
                503 => assert!(answer.headers().contains_key("retry-after")),
                status => panic!("{status}: {}", answer.text().await.unwrap()),
            }
        }
        slowest[0] = slowest[0].max(ready_is(&client, 503).await);
        if round % 2 == 0 {
            postgres.start()
        } else {
            postgres.resume()
        }
        slowest[1] = slowest[1].max(ready_is(&client, 200).await);
    }
    println!(
        "{rounds} crashes, {} acknowledged, not ready after {:?}, ready after {:?}",
        acknowledged.len(),
        slowest[0],
        slowest[1]
    );
    assert!(acknowledged.len() >= rounds, "the crashes have something to do with the requests");
    for (conversation, text) in acknowledged {
        assert_eq!(questions(&client, &conversation).await, [text], "{conversation}");
    }
    // A busy machine may take a moment longer.
    assert!(slowest[1] < TOLD * 2 && slowest[0] < TOLD * 2, "{slowest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_commit_was_not_confirmed_is_there_once() {
    let Some(postgres) = TestPostgres::private() else { return };
    let database = postgres.new_database().await;
    let there = url::Url::parse(&database.url).unwrap();
    let (_, folder) = there.query_pairs().find(|(key, _)| key == "host").unwrap();
    let way = FaultProxy::to_socket(format!("{folder}/.s.PGSQL.5432")).await;
    let mut url = there.clone();
    url.set_query(None);
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(way.address().port())).unwrap();
    let through = TestDatabase::at(url.into());
    let (model, backend) = (model().await, backend().await);
    let machine = Machine::new(&model, &backend, &[("STORE__URL", &through.url), ("RUNS__LEASE_S", "5")]);
    let serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    let (rounds, mut refused) = (cycles(6, 500), 0);
    for round in 0..rounds {
        let (conversation, text) = (format!("c-{round}"), format!("Remember {round}"));
        way.lose_answer_to(b"COMMIT\0");
        // Whoever is refused asks again, with the same key.
        eventually("it is taken", async || {
            let response = client.chat_with_key(&format!("key-{round}"), &background(&conversation, &text)).await;
            match response.status().as_u16() {
                200 => {
                    rest(response).await;
                    Some(())
                }
                503 | 409 => {
                    refused += 1;
                    None
                }
                status => panic!("{status}: {}", response.text().await.unwrap()),
            }
        })
        .await;
        assert!(way.has_lost_answer(), "no commit was met");
        assert_eq!(questions(&client, &conversation).await, [text]);
    }
    println!("{rounds} answers of commits lost, {refused} requests refused");
    let asked = eventually("a run ends well", async || {
        let response = client.chat(&message("d", "And now?")).await;
        (response.status() == 200).then_some(())?;
        Some(end_of(&rest(response).await))
    })
    .await;
    assert_eq!(json!(asked), "message_complete");
}
