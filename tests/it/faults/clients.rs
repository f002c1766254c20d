//! Clients that go away in every way and come back, that do not read, and that all come back at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;

use crate::death::{Client, Machine, backend, background, end_of, message, rest};
use crate::runs::{gated, hanging, header, read_until};
use crate::support::environment::{cycles, is_long};
use crate::support::faultproxy::{Cut, FaultProxy, Faults, Way};
use crate::support::frames;
use crate::support::model::{says, turn};
use crate::support::process::Serving;
use crate::support::upstream::{Answer, Upstream};
use crate::support::wait::eventually;

/// A server in a process of its own, a bad way to it and a good one.
struct World {
    serving: Serving,
    way: FaultProxy,
    token: String,
    model: Upstream,
    _backend: Upstream,
    _machine: Machine,
}

impl World {
    async fn start(settings: &[(&'static str, &str)], model: Upstream) -> Self {
        let backend = backend().await;
        let machine = Machine::new(&model, &backend, settings);
        let serving = machine.serve();
        let way = FaultProxy::to(&serving.address).await;
        Self { token: machine.token(), serving, way, model, _backend: backend, _machine: machine }
    }

    /// By the good way.
    fn client(&self) -> Client {
        Client::of(&self.serving, &self.token)
    }

    /// By the bad way, with connections of its own.
    fn astray(&self) -> Client {
        Client::new(self.way.url(), &self.token, None)
    }
}

/// What came of a stream until it broke, up to its last whole frame.
async fn until_broken(mut response: reqwest::Response) -> String {
    let mut seen = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        seen.extend(bytes);
    }
    let whole = seen.windows(2).rposition(|window| window == b"\n\n").map_or(0, |at| at + 2);
    seen.truncate(whole);
    String::from_utf8(seen).unwrap()
}

/// A stream without what only keeps it open.
fn frames_of(stream: &str) -> String {
    stream.split_inclusive("\n\n").filter(|block| !block.starts_with(':')).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_cut_anywhere_is_gone_on_with_exactly() {
    let story = || {
        let word = |nth| turn().text(&format!("word{nth} ")).bytes();
        let begin = turn().text("Once ").answer();
        (0..12)
            .fold(begin, |answer, nth| answer.later(Duration::from_millis(2), word(nth)))
            .later(Duration::ZERO, says("end.").bytes())
    };
    let world = World::start(&[], Upstream::choosing(move |_| Some(story())).await).await;
    // The head of the answer has some 700 bytes, the frames some 1,800.
    let most = 2700;
    for after in (0..most).step_by(most / cycles(16, most)) {
        let cut = if after % 2 == 0 { Cut::Reset } else { Cut::Close };
        let key = format!("key-{after}");
        let body = background(&format!("c-{after}"), "Tell");
        world.way.set(Way::Down, Faults { cut: Some((after, cut)), slice: Some(97), ..Faults::default() });
        let astray = world.astray();
        // Whoever does not even know its run asks again with its key.
        let (run, seen) = match astray.try_chat_with_key(&key, &body).await {
            Ok(response) => (header(&response, "x-run-id"), until_broken(response).await),
            Err(_) => {
                let again = world.client().chat_with_key(&key, &body).await;
                (header(&again, "x-run-id"), String::new())
            }
        };
        let seen = frames_of(&seen);
        let last = frames::numbered(&seen).last().map(|(id, _)| *id);
        let resumed = world.client().events(&run, last).await;
        let more = if resumed.status() == 204 { String::new() } else { frames_of(&rest(resumed).await) };
        let whole = frames_of(&rest(world.client().events(&run, None).await).await);
        assert_eq!(seen + &more, whole, "after {after}");
        assert_eq!(end_of(&whole), "message_complete");
    }
    world.way.heal();
}

#[tokio::test]
async fn a_client_that_ends_resets_or_closes_its_half_is_gone_and_one_that_sleeps_is_not() {
    let world = World::start(&[], Upstream::choosing(|_| Some(hanging("Half"))).await).await;
    let mut gone = 0;
    for cut in [Cut::Close, Cut::Reset] {
        let mut response = world.astray().chat(&message(&format!("{cut:?}"), "Think")).await;
        let run = header(&response, "x-run-id");
        read_until(&mut response, "Half").await;
        world.way.end_all(cut);
        gone += 1;
        world.model.clients_gone(gone).await;
        world.client().run_in(&run, "cancelled").await;
    }
    let mut half = TcpStream::connect(&world.serving.address).await.unwrap();
    let body = message("half", "Think").to_string();
    let head = format!(
        "POST /v1/agent/chat HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        world.token,
        body.len()
    );
    half.write_all((head + &body).as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("Half") {
        assert_ne!(half.read_buf(&mut seen).await.unwrap(), 0, "{}", String::from_utf8_lossy(&seen));
    }
    half.shutdown().await.unwrap();
    world.model.clients_gone(gone + 1).await;

    // Nothing is heard of a tab that sleeps, for a while.
    let mut asleep = world.astray().chat(&message("asleep", "Think")).await;
    let run = header(&asleep, "x-run-id");
    read_until(&mut asleep, "Half").await;
    world.way.set(Way::Down, Faults { stalls: true, ..Faults::default() });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.client().run(&run).await["state"], "running");
    world.way.heal();
}

/// A reader that asks for a run's events and takes none of them.
async fn stalled(world: &World, run: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(world.serving.address.parse().unwrap()).await.unwrap();
    let head =
        format!("GET /v1/agent/runs/{run}/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", world.token);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_do_not_read_hold_up_nobody_and_hold_little() {
    let gate = Arc::new(Notify::new());
    let of_model = gate.clone();
    let lines: String = (0..4000).map(|nth| turn().text(&format!("{nth:04} {}\n", "x".repeat(1000))).bytes()).collect();
    let model = Upstream::choosing(move |_| {
        let story = Answer::ok("text/event-stream", turn().text("Once ").bytes()).gated(&of_model, lines.clone());
        Some(story.later(Duration::ZERO, says("end.").bytes()))
    });
    // Much work for a debug build: one that gets little of its machine must not miss its own lease meanwhile.
    let world = World::start(&[("RUNS__LEASE_S", "120")], model.await).await;
    let told = async |response: reqwest::Response| {
        let text = tokio::time::timeout(Duration::from_secs(240), response.text());
        text.await.expect("the run does not end").unwrap()
    };
    // The same without them before, since the run itself takes memory too: twice to fill what the allocator keeps for each
    // thread, once to know what a run takes then.
    let mut of_run = 0;
    for nth in 0..3 {
        let before = world.serving.resident_kib();
        let alone = world.client().chat(&background(&format!("alone-{nth}"), "Tell")).await;
        gate.notify_one();
        told(alone).await;
        of_run = world.serving.resident_kib().saturating_sub(before);
    }
    let mut near = world.client().chat(&background("c", "Tell")).await;
    let run = header(&near, "x-run-id");
    let seen = read_until(&mut near, "Once").await;
    let readers = cycles(20, 500);
    let (before, descriptors) = (world.serving.resident_kib(), world.serving.descriptors());
    let mut held = Vec::new();
    for _ in 0..readers {
        held.push(stalled(&world, &run).await);
    }
    gate.notify_one();
    let began = Instant::now();
    let whole = seen + &told(near).await;
    let took = began.elapsed();
    assert_eq!(end_of(&whole), "message_complete");
    assert!(whole.len() > 4_000_000);
    // A run's own log of 8 MiB is no reader's, nor is what a run takes at its height: the text a few times over.
    let of_run = of_run.max(24 << 10);
    let grown = world.serving.resident_kib().saturating_sub(before);
    println!("{readers} stalled readers: {grown} KiB more in all, the run took {took:?}");
    assert!(
        grown.saturating_sub(of_run) < 256 * readers as u64,
        "{grown} KiB for {readers} readers, {of_run} for the run"
    );
    if is_long() {
        // Thirty seconds without progress.
        tokio::time::sleep(Duration::from_secs(20)).await;
        eventually("they are dropped", async || (world.serving.descriptors() <= descriptors + 2).then_some(())).await;
    }
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_all_come_back_at_once_are_all_served() {
    let gate = Arc::new(Notify::new());
    let of_model = gate.clone();
    let model = Upstream::choosing(move |_| Some(gated(&of_model, "Once ", "more."))).await;
    let world = World::start(&[], model).await;
    let mut near = world.client().chat(&background("c", "Tell")).await;
    let run = header(&near, "x-run-id");
    let seen = read_until(&mut near, "Once").await;
    let last = frames::numbered(&seen).last().unwrap().0;
    let readers = cycles(150, 1000);
    let (astray, client) = (world.astray(), world.client());
    let mut held = Vec::new();
    for _ in 0..readers {
        let mut reader = astray.events(&run, None).await;
        read_until(&mut reader, "Once").await;
        held.push(reader);
    }
    world.way.end_all(Cut::Reset);
    drop(held);
    let began = Instant::now();
    let back = async |_| loop {
        let response = client.events(&run, Some(last)).await;
        match response.status().as_u16() {
            200 => return response,
            503 => assert!(response.headers().contains_key("retry-after")),
            status => panic!("{status}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let back = join_all((0..readers).map(back)).await;
    let took = began.elapsed();
    println!("{readers} readers are back after {took:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    gate.notify_one();
    let whole = frames_of(&(seen.clone() + &rest(near).await));
    for more in join_all(back.into_iter().map(rest)).await {
        assert_eq!(frames_of(&(seen.clone() + &more)), whole);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_says_nothing_or_half_a_head_holds_up_nobody() {
    let world = World::start(&[], Upstream::choosing(|_| Some(says("Noted.").answer())).await).await;
    let client = world.client();
    let asked = async |round: &str| {
        let mut times = Vec::new();
        for nth in 0..20 {
            let began = Instant::now();
            assert_eq!(client.says(&message(&format!("c-{round}-{nth}"), "Hello")).await, "Noted.");
            times.push(began.elapsed());
        }
        times.sort_unstable();
        times[10]
    };
    let alone = asked("alone").await;
    let crowd = cycles(400, 5000);
    let before = world.serving.resident_kib();
    let mut held = Vec::new();
    for nth in 0..crowd {
        let mut stream = TcpStream::connect(&world.serving.address).await.unwrap();
        let said: &[u8] = match nth % 3 {
            0 => b"",
            1 => b"POST /v1/agent/chat HTTP/1.1\r\nhost: x\r\nx-slow: ",
            _ => b"POST /v1/agent/chat HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{",
        };
        stream.write_all(said).await.unwrap();
        held.push(stream);
    }
    let in_a_crowd = asked("crowd").await;
    let grown = world.serving.resident_kib().saturating_sub(before);
    println!(
        "a run takes {alone:?} alone and {in_a_crowd:?} in a crowd of {crowd}, who hold {} KiB each",
        grown / crowd as u64
    );
    assert!(in_a_crowd < alone * 4 + Duration::from_secs(2), "{alone:?}, {in_a_crowd:?}");
    drop(held);
}
