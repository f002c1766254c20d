//! Files of users at the boundary: kept, read, deleted; and what models are sent of them, whatever wire they came by.

mod checks;
mod clients;
mod kept;
mod made;
mod refused;
mod s3;
mod sdk;
mod sent;
mod told;
mod users;

use serde_json::{Value, json};

use crate::openai;
use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted};

/// A picture of one pixel, in base64.
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The same as bytes.
pub fn pixel() -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(PIXEL).unwrap()
}

/// The product with a scripted model of that name.
pub async fn playing(model: &str, turns: impl IntoIterator<Item = Script>) -> Scripted {
    openai::with(&[], &[("LLM__OPENAI__MODEL", model)], turns.into_iter().map(Script::answer)).await
}

/// Uploads a file of the user of `token`.
pub async fn upload(app: &TestApp, token: &str, name: &str, bytes: impl Into<reqwest::Body>) -> reqwest::Response {
    let request = app.http.post(app.url(&format!("/v1/agent/files?name={name}"))).bearer_auth(token).body(bytes);
    request.send().await.unwrap()
}

/// The same, kept.
pub async fn uploaded(app: &TestApp, name: &str, bytes: impl Into<reqwest::Body>) -> Value {
    let response = upload(app, &app.token, name, bytes).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 201, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// What is at a path, for the user of `token`.
pub async fn get(app: &TestApp, token: &str, path: &str) -> reqwest::Response {
    app.http.get(app.url(path)).bearer_auth(token).send().await.unwrap()
}

/// A problem's status and code.
pub async fn problem(response: reqwest::Response) -> (u16, String) {
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} {text}"));
    (status, body["code"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned())
}

/// The picture as the model gets it.
pub fn picture() -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PIXEL}")}})
}
