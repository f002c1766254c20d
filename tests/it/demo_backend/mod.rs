//! The demo backend over real HTTP: the shipped seed, tokens of a fake authenticator, a clock that stands still.

mod alerts;
mod dry_run;
mod forum;
mod packages;
mod reading;
mod saving;
mod services;
mod tables;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use switchboard::agent::ports::clock::Clock;
use switchboard::agent::ports::identity::{AuthError, Authenticator};
use switchboard::chat::caller::{Bearer, Caller, Owner};
use switchboard::demo::backend::{Doors, FILES, Seed, SeedError, router, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const ADA: &str = "11111111-1111-4111-8111-111111111111";
const BEN: &str = "22222222-2222-4222-8222-222222222222";
const LOW_STOCK: &str = "550e8400-e29b-41d4-a716-446655440000";
const NOWHERE: &str = "99999999-9999-4999-8999-999999999999";
/// What [`Standing`] says.
const NOW: &str = "2026-07-01T00:00:00Z";

/// What the service of the demo sends with.
const SERVICE: &str = "the-service";

/// Tokens are names: `ada` is an administrator, `ben` a user, `newcomer` has no roles, `guest` has a foreign one, and
/// `owner@acme` is called `owner`, has that role and is of the tenant `acme`.
struct Names;

#[async_trait::async_trait]
impl Authenticator for Names {
    async fn authenticate(&self, token: &str) -> Result<Caller, AuthError> {
        let named = |tenant: &str, user: &str, roles: &[&str]| Caller {
            owner: Owner { tenant: tenant.to_owned(), user: user.to_owned() },
            known_as: None,
            expires_at_ms: None,
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            bearer: Bearer::new(token),
            cookie: None,
        };
        if let Some((role, tenant)) = token.split_once('@') {
            return Ok(named(tenant, role, &[role]));
        }
        let (user, roles): (&str, &[&str]) = match token {
            "ada" => (ADA, &["USER", "ADMIN"]),
            "ben" => (BEN, &["USER"]),
            "newcomer" => ("somebody", &[]),
            "guest" => ("somebody", &["VIEWER"]),
            "expired" => return Err(AuthError::Expired),
            _ => return Err(AuthError::Invalid("unknown")),
        };
        Ok(named("", user, roles))
    }
}

struct Standing;

impl Clock for Standing {
    fn now_ms(&self) -> i64 {
        1_782_864_000_000
    }
}

fn shipped(file: &str) -> Option<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/demo").join(file)).ok()
}

/// A running backend; it stops when dropped or told to.
struct Backend {
    base: String,
    http: reqwest::Client,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Backend {
    async fn start() -> Self {
        let seed = Seed::parse(shipped).expect("the shipped seed is valid");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async {
            let _ = stopped.await;
        };
        let doors = Doors { auth: Arc::new(Names), service: Some(Bearer::new(SERVICE)) };
        let server = tokio::spawn(serve(listener, router(seed, doors, Arc::new(Standing)), shutdown));
        Self { base, http: reqwest::Client::new(), stop, server }
    }

    /// Status and body of one request.
    async fn call(&self, method: Method, token: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        self.call_with(method, token, path, body, &[]).await
    }

    /// The same with these headers.
    async fn call_with(
        &self,
        method: Method,
        token: &str,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> (u16, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let text = response.text().await.expect("a whole body");
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") };
        (status, body)
    }

    async fn get(&self, token: &str, path: &str) -> (u16, Value) {
        self.call(Method::GET, token, path, None).await
    }

    async fn post(&self, token: &str, path: &str, body: &Value) -> (u16, Value) {
        self.call(Method::POST, token, path, Some(body)).await
    }

    async fn put(&self, token: &str, path: &str, body: &Value) -> (u16, Value) {
        self.call(Method::PUT, token, path, Some(body)).await
    }

    /// The body of a `GET` that Ada may make.
    async fn read(&self, path: &str) -> Value {
        let (status, body) = self.get("ada", path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// The id of a seeded record of a bare array, by the value of a field.
    async fn id_of(&self, path: &str, field: &str, value: &str) -> String {
        let list = self.read(path).await;
        let record = list.as_array().expect("an array").iter().find(|record| record[field] == value);
        record.expect("the record")["id"].as_str().expect("an id").to_owned()
    }
}

fn refused(code: &str, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

/// The values of a field, in the order of the list.
fn pluck<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().expect("an array").iter().map(|item| item[field].as_str().expect("a text")).collect()
}

#[tokio::test]
async fn a_request_without_a_valid_token_is_told_to_bring_one() {
    let backend = Backend::start().await;
    let response = reqwest::get(format!("{}/v1/workflow/rules", backend.base)).await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body, refused("unauthenticated", "a bearer token is needed"));

    let answer = backend.get("expired", "/v1/workflow/rules").await;
    assert_eq!(answer, (401, refused("unauthenticated", "the token has expired")));
    let answer = backend.get("mallory", "/v1/core/roles/x").await;
    assert_eq!(answer, (401, refused("unauthenticated", "the token is not valid: unknown")), "before the path is read");
}

#[tokio::test]
async fn roles_decide_who_may_do_what() {
    let backend = Backend::start().await;
    let cases = [
        ("newcomer", "/v1/workflow/rules", 200, "no roles count as USER"),
        ("guest", "/v1/workflow/rules", 403, "neither USER nor ADMIN"),
        ("ben", "/v1/workflow/alerts", 403, "everybody's alerts"),
        ("ben", "/v1/introspection/schemas", 403, "introspection"),
        ("ben", "/v1/introspection/tables/sales/orders/columns", 403, "introspection"),
        ("ben", "/v1/core/users/11111111-1111-4111-8111-111111111111", 200, "recipients have names for everybody"),
        ("ada", "/v1/workflow/alerts", 200, "an administrator"),
    ];
    for (token, path, status, reason) in cases {
        assert_eq!(backend.get(token, path).await.0, status, "{token} {path}: {reason}");
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_are_refused_in_the_same_form() {
    let backend = Backend::start().await;
    for path in ["/", "/v1/nothing", "/v1/workflow/nothing", "/v1/data/id/1/2", "/v1/core/users"] {
        assert_eq!(backend.get("ada", path).await, (404, refused("not_found", "no such route")), "{path}");
    }
    let answer = backend.put("ada", "/v1/workflow/rules", &json!({})).await;
    assert_eq!(answer, (405, refused("unimplemented", "no such method on this route")));
}

#[tokio::test]
async fn told_to_stop_it_stops() {
    let backend = Backend::start().await;
    backend.read("/v1/workflow/trigger-types").await;
    backend.stop.send(()).unwrap();
    backend.server.await.unwrap().unwrap();
}

#[test]
fn a_seed_with_a_mistake_names_the_file_and_the_place() {
    for file in FILES {
        let without = Seed::parse(|name| shipped(name).filter(|_| name != file));
        assert!(matches!(without, Err(SeedError::Missing(missing)) if missing == file), "{file}");
        let broken = Seed::parse(|name| if name == file { Some("[{}".to_owned()) } else { shipped(name) });
        assert!(matches!(broken, Err(SeedError::Malformed { file: named, .. }) if named == file), "{file}");
    }
    let cases = [
        ("rules.json", "temp:0", "temp:99", "matches no action"),
        ("rules.json", "\"on_update\"", "\"on_whim\"", "unknown trigger type \"on_whim\""),
        ("rules.json", "sales.orders", "sales.nothing", "unknown entity \"sales.nothing\""),
        ("alerts.json", LOW_STOCK, NOWHERE, "unknown rule"),
        ("alerts.json", ADA, NOWHERE, "unknown recipient"),
        ("people.json", "\"WAREHOUSE_MANAGER\",", "\"OTHER\",", "unknown role"),
        ("tables.json", "\"query\"", "\"magic\"", "must be one of query, view, viewcount, rpc"),
        ("forum.json", "\"category_id\": \"cc", "\"category_id\": \"99", "what it stands in is not there"),
        (
            "ontology.json",
            "\"project_id\": \"0198c0de-1000",
            "\"project_id\": \"0198c0de-9000",
            "its project is not there",
        ),
        ("forum.json", "\"thread_id\": \"dd", "\"thread_id\": \"99", "what it stands in is not there"),
    ];
    for (file, good, bad, problem) in cases {
        let spoilt = |name: &str| shipped(name).map(|text| if name == file { text.replace(good, bad) } else { text });
        let error = Seed::parse(spoilt).expect_err(problem).to_string();
        assert!(error.contains(file) && error.contains(problem), "{error}");
    }
}
