//! Bodies that two readers could read differently, or that no reader should: refused by every protocol before anything is
//! asked.

use serde_json::{Value, json};

use super::World;

/// Every route that begins a run, with a body that does.
fn routes() -> [(&'static str, Value); 6] {
    let thread = json!({"threadId": "t", "runId": "r", "tools": [], "context": [], "state": {}, "forwardedProps": {},
        "messages": [{"id": "u1", "role": "user", "content": "Go"}]});
    [
        ("/v1/agent/chat", json!({"message": "Go", "context_type": "tickets", "context": {}})),
        (
            "/v1/ai-sdk/chat",
            json!({"context_type": "tickets", "id": "c", "trigger": "submit-message",
                "messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Go"}]}]}),
        ),
        ("/v1/ag-ui/tickets", thread.clone()),
        ("/v1/copilotkit/agent/tickets/run", thread),
        (
            "/api/chat/stream",
            json!({"message": "Go", "context": {"current_page": "any"}, "interaction_type": "text_input"}),
        ),
        ("/v1/chat/completions", json!({"model": "tickets", "messages": [{"role": "user", "content": "Go"}]})),
    ]
}

/// The body with one more field, as text.
fn with(body: &Value, field: &str) -> Vec<u8> {
    let text = body.to_string();
    format!("{},{field}}}", text.strip_suffix('}').unwrap()).into_bytes()
}

async fn status(world: &World, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> (u16, String) {
    let mut request = world.app.http.post(world.app.url(path)).bearer_auth(&world.app.token);
    request = request.header("content-type", "application/json").body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn a_body_that_can_be_read_in_two_ways_is_refused_in_every_protocol() {
    let world = World::new().await;
    for (path, good) in routes() {
        let text = good.to_string();
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let bytes = |bytes: &[u8], end: &[u8]| [bytes, end].concat();
        let first = text[1..].split_once(':').unwrap().0.to_owned();
        let nested = |depth: usize| format!("\"x\":{}{}", "[".repeat(depth), "]".repeat(depth));
        let rows: Vec<(&str, Vec<u8>)> = vec![
            ("a name twice", with(&good, "\"x\":1,\"x\":2")),
            ("the first name again", with(&good, &format!("{first}:\"other\""))),
            (
                "the first name again, spelt otherwise",
                with(&good, &format!("\"\\u00{:02x}{}:1", first.as_bytes()[1], &first[2..])),
            ),
            ("a name twice, far inside", with(&good, "\"x\":[{\"y\":{\"a\":1,\"a\":2}}]")),
            (
                "a name twice among many",
                with(
                    &good,
                    &format!("{},\"k7\":0", (0..50).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(",")),
                ),
            ),
            ("a byte order mark", bytes(b"\xef\xbb\xbf", text.as_bytes())),
            ("UTF-16", utf16.clone()),
            ("UTF-16 with its mark", bytes(b"\xff\xfe", &utf16)),
            ("bytes that are no text", with(&good, "\"x\":\"").into_iter().chain(*b"\xff\xfe\"}").collect()),
            ("an overlong letter", bytes(&with(&good, "\"x\":\""), b"\xc0\xaf\"}")),
            ("half a letter", with(&good, r#""x":"\ud800""#)),
            ("the other half", with(&good, r#""x":"\udc00 \ud800x""#)),
            ("half a letter in a name", with(&good, r#""\ud800":1"#)),
            ("NUL in a text", with(&good, "\"x\":\"a\0b\"")),
            ("a line end in a text", with(&good, "\"x\":\"a\nb\"")),
            ("too deep", with(&good, &nested(65))),
            ("far too deep", with(&good, &nested(100_000))),
            ("brackets without end", format!("{{\"x\":{}", "[".repeat(100_000)).into_bytes()),
            ("a number of 400 digits with an exponent", with(&good, &format!("\"x\":{}e400", "9".repeat(400)))),
            ("a number that is none", with(&good, "\"x\":NaN")),
            ("a number with a zero in front", with(&good, "\"x\":007")),
            ("a comment", with(&good, "/* x */ \"x\":1")),
            ("a comma too many", with(&good, "\"x\":1,")),
            ("single quotes", text.replace('"', "'").into_bytes()),
            ("two objects", bytes(text.as_bytes(), text.as_bytes())),
            ("an object and more", bytes(text.as_bytes(), b" x")),
            ("an object and NUL", bytes(text.as_bytes(), b"\0")),
            ("cut off", text.as_bytes()[..text.len() - 1].to_vec()),
            ("nothing", Vec::new()),
            ("null", b"null".to_vec()),
            ("a list", bytes(b"[", &bytes(text.as_bytes(), b"]"))),
            ("a text", b"\"hello\"".to_vec()),
            ("a form", b"message=Go&context_type=tickets".to_vec()),
            ("a page", b"<html></html>".to_vec()),
        ];
        for (reason, body) in rows {
            let (status, told) = status(&world, path, &[], body).await;
            assert!(matches!(status, 400 | 422), "{path}: {reason}: {status} {told}");
        }
        for encoding in ["gzip", "deflate", "br", "zstd", "gzip, identity", "x"] {
            let (status, told) =
                status(&world, path, &[("content-encoding", encoding)], text.clone().into_bytes()).await;
            assert_eq!(status, 415, "{path}: {encoding}: {told}");
        }
    }
    assert_eq!((world.model.requests().len(), world.backend.requests().len()), (0, 0), "nothing was asked");
    for (path, good) in routes() {
        let (status, told) = status(&world, path, &[], with(&good, r#""x":"\ud83d\ude00 \u0000","y":1e300"#)).await;
        assert_eq!(status, 200, "{path}: the same with what has one meaning: {told}");
    }
}

#[tokio::test]
async fn a_decision_is_read_in_one_way() {
    let world = World::new().await;
    world.plan(&[crate::support::model::calls("c1", "close_ticket", &json!({"id": 7}))]);
    let frames = world.say(super::Who::Ada, &json!({"message": "Go", "context_type": "tickets"})).await;
    let shown = crate::support::frames::data(&frames, "approval_request");
    let path = format!("/v1/agent/approvals/{}", shown["approval_id"].as_str().unwrap());
    let bodies = [
        r#"{"decision":"reject","decision":"approve"}"#,
        r#"{"decision":"reject","\u0064ecision":"approve"}"#,
        r#"{"decision":"approve","digest":"x","digest":null}"#,
        r#"{"decision":"approve","x":1,"x":2}"#,
        "\u{feff}{\"decision\":\"approve\"}",
        r#"["approve"]"#,
        r#"{"decision":"APPROVE"}"#,
        r#"{"decision":true}"#,
        r#"{"decision":"approve"}{"decision":"reject"}"#,
    ];
    for body in bodies {
        let (status, told) = status(&world, &path, &[], body.as_bytes().to_vec()).await;
        assert!(matches!(status, 400 | 422), "{body}: {status} {told}");
    }
    let (status, _) =
        status(&world, &path, &[("content-encoding", "gzip")], br#"{"decision":"approve"}"#.to_vec()).await;
    assert_eq!(status, 415);
    assert_eq!(world.backend.requests().len(), 0);
}
