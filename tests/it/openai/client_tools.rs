//! Tools that the client runs itself: left to it, and answered in the conversation that waits for them.

use serde_json::{Value, json};

use super::{COMPLETIONS, ask, call_id, delta, finished, frames, opening, playing, post, refused, streamed, usage};
use crate::support::model::{Script, Scripted, says, turn};

fn weather() -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    json!([{"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": parameters}}])
}

/// A turn that asks for the weather in two cities.
fn asks_twice() -> Script {
    turn()
        .text("Let me look.")
        .call("w1", "get_weather", &json!({"city": "Paris"}))
        .call("w2", "get_weather", &json!({"city": "Rome"}))
        .done()
}

fn with_tools(mut body: Value) -> Value {
    body["tools"] = weather();
    body
}

async fn answer(s: &Scripted, headers: &[(&str, &str)], body: &Value) -> Value {
    let response = post(s, headers, body).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    serde_json::from_str::<Value>(&text).unwrap()["choices"][0].take()
}

/// The request that follows: with the answer, and what came of its calls.
fn followed(message: &Value, results: &[&str]) -> Value {
    let mut body = with_tools(ask("Weather?"));
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(message.clone());
    for (call, content) in message["tool_calls"].as_array().unwrap().iter().zip(results) {
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
    }
    body
}

/// The names of the tools that the model was offered last.
fn offered(s: &Scripted) -> Vec<String> {
    let asked = s.model.requests().last().unwrap().json();
    let tools = asked["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn calls_are_streamed_with_ids_that_carry_the_conversation_and_their_results_find_it() {
    let s = playing([asks_twice(), says("Sun and rain.")]).await;
    let response = post(&s, &[], &with_tools(streamed("Weather?"))).await;
    let conversation = response.headers()["x-conversation-id"].to_str().unwrap().to_owned();
    let call = |index: u32, id: &str, arguments: &str| {
        let function = json!({"name": "get_weather", "arguments": arguments});
        let id = call_id(&conversation, id);
        delta(json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}))
    };
    let expected = [
        opening(),
        delta(json!({"content": "Let me look."})),
        call(0, "w1", r#"{"city":"Paris"}"#),
        call(1, "w2", r#"{"city":"Rome"}"#),
        finished("tool_calls"),
        json!({"choices": [], "usage": usage(1)}),
        json!("[DONE]"),
    ];
    assert_eq!(frames(response).await, expected);
    assert!(offered(&s).contains(&"get_weather".to_owned()));

    let ids = ["w1", "w2"].map(|id| json!({"id": call_id(&conversation, id)}));
    let message = json!({"role": "assistant", "content": null, "tool_calls": ids});
    let body = followed(&message, &["sun in Paris", "rain in Rome"]);
    let response = post(&s, &[], &body).await;
    assert_eq!(response.headers()["x-conversation-id"], conversation.as_str());
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], "Sun and rain.");
    let asked = json!(s.last_asked()).to_string();
    assert!(asked.contains("sun in Paris") && asked.contains("rain in Rome"), "{asked}");
}

#[tokio::test]
async fn results_before_a_message_are_taken_with_it() {
    // Cline, Codex and whoever tells a tool's picture say something behind each result: a run of its own for the results would
    // call tools that nobody hears of.
    let s = playing([asks_twice(), asks_twice(), says("Snow.")]).await;
    let choice = answer(&s, &[], &with_tools(ask("Weather?"))).await;
    let mut body = followed(&choice["message"], &["sun in Paris", "rain in Rome"]);
    body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "And tomorrow?"}));
    let next = answer(&s, &[], &body).await;
    assert_eq!((&next["finish_reason"], s.model.requests().len()), (&json!("tool_calls"), 2), "one turn reads both");
    let asked = s.last_asked();
    let both = r#"{"told_by":"client","result":"rain in Rome","user_says":"And tomorrow?"}"#;
    assert_eq!(asked.last().unwrap()["content"], both);
    assert!(json!(asked).to_string().contains("sun in Paris"), "{asked:?}");

    // A conversation that is kept has a message for what its user says.
    let key = &[("x-conversation-id", "c")];
    let s = playing([asks_twice(), says("Sun and rain."), says("Snow.")]).await;
    let choice = answer(&s, key, &with_tools(ask("Weather?"))).await;
    let mut body = followed(&choice["message"], &["sun in Paris", "rain in Rome"]);
    for text in ["And tomorrow?", "In Oslo."] {
        body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": text}));
    }
    body["stream"] = json!(true);
    let response = post(&s, key, &body).await;
    assert_eq!(response.status(), 200);
    let text = response.text().await.unwrap();
    assert!(text.contains("Snow.") && !text.contains("Sun and rain."), "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let asked = s.last_asked();
    assert_eq!(asked.last().unwrap()["content"], "And tomorrow?\n\nIn Oslo.");
    let asked = json!(asked).to_string();
    assert!(asked.contains("sun in Paris") && asked.contains("rain in Rome"), "{asked}");
}

#[tokio::test]
async fn results_before_a_message_that_nobody_waits_for_are_passed_over() {
    for key in [&[][..], &[("x-conversation-id", "c")]] {
        let s = playing([asks_twice(), says("Fine."), says("Snow."), says("Fog.")]).await;
        let choice = answer(&s, key, &with_tools(ask("Weather?"))).await;
        let mut body = followed(&choice["message"], &["sun", "rain"]);
        assert_eq!(answer(&s, key, &body).await["message"]["content"], "Fine.");
        // A client that has lost the answer to them.
        body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "And tomorrow?"}));
        assert_eq!(answer(&s, key, &body).await["message"]["content"], "Snow.");
        assert_eq!(s.last_asked().last().unwrap()["content"], "And tomorrow?");
        // Those of another server, further back.
        for (at, message) in body["messages"].as_array_mut().unwrap().iter_mut().enumerate() {
            match message["role"].as_str() {
                Some("tool") => message["tool_call_id"] = json!(format!("call_{at}")),
                Some("assistant") => message["tool_calls"] = json!([]),
                _ => {}
            }
        }
        assert_eq!(answer(&s, key, &body).await["message"]["content"], "Fog.");
    }
}

#[tokio::test]
async fn results_that_nobody_waits_for_are_refused_and_not_to_be_sent_again() {
    let s = playing([asks_twice(), says("Fine.")]).await;
    let choice = answer(&s, &[], &with_tools(ask("Weather?"))).await;
    let both = followed(&choice["message"], &["sun", "rain"]);

    let bob = s.app.token_of("bob", None, &["USER"]);
    let as_bob = s.app.http.post(s.app.url(COMPLETIONS)).bearer_auth(bob).json(&both).send().await.unwrap();
    let mut forged = both.clone();
    forged["messages"][2]["tool_call_id"] =
        json!(choice["message"]["tool_calls"][0]["id"].as_str().unwrap().replace("w1", "w9"));
    let rows = [(as_bob, "another user's"), (post(&s, &[], &forged).await, "a call that was never made")];
    for (response, reason) in rows {
        let (status, error) = refused(response).await;
        let told = (status, &error["code"], &error["param"]);
        assert_eq!(told, (400, &json!("no_such_call"), &json!("messages")), "{reason}: {error}");
    }
    assert_eq!(answer(&s, &[], &both).await["message"]["content"], "Fine.");
    let (status, error) = refused(post(&s, &[], &both).await).await;
    assert_eq!((status, &error["code"]), (400, &json!("no_such_call")), "they have been answered");
    assert_eq!(s.model.requests().len(), 2);
}

#[tokio::test]
async fn a_key_finds_the_run_that_the_same_results_began() {
    let s = playing([asks_twice(), says("Fine.")]).await;
    let choice = answer(&s, &[], &with_tools(ask("Weather?"))).await;
    let both = followed(&choice["message"], &["sun", "rain"]);
    let key = [("idempotency-key", "k")];
    for _ in 0..2 {
        assert_eq!(answer(&s, &key, &both).await["message"]["content"], "Fine.");
    }
    assert_eq!(s.model.requests().len(), 2);
}

#[tokio::test]
async fn in_a_conversation_that_is_named_calls_have_the_models_own_ids() {
    let s = playing([asks_twice(), says("Fine.")]).await;
    let key = [("x-conversation-id", "c")];
    let choice = answer(&s, &key, &with_tools(ask("Weather?"))).await;
    let ids: Vec<_> =
        choice["message"]["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!((ids, &choice["finish_reason"]), (vec!["w1", "w2"], &json!("tool_calls")));
    let both = followed(&choice["message"], &["sun", "rain"]);
    assert_eq!(answer(&s, &key, &both).await["message"]["content"], "Fine.");
}

#[tokio::test]
async fn tools_that_are_not_to_be_called_are_not_offered() {
    let s = playing([says("Hi."), says("Hi.")]).await;
    let mut body = with_tools(ask("Hi"));
    answer(&s, &[], &body).await;
    let all = offered(&s);
    body["tool_choice"] = json!("none");
    answer(&s, &[], &body).await;
    let rest: Vec<_> = all.into_iter().filter(|name| name != "get_weather").collect();
    assert_eq!(offered(&s), rest);
}

#[tokio::test]
async fn a_tool_with_the_name_of_the_servers_own_is_the_servers() {
    let own = turn().call("t1", "discover_trigger_types", &json!({})).done();
    let s = playing([own, says("Three.")]).await;
    let mut body = ask("How many?");
    body["tools"] = json!([{"type": "function", "function": {"name": "discover_trigger_types"}}]);
    let choice = answer(&s, &[], &body).await;
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!("Three."), &json!("stop")));
}

#[tokio::test]
async fn a_tool_that_no_model_can_be_told_of_is_left_out_and_the_others_count() {
    let calls = turn().call("c1", "flat", &json!({})).done();
    let s = playing([says("Fine."), says("Fine."), calls, says("Fine.")]).await;
    let long = format!("mcp__plugin_chrome-devtools-mcp_chrome-devtools__{}", "x".repeat(30));
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    // Cursor writes what a function is beside its type.
    let flat = json!({"type": "function", "name": "flat", "parameters": {"type": "object"}});
    let patch = json!({"type": "custom", "name": "patch", "custom": {"name": "patch"}});
    let mut body = ask("Hi");
    body["tools"] = json!([tool(&long), tool("short"), flat, patch]);
    let named = json!({"type": "function", "name": "flat"});
    for choice in [json!("auto"), json!({"type": "function", "function": {"name": long}}), named] {
        body["tool_choice"] = choice;
        let response = post(&s, &[], &body).await;
        assert_eq!(response.status(), 200);
        assert!(response.headers()["x-switchboard-ignored"].to_str().unwrap().starts_with("tools"));
        let names = offered(&s);
        assert!(names.contains(&"short".to_owned()) && names.contains(&"flat".to_owned()), "{names:?}");
        assert!(!names.contains(&long) && !names.contains(&"patch".to_owned()), "{names:?}");
    }
    let last = s.model.requests().last().unwrap().json();
    assert_eq!(last["tool_choice"]["function"]["name"], "flat");
    body["tools"] = json!([patch]);
    body["tool_choice"] = json!("required");
    assert_eq!(post(&s, &[], &body).await.status(), 200, "there is none that could be required");
    for wrong in [json!([tool("a b")]), json!([tool(&"x".repeat(129))]), json!([{"type": "function"}])] {
        body["tools"] = wrong;
        assert_eq!(refused(post(&s, &[], &body).await).await.0, 400);
    }
}

#[tokio::test]
async fn a_system_message_alone_is_the_question() {
    let s = playing([says("Bonjour.")]).await;
    let only = json!({"model": "workflow", "messages": [{"role": "system", "content": "Translate: Hello."}]});
    assert_eq!(answer(&s, &[], &only).await["message"]["content"], "Bonjour.");
    assert_eq!(s.last_asked().last().unwrap()["content"], "Translate: Hello.");
    let blank = json!({"model": "workflow", "messages": [{"role": "system", "content": " "}]});
    assert_eq!(refused(post(&s, &[], &blank).await).await.0, 400);
}
