//! How long a run may become: its events, their bytes, and the arguments of its calls.

use serde_json::{Value, json};

use super::{header, pieces};
use crate::runs::{background, run_in};
use crate::support::frames;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::upstream::Answer;

/// A run with these settings: how it ended, its events in all, and the failure that its reader was told.
async fn ended(settings: &[(&str, &str)], answer: Answer) -> (String, u64, Value) {
    let s = Scripted::with(settings, [answer]).await;
    let response = s.app.post(&background("Tell me")).await;
    let id = header(&response, "x-run-id").to_owned();
    let told = frames::numbered(&response.text().await.unwrap());
    let (last_id, last) = told.last().unwrap();
    let state = if last.event == "error" { "failed" } else { "completed" };
    let run = run_in(&s.app, &id, state).await;
    assert_eq!(run["last_event_id"], *last_id, "the end is the last event");
    (state.to_owned(), last_id + 1, last.data["code"].clone())
}

#[tokio::test]
async fn a_run_tells_as_many_events_as_may_be() {
    let answer = || pieces("word ", 30);
    let (state, all, _) = ended(&[], answer()).await;
    assert_eq!(state, "completed");
    let just = ended(&[("LIMITS__RUN_EVENTS", all.to_string().as_str())], answer()).await;
    assert_eq!(just, ("completed".to_owned(), all, Value::Null), "as many as may be");
    let rows = [(all - 1, "one more than may be"), (10, "many more than may be")];
    for (most, reason) in rows {
        let (state, events, code) = ended(&[("LIMITS__RUN_EVENTS", most.to_string().as_str())], answer()).await;
        assert_eq!((state.as_str(), &code), ("failed", &json!("run_too_long")), "{reason}");
        assert_eq!(events, most, "{reason}: its end is the last of them");
    }
}

#[tokio::test]
async fn the_events_of_a_run_have_as_many_bytes_as_may_be() {
    let rows = [
        (
            11_500,
            ("completed", Value::Null),
            "it is held as an event, and several times as what was said and shown, until it is written",
        ),
        (14_000, ("failed", json!("run_too_long")), "more than may be"),
    ];
    for (bytes, expected, reason) in rows {
        let (state, _, code) = ended(&[("LIMITS__RUN_BYTES", "100000")], pieces(&"x".repeat(bytes / 10), 10)).await;
        assert_eq!((state.as_str(), code), expected, "{reason}");
    }
}

#[tokio::test]
async fn arguments_that_are_too_long_are_an_error_for_the_model_and_not_the_end() {
    let arguments = |bytes: usize| json!({"x": "a".repeat(bytes - r#"{"x":""}"#.len())});
    let told = "the arguments have 101 bytes, and 100 are allowed; make several smaller calls";
    let rows = [(100, false, "as long as they may be"), (101, true, "one byte longer")];
    for (bytes, is_refused, reason) in rows {
        let turns = [calls("t", "discover_trigger_types", &arguments(bytes)), says("Done.")];
        let s = Scripted::with(&[("LIMITS__TOOL_ARGUMENTS_BYTES", "100")], turns.map(|turn| turn.answer())).await;
        let frames = s.app.say("c", "Go").await;
        assert_eq!(frames::text(&frames), "Done.", "{reason}");
        assert_eq!(s.result_of("t").to_string().contains(told), is_refused, "{reason}: {}", s.result_of("t"));
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_measured_too_and_only_their_beginning_is_kept() {
    let list = |bytes: usize| format!("[\"{}\"]", "a".repeat(bytes - 4));
    let told = "bytes, and 2000 are allowed; make several smaller calls";
    let rows = [(2000, false, 1996, "as long as they may be"), (5000, true, 1022, "longer")];
    for (bytes, is_refused, kept, reason) in rows {
        let turns = [turn().call_raw("t", "discover_trigger_types", &list(bytes)).done(), says("Done.")];
        let s = Scripted::with(&[("LIMITS__TOOL_ARGUMENTS_BYTES", "2000")], turns.map(|turn| turn.answer())).await;
        let frames = s.app.say("c", "Go").await;
        assert_eq!(frames::text(&frames), "Done.", "{reason}");
        assert_eq!(s.result_of("t").to_string().contains(told), is_refused, "{reason}: {}", s.result_of("t"));
        let asked = serde_json::to_string(&s.last_asked()).unwrap();
        assert!(!asked.contains(&"a".repeat(kept + 1)), "{reason}: {asked}");
    }
}
