//! The tools of the dialog itself: its title, and what tools have said before.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Editor, kinds};
use crate::support::model::{Script, calls, says, turn};

fn titles(id: &str, title: &str) -> Script {
    calls(id, "set_dialog_title", &json!({ "title": title }))
}

/// The tools that each request has offered, as far as they are about the dialog.
fn offered(editor: &Editor) -> Vec<Vec<String>> {
    let offered = |request: Value| {
        let names = request["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap());
        let names = names.filter(|name| ["set_dialog_title", "get_tool_result"].contains(name));
        names.map(str::to_owned).collect()
    };
    editor.model.requests().iter().map(|request| offered(request.json())).collect()
}

/// What the model has read of the call of that id.
fn result(editor: &Editor, id: &str) -> Value {
    let requests = editor.model.requests();
    let messages = requests.last().unwrap().json()["messages"].clone();
    let found = messages.as_array().unwrap().iter().rfind(|message| message["tool_call_id"] == id).unwrap().clone();
    serde_json::from_str(found["content"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn the_model_gives_a_dialog_its_title_while_it_has_none() {
    let fifty = "é".repeat(50);
    let turns = vec![
        titles("t1", "  \n"),
        titles("t2", &"x".repeat(51)),
        calls("t3", "set_dialog_title", &json!({"name": "x"})),
        titles("t4", &format!("  {fifty} ")),
        says("Done."),
        says("Again."),
        says("Other."),
    ];
    let editor = Editor::with(&[], &[], turns).await;
    let events = editor.chat("What is this?", json!({"dialog_id": "d1"})).await;
    assert_eq!(kinds(&events).iter().filter(|kind| **kind == "tool_call").count(), 4);
    for (id, code) in [("t1", "invalid_title"), ("t2", "title_too_long"), ("t3", "args_validation")] {
        let failure = result(&editor, id);
        assert_eq!((&failure["type"], &failure["name"]), (&json!("tool_error"), &json!("set_dialog_title")));
        assert_eq!(failure["code"], code);
    }
    let success = result(&editor, "t4");
    assert_eq!((&success["type"], &success["tool"]), (&json!("success"), &json!("set_dialog_title")));
    assert_eq!((&success["title"], success["message"].is_string()), (&json!(fifty), true));
    assert_eq!(editor.get("/api/dialogs/d1").await["title"], fifty);

    editor.chat("And now?", json!({"dialog_id": "d1"})).await;
    editor.chat("Hi", json!({"dialog_id": "d2"})).await;
    let both = vec!["get_tool_result".to_owned(), "set_dialog_title".to_owned()];
    let [first @ .., answer, again, other] = &offered(&editor)[..] else { panic!() };
    assert!(first.iter().all(|tools| *tools == both), "until it has one: {first:?}");
    assert_eq!((answer, again), (&both[..1].to_vec(), &both[..1].to_vec()), "not behind it");
    assert_eq!(*other, both, "another dialog has none");
    let history = editor.get("/api/dialogs/d1/history").await;
    let told = history["events"].as_array().unwrap().iter().filter(|event| event["type"] == "tool_call").count();
    assert_eq!(told, 4, "calls like all others");
    assert_eq!(editor.get("/api/dialogs/d1/tool-results").await, json!([]), "whose results nobody looks for");
}

#[tokio::test]
async fn a_title_of_the_user_stays() {
    let turns = vec![says("Hi."), titles("t", "Mine"), says("Sorry.")];
    let editor = Editor::with(&[], &[], turns).await;
    editor.chat("Hi", json!({"dialog_id": "d"})).await;
    let (status, _) = editor.ask(Method::PATCH, "/api/dialogs/d", Some(json!({"title": "Of the user"}))).await;
    assert_eq!(status, 200);
    let events = editor.chat("Rename it", json!({"dialog_id": "d"})).await;
    assert!(!kinds(&events).contains(&"error"));
    assert_eq!(editor.get("/api/dialogs/d").await["title"], "Of the user");
    assert!(!offered(&editor)[1].contains(&"set_dialog_title".to_owned()));
    let (_, made) = editor.ask(Method::POST, "/api/dialogs", Some(json!({"title": "Named"}))).await;
    assert_eq!(made["title"], "Named");
}

#[tokio::test]
async fn a_title_that_the_dialog_was_made_with_is_one() {
    let editor = Editor::with(&[], &[], vec![says("Hi.")]).await;
    let (_, made) = editor.ask(Method::POST, "/api/dialogs", Some(json!({"title": "Named"}))).await;
    let events = editor.chat("Hi", json!({})).await;
    assert_eq!(events[0].body["dialog_id"], made["id"]);
    assert_eq!(offered(&editor), [["get_tool_result"]]);
}

#[tokio::test]
async fn the_model_reads_again_what_a_tool_has_said() {
    let read = |id: &str, path: &str| calls(id, "read_file", &json!({ "path": path }));
    let again = |id: &str, of: &str| calls(id, "get_tool_result", &json!({ "tool_call_id": of }));
    let turns = vec![
        read("call_0", "a.txt"),
        read("call_1", "b.txt"),
        says("Read."),
        // The id of another call, in another message.
        read("call_0", "b.txt"),
        again("g1", "call_0"),
        again("g2", "call_9"),
        again("g3", "g1"),
        calls("g4", "get_tool_result", &json!({"tool_call_id": 7})),
        says("Done."),
        again("g5", "call_1"),
        says("Nothing."),
    ];
    let editor = Editor::with(&[("a.txt", "one\n"), ("b.txt", "two\n")], &[], turns).await;
    editor.chat("Read", json!({"dialog_id": "d"})).await;
    editor.chat("Read again", json!({"dialog_id": "d"})).await;
    let found = result(&editor, "g1");
    assert_eq!((&found["type"], &found["tool_name"]), (&json!("previous_result"), &json!("read_file")));
    assert_eq!(found["original_args"], json!({"path": "b.txt"}));
    assert_eq!(found["result"]["content"], "two\n", "the newest call of that id");
    assert!(found["timestamp"].as_str().unwrap().ends_with('Z'));
    for (id, code) in [("g2", "not_found"), ("g3", "not_found"), ("g4", "args_validation")] {
        let failure = result(&editor, id);
        assert_eq!((&failure["type"], &failure["code"]), (&json!("tool_error"), &json!(code)), "{id}");
    }
    let words = result(&editor, "g2")["error"].as_str().unwrap().to_owned();
    assert!(words.contains("call_1, call_0") && !words.contains("g1"), "{words}");
    let kept = editor.get("/api/dialogs/d/tool-results").await;
    let kept: Vec<&str> = kept.as_array().unwrap().iter().map(|one| one["tool_name"].as_str().unwrap()).collect();
    assert_eq!(kept, ["read_file"; 3]);
    let newest = editor.get("/api/dialogs/d/tool-results/call_0").await;
    assert_eq!((&newest["args"], &newest["result"]["content"]), (&json!({"path": "b.txt"}), &json!("two\n")));

    editor.chat("Hi", json!({"dialog_id": "other"})).await;
    let failure = result(&editor, "g5");
    assert_eq!(failure["code"], "not_found", "of another dialog");
    assert!(!failure["error"].as_str().unwrap().contains("call_"), "{failure}");
}

#[tokio::test]
async fn a_result_of_the_turn_before_is_there_already() {
    let args = json!({"path": "a.txt"});
    let turns = vec![
        turn().call("r", "read_file", &args).call("g", "get_tool_result", &json!({"tool_call_id": "r"})).done(),
        calls("h", "get_tool_result", &json!({"tool_call_id": "r"})),
        says("Done."),
    ];
    let editor = Editor::with(&[("a.txt", "one\n")], &[], turns).await;
    editor.chat("Read", json!({})).await;
    assert_eq!(result(&editor, "g")["code"], "not_found", "a turn is kept as a whole");
    assert_eq!(result(&editor, "h")["result"]["content"], "one\n");
}
