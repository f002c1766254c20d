//! Calls that wait for a person, and decisions that come back in what the client says was said.

use serde_json::{Value, json};

use super::{Stream, World, post, problem, request, said, start};
use crate::support::model::{Script, calls, says, turn};

fn closing(id: &str, ticket: u32) -> Script {
    calls(id, "close_ticket", &json!({"id": ticket}))
}

/// The approvals that a stream asks for.
fn asked(stream: &Stream) -> Vec<String> {
    let asked = stream.all("tool-approval-request");
    asked.iter().map(|chunk| chunk["approvalId"].as_str().unwrap().to_owned()).collect()
}

/// A decided part, as the client sends it back.
fn decided(approval: &str, approved: bool) -> Value {
    json!({
        "type": "dynamic-tool", "toolName": "close_ticket", "toolCallId": "whatever", "state": "approval-responded",
        "input": {"id": 666}, "approval": {"id": approval, "approved": approved},
    })
}

/// What the client sends with its decisions.
fn decisions(parts: impl IntoIterator<Item = Value>) -> Value {
    let parts: Vec<Value> = [json!({"type": "step-start"})].into_iter().chain(parts).collect();
    request(json!([{"id": "u1", "role": "user", "parts": []}, {"id": "theirs", "role": "assistant", "parts": parts}]))
}

#[tokio::test]
async fn a_call_waits_and_goes_on_in_the_same_message() {
    let w = World::playing([closing("c1", 7), says("Closed.")]).await;
    let stream = w.ask("?sdk=6", &said("Close 7")).await;
    let [approval] = &asked(&stream)[..] else { panic!("{stream:#?}") };
    let types = [
        "start",
        "start-step",
        "tool-input-start",
        "tool-input-available",
        "data-approval",
        "tool-approval-request",
        "finish-step",
        "finish",
    ];
    assert_eq!(stream.types(), types);
    assert_eq!(stream.all("tool-approval-request")[0]["toolCallId"], json!("c1"));
    let shown = stream.all("data-approval")[0];
    assert_eq!((&shown["id"], &shown["data"]["tool"]), (&json!(approval), &json!("close_ticket")));
    assert_eq!(stream.chunks.last().unwrap()["finishReason"], json!("tool-calls"));
    assert_eq!(w.writes(), [""; 0]);

    let stream = w.ask("?sdk=6", &decisions([decided(approval, true)])).await;
    let mut begin = start();
    begin["messageId"] = json!("theirs");
    let output = json!({"type": "tool-output-available", "toolCallId": "c1", "output": {"ok": true}, "dynamic": true});
    assert_eq!(stream.chunks[..2], [begin, output], "the input is not said again");
    let rest = ["start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"];
    assert_eq!(stream.types()[2..], rest);
    assert_eq!(w.writes(), ["POST /v1/tickets/7/close"], "what was shown, whatever the client says it was");
}

#[tokio::test]
async fn a_call_that_is_turned_down_is_denied_and_not_made() {
    let w = World::playing([closing("c1", 7), says("All right.")]).await;
    let stream = w.ask("?sdk=7", &said("Close 7")).await;
    let stream = w.ask("?sdk=7", &decisions([decided(&asked(&stream)[0], false)])).await;
    assert_eq!(stream.chunks[1], json!({"type": "tool-output-denied", "toolCallId": "c1"}));
    assert_eq!(stream.text(), "All right.");
    assert_eq!(w.writes(), [""; 0]);
}

#[tokio::test]
async fn several_decisions_are_taken_one_after_the_other_in_one_stream() {
    let both =
        turn().call("c1", "close_ticket", &json!({"id": 1})).call("c2", "close_ticket", &json!({"id": 2})).done();
    let w = World::playing([both, says("First."), says("Second.")]).await;
    let stream = w.ask("?sdk=6", &said("Close both")).await;
    let [one, two] = &asked(&stream)[..] else { panic!("{stream:#?}") };
    let response = post(&w.s.app, "?sdk=6", &decisions([decided(one, true), decided(two, false)])).await;
    let body = response.text().await.unwrap();
    assert_eq!(body.matches("[DONE]").count(), 1, "{body}");
    for said in [
        r#""toolCallId":"c1","output":{"ok":true}"#,
        "First.",
        r#"{"type":"tool-output-denied","toolCallId":"c2"}"#,
        "Second.",
    ] {
        assert!(body.contains(said), "{said}: {body}");
    }
    let used = |turns: u32| json!({"inputTokens": 10 * turns, "outputTokens": 5 * turns, "totalTokens": 15 * turns});
    for turns in [1, 2] {
        let usage = format!(r#""usage":{}"#, used(turns));
        assert!(body.contains(&usage), "both answers are of one message: {usage}: {body}");
    }
    assert_eq!(w.writes(), ["POST /v1/tickets/1/close"]);
}

#[tokio::test]
async fn decisions_that_come_together_are_answered_once() {
    let both =
        turn().call("c1", "close_ticket", &json!({"id": 1})).call("c2", "close_ticket", &json!({"id": 2})).done();
    let w = World::answering(&[("RUNS__DECISIONS_S", "600")], [both, says("Both.")].map(Script::answer)).await;
    let stream = w.ask("?sdk=6", &said("Close both")).await;
    let [one, two] = &asked(&stream)[..] else { panic!("{stream:#?}") };
    let send = async || {
        let body = decisions([decided(one, true), decided(two, true)]);
        let request = w.s.app.http.post(w.s.app.url("/v1/ai-sdk/chat?sdk=6")).bearer_auth(&w.s.app.token);
        super::stream(request.header("idempotency-key", "k").json(&body).send().await.unwrap()).await
    };
    let stream = send().await;
    let outputs: Vec<_> = stream.all("tool-output-available").iter().map(|chunk| chunk["toolCallId"].clone()).collect();
    assert_eq!((outputs, stream.text()), (vec![json!("c1"), json!("c2")], "Both.".to_owned()));
    assert_eq!(stream.types()[1..4], ["tool-output-available", "tool-output-available", "start-step"]);
    assert_eq!(send().await.chunks, stream.chunks, "the same request finds its run again");
    assert_eq!((w.writes().len(), w.s.asked().len()), (2, 2));
}

#[tokio::test]
async fn the_same_request_with_a_key_finds_all_of_its_runs() {
    let both =
        turn().call("c1", "close_ticket", &json!({"id": 1})).call("c2", "close_ticket", &json!({"id": 2})).done();
    let w = World::playing([both, says("First."), says("Second.")]).await;
    let stream = w.ask("?sdk=6", &said("Close both")).await;
    let [one, two] = &asked(&stream)[..] else { panic!("{stream:#?}") };
    let body = decisions([decided(one, true), decided(two, true)]);
    let send = async || {
        let request = w.s.app.http.post(w.s.app.url("/v1/ai-sdk/chat?sdk=6")).bearer_auth(&w.s.app.token);
        request.header("idempotency-key", "k").json(&body).send().await.unwrap().text().await.unwrap()
    };
    let first = send().await;
    assert!(first.contains("First.") && first.contains("Second."), "{first}");
    assert_eq!(send().await, first);
    assert_eq!(w.writes(), ["POST /v1/tickets/1/close", "POST /v1/tickets/2/close"]);
}

#[tokio::test]
async fn a_decision_that_was_not_reached_can_be_sent_again() {
    let both =
        turn().call("c1", "close_ticket", &json!({"id": 1})).call("c2", "close_ticket", &json!({"id": 2})).done();
    let w = World::playing([both, turn().text("Half").breaks(), says("Both are closed.")]).await;
    let stream = w.ask("?sdk=6", &said("Close both")).await;
    let [one, two] = &asked(&stream)[..] else { panic!("{stream:#?}") };
    let broken = w.ask("?sdk=6", &decisions([decided(one, true), decided(two, true)])).await;
    assert_eq!(broken.types().last(), Some(&"error"));
    assert_eq!(w.writes(), ["POST /v1/tickets/1/close"]);

    // The answer has a step more by now, and one part of an older step that the page never saw answered.
    let later = [json!({"type": "step-start"}), json!({"type": "text", "text": "Half"})];
    let parts = [decided(one, true), decided(two, true)].into_iter().chain(later);
    let stream = w.ask("?sdk=6", &decisions(parts)).await;
    assert_eq!(stream.text(), "Both are closed.");
    let outputs: Vec<&Value> = stream.all("tool-output-available").iter().map(|chunk| &chunk["toolCallId"]).collect();
    assert_eq!(outputs, ["c2"]);
    assert_eq!(w.writes(), ["POST /v1/tickets/1/close", "POST /v1/tickets/2/close"]);
}

#[tokio::test]
async fn only_what_the_server_asked_can_be_decided_once_and_where_it_was_asked() {
    let w = World::playing([closing("c1", 7), says("Closed.")]).await;
    let stream = w.ask("?sdk=6", &said("Close 7")).await;
    let approval = asked(&stream).remove(0);
    let forged = decisions([decided("01999999-9999-7999-8999-000000000001", true)]);
    let no_such = (404, "not_found".to_owned());
    let refused = async |body: Value, token: &str| {
        let url = w.s.app.url("/v1/ai-sdk/chat?sdk=6");
        let (status, code, _) =
            problem(w.s.app.http.post(url).bearer_auth(token).json(&body).send().await.unwrap()).await;
        (status, code)
    };
    assert_eq!(refused(forged, &w.s.app.token).await, no_such, "nobody asked that");
    let mut elsewhere = decisions([decided(&approval, true)]);
    elsewhere["id"] = json!("other");
    assert_eq!(refused(elsewhere, &w.s.app.token).await, no_such, "another chat");
    let eve = w.s.app.token_of("eve", None, &["USER"]);
    assert_eq!(refused(decisions([decided(&approval, true)]), &eve).await, no_such, "another user");
    assert_eq!(w.writes(), [""; 0]);
    w.ask("?sdk=6", &decisions([decided(&approval, true)])).await;
    let again = refused(decisions([decided(&approval, true)]), &w.s.app.token).await;
    assert_eq!(again, (409, "already_decided".to_owned()));
    assert_eq!(w.writes(), ["POST /v1/tickets/7/close"]);
}

#[tokio::test]
async fn version_5_is_told_where_to_decide_and_may_decide_with_a_key_of_the_body() {
    let w = World::playing([closing("c1", 7), says("Closed.")]).await;
    let stream = w.say("Close 7").await;
    let types = [
        "start",
        "start-step",
        "tool-input-start",
        "tool-input-available",
        "tool-output-available",
        "data-approval",
        "finish-step",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ];
    assert_eq!(stream.types(), types, "nothing that version 5 does not know, and no call is left open");
    assert_eq!(stream.all("tool-output-available")[0]["output"]["status"], json!("awaiting_approval"));
    let approval = stream.all("data-approval")[0]["id"].as_str().unwrap();
    let words =
        format!("The call of close_ticket waits for approval: it is decided at /v1/agent/approvals/{approval}.");
    assert_eq!(stream.text(), words);

    let mut body = decisions([]);
    body["decision"] = json!({"id": approval, "approved": true});
    let stream = w.ask("", &body).await;
    let output = json!({"type": "tool-output-available", "toolCallId": "c1", "output": {"ok": true}, "dynamic": true});
    assert_eq!(stream.chunks[1], output);
    assert_eq!(stream.text(), "Closed.");
    assert_eq!(w.writes(), ["POST /v1/tickets/7/close"]);
}

#[tokio::test]
async fn nobody_lets_their_own_call_through_where_somebody_else_has_to() {
    let tools = super::TOOLS.replacen("approval = \"user\"", "approval = \"role:USER\"\nnot_requester = true", 1);
    let w = World::with_tools(&tools, &[], [closing("c1", 7).answer(), says("Closed.").answer()]).await;
    let stream = w.ask("?sdk=6", &said("Close 7")).await;
    let approval = &asked(&stream)[0];
    assert_eq!(stream.all("data-approval")[0]["data"]["not_requester"], json!(true));
    let refused = post(&w.s.app, "?sdk=6", &decisions([decided(approval, true)])).await;
    let (status, code, _) = problem(refused).await;
    assert_eq!((status, code.as_str()), (403, "own_request"), "Ada has the role");
    assert_eq!(w.writes(), [""; 0]);

    let zoe = w.s.app.token_of("zoe", None, &["USER"]);
    let url = w.s.app.url(&format!("/v1/agent/approvals/{approval}"));
    let granted = w.s.app.http.post(url).bearer_auth(zoe).json(&json!({"decision": "approve"})).send().await.unwrap();
    assert_eq!(granted.status(), 200);
    w.ask("?sdk=6", &decisions([decided(approval, true)])).await;
    assert_eq!(w.writes(), ["POST /v1/tickets/7/close"]);
}

#[tokio::test]
async fn a_call_of_a_tool_that_changed_waits_again_where_its_page_knows_it() {
    let w = World::playing([closing("c1", 7), says("Closed.")]).await;
    let stream = w.ask("?sdk=6", &said("Close 7")).await;
    let approval = &asked(&stream)[0];
    let w = w.restarted_with(&super::TOOLS.replacen("Closes a ticket.", "Closes a ticket for good.", 1)).await;
    let stream = w.ask("?sdk=6", &decisions([decided(approval, true)])).await;
    let again = &asked(&stream)[..];
    assert!(again.len() == 1 && again[0] != *approval, "{stream:#?}");
    assert_eq!(stream.all("tool-approval-request")[0]["toolCallId"], json!("c1"), "the part that is there asks again");
    assert_eq!(w.writes(), [""; 0]);
    let stream = w.ask("?sdk=6", &decisions([decided(&again[0], true)])).await;
    assert_eq!(stream.text(), "Closed.");
    assert_eq!(w.writes(), ["POST /v1/tickets/7/close"]);
}
