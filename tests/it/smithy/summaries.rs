//! What an editor and its model get of a dialog that has outgrown its history.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{Editor, kinds};
use crate::support::model::says;
use crate::support::upstream::{Answer, Request, Upstream};

/// Messages that are said, and about as many bytes of each side of one.
const MESSAGES: usize = 12;
const BYTES: usize = 600;

/// Room for three messages with their answers.
const HISTORY: (&str, &str) = ("LIMITS__HISTORY_BYTES", "5000");

/// The system prompt and the last user message of a request.
fn asked(request: &Value) -> (String, String) {
    let messages = request["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    (text(&messages[0]), messages.iter().map(text).collect::<Vec<_>>().join("\n"))
}

fn is_summary(request: &Value) -> bool {
    asked(request).0.starts_with("You write summaries")
}

/// A model that answers with a mark, and gives the summaries numbers; the first so many it fails to write.
async fn model(failing: usize) -> Upstream {
    let (answers, summaries) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let choose = move |request: &Request| {
        if is_summary(&request.json()) {
            let nth = summaries.fetch_add(1, Ordering::SeqCst);
            return Some(match nth < failing {
                true => Answer::status(400, "application/json", "{}"),
                false => says(&format!("SUMMARY-{nth}.")).answer(),
            });
        }
        let nth = answers.fetch_add(1, Ordering::SeqCst);
        Some(says(&format!("answer-{nth}. {}", "y".repeat(BYTES))).answer())
    };
    Upstream::choosing(choose).await
}

/// Whether the model has what was said as `mark` in its last request, or some summary was made of it.
fn is_known(requests: &[Value], mark: &str) -> bool {
    let last = requests.iter().rfind(|request| !is_summary(request)).unwrap();
    let summarised = requests.iter().filter(|request| is_summary(request));
    summarised.chain([last]).any(|request| asked(request).1.contains(mark))
}

async fn talk(editor: &Editor) -> Vec<Vec<String>> {
    let mut told = Vec::new();
    for nth in 0..MESSAGES {
        let events = editor.chat(&format!("question-{nth}. {}", "x".repeat(BYTES)), json!({"dialog_id": "d"})).await;
        told.push(kinds(&events).iter().map(|kind| (*kind).to_owned()).collect());
    }
    told
}

const SHORT: [&str; 5] = ["user", "chat_start", "chat", "chat_end", "done"];
const LONG: [&str; 7] = ["user", "summary_start", "summary_end", "chat_start", "chat", "chat_end", "done"];

fn requests(editor: &Editor) -> Vec<Value> {
    editor.model.requests().iter().map(Request::json).collect()
}

#[tokio::test]
async fn a_long_dialog_is_told_a_pair_and_no_message_falls_between_two_summaries() {
    let editor = Editor::asking(model(0).await, &[], &[HISTORY]).await;
    let told = talk(&editor).await;
    let long = told.iter().position(|kinds| kinds.len() == LONG.len()).unwrap();
    assert!((2..5).contains(&long), "when it does not fit any more: {told:?}");
    assert!(told[..long].iter().all(|kinds| *kinds == SHORT) && told[long..].iter().all(|kinds| *kinds == LONG));

    let requests = requests(&editor);
    for nth in 0..MESSAGES {
        for mark in [format!("question-{nth}."), format!("answer-{nth}.")] {
            assert!(nth + 1 == MESSAGES || is_known(&requests, &mark), "{mark}");
        }
    }
    let mut before: Option<String> = None;
    for request in &requests {
        let (_, words) = asked(request);
        match (is_summary(request), before.take()) {
            (true, newest) => {
                let nth = newest
                    .as_deref()
                    .map_or(0, |newest| newest.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0) + 1);
                assert!(newest.is_none_or(|newest| words.contains(&newest)), "each goes on from the one before");
                before = Some(format!("SUMMARY-{nth}."));
            }
            (false, Some(newest)) => {
                assert!(words.contains(&newest), "{words}");
                assert!(!words.contains("question-0."), "what it stands for is not sent: {words}");
                before = Some(newest);
            }
            (false, None) => {}
        }
    }
    let history = editor.get("/api/dialogs/d/history?limit=200").await;
    assert_eq!(history["total_events"], 2 * MESSAGES, "the history stays whole");
    assert!(!history.to_string().contains("summary"));
}

#[tokio::test]
async fn a_summariser_that_fails_costs_nothing_but_the_summary() {
    let editor = Editor::asking(model(9).await, &[], &[HISTORY]).await;
    let told = talk(&editor).await;
    assert!(told.iter().all(|kinds| *kinds == SHORT || *kinds == LONG), "{told:?}");
    assert_eq!(told.last().unwrap(), &LONG);
    let requests = requests(&editor);
    assert!(requests.iter().filter(|request| is_summary(request)).count() > 9, "it is tried again");
    for nth in 0..MESSAGES - 1 {
        assert!(is_known(&requests, &format!("question-{nth}.")), "{nth}");
    }
}

#[tokio::test]
async fn nothing_is_told_where_nobody_summarises() {
    let editor = Editor::asking(model(0).await, &[], &[HISTORY, ("RUNS__SUMMARY_MODEL", "off")]).await;
    let told = talk(&editor).await;
    assert!(told.iter().all(|kinds| *kinds == SHORT), "{told:?}");
    assert!(!requests(&editor).iter().any(is_summary));
}
