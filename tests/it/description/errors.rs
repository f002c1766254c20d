//! Errors: each code is explained, and each route's error answers are as described.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reqwest::{Method, Response};
use serde_json::Value;
use switchboard::chat::failure::FailureCode;
use switchboard::http::code::Code;

use super::{document, mistakes, operations};
use crate::support::app::TestApp;

/// The rows of a table of `docs/ERRORS.md`, by their first cell; the others.
fn table(section: &str) -> BTreeMap<String, Vec<String>> {
    let text = include_str!("../../../docs/ERRORS.md");
    let section = text.split_once(section).unwrap().1.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `") && !line.starts_with("| `code` |"));
    let rows = rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        let code = cells.next().unwrap().trim_matches('`').to_owned();
        let rest: Vec<String> = cells.collect();
        assert!(rest.iter().all(|cell| !cell.is_empty()), "{code} has an empty cell");
        (code, rest)
    });
    rows.collect()
}

#[test]
fn every_code_before_a_stream_is_explained_with_its_status_and_whether_to_retry() {
    let document = document();
    let mut statuses: BTreeMap<String, BTreeSet<u16>> = BTreeMap::new();
    for (_, _, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let schema = &response["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"]["code"];
            for code in schema["enum"].as_array().into_iter().flatten() {
                statuses.entry(code.as_str().unwrap().to_owned()).or_default().insert(status.parse().unwrap());
            }
        }
    }
    // This is no operation's own, and this is told only in the words of another wire.
    statuses.entry("method_not_allowed".to_owned()).or_default().insert(405);
    statuses.entry("helper_off".to_owned()).or_default().insert(503);
    // These are told to the page alone.
    statuses.entry("sign_in_refused".to_owned()).or_default().insert(400);
    statuses.entry("sign_in_unavailable".to_owned()).or_default().insert(503);
    let told = |code: &Code| {
        let statuses: Vec<String> = statuses.get(code.name()).into_iter().flatten().map(u16::to_string).collect();
        (code.name().to_owned(), (statuses.join(", "), if code.is_retryable() { "yes" } else { "no" }.to_owned()))
    };
    let expected: BTreeMap<_, _> = Code::ALL.iter().map(told).collect();
    let explained = table("## 1.").into_iter().map(|(code, cells)| (code, (cells[0].clone(), cells[1].clone())));
    assert_eq!(explained.collect::<BTreeMap<_, _>>(), expected);
    let named = include_str!("../../../src/http/code.rs").matches("=> \"").count();
    assert_eq!(Code::ALL.len(), named, "Code::ALL has them all");
}

/// The words in quotes that follow `begin` in the sources below `folder`, line breaks in between or not.
fn quoted_after(folder: &str, begin: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for part in code.split(begin).skip(1) {
            if let Some(word) = part.trim_start().strip_prefix('"').and_then(|part| part.split('"').next()) {
                found.insert(word.to_owned());
            }
        }
    }
    found
}

#[test]
fn every_code_in_a_stream_is_explained() {
    let mut codes: BTreeSet<String> = FailureCode::ALL.iter().map(|code| code.name().to_owned()).collect();
    let named = include_str!("../../../src/chat/failure.rs").matches("=> \"").count();
    assert_eq!(FailureCode::ALL.len(), named, "FailureCode::ALL has them all");
    codes.extend(quoted_after("src/dialect/agent_chat/encoder.rs", "self.ended(id, out,"));
    codes.extend(quoted_after("src/dialect/agent_chat/encoder.rs", "self.ended(None, out,"));
    assert_eq!(table("## 2.").into_keys().collect::<BTreeSet<_>>(), codes);
}

/// A path with something in its places.
fn filled(path: &str) -> String {
    let mut filled = String::new();
    for part in path.split('{') {
        match part.split_once('}') {
            Some((_, rest)) => filled.push_str(&format!("0198c0de-0000-7000-8000-000000000000{rest}")),
            None => filled.push_str(part),
        }
    }
    filled
}

/// Holds an error answer against its description; a 405 is nobody's, so its kind of body is that of the 401.
async fn assert_described(document: &Value, place: &str, operation: &Value, expected: u16, answer: Response) {
    let status = answer.status().as_u16();
    assert_eq!(status, expected, "{place}");
    let described = match status {
        405 => &operation["responses"]["401"]["content"],
        status => &operation["responses"][status.to_string()]["content"],
    };
    let (kind, content) = described
        .as_object()
        .and_then(|all| all.iter().next())
        .unwrap_or_else(|| panic!("{place}: {status} is not described"));
    assert_eq!(answer.headers()["content-type"], kind.as_str(), "{place}: {status}");
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let body: Value = answer.json().await.unwrap();
    if status != 405 {
        assert_eq!(mistakes(document, &content["schema"], &body), [""; 0], "{place}: {status}: {body}");
    }
    if kind == "application/problem+json" {
        let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        let all = ["type", "title", "status", "detail", "code", "request_id", "retryable", "errors"];
        assert_eq!(keys[..], all[..keys.len().max(7)], "{place}: {status}");
        assert_eq!(body["request_id"], id.as_str(), "{place}");
        assert_eq!(body["type"], format!("urn:switchboard:problem:{}", body["code"].as_str().unwrap()), "{place}");
    }
}

#[tokio::test]
async fn the_error_answers_of_every_route_are_as_described() {
    let app = TestApp::start(&[("SERVER__BODY_LIMIT_BYTES", "1000")]).await;
    let document = document();
    for (method, path, operation) in operations(&document) {
        let place = format!("{method} {path}");
        let url = app.url(&filled(&path));
        let method: Method = method.to_uppercase().parse().unwrap();
        if operation["security"] == serde_json::json!([]) {
            continue;
        }
        let bare = app.http.request(method.clone(), &url);
        assert_described(&document, &place, &operation, 401, bare.send().await.unwrap()).await;
        let signed = |method: Method| app.http.request(method, &url).bearer_auth(&app.token);
        let item = &document["paths"][&path];
        let mut others = [Method::PUT, Method::DELETE, Method::POST].into_iter();
        let other = others.find(|other| item.get(other.as_str().to_lowercase()).is_none()).unwrap();
        assert_described(&document, &place, &operation, 405, signed(other).send().await.unwrap()).await;
        if !operation["requestBody"].is_object() {
            continue;
        }
        let most = match path.as_str() {
            // Editors send whole documents, agents whole conversations.
            "/api/chat" => 16 << 20,
            "/v1/responses" | "/v1/responses/input_tokens" | "/v1/messages" | "/v1/messages/count_tokens" => 32 << 20,
            "/v1/chat/completions" | "/v1/ai-sdk/chat" => 32 << 20,
            "/v1/ag-ui/{agent}" | "/v1/copilotkit/agent/{agent}/run" => 32 << 20,
            "/v1/agent/files" | "/v1/files" => 20 << 20,
            "/mcp" | "/mcp/{profile}" => 4 << 20,
            _ => 1000,
        };
        let large = "x".repeat(most + 1);
        let large = match path.as_str() {
            "/v1/files" => {
                let form =
                    format!("--edge\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n{large}\r\n--edge--\r\n");
                signed(method.clone()).header("content-type", "multipart/form-data; boundary=edge").body(form)
            }
            _ => signed(method.clone()).body(large),
        };
        let large = large.send().await.unwrap();
        assert_described(&document, &place, &operation, 413, large).await;
        let packed = signed(method.clone()).header("content-encoding", "gzip").body("x").send().await.unwrap();
        assert_described(&document, &place, &operation, 415, packed).await;
        // Any text is a file.
        if path == "/v1/agent/files" {
            continue;
        }
        let garbled = signed(method).body("\u{1}").send().await.unwrap();
        let status = garbled.status().as_u16();
        assert!([400, 403, 404, 422].contains(&status), "{place}: {status}");
        assert_described(&document, &place, &operation, status, garbled).await;
    }
}

#[tokio::test]
async fn a_path_that_is_not_there_is_told_in_the_words_of_its_protocol() {
    let app = TestApp::demo().await;
    for (path, key) in [("/nowhere", "code"), ("/v1/agent", "code"), ("/api/chats/1/2", "detail"), ("/v1/chat", "code")]
    {
        let answer = app.http.get(app.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
        let body: Value = answer.json().await.unwrap();
        assert!(body[key].is_string(), "{path}: {body}");
    }
}
