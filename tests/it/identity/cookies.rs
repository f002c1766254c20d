//! A token in a cookie: the same token as in `Authorization`, but for requests that another site could have its visitor's
//! browser send.

use serde_json::{Value, json};

use super::{good_claims, hs256, signed};
use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{says, turn};
use crate::tools::rest::{Setup, answer};

/// Posts a chat turn with these headers, and the error's code if there is one.
async fn post(app: &TestApp, headers: &[(&str, String)]) -> (u16, Value) {
    let body = json!({"message": "hi", "context_type": "workflow"});
    let request = app.http.post(app.url("/v1/agent/chat")).json(&body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body: Option<Value> = serde_json::from_str(&response.text().await.unwrap()).ok();
    (status, body.map_or(Value::Null, |body| body["code"].clone()))
}

#[tokio::test]
async fn a_cookie_counts_for_pages_of_this_site_and_of_listed_ones() {
    let app = hs256(&[("AUTH__COOKIE", "session"), ("SERVER__CORS_ALLOWED_ORIGINS", "https://app.example")]).await;
    let good = signed(&good_claims());
    let cookie = ("cookie", format!("theme=dark; session={good}"));
    let own = ("origin", format!("http://{}", app.address));
    let site = |site: &str| ("sec-fetch-site", site.to_owned());
    let origin = |origin: &str| ("origin", origin.to_owned());
    let bad = ("cookie", format!("session={good}x"));
    type Row<'a> = (&'a [(&'static str, String)], u16, Value, &'static str);
    let rows: [Row<'_>; 11] = [
        (&[cookie.clone(), own.clone()], 200, Value::Null, "its own page"),
        (&[cookie.clone(), origin("https://app.example")], 200, Value::Null, "a listed one"),
        (&[cookie.clone(), site("same-origin")], 200, Value::Null, "what the browser says without an origin"),
        (&[cookie.clone(), origin("https://evil.example")], 403, json!("forbidden"), "another site"),
        (&[cookie.clone(), origin("null")], 403, json!("forbidden"), "an opaque origin"),
        (&[cookie.clone(), site("cross-site")], 403, json!("forbidden"), "another site without an origin"),
        (std::slice::from_ref(&cookie), 403, json!("forbidden"), "nothing is said, as by no browser"),
        (&[bad, own.clone()], 401, json!("invalid_token"), "a forged token"),
        (&[("cookie", "session=%7B".to_owned()), own.clone()], 401, json!("unauthenticated"), "half a session"),
        (&[("cookie", "theme=dark".to_owned()), own], 401, json!("unauthenticated"), "no such cookie"),
        (&[cookie.clone(), ("authorization", "Bearer x".to_owned())], 401, json!("invalid_token"), "the header counts"),
    ];
    for (headers, status, code, reason) in rows {
        assert_eq!(post(&app, headers).await, (status, code), "{reason}");
    }
    let list = app.http.get(app.url("/v1/agent/conversations")).header("cookie", &cookie.1);
    assert_eq!(list.send().await.unwrap().status(), 200, "reading needs no origin");
}

#[tokio::test]
async fn pages_of_listed_origins_may_send_their_cookie() {
    for (origins, allowed) in [("https://app.example", Some("true")), ("*", None)] {
        let app = hs256(&[("AUTH__COOKIE", "session"), ("SERVER__CORS_ALLOWED_ORIGINS", origins)]).await;
        let preflight = app
            .http
            .request(reqwest::Method::OPTIONS, app.url("/v1/agent/chat"))
            .header("origin", "https://app.example")
            .header("access-control-request-method", "POST");
        let response = preflight.send().await.unwrap();
        let found = response.headers().get("access-control-allow-credentials").map(|value| value.to_str().unwrap());
        assert_eq!(found, allowed, "{origins}");
    }
}

const TOOLS: &str = r#"
[[tool]]
name = "note"
description = "Reads a note."
request = { path = "/notes/1" }
"#;

#[tokio::test]
async fn the_backend_gets_the_cookie_where_it_is_told_to_and_never_repeats_it_to_the_model() {
    for (with_cookie, by_cookie) in [("true", true), ("true", false), ("false", true)] {
        let mut setup = Setup::of(TOOLS);
        setup.settings = vec![("AUTH__COOKIE", "session"), ("BACKEND__COOKIE", with_cookie)];
        let turns = [turn().call("c1", "note", &json!({})).done(), says("Done.")];
        let (s, backend) =
            setup.start(turns, |request| answer(&json!({"cookie": request.header("cookie"), "text": "A note"}))).await;
        let body = json!({"message": "Go", "context_type": "mine"});
        let request = s.app.http.post(s.app.url("/v1/agent/chat")).json(&body);
        let request = match by_cookie {
            true => request
                .header("cookie", format!("theme=dark; session={}", s.app.token))
                .header("sec-fetch-site", "same-origin"),
            false => request.bearer_auth(&s.app.token).header("cookie", "session=x"),
        };
        let frames = frames::parse(&request.send().await.unwrap().text().await.unwrap());
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");
        let requests = backend.requests();
        let authorization = format!("Bearer {}", s.app.token);
        assert_eq!(requests[0].header("authorization"), Some(&*authorization));
        let expected = (with_cookie == "true" && by_cookie).then(|| format!("session={}", s.app.token));
        assert_eq!(requests[0].header("cookie"), expected.as_deref(), "{with_cookie} {by_cookie}");
        let heard: String = s.model.requests().iter().map(|request| request.json().to_string()).collect();
        assert!(!heard.contains(&s.app.token), "{heard}");
    }
}
