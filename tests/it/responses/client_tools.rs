//! Tools that the client runs itself: left to it, and answered in the conversation that waits for them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{also, ask, get, items, names, object, playing, post, refused, streamed, text_of, whole, with};
use crate::support::model::{Script, Scripted, says, turn};
use crate::support::upstream::Answer;

/// For what would never come.
const BOUND: Duration = Duration::from_secs(60);

fn tools() -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tool = |name: &str| json!({"type": "function", "name": name, "description": "Weather.", "parameters": parameters, "strict": false});
    json!([tool("get_weather"), {"type": "namespace", "name": "mcp__files", "tools": [tool("look")]}, {"type": "custom", "name": "patch"}, {"type": "web_search"}])
}

fn with_tools(body: Value) -> Value {
    also(body, json!({"tools": tools()}))
}

fn asks() -> Script {
    turn()
        .text("Let me look.")
        .call("w1", "get_weather", &json!({"city": "Paris"}))
        .call("w2", "mcp__files--look", &json!({}))
        .call("w3", "patch--", &json!({"input": "*** Begin"}))
        .done()
}

/// The results of all calls of a response.
fn results(response: &Value) -> Vec<Value> {
    let calls = response["output"].as_array().unwrap().iter().filter(|item| !item["call_id"].is_null());
    calls.map(|call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": format!("result of {}", call["name"].as_str().unwrap())})).collect()
}

fn offered(s: &Scripted) -> Vec<String> {
    let asked = s.model.requests().last().unwrap().json();
    let tools = asked["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn calls_are_left_to_the_client_by_its_own_names_and_their_results_go_on() {
    for store in [true, false] {
        let s = playing([asks(), says("Sun.")]).await;
        let first = whole(&s, &with_tools(also(ask("Weather?"), json!({"store": store})))).await;
        assert!(
            ["get_weather", "mcp__files--look", "patch--"].iter().all(|name| offered(&s).contains(&(*name).to_owned()))
        );
        let calls: Vec<_> = first["output"].as_array().unwrap()[1..]
            .iter()
            .map(|item| (&item["type"], &item["name"], &item["namespace"]))
            .collect();
        let null = &json!(null);
        let expected = [
            (&json!("function_call"), &json!("get_weather"), null),
            (&json!("function_call"), &json!("look"), &json!("mcp__files")),
            (&json!("custom_tool_call"), &json!("patch"), null),
        ];
        assert_eq!((calls, &first["status"]), (expected.to_vec(), &json!("completed")));

        // All that was said, as clients that keep nothing here say it.
        let input: Vec<Value> = [json!({"role": "user", "content": "Weather?"})]
            .into_iter()
            .chain(first["output"].as_array().unwrap().clone())
            .chain(results(&first))
            .collect();
        let second = whole(&s, &with_tools(json!({"model": "workflow", "input": input, "store": store}))).await;
        assert_eq!(text_of(&second), "Sun.");
        let asked = json!(s.last_asked()).to_string();
        assert!(
            ["get_weather", "look", "patch"].iter().all(|name| asked.contains(&format!("result of {name}"))),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn results_may_name_the_response_and_come_with_a_message() {
    let s = playing([asks(), says("Sun."), says("Rain.")]).await;
    let first = whole(&s, &with_tools(ask("Weather?"))).await;
    let mut input = results(&first);
    input.push(json!({"role": "user", "content": "And tomorrow?"}));
    let second = whole(&s, &json!({"model": "workflow", "input": input, "previous_response_id": first["id"]})).await;
    assert_eq!((text_of(&second), &second["conversation"]), ("Rain.".to_owned(), &first["conversation"]));
    let asked = s.last_asked();
    assert_eq!(asked.last().unwrap()["content"], "And tomorrow?");
    assert!(json!(asked).to_string().contains("result of patch"));
}

#[tokio::test]
async fn a_response_that_is_not_kept_reads_a_message_with_the_results_before_it() {
    let s = playing([asks(), asks(), says("Never.")]).await;
    let told = json!({"store": false});
    let first = whole(&s, &with_tools(also(ask("Weather?"), told.clone()))).await;
    let mut input = results(&first);
    input.push(json!({"role": "user", "content": "And tomorrow?"}));
    let body = with_tools(also(json!({"model": "workflow", "input": input}), told));
    let second = whole(&s, &body).await;
    assert_eq!((results(&second).len(), s.model.requests().len()), (3, 2), "one turn reads both: {second}");
    let both = r#"{"told_by":"client","result":"result of patch","user_says":"And tomorrow?"}"#;
    assert_eq!(s.last_asked().last().unwrap()["content"], both);
}

#[tokio::test]
async fn instructions_alone_are_the_question() {
    let s = playing([says("Bonjour.")]).await;
    let input = json!([{"role": "system", "content": "Translate: Hello."}]);
    assert_eq!(text_of(&whole(&s, &json!({"model": "workflow", "input": input})).await), "Bonjour.");
    assert_eq!(s.last_asked().last().unwrap()["content"], "Translate: Hello.");
}

/// A turn that says "Sun." once the gate is open.
fn waits(gate: &Arc<Notify>) -> Answer {
    turn().text("S").answer().gated(gate, turn().text("un.").done().bytes())
}

/// The request that follows `first`: its results, and a question.
fn with_question(first: &Value) -> Value {
    let mut input = results(first);
    input.push(json!({"role": "user", "content": "And tomorrow?"}));
    json!({"model": "workflow", "input": input, "previous_response_id": first["id"]})
}

#[tokio::test]
async fn a_stream_is_open_while_the_run_before_the_one_that_it_shows_goes_on() {
    let gate = Arc::new(Notify::new());
    let s = with(&[], &[], [asks().answer(), waits(&gate), says("Rain.").answer()]).await;
    let first = whole(&s, &with_tools(ask("Weather?"))).await;
    let body = also(with_question(&first), json!({"stream": true}));
    let opened = async {
        let mut response = post(&s, &[], &body).await;
        let filler = response.chunk().await.unwrap().unwrap();
        (response, filler)
    };
    let (response, filler) = timeout(BOUND, opened).await.expect("the head comes before the run has ended");
    assert_eq!(&filler[..], b": keep-alive\n\n");
    assert_eq!(response.headers()["x-conversation-id"], first["conversation"]["id"].as_str().unwrap()["conv_".len()..]);
    assert!(!response.headers().contains_key("x-run-id"), "it is not known yet");
    gate.notify_one();
    let told = streamed(response).await;
    assert_eq!(text_of(&told.last().unwrap()["response"]), "Rain.");
    assert_eq!(told[0]["type"], "response.created");
}

#[tokio::test]
async fn a_document_is_padded_while_the_run_before_the_one_that_it_shows_goes_on() {
    let gate = Arc::new(Notify::new());
    let answers = [asks().answer(), waits(&gate), says("Rain.").answer()];
    let s = with(&[], &[("SERVER__KEEP_ALIVE_S", "1")], answers).await;
    let first = whole(&s, &with_tools(ask("Weather?"))).await;
    let body = with_question(&first);
    let response = timeout(BOUND, post(&s, &[], &body)).await.expect("the head comes before the run has ended");
    gate.notify_one();
    assert_eq!(text_of(&object(response).await), "Rain.");
}

#[tokio::test]
async fn a_stream_whose_run_does_not_begin_ends_with_an_error() {
    let gate = Arc::new(Notify::new());
    let s = with(&[], &[], [asks().answer(), waits(&gate)]).await;
    let first = whole(&s, &with_tools(ask("Weather?"))).await;
    let body = also(with_question(&first), json!({"stream": true}));
    let response = timeout(BOUND, post(&s, &[], &body)).await.unwrap();
    // What it goes on in is gone.
    let conversation = response.headers()["x-conversation-id"].to_str().unwrap().to_owned();
    let path = s.app.url(&format!("/v1/agent/conversations/{conversation}"));
    let deleted = s.app.http.delete(path).bearer_auth(&s.app.token).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    gate.notify_one();
    let told = streamed(response).await;
    assert!(["error", "failed"].contains(&names(&told).last().copied().unwrap()), "{told:?}");
}

#[tokio::test]
async fn results_that_nobody_waits_for_are_refused_and_not_to_be_sent_again() {
    let s = playing([asks(), says("Fine.")]).await;
    let first = whole(&s, &with_tools(ask("Weather?"))).await;
    let body = json!({"model": "workflow", "input": results(&first)});
    let mut forged = body.clone();
    forged["input"][0]["call_id"] = json!(first["output"][1]["call_id"].as_str().unwrap().replace("w1", "w9"));
    let bob = s.app.token_of("bob", None, &["USER"]);
    let as_bob = s.app.http.post(s.app.url(super::RESPONSES)).bearer_auth(bob).json(&body).send().await.unwrap();
    for (response, reason) in [(as_bob, "another user's"), (post(&s, &[], &forged).await, "never made")] {
        let (status, error) = refused(response).await;
        assert_eq!(
            (status, &error["code"], &error["param"]),
            (400, &json!("no_such_call"), &json!("input")),
            "{reason}"
        );
    }
    assert_eq!(text_of(&whole(&s, &body).await), "Fine.");
    assert_eq!(refused(post(&s, &[], &body).await).await.1["code"], "no_such_call", "they have been answered");
}

#[tokio::test]
async fn a_tool_of_the_server_and_one_of_the_client_are_told_apart() {
    let both = turn()
        .call("t1", "discover_trigger_types", &json!({}))
        .call("w1", "get_weather", &json!({"city": "Rome"}))
        .done();
    let s = playing([both]).await;
    let events = streamed(post(&s, &[], &with_tools(also(ask("Both"), json!({"stream": true})))).await).await;
    let response = &events.last().unwrap()["response"];
    assert_eq!((items(response, "mcp_call").len(), items(response, "function_call").len()), (1, 1), "{response}");
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_call.completed",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(names(&events), expected);
}

/// A request of Codex 0.169.0 as it was recorded, its long texts shortened.
fn recorded(name: &str) -> Value {
    let path = format!("{}/tests/fixtures/clients/codex/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[tokio::test]
async fn a_turn_of_codex_calls_a_tool_of_ours_and_one_of_its_own() {
    let theirs = turn().text("Now yours.").call("c2", "exec_command", &json!({"cmd": "echo hello"})).done();
    let ours = turn().text("First ours.").call("c1", "discover_trigger_types", &json!({})).done();
    let s = playing([ours, theirs, says("Done.")]).await;
    let headers = [("accept", "text/event-stream"), ("thread-id", "01a21640-c548-7360-99a3-0ecf172806d0")];
    let events = streamed(post(&s, &headers, &recorded("first")).await).await;
    let response = &events.last().unwrap()["response"];
    assert_eq!((text_of(response).as_str(), items(response, "mcp_call").len()), ("First ours.Now yours.", 1));
    let [call] = items(response, "function_call")[..] else { panic!("{response}") };
    let all = ["exec_command", "multi_agent_v1--spawn_agent", "discover_trigger_types"];
    assert!(all.iter().all(|name| offered(&s).contains(&(*name).to_owned())), "{:?}", offered(&s));

    // What it says next: all of the response's items, then what came of its call.
    let mut second = recorded("second");
    let input = second["input"].as_array_mut().unwrap();
    let at = input.iter().position(|item| item["type"] == "function_call").unwrap();
    input.splice(at..=at, response["output"].as_array().unwrap().clone());
    input.last_mut().unwrap()["call_id"] = call["call_id"].clone();
    let said = input.last().unwrap()["output"].as_str().unwrap().lines().next().unwrap().to_owned();
    let events = streamed(post(&s, &headers, &second).await).await;
    assert_eq!(text_of(&events.last().unwrap()["response"]), "Done.");
    let read = s.last_asked();
    assert!(
        read.iter().any(|message| message["content"].as_str().is_some_and(|text| text.contains(&said))),
        "{read:?}"
    );
}

#[tokio::test]
async fn a_client_says_which_of_its_tools_is_called() {
    let named = json!({"type": "function", "name": "get_weather"});
    let told = json!({"type": "function", "function": {"name": "get_weather"}});
    for (choice, expected) in [(json!("required"), json!("required")), (named, told), (json!("auto"), json!(null))] {
        let s = playing([asks()]).await;
        whole(&s, &with_tools(also(ask("Weather?"), json!({"tool_choice": choice})))).await;
        assert_eq!(s.model.requests()[0].json()["tool_choice"], expected, "{choice}");
    }
    let s = playing([]).await;
    let other = json!({"type": "function", "name": "get_news"});
    let (status, error) =
        refused(post(&s, &[], &with_tools(also(ask("News?"), json!({"tool_choice": other})))).await).await;
    assert_eq!((status, &error["param"]), (400, &json!("tool_choice")), "{error}");
}

#[tokio::test]
async fn what_a_client_has_told_of_its_own_calls_is_no_call_of_ours() {
    let s = playing([asks(), says("Sun.")]).await;
    let first = whole(&s, &with_tools(ask("Weather?"))).await;
    let body = json!({"model": "workflow", "previous_response_id": first["id"], "input": results(&first)});
    let second = whole(&s, &with_tools(body)).await;
    assert_eq!(text_of(&second), "Sun.");
    let path = format!("/v1/conversations/{}/items", second["conversation"]["id"].as_str().unwrap());
    let told: Value = get(&s, &path).await.json().await.unwrap();
    let kinds: Vec<&str> = told["data"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert!(!kinds.contains(&"mcp_call"), "{told}");
    assert!(kinds.contains(&"message"), "{told}");
}

#[tokio::test]
async fn what_its_own_tools_have_said_stands_in_its_next_message_where_its_instructions_count() {
    let host = "id = \"host\"\ncontext_type = \"host\"\nclient_instructions = \"append\"\n";
    let s = with(&[("profiles/host.toml", host)], &[], [says("Sun.").answer(), says("What?").answer()]).await;
    let call =
        |id: &str, fields: Value| also(json!({"type": "function_call", "call_id": id, "arguments": "{}"}), fields);
    let output = |kind: &str, id: &str, text: &str| json!({"type": kind, "call_id": id, "output": text});
    let input = json!([
        {"role": "user", "content": "Weather?"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        call("1", json!({"name": "get_weather", "arguments": "{\"city\":\"Ulm\"}"})),
        call("2", json!({"name": "look", "namespace": "mcp__files"})),
        output("function_call_output", "1", "sun in Ulm"),
        output("function_call_output", "2", "no file"),
        {"type": "custom_tool_call", "call_id": "3", "name": "patch", "input": "*** Begin"},
        output("custom_tool_call_output", "3", "patched"),
        call("4", json!({"name": "look"})),
        output("function_call_output", "4", "made up"),
        {"type": "tool_search_call", "call_id": "5", "name": {}, "arguments": {}, "input": []},
        {"role": "assistant", "content": "Sun."},
        {"role": "user", "content": "Sure?"},
    ]);
    for model in ["host", "workflow"] {
        whole(&s, &with_tools(json!({"model": model, "input": input, "store": false}))).await;
    }
    let asked = |at: usize| s.model.requests()[at].json()["messages"].as_array().unwrap().clone();
    let told: Vec<_> = asked(0)
        .iter()
        .flat_map(|message| {
            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
            let calls = calls.iter().map(|call| {
                format!(
                    "{}{}",
                    call["function"]["name"].as_str().unwrap(),
                    call["function"]["arguments"].as_str().unwrap()
                )
            });
            calls
                .chain((message["role"] == "tool").then(|| message["content"].as_str().unwrap().to_owned()))
                .collect::<Vec<_>>()
        })
        .collect();
    let expected = [
        r#"get_weather{"city":"Ulm"}"#,
        "mcp__files--look{}",
        "sun in Ulm",
        "no file",
        r#"patch--{"input":"*** Begin"}"#,
        "patched",
    ];
    assert_eq!(told, expected);
    assert!(
        asked(1).iter().all(|message| message["tool_calls"].is_null() && message["role"] != "tool"),
        "{:?}",
        asked(1)
    );
}
