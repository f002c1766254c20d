//! What a proxy does to heads and sizes: the request's id, what clients say of themselves, and what is too large.

use serde_json::{Value, json};

use super::{Front, Kind};
use crate::support::app::TestApp;

/// The answer's request id.
fn id_of(response: &reqwest::Response) -> String {
    response.headers()["x-request-id"].to_str().unwrap().to_owned()
}

/// A body that decodes, of about this many bytes.
fn body(bytes: usize) -> String {
    json!({"message": "x".repeat(bytes), "context_type": "workflow"}).to_string()
}

#[tokio::test]
async fn a_request_keeps_its_id_and_gets_one_where_it_has_none_or_a_bad_one() {
    let app = TestApp::demo().await;
    let address = app.address.to_string();
    for front in Front::all(&address, &address).await {
        let kind = front.kind;
        let ask = async |id: Option<&str>| {
            let request = app.http.get(front.url("/livez"));
            let request = id.into_iter().fold(request, |request, id| request.header("x-request-id", id));
            id_of(&request.send().await.unwrap())
        };
        assert_eq!(ask(Some("from-the.client_1")).await, "from-the.client_1", "{kind:?}");
        let (one, other) = (ask(None).await, ask(None).await);
        assert!(one.len() >= 32 && one != other, "{kind:?}: {one} {other}");
        assert_ne!(ask(Some("no good: {}")).await, "no good: {}", "{kind:?}");
        if kind == Kind::Nginx {
            assert!(front.log().contains(&format!("id={one} ")), "{}", front.log());
        }
    }
}

#[tokio::test]
async fn nobody_passes_for_a_client_of_this_machine_through_a_proxy() {
    let app = TestApp::demo().await;
    let address = app.address.to_string();
    // To whoever asks on this machine itself, `dev` gives a token.
    let local = app.http.get(app.url("/page/session")).send().await.unwrap();
    let local: Value = local.json().await.unwrap();
    assert!(local["token"].is_string(), "{local}");
    for front in Front::all(&address, &address).await {
        let spoofs: [&[(&str, &str)]; 5] = [
            &[],
            &[("host", "localhost")],
            &[("host", "127.0.0.1"), ("x-forwarded-for", "127.0.0.1"), ("x-forwarded-host", "localhost")],
            &[("host", "localhost"), ("forwarded", "for=127.0.0.1;host=localhost"), ("x-real-ip", "127.0.0.1")],
            &[("host", "localhost"), ("connection", "x-forwarded-for, x-forwarded-host, x-forwarded-proto")],
        ];
        for spoof in spoofs {
            let request = app.http.get(front.url("/page/session"));
            let request = spoof.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            let answer = request.send().await.unwrap().text().await.unwrap();
            assert!(!answer.contains("\"token\":\""), "{:?} {spoof:?}: {answer}", front.kind);
        }
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_by_the_server_and_a_huge_one_by_the_proxy() {
    let app = TestApp::demo().await;
    let address = app.address.to_string();
    for front in Front::all(&address, &address).await {
        let kind = front.kind;
        let post = async |bytes: usize| {
            let request = app.http.post(front.url("/v1/agent/chat")).bearer_auth(&app.token);
            request.header("content-type", "application/json").body(body(bytes)).send().await
        };
        let ours = post(1_200_000).await.unwrap();
        let told = (ours.status().as_u16(), ours.headers()["content-type"].to_str().unwrap().to_owned());
        assert_eq!(told, (413, "application/problem+json".to_owned()), "{kind:?}");
        // Refused while it is still sent, which a client may see as a broken connection.
        if let Ok(answer) = post(8_000_000).await {
            // Caddy 2.6 tells of its own limit as of a replica that failed.
            let status = answer.status().as_u16();
            assert!(status == 413 || kind == Kind::Caddy && status == 502, "{kind:?}: {status}");
        }
        assert_eq!(app.http.get(front.url("/livez")).send().await.unwrap().status(), 200, "{kind:?}");
    }
}

#[tokio::test]
async fn a_token_of_the_longest_length_passes_and_a_huge_head_does_not() {
    let app = TestApp::demo().await;
    let address = app.address.to_string();
    for front in Front::all(&address, &address).await {
        let kind = front.kind;
        let longest = app.http.get(front.url("/v1/agent/conversations")).bearer_auth("a".repeat(8 * 1024));
        let told = longest.send().await.unwrap();
        assert_eq!((told.status().as_u16(), told.headers().contains_key("www-authenticate")), (401, true), "{kind:?}");
        let huge = app.http.get(front.url("/livez")).header("x-large", "a".repeat(200_000)).send().await;
        if let Ok(answer) = huge {
            assert!(answer.status().is_client_error(), "{kind:?}: {}", answer.status());
        }
        assert_eq!(app.http.get(front.url("/livez")).send().await.unwrap().status(), 200, "{kind:?}");
    }
}

#[tokio::test]
async fn metrics_are_not_served_to_the_outside() {
    let app = TestApp::demo().await;
    let address = app.address.to_string();
    for front in Front::all(&address, &address).await {
        let answer = app.http.get(front.url("/metrics")).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{:?}", front.kind);
        assert!(!answer.headers().contains_key("x-request-id"), "{:?}: it was passed on", front.kind);
    }
}
