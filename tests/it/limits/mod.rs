//! Every limit at the boundary: what just fits is served, what is one more is told so, with a code, and when to come
//! again. `docs/LIMITS.md` lists them.

mod budgets;
mod chains;
mod charges;
mod connections;
mod crowd;
mod fairness;
mod length;
mod memory;
mod quotas;
mod requests;
mod runs;
mod shares;
mod starts;

use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{says, turn};
use crate::support::upstream::{Answer, Upstream};

/// A user's token, by a name such as `acme/ann`.
pub fn token(app: &TestApp, user: &str) -> String {
    let (tenant, user) = user.split_once('/').unwrap();
    app.token_of(user, Some(tenant), &["USER", "ADMIN"])
}

/// A model that answers at once, but not at all where the newest message says `wait`.
pub async fn model() -> Upstream {
    Upstream::choosing(|request| {
        let request = request.json();
        let newest = request["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        Some(if newest.contains("wait") { turn().text("Well").hangs().answer() } else { says("Yes.").answer() })
    })
    .await
}

/// The product with that model and these settings.
pub async fn with_model(model: &Upstream, settings: &[(&str, &str)]) -> TestApp {
    let base_url = format!("{}/v1", model.url());
    let own = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &*base_url)];
    TestApp::start(&[&own, settings].concat()).await
}

/// What a user says in a conversation of its own, as a run that goes on by itself.
pub fn message(text: &str) -> Value {
    let conversation = uuid::Uuid::new_v4().to_string();
    json!({"message": text, "context_type": "workflow", "conversation_id": conversation, "background": true})
}

/// What is said to a refusal: status, code, `Retry-After`.
pub async fn refusal(response: Response) -> (u16, String, Option<u64>) {
    let status = response.status().as_u16();
    let after = response.headers().get("retry-after").map(|after| after.to_str().unwrap().parse().unwrap());
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["status"], status);
    (status, body["code"].as_str().unwrap().to_owned(), after)
}

/// A header's text; nothing where there is none.
pub fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// Asks until the answer is 200: what was refused has made room by then, or soon will.
pub async fn in_time(ask: impl AsyncFn() -> Response) -> Response {
    for _ in 0..200 {
        let response = ask().await;
        if response.status() == 200 {
            return response;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never served: {}", ask().await.text().await.unwrap());
}

/// An answer that says `text` in so many pieces.
pub fn pieces(text: &str, count: usize) -> Answer {
    (0..count).fold(turn(), |turn, _| turn.text(text)).done().answer()
}
