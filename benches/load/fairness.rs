//! What one tenant feels of another one that asks for ten times what it may have: the time to the first event of a modest
//! tenant, which asks five times a second, alone and beside the other one.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;

use crate::server::{Server, token};
use crate::upstream::Upstream;

/// Requests of the modest tenant in each of the three parts; the 99th of a hundred is the figure.
const REQUESTS: usize = 400;

/// Between two of them.
const PACE: Duration = Duration::from_millis(200);

/// Between two pushes of the greedy tenant.
const PUSH: Duration = Duration::from_millis(100);

/// All figures.
pub async fn measure(upstream: &Upstream) {
    // What the greedy tenant's users may begin in a second is 10, and it offers 100; its live runs are 5, and it offers 50.
    let settings =
        [("LIMITS__STARTS_PER_MINUTE", "600"), ("LIMITS__STARTS_BURST", "10"), ("LIMITS__ACTIVE_RUNS_PER_TENANT", "5")];
    let server = Server::start_product(upstream, &settings);
    let url = format!("http://{}/v1/agent/chat", server.address);
    let client = Client { url, http: reqwest::Client::new() };
    let modest = token("modest", "bob", &[]);
    client.p99(&modest, REQUESTS / 4).await;
    let alone = client.p99(&modest, REQUESTS).await;

    let one = token("greedy", "ann", &[]);
    let (beside, served, refused) =
        client.p99_beside(&modest, async || vec![client.ask(&one, "fast 1").await.0], 10).await;
    report("ten times the rate of a user", alone, beside, served, refused);

    let many: Vec<String> = (0..5).map(|n| token("greedy", &format!("user{n}"), &[])).collect();
    let mut held = Vec::new();
    for user in &many {
        held.push(client.ask(user, "hold").await.1);
    }
    let push = async || join_all(many.iter().map(async |user| client.ask(user, "fast 1").await.0)).await;
    let (beside, served, refused) = client.p99_beside(&modest, push, 1).await;
    report("ten times the live runs of a tenant", alone, beside, served, refused);
}

fn report(what: &str, alone: Duration, beside: Duration, served: usize, refused: usize) {
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    println!(
        "{what} ({served} served, {refused} refused): first event of another tenant, p99, alone {alone:?}, beside it {beside:?}, \
         ratio {ratio:.2}"
    );
}

struct Client {
    url: String,
    http: reqwest::Client,
}

impl Client {
    /// One request, read to its end unless it holds: its status, and what holds it.
    async fn ask(&self, token: &str, kind: &str) -> (u16, Option<reqwest::Response>) {
        let body = serde_json::json!({
            "message": format!("@{kind}@ hello"), "context_type": "bench",
            "conversation_id": uuid::Uuid::new_v4().to_string(),
        });
        let response = self.http.post(&self.url).bearer_auth(token).json(&body).send().await.unwrap();
        let status = response.status().as_u16();
        if kind == "hold" {
            return (status, Some(response));
        }
        response.bytes().await.unwrap();
        (status, None)
    }

    /// The 99th of a hundred times to the first event.
    async fn p99(&self, token: &str, requests: usize) -> Duration {
        let mut pace = tokio::time::interval(PACE);
        let mut times = Vec::new();
        for _ in 0..requests {
            pace.tick().await;
            let since = Instant::now();
            let body = serde_json::json!({
                "message": "@fast 1@ hello", "context_type": "bench",
                "conversation_id": uuid::Uuid::new_v4().to_string(),
            });
            let response = self.http.post(&self.url).bearer_auth(token).json(&body).send().await.unwrap();
            assert_eq!(response.status(), 200);
            let mut stream = response.bytes_stream();
            stream.next().await.unwrap().unwrap();
            times.push(since.elapsed());
            while stream.next().await.is_some() {}
        }
        times.sort_unstable();
        times[times.len() * 99 / 100]
    }

    /// The same while another user pushes, so many times at once; how many of those were served and refused.
    async fn p99_beside(
        &self,
        token: &str,
        push: impl AsyncFn() -> Vec<u16>,
        at_once: usize,
    ) -> (Duration, usize, usize) {
        let (mut served, mut refused) = (0, 0);
        let pushing = async {
            let mut pace = tokio::time::interval(PUSH);
            for _ in 0_u64.. {
                pace.tick().await;
                for status in join_all((0..at_once).map(|_| push())).await.into_iter().flatten() {
                    match status {
                        200 => served += 1,
                        429 => refused += 1,
                        other => panic!("answered with {other}"),
                    }
                }
            }
        };
        let beside = tokio::select! {
            beside = self.p99(token, REQUESTS) => beside,
            () = pushing => unreachable!("it never ends"),
        };
        (beside, served, refused)
    }
}
