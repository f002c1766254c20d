//! Runs at once: of a user, of a tenant, of a process; and readers of one run.

use super::{header, in_time, message, model, refusal, token, with_model};
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
