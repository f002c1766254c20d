//! `client.js` in Node against the product: every case is a function of `tests/peers/frontends/client.mjs`.

use serde_json::{Value, json};

use crate::runs::hanging;
use crate::support::app::TestApp;
use crate::support::model::{Scripted, says, turn};
use crate::support::node;

/// What a case has seen, against the demo.
async fn demo(case: &str) -> Option<Value> {
    node::run("client.mjs", &[case], &TestApp::demo().await).await
}

#[tokio::test]
async fn events_are_read_wherever_their_bytes_are_cut() {
    let Some(seen) = demo("parser").await else { return };
    assert_eq!(seen, json!({"rows": 19, "failures": []}));
}

#[tokio::test]
async fn a_connection_that_breaks_again_and_again_loses_and_repeats_nothing() {
    let Some(seen) = demo("resume").await else { return };
    let expected = json!({
        "isSame": true, "last": "message_complete", "said": true, "posts": 1, "hasBroken": true, "cursorsRise": true,
        "states": ["connecting", "streaming", "reconnecting", "ended"],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_stream_without_numbers_is_read_again_and_what_was_seen_is_left_out() {
    let app = TestApp::start(&[("RUNS__GRACE_S", "30")]).await;
    let Some(seen) = node::run("client.mjs", &["resume-foreground"], &app).await else { return };
    assert_eq!(seen, json!({"isSame": true, "connections": 2}));
}

#[tokio::test]
async fn a_request_whose_answer_was_lost_is_sent_again_and_begins_nothing_new() {
    let Some(seen) = demo("lost").await else { return };
    let expected = json!({"posts": ["POST", "POST"], "isOneRun": true, "conversations": 1, "last": "message_complete"});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_cancelled_run_ends_its_stream() {
    let s = Scripted::with(&[], [hanging("Once upon")]).await;
    let Some(mut seen) = node::run("client.mjs", &["cancel"], &s.app).await else { return };
    let run = seen.as_object_mut().unwrap().remove("run").unwrap();
    let expected =
        json!({"said": "Once upon", "last": "error", "code": "cancelled", "state": "ended", "conversation": "c"});
    assert_eq!(seen, expected);
    crate::runs::run_in(&s.app, run.as_str().unwrap(), "cancelled").await;
}

#[tokio::test]
async fn a_run_whose_name_is_not_known_yet_is_stopped_too() {
    let Some(seen) = demo("cancel-unanswered").await else { return };
    let asked = ["/v1/agent/chat", "/v1/agent/chat", "/v1/agent/runs/r/cancel"];
    assert_eq!(seen, json!({"events": ["message_start", "error"], "asked": asked, "isOneKey": true}));
}

#[tokio::test]
async fn who_cannot_learn_whether_a_run_began_says_so() {
    let Some(seen) = demo("cancel-unheard").await else { return };
    assert_eq!(seen, json!({"read": "connection_lost", "stopped": "connection_lost", "asked": 4}));
}

#[tokio::test]
async fn a_run_goes_on_when_its_reader_leaves() {
    let s = Scripted::with(&[], [hanging("Once upon")]).await;
    let Some(seen) = node::run("client.mjs", &["leave"], &s.app).await else { return };
    assert_eq!(seen, json!({"state": "ended", "of": "running"}));
}

#[tokio::test]
async fn a_server_that_stays_away_is_given_up_after_so_many_tries() {
    let Some(seen) = demo("bound").await else { return };
    let error = json!({
        "name": "SwitchboardError", "code": "connection_lost", "status": 0, "hasRequestId": false, "errors": [],
    });
    let expected = json!({
        "tries": 7, "error": error, "states": ["connecting", "reconnecting", "ended"], "waits": 6, "areWithin": true,
        "areDifferent": true,
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_server_that_says_when_to_come_back_is_believed() {
    let Some(seen) = demo("told-to-wait").await else { return };
    let asked = json!([
        ["POST", "/v1/agent/chat", null],
        ["POST", "/v1/agent/chat", null],
        ["GET", "/v1/agent/runs/r/events", "0"],
    ]);
    let expected = json!({"waits": [7000, 1234], "events": ["message_start", "message_complete"], "asked": asked});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_server_without_room_is_asked_again_twice_and_a_quota_not_at_all() {
    let Some(seen) = demo("full").await else { return };
    let row = |code: &str, asked: u32| {
        let message = format!("detail of {code}");
        json!({"asked": asked, "waits": asked - 1, "areDifferent": true, "message": message, "isOneKey": true})
    };
    let expected = json!({
        "rate_limited": row("rate_limited", 3), "too_many_runs": row("too_many_runs", 3),
        "at_capacity": row("at_capacity", 3), "quota_exceeded": row("quota_exceeded", 1), "draining": row("draining", 5),
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn missing_events_are_told_and_reading_goes_on_behind_them() {
    let Some(seen) = demo("resync").await else { return };
    let events = json!([["0", "content_chunk"], ["7", "resync"], ["8", "content_chunk"], ["9", "message_complete"]]);
    assert_eq!(seen, json!({"events": events, "after": "7"}));
}

#[tokio::test]
async fn a_run_whose_events_are_gone_is_told_as_it_is() {
    let app = TestApp::start(&[("EVENTS__RUN_BYTES", "200")]).await;
    let Some(seen) = node::run("client.mjs", &["evicted"], &app).await else { return };
    assert_eq!(seen, json!({"events": ["resync"], "state": "completed"}));
}

#[tokio::test]
async fn errors_say_what_the_server_says() {
    let Some(seen) = demo("errors").await else { return };
    let error = |status: u16, code: &str, errors: Value| json!({"name": "SwitchboardError", "code": code, "status": status, "hasRequestId": true, "errors": errors});
    let blank = json!([{"field": "message", "reason": seen["noMessage"]["errors"][0]["reason"]}]);
    let expected = json!({
        "unknownToken": error(401, "invalid_token", json!([])),
        "noMessage": error(400, "invalid_request", blank),
        "noRun": error(404, "not_found", json!([])),
        "renewed": null, "asked": [null, "invalid_token"], "isOfItsClass": true,
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn everything_else_is_one_call() {
    let Some(seen) = demo("calls").await else { return };
    let expected = json!({
        "waiting": [["preview", true]], "one": "preview", "decided": "reject", "renamed": "Orders",
        "again": "message_complete", "edited": "message_complete", "roles": ["user", "assistant"], "first": "hello",
        "tokens": true, "exported": 3, "trail": "user_message", "profiles": true, "deleted": null, "left": 0,
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_file_is_kept_sent_read_and_deleted() {
    let Some(seen) = demo("files").await else { return };
    let expected = json!({
        "file": ["notes.md", "text/markdown", 9], "last": "message_complete", "files": [true], "content": "# Größe",
        "listed": [true], "deleted": null, "refused": "file_unsupported", "gone": "not_found",
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_run_that_failed_goes_on_in_a_new_one() {
    let s = Scripted::with(&[], [turn().text("Half").breaks().answer(), says(" of it.").answer()]).await;
    let Some(seen) = node::run("client.mjs", &["continue"], &s.app).await else { return };
    let expected = json!({
        "failed": "error", "isNew": true, "isSameConversation": true, "said": " of it.", "last": "message_complete",
    });
    assert_eq!(seen, expected);
}
