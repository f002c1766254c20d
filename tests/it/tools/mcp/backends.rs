//! A server that names a backend: what the backend presents it is presented, and nothing of a caller.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use switchboard::config::Config;

use super::fake::{answer, text, tool};
use super::{message, product};
use crate::support::app::sources;
use crate::support::model::{calls, says};
use crate::support::upstream::{Answer, Upstream};

/// A server that repeats in its result what a call came with.
async fn repeating() -> Upstream {
    Upstream::choosing(|request| {
        let call = |id: &Value, _: &Value| text(id, &format!("{:?}", request.headers));
        Some(answer(request, &json!([tool("look", "Looks.", true)]), &call).1)
    })
    .await
}

#[tokio::test]
async fn the_key_and_the_headers_of_the_backend_are_presented_at_its_address_or_below() {
    let rows = [("", "/api", "the backend's own address"), ("/api/mcp/", "/api/mcp/", "the server's own")];
    for (own, path, reason) in rows {
        let server = repeating().await;
        let root = server.url();
        let url = if own.is_empty() { String::new() } else { format!("url = \"{root}{own}\"\n") };
        let settings = format!(
            "[backends.shelf]\nbase_url = \"{root}/api\"\ncredentials = \"static\"\napi_key = \"key-of-the-shelf\"\n\
             headers = {{ X-Team = \"the-blue-team\" }}\n[mcp.peer]\nbackend = \"shelf\"\nheaders = {{ X-Desk = \"7\" }}\n{url}"
        );
        let s = product(&settings, [calls("c1", "peer__look", &json!({"n": 1})), says("Done.")]).await;
        s.app.chat(&message("Look")).await;
        let read = s.result_of("c1").to_string();
        assert!(read.contains("[redacted]") && read.contains("x-team"), "it was called, and repeats: {reason}: {read}");
        assert!(!read.contains("key-of-the-shelf") && !read.contains("the-blue-team"), "{reason}: {read}");
        for request in server.requests() {
            let header = |name: &str| request.header(name);
            assert_eq!(header("authorization"), Some("Bearer key-of-the-shelf"), "{reason}");
            assert_eq!((header("x-team"), header("x-desk")), (Some("the-blue-team"), Some("7")), "{reason}");
            assert_eq!(request.path, path, "{reason}");
            assert!(!format!("{request:?}").contains(&s.app.token), "{reason}");
        }
    }
}

#[tokio::test]
async fn a_token_of_the_backends_issuer_is_replaced_once_when_it_is_refused() {
    let given = AtomicUsize::new(0);
    let issuer = Upstream::choosing(move |_| {
        let token = format!("t{}", given.fetch_add(1, Ordering::Relaxed));
        let given = json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600});
        Some(Answer::ok("application/json", given.to_string()))
    })
    .await;
    let server = Upstream::choosing(|request| {
        // The first one serves for the greeting and the list, and for no call.
        let is_call = request.method == "POST" && request.json()["method"] == "tools/call";
        match request.header("authorization") {
            Some("Bearer t0") if is_call => {
                Some(Answer::status(401, "text/plain", "").header("www-authenticate", "Bearer"))
            }
            Some("Bearer t0" | "Bearer t1") => {
                Some(answer(request, &json!([tool("look", "Looks.", true)]), &|id, _| text(id, "seen")).1)
            }
            other => panic!("{other:?}"),
        }
    })
    .await;
    let settings = format!(
        "[backends.shelf]\nbase_url = \"{}/mcp\"\ncredentials = \"client_credentials\"\ntoken_url = \"{}/token\"\n\
         client_id = \"us\"\nclient_secret = \"secret\"\nscope = \"look\"\n[mcp.peer]\nbackend = \"shelf\"\n",
        server.url(),
        issuer.url()
    );
    let s = product(&settings, [calls("c1", "peer__look", &json!({})), says("Done.")]).await;
    s.app.chat(&message("Look")).await;
    assert_eq!(s.result_of("c1"), "seen");
    let asked: Vec<String> =
        issuer.requests().iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for form in &asked {
        assert!(form.contains("grant_type=client_credentials") && form.contains("scope=look"), "{form}");
    }
}

#[test]
fn a_backend_that_a_server_cannot_present_is_a_mistake() {
    let text = r#"
[backends.callers]
base_url = "http://localhost:1"
[backends.exchange]
base_url = "http://localhost:1"
credentials = "token_exchange"
token_url = "http://localhost:1/token"
client_id = "us"
client_secret = "s"
[backends.tenants]
base_url = "http://localhost:1"
credentials = "client_credentials"
token_url = "http://localhost:1/token"
client_id = "us"
client_secret = "s"
scope = "of:{tenant}"
[backends.good]
base_url = "http://localhost:1/api"
credentials = "static"
headers = { X-Key = "k" }
[mcp.callers]
backend = "callers"
[mcp.exchange]
backend = "exchange"
[mcp.tenants]
backend = "tenants"
[mcp.nobody]
backend = "nobody"
[mcp.elsewhere]
backend = "good"
url = "http://localhost:2/api"
[mcp.both]
backend = "good"
token_url = "http://localhost:1/token"
client_id = "us"
headers = { Authorization = "Bearer x", x-key = "k" }
[mcp.program]
backend = "good"
command = "run"
[mcp.good]
backend = "good"
url = "http://localhost:1/other"
"#;
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("settings.toml");
    std::fs::write(&file, text).unwrap();
    let mut sources = sources(&data, &[]);
    sources.file = Some(file);
    let problems = Config::load(&sources).unwrap_err();
    let mut found: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let of_callers = "must be one with credentials = \"none\", \"static\" or \"client_credentials\": a server of tools gets nothing of a caller";
    let beside = "must not be given beside backend, whose credentials are presented";
    let mut expected = [
        format!("mcp.callers.backend: {of_callers}"),
        format!("mcp.exchange.backend: {of_callers}"),
        "mcp.tenants.backend: must not be one that names a tenant: the tokens are those of all callers".to_owned(),
        "mcp.nobody.backend: \"nobody\" is no section of [backends]".to_owned(),
        "mcp.elsewhere.url: must have the origin of backends.good.base_url".to_owned(),
        format!("mcp.both.token_url: {beside}"),
        format!("mcp.both.client_id: {beside}"),
        format!("mcp.both.headers.authorization: {beside}"),
        "mcp.both.headers.x-key: is one of the backend's".to_owned(),
        "mcp.program.backend: must not be given beside command".to_owned(),
    ];
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
