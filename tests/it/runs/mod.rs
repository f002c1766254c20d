//! Runs apart from the requests that began them, at the boundary: read again, continued, cancelled, joined, queued,
//! gone on with.

mod answers;
mod busy;
mod cancelling;
mod costs;
mod going_on;
mod payloads;
mod reading;
mod repeating;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::app::TestApp;
pub use crate::support::frames::read_until;
use crate::support::model::{Scripted, says, turn};
use crate::support::upstream::Answer;

/// A message of the conversation `c` in the workflow profile.
pub fn body(message: &str) -> Value {
    json!({"message": message, "context_type": "workflow", "conversation_id": "c"})
}

/// The same, going on when its client goes away.
pub fn background(message: &str) -> Value {
    let mut body = body(message);
    body["background"] = json!(true);
    body
}

/// A turn that says `first`, waits for the gate, and says the rest.
pub fn gated(gate: &Arc<Notify>, first: &str, rest: &str) -> Answer {
    turn().text(first).answer().gated(gate, says(rest).bytes())
}

/// A turn that says something and then nothing more.
pub fn hanging(text: &str) -> Answer {
    turn().text(text).hangs().answer()
}

/// The product with a model that gives these answers.
pub async fn scripted(answers: impl IntoIterator<Item = Answer>) -> Scripted {
    Scripted::with(&[], answers).await
}

/// A header of an answer.
pub fn header(response: &reqwest::Response, name: &str) -> String {
    response.headers()[name].to_str().unwrap().to_owned()
}

/// What the product says to a GET of Ada.
pub async fn get(app: &TestApp, path: &str) -> reqwest::Response {
    app.http.get(app.url(path)).bearer_auth(&app.token).send().await.unwrap()
}

/// What the product says to a POST of Ada, with some headers.
pub async fn post(app: &TestApp, path: &str, headers: &[(&str, &str)], body: &Value) -> reqwest::Response {
    let mut request = app.http.post(app.url(path)).bearer_auth(&app.token).json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

/// The run as its owner sees it.
pub async fn run(app: &TestApp, id: &str) -> Value {
    let response = get(app, &format!("/v1/agent/runs/{id}")).await;
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

/// The run once it has come to `state`; runs end moments after their streams.
pub async fn run_in(app: &TestApp, id: &str, state: &str) -> Value {
    for _ in 0..200 {
        let run = run(app, id).await;
        if run["state"] == state {
            return run;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the run did not come to {state}: {}", run(app, id).await);
}

/// A problem's status and code.
pub async fn problem(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    (status, body["code"].as_str().unwrap().to_owned())
}
