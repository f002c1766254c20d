//! The way to a model is bad, for each vendor: it refuses, resets, stalls, is cut off at any byte, or passes single bytes.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::llm::Vendor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::vendors;
use crate::support::app::TestApp;
use crate::support::environment::is_long;
use crate::support::faultproxy::{Cut, FaultProxy, Faults, Way};
use crate::support::frames::{self, Frame, names};
use crate::support::upstream::{Request, Upstream};

const WORDS: [&str; 4] = ["Once ", "upon ", "a time, äöü ", "\u{1F600} the end."];

/// The product, a bad way, and a model behind it that gives the same answer each time.
struct World {
    vendor: Vendor,
    app: TestApp,
    way: FaultProxy,
    model: Upstream,
}

impl World {
    async fn start(vendor: Vendor, settings: &[(&str, &str)]) -> Self {
        let model = Upstream::choosing(move |_| Some(vendors::answer(vendor, &WORDS))).await;
        let way = FaultProxy::to(&model.url()).await;
        let of_vendor = vendors::settings(vendor, &way.url());
        let mut all: Vec<(&str, &str)> = of_vendor.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        all.extend([
            ("LLM__RETRY__BASE_MS", "0"),
            ("LLM__BREAKER__FAILURES", "0"),
            ("LLM__RETRY__BUDGET_PERCENT", "100"),
        ]);
        all.extend(settings);
        Self { vendor, app: TestApp::start(&all).await, way, model }
    }

    /// A message, and how many requests its answer took.
    async fn say(&self, conversation: &str, message: &str) -> (Vec<Frame>, usize) {
        let before = self.model.requests().len();
        let frames = self.app.say(conversation, message).await;
        (frames, self.model.requests().len() - before)
    }

    fn last_asked(&self) -> Request {
        self.model.requests().pop().unwrap()
    }
}

fn is_whole(frames: &[Frame]) -> bool {
    names(frames).last() == Some(&"message_complete") && frames::text(frames) == WORDS.concat()
}

/// The error at the end of a run: its code, and whether asking again may help.
fn error(frames: &[Frame]) -> (&str, bool) {
    assert_eq!(names(frames).last(), Some(&"error"), "{frames:#?}");
    let data = frames::data(frames, "error");
    (data["code"].as_str().unwrap(), data["retryable"].as_bool().unwrap())
}

#[tokio::test]
async fn a_model_that_resets_before_its_first_word_is_asked_again_and_nobody_sees_it() {
    for vendor in Vendor::ALL {
        let world = World::start(vendor, &[]).await;
        // Before a byte, in the answer's head, and behind it.
        for (nth, after) in [0, 20, 110].into_iter().enumerate() {
            let cuts_until = Some(world.way.connections() + 1);
            let faults = Faults { cut: Some((after, Cut::Reset)), cuts_until, ..Faults::default() };
            world.way.set(Way::Down, faults);
            let (frames, requests) = world.say(&format!("c-{nth}"), "Tell").await;
            assert!(is_whole(&frames), "{vendor:?} after {after}: {frames:#?}");
            assert_eq!(requests, 2, "{vendor:?} after {after}");
        }
        world.way.heal();
        world.way.refuse(true);
        assert_eq!(error(&world.say("d", "Tell").await.0), ("provider_unavailable", true), "{vendor:?}");
        assert_eq!(names(&world.say("e", "Tell").await.0), ["message_start", "error"], "{vendor:?}");
        world.way.refuse(false);
        assert!(is_whole(&world.say("d", "And now?").await.0), "{vendor:?}");
    }
}

#[tokio::test]
async fn a_name_that_nobody_knows_and_a_server_without_tls_are_errors_that_may_pass() {
    // It answers a greeting that it does not understand at once, in plain words.
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let without_tls = format!("https://{}", plain.local_addr().unwrap());
    let answering = tokio::spawn(async move {
        while let Ok((mut client, _)) = plain.accept().await {
            let mut greeting = [0; 1024];
            // What becomes of the client is its own to tell.
            let _ = client.read(&mut greeting).await;
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    for vendor in Vendor::ALL {
        for url in ["http://nobody.invalid", without_tls.as_str()] {
            let settings = vendors::settings(vendor, url);
            let mut all: Vec<(&str, &str)> =
                settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            all.push(("LLM__RETRY__BASE_MS", "0"));
            let app = TestApp::start(&all).await;
            let frames = app.say("c", "Tell").await;
            assert_eq!(error(&frames), ("provider_unavailable", true), "{vendor:?} at {url}");
            assert!(!frames.iter().any(|frame| frame.data.to_string().contains("invalid")), "no address: {frames:#?}");
        }
    }
    answering.abort();
}

/// Where an answer of `length` bytes is cut.
fn cuts(length: usize) -> Vec<usize> {
    let stride = if is_long() { 1 } else { length.div_ceil(12) };
    (1..length).step_by(stride).collect()
}

#[tokio::test]
async fn an_answer_that_is_cut_off_anywhere_is_an_error_that_keeps_what_was_said_and_is_not_asked_for_again() {
    for vendor in Vendor::ALL {
        let world = World::start(vendor, &[]).await;
        // More than the answer has: its end, and the little that ends a chunked body, lack nothing.
        let (mut broken, mut again, mut whole) = (0, 0, 0);
        for (nth, after) in cuts(1700).into_iter().enumerate() {
            let cut = if nth % 2 == 0 { Cut::Reset } else { Cut::Close };
            let cuts_until = Some(world.way.connections() + 1);
            world.way.set(Way::Down, Faults { cut: Some((after, cut)), cuts_until, ..Faults::default() });
            let conversation = format!("c-{after}");
            let (frames, requests) = world.say(&conversation, "Tell").await;
            if is_whole(&frames) {
                if requests == 2 {
                    again += 1
                } else {
                    whole += 1
                }
                assert!(requests <= 2, "{vendor:?} after {after}");
                continue;
            }
            broken += 1;
            let said = frames::text(&frames);
            assert!(!said.is_empty() && WORDS.concat().starts_with(&said), "{vendor:?} after {after}: {frames:#?}");
            assert_eq!(error(&frames), ("provider_truncated", true), "{vendor:?} after {after}");
            assert_eq!(requests, 1, "{vendor:?} after {after}: what was shown is not asked for again");
            world.way.heal();
            assert!(is_whole(&world.say(&conversation, "Go on").await.0), "{vendor:?} after {after}");
            let asked = String::from_utf8(world.last_asked().body).unwrap();
            // Blanks at the end are not sent to every vendor.
            let said = json!(said).to_string();
            assert!(asked.contains(said.trim_matches('"').trim_end()), "{vendor:?} after {after}: {asked}");
        }
        println!("{:?}: {broken} broken off, {again} asked again, {whole} whole", world.vendor);
        assert!(broken > 0 && again > 0 && whole > 0, "{vendor:?}: {broken} {again} {whole}");
    }
}

#[tokio::test]
async fn a_way_of_single_bytes_changes_nothing() {
    for vendor in Vendor::ALL {
        let world = World::start(vendor, &[]).await;
        for slice in [1, 7] {
            world.way.set(Way::Down, Faults { slice: Some(slice), ..Faults::default() });
            world.way.set(Way::Up, Faults { slice: Some(900 * slice), ..Faults::default() });
            let (frames, requests) = world.say(&format!("c-{slice}"), "Tell").await;
            assert!(is_whole(&frames) && requests == 1, "{vendor:?} by {slice}: {frames:#?}");
        }
    }
}

#[tokio::test]
async fn a_way_that_stalls_is_waited_for_and_given_up_after_the_idle_time() {
    for vendor in Vendor::ALL {
        let settings =
            [("LLM__IDLE_TIMEOUT_S", "2"), ("LLM__FIRST_BYTE_TIMEOUT_S", "2"), ("SERVER__KEEP_ALIVE_S", "1")];
        let world = World::start(vendor, &settings).await;
        // The head and a word or two, and then nothing more comes; the client is kept company.
        world.way.set(Way::Down, Faults { slice: Some(1), latency: Duration::from_micros(1), ..Faults::default() });
        let body = json!({"message": "Tell", "context_type": "workflow", "conversation_id": "c"});
        let mut response = world.app.post(&body).await;
        let mut seen = frames::read_until(&mut response, "Once").await;
        world.way.set(Way::Down, Faults { stalls: true, ..Faults::default() });
        seen.push_str(&response.text().await.unwrap());
        if !seen.contains("the end.") {
            assert_eq!(error(&frames::parse(&seen)), ("provider_timeout", true), "{vendor:?}");
            assert!(seen.contains(": keep-alive"), "{vendor:?}: {seen}");
        }
        // Shorter than that nobody notices, and from the first byte on it is the same.
        let stalled = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            world.way.heal();
        };
        let (told, ()) = tokio::join!(world.say("d", "Tell"), stalled);
        assert!(is_whole(&told.0), "{vendor:?}: {:#?}", told.0);
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_the_same_as_a_refusal_of_its_kind() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let in_stream = format!("event: error\ndata: {overloaded}\n\n");
    let mut told = Vec::new();
    let answers = [
        crate::support::upstream::Answer::ok("text/event-stream", in_stream),
        crate::support::upstream::Answer::status(529, "application/json", overloaded.to_string()),
    ];
    for answer in answers {
        let model = Upstream::choosing(move |_| Some(answer.clone())).await;
        let settings = vendors::settings(Vendor::Claude, &model.url());
        let mut all: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        all.push(("LLM__RETRY__BASE_MS", "0"));
        let app = TestApp::start(&all).await;
        let mut frames = app.say("c", "Tell").await;
        frames.iter_mut().for_each(|frame| {
            if let Some(id) = frame.data.get_mut("request_id") {
                *id = Value::Null;
            }
        });
        told.push((frames, model.requests().len()));
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(error(&told[0].0), ("provider_unavailable", true));
}
