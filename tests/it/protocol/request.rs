//! Section 1: what a request may say, and what a bad one is told.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::frames;

async fn post_raw(app: &TestApp, body: impl Into<reqwest::Body>) -> (u16, Value) {
    let request = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token).body(body);
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let request_id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["request_id"], request_id.as_str());
    assert_eq!(problem["status"], status);
    (status, problem)
}

#[tokio::test]
async fn a_bad_body_is_refused_and_every_bad_field_is_named() {
    let app = TestApp::demo().await;
    let ok = r#""message":"hi","context_type":"workflow""#;
    let rows: Vec<(String, &[&str], &str)> = vec![
        (r#"{"context_type":"workflow"}"#.into(), &["message"], "missing message"),
        (r#"{"message":"","context_type":"workflow"}"#.into(), &["message"], "empty message"),
        (r#"{"message":" \n","context_type":"workflow"}"#.into(), &["message"], "blank message"),
        (r#"{"message":null,"context_type":"workflow"}"#.into(), &["message"], "null message"),
        (r#"{"message":7,"context_type":"workflow"}"#.into(), &["message"], "message of another type"),
        (r#"{"message":"hi"}"#.into(), &["context_type"], "missing context_type"),
        (r#"{"message":"hi","context_type":"orders"}"#.into(), &["context_type"], "unknown context_type"),
        (r#"{"message":"hi","context_type":"Workflow"}"#.into(), &["context_type"], "exactly as documented"),
        ("{}".into(), &["message", "context_type"], "both at once"),
        (format!(r#"{{{ok},"context":[1]}}"#), &["context"], "context of another type"),
        (format!(r#"{{{ok},"context":"x"}}"#), &["context"], "context as text"),
        (format!(r#"{{{ok},"conversation_id":7}}"#), &["conversation_id"], "id of another type"),
        (format!(r#"{{{ok},"conversation_id":"a/../b"}}"#), &["conversation_id"], "id with other characters"),
        (format!(r#"{{{ok},"conversation_id":"{}"}}"#, "x".repeat(129)), &["conversation_id"], "id too long"),
    ];
    for (body, fields, reason) in rows {
        let (status, problem) = post_raw(&app, body).await;
        assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{reason}");
        let named: Vec<_> =
            problem["errors"].as_array().unwrap().iter().map(|e| e["field"].as_str().unwrap()).collect();
        assert_eq!(named, fields, "{reason}");
    }
}

#[tokio::test]
async fn what_is_not_usable_json_is_refused() {
    let app = TestApp::demo().await;
    let deep = format!(r#"{{"context":{}1{}}}"#, "[".repeat(100), "]".repeat(100));
    let rows: [(Vec<u8>, &str, &str); 8] = [
        (b"".to_vec(), "malformed_json", "nothing"),
        (b"hello".to_vec(), "malformed_json", "no JSON"),
        (br#"{"message":"hi""#.to_vec(), "malformed_json", "cut off"),
        (br#"["message"]"#.to_vec(), "malformed_json", "not an object"),
        (br#"{"message":"hi","message":"ho","context_type":"workflow"}"#.to_vec(), "malformed_json", "a field twice"),
        (b"{\"message\":\"\xff\xfe\",\"context_type\":\"workflow\"}".to_vec(), "malformed_json", "invalid UTF-8"),
        (deep.into_bytes(), "json_too_deep", "nested deeply"),
        ("[".repeat(100_000).into_bytes(), "json_too_deep", "nested very deeply"),
    ];
    for (body, code, reason) in rows {
        let (status, problem) = post_raw(&app, body).await;
        assert_eq!((status, &problem["code"]), (400, &json!(code)), "{reason}");
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused_at_its_own_limit() {
    let settings =
        [("SERVER__BODY_LIMIT_BYTES", "2000"), ("LIMITS__MESSAGE_BYTES", "100"), ("LIMITS__CONTEXT_BYTES", "200")];
    let app = TestApp::start(&settings).await;
    let body = |message: usize, note: usize, padding: usize| {
        json!({
            "message": "m".repeat(message), "context_type": "workflow",
            "context": {"note": "n".repeat(note)}, "padding": "p".repeat(padding)
        })
    };
    let rows = [
        (body(101, 1, 0), "field_too_large", "message"),
        (body(1, 200, 0), "field_too_large", "context"),
        (body(1, 1, 2000), "body_too_large", ""),
    ];
    for (body, code, field) in rows {
        let (status, problem) = post_raw(&app, body.to_string()).await;
        assert_eq!((status, &problem["code"]), (413, &json!(code)));
        assert_eq!(problem["errors"][0]["field"].as_str().unwrap_or_default(), field);
    }
    let at_the_limits = body(100, 200 - r#"{"note":""}"#.len(), 1000);
    assert_eq!(app.post(&at_the_limits).await.status(), 200);
}

#[tokio::test]
async fn a_compressed_body_is_refused() {
    let app = TestApp::demo().await;
    let request = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token);
    let response = request.header("content-encoding", "gzip").body("x").send().await.unwrap();
    assert_eq!(response.status(), 415);
}

#[tokio::test]
async fn unknown_keys_nulls_and_an_empty_id_are_no_mistake() {
    let app = TestApp::demo().await;
    let body = json!({
        "message": "hello", "context_type": "tables", "context": null, "conversation_id": "", "model": null, "extra": [1]
    });
    assert_eq!(frames::names(&app.chat(&body).await).last(), Some(&"message_complete"));
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there_are_problems_too() {
    let app = TestApp::demo().await;
    let nowhere = app.http.get(app.url("/v1/nothing")).send().await.unwrap();
    assert_eq!(nowhere.status(), 404);
    assert_eq!(nowhere.json::<Value>().await.unwrap()["code"], "not_found");
    let get = app.http.get(app.url("/v1/agent/chat")).send().await.unwrap();
    assert_eq!((get.status().as_u16(), &get.headers()["allow"]), (405, &"POST".parse().unwrap()));
    assert_eq!(get.json::<Value>().await.unwrap()["code"], "method_not_allowed");
}

#[tokio::test]
async fn a_well_formed_request_id_comes_back_and_another_is_replaced() {
    let app = TestApp::demo().await;
    for (given, kept) in [("req-1.a_B", true), ("bad id", false), (&*"x".repeat(129), false)] {
        let response = app.http.get(app.url("/livez")).header("x-request-id", given).send().await.unwrap();
        assert_eq!(response.headers()["x-request-id"] == given, kept, "{given}");
    }
}
