//! What files cost: the memory of an upload, of a hundred at once, of a turn whose model is shown a large picture, and of one
//! behind a history of many. The memory is the most that the process has had resident meanwhile, above what it had before.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::report::median;
use crate::server::Server;
use crate::upstream::Upstream;

/// Times that each is measured.
const TIMES: usize = 5;

const MIB: usize = 1 << 20;

/// Uploads at once, and pictures of a long history.
const AT_ONCE: usize = 100;
const PICTURES: usize = 50;

/// Measures all of it, each on a server that has done nothing else: an allocator gives little back, and what it keeps would hide what
/// the next needs.
pub async fn measure(upstream: &Upstream) {
    let mut pictures = Pictures(0);

    let bench = Bench::start(upstream, &mut pictures).await;
    let mut grown = Vec::new();
    for _ in 0..TIMES {
        let file = pictures.of(20 * MIB - 1);
        let before = bench.begin();
        bench.upload(file).await;
        grown.push(bench.grown_mib(before));
    }
    figure("an upload of 20 MiB: resident memory, at most", "MiB", most(&grown));

    let bench = Bench::start(upstream, &mut pictures).await;
    let (mut grown, mut seconds) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let files: Vec<Vec<u8>> = (0..AT_ONCE).map(|_| pictures.of(MIB)).collect();
        let (before, began) = (bench.begin(), Instant::now());
        let mut uploads = JoinSet::new();
        for file in files {
            let request = bench.uploading(file);
            uploads.spawn(async move { assert_eq!(request.send().await.unwrap().status(), 201) });
        }
        uploads.join_all().await;
        seconds.push(began.elapsed().as_secs_f64());
        grown.push(bench.grown_mib(before));
    }
    figure("100 uploads of 1 MiB at once: resident memory, at most", "MiB", most(&grown));
    figure("100 uploads of 1 MiB at once", "s", median(seconds));

    let bench = Bench::start(upstream, &mut pictures).await;
    let large = bench.upload(pictures.of(5 * MIB)).await;
    let mut turns = Turns::default();
    for nth in 0..TIMES {
        turns.add(&bench, upstream, &format!("large-{nth}"), std::slice::from_ref(&large)).await;
    }
    turns.tell("a turn with a picture of 5 MiB");

    // Of 50 pictures the newest 20 go with each request; the turns that bring them count too.
    let bench = Bench::start(upstream, &mut pictures).await;
    let mut turns = Turns::default();
    for _ in 0..PICTURES / 10 {
        let mut files = Vec::new();
        for _ in 0..10 {
            files.push(bench.upload(pictures.of(MIB / 4)).await);
        }
        turns.add(&bench, upstream, "long", &files).await;
    }
    turns.cpu_ms.clear();
    for _ in 0..TIMES {
        turns.add(&bench, upstream, "long", &[]).await;
    }
    turns.tell("a turn behind 50 pictures of 256 KiB");
}

/// Turns of one kind.
#[derive(Default)]
struct Turns {
    grown_mib: Vec<f64>,
    cpu_ms: Vec<f64>,
    sent_mib: f64,
}

impl Turns {
    async fn add(&mut self, bench: &Bench, upstream: &Upstream, conversation: &str, files: &[String]) {
        let (before, cpu_s) = (bench.begin(), bench.server.cpu_s());
        upstream.watch(Some(bench.server.pid()));
        bench.ask(conversation, files).await;
        self.sent_mib = upstream.watch(None).last().map_or(0, |seen| seen.bytes) as f64 / MIB as f64;
        self.cpu_ms.push((bench.server.cpu_s() - cpu_s) * 1e3);
        self.grown_mib.push(bench.grown_mib(before));
    }

    fn tell(self, name: &str) {
        figure(&format!("{name}: its request"), "MiB", self.sent_mib);
        figure(&format!("{name}: resident memory, at most"), "MiB", most(&self.grown_mib));
        figure(&format!("{name}: CPU"), "ms", median(self.cpu_ms));
    }
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Pictures of one pixel, no two alike.
struct Pictures(u64);

impl Pictures {
    /// One of so many bytes.
    fn of(&mut self, bytes: usize) -> Vec<u8> {
        self.0 += 1;
        let mut file = b"GIF89a\x01\0\x01\0\0\0\0;".to_vec();
        file.extend(self.0.to_le_bytes());
        file.resize(bytes, b'x');
        file
    }
}

struct Bench {
    server: Server,
    http: reqwest::Client,
}

impl Bench {
    /// A server that has taken a small file and answered once.
    async fn start(upstream: &Upstream, pictures: &mut Pictures) -> Self {
        let settings = [("FILES__USER_BYTES", "0"), ("FILES__TENANT_BYTES", "0"), ("LLM__OPENAI__INPUT", "text,image")];
        let server = Server::start_product(upstream, &settings);
        let bench = Self { server, http: reqwest::Client::builder().no_proxy().build().unwrap() };
        let small = bench.upload(pictures.of(1024)).await;
        bench.ask("warm", &[small]).await;
        bench
    }

    fn uploading(&self, file: Vec<u8>) -> reqwest::RequestBuilder {
        let url = format!("http://{}/v1/agent/files?name=a.gif", self.server.address);
        self.http.post(url).bearer_auth(&self.server.token).body(file)
    }

    /// The id of a file that is kept now.
    async fn upload(&self, file: Vec<u8>) -> String {
        let response = self.uploading(file).send().await.unwrap();
        assert_eq!(response.status(), 201);
        response.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// A run of one turn, read to its end.
    async fn ask(&self, conversation: &str, files: &[String]) {
        let attachments: Vec<Value> = files.iter().map(|id| json!({"id": id})).collect();
        let body = json!({"message": "@fast 1@", "context_type": "bench", "conversation_id": conversation,
            "attachments": attachments});
        let url = format!("http://{}/v1/agent/chat", self.server.address);
        let response = self.http.post(url).bearer_auth(&self.server.token).json(&body).send().await.unwrap();
        let text = response.text().await.unwrap();
        assert!(text.contains("event: message_complete"), "{text}");
    }

    /// What is resident now, from which on the most is noted anew.
    fn begin(&self) -> f64 {
        // 5 sets the mark back (proc(5)).
        fs::write(format!("/proc/{}/clear_refs", self.server.pid()), "5").unwrap();
        self.server.resident_kib()
    }

    /// How much more was resident since then at most, in MiB.
    fn grown_mib(&self, before_kib: f64) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        let most: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        (most - before_kib).max(0.0) / 1024.0
    }
}

fn figure(name: &str, unit: &str, value: f64) {
    println!("figure {name}: {value:.1} {unit}");
}
