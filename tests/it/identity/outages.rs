//! Issuers that are away, slow, or say nonsense, and keys that change: what requests get meanwhile, and how often the
//! issuer is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::issuer::{AUDIENCE, TestIssuer, TestKey, accepted, judged, refused, set, unknown_now};
use super::now;
use crate::support::app::TestApp;
use crate::support::upstream::{Answer, End, Upstream};

/// A look at the keys is soon allowed again.
const SOON: (&str, &str) = ("AUTH__JWKS_COOLDOWN_S", "1");

/// Somewhat longer than that.
const LATER: Duration = Duration::from_millis(1_100);

/// Waits until a token is accepted.
async fn in_time(app: &TestApp, token: &str, reason: &str) {
    let began = Instant::now();
    while judged(app, token).await.0 != 200 {
        assert!(began.elapsed() < Duration::from_secs(20), "{reason}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn whatever_an_issuer_answers_requests_get_503_until_there_are_keys() {
    let key = TestKey::es256("k");
    let elsewhere = Upstream::script([]).await;
    let spaces = || [vec![b' '; 1 << 20], b"{\"keys\":[]}".to_vec()].concat();
    let weak = TestKey::rsa("weak", None).published_with(&json!({"n": "wcHB"}));
    let rows = [
        (Answer::status(500, "text/plain", "oh no"), "it fails"),
        (Answer::status(404, "text/html", "<html>"), "there is nothing"),
        (Answer::ok("text/html", "<html><body>Sign in</body></html>"), "a page"),
        (Answer::ok("application/json", ""), "nothing at all"),
        (Answer::ok("application/json", "{}"), "no set"),
        (Answer::ok("application/json", r#"{"keys":[]}"#), "an empty set"),
        (Answer::ok("application/json", r#"{"keys":{}}"#), "no list"),
        (Answer::ok("application/json", "[".repeat(100_000)), "brackets"),
        (Answer::ok("application/json", spaces()), "more than a MiB"),
        (Answer::ok("application/json", vec![b' '; 10 << 20]), "ten MiB"),
        (Answer::ok("application/json", r#"{"keys":["#).ending(End::Abort), "half of it"),
        (set([&weak]), "a weak key alone"),
        (Answer::status(302, "text/plain", "").header("location", &elsewhere.url()), "somewhere else"),
        (Answer::ok("application/json", r#"{"keys":["#).ending(End::Hang), "half of it and then silence"),
    ];
    join_all(rows.into_iter().map(async |(answer, reason)| {
        let issuer = TestIssuer::answering(answer).await;
        let app = issuer.app(&[("AUTH__JWKS_REFRESH_S", "2")]).await;
        let ready = app.http.get(app.url("/readyz")).send().await.unwrap().status();
        assert_eq!(ready, 200, "an issuer that is away takes no replica out: {reason}");
        let token = issuer.good(&key);
        unknown_now(&app, &token, reason).await;
        issuer.publish([&key]);
        in_time(&app, &token, reason).await;
        let mine = token.rsplit_once('.').unwrap().1;
        assert!(!issuer.was_told(mine), "tokens are not sent there");
    }))
    .await;
    assert_eq!(elsewhere.connections(), 0, "redirects are not followed");
}

#[tokio::test]
async fn the_start_does_not_need_the_issuer() {
    let key = TestKey::es256("k");
    // A port that was free a moment ago: nobody is there.
    let gone = { Upstream::script([]).await.url() };
    let settings = [("AUTH__MODE", "jwks"), ("AUTH__ISSUER", gone.as_str()), ("AUTH__AUDIENCE", AUDIENCE)];
    let app = TestApp::start(&settings).await;
    let claims = json!({"iss": gone, "aud": AUDIENCE, "sub": "u", "exp": now() + 60});
    unknown_now(&app, &key.token(&claims), "nobody is there").await;
    // It stops at once all the same.
    tokio::time::timeout(Duration::from_secs(5), app.stop()).await.unwrap();
}

#[tokio::test]
async fn a_discovery_document_of_another_issuer_is_not_believed() {
    let key = TestKey::es256("k");
    let issuer = TestIssuer::publishing([&key]).await;
    let there = issuer.url();
    let rows = [
        (format!(r#"{{"issuer": "https://other.example.com", "jwks_uri": "{there}/keys"}}"#), "another issuer"),
        (format!(r#"{{"issuer": "ISSUER/", "jwks_uri": "{there}/keys"}}"#), "a slash more"),
        (format!(r#"{{"jwks_uri": "{there}/keys"}}"#), "no issuer"),
        (r#"{"issuer": "ISSUER"}"#.to_owned(), "no address"),
        (r#"{"issuer": "ISSUER", "jwks_uri": "file:///etc/passwd"}"#.to_owned(), "a file"),
        (r#"{"issuer": "ISSUER", "jwks_uri": "http://keys.example.com/"}"#.to_owned(), "in the clear"),
        (r#"{"issuer": "ISSUER", "jwks_uri": "https://user:word@keys.example.com/"}"#.to_owned(), "with a password"),
    ];
    for (document, reason) in rows {
        let liar = Upstream::choosing(move |request| {
            let here = format!("http://{}", request.header("host").unwrap());
            Some(Answer::ok("application/json", document.replace("ISSUER", &here)))
        })
        .await;
        let url = liar.url();
        let settings = [("AUTH__MODE", "jwks"), ("AUTH__ISSUER", url.as_str()), ("AUTH__AUDIENCE", AUDIENCE)];
        let app = TestApp::start(&settings).await;
        let claims = issuer.claims(&json!({"iss": url}));
        unknown_now(&app, &key.token(&claims), reason).await;
    }
    assert_eq!(issuer.fetches(), 0);
}

#[tokio::test]
async fn the_last_good_keys_serve_while_the_issuer_is_away() {
    let (known, fresh) = (TestKey::es256("known"), TestKey::es256("fresh"));
    let issuer = TestIssuer::publishing([&known]).await;
    let app = issuer.app(&[SOON]).await;
    accepted(&app, &issuer.good(&known), "published").await;
    for (answer, reason) in [
        (Answer::status(503, "text/plain", "away"), "away"),
        (Answer::ok("application/json", r#"{"keys":[]}"#), "an empty set is a mistake of the issuer"),
        (Answer::ok("text/html", "<html>"), "a page"),
    ] {
        issuer.answer(answer);
        sleep(LATER).await;
        unknown_now(&app, &issuer.good(&fresh), &format!("nobody knows the key now: {reason}")).await;
        accepted(&app, &issuer.good(&known), reason).await;
        refused(&app, &known.token_with(&json!({}), &issuer.claims(&json!({"aud": "other"}))), "known to be bad").await;
    }
}

#[tokio::test]
async fn keys_that_are_too_old_serve_no_more() {
    let key = TestKey::es256("k");
    let issuer = TestIssuer::publishing([&key]).await;
    let app = issuer.app(&[("AUTH__JWKS_STALE_S", "3"), ("AUTH__JWKS_REFRESH_S", "1")]).await;
    accepted(&app, &issuer.good(&key), "published").await;
    issuer.answer(Answer::status(503, "text/plain", "away"));
    let began = Instant::now();
    loop {
        match judged(&app, &issuer.good(&key)).await {
            (200, _) => assert!(began.elapsed() < Duration::from_secs(20), "it is still believed"),
            told => break assert_eq!(told, (503, "keys_unavailable".to_owned())),
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert!(began.elapsed() > Duration::from_secs(1), "it served on for a while");
    issuer.publish([&key]);
    in_time(&app, &issuer.good(&key), "the issuer is back").await;
}

#[tokio::test]
async fn keys_are_rotated_without_a_pause() {
    let keys = ["one", "two", "three"].map(TestKey::es256);
    let issuer = TestIssuer::publishing([&keys[0]]).await;
    let app = issuer.app(&[SOON]).await;
    accepted(&app, &issuer.good(&keys[0]), "the first").await;
    issuer.publish(&keys[..2]);
    sleep(LATER).await;
    accepted(&app, &issuer.good(&keys[1]), "a key that is not known is asked for").await;
    accepted(&app, &issuer.good(&keys[0]), "the old one is still published").await;
    issuer.publish(&keys[1..]);
    sleep(LATER).await;
    accepted(&app, &issuer.good(&keys[2]), "the next").await;
    assert_eq!(issuer.fetches(), 3);
    refused(&app, &issuer.good(&keys[0]), "one that was removed is no longer good").await;
}

#[tokio::test]
async fn a_key_that_was_exchanged_under_its_name_is_found() {
    let (old, new) = (TestKey::es256("only"), TestKey::es256("only"));
    let issuer = TestIssuer::publishing([&old]).await;
    let app = issuer.app(&[SOON]).await;
    accepted(&app, &issuer.good(&old), "the old one").await;
    refused(&app, &issuer.good(&new), "not published, and asked for a moment ago").await;
    issuer.publish([&new]);
    sleep(LATER).await;
    accepted(&app, &issuer.good(&new), "its name is known, and its signature is not").await;
    refused(&app, &issuer.good(&old), "one that was removed").await;
}

#[tokio::test]
async fn new_keys_are_found_without_anybody_asking() {
    let (old, new) = (TestKey::es256("one"), TestKey::es256("two"));
    let issuer = TestIssuer::publishing([&old]).await;
    let app = issuer.app(&[("AUTH__JWKS_REFRESH_S", "1"), ("AUTH__JWKS_COOLDOWN_S", "3600")]).await;
    accepted(&app, &issuer.good(&old), "published").await;
    issuer.publish([&new]);
    in_time(&app, &issuer.good(&new), "found in the background").await;
    refused(&app, &issuer.good(&old), "and the old one is gone").await;
}

#[tokio::test]
async fn a_thousand_unknown_keys_cost_no_fetch() {
    let key = TestKey::es256("known");
    let issuer = TestIssuer::publishing([&key]).await;
    let app = issuer.app(&[]).await;
    accepted(&app, &issuer.good(&key), "published").await;
    let claims = issuer.claims(&json!({}));
    for hundred in 0..10 {
        let tokens = (0..100).map(|nth| key.token_with(&json!({"kid": format!("k{hundred}-{nth}")}), &claims));
        let judged = join_all(tokens.map(async |token| judged(&app, &token).await)).await;
        assert!(judged.iter().all(|(status, _)| *status == 401), "{judged:?}");
    }
    accepted(&app, &issuer.good(&key), "good ones go on").await;
    assert_eq!(issuer.fetches(), 1, "the one of the start");
}

#[tokio::test]
async fn many_requests_at_once_share_one_fetch() {
    let (old, new) = (TestKey::es256("old"), TestKey::es256("new"));
    let slow = |key: &TestKey| {
        let body = json!({"keys": [key.published]}).to_string();
        Answer::ok("application/json", "").later(Duration::from_millis(300), body)
    };
    let issuer = TestIssuer::answering(slow(&old)).await;
    let app = issuer.app(&[SOON]).await;
    let (of_old, of_new) = (issuer.good(&old), issuer.good(&new));
    join_all((0..50).map(|_| accepted(&app, &of_old, "they wait for the first keys"))).await;
    assert_eq!(issuer.fetches(), 1);
    issuer.answer(slow(&new));
    sleep(LATER).await;
    join_all((0..50).map(|_| accepted(&app, &of_new, "they wait for newer keys"))).await;
    assert_eq!(issuer.fetches(), 2);
}

/// A page signs its user out on 401, and an issuer may sign with a new key at once.
#[tokio::test]
async fn a_token_that_is_newer_than_the_keys_may_be_good() {
    let (old, new) = (TestKey::es256("old"), TestKey::es256("new"));
    let issuer = TestIssuer::publishing([&old]).await;
    let app = issuer.app(&[("AUTH__JWKS_COOLDOWN_S", "2")]).await;
    accepted(&app, &issuer.good(&old), "published").await;
    refused(&app, &issuer.good(&new), "issued before the keys were fetched").await;
    issuer.publish([&new]);
    let since = new.token(&issuer.claims(&json!({"iat": now()})));
    unknown_now(&app, &since, "issued since: its key may be newer").await;
    in_time(&app, &since, "the keys are fetched again").await;
}

#[tokio::test]
async fn an_issuer_may_leave_its_old_keys_where_they_were() {
    let (old, new) = (TestKey::es256("old"), TestKey::es256("new"));
    let has_moved = Arc::new(AtomicBool::new(false));
    let moved = Arc::clone(&has_moved);
    let set = |key: &TestKey| json!({"keys": [key.published]}).to_string();
    let (of_old, of_new) = (set(&old), set(&new));
    let server = Upstream::choosing(move |request| {
        let here = format!("http://{}", request.header("host").unwrap());
        let place = if moved.load(Ordering::Relaxed) { "new" } else { "old" };
        let body = match request.path.as_str() {
            "/old" => of_old.clone(),
            "/new" => of_new.clone(),
            _ => json!({"issuer": here, "jwks_uri": format!("{here}/{place}")}).to_string(),
        };
        Some(Answer::ok("application/json", body))
    })
    .await;
    let url = server.url();
    let settings = [("AUTH__MODE", "jwks"), ("AUTH__ISSUER", url.as_str()), ("AUTH__AUDIENCE", AUDIENCE), SOON];
    let app = TestApp::start(&settings).await;
    let claims = json!({"iss": url, "aud": AUDIENCE, "sub": "u", "exp": now() + 60});
    accepted(&app, &old.token(&claims), "published").await;
    has_moved.store(true, Ordering::Relaxed);
    in_time(&app, &new.token(&claims), "found where they are now").await;
    refused(&app, &old.token(&claims), "and the abandoned place counts no more").await;
}
