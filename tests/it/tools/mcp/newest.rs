//! A server of the revision without `initialize`, which wants tokens of an issuer: one for all calls, until it is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use serde_json::{Value, json};

use super::fake::{result, tool};
use super::{call, peer, until};
use crate::support::upstream::{Answer, Request, Upstream};

const NEWEST: &str = "2026-07-28";

/// What the server says to a message, where it takes the token.
fn answer(request: &Request) -> Answer {
    if request.method != "POST" {
        return Answer::status(405, "text/plain", "no");
    }
    let body = request.json();
    let id = &body["id"];
    let refused = |status: u16, code: i32| {
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}});
        Answer::status(status, "application/json", error.to_string())
    };
    let method = body["method"].as_str().unwrap_or_default();
    if method == "initialize" {
        return refused(404, -32601);
    }
    let said = &body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    if request.header("mcp-method") != Some(method) || said != NEWEST {
        return refused(400, -32020);
    }
    let ok = |mut value: Value| {
        value["resultType"] = json!("complete");
        Answer::ok("application/json", result(id, &value).to_string())
    };
    match method {
        "server/discover" => ok(json!({
            "supportedVersions": [NEWEST], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
        })),
        "tools/list" => ok(json!({"tools": [tool("look", "Looks.", true)], "ttlMs": 0, "cacheScope": "private"})),
        "tools/call" => ok(json!({"content": [{"type": "text", "text": "seen"}]})),
        _ => Answer::status(202, "text/plain", ""),
    }
}

#[tokio::test]
async fn a_server_without_an_initialize_is_used_with_one_token_of_its_issuer() {
    used_with_one_token(Some("Bearer error=\"invalid_token\"")).await;
}

#[tokio::test]
async fn a_token_is_replaced_too_where_a_server_says_nothing_but_401() {
    used_with_one_token(None).await;
}

/// Where what is refused is refused with this challenge.
async fn used_with_one_token(challenge: Option<&'static str>) {
    let given = Arc::new(AtomicUsize::new(0));
    let counted = given.clone();
    let issuer = Upstream::choosing(move |_| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        let token = json!({"access_token": format!("t{number}"), "token_type": "Bearer", "expires_in": 3600});
        Some(Answer::ok("application/json", token.to_string()))
    })
    .await;
    let good = Arc::new(AtomicUsize::new(0));
    let now = good.clone();
    let server = Upstream::choosing(move |request| {
        let wanted = format!("Bearer t{}", now.load(Ordering::Relaxed));
        match request.header("authorization") == Some(wanted.as_str()) {
            true => Some(answer(request)),
            false => {
                let refused = Answer::status(401, "text/plain", "");
                Some(challenge.into_iter().fold(refused, |refused, words| refused.header("www-authenticate", words)))
            }
        }
    })
    .await;
    let keys = format!(
        "url = \"{}/mcp\"\ntoken_url = \"{}/token\"\nclient_id = \"us\"\nclient_secret = \"secret\"\nscope = \"tools\"\nsend_resource = {}",
        server.url(),
        issuer.url(),
        challenge.is_some()
    );
    let servers = peer(&keys).await;
    until(&servers, |tools| tools.len() == 1).await;
    let nothing = json!({});
    let all = join_all((0..50).map(|_| call(&servers, "peer__look", &nothing))).await;
    assert!(all.iter().all(|(output, _)| output.as_deref() == Ok("seen")), "{all:?}");
    assert_eq!(given.load(Ordering::Relaxed), 1);
    let asked = String::from_utf8(issuer.requests()[0].body.clone()).unwrap();
    let address = url::form_urlencoded::byte_serialize(format!("{}/mcp", server.url()).as_bytes()).collect::<String>();
    assert!(asked.contains("grant_type=client_credentials") && asked.contains("scope=tools"), "{asked}");
    assert_eq!(asked.contains(&format!("resource={address}")), challenge.is_some(), "{asked}");
    // One that is taken back is replaced, once for all.
    good.store(1, Ordering::Relaxed);
    let all = join_all((0..10).map(|_| call(&servers, "peer__look", &nothing))).await;
    assert!(all.iter().all(|(output, _)| output.as_deref() == Ok("seen")), "{all:?}");
    assert_eq!(given.load(Ordering::Relaxed), 2);
    servers.close().await;
}
