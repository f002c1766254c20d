//! The Model Context Protocol, served: whole messages in, whole answers and streams out, and a client that we did not write.

mod approvals;
mod calls;
mod checks;
mod conformance;
mod direct;
mod hostile;
mod identity;
mod listing;
mod made;
mod peer;
mod sessions;
mod stdio;
mod tasks;

use serde_json::{Value, json};

use crate::support::app::TestApp;

/// The revision without sessions.
pub const NEWEST: &str = "2026-07-28";

/// What a client says of itself with each request of the newest revision.
pub fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A client that can show forms.
pub fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// A client that knows tasks, and can show forms.
pub fn tasks() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// A request of the newest revision.
pub fn request(method: &str, mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = meta(capabilities);
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

/// A call of a client with these capabilities.
pub fn call(name: &str, arguments: Value, capabilities: Value) -> Value {
    request("tools/call", json!({"name": name, "arguments": arguments}), capabilities)
}

/// Posts a message with the headers that the newest revision asks for, where it is of that.
pub async fn post(app: &TestApp, token: &str, path: &str, message: &Value) -> reqwest::Response {
    let mut sent = app.http.post(app.url(path)).bearer_auth(token);
    sent = sent.header("accept", "application/json, text/event-stream").json(message);
    let params = &message["params"];
    if params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string() {
        sent = sent.header("mcp-protocol-version", NEWEST).header("mcp-method", message["method"].as_str().unwrap());
        if let Some(name) = params["name"].as_str().or(params["taskId"].as_str()) {
            sent = sent.header("mcp-name", name);
        }
    }
    sent.send().await.unwrap()
}

/// The messages of an answer, be it one or a stream.
pub async fn messages(response: reqwest::Response) -> Vec<Value> {
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    if kind == "application/json" {
        return vec![serde_json::from_str(&text).unwrap()];
    }
    assert_eq!(kind, "text/event-stream");
    let frames = text.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    frames.map(|frame| serde_json::from_str(frame.strip_prefix("event: message\ndata: ").unwrap()).unwrap()).collect()
}

/// The result of a request of Ada, which ends its answer.
pub async fn result(app: &TestApp, message: &Value) -> Value {
    result_as(app, &app.token, message).await
}

/// The same of anybody.
pub async fn result_as(app: &TestApp, token: &str, message: &Value) -> Value {
    let mut all = messages(post(app, token, "/mcp", message).await).await;
    let last = all.pop().unwrap();
    assert_eq!((&last["jsonrpc"], &last["id"]), (&json!("2.0"), &message["id"]), "{last}");
    assert!(last["error"].is_null(), "{last}");
    last["result"].clone()
}

/// The status and the error of a message that is not carried out.
pub async fn error(response: reqwest::Response) -> (u16, Value) {
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} {text:?}"));
    assert_eq!(body["jsonrpc"], "2.0");
    (status, body["error"].clone())
}

/// The text of a result.
pub fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap_or_else(|| panic!("{result}")).iter();
    blocks.map(|block| block["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}
