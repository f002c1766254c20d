//! Answers that come in frames: each is told as it comes, the last is the result, and everything about them is bounded.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::agent::ports::tools::{Report, Reporter};
use switchboard::bounded::intake::Intake;
use switchboard::bounded::json::Wanted;
use switchboard::bounded::memory::Memory;
use switchboard::chat::tool::Progress;
use switchboard::tools::backend::{Access, Backend, Framing, Parts, Request as BackendRequest};
use tokio::sync::Notify;

use super::{Setup, unknown};
use crate::support::upstream::{Answer, End, Upstream};
use crate::tools::somebody;

const TOOLS: &str = r#"
[[tool]]
name = "lines"
description = "Works for a while."
request = { path = "/v1/work", progress = "ndjson" }

[[tool]]
name = "events"
description = "Works for a while."
request = { path = "/v1/work", progress = "sse" }

[[tool]]
name = "write"
description = "Writes for a while."
request = { method = "POST", path = "/v1/work", progress = "ndjson" }
"#;

fn told(stage: &str, fraction: Option<f64>, data: Option<Value>) -> Progress {
    Progress { stage: stage.to_owned(), message: String::new(), fraction, data }
}

#[tokio::test]
async fn progress_is_told_while_the_answer_is_still_coming() {
    let gate = Arc::new(Notify::new());
    let answer = Answer::ok("application/x-ndjson", "{\"stage\": \"search\", \"progress\": 0.5}\n").gated(
        &gate,
        "{\"stage\": \"read TOKEN\", \"data\": {\"n\": 1}}\n{\"result\": {\"said\": \"TOKEN\"}}\n{\"stage\": \"late\"}\n",
    );
    let upstream = Upstream::script([answer]).await;
    let base = upstream.url().parse().unwrap();
    let backend = Backend::new(
        base,
        Access::of_caller(false),
        Some(Duration::from_secs(20)),
        1 << 20,
        Intake::new(Memory::new(0)),
    )
    .unwrap();
    let caller = somebody("TOKEN");
    let seen = Mutex::new(Vec::new());
    // What comes after the first frame is only sent once that frame was told.
    let report = |report| {
        let Report::Progress(progress) = report else { panic!("{report:?}") };
        seen.lock().unwrap().push(progress);
        gate.notify_one();
    };
    let request = BackendRequest::get(["v1", "work"]);
    let how = (Framing::Ndjson, Reporter::to(&report));
    let parts = Parts { values: Wanted::All, text: true };
    let result = backend.follow(&caller, request, how, parts, |read, _| Ok(read.value)).await.unwrap();
    assert_eq!(result, json!({"said": "[redacted]"}), "a repeated token goes nowhere");
    let expected = [told("search", Some(0.5), None), told("read [redacted]", None, Some(json!({"n": 1})))];
    assert_eq!(*seen.lock().unwrap(), expected, "nothing counts behind the result");
    assert_eq!(upstream.requests()[0].header("accept"), Some("application/x-ndjson, application/json"));
}

#[tokio::test]
async fn the_last_frame_is_what_the_model_reads() {
    let big = format!("{{\"stage\": \"{}\"}}\n", "x".repeat(300 << 10));
    let many = "{}\n".repeat(10_001);
    let frames = |body: &str| Answer::ok("application/x-ndjson", body.to_owned());
    let rows: Vec<(&str, Answer, Result<Value, String>, &str)> = vec![
        ("lines", frames("{\"stage\": \"a\"}\n{\"result\": [1]}"), Ok(json!([1])), "lines"),
        (
            "events",
            Answer::ok(
                "text/event-stream; charset=utf-8",
                ": hi\r\n\r\ndata: {\"stage\": \"a\"}\r\n\r\ndata: {\"result\": [1]}\r\n\r\n",
            ),
            Ok(json!([1])),
            "events",
        ),
        ("lines", Answer::ok("application/json", "{\n\"stage\": 1}"), Ok(json!({"stage": 1})), "a plain answer"),
        ("lines", frames("{\"error\": \"no luck\"}\n"), Err("no luck".to_owned()), "a failure"),
        (
            "lines",
            frames("{\"stage\": \"a\"}\n"),
            Err("the backend's answer ended without a result".to_owned()),
            "no end",
        ),
        ("lines", frames("nonsense\n"), Err("the backend's answer is not JSON".to_owned()), "no JSON"),
        (
            "lines",
            frames("[1]\n"),
            Err("the backend's answer has a frame that is not a JSON object".to_owned()),
            "no object",
        ),
        ("lines", frames(&big), Err("the backend's answer has a frame that is too large".to_owned()), "too large"),
        ("lines", frames(&many), Err("the backend's answer has too many frames".to_owned()), "too many"),
        (
            "lines",
            frames("{\"stage\": \"a\"}\n").ending(End::Abort),
            Err("the backend's answer broke off".to_owned()),
            "the connection breaks",
        ),
        ("write", frames("{\"error\": \"no luck\"}\n"), Err("no luck".to_owned()), "a write that failed"),
        (
            "write",
            frames("{\"stage\": \"a\"}\n"),
            Err(unknown("the backend's answer ended without a result")),
            "a write that nobody knows of",
        ),
        (
            "write",
            frames("nonsense\n"),
            Err(unknown("the backend's answer is not JSON")),
            "a good status says only that the work has begun",
        ),
        ("write", frames("{\"result\": null}\n"), Ok(json!({"done": true})), "a write that says nothing more"),
    ];
    let cases = rows.into_iter().map(async |(tool, answer, expected, reason)| {
        let ran = Setup::of(TOOLS).calling(&[("c1", tool, json!({}))], move |_| Some(answer.clone())).await;
        assert_eq!(ran.read, [expected], "{reason}");
        assert_eq!(ran.requests.len(), 1, "{reason}");
    });
    futures::future::join_all(cases).await;
}
