//! `create_table_config` and `update_table_config`: they confirm what an accepted preview has saved, and save nothing.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::previews::{decide, retitled};
use super::{Asking, ORDERS, assert_refused, config, read, results};
use crate::support::frames::{self, Frame};
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::upstream::{Answer, Upstream};

const FIRST: &str = "nothing was saved: show the change with preview_table_config first; it is saved when the user";

async fn say(s: &Scripted, message: &str) -> Vec<Frame> {
    s.app.chat(&json!({"message": message, "context_type": "tables", "conversation_id": "c"})).await
}

fn preview(config: &Value, more: &Value) -> Value {
    let mut args = json!({"config": config, "description_of_changes": "x"});
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

#[tokio::test]
async fn a_new_configuration_is_created_by_accepting_it_and_confirmed_afterwards() {
    let mut another = retitled();
    another["width"] = json!(6);
    let create = |name: &str, config: &Value| json!({"name": name, "config": config});
    let confirming = turn()
        .call("c1", "create_table_config", &create("open_orders", &retitled()))
        .call("c2", "create_table_config", &create("open_orders", &another))
        .call("c3", "create_table_config", &create("other_orders", &retitled()))
        .call("g1", "get_table_config", &json!({"name": "open_orders"}));
    let s = Scripted::playing([
        calls("p1", "preview_table_config", &preview(&retitled(), &json!({"name": "open_orders"}))),
        says("Look."),
        confirming.done(),
        says("Saved."),
    ])
    .await;
    let frames = say(&s, "A table of open orders").await;
    let (status, decided) = decide(&s.app, &frames, &json!({"decision": "accept"})).await;
    assert_eq!(status, 200);
    let frames = say(&s, "Is it saved?").await;
    assert_eq!(read(&s, &frames, "c1"), Ok(json!({"status": "already_saved", "config_id": decided["saved_id"]})));
    let others = [read(&s, &frames, "c2"), read(&s, &frames, "c3")];
    assert_refused(&others, &[(FIRST, "another document"), (FIRST, "another name")]);
    let saved = read(&s, &frames, "g1").unwrap();
    assert_eq!((&saved["id"], &saved["description"]), (&decided["saved_id"], &json!("")));
    assert_eq!(saved["config"].to_string(), retitled().to_string());
}

#[tokio::test]
async fn an_update_over_an_update_is_confirmed_only_for_the_newest() {
    let (first, second) = (retitled(), config(ORDERS));
    let confirming = turn()
        .call("u1", "update_table_config", &json!({"id": ORDERS, "config": first}))
        .call("u2", "update_table_config", &json!({"id": ORDERS, "config": second}))
        .call("u3", "update_table_config", &json!({"id": "all_orders", "config": second}));
    let s = Scripted::playing([
        calls("p1", "preview_table_config", &preview(&first, &json!({"id": ORDERS}))),
        says("Look."),
        calls("p2", "preview_table_config", &preview(&second, &json!({"id": ORDERS, "name": "all_orders"}))),
        says("Look again."),
        confirming.done(),
        says("Saved."),
    ])
    .await;
    for message in ["Another title", "The old title"] {
        let frames = say(&s, message).await;
        assert_eq!(decide(&s.app, &frames, &json!({"decision": "accept"})).await.0, 200, "{message}");
    }
    let frames = say(&s, "Is it saved?").await;
    assert_refused(&[read(&s, &frames, "u1")], &[(FIRST, "overwritten since")]);
    for call in ["u2", "u3"] {
        assert_eq!(read(&s, &frames, call), Ok(json!({"status": "already_saved", "config_id": ORDERS})), "{call}");
    }
}

#[tokio::test]
async fn nothing_is_saved_without_a_preview_nor_by_another_conversations_preview() {
    let update = json!({"id": ORDERS, "config": retitled()});
    let s = Scripted::playing([
        calls("p1", "preview_table_config", &preview(&retitled(), &json!({"id": ORDERS}))),
        says("Look."),
        calls("u1", "update_table_config", &update),
        says("No."),
    ])
    .await;
    let frames = say(&s, "Another title").await;
    assert_eq!(decide(&s.app, &frames, &json!({"decision": "accept"})).await.0, 200);
    let frames =
        s.app.chat(&json!({"message": "Saved?", "context_type": "tables", "conversation_id": "another"})).await;
    assert_refused(&[read(&s, &frames, "u1")], &[(FIRST, "another conversation")]);
    assert!(!frames::names(&frames).contains(&"table_config_preview"));
}

#[tokio::test]
async fn what_could_not_be_saved_is_refused_with_all_its_problems() {
    let mut untitled = config(ORDERS);
    untitled["title"] = json!("");
    let read = results(&[
        ("create_table_config", json!({"name": "ab", "config": untitled})),
        ("create_table_config", json!({"config": config(ORDERS)})),
        ("create_table_config", json!({"name": "orders_2", "config": "not JSON"})),
        ("create_table_config", json!({"name": "orders_2", "config": config(ORDERS)})),
        ("update_table_config", json!({"id": ORDERS, "config": untitled})),
        ("update_table_config", json!({"id": "", "config": config(ORDERS)})),
        ("update_table_config", json!({"id": ORDERS})),
        ("update_table_config", json!({"id": ORDERS, "config": config(ORDERS)})),
    ])
    .await;
    let expected = [
        (
            "the configuration is not valid: name: a name has 3 to 100 characters (INVALID_VALUE); title: a title is \
             required (REQUIRED)",
            "two problems",
        ),
        ("bad params: missing field `name`", "no name"),
        ("the configuration is not valid: config: must be a JSON object (INVALID_CONFIG)", "no document"),
        (FIRST, "nothing was previewed"),
        ("the configuration is not valid: title: a title is required (REQUIRED)", "one problem"),
        ("bad params: id: name the configuration to update", "nothing named, and no screen"),
        ("bad params: missing field `config`", "no document"),
        (FIRST, "not even what the backend has"),
    ];
    assert_refused(&read, &expected);
}

#[tokio::test]
async fn the_screen_says_what_is_updated_when_nothing_else_does() {
    let asking = Asking { context: Some(json!({"config_id": ORDERS})), ..Asking::default() };
    let read = asking
        .results(&[
            ("update_table_config", json!({"config": config(ORDERS)})),
            ("update_table_config", json!({"id": "inventory_table", "config": config(ORDERS)})),
            ("update_table_config", json!({"id": "this one", "config": config(ORDERS)})),
        ])
        .await;
    let expected = [
        (FIRST, "the id comes from the screen, the preview is still missing"),
        (FIRST, "the id comes from the name"),
        ("\"this one\" is neither the UUID nor the name of a stored configuration", "no name of anything"),
    ];
    assert_refused(&read, &expected);
}

#[tokio::test]
async fn what_somebody_has_changed_meanwhile_is_not_overwritten() {
    let mut other = retitled();
    other["title"] = json!("Late orders");
    let s = Scripted::playing([
        calls("p1", "preview_table_config", &preview(&retitled(), &json!({"id": ORDERS}))),
        says("Look."),
        calls("p2", "preview_table_config", &preview(&other, &json!({"id": ORDERS}))),
        says("Look here."),
        calls("g1", "get_table_config", &json!({"id": ORDERS})),
        says("It is."),
    ])
    .await;
    let older = say(&s, "Another title").await;
    let body = json!({"message": "Mine", "context_type": "tables", "conversation_id": "another"});
    let newer = s.app.chat(&body).await;
    assert_eq!(decide(&s.app, &newer, &json!({"decision": "accept"})).await.0, 200);
    let (status, problem) = decide(&s.app, &older, &json!({"decision": "accept"})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("preview_stale")));
    assert_eq!(problem["current"]["config"], other);
    let keys: Vec<&String> = problem["current"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "description", "config"], "what the save would replace");
    let frames = say(&s, "What is it?").await;
    assert_eq!(read(&s, &frames, "g1").unwrap()["config"], other);
}

#[tokio::test]
async fn a_configuration_that_was_created_without_an_answer_is_found() {
    let stored: Arc<Mutex<Option<Value>>> = Arc::default();
    let kept = Arc::clone(&stored);
    let backend = Upstream::choosing(move |request| {
        let mut stored = kept.lock().unwrap();
        Some(match (request.method.as_str(), &*request.path) {
            ("POST", "/v1/data") => {
                let mut made = request.json();
                made["id"] = json!(ORDERS);
                *stored = Some(made);
                Answer::status(502, "text/html", "bad gateway")
            }
            ("GET", "/v1/data/name/open_orders") => match &*stored {
                Some(stored) => Answer::ok("application/json", stored.to_string()),
                None => Answer::status(404, "application/json", "{}"),
            },
            _ => return None,
        })
    })
    .await;
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &*backend.url())];
    let turns =
        [calls("p1", "preview_table_config", &preview(&retitled(), &json!({"name": "open_orders"}))), says("Look.")];
    let s = Scripted::with(&settings, turns.map(Script::answer)).await;
    let frames = say(&s, "A table of open orders").await;
    let accept = async || {
        let (status, body) = decide(&s.app, &frames, &json!({"decision": "accept"})).await;
        (status, body["code"].clone(), body["saved_id"].clone())
    };
    assert_eq!(accept().await, (502, json!("save_unconfirmed"), Value::Null));
    s.app.beside("UPDATE previews SET claimed_at = claimed_at - 61000").await;
    assert_eq!(accept().await, (200, Value::Null, json!(ORDERS)));
    let posts = backend.requests().iter().filter(|request| request.method == "POST").count();
    assert_eq!(posts, 1, "it was there already");
}
