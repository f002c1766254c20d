//! Typed payloads at the boundary: shown to the client, kept with the conversation, read again by the model.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::frames::{self, data, names};
use crate::support::model::{Script, Scripted, calls, says};
use crate::support::upstream::{Answer, Upstream};

const PROFILE: &str = r#"
id = "search"
context_type = "search"
instructions = ["workflow/role.md"]
tools = ["find", "get_payload"]
payload_types = ["found"]
"#;

const TYPES: &str = r#"
[[payload_type]]
name = "found"
description = "What was found"
summary = "{{ data.items|length }} items"
"#;

const TOOLS: &str = r#"
[[tool]]
name = "find"
description = "Finds."
[tool.request]
path = "/v1/find"
[tool.result]
text = "Found {{ result.items|length }}."
payload = "found"
"#;

async fn scripted(turns: impl IntoIterator<Item = Script>) -> (Scripted, Upstream) {
    let folder = tempfile::tempdir().unwrap();
    let files = [("profiles/search.toml", PROFILE), ("payloads/search.toml", TYPES), ("tools/search.toml", TOOLS)];
    for (path, text) in files {
        let path = folder.path().join("config").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    let backend = Upstream::choosing(|_| Some(Answer::ok("application/json", r#"{"items":[1,{"a":"ü"}]}"#))).await;
    let (model_url, backend_url) = (format!("{}/v1", model.url()), backend.url());
    let settings = [
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", model_url.as_str()),
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", backend_url.as_str()),
    ];
    (Scripted { app: TestApp::start_in(folder, &settings).await, model }, backend)
}

fn body(conversation: &str) -> Value {
    json!({"message": "Find it", "context_type": "search", "conversation_id": conversation})
}

#[tokio::test]
async fn a_payload_is_shown_behind_its_calls_result_and_told_in_whole_answers() {
    let finds = || [calls("c1", "find", &json!({})), says("There.")];
    let (s, _backend) = scripted(finds().into_iter().chain(finds())).await;
    let shown = s.app.chat(&body("c")).await;
    let expected = [
        "message_start",
        "tool_call_start",
        "tool_call_result",
        "payload",
        "message_start",
        "content_chunk",
        "message_complete",
    ];
    assert_eq!(names(&shown), expected);
    let payload = data(&shown, "payload");
    let found = |id: &Value| json!({"payload_id": id, "type": "found", "data": {"items": [1, {"a": "ü"}]}, "summary": "2 items"});
    assert_eq!(*payload, found(&payload["payload_id"]));

    let request = s.app.http.post(s.app.url("/v1/agent/chat")).bearer_auth(&s.app.token).json(&body("c"));
    let answer: Value = request.header("accept", "application/json").send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["payloads"], json!([found(&answer["payloads"][0]["payload_id"])]));
    assert_eq!(answer.get("suggestions"), None);

    let url = s.app.url("/v1/agent/conversations/c/export");
    let export: Value = s.app.http.get(url).bearer_auth(&s.app.token).send().await.unwrap().json().await.unwrap();
    let first = export["payloads"][0].clone();
    let mut expected = found(&payload["payload_id"]);
    expected["run_id"] = export["runs"][0]["id"].clone();
    assert_eq!((first, export["payloads"].as_array().unwrap().len()), (expected, 2));
}

#[tokio::test]
async fn a_model_reads_a_payload_of_its_own_conversation_alone() {
    let (s, _backend) = scripted([calls("c1", "find", &json!({})), says("There.")]).await;
    let frames = s.app.chat(&body("c")).await;
    let id = data(&frames, "payload")["payload_id"].as_str().unwrap().to_owned();
    let Scripted { app, model } = s;
    let data_folder = app.stop().await;
    drop(model);

    let ben = "22222222-2222-4222-8222-222222222222";
    let ids = [id.clone(), format!(" [{id}]"), "00000000".to_owned(), "x".to_owned(), id.clone(), id.clone()];
    let turns = ids
        .iter()
        .enumerate()
        .map(|(row, id)| [calls(&format!("row_{row}"), "get_payload", &json!({"payload_id": id})), says("Read.")]);
    let model = Upstream::script(turns.flatten().map(Script::answer)).await;
    let url = format!("{}/v1", model.url());
    let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", url.as_str())];
    let s = Scripted { app: TestApp::start_in(data_folder, &settings).await, model };
    let whole = json!({"type": "found", "summary": "2 items", "data": {"items": [1, {"a": "ü"}]}});
    let none = |id: &str| json!({"error": format!("this conversation has no payload {id}")});
    let ada = s.app.token.clone();
    let rows = [
        (&ada, "c", whole.clone(), "its own"),
        (&ada, "c", whole, "as it stands in a list"),
        (&ada, "c", none("00000000"), "one that is not there"),
        (&ada, "c", json!({"error": "bad params: payload_id must be 8 hex digits"}), "no id"),
        (&ada, "other", none(&id), "one of another conversation"),
        (&s.app.token_of(ben, None, &[]), "c", none(&id), "another user's"),
    ];
    for (row, (token, conversation, expected, reason)) in rows.into_iter().enumerate() {
        let response = s.app.post_as(token, &body(conversation)).await;
        let text = response.text().await.unwrap();
        assert_eq!(names(&frames::parse(&text)).last(), Some(&"message_complete"), "{reason}");
        assert_eq!(s.result_of(&format!("row_{row}")), expected, "{reason}");
    }
}
