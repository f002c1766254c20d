//! Section 8: the life of a connection: headers, the first frame, silence, a client that goes away, CORS, the server's
//! end.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::app::TestApp;
use crate::support::frames::{self, read_until};
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::postgres::TestPostgres;
use crate::support::upstream::{Answer, End, Upstream};
use crate::support::wait::eventually;

fn body(message: &str) -> serde_json::Value {
    json!({"message": message, "context_type": "workflow", "conversation_id": "c"})
}

#[tokio::test]
async fn a_stream_has_the_headers_that_keep_it_flowing() {
    let app = TestApp::demo().await;
    let response = app.post(&body("hello")).await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-cache, no-transform");
    assert_eq!(header("x-accel-buffering"), "no");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("x-conversation-id"), "c");
    uuid::Uuid::parse_str(&header("x-run-id")).unwrap();
    assert!(!response.headers().contains_key("content-encoding"));
}

#[tokio::test]
async fn the_first_frame_goes_out_before_the_model_answers() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", silent.local_addr().unwrap());
    let app = TestApp::start(&[("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &base_url)]).await;
    let mut response = app.post(&body("hello")).await;
    assert_eq!(read_until(&mut response, "\n\n").await, "event: message_start\ndata: {\"turn\":0}\n\n");
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let model = [turn().text("Well").hangs().answer()];
    let s = Scripted::with(&[("SERVER__KEEP_ALIVE_S", "1")], model).await;
    let mut response = s.app.post(&body("hello")).await;
    let seen = read_until(&mut response, ": keep-alive\n\n: keep-alive\n\n").await;
    assert!(seen.starts_with("event: message_start\n"), "{seen}");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_model_call_and_keeps_what_was_said() {
    let s = Scripted::playing([turn().text("Half a thought").hangs(), says("And the other half.")]).await;
    let mut response = s.app.post(&body("Think")).await;
    read_until(&mut response, "Half a thought").await;
    drop(response);
    s.model.clients_gone(1).await;

    // The stored text follows within moments; the next message finds it.
    let frames = s.app.chat(&body("Go on")).await;
    assert_eq!(frames::text(&frames), "And the other half.");
    let asked = s.last_asked();
    let said: Vec<_> = asked[1..].iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["Think", "Half a thought", "Go on"]);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_tool_and_every_call_still_has_a_result() {
    let backend = Upstream::choosing(|_| Some(Answer::ok("application/json", "[").ending(End::Hang))).await;
    let base_url = backend.url();
    let both =
        turn().call("t1", "discover_trigger_types", &json!({})).call("t2", "discover_entities", &json!({})).done();
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &*base_url)];
    let s = Scripted::with(&settings, [both.answer(), says("Fine.").answer()]).await;
    let mut response = s.app.post(&body("Both")).await;
    read_until(&mut response, "tool_call_start").await;
    while backend.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(response);
    backend.clients_gone(1).await;
    assert_eq!(backend.requests().len(), 1, "the second tool never began");

    s.app.chat(&body("Go on")).await;
    for call in ["t1", "t2"] {
        assert!(s.result_of(call).to_string().contains("not completed"), "{}", s.result_of(call));
    }
}

#[tokio::test]
async fn cors_answers_listed_origins_only_on_preflights_answers_and_errors() {
    let settings = [("SERVER__CORS_ALLOWED_ORIGINS", "https://app.example.com,http://localhost:3000")];
    let app = TestApp::start(&settings).await;
    let rows = [
        ("https://app.example.com", true, "listed"),
        ("http://localhost:3000", true, "listed, with a port"),
        ("https://app.example.com.evil.com", false, "a suffix"),
        ("https://evil.example.com", false, "another host"),
        ("http://app.example.com", false, "another scheme"),
        ("null", false, "an opaque origin"),
    ];
    let url = app.url("/v1/agent/chat");
    for (origin, allowed, reason) in rows {
        let preflight = app
            .http
            .request(reqwest::Method::OPTIONS, &url)
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type");
        let unauthenticated = app.http.post(&url).header("origin", origin).body("{}");
        let not_found = app.http.get(app.url("/nowhere")).header("origin", origin);
        let good = app.http.post(&url).header("origin", origin).bearer_auth(&app.token).json(&body("hello"));
        let rows = [(preflight, 200), (unauthenticated, 401), (not_found, 404), (good, 200)];
        for (request, status) in rows {
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), status, "{reason}");
            let granted = response.headers().get("access-control-allow-origin").map(|value| value.to_str().unwrap());
            assert_eq!(granted, allowed.then_some(origin), "{reason}, status {status}");
            if allowed && status == 200 && response.url().path() == "/v1/agent/chat" {
                assert!(response.headers().contains_key("vary"), "{reason}");
            }
        }
    }
}

#[tokio::test]
async fn a_preflight_allows_what_clients_send_and_an_answer_exposes_the_ids() {
    let app = TestApp::start(&[("SERVER__CORS_ALLOWED_ORIGINS", "https://a.example")]).await;
    let preflight = app
        .http
        .request(reqwest::Method::OPTIONS, app.url("/v1/agent/chat"))
        .header("origin", "https://a.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,accept,x-stainless-retry-count")
        .send()
        .await
        .unwrap();
    let list = |response: &reqwest::Response, name: &str| response.headers()[name].to_str().unwrap().to_lowercase();
    let methods = list(&preflight, "access-control-allow-methods");
    assert!(["post", "put", "options"].iter().all(|method| methods.contains(method)), "{methods}");
    let headers = list(&preflight, "access-control-allow-headers");
    let sent = ["authorization", "content-type", "accept", "x-stainless-retry-count"];
    assert!(sent.iter().all(|name| headers.contains(name)), "{headers}");
    let request = app.http.post(app.url("/v1/agent/chat")).header("origin", "https://a.example");
    let answer = request.bearer_auth(&app.token).json(&body("hello")).send().await.unwrap();
    let exposed = list(&answer, "access-control-expose-headers");
    assert!(["x-run-id", "x-conversation-id", "x-request-id"].iter().all(|name| exposed.contains(name)), "{exposed}");
}

#[tokio::test]
async fn without_listed_origins_there_is_no_cors_at_all() {
    let app = TestApp::demo().await;
    let response = app.http.get(app.url("/livez")).header("origin", "https://a.example").send().await.unwrap();
    assert!(response.headers().keys().all(|name| !name.as_str().starts_with("access-control")));
}

#[tokio::test]
async fn a_server_that_stops_refuses_new_runs_and_lets_running_ones_finish() {
    let (model, base_url) = model_that_waits().await;
    let settings = [("SERVER__DRAIN_S", "3600"), ("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &base_url)];
    let app = TestApp::start(&settings).await;
    let mut running = app.post(&body("Take your time")).await;
    read_until(&mut running, "message_start").await;
    let (address, token, http) = (app.address, app.token.clone(), app.http.clone());
    let stopping = tokio::spawn(app.stop());
    while http.get(format!("http://{address}/readyz")).send().await.unwrap().status() != 503 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let request = http.post(format!("http://{address}/v1/agent/chat")).bearer_auth(&token).json(&body("New"));
    let refused = request.send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    model.notify_one();
    let rest = running.text().await.unwrap();
    assert!(rest.contains("Just in time.") && rest.ends_with("event: message_complete\ndata: {}\n\n"), "{rest}");
    stopping.await.unwrap();
}

/// A model that answers when it is told to.
async fn model_that_waits() -> (Arc<Notify>, String) {
    let told = Arc::new(Notify::new());
    let waiting = Arc::clone(&told);
    let answer = async move || {
        waiting.notified().await;
        ([("content-type", "text/event-stream")], says_bytes("Just in time."))
    };
    let router = axum::Router::new().route("/v1/chat/completions", axum::routing::post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (told, base_url)
}

#[tokio::test]
async fn a_run_that_outlasts_the_drain_time_is_told_so() {
    let s = Scripted::with(&[("SERVER__DRAIN_S", "1")], [turn().text("Well").hangs().answer()]).await;
    let mut running = s.app.post(&body("For ever")).await;
    read_until(&mut running, "Well").await;
    let stopping = tokio::spawn(s.app.stop());
    let rest = running.text().await.unwrap();
    let frames = frames::parse(&rest);
    assert_eq!(frames::names(&frames), ["error"]);
    assert_eq!(frames::data(&frames, "error")["code"], "interrupted");
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_stop_while_the_database_stands_still_is_told_too() {
    let Some(server) = TestPostgres::private() else { return };
    let database = server.new_database().await;
    let settings = [("STORE__URL", database.url.as_str()), ("SERVER__DRAIN_S", "1")];
    let s = Scripted::with(&settings, [turn().text("Well").hangs().answer()]).await;
    let mut running = s.app.post(&body("For ever")).await;
    read_until(&mut running, "Well").await;
    server.pause();
    let stopping = tokio::spawn(s.app.stop());
    let rest = running.text().await.unwrap();
    let frames = frames::parse(&rest);
    assert_eq!(frames::names(&frames), ["error"]);
    assert_eq!(frames::data(&frames, "error")["code"], "resync");
    server.resume();
    stopping.await.unwrap();
}

#[tokio::test]
async fn who_comes_while_the_server_only_waits_for_others_is_refused() {
    let app = TestApp::start(&[("SERVER__DRAIN_S", "20")]).await;
    let address = app.address;
    let mut slow = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/agent/chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: 9\r\n\r\n{{",
        app.token
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let stopping = tokio::spawn(app.stop());
    // Until it has heard of it, connections are taken as ever.
    eventually("a refused connection", async || TcpStream::connect(address).await.err()).await;
    assert!(!stopping.is_finished(), "it waits for the one that is open");
    drop(slow);
    stopping.await.unwrap();
}

fn says_bytes(text: &str) -> Vec<u8> {
    let chunk = |delta: serde_json::Value, reason: Option<&str>| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}))
    };
    (chunk(json!({"content": text}), None) + &chunk(json!({}), Some("stop"))).into_bytes()
}

#[tokio::test]
async fn many_streams_at_once_do_not_mix() {
    let app = TestApp::demo().await;
    let runs = (0..20).map(|n| {
        let (app, message) = (&app, if n % 2 == 0 { "list the rules" } else { "list my alerts" });
        async move { (n, app.say(&format!("c{n}"), message).await) }
    });
    let runs: Vec<_> = futures::stream::iter(runs).buffer_unordered(20).collect().await;
    for (n, frames) in runs {
        let text = frames::text(&frames);
        assert_eq!((text.contains("workflows"), text.contains("alerts for you")), (n % 2 == 0, n % 2 == 1), "{text}");
    }
}

#[tokio::test]
async fn a_tool_of_a_run_that_calls_on_is_not_disturbed_by_another_runs_end() {
    let s = Scripted::playing([calls("t1", "list_workflow_rules", &json!({})), turn().text("x").hangs(), says("Two.")])
        .await;
    let mut first = s.app.post(&body("One")).await;
    read_until(&mut first, "chunk").await;
    let second = s.app.say("d", "Two").await;
    assert_eq!(frames::text(&second), "Two.");
    drop(first);
    s.model.clients_gone(1).await;
}
