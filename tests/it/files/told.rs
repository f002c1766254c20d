//! What users are told of files that a model is not shown, and of what it takes; what exports say of files.

use serde_json::{Value, json};

use super::{PIXEL, get, pixel, playing, uploaded};
use crate::openai;
use crate::support::app::TestApp;
use crate::support::frames::{Frame, data, names, text};
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::upstream::Answer;
use crate::support::wait::eventually;

const SEES: &str = "gpt-4o";
const READS: &str = "gpt-3.5-turbo";

const MESSAGE: &str = "Not shown to the model: a.png (this model takes no images)";

fn notices(frames: &[Frame]) -> Vec<&Value> {
    frames.iter().filter(|frame| frame.event == "notice").map(|frame| &frame.data).collect()
}

fn ask(ids: &[&Value]) -> Value {
    let attachments: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    json!({"message": "What?", "context_type": "workflow", "conversation_id": "c", "attachments": attachments})
}

#[tokio::test]
async fn the_user_of_a_model_that_cannot_see_is_told_once_in_a_run() {
    let turns = [calls("t1", "discover_trigger_types", &json!({})), says("I cannot see it."), says("No.")];
    let s = playing(READS, turns).await;
    let (image, table) = (uploaded(&s.app, "a.png", pixel()).await, uploaded(&s.app, "t.csv", "a,b").await);
    let frames = s.app.chat(&ask(&[&image["id"], &table["id"]])).await;
    assert_eq!(
        notices(&frames),
        [&json!({"code": "files_not_shown", "message": MESSAGE, "files": [image["id"]]})],
        "of two turns one tells, and only of what is not shown"
    );
    assert_eq!(names(&frames)[..2], ["message_start", "notice"], "before all text");
    assert_eq!(text(&frames), "I cannot see it.", "the answer is the model's alone");
    assert_eq!(notices(&s.app.say("c", "Sure?").await), [] as [&Value; 0], "a file of before is no news");
    let view: Value = get(&s.app, &s.app.token, "/v1/agent/conversations/c").await.json().await.unwrap();
    assert_eq!(view["messages"][2]["text"], "I cannot see it.");
    let kept = json!([{"code": "files_not_shown", "message": MESSAGE, "files": [image["id"]]}]);
    let told: Vec<&Value> = view["messages"].as_array().unwrap().iter().map(|message| &message["notices"]).collect();
    assert_eq!(
        told,
        [&Value::Null, &kept, &Value::Null, &Value::Null, &Value::Null],
        "where it was told, also afterwards"
    );
    let chat: Value = get(&s.app, &s.app.token, "/v1/ai-sdk/chat/c").await.json().await.unwrap();
    let parts = chat["messages"][1]["parts"].as_array().unwrap();
    let kinds: Vec<&str> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["step-start", "data-notice", "dynamic-tool", "step-start", "text"]);
    assert_eq!(parts[1]["data"], kept[0]);
    for (format, line) in [("markdown", "- Not shown to the model: a"), ("text", "  [Not shown to the model: a.png")] {
        let path = format!("/v1/agent/conversations/c/export?format={format}");
        let text = get(&s.app, &s.app.token, &path).await.text().await.unwrap();
        assert_eq!(text.matches(line).count(), 1, "{text}");
    }
}

#[tokio::test]
async fn a_model_that_sees_is_no_reason_to_tell_anything() {
    let s = playing(SEES, [says("A pixel.")]).await;
    let image = uploaded(&s.app, "a.png", pixel()).await;
    assert_eq!(notices(&s.app.chat(&ask(&[&image["id"]])).await), [] as [&Value; 0]);
}

#[tokio::test]
async fn a_fallback_that_cannot_see_tells_so() {
    let settings = [("LLM__OPENAI__MODEL", SEES), ("LLM__FALLBACKS", "openai:gpt-3.5-turbo")];
    let gone = Answer::status(404, "application/json", r#"{"error": {"code": "model_not_found", "message": "gone"}}"#);
    let s = openai::with(&[], &settings, [gone, says("I cannot see it.").answer()]).await;
    let image = uploaded(&s.app, "a.png", pixel()).await;
    let frames = s.app.chat(&ask(&[&image["id"]])).await;
    let told: Vec<&Value> = notices(&frames).into_iter().map(|notice| &notice["message"]).collect();
    assert_eq!(told, [&json!(MESSAGE)]);
    let asked: Vec<String> = s.model.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(asked[0].contains(PIXEL) && !asked[1].contains(PIXEL), "{asked:?}");
    assert!(asked[1].contains("not shown, this model takes no images"), "{}", asked[1]);
}

/// The answer to a question with a picture on a wire that has nothing but text.
async fn said(s: &Scripted, path: &str, mut body: Value, more: &Value) -> String {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let response = s.app.http.post(s.app.url(path)).bearer_auth(&s.app.token).json(&body).send().await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{path}: {text}");
    text
}

fn chat() -> Value {
    let url = format!("data:image/png;base64,{PIXEL}");
    json!({"model": "workflow", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": url}}]}]})
}

#[tokio::test]
async fn wires_without_a_place_for_notices_have_them_in_the_text() {
    let url = format!("data:image/png;base64,{PIXEL}");
    let responses = json!({"model": "workflow", "input": [{"role": "user", "content": [
        {"type": "input_text", "text": "What?"}, {"type": "input_image", "image_url": url}]}]});
    let messages = json!({"model": "workflow", "max_tokens": 100, "messages": [{"role": "user", "content": [
        {"type": "text", "text": "What?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}]}]});
    for (path, body) in [("/v1/chat/completions", chat()), ("/v1/responses", responses), ("/v1/messages", messages)] {
        let s = playing(READS, [says("I cannot see it.")]).await;
        let text = said(&s, path, body, &json!({})).await;
        let expected = "(this model takes no images)]\\n\\nI cannot see it.";
        assert!(text.contains("[Not shown to the model: ") && text.contains(expected), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_response_of_which_the_events_are_gone_still_has_it() {
    let settings = [("LLM__OPENAI__MODEL", READS), ("RUNS__RETENTION_S", "0")];
    let s = openai::with(&[], &settings, [says("I cannot see it.").answer()]).await;
    let url = format!("data:image/png;base64,{PIXEL}");
    let body = json!({"model": "workflow", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]});
    let answer: Value = serde_json::from_str(&said(&s, "/v1/responses", body, &json!({})).await).unwrap();
    let path = format!("/v1/responses/{}", answer["id"].as_str().unwrap());
    eventually("its events are gone", async || {
        let gone = get(&s.app, &s.app.token, &format!("{path}?stream=true&starting_after=1")).await;
        (gone.status() == 410).then_some(())
    })
    .await;
    let again: Value = get(&s.app, &s.app.token, &path).await.json().await.unwrap();
    let text = |response: &Value| response["output"][0]["content"][0]["text"].clone();
    assert_eq!(text(&again), "[Not shown to the model: image.png (this model takes no images)]\n\nI cannot see it.");
    assert_eq!(text(&again), text(&answer));
}

#[tokio::test]
async fn wires_with_parts_of_their_own_have_it_beside_the_text() {
    let url = format!("data:image/png;base64,{PIXEL}");
    let ai_sdk = json!({"id": "c", "messages": [{"id": "m", "role": "user", "parts": [
        {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": url}, {"type": "text", "text": "What?"}]}]});
    let ag_ui = json!({"threadId": "t", "runId": "r", "tools": [], "context": [], "state": {}, "forwardedProps": {},
        "messages": [{"id": "m", "role": "user", "content": [{"type": "text", "text": "What?"},
            {"type": "image", "source": {"type": "data", "value": PIXEL, "mimeType": "image/png"}}]}]});
    for (path, body, expected) in [
        ("/v1/ai-sdk/chat?context_type=workflow", ai_sdk, r#""type":"data-notice""#),
        ("/v1/ag-ui/workflow", ag_ui, r#""name":"notice""#),
    ] {
        let s = playing(READS, [says("I cannot see it.")]).await;
        let text = said(&s, path, body, &json!({})).await;
        assert!(text.contains(expected) && text.contains("files_not_shown"), "{path}: {text}");
        assert!(!text.contains("[Not shown"), "{path}: {text}");
    }
}

#[tokio::test]
async fn an_answer_in_a_form_stays_in_its_form() {
    let s = playing(READS, [says(r#"{"city":"Ulm"}"#)]).await;
    let format = json!({"response_format": {"type": "json_object"}});
    let answer: Value = serde_json::from_str(&said(&s, "/v1/chat/completions", chat(), &format).await).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], json!(r#"{"city":"Ulm"}"#));
}

#[tokio::test]
async fn profiles_say_what_their_models_take_and_the_server_what_it_keeps() {
    let profile = "id = \"two\"\ncontext_type = \"two\"\n[model.request]\n\
                   models = { blind = \"openai:gpt-3.5-turbo\", local = \"openai:llava-7b\" }\n";
    let files = [("profiles/two.toml", profile)];
    let listed =
        async |app: &TestApp| -> Value { get(app, &app.token, "/v1/agent/profiles").await.json().await.unwrap() };
    let s = openai::with(&files, &[("LLM__OPENAI__MODEL", SEES), ("FILES__PER_MESSAGE", "3")], []).await;
    let list = listed(&s.app).await;
    assert_eq!(list["files"], json!({"max_bytes": 20 << 20, "per_message": 3}));
    let two = list["items"].as_array().unwrap().iter().find(|item| item["context_type"] == "two").unwrap();
    assert_eq!(two["input"], json!(["text", "image", "pdf"]));
    assert_eq!(two["inputs"], json!({"blind": ["text"], "local": ["text", "image"]}));

    let settings = [("LLM__OPENAI__MODEL", SEES), ("LLM__OPENAI__INPUT", "text"), ("FILES__URL", "off")];
    let s = openai::with(&files, &settings, []).await;
    let list = listed(&s.app).await;
    assert_eq!(list.get("files"), None, "none are kept");
    assert!(list["items"].as_array().unwrap().iter().all(|item| item["input"] == json!(["text"])), "{list}");
}

#[tokio::test]
async fn exports_name_files_and_those_that_are_gone() {
    let s = playing(SEES, [says("A pixel.")]).await;
    let image = uploaded(&s.app, "a_1.png", pixel()).await;
    s.app.chat(&ask(&[&image["id"]])).await;
    let export = async |format: &str| -> String {
        let path = format!("/v1/agent/conversations/c/export?format={format}");
        get(&s.app, &s.app.token, &path).await.text().await.unwrap()
    };
    let id = image["id"].as_str().unwrap();
    let about = format!("({id}, image/png, {} bytes", pixel().len());
    for is_kept in [true, false] {
        let whole = export("json").await;
        assert!(!whole.contains(&PIXEL[..40]), "no bytes: {whole}");
        let whole: Value = serde_json::from_str(&whole).unwrap();
        let file = json!({"id": id, "name": "a_1.png", "media_type": "image/png", "bytes": pixel().len(),
            "url": image["url"], "is_kept": is_kept});
        assert_eq!(whole["runs"][0]["messages"][0]["files"], json!([file]));
        assert_eq!(whole["runs"][0]["messages"][1].get("files"), None);
        let end = if is_kept { ")" } else { ", not kept any more)" };
        let (markdown, plain) = (export("markdown").await, export("text").await);
        assert!(markdown.contains(&format!("\n- File a\\_1.png {about}{end}\n")), "{markdown}");
        assert!(plain.contains(&format!("\n  [File a_1.png {about}{end}]\n")), "{plain}");
        let delete = s.app.http.delete(s.app.url(&format!("/v1/agent/files/{id}"))).bearer_auth(&s.app.token);
        delete.send().await.unwrap();
    }
}

#[tokio::test]
async fn what_a_client_tells_of_a_file_that_nobody_knows_is_a_sentence() {
    let s = playing(SEES, [says("Gone.")]).await;
    let unknown = "file-11111111-1111-4111-8111-111111111111";
    let body = json!({"model": "workflow", "messages": [
        {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "file", "file": {"file_id": unknown}}]},
        {"role": "assistant", "content": "A pixel."},
        {"role": "user", "content": "Sure?"},
    ]});
    assert_eq!(openai::post(&s, &[], &body).await.status(), 200);
    let asked = json!(s.last_asked()).to_string();
    assert!(asked.contains("[file file, 0 bytes: not shown, it is not kept any more]"), "{asked}");
}

#[tokio::test]
async fn no_log_and_no_trail_has_the_bytes_of_a_file() {
    let s = playing(SEES, [says("A pixel.")]).await;
    let body = json!({"message": "What?", "context_type": "workflow", "conversation_id": "c", "background": true,
        "attachments": [{"data": PIXEL, "name": "a.png"}]});
    let request = s.app.http.post(s.app.url("/v1/agent/chat")).bearer_auth(&s.app.token).json(&body);
    let begun: Value = request.header("accept", "application/json").send().await.unwrap().json().await.unwrap();
    let run = begun["id"].as_str().unwrap();
    // Read again from its beginning.
    let replay = get(&s.app, &s.app.token, &format!("/v1/agent/runs/{run}/events")).await.text().await.unwrap();
    assert!(replay.contains("A pixel."), "{replay}");
    let trail = get(&s.app, &s.app.token, "/v1/agent/conversations/c/trail").await.text().await.unwrap();
    for said in [&replay, &trail] {
        assert!(!said.contains(&PIXEL[..40]), "{said}");
    }
    assert!(json!(s.last_asked()).to_string().contains(PIXEL), "the control: the model has them");
}

#[tokio::test]
async fn a_run_that_breaks_off_is_charged_for_the_picture_that_it_was_shown() {
    let mut charged = Vec::new();
    for model in [READS, SEES] {
        let s = playing(model, [turn().text("A pi").breaks()]).await;
        let image = uploaded(&s.app, "a.png", pixel()).await;
        let frames = s.app.chat(&ask(&[&image["id"]])).await;
        assert_eq!(data(&frames, "error")["code"], "provider_truncated");
        let used: Value = get(&s.app, &s.app.token, "/v1/agent/usage").await.json().await.unwrap();
        charged.push(used["total"]["input_tokens"].as_u64().unwrap_or_else(|| panic!("{used}")));
    }
    assert_eq!(charged[1] - charged[0], 1600, "{charged:?}");
}

#[tokio::test]
async fn tokens_of_files_are_counted_before_they_are_sent_and_not_by_their_base64() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    let s = playing(SEES, []).await;
    let pdf = STANDARD.encode([b"%PDF-1.7\n".to_vec(), vec![b'x'; 250_000]].concat());
    let image = STANDARD.encode(vec![0; 300_000]);
    let part = |kind: &str, media_type: &str, data: &str| json!({"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}});
    for (part, expected) in
        [(part("image", "image/png", &image), 1600..1700), (part("document", "application/pdf", &pdf), 9000..9100)]
    {
        let body = json!({"model": "workflow", "messages": [{"role": "user", "content": [part]}]});
        let request = s.app.http.post(s.app.url("/v1/messages/count_tokens")).header("x-api-key", &s.app.token);
        let counted: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
        assert!(expected.contains(&counted["input_tokens"].as_u64().unwrap()), "{counted}");
    }
}
