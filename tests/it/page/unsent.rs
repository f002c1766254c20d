//! Messages that the server has not taken, or not told that it has, in a browser: every case is a function of
//! `tests/peers/frontends/unsent.mjs`.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::app::TestApp;
use crate::support::model::{Scripted, says, turn};

async fn visit(case: &str, app: &TestApp) -> Option<Value> {
    super::visit("unsent.mjs", case, app, &Notify::new()).await
}

#[tokio::test]
async fn a_message_that_is_too_long_stays_where_it_was_written() {
    let s = Scripted::with(&[("LIMITS__MESSAGE_BYTES", "20")], [says("One").answer()]).await;
    let Some(seen) = visit("tooLong", &s.app).await else { return };
    let expected = json!({
        "kept": "x".repeat(25), "problem": "The message is too long by 5 characters or so.", "thread": [],
        "sent": ["? short", "! One"], "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn what_is_sent_while_a_conversation_is_read_is_neither_lost_nor_said_too_soon() {
    let s = Scripted::playing([says("One"), says("Two")]).await;
    s.app.say("c", "First").await;
    let Some(seen) = visit("opening", &s.app).await else { return };
    let thread = ["? First", "! One", "? Of a button\n\nSecond", "! Two"];
    assert_eq!(seen, json!({"kept": "Of a button\n\nSecond", "thread": thread, "wrong": []}));
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_is_said_once() {
    let s = Scripted::playing([says("Once")]).await;
    let Some(seen) = visit("unheard", &s.app).await else { return };
    let thread = ["? Hello", "! Once"];
    assert_eq!(seen, json!({"seen": [thread, thread], "keys": 1, "wrong": []}));
    assert_eq!(s.asked().len(), 1, "the model was asked once");
}

#[tokio::test]
async fn a_message_that_was_refused_is_in_nobodys_way() {
    let s = Scripted::playing([says("One"), says("Two"), says("Three")]).await;
    let Some(seen) = visit("refused", &s.app).await else { return };
    let whole = json!(["? Other", "! Two", "? Third", "! Three"]);
    assert_eq!(seen, json!({"seen": [["? Other", "! Two"], whole, whole], "wrong": []}));
}

const BUSY: &str = "! Another answer is being written in this conversation. Retry";

#[tokio::test]
async fn a_message_that_was_refused_is_there_after_a_reload_and_is_tried_again() {
    let s = Scripted::playing([says("One"), says("Two")]).await;
    let Some(seen) = visit("again", &s.app).await else { return };
    let failed = json!(["? First", "! One", "? Second", BUSY]);
    let whole = json!(["? First", "! One", "? Second", "! Two"]);
    assert_eq!(seen, json!({"seen": [failed, failed, whole, whole], "written": "", "wrong": []}));
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_with_the_page_is_said_once() {
    let s = Scripted::playing([says("Once")]).await;
    let Some(seen) = visit("lost", &s.app).await else { return };
    let (before, thread) = (["? Hello", "! The connection to the server was lost. Retry"], ["? Hello", "! Once"]);
    assert_eq!(seen, json!({"before": before, "after": thread, "reloaded": thread, "keys": 1, "wrong": []}));
    assert_eq!(s.asked().len(), 1, "the model was asked once");
}

#[tokio::test]
async fn a_message_that_the_server_has_taken_is_not_kept() {
    let s = Scripted::playing([says("One"), says("Two")]).await;
    s.app.say("c", "First").await;
    let Some(seen) = visit("taken", &s.app).await else { return };
    let thread = ["? First", "! One", "? Second", "! Two"];
    assert_eq!(seen, json!({"thread": thread, "written": "", "wrong": []}));
}

#[tokio::test]
async fn a_message_that_was_refused_is_its_users_where_they_go_elsewhere() {
    let s = Scripted::playing([says("One"), says("Another")]).await;
    let Some(seen) = visit("left", &s.app).await else { return };
    assert_eq!(seen, json!({"written": ["Second", "Second", "Second"], "thread": [], "wrong": []}));
}

#[tokio::test]
async fn what_is_said_or_changed_while_an_answer_is_written_is_kept() {
    let gate = Arc::new(Notify::new());
    let slow = turn().text("Once").answer().gated(&gate, says(" upon a time").bytes());
    let s = Scripted::with(&[], [says("One").answer(), slow, says("Three").answer(), says("Four").answer()]).await;
    let Some(seen) = super::visit("unsent.mjs", "busy", &s.app, &gate).await else { return };
    let expected = json!({
        "kept": "First of all", "queued": "Of a button",
        "before": ["? Second", "! Once upon a time", "? Of a button", "! Three"],
        "after": ["? First of all", "! Four"], "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn what_was_said_in_another_window_is_there_when_the_next_answer_is_over() {
    let s = Scripted::playing([says("One"), says("Two"), says("Three")]).await;
    let Some(seen) = visit("elsewhere", &s.app).await else { return };
    let thread = ["? First", "! One", "? Second", "! Two", "? Third", "! Three"];
    assert_eq!(seen, json!({"thread": thread, "wrong": []}));
}

#[tokio::test]
async fn what_takes_the_place_of_a_changed_message_is_said_there() {
    let s = Scripted::playing([says("One"), says("Two"), says("Three")]).await;
    let Some(seen) = visit("changed", &s.app).await else { return };
    let thread = json!(["? First", "! One", "? Third", "! Three"]);
    assert_eq!(seen, json!({"seen": [thread, thread], "wrong": []}));
    let last = json!(s.last_asked());
    assert!(!last.to_string().contains("Second"), "the model reads what is shown: {last}");
}

#[tokio::test]
async fn nothing_is_said_in_a_conversation_that_could_not_be_read() {
    let s = Scripted::playing([says("One"), says("Two")]).await;
    s.app.say("c", "First").await;
    let Some(seen) = visit("unread", &s.app).await else { return };
    let thread = ["? First", "! One", "? Second", "! Two"];
    assert_eq!(seen, json!({"kept": "Second", "isQuiet": true, "thread": thread, "wrong": []}));
}
