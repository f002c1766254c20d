//! What many users at their limits take of the memory of one process, and whether anybody else notices.
//!
//! The short form has a dozen users for some seconds and looks at the process's resident memory. The long one
//! (`SWITCHBOARD_TEST_LONG=1`) has 200 of them for ten minutes in a control group of 1 GiB, as `docs/OPERATIONS.md` sums it up.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::support::environment::{is_long, skip};
use crate::support::model::says;
use crate::support::process::Folder;
use crate::support::upstream::Upstream;

/// How long each of them holds what it got.
const HELD: Duration = Duration::from_secs(2);

/// What users do at once.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// A body of 1 MiB that never ends.
    Body,
    /// A head that never ends, and has no token yet.
    Head,
    /// An export that is read slowly.
    Export,
    /// A long message with a large state of the screen.
    Chat,
}

/// A user with a token.
struct User {
    name: String,
    token: String,
}

/// The server, and who speaks to it.
struct Place {
    address: String,
    http: reqwest::Client,
    /// A long message, and a large state of the screen.
    long: (String, String),
    /// Requests that were told to come again.
    refused: AtomicU32,
    /// Requests that were answered.
    answered: AtomicU32,
}

impl Place {
    fn new(address: &str, long: (String, String)) -> Self {
        let (address, http) = (address.to_owned(), reqwest::Client::builder().no_proxy().build().unwrap());
        Self { address, http, long, refused: AtomicU32::default(), answered: AtomicU32::default() }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Asks in a conversation; `context` is the JSON of what is on the screen. It is put together as text, since both sides share
    /// the machine's cores.
    async fn post(&self, user: &User, conversation: &str, message: &str, context: &str) -> Option<u16> {
        let body = format!(
            r#"{{"message": "{message}", "context_type": "workflow", "conversation_id": "{conversation}", "context": {context}}}"#
        );
        let request = self.http.post(self.url("/v1/agent/chat")).bearer_auth(&user.token);
        let answer = request.header("content-type", "application/json").body(body).send().await.ok()?;
        let status = answer.status().as_u16();
        let said = answer.text().await;
        if !matches!(status, 200 | 429) {
            eprintln!("{}: {status}: {said:?}", user.name);
        }
        Some(status)
    }

    /// Sends so many bytes, and what was begun stays so for a while.
    async fn begin(&self, head: &str, bytes: usize) {
        let Ok(mut stream) = TcpStream::connect(&self.address).await else { return };
        let _ = timeout(HELD, async {
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(" ".repeat(bytes).as_bytes()).await
        })
        .await;
        sleep(HELD).await;
    }

    async fn once(&self, user: &User, does: Does) {
        let token = &user.token;
        match does {
            Does::Body => {
                let head =
                    "POST /v1/agent/chat HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576\r\nauthorization: Bearer ";
                self.begin(&format!("{head}{token}\r\n\r\n"), 900_000).await;
            }
            Does::Head => self.begin(&format!("GET /{} HTTP/1.1\r\nx: ", "a".repeat(30_000)), 0).await,
            Does::Export => {
                let url = self.url(&format!("/v1/agent/conversations/{}/export", user.name));
                let Ok(mut answer) = self.http.get(url).bearer_auth(token).send().await else { return };
                self.count(answer.status().as_u16());
                let _ = answer.chunk().await;
                sleep(HELD).await;
            }
            Does::Chat => {
                let conversation = uuid::Uuid::new_v4().to_string();
                if let Some(status) = self.post(user, &conversation, &self.long.0, &self.long.1).await {
                    self.count(status);
                }
            }
        }
    }

    fn count(&self, status: u16) {
        let of = if matches!(status, 429 | 503) { &self.refused } else { &self.answered };
        of.fetch_add(1, Ordering::Relaxed);
    }

    /// What a bystander waits for, each time served.
    async fn bystander(&self, user: &User, times: u32) -> Vec<Duration> {
        let mut waited = Vec::new();
        for _ in 0..times {
            let begun = Instant::now();
            let url = self.url("/v1/agent/conversations?limit=1");
            let answer = self.http.get(url).bearer_auth(&user.token).send().await.unwrap();
            assert_eq!(answer.status(), 200, "a bystander's list");
            // A chat that grows would take longer by itself.
            let conversation = uuid::Uuid::new_v4().to_string();
            assert_eq!(self.post(user, &conversation, "hello", "{}").await, Some(200), "a bystander's message");
            waited.push(begun.elapsed());
            sleep(Duration::from_millis(200)).await;
        }
        waited.sort();
        waited
    }
}

/// Gives the thread what others leave of the processors.
fn step_back() {
    let Some(thread) = std::fs::read_link("/proc/thread-self").ok().and_then(|path| Some(path.file_name()?.to_owned()))
    else {
        return;
    };
    let _ = Command::new("renice").args(["-n", "10", "-p"]).arg(thread).stdout(Stdio::null()).status();
}

/// A control group that may hold so much memory; removed at the end.
struct Group(PathBuf);

impl Group {
    /// `None` where this machine lets nobody make one.
    fn of(process: u32, bytes: u64) -> Option<Self> {
        let name = format!("switchboard-test-{process}");
        let kinds = [
            (PathBuf::from("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
            (PathBuf::from("/sys/fs/cgroup"), "memory.max"),
        ];
        kinds.into_iter().find_map(|(root, limit)| {
            let group = Self(root.join(&name));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join(limit), bytes.to_string()).ok()?;
            std::fs::write(group.0.join("cgroup.procs"), process.to_string()).ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_at_their_limits_take_what_the_budget_says() {
    let (users, copies, time, memory_bytes) = match is_long() {
        true => (200, 1, Duration::from_secs(600), 256 << 20),
        false => (12, 6, Duration::from_secs(6), 32 << 20),
    };
    let long_answer = "A sentence of an answer that goes on and on. ".repeat(45_000);
    let model = Upstream::choosing(move |request| {
        let is_long = String::from_utf8_lossy(&request.body).contains("at length");
        Some(if is_long { says(&long_answer).answer() } else { says("Yes.").answer() })
    })
    .await;
    let folder = Folder::new();
    let serving = folder.serve(&[
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", &format!("{}/v1", model.url())),
        ("LIMITS__MEMORY_BYTES", &memory_bytes.to_string()),
        ("SERVER__REQUESTS_PER_USER", "64"),
    ]);
    let group = is_long().then(|| Group::of(serving.id(), 1 << 30)).flatten();
    if is_long() && group.is_none() {
        skip("no control group can be made here; resident memory is looked at instead");
    }
    let rows: Vec<_> = (0..8000).map(|n| json!({"id": n, "name": "a row of what is on the screen"})).collect();
    let long = ("a line of a log\\n".repeat(6000), json!({ "rows": rows }).to_string());
    let [place, crowded] = [(); 2].map(|()| Place::new(&serving.address, long.clone()));
    let user = |name: String| User { token: folder.token(&["--user", &name]), name };
    let at_limits: Vec<Arc<User>> = (0..users).map(|n| Arc::new(user(format!("user-{n}")))).collect();
    let bystander = user("bystander".to_owned());
    for some in at_limits.chunks(8) {
        let begun = join_all(some.iter().map(|user| place.post(user, &user.name, "Tell me at length.", "{}"))).await;
        assert!(begun.iter().all(|status| *status == Some(200)), "{begun:?}");
    }

    let before = place.bystander(&bystander, 10).await;
    let at_rest = serving.resident_kib();
    let until = Instant::now() + time;
    // What users do costs their own machines, so here it costs nobody else: their threads get what the server leaves.
    let elsewhere = Builder::new_multi_thread().enable_all().on_thread_start(step_back).build().unwrap();
    let crowded = Arc::new(crowded);
    let mut load = Vec::new();
    for user in &at_limits {
        for does in [Does::Body, Does::Head, Does::Export, Does::Chat] {
            for _ in 0..copies {
                let (crowded, user) = (crowded.clone(), user.clone());
                load.push(elsewhere.spawn(async move {
                    while Instant::now() < until {
                        crowded.once(&user, does).await;
                    }
                }));
            }
        }
    }
    let watched = async {
        let mut most = 0;
        while Instant::now() < until {
            most = serving.resident_kib().max(most);
            model.forget();
            sleep(Duration::from_millis(100)).await;
        }
        most
    };
    let times = u32::try_from(time.as_secs()).unwrap();
    let (most, during) = tokio::join!(watched, place.bystander(&bystander, times));
    join_all(load).await;
    elsewhere.shutdown_background();

    let at = |waited: &[Duration], percent: usize| waited[waited.len() * percent / 100];
    let mut slowest: Vec<f64> = during.iter().rev().take(12).map(Duration::as_secs_f64).collect();
    slowest.reverse();
    eprintln!("the slowest: {slowest:.3?}");
    let (refused, answered) = (crowded.refused.load(Ordering::Relaxed), crowded.answered.load(Ordering::Relaxed));
    eprintln!(
        "{users} users for {time:?}: at rest {} MiB, at most {} MiB; {answered} requests answered, {refused} told to come \
         again; a bystander waited {:?} before, and {:?} meanwhile, {:?} in one of twenty cases",
        at_rest / 1024,
        most / 1024,
        at(&before, 50),
        at(&during, 50),
        at(&during, 95),
    );
    assert!(refused > 0, "they are at their limits");
    assert_eq!(place.http.get(place.url("/livez")).send().await.unwrap().status(), 200, "it lives");
    match is_long() {
        true => assert!(most < 1 << 20, "more than a GiB: {most} KiB"),
        // The budget, what runs and connections take beside it, and what the allocator keeps.
        false => assert!(most - at_rest < memory_bytes / 1024 + (96 << 10), "{at_rest} KiB became {most} KiB"),
    }
}
