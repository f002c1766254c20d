//! Who may call: tokens of every wrong kind at the door of the product, and what a good one gives access to.

mod claims;
mod cookies;
mod demands;
mod forwarded;
mod headers;
mod issuer;
mod issuers;
mod oidc;
mod outages;
mod owners;
mod published;
mod renewing;
mod sessions;

use std::time::UNIX_EPOCH;

use jsonwebtoken::{Algorithm, EncodingKey};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use crate::support::app::{ADA, TestApp};

/// The shared secret of these tests.
const SECRET: &str = "a secret of the tests, long enough for HS256";

/// The product in mode `hs256` with settings on top.
async fn hs256(settings: &[(&str, &str)]) -> TestApp {
    let mut all = vec![("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", SECRET)];
    all.extend(settings);
    TestApp::start(&all).await
}

/// The product in mode `rs256` with the tests' public key.
async fn rs256() -> TestApp {
    let path = key_path("rs256-public.pem");
    TestApp::start(&[("AUTH__MODE", "rs256"), ("AUTH__RS256_PUBLIC_KEY_FILE", &path)]).await
}

fn key_path(name: &str) -> String {
    format!("{}/tests/fixtures/keys/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn key_file(name: &str) -> Vec<u8> {
    std::fs::read(key_path(name)).unwrap()
}

fn secret() -> EncodingKey {
    EncodingKey::from_secret(SECRET.as_bytes())
}

fn private_key() -> EncodingKey {
    EncodingKey::from_rsa_pem(&key_file("rs256-private.pem")).unwrap()
}

/// Now, in seconds.
fn now() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_secs()
}

/// Ada's claims, good for a minute.
fn good_claims() -> Value {
    json!({"sub": ADA, "iat": now(), "exp": now() + 60})
}

/// The same with changes; `null` removes a claim.
fn claims_with(changes: Value) -> Value {
    let mut claims = good_claims();
    for (claim, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(claim)),
            value => claims[claim] = value.clone(),
        }
    }
    claims
}

/// A token of any header and claims, really signed with `key` by `algorithm`, whatever the header says.
fn token(header: &Value, claims: &Value, key: &EncodingKey, algorithm: Algorithm) -> String {
    let signed = format!("{}.{}", base64url(header.to_string()), base64url(claims.to_string()));
    let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), key, algorithm).unwrap();
    format!("{signed}.{signature}")
}

/// An HS256 token of the shared secret.
fn signed(claims: &Value) -> String {
    token(&json!({"alg": "HS256", "typ": "JWT"}), claims, &secret(), Algorithm::HS256)
}

fn base64url(bytes: impl AsRef<[u8]>) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.as_ref().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for nth in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * nth)) as usize & 63]));
        }
    }
    text
}

/// Posts a chat turn with these `Authorization` values.
async fn post(app: &TestApp, authorization: &[&[u8]]) -> reqwest::Response {
    let mut request = app.http.post(app.url("/v1/agent/chat"));
    for value in authorization {
        request = request.header(AUTHORIZATION, reqwest::header::HeaderValue::from_bytes(value).unwrap());
    }
    request.json(&json!({"message": "hi", "context_type": "workflow"})).send().await.unwrap()
}

/// Asserts that these `Authorization` values are refused with `code`, in the documented form, without being repeated.
async fn refused(app: &TestApp, authorization: &[&[u8]], code: &str, reason: &str) {
    let response = post(app, authorization).await;
    assert_eq!(response.status(), 401, "{reason}");
    let header = |name| response.headers()[&name].to_str().unwrap().to_owned();
    let challenge = match code {
        "unauthenticated" => r#"Bearer realm="switchboard""#,
        _ => r#"Bearer realm="switchboard", error="invalid_token""#,
    };
    assert_eq!(header(WWW_AUTHENTICATE), challenge, "{reason}");
    assert_eq!(header(CONTENT_TYPE), "application/problem+json", "{reason}");
    let request_id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let mut problem: Value = response.json().await.unwrap();
    let text = problem.to_string();
    for value in authorization {
        let value = String::from_utf8_lossy(value);
        let secret_parts = value.split([' ', '.']).filter(|part| part.len() > 8);
        for part in secret_parts {
            assert!(!text.contains(part), "{reason}: {text} repeats {part}");
        }
    }
    assert!(problem["detail"].take().as_str().is_some_and(|detail| !detail.is_empty()), "{reason}");
    let expected = json!({
        "type": format!("urn:switchboard:problem:{code}"),
        "title": "Unauthorized",
        "status": 401,
        "detail": null,
        "code": code,
        "request_id": request_id,
        "retryable": false,
    });
    assert_eq!(problem, expected, "{reason}");
}

async fn refused_token(app: &TestApp, token: &str, code: &str, reason: &str) {
    refused(app, &[format!("Bearer {token}").as_bytes()], code, reason).await;
}

async fn accepted_token(app: &TestApp, token: &str, reason: &str) {
    let response = post(app, &[format!("Bearer {token}").as_bytes()]).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{reason}: {text}");
    assert!(text.ends_with("event: message_complete\ndata: {}\n\n"), "{reason}: {text}");
}
