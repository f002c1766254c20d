//! What a page in Node shows, as its user sees it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::forum_with;
use super::opened::{Opened, is_at_rest, texts};
use crate::death::{Machine, backend};
use crate::support::model::{Scripted, says, turn};
use crate::support::upstream::{Answer, Upstream};

/// The product with these answers of its model.
async fn over(settings: &[(&str, &str)], answers: impl IntoIterator<Item = Answer>) -> Scripted {
    Scripted::with(&[&[("CHAT_MESSAGE__PROFILE", "workflow")], settings].concat(), answers).await
}

#[tokio::test]
async fn a_bubble_grows_and_ends_as_the_answer_and_the_next_message_works() {
    let gate = Arc::new(Notify::new());
    let (more, end) = (turn().text("lo there.").bytes(), turn().done().bytes());
    let first = turn().text("Hel").answer().gated(&gate, more).gated(&gate, end);
    let s = over(&[], [first, says("Again.").answer()]).await;
    let agents = json!([{"id": "a1", "name": "One"}, {"id": "a2", "name": "Two"}]);
    let options = json!({"props": {"agents": agents, "default_agent_id": "a1"}});
    let Some(mut page) = Opened::at(&s.app.url(""), &s.app.token, &options) else { return };
    page.sends("  Hi \n").await;
    let grows = page.until(json!({"bubble": "Hel"})).await;
    assert_eq!((texts(&grows), &grows["is_sending"]), (vec!["Hi"], &json!(true)));
    // Nothing is sent while an answer is read.
    let refuses = page.sends("Too early").await;
    assert_eq!((texts(&refuses), refuses["requests"].as_array().unwrap().len()), (vec!["Hi"], 1));
    gate.notify_one();
    let grown = page.until(json!({"bubble": "Hello there."})).await;
    assert_eq!((texts(&grown), &grown["is_sending"]), (vec!["Hi"], &json!(true)));
    gate.notify_one();
    let ended = page.until(json!({"is_sending": false})).await;
    assert!(is_at_rest(&ended), "{ended:#}");
    assert_eq!(texts(&ended), ["Hi", "Hello there."]);

    page.does(&json!({"select": "a2"})).await;
    page.does(&json!({"type": "And now?"})).await;
    page.presses("Send").await;
    let ended = page.until(json!({"is_sending": false})).await;
    assert!(is_at_rest(&ended), "{ended:#}");
    assert_eq!(texts(&ended), ["Hi", "Hello there.", "And now?", "Again."]);
    let bodies: Vec<&Value> = ended["requests"].as_array().unwrap().iter().map(|request| &request["body"]).collect();
    let expected = [json!({"message": "Hi", "agent_id": "a1"}), json!({"message": "And now?", "agent_id": "a2"})];
    assert_eq!(bodies, expected.iter().collect::<Vec<_>>());
    assert_eq!(s.last_asked().last().unwrap()["content"], "And now?");
}

#[tokio::test]
async fn letters_of_many_bytes_are_whole_however_they_are_cut_and_comments_are_nothing() {
    let said = "Grüße — 漢字 \u{1f600} \"quoted\"\n\ntwo paragraphs";
    let slow = || {
        let (first, rest) = said.split_at(said.find('字').unwrap());
        let rest = turn().text(rest).done().bytes();
        turn().text(first).answer().later(Duration::from_millis(1500), rest)
    };
    let s = over(&[("SERVER__KEEP_ALIVE_S", "1")], (0..4).map(|_| slow())).await;
    for cut in [0, 1, 2, 7] {
        let Some(mut page) = Opened::at(&s.app.url(""), &s.app.token, &json!({"cut": cut})) else { return };
        let ended = page.asks("Hi — 漢字").await;
        assert!(is_at_rest(&ended), "{cut}: {ended:#}");
        assert_eq!(texts(&ended), ["Hi — 漢字", said], "{cut}");
        assert!(ended["comments"].as_u64().unwrap() > 0, "{cut}: a silence has its comment: {ended:#}");
    }
}

#[tokio::test]
async fn three_messages_stand_with_restarts_in_between() {
    let answers = ["One.", "Two.", "Three."];
    let (model, backend) = (Upstream::script(answers.map(|text| says(text).answer())).await, backend().await);
    let machine = Machine::new(&model, &backend, &[("CHAT_MESSAGE__PROFILE", "tickets")]);
    let mut serving = machine.serve();
    let Some(mut page) = Opened::at(&serving.url(""), &machine.token(), &json!({})) else { return };
    page.asks("First").await;
    serving.kill();
    serving = machine.serve();
    page.does(&json!({"move": serving.url("")})).await;
    page.asks("Second").await;
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
    serving = machine.serve();
    page.does(&json!({"move": serving.url("")})).await;
    let ended = page.asks("Third").await;
    // The page is broken where an id comes twice.
    assert!(is_at_rest(&ended), "{ended:#}");
    assert_eq!(texts(&ended), ["First", "One.", "Second", "Two.", "Third", "Three."]);
}

#[tokio::test]
async fn a_refusal_is_shown_as_it_is_and_the_next_message_works() {
    let (s, _backend) = forum_with("", &[("LIMITS__MESSAGE_BYTES", "1000")], [says("Better.")]).await;
    let Some(mut page) = Opened::at(&s.app.url(""), &s.app.token, &json!({})) else { return };
    let long = "x".repeat(1001);
    let refused = page.asks(&long).await;
    let error = refused["error"].as_str().unwrap();
    let body = error.strip_prefix("Chat request failed (413): ").unwrap_or_else(|| panic!("{error}"));
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["code"], "field_too_large");
    assert_eq!((texts(&refused), &refused["bubble"]), (vec![long.as_str()], &Value::Null));
    let ended = page.asks("Shorter").await;
    assert!(is_at_rest(&ended), "{ended:#}");
    assert_eq!(texts(&ended)[1..], ["Shorter", "Better."]);

    let Some(mut page) = Opened::at(&s.app.url(""), "", &json!({})) else { return };
    let refused = page.asks("Hi").await;
    assert!(refused["error"].as_str().unwrap().starts_with("Chat request failed (401): {"), "{refused:#}");
}

#[tokio::test]
async fn stop_keeps_what_was_said_and_stops_the_model() {
    let s = over(&[], [turn().text("Half a thought").hangs().answer(), says("Whole.").answer()]).await;
    let Some(mut page) = Opened::at(&s.app.url(""), &s.app.token, &json!({})) else { return };
    page.sends("Think").await;
    page.until(json!({"bubble": "Half a thought"})).await;
    page.presses("Stop").await;
    let stopped = page.until(json!({"is_sending": false})).await;
    assert_eq!((&stopped["bubble"], &stopped["error"]), (&json!("Half a thought"), &json!("")));
    tokio::time::timeout(Duration::from_secs(2), s.model.clients_gone(1)).await.unwrap();
    let ended = page.asks("Again").await;
    assert!(is_at_rest(&ended), "{ended:#}");
    assert_eq!(texts(&ended), ["Think", "Again", "Whole."]);
}

/// An answer of another server, in one piece.
fn stream(frames: &[Value]) -> Answer {
    let text: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    Answer::ok("text/event-stream", text)
}

fn complete(id: &str, content: &str) -> Value {
    json!({"type": "complete", "message": {"id": id, "role": "assistant", "content": content}})
}

#[tokio::test]
async fn the_page_forgives_no_server_more_than_those_that_it_stands_for() {
    let chunk = |text: &str| json!({"type": "chunk", "chunk": text});
    let (half, behind) = (chunk("Half"), chunk("Behind"));
    let crlf = format!("data: {}\r\n\r\n", complete("a0", "Never"));
    let answers = [
        Answer::ok("text/event-stream", crlf),
        stream(std::slice::from_ref(&half)),
        Answer::ok("text/event-stream", "id: 1\ndata: [DONE]\n\ndata: no JSON\n\n"),
        stream(&[half, complete("a1", ""), behind]),
        stream(&[complete("a1", "The same id")]),
    ];
    let server = Upstream::script(answers).await;
    let options = json!({"csrf": "a token", "cookies": ["sid=1; HttpOnly"]});
    let Some(mut page) = Opened::at(&server.url(), "", &options) else { return };
    let nothing = page.asks("One").await;
    assert_eq!((texts(&nothing), &nothing["bubble"]), (vec!["One"], &Value::Null), "lines that end in CR LF");
    assert_eq!(page.asks("Two").await["bubble"], "Half", "no end");
    assert_eq!(page.asks("Three").await["logged"], json!(["no JSON: no JSON"]));
    let shown = page.asks("Four").await;
    assert_eq!((texts(&shown).last(), &shown["bubble"]), (Some(&""), &json!("Behind")));
    page.sends("Five").await;
    let broken = page.until(json!({"broken": "the key \"a1\" comes twice"})).await;
    assert_eq!(broken["is_sending"], true, "nothing is drawn any more");

    let request = &server.requests()[0];
    let sent = ["content-type", "accept", "x-csrf-token", "authorization", "cookie", "origin", "sec-fetch-site"];
    let origin = server.url();
    let expected = [
        Some("application/json"),
        Some("text/event-stream"),
        Some("a token"),
        None,
        Some("sid=1"),
        Some(origin.as_str()),
        Some("same-origin"),
    ];
    assert_eq!(sent.map(|name| request.header(name)), expected);
    assert_eq!((&*request.method, &*request.path), ("POST", "/chat/message"));
    assert_eq!(request.json(), json!({"message": "One", "agent_id": null}));
}
