//! What an operator sees of a running server: metrics, traces, the log, readiness; and that looking on costs nobody
//! anything.

mod collector;
mod documents;
mod metrics;
mod readiness;
mod requests;
mod settings;
mod traces;

use serde_json::{Value, json};

use crate::death::{Client, Machine, backend};
use crate::support::model::{Script, calls, says};
use crate::support::upstream::Upstream;

/// The client's part of a trace.
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// What the user says, which nobody but the model may read.
const SECRET: &str = "my-word-nobody-may-see";

/// What a run is asked that calls a tool and answers.
fn question() -> Value {
    json!({"message": format!("Close 7. {SECRET}"), "context_type": "tickets"})
}

/// A machine whose model closes a ticket and says so, with that model and the backend.
async fn machine(settings: &[(&'static str, &str)]) -> (Machine, Upstream, Upstream) {
    let turns = [calls("c1", "close_ticket", &json!({"id": 7})), says("Closed as you wished.")];
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    let backend = backend().await;
    let machine = Machine::new(&model, &backend, &[&[("RUNS__SUMMARY_MODEL", "off")], settings].concat());
    (machine, model, backend)
}

/// Asks the question as part of a trace, to its end.
async fn ask(base: &str, token: &str) {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http.post(format!("{base}/v1/agent/chat")).bearer_auth(token).json(&question());
    let request = request.header("traceparent", TRACEPARENT).header("x-request-id", "asked-1");
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("message_complete"), "{text}");
}
