//! What the page asks the server for so that its user sees it: other versions of messages and answers, how each run ended, what tools
//! were called with, and what a call that waits is about.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::app::TestApp;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::tickets::{started, write};
use crate::support::upstream::{Answer, Upstream};

async fn get(app: &TestApp, path: &str) -> (u16, Value) {
    let response = app.http.get(app.url(path)).bearer_auth(&app.token).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// What a branch says, and the versions that its first message tells of.
async fn branch(app: &TestApp, tip: &str) -> (Vec<String>, Value, Value) {
    let (status, view) = get(app, &format!("/v1/agent/conversations/c?branch={tip}")).await;
    assert_eq!(status, 200, "{view:#}");
    let messages = view["messages"].as_array().unwrap();
    let said = messages.iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect();
    (said, messages[0]["versions"].clone(), messages[0]["answers"].clone())
}

#[tokio::test]
async fn each_version_of_a_message_and_of_an_answer_can_be_read_with_what_came_behind_it() {
    let s = Scripted::playing(["One", "Two", "Again", "Other", "Later"].map(says)).await;
    s.app.say("c", "First").await;
    s.app.say("c", "Second").await;
    let (_, view) = get(&s.app, "/v1/agent/conversations/c").await;
    assert_eq!((&view["messages"][0]["versions"], &view["messages"][0]["answers"]), (&Value::Null, &Value::Null));
    let first = view["messages"][0]["id"].clone();
    let ask = async |body: Value| {
        let mut whole = json!({"context_type": "workflow", "conversation_id": "c"});
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        s.app.chat(&whole).await;
    };
    ask(json!({"regenerate": true, "parent_message_id": first})).await;
    ask(json!({"message": "First!", "parent_message_id": "root"})).await;
    let (said, versions, answers) = branch(&s.app, "").await;
    assert_eq!(
        (said, &versions["at"], &answers),
        (vec!["First!".to_owned(), "Other".to_owned()], &json!(1), &Value::Null)
    );
    let texts = versions["branches"].as_array().unwrap();
    assert_eq!(texts.len(), 2);

    // The newest of the answers to the text as it was first.
    let (said, versions, answers) = branch(&s.app, texts[0].as_str().unwrap()).await;
    assert_eq!(
        (said, &versions["at"], &answers["at"]),
        (vec!["First".to_owned(), "Again".to_owned()], &json!(0), &json!(1))
    );
    let older = answers["branches"][0].as_str().unwrap().to_owned();
    let (said, versions, answers) = branch(&s.app, &older).await;
    assert_eq!(said, ["First", "One", "Second", "Two"]);
    assert_eq!((&versions["at"], &answers["at"]), (&json!(0), &json!(0)));

    // Whoever goes on there makes it the newest branch.
    let (_, view) = get(&s.app, &format!("/v1/agent/conversations/c?branch={older}")).await;
    let last = view["messages"].as_array().unwrap().last().unwrap()["id"].clone();
    ask(json!({"message": "Third", "parent_message_id": last})).await;
    let (said, ..) = branch(&s.app, "").await;
    assert_eq!(said, ["First", "One", "Second", "Two", "Third", "Later"]);
}

#[tokio::test]
async fn a_branch_that_is_none_is_not_found() {
    let s = Scripted::playing(["One", "Two"].map(says)).await;
    s.app.say("c", "First").await;
    s.app.say("d", "Other").await;
    let (_, other) = get(&s.app, "/v1/agent/conversations/d").await;
    let run = other["runs"][0]["id"].as_str().unwrap();
    for tip in [run, "x", "00000000-0000-7000-8000-000000000000"] {
        let (status, problem) = get(&s.app, &format!("/v1/agent/conversations/c?branch={tip}")).await;
        assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "{tip}");
    }
}

#[tokio::test]
async fn every_failure_of_a_conversation_is_told_with_it() {
    let answers = [turn().text("Half").breaks().answer(), says("Two").answer()];
    let s = Scripted::with(&[], answers).await;
    s.app.say("c", "First").await;
    s.app.say("c", "Second").await;
    let (_, view) = get(&s.app, "/v1/agent/conversations/c").await;
    let runs = view["runs"].as_array().unwrap();
    let states: Vec<(&Value, &Value)> = runs.iter().map(|run| (&run["state"], &run["error"]["code"])).collect();
    assert_eq!(states, [(&json!("failed"), &json!("provider_truncated")), (&json!("completed"), &Value::Null)]);
}

const PROFILE: &str = "id = \"lamps\"\ncontext_type = \"lamps\"\ninstructions = [\"workflow/role.md\"]\ntools = [\"get_lamp\", \"close_lamp\"]\n";

const TOOLS: &str = r#"
[[tool]]
name = "get_lamp"
description = "Reads a lamp."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
path = "/v1/lamps/{id}"

[[tool]]
name = "close_lamp"
description = "Switches a lamp off."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.approval]
by = "user"
title = "Switch off {{ data.name }} in room {{ args.id }}"
resolve = "/v1/lamps/{id}"
[tool.request]
method = "POST"
path = "/v1/lamps/{id}/off"
"#;

/// The product with a model that says these turns and a backend of lamps; `more` is what its profile says besides.
async fn lamps(more: &str, turns: impl IntoIterator<Item = Answer>) -> (TestApp, Upstream, Upstream) {
    let lamp = |id: &str| match id {
        "7" => Answer::ok("application/json", r#"{"name": "the <b>desk</b>\nlamp {{ args.id }}"}"#),
        "8" => Answer::ok("application/json", "[1]"),
        _ => Answer::status(404, "application/json", "{}"),
    };
    let backend = Upstream::choosing(move |request| {
        let id = request.path.strip_prefix("/v1/lamps/")?;
        Some(lamp(id))
    })
    .await;
    let model = Upstream::script(turns).await;
    let data = TempDir::new().unwrap();
    write(&data, "tools/lamps.toml", TOOLS);
    write(&data, "profiles/lamps.toml", &format!("{PROFILE}{more}"));
    let app = started(data, (&model, &backend.url()), &[]).await;
    (app, model, backend)
}

async fn ask(app: &TestApp, message: &str) -> String {
    app.chat(&json!({"message": message, "context_type": "lamps", "conversation_id": "c"})).await;
    let (_, view) = get(app, "/v1/agent/conversations/c").await;
    view["runs"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_a_tool_was_called_with_and_said_is_for_users_of_profiles_that_show_it() {
    let turns = || {
        let both = turn().call("a", "get_lamp", &json!({"id": 7})).call("b", "get_lamp", &json!({"id": 9}));
        [both.finish("tool_calls").answer(), says("Done").answer()]
    };
    let (app, _model, _backend) = lamps("show_tools = true\n", turns()).await;
    let run = ask(&app, "Look").await;
    let (status, list) = get(&app, &format!("/v1/agent/runs/{run}/calls")).await;
    assert_eq!(status, 200, "{list:#}");
    let items = list["items"].as_array().unwrap();
    let told: Vec<Value> = items.iter().map(|call| json!([call["name"], call["state"], call["arguments"]])).collect();
    assert_eq!(told, [json!(["get_lamp", "done", {"id": 7}]), json!(["get_lamp", "failed", {"id": 9}])]);
    let result = items[0]["result"].as_str().unwrap();
    assert!(result.contains("desk") && items[0]["result_bytes"] == result.len(), "{result}");
    assert!(items[1]["result"].as_str().unwrap().contains("error"), "the reason: {list:#}");
    let (_, view) = get(&app, "/v1/agent/conversations/c").await;
    let ids: Vec<&Value> =
        view["messages"][1]["tool_calls"].as_array().unwrap().iter().map(|call| &call["id"]).collect();
    assert_eq!(ids, items.iter().map(|call| &call["id"]).collect::<Vec<_>>(), "the same calls");

    let (app, _model, _backend) = lamps("", turns()).await;
    let run = ask(&app, "Look").await;
    let (status, problem) = get(&app, &format!("/v1/agent/runs/{run}/calls")).await;
    assert_eq!((status, &problem["code"]), (403, &json!("forbidden")));
    let (status, _) = get(&app, "/v1/agent/runs/x/calls").await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_call_that_waits_says_what_it_is_about() {
    let rows = [
        (7, Some("Switch off the <b>desk</b> lamp {{ args.id }} in room 7"), "one line, and a value is no template"),
        (8, None, "an answer of another shape"),
        (9, None, "nothing there"),
    ];
    for (id, expected, reason) in rows {
        let (app, _model, _backend) =
            lamps("", [calls("a", "close_lamp", &json!({"id": id})).answer(), says("It waits").answer()]).await;
        ask(&app, "Switch it off").await;
        let (_, waiting) = get(&app, "/v1/agent/approvals").await;
        let listed = &waiting["items"][0];
        assert_eq!((&listed["tool"], &listed["title"]), (&json!("close_lamp"), &Value::Null), "lists ask nobody");
        let (_, one) = get(&app, &format!("/v1/agent/approvals/{}", listed["approval_id"].as_str().unwrap())).await;
        assert_eq!(one["title"].as_str(), expected, "{reason}: {one:#}");
        assert_eq!(one["arguments"], json!({"id": id}), "{reason}");
    }
}
