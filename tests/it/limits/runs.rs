//! Runs at once: of a user, of a tenant, of a process; and readers of one run.

use reqwest::Response;
use serde_json::Value;

use super::{header, in_time, message, model, refusal, token, with_model};
use crate::support::app::TestApp;
use crate::support::frames::read_until;

#[tokio::test]
async fn runs_at_once_are_as_many_as_may_be() {
    let (of_user, of_tenant) = ("LIMITS__ACTIVE_RUNS_PER_USER", "LIMITS__ACTIVE_RUNS_PER_TENANT");
    let refused = |status, code: &str| Some((status, code.to_owned(), Some(5)));
    // Which limit is two; who runs two; who asks for one more; what they are told.
    let rows = [
        (of_user, ["a/ann", "a/ann"], "a/ann", refused(429, "too_many_runs"), "a user's third"),
        (of_user, ["a/ann", "a/ann"], "a/bob", None, "another user's first"),
        (of_user, ["a/ann", "a/ann"], "b/ann", None, "a user of that name elsewhere"),
        (of_tenant, ["a/ann", "a/bob"], "a/eve", refused(429, "too_many_runs"), "a tenant's third"),
        (of_tenant, ["a/ann", "a/bob"], "b/ann", None, "another tenant's first"),
        (
            "LIMITS__ACTIVE_RUNS_PER_REPLICA",
            ["a/ann", "b/bob"],
            "c/eve",
            refused(503, "at_capacity"),
            "anybody's third",
        ),
    ];
    let model = model().await;
    for (limit, running, next, expected, reason) in rows {
        let app = with_model(&model, &[(limit, "2")]).await;
        let mut first = None;
        for user in running {
            let begun = app.post_as(&token(&app, user), &message("wait")).await;
            assert_eq!(begun.status(), 200, "{reason}: two may run");
            first.get_or_insert((user, header(&begun, "x-run-id").to_owned()));
        }
        let token_of_next = token(&app, next);
        let asked = app.post_as(&token_of_next, &message("wait")).await;
        let Some(expected) = expected else {
            assert_eq!(asked.status(), 200, "{reason}");
            continue;
        };
        assert_eq!(refusal(asked).await, expected, "{reason}");
        let (user, run) = first.unwrap();
        let cancel = app.http.post(app.url(&format!("/v1/agent/runs/{run}/cancel")));
        assert_eq!(cancel.bearer_auth(token(&app, user)).send().await.unwrap().status(), 200);
        in_time(async || app.post_as(&token_of_next, &message("hello")).await).await;
    }
}

#[tokio::test]
async fn a_run_has_as_many_readers_as_may_be() {
    let model = model().await;
    let app = with_model(&model, &[("LIMITS__READERS_PER_RUN", "2")]).await;
    let begun = app.post(&message("wait")).await;
    let url = app.url(&format!("/v1/agent/runs/{}/events", header(&begun, "x-run-id")));
    let read = async || app.http.get(&url).bearer_auth(&app.token).send().await.unwrap();
    let mut second = read().await;
    assert_eq!(second.status(), 200);
    read_until(&mut second, "Well").await;
    assert_eq!(refusal(read().await).await, (429, "too_many_readers".to_owned(), Some(5)));
    drop(begun);
    in_time(read).await;
}

#[tokio::test]
async fn a_run_that_makes_way_for_the_next_one_does_not_count_against_it() {
    let model = model().await;
    let app = with_model(&model, &[("LIMITS__ACTIVE_RUNS_PER_USER", "1")]).await;
    let mut body = message("wait");
    assert_eq!(app.post(&body).await.status(), 200);
    body["message"] = "hello".into();
    body["on_busy"] = "interrupt".into();
    assert_eq!(app.post(&body).await.status(), 200);
}

/// A message with a key.
async fn ask(app: &TestApp, key: &str, body: &Value) -> Response {
    let request = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token);
    request.header("idempotency-key", key).json(body).send().await.unwrap()
}

#[tokio::test]
async fn a_request_that_finds_its_run_again_takes_no_place() {
    let model = model().await;
    for limit in ["LIMITS__ACTIVE_RUNS_PER_REPLICA", "LIMITS__ACTIVE_RUNS_PER_USER"] {
        let app = with_model(&model, &[(limit, "1")]).await;
        let body = message("wait");
        let first = ask(&app, "k", &body).await;
        for _ in 0..3 {
            let again = ask(&app, "k", &body).await;
            assert_eq!(
                (again.status().as_u16(), header(&again, "x-run-id")),
                (200, header(&first, "x-run-id")),
                "{limit}"
            );
        }
        let (status, code, _) = refusal(ask(&app, "k", &message("wait")).await).await;
        assert_eq!((status, &*code), (422, "idempotency_mismatch"), "{limit}: another request with its key");
        assert_ne!(ask(&app, "other", &body).await.status(), 200, "{limit}: another key begins one more");
    }
}

#[tokio::test]
async fn whoever_has_too_many_runs_loses_no_start_by_asking() {
    let model = model().await;
    let settings =
        [("LIMITS__ACTIVE_RUNS_PER_USER", "1"), ("LIMITS__STARTS_PER_MINUTE", "1"), ("LIMITS__STARTS_BURST", "2")];
    let app = with_model(&model, &settings).await;
    let first = ask(&app, "1", &message("wait")).await;
    for key in ["2", "3", "4"] {
        let refused = refusal(ask(&app, key, &message("wait")).await).await;
        assert_eq!(refused, (429, "too_many_runs".to_owned(), Some(5)), "with a key");
        let refused = refusal(app.post(&message("wait")).await).await;
        assert_eq!(refused, (429, "too_many_runs".to_owned(), Some(5)), "without one");
    }
    let cancel = app.http.post(app.url(&format!("/v1/agent/runs/{}/cancel", header(&first, "x-run-id"))));
    assert_eq!(cancel.bearer_auth(&app.token).send().await.unwrap().status(), 200);
    in_time(async || app.post(&message("hello")).await).await;
}

#[tokio::test]
async fn users_without_a_tenant_do_not_shut_each_other_out() {
    let model = model().await;
    let app =
        with_model(&model, &[("LIMITS__ACTIVE_RUNS_PER_TENANT", "1"), ("LIMITS__ACTIVE_RUNS_PER_USER", "2")]).await;
    for (user, expected) in [("ann", 200), ("ann", 200), ("ann", 429), ("bob", 200)] {
        let begun = app.post_as(&app.token_of(user, None, &["USER", "ADMIN"]), &message("wait")).await;
        assert_eq!(begun.status(), expected, "{user}");
    }
}
