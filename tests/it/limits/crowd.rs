//! What many users at their limits take of the memory of one process, and whether anybody else notices.
//!
//! They do as much as the default limits let them, and come again when they are told to. The others are people who chat with a
//! model that takes its time. The short form has a dozen users for some seconds and looks at the process's resident memory. The
//! long one (`SWITCHBOARD_TEST_LONG=1`) has 200 of them for ten minutes in a control group of 1 GiB, as `docs/OPERATIONS.md`
//! sums it up.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use memchr::memmem;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::support::environment::{is_long, skip};
use crate::support::model::{says, turn};
use crate::support::process::Folder;
use crate::support::upstream::{Answer, Upstream};

/// How long each of them holds what it got.
const HELD: Duration = Duration::from_secs(2);

/// The longest that somebody waits who is told to come again.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Until the model says the first words to a bystander, and between two pieces: the pace of a hosted one that is quick.
const FIRST_WORDS: Duration = Duration::from_millis(500);
const BETWEEN: Duration = Duration::from_millis(25);

/// Pieces of what it says.
const PIECES: usize = 60;

/// How long a bystander thinks before the next message.
const THOUGHT: Duration = Duration::from_millis(2500);

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

/// What came of a message.
struct Answered {
    status: u16,
    /// How long to wait before the next one.
    wait: Duration,
    first_words: Duration,
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
    /// the machine's cores. Tells when the first bytes of the answer came.
    async fn post(&self, user: &User, conversation: &str, message: &str, context: &str) -> Option<Answered> {
        let body = format!(
            r#"{{"message": "{message}", "context_type": "workflow", "conversation_id": "{conversation}", "context": {context}}}"#
        );
        let request = self.http.post(self.url("/v1/agent/chat")).bearer_auth(&user.token);
        let begun = Instant::now();
        let mut answer = request.header("content-type", "application/json").body(body).send().await.ok()?;
        let status = answer.status().as_u16();
        let wait = wait(&answer);
        let (mut first_words, mut said) = (None, Vec::new());
        while let Some(piece) = answer.chunk().await.ok()? {
            said.extend_from_slice(&piece);
            if first_words.is_none() && memmem::find(&said, b"content_chunk").is_some() {
                first_words = Some(begun.elapsed());
            }
        }
        if !matches!(status, 200 | 429 | 503) {
            eprintln!("{}: {status}: {:?}", user.name, String::from_utf8_lossy(&said));
        }
        Some(Answered { status, wait, first_words: first_words.unwrap_or_default() })
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
                sleep(HELD.max(wait(&answer))).await;
            }
            Does::Chat => {
                let conversation = uuid::Uuid::new_v4().to_string();
                let Some(answered) = self.post(user, &conversation, &self.long.0, &self.long.1).await else { return };
                self.count(answered.status);
                sleep(answered.wait).await;
            }
        }
    }

    fn count(&self, status: u16) {
        let of = if matches!(status, 429 | 503) { &self.refused } else { &self.answered };
        of.fetch_add(1, Ordering::Relaxed);
    }

    /// What a bystander waits for, for so long.
    async fn bystander(&self, user: &User, time: Duration) -> Vec<Waited> {
        let (until, mut waited) = (Instant::now() + time, Vec::new());
        while Instant::now() < until {
            let begun = Instant::now();
            let url = self.url("/v1/agent/conversations?limit=1");
            let answer = self.http.get(url).bearer_auth(&user.token).send().await.unwrap();
            assert_eq!(answer.status(), 200, "a bystander's list");
            answer.bytes().await.unwrap();
            let list = begun.elapsed();
            // A chat that grows would take longer by itself.
            let conversation = uuid::Uuid::new_v4().to_string();
            let begun = Instant::now();
            let answered = self.post(user, &conversation, "hello", "{}").await.unwrap();
            assert_eq!(answered.status, 200, "a bystander's message");
            waited.push(Waited { list, first_words: answered.first_words, answer: begun.elapsed() });
            sleep(THOUGHT).await;
        }
        waited
    }

    /// The same of several at once.
    async fn bystanders(&self, users: &[User], time: Duration) -> Vec<Waited> {
        let each = users.iter().enumerate().map(|(n, user)| async move {
            // Not all at the same moment.
            sleep(THOUGHT.mul_f64(n as f64 / users.len() as f64)).await;
            self.bystander(user, time).await
        });
        join_all(each).await.into_iter().flatten().collect()
    }
}

/// What somebody waits for whom the limits do not concern.
struct Waited {
    list: Duration,
    first_words: Duration,
    answer: Duration,
}

/// The middle of them, the slowest of twenty, and the slowest.
fn told(waited: &[Waited], what: impl Fn(&Waited) -> Duration) -> [Duration; 3] {
    let mut sorted: Vec<_> = waited.iter().map(what).collect();
    sorted.sort();
    [50, 95, 100].map(|percent| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)])
}

/// How long whoever got this is told to wait.
fn wait(answer: &reqwest::Response) -> Duration {
    let seconds = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    seconds.map_or(Duration::ZERO, |seconds| Duration::from_secs(seconds).min(LONGEST_WAIT))
}

/// An answer at the pace of a model.
fn slowly() -> Answer {
    let text = |text: &str| turn().text(text).bytes();
    let first = Answer::ok("text/event-stream", "").later(FIRST_WORDS, text("Here is "));
    (0..PIECES).fold(first, |answer, _| answer.later(BETWEEN, text("some more "))).later(BETWEEN, turn().done().bytes())
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
        let has = |words: &str| memmem::find(&request.body, words.as_bytes()).is_some();
        Some(match (has("at length"), has("hello")) {
            (true, _) => says(&long_answer).answer(),
            (_, true) => slowly(),
            (_, false) => says("Yes.").answer(),
        })
    })
    .await;
    let folder = Folder::new();
    let serving = folder.serve(&[
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", &format!("{}/v1", model.url())),
        ("LIMITS__MEMORY_BYTES", &memory_bytes.to_string()),
        // Those of users are the default ones. They all have one tenant, which could take 500 runs.
        ("LIMITS__STARTS_PER_MINUTE", "30"),
        ("LIMITS__ACTIVE_RUNS_PER_USER", "4"),
        ("SERVER__REQUESTS_PER_USER", "256"),
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
    let bystanders: Vec<User> = (0..5).map(|n| user(format!("bystander-{n}"))).collect();
    for some in at_limits.chunks(8) {
        let begun = join_all(some.iter().map(|user| place.post(user, &user.name, "Tell me at length.", "{}"))).await;
        assert!(begun.iter().all(|answered| answered.as_ref().is_some_and(|answered| answered.status == 200)));
    }

    let before = place.bystanders(&bystanders, time.min(Duration::from_secs(30))).await;
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
    let (most, during) = tokio::join!(watched, place.bystanders(&bystanders, time));
    join_all(load).await;
    elsewhere.shutdown_background();

    let (refused, answered) = (crowded.refused.load(Ordering::Relaxed), crowded.answered.load(Ordering::Relaxed));
    eprintln!(
        "{users} users for {time:?}: at rest {} MiB, at most {} MiB; {answered} requests answered, {refused} told to come again",
        at_rest / 1024,
        most / 1024,
    );
    for (what, waited) in [("without them", &before), ("beside them", &during)] {
        eprintln!(
            "{} turns {what}: list {:.1?}, first words {:.1?}, answer {:.1?} (the middle, one of twenty, the slowest)",
            waited.len(),
            told(waited, |waited| waited.list),
            told(waited, |waited| waited.first_words),
            told(waited, |waited| waited.answer),
        );
    }
    assert!(refused > 0, "they are at their limits");
    assert_eq!(place.http.get(place.url("/livez")).send().await.unwrap().status(), 200, "it lives");
    match is_long() {
        true => assert!(most < 1 << 20, "more than a GiB: {most} KiB"),
        // The budget, what runs and connections take beside it, and what the allocator keeps.
        false => assert!(most - at_rest < memory_bytes / 1024 + (96 << 10), "{at_rest} KiB became {most} KiB"),
    }
}
