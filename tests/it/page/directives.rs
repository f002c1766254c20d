//! Directives as a user of the page has them: every case is a function of `tests/peers/frontends/directives.mjs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::json;
use tokio::sync::Notify;

use super::visit;
use crate::directives::{asked, forum, post};
use crate::support::app::TestApp;
use crate::support::model::{calls, says};
use crate::support::upstream::Answer;
use crate::tools::rest::answer;

/// One whose thread is named so.
async fn request(app: &TestApp, token: &str, name: &str, id: &str, scheduled_at: Option<Timestamp>) {
    let body = json!({"name": name, "payload": {"id": id}, "scheduled_at": scheduled_at.map(|at| at.to_string())});
    let (status, directive) = post(app, token, "/directives", body).await;
    assert_eq!(status, 201, "{directive}");
}

#[tokio::test]
async fn a_list_has_what_waits_ran_and_failed_and_what_its_reader_may_do() {
    let was_refused = AtomicBool::new(false);
    // A thread that is locked at the second time.
    let (s, backend) = forum(&[("DIRECTIVES__OPERATOR_ROLES", "ADMIN")], [], move |request| {
        let is_refused = request.path.contains("twice") && !was_refused.swap(true, Ordering::Relaxed);
        match is_refused {
            true => Some(Answer::status(422, "application/json", r#"{"error": "it is closed"}"#)),
            false => answer(&json!({"ok": true})),
        }
    })
    .await;
    let (ada, bob) = (&s.app.token, s.app.token_of("bob", None, &[]));
    for nth in 0..20 {
        request(&s.app, ada, "forum.thread.hide", &format!("p{nth}"), None).await;
    }
    request(&s.app, ada, "forum.thread.lock", "twice", None).await;
    request(&s.app, ada, "forum.thread.lock", "later", Some(Timestamp::now() + SignedDuration::from_hours(1))).await;
    request(&s.app, ada, "forum.thread.hide", "t1", None).await;
    request(&s.app, &bob, "forum.thread.erase", "theirs", None).await;
    let Some(seen) = visit("directives.mjs", "list", &s.app, &Notify::new()).await else { return };
    let failed = "HTTP 422: {\"error\": \"it is closed\"}";
    let (twice, later) = ("forum.thread.lock forum.thread twice", "forum.thread.lock forum.thread later");
    let again =
        ["Requested", "Attempt 1 began", &format!("Failed {failed}"), "To be run again", "Attempt 2 began", "Done"];
    let expected = json!({
        "first": "h2",
        "approve": [
            "forum.thread.hide {id: \"t1\"} | done | {ok: true}",
            ["Requested", "Approved", "Attempt 1 began", "Done"],
            "summary",
            "Go on",
        ],
        "cancel": [format!("{later} | runs at its time"), format!("{later} | canceled"), ["Requested", "Canceled"]],
        "rerun": [
            format!("{twice} | failed | {failed}"),
            format!("{twice} | done, attempt 2 of 2 | {{ok: true}}"),
            again,
        ],
        "refused": [
            "forum.thread.erase {id: \"theirs\"} | waits for approval by the role “owner” | This needs a role that you do not have.",
            ["Requested"],
        ],
        "overflows": false,
        "axe": [],
        "wrong": [],
    });
    assert_eq!(seen, expected);
    let sent: Vec<String> = backend.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(sent.len(), 3, "the first and the second try, and what was approved: {sent:?}");
}

#[tokio::test]
async fn one_that_ends_after_its_answer_shows_there() {
    let gate = Arc::new(Notify::new());
    let turns = [calls("c1", "lock_thread", &json!({"id": "t7"})), says("It is under way.")];
    let held = gate.clone();
    let (s, _backend) = forum(&[], turns, move |_| {
        Some(Answer::ok("application/json", "").gated(&held, json!({"ok": true}).to_string()))
    })
    .await;
    let Some(seen) = visit("directives.mjs", "live", &s.app, &gate).await else { return };
    let line = |state: &str| json!([format!("forum.thread.lock forum.thread t7 | {state}")]);
    let expected = json!({
        "seen": [line("running"), line("done | {ok: true}"), line("done | {ok: true}")],
        "asked": 0,
        "wrong": [],
    });
    assert_eq!(seen, expected);
    let (_, listed) = asked(&s.app, &s.app.token, Method::GET, "/directives", None).await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
}
