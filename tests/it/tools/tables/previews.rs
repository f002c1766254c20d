//! `preview_table_config` and the decision on it: what the client is shown, what is saved then, what the model is told.

use serde_json::{Value, json};

use super::{Asking, Call, INVENTORY, NOBODY, ORDERS, SUPPLIERS, assert_refused, config, read, results, seeded};
use crate::support::app::{ADA, TestApp};
use crate::support::frames::{self, Frame};
use crate::support::model::{Scripted, calls, says};

/// A decision on the preview of `frames`: status and body.
pub async fn decide(app: &TestApp, frames: &[Frame], decision: &Value) -> (u16, Value) {
    let id = frames::data(frames, "table_config_preview")["preview_id"].as_str().unwrap();
    let url = app.url(&format!("/v1/agent/previews/{id}/decision"));
    let response = app.http.post(url).bearer_auth(&app.token).json(decision).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// What Ada says, with the orders configuration on her screen.
pub async fn say(app: &TestApp, message: &str) -> Vec<Frame> {
    let context = json!({"config_id": ORDERS});
    app.chat(&json!({"message": message, "context_type": "tables", "context": context, "conversation_id": "c"})).await
}

/// The orders configuration under another title, with a key that nothing here knows.
pub fn retitled() -> Value {
    let mut config = config(ORDERS);
    config["title"] = json!("Open orders");
    config["x_theme"] = json!({"z": 1, "a": 2});
    config
}

/// A call that previews `config` with `more` arguments.
fn preview(config: Value, more: Value) -> Call<'static> {
    let mut args = json!({"config": config, "description_of_changes": "x"});
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ("preview_table_config", args)
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_preview_of_an_update_is_shown_with_its_keys_in_order() {
    let asking = Asking { context: Some(json!({"config_id": ORDERS})), ..Asking::default() };
    let preview = json!({"config": retitled(), "description_of_changes": "Another title"});
    let (read, frames) = asking.run(&[("preview_table_config", preview)]).await;
    let expected = [
        "message_start",
        "tool_call_start",
        "tool_call_result",
        "table_config_preview",
        "message_start",
        "content_chunk",
        "message_complete",
    ];
    assert_eq!(frames::names(&frames), expected);
    let shown = frames::data(&frames, "table_config_preview");
    assert_eq!(keys(shown), ["description", "config", "is_update", "config_id", "name", "preview_id"]);
    assert_eq!(shown["config"].to_string(), retitled().to_string(), "the document is shown as it came");
    let said = json!({
        "description": "Another title", "config": retitled(), "is_update": true, "config_id": ORDERS,
        "name": "orders_table", "preview_id": shown["preview_id"]
    });
    assert_eq!(*shown, said);
    let message = "The preview is on the user's screen. Nothing is saved until the user accepts it there.";
    let sent = json!({"status": "preview_sent", "message": message, "preview_id": shown["preview_id"]});
    assert_eq!(read, [Ok(sent)]);
}

#[tokio::test]
async fn a_preview_of_a_new_configuration_has_no_id_and_is_named_by_its_title() {
    let preview = json!({"config": retitled(), "description_of_changes": "A new one", "id": ""});
    let (_, frames) = Asking::default().run(&[("preview_table_config", preview)]).await;
    let shown = frames::data(&frames, "table_config_preview");
    assert_eq!(keys(shown), ["description", "config", "is_update", "name", "preview_id"]);
    assert_eq!((&shown["is_update"], &shown["name"]), (&json!(false), &json!("Open orders")));
}

#[tokio::test]
async fn what_a_preview_replaces_is_what_it_names_and_only_else_the_screen() {
    let rows = [
        (json!({"id": null}), Some(ORDERS), "orders_table", "nothing is named: the screen"),
        (json!({"id": " ", "new": false}), Some(ORDERS), "orders_table", "blank is nothing"),
        (json!({"name": "orders_table"}), Some(ORDERS), "orders_table", "the open one by its own name"),
        (json!({"name": "brand_new"}), None, "brand_new", "another name is another configuration"),
        (json!({"name": "brand_new", "new": false}), None, "brand_new", "models fill in what they do not mean"),
        (json!({"name": "brand_new", "id": ORDERS}), Some(ORDERS), "brand_new", "another name for a named one"),
        (json!({"name": "orders_table", "new": true}), None, "orders_table", "new is said"),
        (json!({"new": true}), None, "Open orders", "new is said, its title names it"),
        (json!({"id": "inventory_table"}), Some(INVENTORY), "inventory_table", "a name where the id belongs"),
        (json!({"id": ORDERS.replace('-', "")}), Some(ORDERS), "orders_table", "a UUID in another form"),
    ];
    for (more, config_id, name, reason) in rows {
        let asking = Asking { context: Some(json!({"config_id": ORDERS})), ..Asking::default() };
        let (_, frames) = asking.run(&[preview(retitled(), more)]).await;
        let shown = frames::data(&frames, "table_config_preview");
        let said = (shown["is_update"].as_bool(), shown["config_id"].as_str(), shown["name"].as_str());
        assert_eq!(said, (Some(config_id.is_some()), config_id, Some(name)), "{reason}");
    }
}

#[tokio::test]
async fn an_id_that_names_nothing_does_not_give_way_to_the_screen() {
    let asking = Asking { context: Some(json!({"config_id": ORDERS})), ..Asking::default() };
    let update = json!({"id": "1234", "config": retitled()});
    let (read, frames) = asking
        .run(&[
            preview(retitled(), json!({"id": "1234"})),
            ("update_table_config", update),
            preview(retitled(), json!({"id": ORDERS, "new": true})),
        ])
        .await;
    let unknown =
        "\"1234\" is neither the UUID nor the name of a stored configuration; list_table_configs has them all";
    let both = "bad params: new: a new configuration has no id; leave one of them out";
    assert_refused(&read, &[(unknown, "a preview"), (unknown, "an update"), (both, "new, and an id")]);
    assert!(!frames::names(&frames).contains(&"table_config_preview"));
}

#[tokio::test]
async fn what_cannot_be_saved_is_not_shown() {
    let mut visible_id = config(ORDERS);
    visible_id["visual_settings"]["columns"]["number"]["header"] = json!("Order ID");
    let mut untitled = config(ORDERS);
    untitled["title"] = json!("");
    let (read, frames) = Asking::default()
        .run(&[
            preview(visible_id, json!({})),
            preview(untitled, json!({"name": "ab"})),
            preview(json!({"title": "T", "data_source": [{"source": "orders"}]}), json!({})),
            preview(seeded(ORDERS), json!({})),
            preview(retitled(), json!({"id": "no_such_table"})),
            preview(retitled(), json!({"id": NOBODY})),
            preview(retitled(), json!({"description_of_changes": " "})),
            preview(retitled(), json!({"name": 7})),
            ("preview_table_config", json!({"description_of_changes": "x"})),
        ])
        .await;
    let codes = |read: &Value| -> Vec<String> {
        assert_eq!(read["valid"], false);
        let errors = read["errors"].as_array().unwrap();
        errors.iter().map(|error| format!("{} {}", error["Code"], error["Field"]).replace('"', "")).collect()
    };
    let invalid: Vec<_> = read[..4].iter().map(|read| codes(read.as_ref().unwrap())).collect();
    assert_eq!(invalid[0], ["VISIBLE_ID_HEADER visual_settings.columns.number.header"]);
    assert_eq!(invalid[1], ["REQUIRED title", "INVALID_VALUE name"]);
    assert_eq!(invalid[2], ["INVALID_VALUE name"], "a title too short for a name");
    assert_eq!(invalid[3], ["INVALID_CONFIG config"], "the stored object, whole");
    let expected = [
        ("\"no_such_table\" is neither the UUID nor the name of a stored configuration", "no id, no name"),
        ("HTTP 404: {\"code\":\"not_found\"", "an id that nothing has"),
        ("bad params: description_of_changes: say what changes", "nothing to tell the user"),
        ("bad params: name: invalid type: integer `7`", "a name that is no text"),
        ("bad params: missing field `config`", "no document"),
    ];
    assert_refused(&read[4..], &expected);
    assert!(!frames::names(&frames).contains(&"table_config_preview"));
}

#[tokio::test]
async fn an_accepted_preview_is_saved_and_the_model_is_told() {
    let update = json!({"id": ORDERS, "config": retitled()});
    let s = Scripted::playing([
        calls("u0", "update_table_config", &update),
        says("Not yet."),
        calls("p1", "preview_table_config", &json!({"config": retitled(), "description_of_changes": "Another title"})),
        says("Please look at it."),
        calls("u1", "update_table_config", &update),
        calls("g1", "get_table_config", &json!({})),
        says("It is saved."),
    ])
    .await;
    let frames = say(&s.app, "Save it").await;
    let first = "nothing was saved: show the change with preview_table_config first";
    assert_refused(&[read(&s, &frames, "u0")], &[(first, "nothing was previewed")]);

    let frames = say(&s.app, "Change the title").await;
    let (status, decided) = decide(&s.app, &frames, &json!({"decision": "accept", "comment": "good"})).await;
    let preview_id = frames::data(&frames, "table_config_preview")["preview_id"].clone();
    assert_eq!((status, decided), (200, json!({"preview_id": preview_id, "decision": "accept", "saved_id": ORDERS})));
    let (status, problem) = decide(&s.app, &frames, &json!({"decision": "reject"})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("already_decided")));

    let frames = say(&s.app, "And now?").await;
    let asked = s.last_asked();
    let told = asked.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].as_str().unwrap();
    let sentence = format!(
        "[The user accepted the preview of the table configuration \"orders_table\"; it is saved with id {ORDERS}. \
         Their comment: \"good\"]"
    );
    assert!(told.starts_with(&sentence) && told.ends_with("And now?"), "{told}");
    assert_eq!(read(&s, &frames, "u1"), Ok(json!({"status": "already_saved", "config_id": ORDERS})));
    let saved = read(&s, &frames, "g1").unwrap();
    assert_eq!(saved["config"].to_string(), retitled().to_string(), "unknown keys and their order included");
    let kept = |key: &str| (saved[key].clone(), seeded(ORDERS)[key].clone());
    for key in ["id", "name", "description", "created_by", "created_date"] {
        assert_eq!(kept(key).0, kept(key).1, "{key}");
    }
    assert_eq!(saved["updated_by"], ADA, "saved with Ada's own token");
}

#[tokio::test]
async fn a_rejected_preview_changes_nothing_and_the_model_is_told() {
    let s = Scripted::playing([
        calls("p1", "preview_table_config", &json!({"config": retitled(), "description_of_changes": "Another title"})),
        says("Please look at it."),
        calls("g1", "get_table_config", &json!({})),
        calls("u1", "update_table_config", &json!({"config": retitled()})),
        says("Nothing is saved."),
    ])
    .await;
    let frames = say(&s.app, "Change the title").await;
    let (status, decided) = decide(&s.app, &frames, &json!({"decision": "reject"})).await;
    let preview_id = frames::data(&frames, "table_config_preview")["preview_id"].clone();
    assert_eq!((status, decided), (200, json!({"preview_id": preview_id, "decision": "reject"})));
    let frames = say(&s.app, "What now?").await;
    let asked = s.asked();
    let told = asked[2].last().unwrap()["content"].as_str().unwrap();
    let sentence = r#"[The user rejected the preview of the table configuration "orders_table"; nothing was saved."#;
    assert!(told.starts_with(sentence), "{told}");
    assert_eq!(read(&s, &frames, "g1"), Ok(seeded(ORDERS)));
    assert_refused(&[read(&s, &frames, "u1")], &[("nothing was saved: show the change", "rejected")]);
}

#[tokio::test]
async fn a_save_that_the_backend_refuses_leaves_the_preview_open() {
    let system = json!({"config": config(SUPPLIERS), "description_of_changes": "The same again", "id": SUPPLIERS});
    let s = Scripted::playing([calls("p1", "preview_table_config", &system), says("Look.")]).await;
    let frames = say(&s.app, "Suppliers, please").await;
    for _ in 0..2 {
        let (status, problem) = decide(&s.app, &frames, &json!({"decision": "accept"})).await;
        assert_eq!((status, &problem["code"]), (502, &json!("backend_refused")));
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("a table config of the system cannot be changed"), "{detail}");
    }
    assert_eq!(decide(&s.app, &frames, &json!({"decision": "reject"})).await.0, 200);
}

#[tokio::test]
async fn a_plain_user_previews_too_and_only_their_owner_decides() {
    let s = Scripted::playing([
        calls("p1", "preview_table_config", &json!({"config": retitled(), "description_of_changes": "Another title"})),
        says("Look."),
    ])
    .await;
    let ben = s.app.token_of("22222222-2222-4222-8222-222222222222", None, &["USER"]);
    let body = json!({"message": "Go", "context_type": "tables", "context": {"config_id": ORDERS}});
    let frames = frames::parse(&s.app.post_as(&ben, &body).await.text().await.unwrap());
    let (status, problem) = decide(&s.app, &frames, &json!({"decision": "accept"})).await;
    assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "Ada sees nothing of Ben's");
    let id = frames::data(&frames, "table_config_preview")["preview_id"].as_str().unwrap();
    let url = s.app.url(&format!("/v1/agent/previews/{id}/decision"));
    let decision = json!({"decision": "accept"});
    let response = s.app.http.post(url).bearer_auth(&ben).json(&decision).send().await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn unknown_arguments_are_no_obstacle() {
    let preview = json!({"config": retitled().to_string(), "description_of_changes": "x", "mood": "good"});
    let read = results(&[("preview_table_config", preview)]).await.remove(0).unwrap();
    assert_eq!(read["status"], "preview_sent", "a document as text and an argument that nobody knows");
}

#[tokio::test]
async fn a_preview_that_waits_is_read_with_the_configuration_as_it_is() {
    let arguments = json!({"config": retitled(), "description_of_changes": "Another title"});
    let named = json!({"config": retitled(), "description_of_changes": "x", "name": "open_orders", "id": ORDERS, "description": "Open"});
    let new = json!({"config": retitled(), "description_of_changes": "x", "name": "open_orders", "new": true});
    let rows = [
        (
            arguments,
            json!({"name": "orders_table", "description": "All orders with their customers"}),
            true,
            "its label stays",
        ),
        (named, json!({"name": "open_orders", "description": "Open"}), true, "another label"),
        (new, json!({"name": "open_orders", "description": ""}), false, "a new one"),
    ];
    for (arguments, label, is_update, reason) in rows {
        let s = Scripted::playing([calls("p1", "preview_table_config", &arguments), says("Look.")]).await;
        let frames = say(&s.app, "Go").await;
        let shown = frames::data(&frames, "table_config_preview");
        let url = s.app.url(&format!("/v1/agent/previews/{}", shown["preview_id"].as_str().unwrap()));
        let response = s.app.http.get(url).bearer_auth(&s.app.token).send().await.unwrap();
        let waiting: Value = response.json().await.unwrap();
        let body = json!({"name": label["name"], "description": label["description"], "config": retitled()});
        let mut expected = json!({
            "preview_id": shown["preview_id"],
            "state": "waiting",
            "conversation_id": "c",
            "what": "table configuration",
            "name": label["name"],
            "body": body,
            "created_at": waiting["created_at"],
            "expires_at": waiting["expires_at"],
        });
        if is_update {
            expected["existing_id"] = json!(ORDERS);
            let description = "All orders with their customers";
            expected["current"] = json!({"name": "orders_table", "description": description, "config": config(ORDERS)});
        }
        assert_eq!(waiting, expected, "{reason}");
    }
}
