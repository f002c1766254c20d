//! `PATCH` and `DELETE …/conversations/{id}`.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ask, get, refusal, said};
use crate::runs::{background, header, read_until};
use crate::support::app::TestApp;
use crate::support::model::{Scripted, says, turn};

#[tokio::test]
async fn a_renamed_conversation_keeps_its_name_and_is_the_newest_change() {
    let app = TestApp::demo().await;
    app.say("old", "hello").await;
    app.say("new", "hello there").await;
    let (status, head) = ask(&app, Method::PATCH, "/old", Some(&json!({"title": " Züge <b>&</b> \u{1F600} "}))).await;
    assert_eq!((status, &head["title"]), (200, &json!(" Züge <b>&</b> \u{1F600} ")));
    app.say("other", "hello").await;
    let list = get(&app, "").await;
    let ids: Vec<&str> = list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["other", "old", "new"]);
    assert_eq!(list["items"][1], head, "the list shows what the request was told");
    app.say("old", "More").await;
    assert_eq!(get(&app, "/old").await["title"], head["title"]);
}

#[tokio::test]
async fn a_title_that_is_none_is_refused_and_changes_nothing() {
    let app = TestApp::demo().await;
    app.say("c", "hello").await;
    let before = get(&app, "/c").await;
    let rows = [
        (json!({"title": ""}), "it is empty"),
        (json!({"title": "  "}), "it says nothing"),
        (json!({"title": "x".repeat(201)}), "it is too long"),
        (json!({"title": "two\nlines"}), "a line end"),
        (json!({"title": "nul \u{0}"}), "a control character"),
        (json!({"title": 7}), "no text"),
        (json!({"title": null}), "nothing"),
        (json!({}), "it is missing"),
        (json!("title"), "no object"),
    ];
    for (body, reason) in rows {
        assert_eq!(
            refusal(&app, Method::PATCH, "/c", Some(&body)).await,
            (422, "invalid_request".to_owned()),
            "{reason}"
        );
    }
    assert_eq!(get(&app, "/c").await, before);
    let long = "ü".repeat(200);
    assert_eq!(ask(&app, Method::PATCH, "/c", Some(&json!({"title": long}))).await.0, 200, "characters are counted");
}

#[tokio::test]
async fn a_deleted_conversation_is_gone_and_its_id_is_free() {
    let s = Scripted::playing([says("Noted."), says("Hello.")]).await;
    let first = s.app.post(&background("Remember me")).await;
    let run = header(&first, "x-run-id");
    first.text().await.unwrap();
    assert_eq!(ask(&s.app, Method::DELETE, "/c", None).await, (204, Value::Null));
    let missing = (404, "not_found".to_owned());
    for path in ["/c", "/c/export", "/c/trail"] {
        assert_eq!(refusal(&s.app, Method::GET, path, None).await, missing, "{path}");
    }
    assert_eq!(refusal(&s.app, Method::DELETE, "/c", None).await, missing, "it is deleted once");
    for path in ["", "/events"] {
        let url = s.app.url(&format!("/v1/agent/runs/{run}{path}"));
        let answer = s.app.http.get(url).bearer_auth(&s.app.token).send().await.unwrap();
        assert_eq!(answer.status(), 404, "its runs are gone with it");
    }
    assert_eq!(get(&s.app, "").await, json!({"items": []}));
    s.app.say("c", "Who am I?").await;
    assert_eq!(s.last_asked().len(), 2, "nothing of it is left for the model either");
    assert_eq!(said(&s.app, "c").await, ["user: Who am I?", "assistant: Hello."]);
}

#[tokio::test]
async fn deleting_a_conversation_ends_its_live_run() {
    let hanging = turn().text("On and").hangs().answer();
    let s = Scripted::with(&[], [hanging, says("Hello.").answer()]).await;
    let mut live = s.app.post(&background("Talk")).await;
    read_until(&mut live, "On and").await;
    assert_eq!(ask(&s.app, Method::DELETE, "/c", None).await.0, 204);
    // The stream ends with whatever its log had last, and the model is left alone.
    live.text().await.unwrap();
    s.model.clients_gone(1).await;
    s.app.say("c", "Anew").await;
    assert_eq!(said(&s.app, "c").await, ["user: Anew", "assistant: Hello."]);
}

#[tokio::test]
async fn what_is_no_id_is_nobodys_conversation() {
    let app = TestApp::demo().await;
    let missing = (404, "not_found".to_owned());
    for id in ["unknown", "a%20b", "%ff", "%00", &"x".repeat(129)] {
        for (method, path) in [
            (Method::GET, format!("/{id}")),
            (Method::DELETE, format!("/{id}")),
            (Method::GET, format!("/{id}/export")),
            (Method::GET, format!("/{id}/trail")),
        ] {
            assert_eq!(refusal(&app, method, &path, None).await, missing, "{path}");
        }
        let title = json!({"title": "Mine"});
        assert_eq!(refusal(&app, Method::PATCH, &format!("/{id}"), Some(&title)).await, missing, "{id}");
    }
}
