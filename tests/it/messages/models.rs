//! Models as these clients know them: at the routes of OpenAI's protocol, told apart by a header.

use serde_json::{Value, json};

use super::{message, refused, with};

const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// What a profile says whose model sees, and whose requests may choose how much it thinks and are shown that, or neither.
fn capabilities(gives: bool) -> Value {
    let [yes, no, own] = [true, false, gives].map(|supported| json!({"supported": supported}));
    json!({
        "batch": no, "citations": no, "code_execution": no,
        "context_management": {"supported": false, "clear_thinking_20251015": null, "clear_tool_uses_20250919": null,
            "compact_20260112": null},
        "effort": {"supported": gives, "low": own, "medium": own, "high": own, "xhigh": own, "max": own},
        "image_input": yes, "pdf_input": yes,
        "server_tools": {"supported": false, "code_execution": no, "web_search": no},
        "structured_outputs": yes,
        "thinking": {"supported": gives,
            "types": {"adaptive": own, "between_tools": own, "disabled": yes, "enabled": own}},
    })
}

#[tokio::test]
async fn models_have_the_shape_of_the_client_that_asks() {
    let s = with(&[], &[("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", "http://127.0.0.1:1")], []).await;
    let get = async |path: &str, key: &str, version: bool| {
        let mut request = s.app.http.get(s.app.url(path)).header("x-api-key", key);
        if version {
            request = request.header(VERSION.0, VERSION.1);
        }
        request.send().await.unwrap()
    };
    let model = |id: &str, name: &str, gives: bool| {
        json!({"type": "model", "id": id, "display_name": name, "created_at": "1970-01-01T00:00:00Z",
            "capabilities": capabilities(gives)})
    };
    let open = model("open", "Open", true);
    let all =
        json!([open, model("tables", "Table configurations", false), model("workflow", "Automation rules", false)]);
    let list = json!({"data": all, "has_more": false, "first_id": "open", "last_id": "workflow"});
    assert_eq!(message(get("/v1/models?limit=1000", &s.app.token, true).await).await, list);
    assert_eq!(message(get("/v1/models/open", &s.app.token, true).await).await, open);
    let other: Value = get("/v1/models", &s.app.token, false).await.json().await.unwrap();
    assert_eq!((&other["object"], &other["data"][0]["object"]), (&json!("list"), &json!("model")));

    let (status, kind, _) = refused(get("/v1/models/chief", &s.app.token, true).await).await;
    assert_eq!((status, kind.as_str()), (404, "not_found_error"));
    let (status, kind, _) = refused(get("/v1/models", "nonsense", true).await).await;
    assert_eq!((status, kind.as_str()), (401, "authentication_error"));
    let none: Value = get("/v1/models/chief", &s.app.token, false).await.json().await.unwrap();
    assert_eq!(none["error"]["code"], "model_not_found");
}
