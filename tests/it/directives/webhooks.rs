//! Subscribers hear of signals: signed, again until they have taken them, and each by itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use switchboard::config::{Config, Sources};

use super::{asked, forum, get, post};
use crate::support::model::Scripted;
use crate::support::process::Folder;
use crate::support::upstream::{Answer, End, Request, Upstream};
use crate::support::wait::eventually;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BEFORE: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn status(code: u16) -> Option<Answer> {
    Some(Answer::status(code, "text/plain", "whatever"))
}

/// The product with subscribers at these addresses, which hear of these events.
async fn heard_by(subscribers: &[(&str, &str, &str)], more: &[(&str, &str)]) -> Scripted {
    let mut settings: Vec<(String, String)> = Vec::new();
    for (name, url, events) in subscribers {
        let key = |key: &str| format!("SIGNALS__SUBSCRIBERS__{}__{key}", name.to_uppercase());
        settings.push((key("URL"), format!("{url}/hook")));
        settings.push((key("EVENTS"), (*events).to_owned()));
        settings.push((key("SECRET"), SECRET.to_owned()));
        settings.push((key("MAX_ATTEMPTS"), "2".to_owned()));
        settings.push((key("TIMEOUT_S"), "1".to_owned()));
    }
    settings.push(("SIGNALS__RETRY_BASE_MS".to_owned(), "20".to_owned()));
    let settings: Vec<(&str, &str)> =
        settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).chain(more.iter().copied()).collect();
    forum(&settings, [], |_| None).await.0
}

async fn emit(s: &Scripted, name: &str) -> Value {
    let token = s.app.token_of("ed", Some("acme"), &["emitter"]);
    let (status, made) = post(&s.app, &token, "/signals", json!({"name": name, "payload": {"n": 1}})).await;
    assert_eq!(status, 201, "{made}");
    made["signal"].clone()
}

fn operator(s: &Scripted) -> String {
    s.app.token_of("olga", Some("acme"), &["operator"])
}

async fn deliveries(s: &Scripted, query: &str, count: usize) -> Vec<Value> {
    let token = operator(s);
    eventually(&format!("{count} deliveries with {query}"), async || {
        let listed = get(&s.app, &token, &format!("/deliveries?{query}")).await["items"].as_array().unwrap().clone();
        (listed.len() == count).then_some(listed)
    })
    .await
}

/// Checks that `request` is signed with this secret.
fn is_signed(request: &Request, secret: &str) -> bool {
    let header = |name: &str| request.header(name).unwrap_or_else(|| panic!("{name}: {request:?}"));
    let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap());
    let body = std::str::from_utf8(&request.body).unwrap();
    let signed = format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp"));
    let expected = format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes())));
    header("webhook-signature").split(' ').any(|signature| signature == expected)
}

#[tokio::test]
async fn a_delivery_is_signed_and_says_what_the_signal_says() {
    let hook = Upstream::choosing(|_| status(204)).await;
    let rotated = [("SIGNALS__SUBSCRIBERS__LOG__PREVIOUS_SECRET", BEFORE)];
    let s = heard_by(&[("log", hook.url().as_str(), "shop.*")], &rotated).await;
    let signal = emit(&s, "shop.order.paid").await;
    emit(&s, "forum.thread.created").await;
    let [delivered] = &deliveries(&s, "status=delivered", 1).await[..] else { panic!() };
    assert_eq!(
        (&delivered["signal_id"], &delivered["last_status"], &delivered["attempts"]),
        (&signal["id"], &json!(204), &json!(1))
    );
    let [request] = &hook.requests()[..] else { panic!("{:?}", hook.requests()) };
    assert_eq!(request.header("webhook-id"), signal["id"].as_str());
    assert!(is_signed(request, SECRET) && is_signed(request, BEFORE), "with both, while the old one is known");
    let sent = request.json();
    assert_eq!((&sent["type"], &sent["timestamp"]), (&json!("shop.order.paid"), &signal["occurred_at"]));
    for key in ["id", "seq", "payload", "metadata", "correlation_id", "causation_id", "actor", "subject", "source"] {
        assert_eq!(sent["data"][key], signal[key], "{key}");
    }
    assert_eq!(sent["data"]["tenant"], "acme");
    assert_eq!((request.header("authorization"), request.header("cookie")), (None, None));
}

#[tokio::test]
async fn one_that_fails_is_tried_again_and_holds_up_no_other() {
    let tries = Arc::new(AtomicUsize::new(0));
    let count = tries.clone();
    let flaky = Upstream::choosing(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 => status(500),
        _ => status(200),
    });
    let silent = Upstream::choosing(|_| Some(Answer::ok("text/plain", "").endless("x")));
    let (flaky, silent, good) = (flaky.await, silent.await, Upstream::choosing(|_| status(200)).await);
    let gone = Upstream::choosing(|_| status(410)).await;
    let moved =
        Upstream::choosing(|_| Some(Answer::status(302, "text/plain", "").header("location", "http://127.0.0.1:1/")))
            .await;
    let s = heard_by(
        &[
            ("flaky", flaky.url().as_str(), "*"),
            ("silent", silent.url().as_str(), "*"),
            ("good", good.url().as_str(), "*"),
            ("gone", gone.url().as_str(), "*"),
            ("moved", moved.url().as_str(), "*"),
        ],
        &[],
    )
    .await;
    let signal = emit(&s, "shop.order.paid").await;
    let delivered = deliveries(&s, "status=delivered", 3).await;
    let mut names: Vec<&str> = delivered.iter().map(|one| one["subscriber"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["flaky", "good", "silent"], "a head is an answer, whatever comes behind it");
    let dead = deliveries(&s, "status=dead", 2).await;
    for one in &dead {
        let expected = if one["subscriber"] == "gone" { (json!(1), json!(410)) } else { (json!(2), json!(302)) };
        assert_eq!((one["attempts"].clone(), one["last_status"].clone()), expected, "{one}");
    }
    let requests = flaky.requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests
            .iter()
            .all(|request| is_signed(request, SECRET) && request.header("webhook-id") == signal["id"].as_str())
    );

    // A dead one has all its attempts again.
    let (id, token) =
        (dead.iter().find(|one| one["subscriber"] == "gone").unwrap()["id"].as_str().unwrap(), operator(&s));
    let member = s.app.token_of("ann", Some("acme"), &["member"]);
    let path = format!("/deliveries/{id}/retry");
    assert_eq!(post(&s.app, &member, &path, json!({})).await.0, 403);
    assert_eq!(post(&s.app, &token, &path, json!({})).await.0, 202);
    eventually("it is asked again", async || (gone.requests().len() == 2).then_some(())).await;
    let good_id = delivered.iter().find(|one| one["subscriber"] == "good").unwrap()["id"].as_str().unwrap();
    let (status, problem) = post(&s.app, &token, &format!("/deliveries/{good_id}/retry"), json!({})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("not_dead")));
    let foreign = s.app.token_of("olga", Some("umbrella"), &["operator"]);
    assert_eq!(post(&s.app, &foreign, &path, json!({})).await.0, 404);
}

#[tokio::test]
async fn one_that_is_slow_away_or_broken_holds_up_no_other() {
    // Whoever connects waits: nobody takes these connections.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = format!("http://{}", taken.local_addr().unwrap());
    let broken = Upstream::choosing(|_| Some(Answer::ok("application/json", "{\"never").ending(End::Abort))).await;
    let good = Upstream::choosing(|_| Some(Answer::ok("text/html", "<h1>What?</h1>"))).await;
    let s = heard_by(
        &[
            ("patient", mute.as_str(), "*"),
            ("slow", mute.as_str(), "*"),
            ("away", "http://127.0.0.1:1", "*"),
            ("broken", broken.url().as_str(), "*"),
            ("good", good.url().as_str(), "*"),
        ],
        &[("SIGNALS__SUBSCRIBERS__PATIENT__TIMEOUT_S", "60")],
    )
    .await;
    for _ in 0..20 {
        emit(&s, "shop.order.paid").await;
    }
    deliveries(&s, "status=delivered&subscriber=good&limit=100", 20).await;
    deliveries(&s, "status=delivered&subscriber=broken&limit=100", 20).await;
    for (name, words) in [("slow", "no answer in time"), ("away", "it refuses connections")] {
        for one in deliveries(&s, &format!("status=dead&subscriber={name}&limit=100"), 20).await {
            let got = (&one["attempts"], &one["last_status"], &one["last_error"]);
            assert_eq!(got, (&json!(2), &json!(null), &json!(words)), "{one}");
        }
    }
    // All that while one of them had not ended its first attempt.
    for one in deliveries(&s, "status=pending&limit=100", 20).await {
        assert_eq!((&one["subscriber"], &one["attempts"]), (&json!("patient"), &json!(0)), "{one}");
    }
}

#[tokio::test]
async fn one_that_is_busy_says_when_it_wants_to_be_asked_again() {
    let times: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let heard = times.clone();
    let busy = Upstream::choosing(move |_| {
        let mut heard = heard.lock().unwrap();
        heard.push(Instant::now());
        match heard.len() {
            1 => Some(Answer::status(503, "text/plain", "busy").header("retry-after", "1")),
            _ => status(200),
        }
    });
    let busy = busy.await;
    let s = heard_by(&[("busy", busy.url().as_str(), "*")], &[]).await;
    emit(&s, "shop.order.paid").await;
    deliveries(&s, "status=delivered", 1).await;
    let times = times.lock().unwrap();
    assert_eq!(times.len(), 2);
    assert!(times[1] - times[0] >= Duration::from_secs(1), "not after the 20 ms of the settings: {times:?}");
}

#[test]
fn one_that_is_away_for_a_day_misses_nothing_by_default() {
    let of = |key: &str, value: &str| (format!("SWITCHBOARD__SIGNALS__SUBSCRIBERS__LOG__{key}"), value.to_owned());
    let env = [of("URL", "https://example.com/hook"), of("EVENTS", "*"), of("SECRET", SECRET)].into();
    let signals = Config::load(&Sources { env, ..Sources::default() }).unwrap().signals;
    let pauses = 0..signals.subscribers["log"].max_attempts - 1;
    // The shortest that each can be.
    let longest = signals.retry_max_s * 1000;
    let all: u64 = pauses.map(|n| signals.retry_base_ms.saturating_mul(1 << n.min(20)).min(longest) / 2).sum();
    assert!(all >= 24 * 3600 * 1000, "{} s", all / 1000);
}

#[tokio::test]
async fn a_fact_that_is_told_again_by_its_key_is_not_delivered_again() {
    let hook = Upstream::choosing(|_| status(200)).await;
    let s = heard_by(&[("log", hook.url().as_str(), "shop.*")], &[]).await;
    let token = s.app.token_of("ed", Some("acme"), &["emitter"]);
    let fact = json!({"name": "shop.order.paid", "dedupe_key": "o7"});
    for expected in [201, 200, 200] {
        assert_eq!(post(&s.app, &token, "/signals", fact.clone()).await.0, expected);
        deliveries(&s, "status=delivered", 1).await;
    }
    let last = emit(&s, "shop.order.sent").await;
    deliveries(&s, "status=delivered", 2).await;
    deliveries(&s, "limit=100", 2).await;
    let sent: Vec<_> = hook.requests().iter().map(|request| request.json()["type"].clone()).collect();
    assert_eq!(sent, ["shop.order.paid", "shop.order.sent"]);
    assert_eq!(hook.requests()[1].header("webhook-id"), last["id"].as_str());
}

#[test]
fn a_subscriber_in_a_private_network_is_refused_unless_the_operator_says_so() {
    let rows = [
        ("https://10.1.2.3/hook", "", Some("private = true"), "a private network"),
        ("https://192.168.0.9/hook", "", Some("private = true"), "the same"),
        ("https://[fd00::1]/hook", "", Some("private = true"), "the same of the newer kind"),
        ("https://10.1.2.3/hook", "private = true", None, "it is said"),
        ("https://169.254.169.254/hook", "private = true", Some("link-local"), "where clouds tell secrets"),
        ("http://example.com/hook", "", Some("https://"), "in clear"),
        ("https://me:word@example.com/hook", "", Some("https://"), "with a user"),
        ("https://example.com/hook", "", None, "elsewhere"),
    ];
    for (url, more, words, reason) in rows {
        let folder = Folder::new();
        let settings =
            format!("[signals.subscribers.log]\nurl = \"{url}\"\nevents = [\"*\"]\nsecret = \"{SECRET}\"\n{more}\n");
        folder.write("config/default.toml", &settings);
        let ended = folder.run(&["check-config"], &[]);
        assert_eq!(ended.code, if words.is_some() { 2 } else { 0 }, "{reason}: {}", ended.stderr);
        let key = "signals.subscribers.log.url: ";
        assert!(
            words.is_none_or(|words| ended.stderr.contains(key) && ended.stderr.contains(words)),
            "{reason}: {}",
            ended.stderr
        );
    }
}

#[tokio::test]
async fn signals_are_delivered_again_to_whom_an_operator_says() {
    let (first, second) = (Upstream::choosing(|_| status(200)).await, Upstream::choosing(|_| status(200)).await);
    let s = heard_by(&[("first", first.url().as_str(), "shop.*"), ("second", second.url().as_str(), "*")], &[]).await;
    let (one, two) = (emit(&s, "shop.order.paid").await, emit(&s, "forum.thread.created").await);
    deliveries(&s, "status=delivered", 3).await;
    let (token, member) = (operator(&s), s.app.token_of("ann", Some("acme"), &["member"]));
    let replay = async |body: Value| post(&s.app, &token, "/signals/replay", body).await;
    let rows = [
        (json!({"ids": [one["id"], two["id"]]}), json!({"matched": 2, "queued": 3})),
        (json!({"ids": [one["id"]], "subscriber": "second"}), json!({"matched": 1, "queued": 1})),
        (json!({"name": "forum.*"}), json!({"matched": 1, "queued": 1})),
        (json!({"from": "2020-01-01T00:00:00Z", "to": "2099-01-01T00:00:00Z"}), json!({"matched": 2, "queued": 3})),
        (json!({"recent": 1, "subscriber": "first"}), json!({"matched": 1, "queued": 0})),
    ];
    let mut expected = 3;
    for (body, replayed) in rows {
        let (status, got) = replay(body.clone()).await;
        assert_eq!((status, &got), (202, &replayed), "{body}");
        expected += usize::try_from(replayed["queued"].as_u64().unwrap()).unwrap();
        eventually("they are sent", async || {
            (first.requests().len() + second.requests().len() == expected).then_some(())
        })
        .await;
        deliveries(&s, "status=delivered", 3).await;
    }
    let ids: Vec<_> = first.requests().iter().map(|request| request.header("webhook-id").unwrap().to_owned()).collect();
    assert!(ids.iter().all(|id| one["id"] == **id), "the same id in each");
    assert_eq!(
        get(&s.app, &s.app.token_of("ed", Some("acme"), &["emitter"]), "/signals").await["items"]
            .as_array()
            .unwrap()
            .len(),
        2,
        "no new signals"
    );
    assert_eq!(post(&s.app, &member, "/signals/replay", json!({"recent": 1})).await.0, 403);
    for body in [
        json!({}),
        json!({"recent": 1, "name": "*"}),
        json!({"ids": []}),
        json!({"ids": ["x"]}),
        json!({"recent": 0}),
        json!({"recent": 5001}),
        json!({"name": "Shop"}),
        json!({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}),
        json!({"recent": 1, "subscriber": "third"}),
    ] {
        let (status, problem) = replay(body.clone()).await;
        assert_eq!(status, 422, "{body}: {problem}");
    }
    let (status, _) = asked(&s.app, &member, reqwest::Method::GET, "/deliveries", None).await;
    assert_eq!(status, 403);
}
