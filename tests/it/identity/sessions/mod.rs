//! Sessions of an application: its page sends a cookie and a CSRF token, and the application gives a token for them.

mod exchanges;
mod known;
mod refusals;

use reqwest::RequestBuilder;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use super::{SECRET, good_claims, signed};
use crate::chat_message::{content, frames};
use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::tools::rest::{Setup, answer};

const TOOLS: &str = r#"
[[tool]]
name = "note"
description = "Reads a note."
request = { path = "/notes/1" }
"#;

/// The value of the page's cookie.
const SESSION: &str = "SFMyNTY.g3QAAAAB-canary-session.c2lnbmVk";

/// The page's CSRF token.
const CSRF: &str = "canary-csrf-token";

/// The product over an application that gives tokens at `exchange`, a model that says `turns`, and the application's own
/// backend.
async fn over(
    exchange: &Upstream,
    more: &[(&str, &str)],
    turns: impl IntoIterator<Item = Script>,
) -> (Scripted, Upstream) {
    let url = format!("{}/api/session-token", exchange.url());
    let mut setup = Setup::of(TOOLS);
    setup.settings = vec![
        ("AUTH__MODE", "hs256"),
        ("AUTH__HS256_SECRET", SECRET),
        ("AUTH__SESSION__COOKIE", "_app_key"),
        ("AUTH__SESSION__EXCHANGE_URL", &url),
        ("CHAT_MESSAGE__PROFILE", "mine"),
        ("SERVER__CORS_ALLOWED_ORIGINS", "https://app.example"),
    ];
    setup.settings.extend(more);
    setup.start(turns, |_| answer(&json!({"text": "A note"}))).await
}

/// An application that gives `token` for everything.
async fn giving(token: String) -> Upstream {
    Upstream::choosing(move |_| Some(gives(&token))).await
}

fn gives(token: &str) -> Answer {
    Answer::ok("application/json", json!({"access_token": token, "token_type": "Bearer"}).to_string())
}

fn cookie() -> (&'static str, String) {
    ("cookie", format!("_app_key={SESSION}"))
}

fn csrf() -> (&'static str, String) {
    ("x-csrf-token", CSRF.to_owned())
}

fn with(request: RequestBuilder, headers: &[(&str, String)]) -> RequestBuilder {
    headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap())
    })
}

/// What the page posts, with these headers.
fn posting(app: &TestApp, headers: &[(&str, String)]) -> RequestBuilder {
    let body = json!({"message": "hi", "agent_id": null});
    with(app.http.post(app.url("/chat/message")).header("accept", "text/event-stream").json(&body), headers)
}

fn getting(app: &TestApp, headers: &[(&str, String)]) -> RequestBuilder {
    with(app.http.get(app.url("/v1/agent/conversations")), headers)
}

/// The status, the error's code, and whether there is a time to come again.
async fn told(request: RequestBuilder) -> (u16, Value, bool) {
    let response = request.send().await.unwrap();
    let comes_again = response.headers().contains_key("retry-after");
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    (status, body["code"].clone(), comes_again)
}

/// How many times the application was asked.
fn asked(exchange: &Upstream) -> usize {
    exchange.requests().len()
}

#[tokio::test]
async fn a_page_with_a_cookie_and_a_csrf_token_works_as_its_user() {
    let token = signed(&good_claims());
    let exchange = giving(token.clone()).await;
    let turns = [turn().call("c1", "note", &json!({})).done(), says("It is a note.")];
    let (s, backend) = over(&exchange, &[], turns).await;
    let headers = [("cookie", format!("theme=dark; _app_key={SESSION}; _app_key2=x")), csrf()];
    let body = json!({"message": "Read it", "agent_id": null});
    let request = s.app.http.post(s.app.url("/chat/message?from=page")).header("accept", "text/event-stream");
    let response = with(request.json(&body), &headers).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(content(&frames(&response.text().await.unwrap())), "It is a note.");

    let [request] = exchange.requests().try_into().unwrap_or_else(|all| panic!("{all:?}"));
    assert_eq!((&*request.method, &*request.path, &*request.body), ("POST", "/api/session-token", &b"{}"[..]));
    let session = format!("_app_key={SESSION}");
    for (name, expected) in [
        ("cookie", Some(session.as_str())),
        ("x-csrf-token", Some(CSRF)),
        ("x-forwarded-method", Some("POST")),
        ("x-forwarded-uri", Some("/chat/message?from=page")),
        ("accept", Some("application/json")),
        ("content-type", Some("application/json")),
        ("authorization", None),
    ] {
        assert_eq!(request.header(name), expected, "{name}");
    }
    let [request] = backend.requests().try_into().unwrap_or_else(|all| panic!("{all:?}"));
    assert_eq!(request.header("authorization"), Some(&*format!("Bearer {token}")));
    for request in backend.requests().into_iter().chain(s.model.requests()) {
        let text = format!("{:?} {}", request.headers, String::from_utf8_lossy(&request.body));
        assert!(!text.contains(SESSION) && !text.contains(CSRF), "{text}");
        assert_eq!(request.header("cookie"), None);
    }
    let heard: String = s.model.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(!heard.contains(&token), "{heard}");
    let theirs = s.app.http.get(s.app.url("/v1/agent/conversations")).bearer_auth(signed(&good_claims()));
    let list: Value = theirs.send().await.unwrap().json().await.unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "it is their own conversation: {list}");
}

#[tokio::test]
async fn the_cookie_is_sent_as_it_came() {
    let exchange = giving(signed(&good_claims())).await;
    let (s, _backend) = over(&exchange, &[("AUTH__SESSION__CACHE_S", "0")], []).await;
    let rows = [
        ("_app_key=a; _app_key=a", "_app_key=a", "the same twice"),
        ("x=é; _app_key=a.b==;y=1", "_app_key=a.b==", "among others, of which one is no ASCII"),
        ("_app_key=\"a b\"", "_app_key=\"a b\"", "in quotes"),
        ("__app_key=b; _app_key=é%20", "_app_key=é%20", "bytes as they are"),
    ];
    for (header, expected, reason) in rows {
        assert_eq!(told(getting(&s.app, &[("cookie", header.to_owned())])).await.0, 200, "{reason}");
        let last: Request = exchange.requests().pop().unwrap();
        assert_eq!(last.header("cookie"), Some(expected), "{reason}");
        assert_eq!((last.header("x-csrf-token"), last.header("x-forwarded-method")), (None, Some("GET")), "{reason}");
    }
    for header in ["_app_key=", "_app=a", "xx_app_key=a", "_app_key2=a"] {
        let (status, code, _) = told(getting(&s.app, &[("cookie", header.to_owned())])).await;
        assert_eq!((status, code), (401, json!("unauthenticated")), "{header} is no session");
    }
    assert_eq!(asked(&exchange), rows.len(), "nobody is asked about those");
}

#[tokio::test]
async fn a_token_of_a_session_goes_to_nobody_who_renews_and_to_no_page() {
    let renewer = Upstream::script([gives(&signed(&good_claims()))]).await;
    let token = signed(&good_claims());
    let exchange = giving(token.clone()).await;
    let url = format!("{}/renew", renewer.url());
    let (s, _backend) = over(&exchange, &[("AUTH__RENEW_URL", &url)], []).await;
    let response = getting(&s.app, &[cookie()]).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(!response.headers().contains_key("x-new-token"));
    assert_eq!(response.headers()["cache-control"], "no-store");
    let head = format!("{:?}", response.headers());
    assert!(!head.contains(&token) && !response.text().await.unwrap().contains(&token));
    assert_eq!(renewer.requests().len(), 0);
    let control = s.app.http.get(s.app.url("/v1/agent/conversations")).bearer_auth(&token).send().await.unwrap();
    assert!(control.headers().contains_key("x-new-token"), "the control: one that came in Authorization is renewed");
}
