//! Errors before a run has begun: the body that these clients read, with the statuses that they act on.

use serde_json::json;

use super::{MESSAGES, also, ask, playing, post, refused, with};
use crate::support::frames::read_until;
use crate::support::model::turn;

#[tokio::test]
async fn other_paths_and_methods_are_errors_of_the_same_kind() {
    let s = playing([]).await;
    let get = s.app.http.get(s.app.url(MESSAGES)).bearer_auth(&s.app.token).send().await.unwrap();
    assert_eq!(refused(get).await.0, 405);
    let batches = s.app.http.post(s.app.url(&format!("{MESSAGES}/batches"))).bearer_auth(&s.app.token).json(&ask("Hi"));
    let (status, kind, _) = refused(batches.send().await.unwrap()).await;
    assert_eq!((status, kind.as_str()), (404, "not_found_error"));
    for request in [s.app.http.head(s.app.url("/")), s.app.http.get(s.app.url("/")), s.app.http.get(s.app.url("/v1"))] {
        assert!(!request.send().await.unwrap().status().is_server_error(), "clients look whether somebody is there");
    }
}

#[tokio::test]
async fn who_has_too_much_going_on_may_ask_again_later() {
    let s = with(
        &[],
        &[("LIMITS__STARTS_PER_MINUTE", "1"), ("LIMITS__STARTS_BURST", "1")],
        [turn().text("Well").hangs().answer()],
    )
    .await;
    let mut first = post(&s, &[], &also(ask("Hi"), json!({"stream": true}))).await;
    read_until(&mut first, "Well").await;
    let second = post(&s, &[], &ask("Hi")).await;
    assert!(second.headers().contains_key("retry-after"));
    let (status, kind, _) = refused(second).await;
    assert_eq!((status, kind.as_str()), (429, "rate_limit_error"));
}
