//! What an application says of a session, and what its page is told.

use serde_json::{Value, json};

use super::{asked, cookie, csrf, getting, gives, over, posting, told};
use crate::identity::{claims_with, good_claims, now, signed};
use crate::support::model::says;
use crate::support::upstream::{Answer, End, Upstream};

#[tokio::test]
async fn whatever_the_application_says_has_its_own_error_and_is_not_remembered() {
    let elsewhere = Upstream::script([]).await;
    let good = signed(&good_claims());
    let json = |body: Value| Answer::ok("application/json", body.to_string());
    let expired = signed(&claims_with(json!({"iat": now() - 200, "exp": now() - 100})));
    let rows = [
        (Answer::status(401, "text/plain", "no"), 401, "unauthenticated", "no session"),
        (Answer::status(403, "text/html", "<p>CSRF</p>"), 403, "csrf_failed", "another CSRF token"),
        (Answer::status(500, "text/plain", "no"), 503, "session_unavailable", "a failure"),
        (Answer::status(404, "text/plain", "no"), 503, "session_unavailable", "nothing there"),
        (
            Answer::status(201, "application/json", json!({"access_token": good}).to_string()),
            503,
            "session_unavailable",
            "not 200",
        ),
        (
            Answer::status(302, "text/plain", "").header("location", &elsewhere.url()),
            503,
            "session_unavailable",
            "a redirect",
        ),
        (
            Answer::status(307, "text/plain", "").header("location", &elsewhere.url()),
            503,
            "session_unavailable",
            "a redirect that keeps the method",
        ),
        (Answer::ok("text/html", "<form>Sign in</form>"), 503, "session_unavailable", "a page"),
        (json(json!({"token": good})), 503, "session_unavailable", "no token"),
        (json(json!({"access_token": ""})), 503, "session_unavailable", "an empty one"),
        (json(json!({"access_token": 7})), 503, "session_unavailable", "a number"),
        (json(json!({"access_token": good, "more": "x".repeat(20_000)})), 503, "session_unavailable", "too much"),
        (Answer::ok("application/json", "{\"access_").ending(End::Abort), 503, "session_unavailable", "half an answer"),
        (Answer::ok("application/json", "{").ending(End::Hang), 503, "session_unavailable", "no end"),
        (json(json!({"access_token": format!("{good}x")})), 401, "invalid_token", "a forged token"),
        (json(json!({"access_token": "a\r\nb: c"})), 401, "invalid_token", "no token at all"),
        (json(json!({"access_token": "x".repeat(9000)})), 401, "invalid_token", "one that is too long"),
        (gives(&expired), 401, "token_expired", "one whose time is over"),
    ];
    let expected: Vec<_> = rows.iter().map(|(_, status, code, reason)| (*status, *code, *reason)).collect();
    let answers = rows.map(|(answer, ..)| answer).into_iter().chain([gives(&good)]);
    let exchange = Upstream::script(answers).await;
    let (s, _backend) = over(&exchange, &[("AUTH__SESSION__TIMEOUT_S", "1")], [says("Hello.")]).await;
    for (at, (status, code, reason)) in expected.into_iter().enumerate() {
        let found = told(posting(&s.app, &[cookie(), csrf()])).await;
        assert_eq!(found, (status, json!(code), status == 503), "{reason}");
        assert_eq!(asked(&exchange), at + 1, "{reason}");
    }
    assert_eq!(elsewhere.connections(), 0, "the cookie is sent nowhere else");
    let found = told(posting(&s.app, &[cookie(), csrf()])).await;
    assert_eq!(found, (200, Value::Null, false), "the next one may be good");
}

#[tokio::test]
async fn an_application_that_is_not_there_is_told_as_that() {
    let gone = Upstream::script([]).await;
    let (s, _backend) = over(&gone, &[], []).await;
    drop(gone);
    for request in [posting(&s.app, &[cookie(), csrf()]), getting(&s.app, &[cookie()])] {
        assert_eq!(told(request).await, (503, json!("session_unavailable"), true));
    }
}
