//! Request bodies: what is refused and why, and what is accepted though nobody here knows it.

use serde_json::{Value, json};

use super::{COMPLETIONS, ask, playing, post, refused};
use crate::support::model::says;

/// A good request with one field changed.
fn changed(field: &str, value: Value) -> Value {
    let mut body = ask("Hi");
    body[field] = value;
    body
}

fn tool(name: &str, parameters: Value) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": parameters}})
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_by_its_field() {
    let s = playing([]).await;
    let object = json!({"type": "object"});
    let image = json!([{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "x"}}]);
    let message = |role: &str, content: Value| json!([{"role": role, "content": content}]);
    let rows = [
        (changed("model", json!(null)), "model", "no model"),
        (changed("model", json!(7)), "model", "a number"),
        (changed("messages", json!(null)), "messages", "no messages"),
        (changed("messages", json!([])), "messages", "none"),
        (changed("messages", json!("Hi")), "messages", "no list"),
        (changed("messages", json!(["Hi"])), "messages", "no objects"),
        (changed("messages", json!([["user", "Hi"]])), "messages", "a list for an object"),
        (changed("messages", message("wizard", json!("Hi"))), "messages", "an unknown role"),
        (changed("messages", message("user", json!(" "))), "messages", "nothing said"),
        (changed("messages", message("user", json!(null))), "messages", "nothing at all"),
        (changed("messages", message("user", json!(7))), "messages", "no text"),
        (changed("messages", message("user", image)), "messages", "more than text"),
        (changed("messages", message("assistant", json!("Sure, "))), "messages", "an answer to complete"),
        (changed("messages", message("function", json!("Hi"))), "messages", "a result of old"),
        (
            changed("messages", json!([{"role": "tool", "tool_call_id": "t", "content": "x"}])),
            "messages",
            "no call of ours",
        ),
        (changed("stream", json!("yes")), "stream", "no flag"),
        (changed("stream_options", json!([true])), "stream_options", "a list for an object"),
        (changed("n", json!(2)), "n", "two answers"),
        (changed("n", json!(0)), "n", "no answer"),
        (changed("tools", json!({})), "tools", "no list"),
        (changed("tools", json!([{"type": "function"}])), "tools", "no function"),
        (changed("tools", json!([tool("a b", object.clone())])), "tools", "a name with a blank"),
        (changed("tools", json!([tool("a", json!([]))])), "tools", "parameters that are a list"),
        (changed("tools", json!([tool("a", json!({"type": "string"}))])), "tools", "parameters that are a text"),
        (changed("tools", json!([tool("a", object.clone()), tool("a", object.clone())])), "tools", "a name twice"),
        (changed("tools", json!(vec![tool("a", object.clone()); 129])), "tools", "too many"),
        (changed("temperature", json!("hot")), "temperature", "no number"),
        (changed("max_tokens", json!(1.5)), "max_tokens", "half a token"),
        (changed("metadata", json!({"conversation_id": "a b"})), "metadata.conversation_id", "no id"),
    ];
    for (body, param, reason) in rows {
        let (status, error) = refused(post(&s, &[], &body).await).await;
        let told = (&error["type"], &error["code"], &error["param"]);
        let expected = (&json!("invalid_request_error"), &json!("invalid_request"), &json!(param));
        assert_eq!((status, told), (400, expected), "{reason}: {error}");
        assert!(error["message"].as_str().unwrap().contains(param), "{reason}: {error}");
    }
}

#[tokio::test]
async fn bodies_and_headers_that_are_none_are_refused() {
    let s = playing([]).await;
    let request = || s.app.http.post(s.app.url(COMPLETIONS)).bearer_auth(&s.app.token);
    let huge = "x".repeat(33_600_000);
    let long = ask(&"x".repeat(140_000)).to_string();
    let large = changed("tools", json!([tool("a", json!({"type": "object", "x": "x".repeat(131_072)}))])).to_string();
    let rows = [
        (request().body("{"), 400, "malformed_json", "no JSON"),
        (request().body("[]"), 400, "malformed_json", "no object"),
        (request().body("[".repeat(100)), 400, "json_too_deep", "too deep"),
        (request().body(huge), 413, "body_too_large", "too large"),
        (request().body(long), 413, "field_too_large", "a long message"),
        (request().body(large), 413, "field_too_large", "tools that are too large together"),
        (request().header("content-encoding", "gzip").json(&ask("Hi")), 415, "encoded_body", "compressed"),
        (request().header("x-conversation-id", "a b").json(&ask("Hi")), 400, "invalid_request", "no id"),
        (request().header("x-openwebui-chat-id", "a/b").json(&ask("Hi")), 400, "invalid_request", "no id"),
        (request().header("idempotency-key", " ").json(&ask("Hi")), 400, "invalid_request", "no key"),
    ];
    for (request, expected, code, reason) in rows {
        let (status, error) = refused(request.send().await.unwrap()).await;
        assert_eq!((status, &error["code"]), (expected, &json!(code)), "{reason}: {error}");
    }
}

#[tokio::test]
async fn what_nobody_here_knows_is_accepted() {
    let mut body = ask("Hi");
    let more = json!({
        "frequency_penalty": 0, "presence_penalty": 0.1, "top_p": 1, "seed": 7, "stop": ["END"], "user": "ada",
        "logit_bias": {}, "logprobs": false, "response_format": {"type": "text"}, "store": true,
        "parallel_tool_calls": false, "service_tier": "auto", "metadata": {"x": "y"}, "tool_choice": "auto", "n": 1,
        "max_tokens": -1, "temperature": 9, "reasoning_effort": "whatever", "chat_id": "x", "session_id": "y",
        "functions": [], "stream": null, "stream_options": null, "tools": [], "modalities": ["text"],
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    for (field, value) in [("metadata", json!({"x": "y"})), ("metadata", json!("text")), ("metadata", json!([1]))] {
        body[field] = value;
        let s = playing([says("Fine.")]).await;
        let answer: Value = post(&s, &[], &body).await.json().await.unwrap();
        assert_eq!(answer["choices"][0]["message"]["content"], "Fine.", "{answer}");
    }
}
