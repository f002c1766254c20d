//! Tools that the client runs itself: left to it, and answered in the conversation that waits for them.

use serde_json::{Value, json};

use super::{
    MESSAGES, also, ask, assistant, blocks, kinds, playing, post, refused, streamed, text_of, user, whole, with,
};
use crate::support::model::{Script, Scripted, says, turn};

fn tools() -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let cached = json!({"type": "ephemeral"});
    json!([
        {"name": "get_weather", "description": "Weather.", "input_schema": schema, "cache_control": cached},
        {"type": "custom", "name": "look", "input_schema": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web_search"},
    ])
}

fn with_tools(body: Value) -> Value {
    also(body, json!({"tools": tools()}))
}

fn asks() -> Script {
    turn()
        .text("Let me look.")
        .call("w1", "get_weather", &json!({"city": "Paris"}))
        .call("w2", "look", &json!({}))
        .done()
}

/// A result for each call of a message.
fn results(message: &Value) -> Vec<Value> {
    let calls = message["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
    let result = |call: &Value| json!({"type": "tool_result", "tool_use_id": call["id"], "content": format!("result of {}", call["name"].as_str().unwrap())});
    calls.map(result).collect()
}

/// The request that follows: with the message, and what came of its calls.
fn followed(message: &Value, content: Vec<Value>) -> Value {
    let mut body = with_tools(ask("Weather?"));
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(message["content"].clone()));
    messages.push(user(json!(content)));
    body
}

fn offered(s: &Scripted) -> Vec<String> {
    let asked = s.model.requests().last().unwrap().json();
    let tools = asked["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn calls_are_left_to_the_client_and_their_results_go_on() {
    let s = playing([asks(), says("Sun.")]).await;
    let first = whole(&s, &with_tools(ask("Weather?"))).await;
    assert_eq!((kinds(&first), &first["stop_reason"]), (vec!["text", "tool_use", "tool_use"], &json!("tool_use")));
    assert_eq!(first["content"][1]["input"], json!({"city": "Paris"}));
    let offered = offered(&s);
    assert!(["get_weather", "look"].iter().all(|name| offered.contains(&(*name).to_owned())), "{offered:?}");
    assert!(!offered.contains(&"web_search".to_owned()), "it is nobody's here");
    let second = whole(&s, &followed(&first, results(&first))).await;
    assert_eq!((text_of(&second).as_str(), &second["stop_reason"]), ("Sun.", &json!("end_turn")));
    let asked = s.last_asked();
    let results: Vec<&str> = asked
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .filter(|result| !result.contains("awaiting_client"))
        .collect();
    assert!(
        results.len() == 2 && results[0].contains("result of get_weather") && results[1].contains("result of look"),
        "{results:?}"
    );
}

#[tokio::test]
async fn a_tool_of_the_server_and_one_of_the_client_are_told_apart_in_one_message() {
    let both = turn()
        .call("t1", "discover_trigger_types", &json!({}))
        .call("w1", "get_weather", &json!({"city": "Rome"}))
        .done();
    let s = playing([both, says("Sunny.")]).await;
    let events = streamed(post(&s, &[], &with_tools(also(ask("Both"), json!({"stream": true})))).await).await;
    let blocks = blocks(&events);
    let message = json!({"content": blocks});
    assert_eq!(kinds(&message), ["mcp_tool_use", "mcp_tool_result", "tool_use"]);
    assert_eq!(blocks[2]["input"], json!({"city": "Rome"}));
    let started: Vec<&Value> = events.iter().filter(|event| event["content_block"]["type"] == "tool_use").collect();
    assert_eq!(started[0]["content_block"]["input"], json!({}), "it comes in pieces");
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");

    // The client sends all of it back, and answers its own call only.
    let second = whole(&s, &followed(&message, results(&message))).await;
    assert_eq!(text_of(&second), "Sunny.");
    assert!(json!(s.last_asked()).to_string().contains("result of get_weather"));
}

#[tokio::test]
async fn words_beside_results_failures_and_images_are_read_with_them() {
    let s = playing([asks(), says("I see.")]).await;
    let first = whole(&s, &with_tools(ask("Weather?"))).await;
    let mut content = results(&first);
    content[0]["is_error"] = json!(true);
    content[1]["content"] = json!([{"type": "text", "text": "a picture"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR"}}]);
    content.push(json!({"type": "text", "text": "And tomorrow?"}));
    assert_eq!(text_of(&whole(&s, &followed(&first, content)).await), "I see.");
    let asked = json!(s.last_asked()).to_string();
    for said in ["result of get_weather", "a picture", "[something that cannot be read here]", "And tomorrow?"] {
        assert!(asked.contains(said), "{said}: {asked}");
    }
    assert!(!asked.contains("iVBOR"), "{asked}");
    assert_eq!(s.model.requests().len(), 2, "one turn reads all of it");
}

#[tokio::test]
async fn results_that_nobody_waits_for_are_refused_and_not_to_be_sent_again() {
    let s = playing([asks(), says("Fine.")]).await;
    let first = whole(&s, &with_tools(ask("Weather?"))).await;
    let body = followed(&first, results(&first));
    let mut forged = body.clone();
    let id = first["content"][1]["id"].as_str().unwrap();
    forged["messages"][2]["content"][0]["tool_use_id"] = json!(id.replace("w1", "w9"));
    let bob = s.app.token_of("bob", None, &["USER"]);
    let as_bob = s.app.http.post(s.app.url(MESSAGES)).bearer_auth(bob).json(&body).send().await.unwrap();
    for (response, reason) in [(as_bob, "another user's"), (post(&s, &[], &forged).await, "never made")] {
        let (status, kind, _) = refused(response).await;
        assert_eq!((status, kind.as_str()), (400, "invalid_request_error"), "{reason}");
    }
    assert_eq!(text_of(&whole(&s, &body).await), "Fine.");
    assert_eq!(refused(post(&s, &[], &body).await).await.0, 400, "they have been answered");
}

#[tokio::test]
async fn a_client_says_which_of_its_tools_is_called() {
    let named = json!({"type": "tool", "name": "get_weather"});
    let told = json!({"type": "function", "function": {"name": "get_weather"}});
    for (choice, expected) in
        [(json!({"type": "any"}), json!("required")), (named, told), (json!({"type": "auto"}), json!(null))]
    {
        let s = playing([asks()]).await;
        whole(&s, &with_tools(also(ask("Weather?"), json!({"tool_choice": choice})))).await;
        assert_eq!(s.model.requests()[0].json()["tool_choice"], expected, "{choice}");
    }
    let search = json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]});
    let left_out = also(search, json!({"tool_choice": {"type": "tool", "name": "web_search"}}));
    let s = playing([says("News.")]).await;
    let response = post(&s, &[], &also(ask("News?"), left_out)).await;
    assert_eq!(
        response.headers()["x-switchboard-ignored"].to_str().unwrap().split(", ").take(2).collect::<Vec<_>>(),
        ["tools", "tool_choice"]
    );
    assert_eq!(response.status(), 200);
    let s = with(&[], &[], []).await;
    let other = with_tools(also(ask("News?"), json!({"tool_choice": {"type": "tool", "name": "get_news"}})));
    let (status, kind, words) = refused(post(&s, &[], &other).await).await;
    assert_eq!((status, kind.as_str(), words.contains("tool_choice")), (400, "invalid_request_error", true), "{words}");
}
