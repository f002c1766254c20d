//! Answers that are no plain JSON: empty ones, ones that say it all in their head, and ones of other programs' making.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{Setup, unknown};
use crate::support::model::{calls, says};
use crate::support::upstream::{Answer, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "look"
description = "Looks."
request = { path = "/v1/thing" }

[[tool]]
name = "part"
description = "Looks at a part."
request = { path = "/v1/thing" }
result = { projection = "items" }

[[tool]]
name = "words"
description = "Looks, in words."
request = { path = "/v1/thing" }
result = { text = "It is nothing: {{ result is none }}." }

[[tool]]
name = "write"
description = "Writes."
request = { method = "POST", path = "/v1/thing" }
"#;

/// What the model reads of `answer` to each of these tools.
async fn read(tools: &[&str], answer: Answer) -> Vec<Result<Value, String>> {
    let made: Vec<_> = tools.iter().map(|tool| (*tool, *tool, json!({}))).collect();
    Setup::of(TOOLS).calling(&made, move |_| Some(answer.clone())).await.read
}

#[tokio::test]
async fn of_an_empty_answer_the_model_reads_the_status() {
    let status = |status: u16| Ok(json!({"status": status, "ok": true}));
    let rows = [
        (Answer::status(204, "text/plain", ""), status(204), "nothing to say"),
        (Answer::ok("text/html", " \n"), status(200), "an empty page"),
        (Answer::ok("application/json", "\u{feff}"), status(200), "a mark of bytes alone"),
        (Answer::ok("application/json", "null"), Ok(json!(null)), "an answer that is nothing"),
    ];
    for (answer, expected, reason) in rows {
        let read = read(&["look", "part", "words", "write"], answer).await;
        let words = Ok(json!("It is nothing: true."));
        assert_eq!(read, [expected, Ok(json!(null)), words, Ok(json!({"done": true}))], "{reason}");
    }
}

#[tokio::test]
async fn a_write_says_where_the_new_thing_is() {
    let place = "https://api.example.com/users/7";
    let rows = [
        (201, "location", "", json!({"done": true, "location": place}), "made"),
        (201, "location", "null", json!({"done": true, "location": place}), "made, and nothing said"),
        (202, "operation-location", "", json!({"accepted": true, "location": place}), "begun"),
        (201, "location", r#"{"id": 7}"#, json!({"id": 7}), "what the body says counts"),
        (200, "location", "", json!({"done": true}), "nothing new"),
        (201, "content-location", "", json!({"done": true}), "no place"),
    ];
    for (status, header, body, expected, reason) in rows {
        let answer = Answer::status(status, "application/json", body).header(header, place);
        assert_eq!(read(&["write"], answer).await, [Ok(expected)], "{reason}");
    }
    let long = format!("{place}/{}", "x".repeat(1100));
    let rows = [
        (long.as_str(), json!({"done": true}), "too long to be told"),
        ("https://ann:pass@api.example.com/users/7", json!({"done": true}), "a password"),
        ("https://api.example.com/users/7?sig=s3cret#x", json!({"done": true, "location": place}), "what opens it"),
        ("/users/a@b", json!({"done": true, "location": "/users/a@b"}), "a path alone"),
    ];
    for (location, expected, reason) in rows {
        let answer = Answer::status(201, "text/plain", "").header("location", location);
        assert_eq!(read(&["write"], answer).await, [Ok(expected)], "{reason}");
    }
}

#[tokio::test]
async fn a_mark_of_bytes_and_half_a_character_spoil_no_answer() {
    let rows = [
        ("\u{feff}{\"items\": [1]}".to_owned(), json!({"items": [1]}), "a mark before it"),
        (r#"{"items": ["cut \ud83d"]}"#.to_owned(), json!({"items": ["cut \u{fffd}"]}), "half a character"),
    ];
    for (body, expected, reason) in rows {
        let read = read(&["look", "part", "write"], Answer::ok("application/json", body)).await;
        let items = expected["items"].clone();
        assert_eq!(read, [Ok(expected.clone()), Ok(items), Ok(expected)], "{reason}");
    }
}

#[tokio::test]
async fn an_answer_that_is_compressed_or_a_page_says_so() {
    let zipped = [0x1f_u8, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let compressed = "the backend's answer is not JSON: it is compressed (gzip), which was not asked for";
    let answer = Answer::ok("application/json", zipped).header("content-encoding", "gzip");
    let done = Ok(json!({"done": true, "note": compressed}));
    assert_eq!(read(&["look", "write"], answer).await, [Err(compressed.to_owned()), done], "the status was good");

    let page = "the backend's answer is not JSON, but an HTML page";
    let answer = Answer::ok("text/html; charset=utf-8", "<html>Please sign in</html>");
    let expected = [Err(page.to_owned()), Err(unknown(page))];
    assert_eq!(read(&["look", "write"], answer).await, expected, "nobody knows who took the write");
    let answer = Answer::ok("text/html", r#"{"id": 7}"#);
    assert_eq!(read(&["write"], answer).await, [Ok(json!({"id": 7}))], "JSON counts, whatever it is called");
}

#[tokio::test]
async fn a_redirect_says_how_far_it_leads() {
    let elsewhere = Upstream::script([]).await;
    let to_port = format!("{}/api/v1/thing", elsewhere.url());
    let rows = [
        ("https://login.example.com/sign-in?token=x", ": the server is at another host"),
        (to_port.as_str(), ": the server is at another port or scheme of this host"),
        ("/v2/thing", ": the server is at another path of this host"),
        ("/api/v1/thing/", ": the address is the same with a / at its end, or without"),
        ("http://[", ""),
    ];
    for (location, told) in rows {
        let answer = Answer::status(307, "text/plain", "").header("location", location);
        let expected = format!("HTTP 307: the backend answered with a redirect{told}");
        assert_eq!(read(&["look"], answer).await, [Err(expected)], "{location}");
    }
    assert_eq!(elsewhere.connections(), 0, "none is followed");
}

/// The first try may be what is in the way of the second.
#[tokio::test]
async fn a_conflict_with_a_write_that_was_tried_before_leaves_it_unknown() {
    let tries = AtomicUsize::new(0);
    let setup = Setup::of(TOOLS);
    let turns = ["t1", "t2"].map(|call| calls(call, "write", &json!({}))).into_iter().chain([says("Done.")]);
    let (s, backend) = setup
        .start(turns, move |_| {
            Some(match tries.fetch_add(1, Ordering::SeqCst) {
                0 => Answer::status(504, "text/plain", "late"),
                _ => Answer::status(409, "text/plain", "it is under way"),
            })
        })
        .await;
    s.app.chat(&json!({"message": "Go", "context_type": "mine"})).await;
    let keys: Vec<_> =
        backend.requests().iter().map(|request| request.header("idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(keys[0], keys[1], "the same write");
    let expected = [unknown("HTTP 504: late"), unknown("HTTP 409: it is under way")];
    assert_eq!(["t1", "t2"].map(|call| s.result_of(call)["error"].clone()), expected.map(|error| json!(error)));
}
