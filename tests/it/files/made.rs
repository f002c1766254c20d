//! Files that tools make: the model sees them, and every client is told where they are, also those that know nothing but text.

use serde_json::{Value, json};

use super::{PIXEL, get, picture, pixel};
use crate::support::model::{Script, Scripted, calls, says};
use crate::support::upstream::Answer;
use crate::support::wait::eventually;
use crate::tools::mcp::{Fake, product_with, tool};

const PROFILE: &str = r#"
id = "desk"
context_type = "desk"
instructions = ["workflow/role.md"]
tools = ["discover_entities"]
sources = ["peer"]
"#;

const HERE: &str = "https://chat.example.com";

/// The product with a tool that draws a pixel, and a model that sees.
async fn drawing(more: &[(&str, &str)], turns: impl IntoIterator<Item = Script>) -> (Fake, Scripted) {
    let fake = Fake::new(json!([tool("draw", "Draws.", true)]), |id, _| {
        let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"content": [image]}});
        Answer::ok("application/json", answer.to_string())
    })
    .await;
    let settings = [("LLM__OPENAI__MODEL", "gpt-4o"), ("SERVER__PUBLIC_URL", HERE)];
    let s = product_with(&fake.section(""), PROFILE, &[&settings, more].concat(), turns).await;
    (fake, s)
}

fn draws(answer: &str) -> [Script; 2] {
    [calls("c1", "peer__draw", &json!({})), says(answer)]
}

async fn answered(s: &Scripted, path: &str, body: &Value) -> String {
    let response = s.app.http.post(s.app.url(path)).bearer_auth(&s.app.token).json(body).send().await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{path}: {text}");
    text
}

/// A question by each wire that has nothing but text, and where it is sent.
fn questions() -> [(&'static str, Value); 3] {
    [
        ("/v1/chat/completions", json!({"model": "desk", "messages": [{"role": "user", "content": "Draw"}]})),
        ("/v1/responses", json!({"model": "desk", "input": "Draw"})),
        (
            "/v1/messages",
            json!({"model": "desk", "max_tokens": 100, "messages": [{"role": "user", "content": "Draw"}]}),
        ),
    ]
}

/// The texts of an answer, in order, whatever wire it is of.
fn texts(answer: &Value) -> Vec<&str> {
    if let Some(content) = answer["choices"][0]["message"]["content"].as_str() {
        return content.split("\n\n").collect();
    }
    let items = answer["output"].as_array().or(answer["content"].as_array()).unwrap_or_else(|| panic!("{answer}"));
    let text = |item: &'_ Value| item["text"].is_string() || item["type"] == "message";
    items
        .iter()
        .filter(|item| text(item))
        .map(|item| item["text"].as_str().or(item["content"][0]["text"].as_str()).unwrap())
        .collect()
}

/// Where the file is that a sentence tells of.
fn told_of(sentence: &str) -> &str {
    let path =
        sentence.strip_prefix(&format!("The file image.png is at {HERE}")).unwrap_or_else(|| panic!("{sentence}"));
    assert!(path.starts_with("/v1/agent/files/") && path.ends_with("/content"), "{path}");
    path
}

#[tokio::test]
async fn clients_that_know_text_alone_read_where_a_file_of_a_tool_is_and_the_model_sees_it() {
    for (path, body) in questions() {
        let (_fake, s) = drawing(&[], draws("A pixel.")).await;
        let answer: Value = serde_json::from_str(&answered(&s, path, &body).await).unwrap();
        let [sentence, said] = texts(&answer)[..] else { panic!("{path}: {answer}") };
        assert_eq!(said, "A pixel.", "{path}");
        let content = get(&s.app, &s.app.token, told_of(sentence)).await;
        assert_eq!((content.status().as_u16(), content.bytes().await.unwrap().to_vec()), (200, pixel()), "{path}");

        let asked = s.last_asked();
        let newest = asked.last().unwrap();
        assert_eq!(newest["role"], "user", "behind the result, which can be nothing but text: {asked:?}");
        assert!(newest["content"].as_array().unwrap().contains(&picture()), "{path}: {newest}");
    }
}

#[tokio::test]
async fn a_stream_tells_it_once_and_before_the_words_behind_it() {
    for (path, mut body) in questions() {
        let (_fake, s) = drawing(&[], draws("A pixel.")).await;
        body["stream"] = json!(true);
        let stream = answered(&s, path, &body).await;
        let at = |text: &str| stream.find(text).unwrap_or_else(|| panic!("{path}: no {text}: {stream}"));
        assert!(at("The file image.png is at https://chat.example.com/v1/agent/files/") < at("A pixel."), "{path}");
        let deltas =
            stream.lines().filter(|line| line.contains("delta") && line.contains("The file image.png")).count();
        assert_eq!(deltas, 1, "{path}: {stream}");
    }
}

#[tokio::test]
async fn an_answer_in_a_form_stays_in_its_form() {
    let form = |name: &str, value: Value, (path, mut body): (&'static str, Value)| {
        body[name] = value;
        (path, body)
    };
    let [chat, responses, _] = questions();
    for (path, body) in [
        form("response_format", json!({"type": "json_object"}), chat),
        form("text", json!({"format": {"type": "json_object"}}), responses),
    ] {
        let (_fake, s) = drawing(&[], draws(r#"{"drawn":true}"#)).await;
        let answer: Value = serde_json::from_str(&answered(&s, path, &body).await).unwrap();
        assert_eq!(texts(&answer), [r#"{"drawn":true}"#], "{path}");
    }
}

#[tokio::test]
async fn a_response_of_which_the_events_are_gone_still_tells_it() {
    let (_fake, s) = drawing(&[("RUNS__RETENTION_S", "0")], draws("A pixel.")).await;
    let [_, (path, body), _] = questions();
    let answer: Value = serde_json::from_str(&answered(&s, path, &body).await).unwrap();
    let path = format!("/v1/responses/{}", answer["id"].as_str().unwrap());
    eventually("its events are gone", async || {
        let gone = get(&s.app, &s.app.token, &format!("{path}?stream=true&starting_after=1")).await;
        (gone.status() == 410).then_some(())
    })
    .await;
    let again: Value = get(&s.app, &s.app.token, &path).await.json().await.unwrap();
    assert_eq!(texts(&again), texts(&answer));
    told_of(texts(&again)[0]);
    let conversation = answer["conversation"]["id"].as_str().unwrap();
    let items = get(&s.app, &s.app.token, &format!("/v1/conversations/{conversation}/items")).await;
    assert!(items.text().await.unwrap().contains(texts(&answer)[0]));
}
