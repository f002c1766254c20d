//! A large answer of the backend: it is read off the runtime's workers, within a budget of memory, and what is not wanted of
//! it takes none.

use std::time::Duration;

use serde_json::json;

use super::Setup;
use crate::support::model::{calls, says};
use crate::support::upstream::Answer;

const TOOLS: &str = r#"
[[tool]]
name = "few"
description = "Reads some of the rows."
request = { path = "/v1/rows" }
result = { projection = "[?id > `1000000`]" }

[[tool]]
name = "plain"
description = "Reads rows."
request = { path = "/v1/rows" }

[[tool]]
name = "write"
description = "Writes rows."
request = { method = "POST", path = "/v1/rows" }
"#;

const ROW: &str = r#"{"id":4711,"key":"2c4a1f4e-7f0e-4b0b-9d53-0a6a5a2f1c11","name":"A usual name of a thing","at":"2026-11-22T18:00:00Z"}"#;

#[tokio::test]
async fn others_are_served_while_a_large_answer_is_read() {
    let rows = format!("[{}{ROW}]", format!("{ROW},").repeat((4 << 20) / ROW.len()));
    let sent = rows.len();
    let turns = [calls("c1", "few", &json!({})), says("Done.")];
    let setup = Setup { settings: vec![("METRICS__PATH", "true")], ..Setup::of(TOOLS) };
    let (s, _backend) = setup.start(turns, move |_| Some(Answer::ok("application/json", rows.clone()))).await;
    let body = json!({"message": "Go", "context_type": "mine"});
    let run = s.app.post(&body);
    let mut seen = 0.0_f64;
    let watched = async {
        // On one thread: whoever read the answer there would let nobody look before it is read.
        while seen <= sent as f64 * 2.0 {
            assert_eq!(reqwest::get(s.app.url("/livez")).await.unwrap().status(), 200);
            let page = reqwest::get(s.app.url("/metrics")).await.unwrap().text().await.unwrap();
            let line = page.lines().find(|line| line.starts_with("switchboard_memory_reserved_bytes{kind=\"json\"}"));
            seen = line.and_then(|line| line.rsplit(' ').next()).map_or(0.0, |bytes| bytes.parse().unwrap());
        }
    };
    let (response, ()) =
        tokio::time::timeout(Duration::from_secs(60), async { tokio::join!(run, watched) }).await.unwrap();
    assert!(response.text().await.unwrap().contains("message_complete"));
}

#[tokio::test]
async fn an_answer_of_too_many_values_is_an_error_for_the_model_and_a_write_is_done() {
    let rows = format!("[{}0]", "{\"\":0},".repeat(300_000));
    let called = [("c1", "few", json!({})), ("c2", "write", json!({}))];
    let ran = Setup::of(TOOLS).calling(&called, move |_| Some(Answer::ok("application/json", rows.clone()))).await;
    let refused = ran.read[0].clone().unwrap_err();
    assert!(refused.contains("too many values") && refused.contains("ask for less"), "{refused}");
    let done = ran.read[1].clone().unwrap();
    assert_eq!(done["done"], true, "the status was good: {done}");
}

#[tokio::test]
async fn without_memory_left_an_answer_is_not_read() {
    let rows = format!("[{ROW}]");
    let setup = Setup { settings: vec![("LIMITS__MEMORY_BYTES", "100")], ..Setup::of(TOOLS) };
    let ran =
        setup.calling(&[("c1", "plain", json!({}))], move |_| Some(Answer::ok("application/json", rows.clone()))).await;
    let refused = ran.read[0].clone().unwrap_err();
    assert!(refused.contains("the server has no memory left for it now"), "{refused}");
}
