//! Backends whose tokens an issuer gives: what it is asked, what the backend gets, and what neither the backend nor the model does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Setup, answer};
use crate::support::app::TestApp;
use crate::support::model::{Scripted, calls, says};
use crate::support::upstream::{Answer, Request, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "save"
description = "Saves."
backend = "ledger"
request = { method = "POST", path = "/rows" }
"#;

const SECRET: &str = "the secret of this server";

/// `grant_type=…&…` as its parts.
fn form(request: &Request) -> Vec<(String, String)> {
    url::form_urlencoded::parse(&request.body).into_owned().collect()
}

fn part(request: &Request, name: &str) -> Option<String> {
    form(request).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// An issuer that numbers its tokens, and says of each what `more` has besides.
async fn issuer_of(more: Value) -> Upstream {
    let given = Arc::new(AtomicUsize::new(0));
    Upstream::choosing(move |_| {
        let number = given.fetch_add(1, Ordering::Relaxed) + 1;
        let mut token = more.clone();
        token["access_token"] = json!(format!("issued-token-{number}"));
        answer(&token)
    })
    .await
}

/// The same, whose tokens live for so many seconds.
async fn issuer(lives_s: u64) -> Upstream {
    issuer_of(json!({"token_type": "Bearer", "issued_token_type": ACCESS_TOKEN, "expires_in": lives_s})).await
}

/// A profile with one tool of a backend that takes tokens of `issuer` by these credentials.
async fn ledger((credentials, issuer, backend): (&str, &Upstream, &Upstream), messages: usize) -> (Scripted, Upstream) {
    let (issuer_url, backend_url) = (format!("{}/token", issuer.url()), backend.url());
    let mut setup = Setup::of(TOOLS);
    setup.settings = vec![
        ("BACKENDS__LEDGER__BASE_URL", &backend_url),
        ("BACKENDS__LEDGER__CREDENTIALS", credentials),
        ("BACKENDS__LEDGER__TOKEN_URL", &issuer_url),
        ("BACKENDS__LEDGER__CLIENT_ID", "switch:board"),
        ("BACKENDS__LEDGER__CLIENT_SECRET", SECRET),
        ("BACKENDS__LEDGER__SCOPE", "rows {tenant}"),
        ("BACKENDS__LEDGER__AUDIENCE", "ledger"),
    ];
    let turns = (0..messages).flat_map(|_| [calls("c1", "save", &json!({})), says("Done.")]);
    setup.start(turns, |_| None).await
}

/// The token of a user with a tenant.
fn token(s: &Scripted) -> String {
    s.app.token_of("ann", Some("acme"), &[])
}

fn issued(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|number| format!("Bearer issued-token-{number}")).collect()
}

async fn say(app: &TestApp, token: &str) {
    let response = app.post_as(token, &json!({"message": "Save", "context_type": "mine"})).await;
    assert_eq!(response.status(), 200);
    response.text().await.unwrap();
}

fn presented(backend: &Upstream) -> Vec<String> {
    let requests = backend.requests().into_iter();
    requests.map(|request| request.header("authorization").unwrap_or("none").to_owned()).collect()
}

/// A backend that says what it got.
async fn repeating() -> Upstream {
    Upstream::choosing(|request| {
        let sent: Vec<&str> = request.headers.iter().map(|(_, value)| value.as_str()).collect();
        answer(&json!({"heard": sent}))
    })
    .await
}

/// What the models have read, all of it.
fn heard(s: &Scripted) -> String {
    s.model.requests().iter().map(|request| request.json().to_string()).collect()
}

#[tokio::test]
async fn client_credentials_are_one_token_for_each_tenant() {
    let (issuer, backend) = (issuer(600).await, repeating().await);
    let (s, _main) = ledger(("client_credentials", &issuer, &backend), 4).await;
    let tokens = [("ann", "acme"), ("bob", "acme"), ("ann", "umbrella"), ("ann", "acme")]
        .map(|(user, tenant)| s.app.token_of(user, Some(tenant), &[]));
    for token in &tokens {
        say(&s.app, token).await;
    }
    let given = issuer.requests();
    let scopes: Vec<_> = given.iter().map(|request| part(request, "scope").unwrap()).collect();
    assert_eq!(scopes, ["rows acme", "rows umbrella"]);
    assert_eq!(part(&given[0], "grant_type").as_deref(), Some("client_credentials"));
    assert_eq!(part(&given[0], "audience").as_deref(), Some("ledger"));
    // `switch%3Aboard:the+secret+of+this+server`, RFC 6749, section 2.3.1.
    assert_eq!(
        given[0].header("authorization"),
        Some("Basic c3dpdGNoJTNBYm9hcmQ6dGhlK3NlY3JldCtvZit0aGlzK3NlcnZlcg==")
    );
    assert_eq!(presented(&backend), issued(&[1, 1, 2, 1]), "whatever a user of another tenant is called");
    let all: String =
        [&issuer, &backend].iter().flat_map(|at| at.requests()).map(|request| format!("{request:?}")).collect();
    assert!(tokens.iter().all(|token| !all.contains(token)), "no caller's token goes to either");
    assert!(
        heard(&s).contains("Bearer [redacted]") && !heard(&s).contains("issued-token"),
        "nor is one read by a model"
    );
}

#[tokio::test]
async fn a_callers_token_is_exchanged_for_one_of_that_backends_own() {
    let (issuer, backend) = (issuer(600).await, repeating().await);
    let (s, _main) = ledger(("token_exchange", &issuer, &backend), 3).await;
    let (ann, bob) = (s.app.token_of("ann", Some("acme"), &[]), s.app.token_of("bob", Some("acme"), &[]));
    for token in [&ann, &bob, &ann] {
        say(&s.app, token).await;
    }
    let given = issuer.requests();
    let subjects: Vec<_> = given.iter().map(|request| part(request, "subject_token").unwrap()).collect();
    assert_eq!(subjects, [ann.clone(), bob.clone()], "each once, and no other user's");
    assert_eq!(
        (part(&given[0], "grant_type").unwrap(), part(&given[0], "subject_token_type").unwrap()),
        (
            "urn:ietf:params:oauth:grant-type:token-exchange".to_owned(),
            "urn:ietf:params:oauth:token-type:access_token".to_owned()
        )
    );
    assert_eq!(presented(&backend), issued(&[1, 2, 1]));
    assert!(
        backend.requests().iter().all(|request| !format!("{request:?}").contains(&ann)),
        "the backend never sees it"
    );
    let heard = heard(&s);
    assert!(heard.contains("Bearer [redacted]") && !heard.contains("issued-token") && !heard.contains(&ann));
}

#[tokio::test]
async fn whoever_has_the_same_name_in_another_tenant_has_another_token() {
    let (gives, backend) = (issuer(600).await, repeating().await);
    let (s, _main) = ledger(("token_exchange", &gives, &backend), 2).await;
    for tenant in ["acme", "umbrella"] {
        say(&s.app, &s.app.token_of("ann", Some(tenant), &[])).await;
    }
    assert_eq!((gives.requests().len(), presented(&backend)), (2, issued(&[1, 2])));
}

#[tokio::test]
async fn a_backend_with_a_key_of_the_settings_gets_that_alone() {
    let backend = repeating().await;
    let backend_url = backend.url();
    let mut setup = Setup::of(TOOLS);
    setup.settings = vec![
        ("BACKENDS__LEDGER__BASE_URL", &backend_url),
        ("BACKENDS__LEDGER__CREDENTIALS", "static"),
        ("BACKENDS__LEDGER__API_KEY", "the-key-of-this-server"),
    ];
    let (s, _main) = setup.start([calls("c1", "save", &json!({})), says("Done.")], |_| None).await;
    say(&s.app, &s.app.token).await;
    assert_eq!(presented(&backend), ["Bearer the-key-of-this-server"]);
    assert!(heard(&s).contains("Bearer [redacted]") && !heard(&s).contains("the-key-of-this-server"));
}

#[tokio::test]
async fn a_token_serves_as_long_as_its_issuer_says_and_an_exchanged_one_no_longer_than_its_callers() {
    let rows = [
        (json!({}), issued(&[1, 1]), "a minute, where nothing is said"),
        (json!({"expires_in": -5}), issued(&[1, 2]), "its life was over before it began"),
        (json!({"expires_in": 1e300}), issued(&[1, 1]), "for ever is a day"),
    ];
    for (more, expected, reason) in rows {
        let (gives, backend) = (issuer_of(more).await, repeating().await);
        let (s, _main) = ledger(("client_credentials", &gives, &backend), 2).await;
        for _ in 0..2 {
            say(&s.app, &token(&s)).await;
        }
        assert_eq!(presented(&backend), expected, "{reason}");
    }

    let (gives, backend) = (issuer(86_400).await, repeating().await);
    let (s, _main) = ledger(("token_exchange", &gives, &backend), 2).await;
    let short = s.app.token_for("ann", Some("acme"), Duration::from_secs(3));
    say(&s.app, &short).await;
    tokio::time::sleep(Duration::from_millis(2600)).await;
    say(&s.app, &short).await;
    assert_eq!(presented(&backend), issued(&[1, 2]));
}

#[tokio::test]
async fn a_scope_that_names_the_tenant_needs_one_that_is_a_word() {
    let rows = [(None, "names no tenant"), (Some("acme admin"), "cannot be part"), (Some("a\"b"), "cannot be part")];
    for (tenant, expected) in rows {
        let (gives, backend) = (issuer(600).await, repeating().await);
        let (s, _main) = ledger(("client_credentials", &gives, &backend), 1).await;
        say(&s.app, &s.app.token_of("ann", tenant, &[])).await;
        let result = s.result_of("c1");
        assert!(result["error"].as_str().unwrap().contains(expected), "{result}");
        assert!(gives.requests().is_empty() && backend.requests().is_empty(), "nobody is asked");
    }
}

/// A backend that takes tokens from this number on.
async fn refusing(first_good: usize) -> Upstream {
    Upstream::choosing(move |request| {
        let number = request.header("authorization")?.rsplit('-').next()?.parse::<usize>().ok()?;
        match number < first_good {
            true => Some(Answer::status(401, "application/json", r#"{"error": "who?"}"#)),
            false => answer(&json!({"ok": true})),
        }
    })
    .await
}

#[tokio::test]
async fn a_token_is_replaced_before_its_end_and_once_when_it_is_refused() {
    // Its life is over at once.
    let (gives, backend) = (issuer(0).await, repeating().await);
    let (s, _main) = ledger(("client_credentials", &gives, &backend), 2).await;
    for _ in 0..2 {
        say(&s.app, &token(&s)).await;
    }
    assert_eq!(presented(&backend), issued(&[1, 2]));

    // The backend takes the first no more: the write is sent again with another, and is done once.
    for credentials in ["client_credentials", "token_exchange"] {
        let (gives, backend) = (issuer(600).await, refusing(2).await);
        let (s, _main) = ledger((credentials, &gives, &backend), 2).await;
        let token = token(&s);
        for _ in 0..2 {
            say(&s.app, &token).await;
        }
        assert_eq!(presented(&backend), issued(&[1, 2, 2]), "{credentials}");
        assert_eq!(s.result_of("c1"), json!({"ok": true}));
    }

    // It takes none: it is asked twice, and the model reads why; another call soon after costs nobody else anything.
    let (gives, backend) = (issuer(600).await, refusing(9).await);
    let (s, _main) = ledger(("client_credentials", &gives, &backend), 2).await;
    for _ in 0..2 {
        say(&s.app, &token(&s)).await;
        assert!(s.result_of("c1")["error"].as_str().unwrap().contains("HTTP 401"), "{}", s.result_of("c1"));
    }
    assert_eq!((gives.requests().len(), presented(&backend)), (2, issued(&[1, 2, 2])));
}

#[tokio::test]
async fn without_a_token_nothing_is_sent_and_nothing_of_the_issuers_is_told() {
    let rows = [
        (
            Answer::status(401, "application/json", r#"{"error": "invalid_client", "error_description": "gossip"}"#),
            "refused one (HTTP 401)",
        ),
        (Answer::status(503, "text/plain", "gossip"), "does not answer"),
        (Answer::status(302, "text/plain", "gossip").header("location", "http://localhost:1/"), "does not answer"),
        (Answer::ok("application/json", r#"{"gossip": true}"#), "is no token"),
        (Answer::ok("application/json", r#"{"access_token": "two words of gossip"}"#), "is no token"),
        (Answer::ok("application/json", r#"{"access_token": "gossip", "token_type": "mac"}"#), "is no token"),
        (Answer::ok("application/json", r#"{"access_token": "gossip", "token_type": "N_A"}"#), "is no token"),
        (Answer::ok("application/json", json!({"access_token": "gossip".repeat(1400)}).to_string()), "is no token"),
        (Answer::ok("application/json", format!("{{\"gossip\": \"{}\"}}", "x".repeat(70_000))), "is no token"),
    ];
    for (given, expected) in rows {
        let (gives, backend) = (Upstream::choosing(move |_| Some(given.clone())).await, repeating().await);
        let (s, _main) = ledger(("client_credentials", &gives, &backend), 1).await;
        say(&s.app, &token(&s)).await;
        let result = s.result_of("c1");
        assert!(result["error"].as_str().unwrap().contains(expected), "{result}");
        assert!(!heard(&s).contains("gossip") && !heard(&s).contains(SECRET));
        assert_eq!(backend.requests().len(), 0, "{expected}");
    }
}

#[tokio::test]
async fn what_an_exchange_gives_has_to_be_a_token_that_can_be_sent() {
    let jwt = "urn:ietf:params:oauth:token-type:jwt";
    let rows = [(json!(jwt), true), (json!("urn:ietf:params:oauth:token-type:id_token"), false), (Value::Null, false)];
    for (kind, is_good) in rows {
        let (gives, backend) = (issuer_of(json!({"issued_token_type": kind})).await, repeating().await);
        let (s, _main) = ledger(("token_exchange", &gives, &backend), 1).await;
        say(&s.app, &token(&s)).await;
        assert_eq!(backend.requests().len(), usize::from(is_good), "{kind}");
    }
}

/// Four users of one tenant call at the same time.
async fn at_once(gives: &Upstream, backend: &Upstream) {
    let (s, _main) = ledger(("client_credentials", gives, backend), 0).await;
    // One turn of four calls would make them one after the other: four users ask at the same time.
    let model = Upstream::choosing(|request| {
        let is_first = !String::from_utf8_lossy(&request.body).contains("\"role\":\"tool\"");
        Some(if is_first { calls("c1", "save", &json!({})).answer() } else { says("Done.").answer() })
    })
    .await;
    let Scripted { app, model: _ } = s;
    let data = app.stop().await;
    let (model_url, issuer_url, backend_url) =
        (format!("{}/v1", model.url()), format!("{}/token", gives.url()), backend.url());
    let settings = [
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", model_url.as_str()),
        ("BACKENDS__LEDGER__BASE_URL", backend_url.as_str()),
        ("BACKENDS__LEDGER__CREDENTIALS", "client_credentials"),
        ("BACKENDS__LEDGER__TOKEN_URL", issuer_url.as_str()),
        ("BACKENDS__LEDGER__CLIENT_ID", "x"),
        ("BACKENDS__LEDGER__CLIENT_SECRET", SECRET),
    ];
    let app = TestApp::start_in(data, &settings).await;
    let tokens: Vec<String> = ["a", "b", "c", "d"].iter().map(|user| app.token_of(user, Some("acme"), &[])).collect();
    futures::future::join_all(tokens.iter().map(|token| say(&app, token))).await;
}

/// An issuer that numbers its tokens, and takes its time.
async fn slow_issuer() -> Upstream {
    let given = Arc::new(AtomicUsize::new(0));
    Upstream::choosing(move |_| {
        let number = given.fetch_add(1, Ordering::Relaxed) + 1;
        let token = json!({"access_token": format!("issued-token-{number}"), "expires_in": 600}).to_string();
        Some(Answer::ok("application/json", "").later(Duration::from_millis(300), token))
    })
    .await
}

#[tokio::test]
async fn those_who_ask_at_once_wait_for_one_token() {
    let (gives, backend) = (slow_issuer().await, repeating().await);
    at_once(&gives, &backend).await;
    assert_eq!((gives.requests().len(), backend.requests().len()), (1, 4));

    // The same where all of them are refused.
    let (gives, backend) = (slow_issuer().await, refusing(2).await);
    at_once(&gives, &backend).await;
    let mut sent = presented(&backend);
    sent.sort();
    assert_eq!((gives.requests().len(), sent), (2, issued(&[1, 1, 1, 1, 2, 2, 2, 2])));
}
