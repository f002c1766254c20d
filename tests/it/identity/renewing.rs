//! `X-New-Token`: a token near its end is renewed where the operator says, by nobody else and at no request's cost.

use serde_json::{Value, json};

use super::{claims_with, hs256, now, signed};
use crate::support::app::TestApp;
use crate::support::upstream::{Answer, Upstream};

/// A GET of somebody: its status and the token that it hands out.
async fn handed_out(app: &TestApp, token: &str) -> (u16, Option<String>) {
    let request = app.http.get(app.url("/v1/agent/conversations")).bearer_auth(token);
    let response = request.send().await.unwrap();
    let new = response.headers().get("x-new-token").map(|value| value.to_str().unwrap().to_owned());
    (response.status().as_u16(), new)
}

async fn renewing(renewer: &Upstream) -> TestApp {
    let url = format!("{}/renew", renewer.url());
    hs256(&[
        ("AUTH__RENEW_URL", &url),
        ("AUTH__RENEW_BEFORE_S", "300"),
        ("SERVER__CORS_ALLOWED_ORIGINS", "https://page.example.com"),
    ])
    .await
}

fn ends_in(seconds: u64, jti: &str) -> String {
    signed(&claims_with(json!({"exp": now() + seconds, "jti": jti})))
}

fn answers(body: &Value) -> Answer {
    Answer::ok("application/json", body.to_string())
}

#[tokio::test]
async fn a_token_near_its_end_is_renewed_once_and_handed_out_with_each_answer() {
    let newer = ends_in(3600, "newer");
    let renewer = Upstream::script([answers(&json!({"access_token": newer}))]).await;
    let app = renewing(&renewer).await;
    assert_eq!(handed_out(&app, &ends_in(3000, "far")).await, (200, None), "far from its end");
    assert_eq!(handed_out(&app, "x.y.z").await, (401, None), "what is no token goes nowhere");
    assert_eq!(renewer.requests().len(), 0);

    let old = ends_in(60, "old");
    let both = tokio::join!(handed_out(&app, &old), handed_out(&app, &old));
    let expected = (200, Some(newer.clone()));
    assert_eq!(both, (expected.clone(), expected.clone()));
    assert_eq!(handed_out(&app, &old).await, expected, "it serves for a while");
    let requests = renewer.requests();
    let asked: Vec<_> = requests.iter().map(|request| (&*request.method, &*request.path)).collect();
    assert_eq!(asked, [("POST", "/renew")], "one question for all of them");
    assert_eq!(requests[0].header("authorization"), Some(&*format!("Bearer {old}")));
    assert_eq!(handed_out(&app, &newer).await, (200, None), "the new one is good, and far from its end");

    let request = app.http.get(app.url("/v1/agent/conversations")).header("origin", "https://page.example.com");
    let response = request.bearer_auth(&old).send().await.unwrap();
    let exposed = response.headers()["access-control-expose-headers"].to_str().unwrap().to_lowercase();
    assert!(exposed.contains("x-new-token"), "{exposed}");
}

#[tokio::test]
async fn whatever_goes_wrong_no_request_fails_and_nothing_strange_is_handed_out() {
    let elsewhere = Upstream::script([]).await;
    let other = signed(&claims_with(json!({"sub": "mallory"})));
    let rows = [
        (Answer::status(500, "text/plain", "no"), "a failure"),
        (answers(&json!({"token": other})), "a token of somebody else"),
        (answers(&json!({"token": "a\r\nb: c"})), "no token"),
        (answers(&json!({"token": 7})), "a number"),
        (answers(&json!({"token": "x".repeat(20_000)})), "too much"),
        (Answer::status(307, "text/plain", "").header("location", &elsewhere.url()), "a redirect"),
    ];
    let reasons: Vec<&str> = rows.iter().map(|(_, reason)| *reason).collect();
    let renewer = Upstream::script(rows.map(|(answer, _)| answer)).await;
    let app = renewing(&renewer).await;
    for (at, reason) in reasons.into_iter().enumerate() {
        assert_eq!(handed_out(&app, &ends_in(60, reason)).await, (200, None), "{reason}");
        assert_eq!(renewer.requests().len(), at + 1, "{reason}");
    }
    assert_eq!(elsewhere.requests().len(), 0, "the token is sent nowhere else");
    drop(renewer);
    assert_eq!(handed_out(&app, &ends_in(60, "gone")).await, (200, None), "nobody is there");
}
