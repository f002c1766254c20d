//! How often a user may begin a run, in every protocol, at one process and at several.

use std::num::NonZeroU32;

use reqwest::Response;
use serde_json::{Value, json};
use switchboard::chat::caller::Owner;
use switchboard::runs::log::redis::starts::RedisStarts;
use switchboard::runs::starts::{Pace, SharedStarts, Taken};

use super::{header, message, refusal, token};
use crate::support::app::TestApp;
use crate::support::faultproxy::{FaultProxy, Faults, Way};
use crate::support::redis::TestRedis;
use crate::support::wait::eventually;

/// One start a minute, and so many at once: no machine is so slow that another one is free within a test.
fn burst(burst: &str) -> [(&str, &str); 2] {
    [("LIMITS__STARTS_PER_MINUTE", "1"), ("LIMITS__STARTS_BURST", burst)]
}

fn seconds(response: &Response, name: &str) -> u64 {
    header(response, name).rsplit('=').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn as_many_runs_begin_as_may_and_each_says_what_is_left() {
    let app = TestApp::start(&burst("3")).await;
    for left in [2, 1, 0] {
        let begun = app.post(&message("hello")).await;
        assert_eq!(begun.status(), 200);
        assert_eq!(header(&begun, "ratelimit-policy"), r#""starts";q=1;w=60"#);
        assert_eq!(header(&begun, "ratelimit"), format!(r#""starts";r={left};t=60"#));
    }
    let refused = app.post(&message("hello")).await;
    let wait = seconds(&refused, "retry-after");
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(header(&refused, "ratelimit-policy"), r#""starts";q=1;w=60"#);
    assert_eq!(header(&refused, "ratelimit"), format!(r#""starts";r=0;t={wait}"#));
    assert_eq!(refusal(refused).await, (429, "rate_limited".to_owned(), Some(wait)));
    let other = app.post_as(&token(&app, "acme/bob"), &message("hello")).await;
    assert_eq!(other.status(), 200, "another user has a rate of their own");
}

#[tokio::test]
async fn a_request_that_finds_its_run_again_begins_none() {
    let app = TestApp::start(&burst("1")).await;
    let body = message("hello");
    let ask = async || {
        let request = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token);
        request.header("idempotency-key", "k").json(&body).send().await.unwrap()
    };
    let first = ask().await;
    for _ in 0..3 {
        let again = ask().await;
        assert_eq!((again.status().as_u16(), header(&again, "x-run-id")), (200, header(&first, "x-run-id")));
        assert_eq!(header(&again, "ratelimit"), "", "nothing was counted");
    }
    assert_eq!(app.post(&message("hello")).await.status(), 429);
}

#[tokio::test]
async fn every_protocol_counts_and_says_so_in_its_own_words() {
    let chat = json!({"messages": [{"role": "user", "content": "hello"}], "model": "workflow"});
    let ui =
        json!({"id": "ui-N", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hello"}]}]});
    let ag_ui = json!({
        "threadId": "ag-N", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "hello"}],
        "state": {}, "tools": [], "context": [], "forwardedProps": {},
    });
    let page = json!({"message": "hello", "interaction_type": "text_input", "context": {"current_page": "reports"}});
    let openai = |body: &Value| (body["error"]["type"].clone(), body["error"]["code"].clone());
    let rows = [
        ("/v1/agent/chat", message("hello")),
        ("/v1/ai-sdk/chat?context_type=workflow", ui),
        ("/v1/ag-ui/workflow", ag_ui),
        ("/v1/chat/completions", chat),
        ("/api/chat/stream", page),
    ];
    for (path, body) in rows {
        let app =
            TestApp::start(&[&burst("1")[..], &[("SERVER__CORS_ALLOWED_ORIGINS", "https://app.example")]].concat())
                .await;
        let ask = async |conversation: &str| {
            let body = body.to_string().replace("-N", conversation);
            let request = app.http.post(app.url(path)).bearer_auth(&app.token).body(body);
            let request = request.header("content-type", "application/json");
            request.header("origin", "https://app.example").send().await.unwrap()
        };
        let begun = ask("-1").await;
        let (status, left) = (begun.status(), header(&begun, "ratelimit").to_owned());
        assert_eq!(status, 200, "{path}: {}", begun.text().await.unwrap());
        assert_eq!(left, r#""starts";r=0;t=60"#, "{path}");
        let refused = ask("-2").await;
        assert_eq!(refused.status(), 429, "{path}");
        assert!((1..=60).contains(&seconds(&refused, "retry-after")), "{path}");
        assert_eq!(header(&refused, "access-control-allow-origin"), "https://app.example", "{path}");
        let exposed = header(&refused, "access-control-expose-headers");
        for name in ["retry-after", "ratelimit", "ratelimit-policy"] {
            assert!(exposed.split(',').any(|exposed| exposed.trim() == name), "{path}: {name} in {exposed}");
        }
        let told: Value = refused.json().await.unwrap();
        match path {
            "/v1/chat/completions" => {
                assert_eq!(openai(&told), (json!("rate_limit_error"), json!("rate_limit_exceeded")));
            }
            "/api/chat/stream" => assert_eq!(told, json!({"detail": "too many runs were begun in a short time"})),
            _ => assert_eq!(told["code"], "rate_limited", "{path}"),
        }
    }
}

#[tokio::test]
async fn replicas_count_together_and_each_for_itself_while_nobody_can() {
    let Some(redis) = TestRedis::start() else { return };
    let url = redis.url();
    let settings = [&burst("3")[..], &[("EVENTS__URL", url.as_str()), ("AUTH__MODE", "hs256"), SECRET]].concat();
    let replicas = [TestApp::start(&settings).await, TestApp::start(&settings).await];
    for left in [2, 1, 0] {
        let begun = replicas[left % 2].post(&message("hello")).await;
        assert_eq!(
            (begun.status().as_u16(), header(&begun, "ratelimit")),
            (200, &*format!(r#""starts";r={left};t=60"#))
        );
    }
    for app in &replicas {
        let refused = app.post(&message("hello")).await;
        let wait = seconds(&refused, "retry-after");
        assert!((1..=60).contains(&wait), "{wait}");
        assert_eq!(refusal(refused).await.1, "rate_limited");
        assert_eq!(app.post_as(&token(app, "acme/bob"), &message("hello")).await.status(), 200);
    }
    redis.pause();
    // Nobody begins a run whose events cannot be shared, but that is what they are told.
    let refused = replicas[0].post(&message("hello")).await;
    assert_eq!(refusal(refused).await.1, "events_unavailable", "the count alone would have let it in");
    redis.resume();
}

/// Asks a way to Redis for a start: what is left of two, `None` where nobody answered in time.
async fn take(starts: &RedisStarts, user: &str) -> Option<Taken> {
    let two = NonZeroU32::new(2).unwrap();
    let owner = Owner { tenant: "acme".to_owned(), user: user.to_owned() };
    starts.take(&owner, Pace { per_minute: NonZeroU32::MIN, burst: two }).await
}

#[tokio::test]
async fn a_connection_that_leads_nowhere_is_not_asked_again() {
    let Some(redis) = TestRedis::start() else { return };
    let way = FaultProxy::to(redis.url().trim_start_matches("redis://")).await;
    let starts = RedisStarts::connect(&format!("redis://{}", way.address()), "test").unwrap();
    let counted = eventually("the first start is counted", async || take(&starts, "ann").await).await;
    assert!(counted.is_ok());
    let before = way.connections();
    way.set(Way::Down, Faults { stalls: true, ..Faults::default() });
    assert_eq!(take(&starts, "bob").await, None);
    assert_eq!(take(&starts, "bob").await, None);
    assert_eq!(way.connections(), before + 1, "the second one looks for another way");
}

#[tokio::test]
async fn a_dial_goes_on_for_the_next_one_when_whoever_began_it_gives_up() {
    let Some(redis) = TestRedis::start() else { return };
    let way = FaultProxy::to(redis.url().trim_start_matches("redis://")).await;
    // A dial ends after half a second, which a busy machine may take by itself.
    for _ in 0..5 {
        let starts = RedisStarts::connect(&format!("redis://{}", way.address()), "test").unwrap();
        let before = way.connections();
        way.set(Way::Down, Faults { stalls: true, ..Faults::default() });
        assert_eq!(take(&starts, "ann").await, None, "the dial takes longer than a request waits");
        way.heal();
        if take(&starts, "ann").await.is_some() && way.connections() == before + 1 {
            return;
        }
    }
    panic!("no dial has outlived the request that began it");
}

const SECRET: (&str, &str) = ("AUTH__HS256_SECRET", "0123456789abcdef0123456789abcdef");
