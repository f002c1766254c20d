//! What single servers do that no revision says, as their users have met it: they are used all the same.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::fake::{Fake, result, tool};
use super::{message, product};
use crate::support::frames;
use crate::support::model::{calls, says, turn};
use crate::support::upstream::{Answer, Upstream};

#[tokio::test]
async fn a_server_with_habits_of_its_own_is_used() {
    let strange = json!({
        "name": "strange", "annotations": {"readOnlyHint": true},
        "inputSchema": {"type": "object", "properties": {"filter[id]": {"type": "integer"}}, "required": ["filter[id]"]},
    });
    let (shakes, called) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let http = Upstream::choosing(move |request| {
        if request.method != "POST" {
            return Some(Answer::status(405, "text/plain", "no"));
        }
        let body = request.json();
        let ok = |value: Value| Answer::ok("application/json", result(&body["id"], &value).to_string());
        Some(match body["method"].as_str().unwrap_or_default() {
            "initialize" => ok(json!({
                "protocolVersion": body["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            }))
            .header("mcp-session-id", &shakes.fetch_add(1, Ordering::Relaxed).to_string()),
            // A tool without parameters as some frameworks write it, and a page behind which there is the same one again.
            "tools/list" => {
                ok(json!({"tools": [{"name": "broken", "inputSchema": null}, strange], "nextCursor": "more"}))
            }
            "tools/call" if called.fetch_add(1, Ordering::Relaxed) == 0 => {
                let lost = json!({"code": -32000, "message": "Bad Request: No valid session ID"});
                let error = json!({"jsonrpc": "2.0", "id": null, "error": lost});
                Answer::status(400, "application/json", error.to_string())
            }
            "tools/call" => {
                let text = body["params"]["arguments"].to_string();
                let items = json!([text]);
                ok(json!({"content": [{"type": "text", "text": text}], "structuredContent": {"result": items}}))
            }
            _ => Answer::ok("text/html", "No response"),
        })
    });
    let http = http.await;
    let section = format!("[mcp.peer]\nurl = \"{}/mcp\"\ntimeout_s = 20\n", http.url());
    let s = product(&section, [calls("a", "peer__strange", &json!({"filter_id_": 7})), says("Done.")]).await;
    let told = s.app.chat(&message("Go")).await;
    assert_eq!(frames::text(&told), "Done.", "{told:#?}");
    assert_eq!(s.result_of("a"), json!({"filter[id]": 7}), "once, and under the names of the server");
    let properties = s.model.requests()[0].json().to_string();
    assert!(properties.contains("filter_id_") && !properties.contains("filter[id]"), "{properties}");
    let asked: Vec<Value> =
        http.requests().iter().filter(|request| request.method == "POST").map(|r| r.json()).collect();
    let of = |method: &str| asked.iter().filter(|body| body["method"] == method).count();
    assert_eq!((of("initialize"), of("tools/call")), (2, 2), "a session that is gone is begun anew");
    assert_eq!(asked[0]["params"]["protocolVersion"], "2025-11-25", "the newest that has a handshake");
    for request in http.requests() {
        let agent = request.header("user-agent").unwrap_or_default().to_owned();
        assert!(agent.starts_with("switchboard/"), "{agent}");
    }
}

#[tokio::test]
async fn a_call_that_was_read_is_not_made_again_whatever_its_error_says() {
    const SESSION: &str = "Invalid session ID of the checkout";
    let answers = |id: &Value, params: &Value| {
        let id = if params["name"] == "own" { id.clone() } else { Value::Null };
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": SESSION}});
        Answer::status(400, "application/json", error.to_string())
    };
    let fake = Fake::new(json!([tool("own", "x", false), tool("lost", "x", false)]), answers).await;
    let both = turn().call("own", "peer__own", &json!({})).call("lost", "peer__lost", &json!({})).done();
    let s = product(&fake.section("timeout_s = 20\napproval = \"auto\""), [both, says("Done.")]).await;
    s.app.chat(&message("Go")).await;
    let error = |name: &str| s.result_of(name)["error"].as_str().unwrap().to_owned();
    for (name, reason) in [("own", "it is the answer to it"), ("lost", "this server has no sessions")] {
        let told = error(name);
        assert!(
            told.starts_with("it is not known whether this was done") && told.contains(SESSION),
            "{reason}: {told}"
        );
    }
    assert_eq!(fake.calls(), 2);
}

#[tokio::test]
async fn an_error_without_an_id_in_the_stream_of_a_request_answers_it() {
    let answers = |id: &Value, params: &Value| {
        let events = match params["name"].as_str() {
            Some("null") => {
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32602, "message": "no n"}}).to_string()
            }
            Some("none") => json!({"jsonrpc": "2.0", "error": {"code": -32602, "message": "no n"}}).to_string(),
            _ => result(id, &json!({"content": [{"type": "text", "text": "{\"error\": {}}"}]})).to_string(),
        };
        Answer::ok("text/event-stream", format!("event: message\ndata: {events}\n\n"))
    };
    let names = ["null", "none", "fine"];
    let tools: Vec<Value> = names.iter().map(|name| tool(name, "x", true)).collect();
    let fake = Fake::new(json!(tools), answers).await;
    let all = names.iter().fold(turn(), |turn, name| turn.call(name, &format!("peer__{name}"), &json!({})));
    // Far longer than the test may take.
    let s = product(&fake.section("timeout_s = 3600"), [all.done(), says("Done.")]).await;
    s.app.chat(&message("Go")).await;
    for name in ["null", "none"] {
        assert_eq!(s.result_of(name)["error"], json!("the server of this tool refused the call: no n"), "{name}");
    }
    assert_eq!(s.result_of("fine"), json!({"error": {}}));
    assert_eq!(fake.calls(), 3);
}
