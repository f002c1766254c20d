//! Two replicas on one PostgreSQL and one Redis behind nginx, each a process of its own.

mod dying;
mod services;
mod sharing;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use reqwest::Response;

use super::{Client, Machine, backend};
use crate::runs::read_until;
use crate::support::environment::skip;
use crate::support::postgres::{TestDatabase, TestPostgres};
use crate::support::process::Serving;
use crate::support::redis::TestRedis;
use crate::support::upstream::{Answer, Upstream};

/// Settings, by their names.
type Settings<'a> = &'a [(&'static str, &'a str)];

/// Two replicas and what they work with. They end when this is dropped, in this order.
pub struct Pair {
    pub a: Serving,
    pub b: Serving,
    pub redis: TestRedis,
    pub model: Upstream,
    pub backend: Upstream,
    nginx: Nginx,
    token: String,
    _machines: [Machine; 2],
    _database: TestDatabase,
}

impl Pair {
    /// Replicas with these settings over the tests' own, whose model gives `answers` in order; `None` when the tests go
    /// without what they need.
    pub async fn start(settings: &[(&'static str, &str)], answers: impl IntoIterator<Item = Answer>) -> Option<Self> {
        Self::start_on(TestPostgres::shared()?, settings, answers).await
    }

    /// The same on a PostgreSQL that the test may do things to.
    pub async fn start_on(
        postgres: &TestPostgres,
        settings: &[(&'static str, &str)],
        answers: impl IntoIterator<Item = Answer>,
    ) -> Option<Self> {
        Self::start_before(backend().await, postgres, settings, answers).await
    }

    /// The same with a backend of the test's own.
    pub async fn start_before(
        backend: Upstream,
        postgres: &TestPostgres,
        settings: &[(&'static str, &str)],
        answers: impl IntoIterator<Item = Answer>,
    ) -> Option<Self> {
        Self::start_with(backend, postgres, (settings, &[]), answers).await
    }

    /// The same with files of the test's own in the folder of each.
    pub async fn start_with(
        backend: Upstream,
        postgres: &TestPostgres,
        (settings, files): (Settings<'_>, &[(&str, &str)]),
        answers: impl IntoIterator<Item = Answer>,
    ) -> Option<Self> {
        let (redis, database) = (TestRedis::start()?, postgres.new_database().await);
        let model = Upstream::script(answers).await;
        let redis_url = redis.url();
        let shared = [("STORE__URL", database.url.as_str()), ("EVENTS__URL", &redis_url), ("RUNS__LEASE_S", "5")];
        let settings = [&shared, settings].concat();
        let machines = [(); 2].map(|()| Machine::new(&model, &backend, &settings));
        for (machine, (path, text)) in machines.iter().flat_map(|machine| files.iter().map(move |file| (machine, file)))
        {
            machine.folder.write(path, text);
        }
        let [a, b] = machines.each_ref().map(Machine::serve);
        let token = machines[0].token();
        let nginx = Nginx::before(&a, &b)?;
        Some(Self { a, b, redis, model, backend, nginx, token, _machines: machines, _database: database })
    }

    /// A way through nginx to one replica, `a` or `b`.
    pub fn on(&self, replica: &'static str) -> Client {
        Client::new(self.nginx.url.clone(), &self.token, Some(replica))
    }

    /// A way through nginx to whichever replica it takes.
    pub fn on_either(&self) -> Client {
        Client::new(self.nginx.url.clone(), &self.token, None)
    }
}

/// nginx before two replicas: `tests/peers/replicas`.
struct Nginx {
    url: String,
    /// Ends, and its nginx with it, when its standard input does.
    _attendant: Attendant,
}

struct Attendant(Child);

impl Nginx {
    fn before(a: &Serving, b: &Serving) -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/replicas");
        let mut attendant = Attendant(
            Command::new(script)
                .args(["attend", &a.address, &b.address])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap(),
        );
        let mut line = String::new();
        BufReader::new(attendant.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        match line.trim().strip_prefix("at ") {
            Some(url) => Some(Self { url: url.to_owned(), _attendant: attendant }),
            None => {
                skip(line.trim());
                None
            }
        }
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Nothing can be done about one that has ended already.
        let _ = self.0.wait();
    }
}

/// Reads a stream to its end, which may be that its server is gone; what it said after `seen`.
async fn until_broken(mut response: Response, mut seen: String) -> String {
    while let Ok(Some(bytes)) = response.chunk().await {
        seen.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    seen
}

/// Reads a stream until it has said `wanted`; the whole of it so far.
async fn more(response: &mut Response, seen: &mut String, wanted: &str) {
    seen.push_str(&read_until(response, wanted).await);
}
