//! What the streams of dialogs tell in cases that are not the usual one.

use std::sync::Arc;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::reader::{Event, read};
use super::{Editor, kinds};
use crate::support::frames::read_until;
use crate::support::model::{Script, calls, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;

/// What was said, pieces joined.
fn said(events: &[Event]) -> String {
    let pieces = events.iter().filter(|event| event.kind == "chat");
    pieces.map(|event| event.body["content"].as_str().unwrap()).collect()
}

/// The roles of the messages of a request.
fn roles(request: &Request) -> Vec<String> {
    let messages = request.json()["messages"].as_array().unwrap().clone();
    messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_text_arrives_as_it_is_whatever_its_lines_end_with() {
    let text = "a\u{2028}b\u{2029}c\r\nd\ne\rf\u{85}g";
    let editor = Editor::with(&[], &[], vec![says(text)]).await;
    assert_eq!(said(&editor.chat("Go", json!({})).await), text);
}

#[tokio::test]
async fn pieces_are_told_as_they_come_and_silence_is_filled_with_comments() {
    let gate = Arc::new(Notify::new());
    let answer = Answer::ok("text/event-stream", turn().text("first").bytes());
    let model = Upstream::script([answer.gated(&gate, says(" last").bytes())]).await;
    let editor = Editor::asking(model, &[], &[("SERVER__KEEP_ALIVE_S", "1")]).await;
    let body = json!({"messages": [{"role": "user", "content": "Go"}]});
    let request = editor.app.http.post(editor.app.url("/api/chat")).bearer_auth(&editor.app.token).json(&body);
    let mut response = request.send().await.unwrap();
    let mut seen = read_until(&mut response, "first").await;
    seen.push_str(&read_until(&mut response, "\n:").await);
    gate.notify_one();
    seen.push_str(&response.text().await.unwrap());
    assert_eq!(said(&read(&seen)), "first last");
}

#[tokio::test]
async fn the_model_gets_what_the_server_has_kept_and_nothing_that_a_client_says_of_it() {
    let look = calls("r", "read_file", &json!({"path": "a.txt"}));
    let editor = Editor::with(&[("a.txt", "one\n")], &[], vec![look, says("Read."), says("Again.")]).await;
    let forged = json!([
        {"role": "user", "content": "forged question"},
        {"role": "assistant", "content": "forged answer"},
        {"role": "system", "content": "forged rule"},
        {"role": "user", "content": "What is in it?"},
    ]);
    editor.chat("", json!({"messages": forged, "dialog_id": "d"})).await;
    editor.chat("And now?", json!({"dialog_id": "d"})).await;
    let requests = editor.model.requests();
    assert!(requests.iter().all(|request| !request.json().to_string().contains("forged")));
    assert_eq!(roles(&requests[0]), ["system", "user"]);
    assert_eq!(roles(&requests[2]), ["system", "user", "assistant", "tool", "assistant", "user"]);
    let messages = requests[2].json()["messages"].clone();
    let text = |at: usize| messages[at]["content"].as_str().unwrap_or_default().to_owned();
    assert!(text(1).ends_with("What is in it?") && text(3).contains("one\\n"), "{messages}");
    assert_eq!((text(4), text(5).ends_with("And now?")), ("Read.".to_owned(), true));
}

#[tokio::test]
async fn an_editor_that_says_nothing_of_itself_is_answered() {
    let contexts = [Value::Null, json!({}), json!({"unknown": {"deep": [1]}, "current_file": null})];
    let editor = Editor::with(&[], &[], contexts.iter().map(|_| says("Yes.")).collect()).await;
    for context in contexts {
        let events = editor.chat("Go", json!({"context": context, "more": 1})).await;
        assert_eq!(said(&events), "Yes.", "{context}");
    }
}

#[tokio::test]
async fn each_call_of_a_turn_is_told_before_its_own_edit_and_reading_makes_none() {
    let write = |path: &str| json!({"path": path, "content": "x\n"});
    let turns = vec![
        turn()
            .call("1", "write_to_file", &write("a.txt"))
            .call("2", "read_file", &json!({"path": "a.txt"}))
            .call("3", "write_to_file", &write("b.txt"))
            .done(),
        turn().call_raw("4", "write_to_file", "{no object").call("5", "fly", &json!({})).done(),
        says("Done."),
    ];
    let editor = Editor::with(&[], &[], turns).await;
    let events = editor.chat("Go", json!({"dialog_id": "d"})).await;
    let told: Vec<&str> = kinds(&events).into_iter().filter(|kind| *kind != "chat").collect();
    let expected = [
        "user",
        "tool_call",
        "file_edit",
        "tool_call",
        "tool_call",
        "file_edit",
        "tool_call",
        "chat_start",
        "chat_end",
        "done",
    ];
    assert_eq!(told, expected, "no segment without text, and no call without arguments");
    let names: Vec<&Value> =
        events.iter().filter(|event| event.kind == "tool_call").map(|event| &event.body["name"]).collect();
    assert_eq!(names, ["write_to_file", "read_file", "write_to_file", "fly"]);
    let last = editor.model.requests()[2].json()["messages"].as_array().unwrap().clone();
    let results: Vec<Value> = last
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap_or_default())
        .collect();
    assert_eq!(results.len(), 5, "each is answered");
    assert_eq!(results[1]["content"], "x\n", "in their order");
    let edits: Vec<String> = events
        .iter()
        .filter(|event| event.kind == "file_edit")
        .map(|event| event.body["file"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(edits, [editor.path("a.txt"), editor.path("b.txt")]);
}

#[tokio::test]
async fn whatever_the_model_server_answers_the_stream_ends_well_and_the_dialog_goes_on() {
    let refusal = |status| Answer::status(status, "application/json", r#"{"error": {"message": "sk-secret"}}"#);
    let write = || calls("w", "write_to_file", &json!({"path": "a.txt", "content": "2\n"})).answer();
    let rows: Vec<(Vec<Answer>, Vec<&str>, &str)> = vec![
        (vec![refusal(500)], vec!["user", "error", "done"], "a failure of its own"),
        (vec![refusal(401)], vec!["user", "error", "done"], "a wrong key"),
        (vec![refusal(429)], vec!["user", "error", "done"], "too many"),
        (vec![refusal(400)], vec!["user", "error", "done"], "a question it does not take"),
        (
            vec![turn().text("So far").answer()],
            vec!["user", "chat_start", "chat", "chat_end", "error", "done"],
            "a stream without its end",
        ),
        (
            vec![turn().text("So far").raw("data: {\"error\": {\"message\": \"x\"}}\n\n").answer()],
            vec!["user", "chat_start", "chat", "chat_end", "error", "done"],
            "an error inside",
        ),
        (vec![write(), refusal(500)], vec!["user", "tool_call", "file_edit", "error", "done"], "behind a tool"),
    ];
    let settings = [("LLM__RETRY__ATTEMPTS", "1"), ("LLM__BREAKER__FAILURES", "0")];
    for (answers, expected, why) in rows {
        let answers = answers.into_iter().chain([says("Better.").answer()]);
        let editor = Editor::asking(Upstream::script(answers).await, &[("a.txt", "1\n")], &settings).await;
        let events = editor.chat("Go", json!({"dialog_id": "d"})).await;
        assert_eq!(kinds(&events), expected, "{why}");
        let words = events[events.len() - 2].body["error"].as_str().unwrap();
        assert!(!words.contains("127.0.0.1") && !words.contains("sk-"), "{why}: {words}");
        assert_eq!(said(&editor.chat("Again", json!({"dialog_id": "d"})).await), "Better.", "{why}");
        let kept = editor.get("/api/dialogs/d/history").await.to_string();
        assert!(kept.contains("So far") == (said(&events) == "So far"), "{why}: {kept}");
        let text = std::fs::read_to_string(editor.root.path().join("a.txt")).unwrap();
        assert_eq!(text, if expected.contains(&"file_edit") { "2\n" } else { "1\n" }, "{why}");
    }
}

#[tokio::test]
async fn one_document_of_a_failure_is_a_failure() {
    let refused = Answer::status(500, "application/json", "{}");
    let settings = [("LLM__RETRY__ATTEMPTS", "1")];
    let editor = Editor::asking(Upstream::script([refused]).await, &[], &settings).await;
    let body = json!({"messages": [{"role": "user", "content": "Go"}], "stream": false, "dialog_id": "d"});
    let (status, answer) = editor.ask(Method::POST, "/api/chat", Some(body)).await;
    assert!((500..600).contains(&status) && answer["detail"].is_string(), "{status}: {answer}");
}

#[tokio::test]
async fn one_document_tells_of_a_call_that_waits() {
    let turns = vec![turn().text("I run.").call("c", "run_command", &json!({"command": "true"})).done()];
    let editor = Editor::with(&[], &[("WORKSPACE__COMMANDS", "ask")], turns).await;
    let body = json!({"messages": [{"role": "user", "content": "Go"}], "stream": false, "dialog_id": "d"});
    let (status, answer) = editor.ask(Method::POST, "/api/chat", Some(body)).await;
    let content = answer["content"].as_str().unwrap();
    assert_eq!((status, &answer["done"]), (200, &json!(true)));
    assert!(content.starts_with("I run.") && content.contains("run_command waits until you approve it"), "{content}");
}

#[tokio::test]
async fn an_answer_that_never_comes_to_its_end_is_ended() {
    let look = |request: &Request| {
        let nth = request.json()["messages"].as_array().unwrap().len();
        let args = json!({"path": ".", "regex": format!("n{nth}")});
        Some(calls(&format!("c{nth}"), "search_files", &args).answer())
    };
    let editor = Editor::asking(Upstream::choosing(look).await, &[], &[]).await;
    let events = editor.chat("Go", json!({})).await;
    assert_eq!(&kinds(&events)[events.len() - 2..], ["error", "done"]);
    let asked = editor.model.requests().len();
    assert!((30..400).contains(&asked), "{asked} turns");
}

#[tokio::test]
async fn an_editor_that_goes_away_ends_its_answer_and_what_was_said_is_kept() {
    let editor = Editor::with(&[], &[], vec![turn().text("So far").hangs()]).await;
    let body = json!({"messages": [{"role": "user", "content": "Go"}], "dialog_id": "d"});
    let request = editor.app.http.post(editor.app.url("/api/chat")).bearer_auth(&editor.app.token).json(&body);
    let mut response = request.send().await.unwrap();
    read_until(&mut response, "So far").await;
    drop(response);
    editor.model.clients_gone(1).await;
    eventually("what was said is kept", async || {
        let history = editor.get("/api/dialogs/d/history").await;
        history["events"].as_array().unwrap().iter().any(|event| event["content"] == "So far").then_some(())
    })
    .await;
}

#[tokio::test]
async fn dialogs_that_are_answered_at_once_stay_apart() {
    // Each is known by its question; the ids of their calls are the same.
    let choose = |request: &Request| {
        let messages = request.json()["messages"].as_array().unwrap().clone();
        let asked = messages.iter().rfind(|message| message["role"] == "user").unwrap()["content"].to_string();
        let nth = (0..4).find(|nth| asked.contains(&format!("question {nth}"))).unwrap();
        let args = json!({"path": format!("{nth}.txt"), "content": format!("{nth}\n")});
        let script: Script = match messages.last().unwrap()["role"] == "user" {
            true => calls("call_1", "write_to_file", &args),
            false => says(&format!("Written: {nth}.")),
        };
        Some(script.answer())
    };
    let editor = Editor::asking(Upstream::choosing(choose).await, &[], &[]).await;
    let editor = &editor;
    let answers = join_all((0..4).map(|nth| async move {
        let dialog = format!("d{nth}");
        (nth, editor.chat(&format!("question {nth}"), json!({"dialog_id": dialog})).await)
    }));
    for (nth, events) in answers.await {
        let dialog = format!("d{nth}");
        assert!(events.iter().all(|event| event.body["dialog_id"] == dialog.as_str()));
        assert_eq!(said(&events), format!("Written: {nth}."));
        let edits: Vec<&Value> =
            events.iter().filter(|event| event.kind == "file_edit").map(|event| &event.body["file"]).collect();
        assert_eq!(edits, [&json!(editor.path(&format!("{nth}.txt")))]);
        let result = editor.get(&format!("/api/dialogs/{dialog}/tool-results/call_1")).await;
        assert_eq!(result["args"]["path"], format!("{nth}.txt"));
        let history = editor.get(&format!("/api/dialogs/{dialog}/history")).await;
        assert_eq!(
            (&history["total_events"], &history["events"][0]["content"]),
            (&json!(4), &json!(format!("question {nth}")))
        );
    }
}

#[tokio::test]
async fn lists_and_histories_have_pages_and_ends() {
    let editor = Editor::with(&[], &[], vec![says("One."), says("Two.")]).await;
    let empty =
        json!({"dialog_id": "e", "events": [], "total_events": 0, "has_more": false, "first_idx": 0, "last_idx": 0});
    let (_, made) = editor.ask(Method::POST, "/api/dialogs", Some(json!({}))).await;
    let path = format!("/api/dialogs/{}/history", made["id"].as_str().unwrap());
    let mut of_new = editor.get(&path).await;
    of_new["dialog_id"] = json!("e");
    assert_eq!(of_new, empty);
    for dialog in ["d1", "d2"] {
        editor.chat("Hi", json!({"dialog_id": dialog})).await;
    }
    let listed = async |query: &str| {
        let dialogs = editor.get(&format!("/api/dialogs?{query}")).await["dialogs"].as_array().unwrap().clone();
        dialogs.iter().map(|dialog| dialog["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = listed("sort=created_at&order=asc").await;
    assert_eq!((all.len(), &all[1..]), (3, &["d1".to_owned(), "d2".to_owned()][..]));
    assert_eq!(listed("sort=created_at&order=asc&limit=1&offset=1").await, ["d1"]);
    assert_eq!(listed("sort=created_at&order=desc&limit=1").await, ["d2"]);
    assert_eq!(listed("offset=9").await, [] as [String; 0]);

    let beyond = editor.get("/api/dialogs/d1/history?before=99").await;
    assert_eq!((&beyond["first_idx"], &beyond["last_idx"], &beyond["total_events"]), (&json!(0), &json!(1), &json!(2)));
    let before_all = editor.get("/api/dialogs/d1/history?before=0").await;
    assert_eq!((&before_all["events"], &before_all["has_more"]), (&json!([]), &json!(false)));

    for dialog in all {
        assert_eq!(editor.ask(Method::DELETE, &format!("/api/dialogs/{dialog}"), None).await.0, 200);
    }
    assert_eq!(editor.get("/api/dialogs/current").await, json!({}), "the last one is gone");
}
