//! A chat for a page that was loaded again.

use serde_json::{Value, json};

use super::{World, problem, request, said, user};
use crate::support::model::{calls, says, turn};

async fn history(w: &World, query: &str) -> Value {
    let url = w.s.app.url(&format!("/v1/ai-sdk/chat/c{query}"));
    let response = w.s.app.http.get(url).bearer_auth(&w.s.app.token).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

/// The parts of the newest message, and its id.
fn newest(chat: &Value) -> (Value, Vec<Value>) {
    let last = chat["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "assistant");
    (last["id"].clone(), last["parts"].as_array().unwrap().clone())
}

#[tokio::test]
async fn a_call_that_waits_is_asked_for_again_and_is_done_in_the_same_message_later() {
    let closes = calls("c1", "close_ticket", &json!({"id": 7}));
    let w = World::playing([closes, says("Closed.")]).await;
    let asked = w.ask("?sdk=6", &said("Close 7")).await;
    let approval = asked.all("tool-approval-request")[0]["approvalId"].clone();
    let chat = history(&w, "?sdk=6").await;
    let run = chat["messages"][0]["metadata"]["runId"].as_str().unwrap().to_owned();
    let (id, parts) = newest(&chat);
    assert_eq!((&id, &chat["messages"][0]["parts"][0]["text"]), (&json!(format!("{run}.1")), &json!("Close 7")));
    let held = json!({"type": "dynamic-tool", "toolName": "close_ticket", "toolCallId": "c1", "input": {"id": 7},
        "state": "approval-requested", "approval": {"id": approval}});
    assert_eq!(parts[..2], [json!({"type": "step-start"}), held]);
    assert_eq!((&parts[2]["type"], &parts[2]["id"]), (&json!("data-approval"), &approval));
    let (_, old) = newest(&history(&w, "?sdk=5").await);
    assert_eq!(
        (&old[1]["state"], &old[1]["output"]),
        (&json!("output-available"), &json!({"status": "awaiting_approval"}))
    );

    // What a page does with it: the part as it was, decided.
    let mut decided = parts[1].clone();
    decided["state"] = json!("approval-responded");
    decided["approval"]["approved"] = json!(true);
    let answer = json!({"id": id, "role": "assistant", "parts": [parts[0], decided]});
    let question = chat["messages"][0].clone();
    let done = w.ask("?sdk=6", &request(json!([question, answer]))).await;
    assert_eq!((done.text(), w.writes()), ("Closed.".to_owned(), vec!["POST /v1/tickets/7/close".to_owned()]));
    let (same, parts) = newest(&history(&w, "?sdk=6").await);
    let made = json!({"type": "dynamic-tool", "toolName": "close_ticket", "toolCallId": "c1", "input": {},
        "state": "output-available", "output": {"status": "done"}});
    let step = json!({"type": "step-start"});
    let text = json!({"type": "text", "text": "Closed.", "state": "done"});
    assert_eq!((same, parts), (id, vec![step.clone(), made, step, text]), "it is there once, with what became of it");
}

#[tokio::test]
async fn what_is_restored_can_be_edited_and_paged() {
    let looks = turn().text("I look.").call("c1", "get_ticket", &json!({"id": 404})).done();
    let w = World::playing([looks, says("Gone."), says("Fine."), says("Better.")]).await;
    w.say("Where is 404?").await;
    w.say("And 7?").await;
    let chat = history(&w, "").await;
    let roles: Vec<_> = chat["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    let failed = &chat["messages"][1]["parts"][2];
    assert_eq!((&failed["state"], &failed["errorText"]), (&json!("output-error"), &json!("This call failed")));

    let part = history(&w, "?limit=1").await;
    assert_eq!(part["messages"].as_array().unwrap().len(), 2, "a run is there whole");
    let before = history(&w, &format!("?limit=1&cursor={}", part["nextCursor"].as_str().unwrap())).await;
    assert_eq!(before["messages"][0]["parts"][0]["text"], "Where is 404?");

    let mut edited = request(json!([user(chat["messages"][0]["id"].as_str().unwrap(), "Where is 405?")]));
    edited["messageId"] = chat["messages"][0]["id"].clone();
    assert_eq!(w.ask("", &edited).await.text(), "Better.");
    assert_eq!(history(&w, "").await["messages"].as_array().unwrap().len(), 2, "the branch that is shown");
}

#[tokio::test]
async fn a_chat_of_nobody_or_of_somebody_else_is_none() {
    let w = World::playing([says("Hi!")]).await;
    w.say("Hi").await;
    let eve = w.s.app.token_of("eve", None, &["USER"]);
    for (token, path) in [(&w.s.app.token, "x"), (&w.s.app.token, "no%20id"), (&eve, "c")] {
        let url = w.s.app.url(&format!("/v1/ai-sdk/chat/{path}"));
        let response = w.s.app.http.get(url).bearer_auth(token).send().await.unwrap();
        assert_eq!(problem(response).await.0, 404, "{path}");
    }
    let url = w.s.app.url("/v1/ai-sdk/chat/c?sdk=9");
    let wrong = w.s.app.http.get(url).bearer_auth(&w.s.app.token).send().await.unwrap();
    assert_eq!(problem(wrong).await.0, 400);
}
