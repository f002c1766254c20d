//! The official clients: pictures in their messages reach the model, and their `files` keep and name what is sent.

use serde_json::{Value, json};

use super::{PIXEL, playing};
use crate::support::model::{Scripted, says};
use crate::support::{node, python};

/// What a script's step makes of a product whose model sees; `None` where its client is not installed.
async fn step(script: &str, step: &str, answers: &[&str]) -> Option<(Value, Scripted)> {
    let s = playing("gpt-4o", answers.iter().map(|answer| says(answer))).await;
    let seen = match script {
        "messages.py" => python::run("anthropic-python", &[script, step, "workflow"], &s.app).await?,
        "responses.py" => python::run("openai-python", &[script, step, "workflow"], &s.app).await?,
        script => node::run(script, &[step, "workflow"], &s.app).await?,
    };
    Some((seen, s))
}

#[tokio::test]
async fn a_picture_of_every_official_client_reaches_the_model() {
    for script in ["openai.mjs", "messages.mjs", "responses.mjs", "messages.py", "responses.py"] {
        let Some((seen, s)) = step(script, "pictures", &["One.", "Two."]).await else { continue };
        assert_eq!(seen["said"], json!(["One.", "Two."]), "{script}");
        let asked: Vec<String> = s.model.requests().iter().map(|request| request.json().to_string()).collect();
        let picture = format!("data:image/png;base64,{PIXEL}");
        let shown: Vec<usize> = asked.iter().map(|body| body.matches(&picture).count()).collect();
        assert_eq!(shown, [1, 1], "{script}: by its bytes, and by its id or through another client");
    }
}

#[tokio::test]
async fn node_keeps_files_of_openais_client_and_names_them() {
    let Some((seen, s)) = step("openai.mjs", "files", &["3."]).await else { return };
    let expected = json!({"kept": ["file", "prices.md", "user_data", true], "ends": 3600, "found": true,
        "listed": ["other.txt", "prices.md"], "byPurpose": [true], "content": true, "said": "3.", "deleted": true,
        "gone": "not_found"});
    assert_eq!(seen, expected);
    assert!(json!(s.last_asked()).to_string().contains("Tea is 3."));
}

#[tokio::test]
async fn node_keeps_files_of_anthropics_client_and_names_them() {
    let Some((seen, s)) = step("messages.mjs", "files", &["3."]).await else { return };
    let expected = json!({"kept": ["file", "prices.md", "text/markdown", true, true], "other": "other.txt",
        "found": true, "listed": ["other.txt", "prices.md"], "content": true, "said": "3.", "deleted": "file_deleted",
        "gone": "not_found_error"});
    assert_eq!(seen, expected);
    assert!(json!(s.last_asked()).to_string().contains("Tea is 3."));
}
