//! What CopilotKit's browser client asks of a runtime, at the boundary.

use serde_json::{Value, json};

use super::{World, events, finished, input, problem, says, told, types};
use crate::support::frames::read_until;
use crate::support::model::{calls, says as answers, turn};

const CONNECT: &str = "/v1/copilotkit/agent/tickets/connect";

async fn get(world: &World, token: &str, path: &str) -> (u16, Value) {
    let response = world.s.app.http.get(world.s.app.url(path)).bearer_auth(token).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn stop(world: &World, thread: &str) -> Value {
    let path = format!("/v1/copilotkit/agent/tickets/stop/{thread}");
    let response = world.post_as(&world.s.app.token, &path, &json!({"runId": "theirs"})).await;
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

#[tokio::test]
async fn the_info_names_the_agents_that_the_caller_may_ask() {
    let world = World::playing([]).await;
    let (status, info) = get(&world, &world.s.app.token, "/v1/copilotkit/info").await;
    assert_eq!(status, 200);
    let tickets = json!({"name": "Tickets", "description": "Answers what tickets say.", "className": "HttpAgent"});
    assert_eq!(info["agents"]["tickets"], tickets);
    assert_eq!(info["agents"]["chiefs"], Value::Null, "it is for others");
    let rest = json!([info["version"], info["mode"], info["audioFileTranscriptionEnabled"]]);
    assert_eq!(rest, json!([env!("CARGO_PKG_VERSION"), "sse", false]));
    let chief = world.s.app.token_of("carl", None, &["CHIEF"]);
    let (_, info) = get(&world, &chief, "/v1/copilotkit/info").await;
    assert_eq!(info["agents"]["chiefs"], json!({"name": "chiefs", "description": "", "className": "HttpAgent"}));
    let nobody = world.s.app.http.get(world.s.app.url("/v1/copilotkit/info")).send().await.unwrap();
    assert_eq!(problem(nobody).await.0, 401);
}

#[tokio::test]
async fn suggestions_are_made_of_the_clients_thread_and_stand_in_no_list() {
    let suggests =
        calls("s", "copilotkitSuggest", &json!({"suggestions": [{"title": "Close it", "message": "Close ticket 7"}]}));
    let world = World::playing([suggests]).await;
    let messages = json!([
        {"id": "u1", "role": "user", "content": "What is ticket 7?"},
        {"id": "a1", "role": "assistant", "toolCalls": [], "content": "A broken lamp."},
        {"id": "u2", "role": "user", "content": "Suggest what the user could say next."},
    ]);
    let mut asked = input(messages);
    asked["threadId"] = json!("4f5c1f9e-7b0a-4a57-9c35-6f6d1a3c0b11");
    asked["tools"] =
        json!([{"name": "copilotkitSuggest", "description": "Suggests.", "parameters": {"type": "object"}}]);
    let told = told(world.post_as(&world.s.app.token, "/v1/copilotkit/agent/tickets/run", &asked).await).await;
    let args = told.iter().find(|event| event["type"] == "TOOL_CALL_ARGS").unwrap_or_else(|| panic!("{told:?}"));
    assert!(args["delta"].as_str().unwrap().contains("Close ticket 7"), "{args}");
    let sent = world.s.model.requests()[0].json();
    assert_eq!(sent["tool_choice"]["function"]["name"], "copilotkitSuggest");
    let said: Vec<&Value> =
        sent["messages"].as_array().unwrap().iter().filter(|m| m["role"] != "system").map(|m| &m["content"]).collect();
    assert_eq!(json!(said), json!(["What is ticket 7?", "A broken lamp.", "Suggest what the user could say next."]));
    let (_, list) = get(&world, &world.s.app.token, "/v1/agent/conversations").await;
    assert_eq!(list["items"], json!([]), "the user has said nothing");
}

#[tokio::test]
async fn a_thread_is_shown_again_to_who_connects_and_nothing_to_others() {
    let world = World::playing([answers("Hello!")]).await;
    let run = world.post_as(&world.s.app.token, "/v1/copilotkit/agent/tickets/run", &says("Hi")).await;
    assert_eq!(told(run).await.last(), Some(&finished(1)));
    let again = world.post_as(&world.s.app.token, CONNECT, &says("ignored")).await.text().await.unwrap();
    let again = events(&again);
    let run = again[1]["messages"][0]["id"].as_str().unwrap().strip_suffix(".0").unwrap().to_owned();
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"},
        {"type": "MESSAGES_SNAPSHOT", "messages": [
            {"id": format!("{run}.0"), "role": "user", "content": "Hi"},
            {"id": format!("{run}.1"), "role": "assistant", "content": "Hello!"},
        ]},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs"},
    ]);
    assert_eq!(json!(again), expected);
    let nothing = json!([expected[0], expected[2]]);
    let eve = world.s.app.token_of("eve", None, &["USER"]);
    let of_eve = world.post_as(&eve, CONNECT, &says("ignored")).await;
    assert_eq!(json!(told(of_eve).await), nothing);
    let mut new = says("ignored");
    new["threadId"] = json!("new");
    let told = told(world.post_as(&world.s.app.token, CONNECT, &new).await).await;
    assert_eq!(types(&told), ["RUN_STARTED", "RUN_FINISHED"]);
    let rows = [
        ("/v1/copilotkit/agent/nobody/connect", 404),
        ("/v1/copilotkit/agent/chiefs/connect", 403),
        ("/v1/copilotkit/agent/nobody/run", 404),
        ("/v1/copilotkit/agent/nobody/stop/t", 404),
        ("/v1/copilotkit/agent/chiefs/stop/t", 403),
    ];
    for (path, status) in rows {
        let refused = problem(world.post_as(&world.s.app.token, path, &says("Hi")).await).await;
        assert_eq!(refused.0, status, "{path}");
    }
    let bad = problem(world.post_as(&world.s.app.token, CONNECT, &json!({"threadId": "a b"})).await).await;
    assert_eq!(bad.0, 400);
}

#[tokio::test]
async fn who_connects_to_a_live_run_reads_it_from_its_beginning_and_may_stop_it() {
    let hangs = turn().text("On my").hangs();
    let world = World::playing([answers("Hello!"), hangs]).await;
    world.run(&says("Hi")).await;
    let mut first = world.post(&says("Go")).await;
    let live = first.headers()["x-run-id"].to_str().unwrap().to_owned();
    read_until(&mut first, "On my").await;
    let mut second = world.post_as(&world.s.app.token, CONNECT, &says("ignored")).await;
    let mut seen = read_until(&mut second, "On my").await;
    assert_eq!(stop(&world, "t").await, json!({"stopped": true}));
    seen.push_str(&second.text().await.unwrap());
    let seen = events(&seen.replace(&live, "R"));
    let said: Vec<&str> =
        seen[1]["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["Hi", "Hello!", "Go"]);
    let expected = json!([
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs"},
        {"type": "RUN_STARTED", "threadId": "t", "runId": "R"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "TEXT_MESSAGE_START", "messageId": "R.m1", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m1", "delta": "On my"},
        {"type": "TEXT_MESSAGE_END", "messageId": "R.m1"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "R"},
    ]);
    assert_eq!(json!(seen[2..]), expected);
    let rest = events(&format!("data: {{}}\n\n{}", first.text().await.unwrap()));
    assert_eq!(rest.last().unwrap()["type"], "RUN_FINISHED", "the first reader hears of it too");
    assert_eq!(stop(&world, "t").await, json!({"stopped": false}), "it has ended");
    assert_eq!(stop(&world, "no%20thread").await, json!({"stopped": false}));
}

#[tokio::test]
async fn what_waits_is_shown_again_to_who_connects() {
    let world = World::playing([calls("c", "close_ticket", &json!({"id": 7})), answers("Closed.")]).await;
    let held = world.run(&says("Close 7")).await;
    let again = told(world.post_as(&world.s.app.token, CONNECT, &says("ignored")).await).await;
    assert_eq!(types(&again), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    assert_eq!(again[2]["outcome"], held.last().unwrap()["outcome"]);
    // The client's thread is then what the snapshot says, its question last.
    let mut input = super::input(again[1]["messages"].clone());
    let id = &again[2]["outcome"]["interrupts"][0]["id"];
    input["resume"] = json!([{"interruptId": id, "status": "resolved", "payload": {"approved": true}}]);
    assert_eq!(world.run(&input).await.last(), Some(&finished(1)), "the question is not asked again");
    assert_eq!(world.writes(), ["POST /v1/tickets/7/close {}"]);
}

#[tokio::test]
async fn a_call_is_shown_again_once_with_what_became_of_it_in_later_runs() {
    let paints = calls("p", "paint", &json!({"color": "red"}));
    let closes = calls("c", "close_ticket", &json!({"id": 7}));
    let world = World::playing([closes, answers("Closed."), paints, answers("Painted.")]).await;
    let held = world.run(&says("Close 7")).await;
    let id = &held.last().unwrap()["outcome"]["interrupts"][0]["id"];
    let mut resume = super::input(json!([]));
    resume["resume"] = json!([{"interruptId": id, "status": "resolved", "payload": {"approved": true}}]);
    world.run(&resume).await;
    let tool = json!({"name": "paint", "description": "Paints.", "parameters": {"type": "object"}});
    let mut paint = says("Paint it");
    paint["messages"][0]["id"] = json!("u2");
    paint["tools"] = json!([tool]);
    world.run(&paint).await;
    let messages = json!([{"id": "r1", "role": "tool", "toolCallId": "p", "content": "painted"}]);
    world.run(&super::input(messages)).await;
    let again = told(world.post_as(&world.s.app.token, CONNECT, &says("ignored")).await).await;
    let shown: Vec<Value> = again[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let calls: Vec<_> =
                message["toolCalls"].as_array().into_iter().flatten().map(|call| call["id"].clone()).collect();
            json!([message["role"], message["content"], message["toolCallId"], calls])
        })
        .collect();
    let expected = json!([
        ["user", "Close 7", null, []],
        ["assistant", null, null, ["c"]],
        ["tool", "{\"status\":\"done\"}", "c", []],
        ["assistant", "Closed.", null, []],
        ["user", "Paint it", null, []],
        ["assistant", null, null, ["p"]],
        ["tool", "{\"status\":\"done\"}", "p", []],
        ["assistant", "Painted.", null, []],
    ]);
    assert_eq!(json!(shown), expected);
}

#[tokio::test]
async fn a_question_with_the_clients_own_id_is_asked_again_and_not_twice() {
    let world = World::playing([answers("Fine."), answers("Better."), answers("Yes?"), answers("Well.")]).await;
    let count = |world: &World| world.s.last_asked().iter().filter(|message| message["role"] == "user").count();
    let question = says("How is 7?");
    world.run(&question).await;
    world.run(&question).await;
    assert_eq!(count(&world), 1, "regenerate: asked again, without the answer that was cut off");
    let again = told(world.post_as(&world.s.app.token, CONNECT, &says("ignored")).await).await;
    assert_eq!(again[1]["messages"][1]["content"], "Better.");
    let other = super::input(json!([{"id": "u2", "role": "user", "content": "How is 7?"}]));
    world.run(&other).await;
    assert_eq!(count(&world), 2, "another message with the same words");
    world.run(&says("How is 8?")).await;
    assert_eq!(count(&world), 3, "other words under an id that was used before");
}

#[tokio::test]
async fn calls_are_shown_again_with_what_became_of_them_and_what_is_cut_back_is_asked_again() {
    let looks = turn().text("Looking.").call("a", "get_ticket", &json!({"id": 7})).done();
    let world = World::playing([looks, answers("Fine."), answers("Better."), answers("Hello."), answers("No.")]).await;
    world.run(&says("How is 7?")).await;
    let again = told(world.post_as(&world.s.app.token, CONNECT, &says("ignored")).await).await;
    let messages = again[1]["messages"].as_array().unwrap().clone();
    let run = messages[0]["id"].as_str().unwrap().strip_suffix(".0").unwrap().to_owned();
    let call = json!({"id": "a", "type": "function", "function": {"name": "get_ticket", "arguments": "{}"}});
    let expected = json!([
        {"id": format!("{run}.0"), "role": "user", "content": "How is 7?"},
        {"id": format!("{run}.1"), "role": "assistant", "content": "Looking.", "toolCalls": [call]},
        {"id": format!("{run}.r1.0"), "role": "tool", "toolCallId": "a", "content": "{\"status\":\"done\"}"},
        {"id": format!("{run}.3"), "role": "assistant", "content": "Fine."},
    ]);
    assert_eq!(json!(messages), expected);

    let heard = |world: &World| -> Vec<(String, String)> {
        let asked = world.s.last_asked().into_iter().skip(1);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        asked.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
    };
    let said = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    world.run(&super::input(json!([messages[0]]))).await;
    assert_eq!(heard(&world), [said("user", "How is 7?")], "asked again, without the answer that was cut off");
    let (mut edited, known) = (messages[0].clone(), world.s.asked().len());
    let gone = world.refused(&super::input(json!([edited]))).await;
    let words =
        format!("messages has the id {run}.0, which is no message of the user on the newest branch of this thread");
    assert_eq!((gone.0, gone.2, world.s.asked().len()), (400, words, known), "it is on another branch now");
    let again = told(world.post_as(&world.s.app.token, CONNECT, &says("ignored")).await).await;
    edited["id"] = again[1]["messages"][0]["id"].clone();
    edited["content"] = json!("Hi");
    world.run(&super::input(json!([edited]))).await;
    assert_eq!(heard(&world), [said("user", "Hi")], "in the place of the other one");
    world.run(&super::input(json!([{"id": "u9", "role": "user", "content": "And?"}]))).await;
    assert_eq!(heard(&world), [said("user", "Hi"), said("assistant", "Hello."), said("user", "And?")], "a new one");
}
