//! What a request may say, and what is said to one that may not.

use serde_json::{Value, json};

use super::{World, post, problem, request, said, user};
use crate::support::model::says;

fn with(mut body: Value, key: &str, value: Value) -> Value {
    body[key] = value;
    body
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_before_a_stream() {
    let w = World::playing([]).await;
    let assistant = |parts: Value| request(json!([{"id": "a", "role": "assistant", "parts": parts}]));
    let file = json!([{"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,A"}]);
    let approval = |approval: Value| {
        assistant(
            json!([{"type": "dynamic-tool", "toolName": "t", "toolCallId": "c", "state": "approval-responded", "input": {}, "approval": approval}]),
        )
    };
    let tool = |tool: Value| with(said("Hi"), "tools", json!([tool]));
    let rows = [
        (with(said("Hi"), "id", json!("no id!")), "id must be 1 to 128 characters of A-Z a-z 0-9 . _ : -"),
        (with(said("Hi"), "id", json!(null)), "id is required and must not be empty"),
        (with(said("Hi"), "messages", json!(null)), "messages is required and must not be empty"),
        (with(said("Hi"), "messages", json!([])), "messages must have a message"),
        (with(said("Hi"), "messages", json!("Hi")), "messages must be a list of messages"),
        (with(said("Hi"), "messages", json!(["Hi"])), "messages the newest one must have an id, a role and parts"),
        (request(json!([{"id": "u", "role": "user"}])), "messages must have parts, a list of objects with a type"),
        (
            request(json!([{"id": "u", "role": "user", "parts": [7]}])),
            "messages must have parts, a list of objects with a type",
        ),
        (request(json!([user("u", " ")])), "messages has no text"),
        (
            request(json!([{"id": "u", "role": "user", "parts": file}])),
            "messages has a file that must have its data in base64",
        ),
        (
            request(json!([{"id": "s", "role": "system", "parts": []}])),
            "messages must end with a message of the user's, or with an answer that goes on",
        ),
        (assistant(json!([{"type": "text", "text": "Hi"}])), "messages ends with an answer to which nothing was added"),
        (
            approval(json!({"id": "no id", "approved": true})),
            "messages has a decision that names an approval that is none",
        ),
        (
            approval(json!({"id": "01999999-9999-7999-8999-000000000001", "approved": "true"})),
            "messages has a decision that must have the id of an approval, approved, true or false, and perhaps a reason",
        ),
        (
            approval(json!({"id": "01999999-9999-7999-8999-000000000001"})),
            "messages has a decision that must have the id of an approval, approved, true or false, and perhaps a reason",
        ),
        (with(said("Hi"), "trigger", json!("resume-stream")), "trigger must be submit-message or regenerate-message"),
        (with(said("Hi"), "sdk", json!(4)), "sdk must be 5, 6 or 7"),
        (with(said("Hi"), "context_type", json!("nowhere")), "context_type must be one of: tables, tickets, workflow"),
        (
            with(said("Hi"), "context_type", json!(null)),
            "context_type is required, in the URL or as a key of the body: one of tables, tickets, workflow",
        ),
        (with(said("Hi"), "context", json!(7)), "context must be an object"),
        (
            tool(json!({"name": "a b", "inputSchema": {}})),
            "tools [0] must have a name of 1 to 64 characters of A-Z a-z 0-9 _ -",
        ),
        (
            tool(json!({"name": "a", "inputSchema": {"type": "string"}})),
            "tools [0] must have parameters of the type object",
        ),
        (
            tool(json!({"name": "a"})),
            "tools [0] must have a name, and inputSchema or parameters, an object, and may have a description",
        ),
        (tool(json!("a")), "tools must be a list of objects, or an object with an object for each name"),
        (
            with(said("Hi"), "tools", json!({"a": 1})),
            "tools must be a list of objects, or an object with an object for each name",
        ),
        (
            with(said("Hi"), "tools", json!({"a b": {"parameters": {}}})),
            "tools [0] must have a name of 1 to 64 characters of A-Z a-z 0-9 _ -",
        ),
    ];
    for (body, expected) in rows {
        let (status, code, detail) = problem(post(&w.s.app, "", &body).await).await;
        assert_eq!((status, code.as_str(), detail.as_str()), (400, "invalid_request", expected), "{body}");
    }
    let (status, code, _) = problem(post(&w.s.app, "?sdk=8", &said("Hi")).await).await;
    assert_eq!((status, code.as_str()), (400, "invalid_request"));
    let (status, code, _) = problem(post(&w.s.app, "?sdk=5&sdk=6", &said("Hi")).await).await;
    assert_eq!((status, code.as_str()), (400, "invalid_request"));
    let unsigned = w.s.app.http.post(w.s.app.url("/v1/ai-sdk/chat")).json(&said("Hi")).send().await.unwrap();
    assert_eq!(problem(unsigned).await.0, 401);
}

#[tokio::test]
async fn tools_of_the_page_come_in_the_forms_that_clients_have() {
    let schema = json!({"type": "object", "properties": {"color": {"type": "string"}}});
    let forms = [
        (json!({}), None, "none, as an object"),
        (json!({"paint": {"description": "Paints.", "parameters": schema}}), Some("Paints."), "by their names"),
        (json!([{"name": "paint", "parameters": schema}]), None, "as models are told"),
        (
            json!([{"name": "paint", "description": "Paints.", "inputSchema": schema}]),
            Some("Paints."),
            "as the SDK says",
        ),
    ];
    for (tools, description, reason) in forms {
        let w = World::playing([says("Hi!")]).await;
        assert_eq!(w.ask("", &with(said("Hi"), "tools", tools.clone())).await.text(), "Hi!", "{reason}");
        let told = w.s.model.requests().pop().unwrap().json()["tools"].as_array().unwrap().clone();
        let painting: Vec<_> = told.into_iter().filter(|tool| tool["function"]["name"] == "paint").collect();
        match painting.first() {
            None => assert!(tools.as_object().is_some_and(serde_json::Map::is_empty), "{reason}"),
            Some(tool) => {
                assert_eq!(tool["function"]["parameters"], schema, "{reason}");
                assert_eq!(
                    tool["function"]["description"].as_str().filter(|text| !text.is_empty()),
                    description,
                    "{reason}"
                );
            }
        }
    }
}

#[tokio::test]
async fn one_message_is_as_good_as_all() {
    let w = World::playing([says("Hi!")]).await;
    let mut body = said("Hi");
    let messages = body.as_object_mut().unwrap().remove("messages").unwrap();
    body["message"] = messages[0].clone();
    assert_eq!(w.ask("", &body).await.text(), "Hi!");
}

#[tokio::test]
async fn the_url_may_say_which_assistant_answers_and_parts_of_any_kind_are_passed_over() {
    let w = World::playing([says("Hi!"), says("Hi!")]).await;
    let parts = json!([
        {"type": "text", "text": "One"},
        {"type": "data-weather", "data": {"x": 1}},
        {"type": "from-the-future", "y": [2]},
        {"type": "text", "text": "two"},
    ]);
    let body = with(request(json!([{"id": "u", "role": "user", "parts": parts}])), "context_type", json!(null));
    for query in ["?context_type=tickets", "?profile=tickets"] {
        w.ask(query, &body).await;
        assert_eq!(w.s.last_asked().last().unwrap()["content"], json!("One\ntwo"), "{query}");
    }
}

#[tokio::test]
async fn what_assistant_ui_tells_the_model_counts_where_a_profile_takes_it() {
    let host = ("profiles/host.toml", "id = \"host\"\ncontext_type = \"host\"\nclient_instructions = \"append\"\n");
    let s = crate::openai::with(&[host], &[], [says("Aye.").answer(), says("Yes.").answer()]).await;
    for (profile, expected) in [("host", true), ("workflow", false)] {
        let body = with(with(said("Hi"), "system", json!("Speak like a pirate.")), "context_type", json!(profile));
        let body = with(body, "id", json!(profile));
        let response = post(&s.app, "", &body).await;
        assert_eq!(response.status(), 200);
        response.text().await.unwrap();
        let sent = s.model.requests().last().unwrap().json().to_string();
        assert_eq!(sent.contains("Speak like a pirate."), expected, "{profile}");
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused() {
    let w = World::answering(&[("LIMITS__MESSAGE_BYTES", "10")], []).await;
    let (status, code, _) = problem(post(&w.s.app, "", &said("12345678901")).await).await;
    assert_eq!((status, code.as_str()), (413, "field_too_large"));
}

#[tokio::test]
async fn the_same_body_for_another_profile_is_another_request() {
    let w = World::playing([says("Yes.")]).await;
    let mut body = said("Hi");
    body.as_object_mut().unwrap().remove("context_type");
    let send = async |query: &str| {
        let request = w.s.app.http.post(w.s.app.url(&format!("/v1/ai-sdk/chat{query}"))).bearer_auth(&w.s.app.token);
        let response = request.header("idempotency-key", "k").json(&body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let (status, first) = send("?context_type=tickets").await;
    assert_eq!(status, 200, "{first}");
    assert_eq!(send("?context_type=tickets").await, (200, first.clone()), "the same request");
    assert_eq!(send("?profile=tickets").await, (200, first), "the same in other words");
    let (status, other) = send("?context_type=workflow").await;
    assert!(status == 422 && other.contains("idempotency_mismatch"), "{status} {other}");
}
