//! How long an answer serves, and whom: the same cookie with the same CSRF token, and never a change where only a reader was
//! looked at.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use super::{asked, cookie, csrf, getting, gives, giving, over, posting, told};
use crate::identity::{claims_with, good_claims, now, signed};
use crate::support::model::says;
use crate::support::upstream::{Answer, End, Upstream};
use crate::support::wait::eventually;

#[tokio::test]
async fn an_answer_serves_the_same_cookie_and_csrf_token_alone() {
    let token = signed(&good_claims());
    let exchange = giving(token.clone()).await;
    let (s, _backend) = over(&exchange, &[], (0..4).map(|_| says("Hello."))).await;
    let other_csrf = ("x-csrf-token", "another".to_owned());
    let other_cookie = ("cookie", "_app_key=another".to_owned());
    let rows = [
        (getting(&s.app, &[cookie(), csrf()]), 1, "the first, which reads"),
        (getting(&s.app, &[cookie(), csrf()]), 1, "the same again"),
        (getting(&s.app, &[cookie()]), 2, "without the CSRF token"),
        (getting(&s.app, &[cookie()]), 2, "the same again"),
        (posting(&s.app, &[cookie(), csrf()]), 3, "no reader's answer serves a change"),
        (posting(&s.app, &[cookie(), csrf()]), 3, "the same again"),
        (getting(&s.app, &[cookie(), csrf()]), 3, "what was looked at for a change serves readers"),
        (posting(&s.app, &[cookie(), other_csrf]), 4, "another CSRF token"),
        (posting(&s.app, &[other_cookie, csrf()]), 5, "another cookie"),
        (getting(&s.app, &[cookie(), csrf()]).bearer_auth(&token), 5, "with Authorization nobody is asked"),
    ];
    for (request, expected, reason) in rows {
        assert_eq!(told(request).await.0, 200, "{reason}");
        assert_eq!(asked(&exchange), expected, "{reason}");
    }
}

#[tokio::test]
async fn an_answer_serves_no_longer_than_the_settings_say_or_its_token_lives() {
    // Beyond its end a token is good for `leeway_s` more, as any other is; it serves nobody else then.
    let short = Upstream::choosing(|_| Some(gives(&signed(&claims_with(json!({"exp": now() + 2})))))).await;
    let (s, _backend) = over(&short, &[], []).await;
    for _ in 0..3 {
        assert_eq!(told(getting(&s.app, &[cookie()])).await.0, 200);
    }
    assert!(asked(&short) <= 2, "a second may have gone by: {}", asked(&short));
    let before = asked(&short);
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(told(getting(&s.app, &[cookie()])).await.0, 200);
    assert_eq!(asked(&short), before + 1);

    let good = signed(&good_claims());
    for (cache_s, pause_ms, expected) in [("0", 0, 2), ("1", 1100, 2), ("300", 1100, 1)] {
        let exchange = giving(good.clone()).await;
        let (s, _backend) = over(&exchange, &[("AUTH__SESSION__CACHE_S", cache_s)], []).await;
        assert_eq!(told(getting(&s.app, &[cookie()])).await.0, 200);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        assert_eq!(told(getting(&s.app, &[cookie()])).await.0, 200);
        assert_eq!(asked(&exchange), expected, "{cache_s}");
    }
}

#[tokio::test]
async fn requests_at_the_same_time_are_one_question_which_outlives_the_first_of_them() {
    let gate = Arc::new(Notify::new());
    let body = json!({"access_token": signed(&good_claims())}).to_string();
    let answer = Answer::ok("application/json", "").gated(&gate, body);
    let exchange = Upstream::script([answer]).await;
    let (s, _backend) = over(&exchange, &[], []).await;
    let first = tokio::spawn(getting(&s.app, &[cookie()]).send());
    eventually("the application is asked", async || (asked(&exchange) == 1).then_some(())).await;
    let others: Vec<_> = (0..5).map(|_| tokio::spawn(told(getting(&s.app, &[cookie()])))).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.abort();
    tokio::time::sleep(Duration::from_millis(100)).await;
    gate.notify_one();
    for other in others {
        assert_eq!(other.await.unwrap().0, 200);
    }
    assert_eq!(asked(&exchange), 1);
}

#[tokio::test]
async fn a_failure_is_told_to_all_who_wait_and_to_nobody_after_them() {
    let gate = Arc::new(Notify::new());
    let answer = Answer::status(500, "text/plain", "").gated(&gate, "no");
    let exchange = Upstream::script([answer, gives(&signed(&good_claims()))]).await;
    let (s, _backend) = over(&exchange, &[], []).await;
    let waiting: Vec<_> = (0..4).map(|_| tokio::spawn(told(getting(&s.app, &[cookie()])))).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(asked(&exchange), 1);
    gate.notify_one();
    for one in waiting {
        assert_eq!(one.await.unwrap(), (503, json!("session_unavailable"), true));
    }
    assert_eq!(told(getting(&s.app, &[cookie()])).await.0, 200);
}

#[tokio::test]
async fn so_many_sessions_are_asked_about_at_once_and_no_more() {
    let exchange = Upstream::choosing(|_| Some(Answer::ok("application/json", "{").ending(End::Hang))).await;
    let (s, _backend) = over(&exchange, &[("AUTH__SESSION__TIMEOUT_S", "4")], []).await;
    let each = |n: usize| told(getting(&s.app, &[("cookie", format!("_app_key={n}"))]));
    for answer in futures::future::join_all((0..300).map(each)).await {
        assert_eq!(answer, (503, json!("session_unavailable"), true));
    }
    assert_eq!(asked(&exchange), 256);
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_holds_no_stop() {
    let exchange = Upstream::script([Answer::ok("application/json", "{").ending(End::Hang)]).await;
    let (s, _backend) = over(&exchange, &[("AUTH__SESSION__TIMEOUT_S", "60")], []).await;
    let first = tokio::spawn(getting(&s.app, &[cookie()]).send());
    eventually("the application is asked", async || (asked(&exchange) == 1).then_some(())).await;
    first.abort();
    drop(first.await);
    tokio::time::timeout(Duration::from_secs(20), s.app.stop()).await.expect("it stops");
    exchange.clients_gone(1).await;
}
