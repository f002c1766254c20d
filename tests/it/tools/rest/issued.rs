//! Backends whose tokens an issuer gives: what it is asked, what the backend gets, and what neither the backend nor the model does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

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

/// An issuer that numbers its tokens, each of which lives for so many seconds.
async fn issuer(lives_s: u64) -> Upstream {
    let given = Arc::new(AtomicUsize::new(0));
    Upstream::choosing(move |_| {
        let number = given.fetch_add(1, Ordering::Relaxed) + 1;
        answer(
            &json!({"access_token": format!("issued-token-{number}"), "token_type": "Bearer", "expires_in": lives_s}),
        )
    })
    .await
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
    let expected = [1, 1, 2, 1].map(|number| format!("Bearer issued-token-{number}"));
    assert_eq!(presented(&backend), expected);
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
    assert_eq!(presented(&backend), [1, 2, 1].map(|number| format!("Bearer issued-token-{number}")));
    assert!(
        backend.requests().iter().all(|request| !format!("{request:?}").contains(&ann)),
        "the backend never sees it"
    );
}

#[tokio::test]
async fn a_token_is_replaced_before_its_end_and_once_when_it_is_refused() {
    // Its life is over at once.
    let (gives, backend) = (issuer(0).await, repeating().await);
    let (s, _main) = ledger(("client_credentials", &gives, &backend), 2).await;
    for _ in 0..2 {
        say(&s.app, &s.app.token).await;
    }
    assert_eq!(presented(&backend), [1, 2].map(|number| format!("Bearer issued-token-{number}")));

    // The backend takes the first no more: the write is sent again with another, and is done once.
    let refuses = |first_good: usize| {
        Upstream::choosing(move |request| {
            let number = request.header("authorization")?.rsplit('-').next()?.parse::<usize>().ok()?;
            match number < first_good {
                true => Some(Answer::status(401, "application/json", r#"{"error": "who?"}"#)),
                false => answer(&json!({"ok": true})),
            }
        })
    };
    let (gives, backend) = (issuer(600).await, refuses(2).await);
    let (s, _main) = ledger(("client_credentials", &gives, &backend), 2).await;
    for _ in 0..2 {
        say(&s.app, &s.app.token).await;
    }
    assert_eq!(presented(&backend), [1, 2, 2].map(|number| format!("Bearer issued-token-{number}")));
    assert_eq!(s.result_of("c1"), json!({"ok": true}));

    // It takes none: it is asked twice, and the model reads why.
    let (gives, backend) = (issuer(600).await, refuses(9).await);
    let (s, _main) = ledger(("client_credentials", &gives, &backend), 1).await;
    say(&s.app, &s.app.token).await;
    assert_eq!((gives.requests().len(), backend.requests().len()), (2, 2));
    assert!(s.result_of("c1")["error"].as_str().unwrap().contains("HTTP 401"), "{}", s.result_of("c1"));
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
        (Answer::ok("application/json", format!("{{\"gossip\": \"{}\"}}", "x".repeat(70_000))), "is no token"),
    ];
    for (given, expected) in rows {
        let (gives, backend) = (Upstream::choosing(move |_| Some(given.clone())).await, repeating().await);
        let (s, _main) = ledger(("client_credentials", &gives, &backend), 1).await;
        say(&s.app, &s.app.token).await;
        let result = s.result_of("c1");
        assert!(result["error"].as_str().unwrap().contains(expected), "{result}");
        assert!(!heard(&s).contains("gossip") && !heard(&s).contains(SECRET));
        assert_eq!(backend.requests().len(), 0, "{expected}");
    }
}

#[tokio::test]
async fn those_who_ask_at_once_wait_for_one_token() {
    let gives = Upstream::choosing(|_| {
        let token = json!({"access_token": "issued-token-1", "expires_in": 600}).to_string();
        Some(Answer::ok("application/json", "").later(std::time::Duration::from_millis(300), token))
    })
    .await;
    let backend = repeating().await;
    let (s, _main) = ledger(("client_credentials", &gives, &backend), 0).await;
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
    assert_eq!((gives.requests().len(), backend.requests().len()), (1, 4));
}
