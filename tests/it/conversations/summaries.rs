//! A conversation that outgrows its history: its older part is summarised behind the scenes, and a run that begins before
//! that is done waits for it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::said;
use crate::files::PIXEL;
use crate::support::frames::{self, Frame, read_until};
use crate::support::model::{Script, Scripted, calls, says, turn};
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

/// Posts a message in the conversation `c`.
async fn post(s: &Scripted, message: &str) -> Response {
    s.app.post(&json!({"message": message, "context_type": "workflow", "conversation_id": "c"})).await
}

/// What a stream has told of summaries, and where its first turn begins.
fn phases(frames: &[Frame]) -> Vec<&str> {
    let told = frames.iter().filter_map(|frame| match frame.event.as_str() {
        "summary" => frame.data["phase"].as_str(),
        "message_start" => Some("turn"),
        _ => None,
    });
    told.collect()
}

/// An answer that stays silent until somebody opens the gate.
fn gated(gate: &Arc<Notify>, script: Script) -> Answer {
    Answer::ok("text/event-stream", Vec::new()).gated(gate, script.bytes())
}

#[tokio::test]
async fn a_summary_names_the_files_of_what_it_stands_for_and_has_none_of_their_bytes() {
    let mut answers = runs();
    answers.push(says("Ada showed a pixel.").answer());
    let s = Scripted::with(&[HISTORY], answers).await;
    let body = json!({"message": "question 0", "context_type": "workflow", "conversation_id": "c",
        "attachments": [{"data": PIXEL, "name": "a.png"}]});
    s.app.chat(&body).await;
    for nth in 1..3 {
        s.app.say("c", &format!("question {nth}")).await;
    }
    let summarised = json!(asked(&s, 7).await[6]).to_string();
    assert!(summarised.contains("question 0\\n  [image a.png, 70 bytes]"), "{summarised}");
    assert!(!summarised.contains(&PIXEL[..40]), "{summarised}");
}

#[tokio::test]
async fn what_no_longer_fits_is_summarised_and_the_next_run_begins_with_that() {
    let mut answers = runs();
    answers.push(says("Ada asked about triggers: there are four.").answer());
    answers.push(says("As I said.").answer());
    let s = Scripted::with(&[HISTORY], answers).await;
    for nth in 0..3 {
        let told = s.app.say("c", &format!("question {nth}")).await;
        assert_eq!(phases(&told), ["turn", "turn"], "all of it fits");
    }
    let requests = asked(&s, 7).await;
    let about = text(&requests[6][1]);
    assert!(text(&requests[6][0]).starts_with("You write summaries"), "{:?}", requests[6]);
    assert!(about.contains("User: question 0\n") && about.contains("Tool call discover_trigger_types"), "{about}");
    assert!(!about.contains("question 2"), "the newest run is not old: {about}");
    let request = s.model.requests()[6].json();
    assert_eq!(request.get("tools"), None, "nothing can be called");
    settled().await;

    let told = s.app.say("c", "And now?").await;
    assert_eq!(phases(&told), ["start", "end", "turn"], "a summary that is there is told too");
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
async fn a_summary_that_failed_is_made_before_the_next_run() {
    let mut answers = runs();
    answers.push(turn().breaks().answer());
    answers.push(says("The summary.").answer());
    answers.push(says("Go on.").answer());
    let s = Scripted::with(&[HISTORY, ("LLM__RETRY__ATTEMPTS", "1")], answers).await;
    for nth in 0..3 {
        s.app.say("c", &format!("question {nth}")).await;
    }
    asked(&s, 7).await;
    settled().await;
    let told = s.app.say("c", "More").await;
    assert_eq!(phases(&told), ["start", "end", "turn"]);
    let requests = asked(&s, 9).await;
    assert!(text(&requests[7][1]).contains("User: question 0\n"));
    assert!(!text(&requests[7][1]).contains("More"), "the new message is not old");
    assert!(text(&requests[8][1]).contains("The summary."));
}

#[tokio::test]
async fn a_run_goes_on_without_a_summary_that_cannot_be_had() {
    let mut answers = runs();
    answers.push(turn().breaks().answer());
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
    let told = s.app.say("c", "More").await;
    assert_eq!(phases(&told), ["start", "end", "turn"]);
    let requests = asked(&s, 10).await;
    let answering = &requests[8];
    assert!(text(&answering[1]).contains("is left out here"), "there is none: {answering:?}");
    assert_eq!(text(answering.last().unwrap()), "More");
    assert!(text(&requests[9][1]).contains("User: question 0\n"), "it is tried again behind the run");
    settled().await;
    s.app.say("c", "Well?").await;
    assert!(text(&s.last_asked()[1]).contains("The summary."));
}

#[tokio::test]
async fn a_run_waits_for_the_summary_that_is_being_made_and_it_is_made_once() {
    let gate = Arc::new(Notify::new());
    let mut answers = runs();
    answers.push(gated(&gate, says("The summary.")));
    answers.push(says("Go on.").answer());
    let s = Scripted::with(&[HISTORY], answers).await;
    for nth in 0..3 {
        s.app.say("c", &format!("question {nth}")).await;
    }
    asked(&s, 7).await;
    let mut response = post(&s, "More").await;
    let begun = read_until(&mut response, "\"phase\":\"start\"").await;
    assert!(!begun.contains("message_start"), "{begun}");
    gate.notify_one();
    let rest = response.text().await.unwrap();
    let told = frames::parse(&format!("{begun}{rest}"));
    assert_eq!(phases(&told), ["start", "end", "turn"]);
    assert!(text(&s.last_asked()[1]).contains("The summary."));
    assert_eq!(s.asked().len(), 8, "nobody has asked for a second one");
}

#[tokio::test]
async fn a_run_waits_for_a_summary_only_so_long_and_the_next_one_has_it() {
    let gate = Arc::new(Notify::new());
    let mut answers = runs();
    answers.push(gated(&gate, says("The summary.")));
    answers.push(says("Without it.").answer());
    answers.push(says("With it.").answer());
    let s = Scripted::with(&[HISTORY, ("RUNS__SUMMARY_WAIT_S", "1")], answers).await;
    for nth in 0..3 {
        s.app.say("c", &format!("question {nth}")).await;
    }
    asked(&s, 7).await;
    // Nobody opens the gate: without an end of its patience this would never be answered.
    let told = s.app.say("c", "More").await;
    assert_eq!(phases(&told), ["start", "end", "turn"], "the pair is closed");
    let last = s.last_asked();
    assert!(text(&last[1]).contains("is left out here"), "the model is told what it does not read: {last:?}");
    assert_eq!(text(last.last().unwrap()), "More");

    gate.notify_one();
    settled().await;
    let told = s.app.say("c", "Well?").await;
    assert_eq!(phases(&told), ["start", "end", "turn"]);
    assert!(text(&s.last_asked()[1]).contains("The summary."), "what took too long is of use: {:?}", s.last_asked());
}

#[tokio::test]
async fn a_run_that_waits_for_a_summary_can_be_cancelled_and_the_next_one_has_it() {
    let gate = Arc::new(Notify::new());
    let mut answers = runs();
    answers.push(turn().breaks().answer());
    answers.push(gated(&gate, says("The summary.")));
    answers.push(says("Go on.").answer());
    let s = Scripted::with(&[HISTORY, ("LLM__RETRY__ATTEMPTS", "1")], answers).await;
    for nth in 0..3 {
        s.app.say("c", &format!("question {nth}")).await;
    }
    asked(&s, 7).await;
    settled().await;
    let mut response = post(&s, "More").await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let begun = read_until(&mut response, "\"phase\":\"start\"").await;
    asked(&s, 8).await;
    let url = s.app.url(&format!("/v1/agent/runs/{run}/cancel"));
    let cancelled = s.app.http.post(url).bearer_auth(&s.app.token).json(&json!({})).send().await.unwrap();
    assert_eq!(cancelled.json::<Value>().await.unwrap()["state"], "cancelled");
    let told = frames::parse(&format!("{begun}{}", response.text().await.unwrap()));
    assert_eq!(phases(&told), ["start", "end"], "no model has answered");
    assert_eq!(told.last().unwrap().data["code"], "cancelled");

    gate.notify_one();
    s.app.say("c", "Well?").await;
    assert!(text(&s.last_asked()[1]).contains("The summary."), "what was begun is of use");
    assert_eq!(s.asked().len(), 9);
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
    let told = s.app.say("c", "And now?").await;
    assert_eq!(phases(&told), ["turn"], "and nobody tells of it");
    assert!(text(&s.last_asked()[1]).contains("is left out here"), "but the model: {:?}", s.last_asked());
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
