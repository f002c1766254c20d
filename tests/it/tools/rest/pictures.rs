//! Answers of an API that are pictures: kept, shown to the model, and told to the client.

use serde_json::{Value, json};

use super::{Setup, answer};
use crate::files::{get, picture, pixel};
use crate::support::frames;
use crate::support::model::{calls, says};
use crate::support::upstream::Answer;

const TOOLS: &str = r#"
[[tool]]
name = "chart"
description = "A chart."
request = { path = "/v1/chart" }

[[tool]]
name = "render"
description = "Draws a chart anew."
approval = "auto"
request = { method = "POST", path = "/v1/chart" }
"#;

#[tokio::test]
async fn a_picture_is_kept_and_the_model_sees_it() {
    for (tool, method) in [("chart", "GET"), ("render", "POST")] {
        let setup = Setup { settings: vec![("LLM__OPENAI__MODEL", "gpt-4o")], ..Setup::of(TOOLS) };
        let turns = [calls("c1", tool, &json!({})), says("A pixel.")];
        let (s, backend) = setup.start(turns, |_| Some(Answer::ok("image/png; q=1", pixel()))).await;
        let frames = s.app.chat(&json!({"message": "Draw", "context_type": "mine"})).await;
        let file = frames::data(&frames, "file");
        assert_eq!(json!([file["name"], file["media_type"]]), json!(["image.png", "image/png"]));
        let content = get(&s.app, &s.app.token, file["url"].as_str().unwrap()).await;
        assert_eq!(content.bytes().await.unwrap(), pixel());
        assert_eq!(s.result_of("c1"), json!("[an image, image/png, image.png: as follows]"));
        let asked = s.last_asked();
        assert!(asked.last().unwrap()["content"].as_array().unwrap().contains(&picture()), "{asked:?}");
        let sent = &backend.requests()[0];
        let expected = (method, Some("application/json, image/*;q=0.5"));
        assert_eq!((sent.method.as_str(), sent.header("accept")), expected);
    }
}

#[tokio::test]
async fn a_picture_that_cannot_be_kept_is_a_sentence_or_an_error() {
    let large = vec![0; (5 << 20) + 1];
    let rows: [(&str, Vec<u8>, Result<Value, String>); 3] = [
        (
            "image/svg+xml",
            b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(),
            Ok(json!(
                "[an image, image/svg+xml: it cannot be shown here, only PNG, JPEG, WebP and GIF images, PDF documents and texts in UTF-8 are taken]"
            )),
        ),
        (
            "image/png",
            pixel()[..20].to_vec(),
            Ok(json!(
                "[an image, image/png: it cannot be shown here, the image cannot be read, or has too many pixels]"
            )),
        ),
        ("image/png", large, Err("the backend's answer is larger than 5242880 bytes".to_owned())),
    ];
    for (media_type, bytes, expected) in rows {
        let call = [("c1", "chart", json!({}))];
        let ran = Setup::of(TOOLS).calling(&call, move |_| Some(Answer::ok(media_type, bytes.clone()))).await;
        assert_eq!(ran.read, [expected], "{media_type}");
    }
    let call = [("c1", "chart", json!({}))];
    let ran = Setup::of(TOOLS).calling(&call, |_| answer(&json!({"rows": 2}))).await;
    assert_eq!(ran.read, [Ok(json!({"rows": 2}))], "all else is JSON");
}
