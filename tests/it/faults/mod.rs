//! What breaks around the server, one file for each thing that does: models, backends, databases, Redis, clients, clocks,
//! descriptors, and requests that race. `docs/RELIABILITY.md` says which promise each test holds. All of it has a short form
//! for every day; `SWITCHBOARD_TEST_LONG=1` asks for the long one.

mod apart;
mod backend;
mod clients;
mod clock;
mod disk;
mod large;
mod postgres;
mod previews;
mod provider;
mod races;
mod redis;
mod shortage;
mod sockets;
mod vendors;
mod writes;

use std::time::Duration;

use serde_json::Value;

use crate::death::Client;

/// Random numbers, the same ones for the same seed.
pub struct Chance(u64);

impl Chance {
    /// Begins at the tests' seed, which it prints.
    pub fn new() -> Self {
        let seed = crate::support::environment::seed();
        println!("SWITCHBOARD_TEST_SEED={seed}");
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    /// A time below so many milliseconds.
    pub fn ms(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.below(most))
    }
}

/// What its user said in a conversation, as its owner reads it.
pub async fn questions(client: &Client, conversation: &str) -> Vec<String> {
    let response = client.get(&format!("/v1/agent/conversations/{conversation}")).await;
    let status = response.status();
    let told: Value = response.json().await.unwrap();
    assert_eq!(status, 200, "{conversation}: {told}");
    let of_user = told["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    of_user.map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}
