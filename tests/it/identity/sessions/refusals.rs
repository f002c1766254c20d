//! What another site could have its visitor's browser send is refused before anybody is asked.

use serde_json::{Value, json};

use super::{CSRF, SESSION, asked, cookie, csrf, getting, giving, over, posting, told};
use crate::identity::{good_claims, signed};
use crate::support::app::TestApp;
use crate::support::model::says;
use crate::support::upstream::Upstream;

fn own(app: &TestApp) -> (&'static str, String) {
    ("origin", format!("http://{}", app.address))
}

fn origin(origin: &str) -> (&'static str, String) {
    ("origin", origin.to_owned())
}

fn site(site: &str) -> (&'static str, String) {
    ("sec-fetch-site", site.to_owned())
}

#[tokio::test]
async fn what_another_site_may_have_sent_is_refused_and_nobody_is_asked() {
    // Neither the application nor the model has an answer.
    let exchange = Upstream::script([]).await;
    let (s, _backend) = over(&exchange, &[], []).await;
    let own = own(&s.app);
    let empty = ("x-csrf-token", String::new());
    let long = ("x-csrf-token", "x".repeat(9000));
    let rows = [
        (vec![cookie()], "no CSRF token"),
        (vec![cookie(), empty], "an empty one"),
        (vec![cookie(), csrf(), csrf()], "two of them"),
        (vec![cookie(), long], "one that is too long"),
        (vec![cookie(), csrf(), origin("https://evil.example")], "another site"),
        (vec![cookie(), csrf(), origin("null")], "an opaque origin"),
        (vec![cookie(), csrf(), origin("https://evil.example"), site("same-origin")], "a contradiction"),
        (vec![cookie(), csrf(), own.clone(), origin("https://evil.example")], "two origins"),
        (vec![cookie(), csrf(), site("cross-site")], "another site without an origin"),
        (vec![cookie(), csrf(), site("same-site")], "a sibling"),
        (vec![cookie(), csrf(), own.clone(), site("cross-site")], "another scheme of this host"),
        (vec![cookie(), csrf(), site("same-origin"), site("cross-site")], "two sites"),
        (vec![cookie(), own.clone()], "a page of ours without the token"),
    ];
    for (headers, reason) in rows {
        let response = posting(&s.app, &headers).send().await.unwrap();
        assert_eq!(response.status(), 403, "{reason}");
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        let body: Value = response.json().await.unwrap();
        let text = body["error"].as_str().unwrap_or_else(|| panic!("{reason}: {body}"));
        assert!(!text.contains(SESSION) && !text.contains(CSRF), "{text}");
        assert_eq!(body, json!({"error": text, "code": "csrf_failed", "request_id": id}), "{reason}");
    }
    let delete = s.app.http.delete(s.app.url("/v1/agent/conversations/c"));
    let response = super::with(delete, &[cookie()]).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (403, &"application/problem+json".parse().unwrap())
    );
    let problem: Value = response.json().await.unwrap();
    assert_eq!((&problem["code"], &problem["retryable"]), (&json!("csrf_failed"), &json!(false)));

    let two = ("cookie", format!("_app_key={SESSION}; _app_key=other"));
    let long = ("cookie", format!("_app_key={}", "x".repeat(9000)));
    let bearer = |token: &str| ("authorization", format!("Bearer {token}"));
    let rows = [
        (vec![two, csrf()], "unauthenticated", "two sessions"),
        (vec![long, csrf()], "unauthenticated", "a cookie that is too long"),
        (vec![csrf()], "unauthenticated", "no cookie"),
        (vec![cookie(), csrf(), bearer("x")], "invalid_token", "Authorization counts"),
        (vec![cookie(), csrf(), ("authorization", String::new())], "unauthenticated", "even where it says nothing"),
    ];
    for (headers, code, reason) in rows {
        assert_eq!(told(posting(&s.app, &headers)).await, (401, json!(code), false), "{reason}");
    }
    assert_eq!((asked(&exchange), s.model.requests().len()), (0, 0));
}

#[tokio::test]
async fn pages_of_this_site_and_of_listed_ones_are_heard() {
    let exchange = giving(signed(&good_claims())).await;
    let rows = |app: &TestApp| {
        [
            (vec![], "nothing is said"),
            (vec![own(app)], "its own page"),
            (vec![own(app), site("same-origin")], "its own page, by both"),
            (vec![site("same-origin")], "its own page without an origin"),
            (vec![site("none")], "its user"),
            (vec![origin("https://app.example"), site("cross-site")], "a listed one"),
        ]
    };
    let (s, _backend) = over(&exchange, &[], (0..6).map(|_| says("Hello."))).await;
    for (headers, reason) in rows(&s.app) {
        let headers = [headers, vec![cookie(), csrf()]].concat();
        assert_eq!(told(posting(&s.app, &headers)).await, (200, Value::Null, false), "{reason}");
    }
    let foreign = [cookie(), origin("https://evil.example"), site("cross-site")];
    assert_eq!(
        told(getting(&s.app, &foreign)).await.0,
        200,
        "what only reads needs no CSRF token, wherever it is from"
    );

    let preflight = s
        .app
        .http
        .request(reqwest::Method::OPTIONS, s.app.url("/chat/message"))
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "x-csrf-token");
    let response = preflight.send().await.unwrap();
    assert_eq!(response.headers()["access-control-allow-credentials"], "true");
    assert_eq!(response.headers()["access-control-allow-headers"], "x-csrf-token");
}
