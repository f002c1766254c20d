//! A conversation that outgrows its history: its older part is summarised behind the scenes.

use std::time::Duration;

use serde_json::{Value, json};

use super::said;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::upstream::Answer;

const HISTORY: (&str, &str) = ("LIMITS__HISTORY_BYTES", "4000");

/// Three runs of about 1500 bytes with a tool call each, as far as the model has its part in them.
fn runs() -> Vec<Answer> {
    let long = "x".repeat(1000);
    let runs = (0..3).flat_map(|nth| {
        [calls(&format!("t{nth}"), "discover_trigger_types", &json!({})), says(&format!("{nth} {long}"))]
    });
    runs.map(|turn| turn.answer()).collect()
}

/// Waits until the model has been asked `count` times.
async fn asked(s: &Scripted, count: usize) -> Vec<Vec<Value>> {
    for _ in 0..400 {
        if s.model.requests().len() >= count {
            return s.asked();
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the model was asked {} times only", s.model.requests().len());
}

fn text(message: &Value) -> &str {
    message["content"].as_str().unwrap()
}

/// Waits until a summary is kept, which is a moment after the model has written it.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}

#[tokio::test]
async fn what_no_longer_fits_is_summarised_and_the_next_run_begins_with_that() {
    let mut answers = runs();
    answers.push(says("Ada asked about triggers: there are four.").answer());
    answers.push(says("As I said.").answer());
    let s = Scripted::with(&[HISTORY], answers).await;
    for nth in 0..3 {
        s.app.say("c", &format!("question {nth}")).await;
    }
    let requests = asked(&s, 7).await;
    let about = text(&requests[6][1]);
    assert!(text(&requests[6][0]).starts_with("You write summaries"), "{:?}", requests[6]);
    assert!(about.contains("User: question 0\n") && about.contains("Tool call discover_trigger_types"), "{about}");
    assert!(!about.contains("question 2"), "the newest run is not old: {about}");
    let request = s.model.requests()[6].json();
    assert_eq!(request.get("tools"), None, "nothing can be called");
    settled().await;

    s.app.say("c", "And now?").await;
    let last = s.last_asked();
    let first = text(&last[1]);
    assert!(first.contains("Ada asked about triggers: there are four."), "{first}");
    assert!(!first.contains("question 0"), "what is summarised is not shown besides: {first}");
    assert_eq!(text(last.last().unwrap()), "And now?");
    let mut whole = Vec::new();
    for nth in 0..3 {
        whole.push(format!("user: question {nth}"));
        whole.push("assistant: ".to_owned());
        whole.push(format!("assistant: {nth} {}", "x".repeat(1000)));
    }
    whole.extend(["user: And now?".to_owned(), "assistant: As I said.".to_owned()]);
    assert_eq!(said(&s.app, "c").await, whole, "the messages stay");
}

#[tokio::test]
async fn a_summary_that_failed_is_made_after_the_next_run() {
    let mut answers = runs();
    answers.push(turn().breaks().answer());
    answers.push(says("Go on.").answer());
    answers.push(says("The summary.").answer());
    answers.push(says("Fine.").answer());
    let s = Scripted::with(&[HISTORY, ("LLM__RETRY__ATTEMPTS", "1")], answers).await;
    for nth in 0..3 {
        s.app.say("c", &format!("question {nth}")).await;
    }
    asked(&s, 7).await;
    settled().await;
    s.app.say("c", "More").await;
    let requests = asked(&s, 9).await;
    assert!(!text(&requests[7][1]).contains("Summary of"), "there is none yet");
    assert!(text(&requests[8][1]).contains("User: question 0\n"));
    settled().await;
    s.app.say("c", "Well?").await;
    assert!(text(&s.last_asked()[1]).contains("The summary."));
}

#[tokio::test]
async fn nobody_summarises_where_that_is_off() {
    let mut answers = runs();
    answers.push(says("Fine.").answer());
    let s = Scripted::with(&[HISTORY, ("RUNS__SUMMARY_MODEL", "off")], answers).await;
    for nth in 0..3 {
        s.app.say("c", &format!("question {nth}")).await;
    }
    settled().await;
    s.app.say("c", "And now?").await;
    assert_eq!(s.asked().len(), 7, "one request too many would fail this test");
}

#[tokio::test]
async fn the_demo_model_can_summarise_for_another() {
    let mut answers = runs();
    answers.push(says("Fine.").answer());
    let s = Scripted::with(&[HISTORY, ("RUNS__SUMMARY_MODEL", "demo")], answers).await;
    for nth in 0..3 {
        s.app.say("c", &format!("question {nth}")).await;
    }
    settled().await;
    s.app.say("c", "And now?").await;
    assert!(text(&s.last_asked()[1]).contains("The user asked, oldest first:\n- question 0"), "{:?}", s.last_asked());
}
