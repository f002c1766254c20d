//! Messages that no client should send: each has one clear answer, and none begins anything.

use serde_json::{Value, json};

use super::{NEWEST, call, error, forms, meta, post, request};
use crate::openai::{playing, with};
use crate::support::model::Scripted;

async fn raw(s: &Scripted, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> reqwest::Response {
    let mut sent =
        s.app.http.post(s.app.url("/mcp")).bearer_auth(&s.app.token).header("content-type", "application/json");
    for (name, value) in headers {
        sent = sent.header(*name, *value);
    }
    sent.body(body).send().await.unwrap()
}

#[tokio::test]
async fn what_is_no_message_is_refused_by_its_number() {
    let s = playing([]).await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(300));
    let rows: [(&[u8], u16, i32, &str); 18] = [
        (b"", 400, -32700, "nothing"),
        (b"{", 400, -32700, "half"),
        (b"\xff{}", 400, -32700, "no text"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", 400, -32700, "a name twice"),
        (deep.as_bytes(), 400, -32600, "too deep"),
        (b"[]", 400, -32600, "a batch"),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", 400, -32600, "a batch"),
        (b"\"ping\"", 400, -32600, "a text"),
        (b"{}", 400, -32600, "nothing in it"),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", 400, -32600, "another version"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", 400, -32600, "an id that is none"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", 400, -32600, "half an id"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", 400, -32600, "an object as id"),
        (long_id.as_bytes(), 400, -32600, "a long id"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", 400, -32600, "a number as method"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[1]}", 400, -32602, "a list as params"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"ask_workflow\",\"arguments\":[]}}", 400, -32602, "a list as arguments"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":7}}", 400, -32602, "a number as _meta"),
    ];
    for (body, status, code, reason) in rows {
        let (found, error) = error(raw(&s, &[], body.to_vec()).await).await;
        // Wrong parameters are an error in the answer, and no error of the connection.
        let status = if code == -32602 { 200 } else { status };
        assert_eq!((found, &error["code"]), (status, &json!(code)), "{reason}: {error}");
    }
    // An answer to what was not asked, and a notification that is unknown, are taken and change nothing.
    for body in
        [json!({"jsonrpc": "2.0", "id": 1, "result": {}}), json!({"jsonrpc": "2.0", "method": "notifications/made-up"})]
    {
        assert_eq!(raw(&s, &[], body.to_string()).await.status(), 202, "{body}");
    }
    let plain =
        s.app.http.post(s.app.url("/mcp")).bearer_auth(&s.app.token).header("content-type", "text/plain").body("{}");
    assert_eq!(error(plain.send().await.unwrap()).await.0, 400);
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        let response = s.app.http.request(method, s.app.url("/mcp")).bearer_auth(&s.app.token).send().await.unwrap();
        assert_eq!(response.status(), 405, "there is no stream of the server's own, and no session to end");
    }
    assert!(s.model.requests().is_empty());
}

/// A message, headers, and the status, the code and a word of its answer.
type Row = (Value, Vec<(&'static str, &'static str)>, u16, i32, &'static str);

#[tokio::test]
async fn headers_and_body_say_the_same_or_nothing_is_done() {
    let s = playing([]).await;
    let ask = call("ask_workflow", json!({"message": "a"}), forms());
    let list = request("tools/list", json!({}), forms());
    let with = |mut message: Value, name: &str, value: Value| {
        message["params"]["_meta"][name] = value;
        message
    };
    let (version, method, name) =
        (("mcp-protocol-version", NEWEST), ("mcp-method", "tools/call"), ("mcp-name", "ask_workflow"));
    let of_list = ("mcp-method", "tools/list");
    let said = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let rows: Vec<Row> = vec![
        (ask.clone(), vec![method, name], 400, -32020, "no version"),
        (ask.clone(), vec![("mcp-protocol-version", "2025-11-25"), method, name], 400, -32020, "another version"),
        (ask.clone(), vec![version, name], 400, -32020, "no method"),
        (ask.clone(), vec![version, of_list, name], 400, -32020, "another method"),
        (ask.clone(), vec![version, method], 400, -32020, "no name"),
        (ask.clone(), vec![version, method, ("mcp-name", "ask_open")], 400, -32020, "another name"),
        (ask.clone(), vec![version, method, ("mcp-name", "=?base64?!!?=")], 400, -32020, "no base64"),
        (ask.clone(), vec![version, version, method, name], 400, -32020, "twice"),
        (
            with(list.clone(), said, json!("2030-01-01")),
            vec![("mcp-protocol-version", "2030-01-01"), of_list],
            400,
            -32022,
            "a later revision",
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            vec![("mcp-protocol-version", "2020-01-01")],
            400,
            -32022,
            "an earlier revision",
        ),
        (with(list.clone(), capabilities, json!(null)), vec![version, of_list], 400, -32602, "no capabilities"),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}), vec![], 400, -32602, "nothing said"),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            vec![version, of_list],
            400,
            -32602,
            "only a header",
        ),
        (
            request("tasks/get", json!({"taskId": "t"}), forms()),
            vec![version, ("mcp-method", "tasks/get"), ("mcp-name", "t")],
            400,
            -32021,
            "no tasks declared",
        ),
        (
            request("prompts/list", json!({}), forms()),
            vec![version, ("mcp-method", "prompts/list")],
            404,
            -32601,
            "no such method",
        ),
        (
            request("initialize", json!({"protocolVersion": "2025-11-25"}), forms()),
            vec![version, ("mcp-method", "initialize")],
            404,
            -32601,
            "a method that this revision has no more",
        ),
        (
            request("tools/list", json!({"cursor": "x"}), forms()),
            vec![version, of_list],
            200,
            -32602,
            "a cursor of nobody's",
        ),
    ];
    for (message, headers, status, code, reason) in rows {
        let (found, error) = error(raw(&s, &headers, message.to_string()).await).await;
        assert_eq!((found, &error["code"]), (status, &json!(code)), "{reason}: {error}");
        match code {
            -32021 => assert!(error["data"]["requiredCapabilities"]["extensions"].is_object(), "{error}"),
            -32022 => assert_eq!(error["data"]["supported"][0], NEWEST, "{error}"),
            _ => {}
        }
    }
    // A name that no header can carry goes in base64.
    let encoded = [version, method, ("mcp-name", "=?base64?YXNrX3dvcmtmbG93?=")];
    let wrong = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask_workflow", "arguments": {}, "_meta": meta(forms())}});
    assert_eq!(raw(&s, &encoded, wrong.to_string()).await.status(), 200);
    assert!(s.model.requests().is_empty());
}

#[tokio::test]
async fn a_message_has_four_mebibytes_at_most() {
    let settings = [("LIMITS__MESSAGE_BYTES", "0")];
    let s = with(&[], &settings, []).await;
    let sized = |bytes: usize| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"pad": ""}}).to_string();
        message.replace("\"pad\":\"\"", &format!("\"pad\":\"{}\"", "x".repeat(bytes - message.len())))
    };
    assert_eq!(raw(&s, &[], sized(4 << 20)).await.status(), 200);
    let (status, error) = error(raw(&s, &[], sized((4 << 20) + 1)).await).await;
    assert_eq!((status, &error["data"]["code"]), (413, &json!("body_too_large")));
}

#[tokio::test]
async fn what_comes_back_of_a_call_that_waits_is_looked_at() {
    let s = playing([]).await;
    let mut message = call("ask_workflow", json!({"message": "a"}), forms());
    let nobodys = "0198aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee";
    let accept = json!({"action": "accept", "content": {"decision": "approve"}});
    let rows = [
        (json!(5), json!({}), "a number as state"),
        (json!("made up"), json!({nobodys: accept}), "no run"),
        (json!(nobodys), json!({nobodys: accept}), "nobody's run"),
        (json!(null), json!({nobodys: accept}), "no state"),
        (json!(nobodys), json!({"x": accept}), "a key that was not given"),
        (json!(nobodys), json!({nobodys: {"action": "maybe"}}), "no action"),
        (json!(nobodys), json!({nobodys: {"action": "accept", "content": {"decision": "yes"}}}), "no decision"),
        (json!(nobodys), json!([1]), "a list"),
    ];
    for (state, responses, reason) in rows {
        message["params"]["requestState"] = state;
        message["params"]["inputResponses"] = responses;
        let (status, error) = error(post(&s.app, &s.app.token, "/mcp", &message).await).await;
        assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{reason}: {error}");
    }
    assert!(s.model.requests().is_empty());
}
