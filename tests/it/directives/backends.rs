//! Backends that answer too late or twice, or do not take the service's credential.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{forum, get, names, post, until};
use crate::support::app::TestApp;
use crate::support::upstream::{Answer, End, Request, Upstream};

fn good() -> Answer {
    Answer::ok("application/json", r#"{"id": "t7", "title": "Hello"}"#)
}

async fn requested(app: &TestApp, token: &str, name: &str, payload: Value) -> Value {
    let (status, made) = post(app, token, "/directives", json!({"name": name, "payload": payload})).await;
    assert_eq!(status, 201, "{made}");
    made["directive"]["id"].clone()
}

#[tokio::test]
async fn what_is_answered_after_its_time_changes_nothing_and_is_run_again_by_an_operator_alone() {
    let (gate, first) = (Arc::new(Notify::new()), AtomicUsize::new(0));
    let opened = gate.clone();
    let slow = move |_: &Request| match first.fetch_add(1, Ordering::Relaxed) {
        0 => Some(Answer::ok("application/json", "").gated(&opened, r#"{"id": "late"}"#)),
        _ => Some(good()),
    };
    let (s, backend) = forum(&[("BACKEND__TIMEOUT_S", "1")], [], slow).await;
    let (ann, operator) =
        (s.app.token_of("ann", Some("acme"), &[]), s.app.token_of("olga", Some("acme"), &["operator"]));
    let id = requested(&s.app, &ann, "forum.thread.lock", json!({"id": "t1"})).await;
    let directive = until(&s.app, &ann, &id, "unknown").await;
    assert_eq!((&directive["error"]["code"], &directive["attempt"]), (&json!("outcome_unknown"), &json!(1)));
    gate.notify_one();
    backend.clients_gone(1).await;
    let path = format!("/directives/{}", id.as_str().unwrap());
    assert_eq!(get(&s.app, &ann, &path).await, directive, "it comes too late");
    assert_eq!(backend.requests().len(), 1, "and nobody sends it again by themselves");
    let (status, again) = post(&s.app, &operator, &format!("{path}/rerun"), json!({})).await;
    assert_eq!((status, &again["directive"]["status"]), (200, &json!("requested")));
    until(&s.app, &ann, &id, "succeeded").await;
    let keys: Vec<_> = backend.requests().iter().map(|r| r.header("idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(keys, [id.as_str().unwrap(); 2]);
    let told = names(&s.app, &operator).await;
    let expected = ["requested", "started", "unknown", "rerun", "started", "succeeded"];
    assert_eq!(told, expected.map(|name| format!("directive.{name}")));
}

#[tokio::test]
async fn one_whose_backend_knows_its_key_is_sent_again_after_its_time() {
    let first = AtomicUsize::new(0);
    let silent = move |_: &Request| match first.fetch_add(1, Ordering::Relaxed) {
        0 => Some(Answer::ok("application/json", "").ending(End::Hang)),
        1 => Some(Answer::status(504, "text/plain", "too slow")),
        _ => Some(good()),
    };
    let (s, backend) = forum(&[("BACKEND__TIMEOUT_S", "1")], [], silent).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let payload = json!({"category_id": "c1", "title": "Hello"});
    let id = requested(&s.app, &ann, "forum.thread.create", payload).await;
    let directive = until(&s.app, &ann, &id, "succeeded").await;
    assert_eq!((&directive["attempt"], backend.requests().len()), (&json!(3), 3));
    let failed = get(&s.app, &ann, "/signals?name=directive.attempt_failed&order=asc").await;
    let codes: Vec<_> = failed["items"].as_array().unwrap().iter().map(|s| &s["payload"]["error"]["code"]).collect();
    assert_eq!(codes, ["backend_timeout", "backend_unavailable"], "{failed:#}");
}

/// A backend that answers each request twice in one go, the second time with something else; its address.
fn answering_twice() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/api", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let (mut read, mut seen) = ([0; 4096], Vec::new());
            // The bodies are small, and end with the request.
            while !seen.ends_with(b"}") {
                match stream.read(&mut read) {
                    Ok(count) if count > 0 => seen.extend_from_slice(&read[..count]),
                    Ok(_) | Err(_) => break,
                }
            }
            let answer = |id: &str| {
                let body = json!({"id": id, "title": "Hello"}).to_string();
                let length = body.len();
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
            };
            let both = answer(&format!("t{number}")) + &answer(&format!("late{number}"));
            // Whoever goes away has read enough.
            let _ = stream.write_all(both.as_bytes());
        }
    });
    address
}

#[tokio::test]
async fn what_a_backend_says_behind_its_answer_belongs_to_no_request() {
    let url = answering_twice();
    let (s, _unused) = forum(&[("BACKEND__BASE_URL", &url)], [], |_| None).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    for number in 0..3 {
        let payload = json!({"category_id": "c1", "title": number.to_string()});
        let id = requested(&s.app, &ann, "forum.thread.create", payload).await;
        let directive = until(&s.app, &ann, &id, "succeeded").await;
        let expected = (json!({"id": format!("t{number}"), "title": "Hello"}), json!(1));
        assert_eq!((directive["result"].clone(), directive["attempt"].clone()), expected);
    }
    let told = get(&s.app, &ann, "/signals?name=forum.thread.created&order=asc").await;
    let ids: Vec<_> = told["items"].as_array().unwrap().iter().map(|signal| &signal["subject"]["id"]).collect();
    assert_eq!(ids, ["t0", "t1", "t2"]);
}

/// An issuer that numbers its tokens.
async fn issuer() -> Upstream {
    let given = AtomicUsize::new(0);
    Upstream::choosing(move |_| {
        let token = format!("token-of-the-service-{}", given.fetch_add(1, Ordering::Relaxed));
        let given = json!({"access_token": token, "token_type": "Bearer", "expires_in": "3600"});
        Some(Answer::ok("application/json", given.to_string()))
    })
    .await
}

/// What presents tokens of an issuer.
fn by_tokens(token_url: &str) -> [(&str, &str); 6] {
    [
        ("BACKEND__SERVICE__MODE", "client_credentials"),
        ("BACKEND__SERVICE__TOKEN", ""),
        ("BACKEND__SERVICE__TOKEN_URL", token_url),
        ("BACKEND__SERVICE__CLIENT_ID", "us"),
        ("BACKEND__SERVICE__CLIENT_SECRET", "the-secret-of-the-service"),
        ("BACKEND__SERVICE__SCOPE", "forum:{tenant}"),
    ]
}

#[tokio::test]
async fn a_service_has_one_token_for_each_tenant_and_a_fresh_one_once_it_is_refused() {
    let issuer = issuer().await;
    let url = format!("{}/token", issuer.url());
    // The first token is taken no more.
    let backend = |request: &Request| match request.header("authorization") {
        Some("Bearer token-of-the-service-0") => Some(Answer::status(401, "application/json", "{}")),
        Some(_) => Some(good()),
        None => None,
    };
    let (s, backend) = forum(&by_tokens(&url), [], backend).await;
    for (tenant, tokens) in [("acme", vec![0, 1]), ("acme", vec![1]), ("umbrella", vec![2]), ("acme", vec![1])] {
        backend.forget();
        let ann = s.app.token_of("ann", Some(tenant), &["member"]);
        let id = requested(&s.app, &ann, "forum.thread.lock", json!({"id": "t1"})).await;
        let directive = until(&s.app, &ann, &id, "succeeded").await;
        assert_eq!(directive["attempt"], 1, "within the same attempt");
        let presented: Vec<_> =
            backend.requests().iter().map(|r| r.header("authorization").unwrap().to_owned()).collect();
        let expected: Vec<_> = tokens.iter().map(|token| format!("Bearer token-of-the-service-{token}")).collect();
        assert_eq!(presented, expected, "{tenant}");
        assert!(backend.requests().iter().all(|r| r.header("idempotency-key") == id.as_str()), "{tenant}");
    }
    let forms: Vec<String> = issuer.requests().iter().map(|r| String::from_utf8_lossy(&r.body).into_owned()).collect();
    let scopes = ["forum%3Aacme", "forum%3Aacme", "forum%3Aumbrella"];
    assert_eq!(forms, scopes.map(|scope| format!("grant_type=client_credentials&scope={scope}")));
}

#[tokio::test]
async fn a_service_that_is_refused_with_a_fresh_token_too_fails_and_says_so() {
    let issuer = issuer().await;
    let url = format!("{}/token", issuer.url());
    let refusing = |request: &Request| {
        let words = format!("{} is not welcome", request.header("authorization").unwrap());
        Some(Answer::status(401, "application/json", json!({"error": words}).to_string()))
    };
    let (s, backend) = forum(&by_tokens(&url), [], refusing).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let payload = json!({"category_id": "c1", "title": "Hello"});
    let id = requested(&s.app, &ann, "forum.thread.create", payload).await;
    let directive = until(&s.app, &ann, &id, "failed").await;
    assert_eq!((&directive["error"]["code"], &directive["attempt"]), (&json!("backend_refused"), &json!(1)));
    let words = directive["error"]["message"].as_str().unwrap();
    assert!(words.contains("is not welcome") && !words.contains("token-of-the-service"), "{words}");
    assert_eq!((backend.requests().len(), issuer.requests().len()), (2, 2), "asked once more, and not again");
}
