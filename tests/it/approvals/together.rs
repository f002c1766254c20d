//! Decisions on several calls of one turn: one run takes them in, and the model answers to them once.

use serde_json::{Value, json};

use super::{MADE, World, approve, assert_made, body, id, problem, reject};
use crate::support::frames::{self, names, read_until};
use crate::support::model::{Script, says, turn};
use crate::support::wait;

/// Longer than any test takes: what does not wait for this does not wait for a decision.
const LONG: [(&str, &str); 1] = [("RUNS__DECISIONS_S", "600")];

fn closes_both() -> Script {
    turn().call("c1", "close_ticket", &json!({"id": 1})).call("c2", "close_ticket", &json!({"id": 2})).done()
}

const FIRST: &str = "POST /v1/tickets/1/close {}";
const SECOND: &str = "POST /v1/tickets/2/close {}";

/// What waits after a message.
async fn shown(w: &World) -> [Value; 2] {
    let frames = w.say("Close both").await;
    let shown: Vec<Value> =
        frames.into_iter().filter(|frame| frame.event == "approval_request").map(|frame| frame.data).collect();
    shown.try_into().unwrap()
}

/// A decision whose stream is read as far as to the call's result.
async fn first_made(w: &World, shown: &Value) -> (reqwest::Response, String) {
    let mut response = w.decide_as(&w.s.app.token, id(shown), &approve()).await;
    let seen = read_until(&mut response, "tool_call_result").await;
    (response, seen)
}

#[tokio::test]
async fn a_second_decision_joins_the_run_of_the_first_and_the_model_answers_to_both() {
    let w = World::playing([closes_both(), says("Both are closed.")]).await.with(&LONG).await;
    let [one, two] = shown(&w).await;
    let (first, mut seen) = first_made(&w, &one).await;
    let second = w.decide_as(&w.s.app.token, id(&two), &approve()).await;
    assert_eq!(second.headers()["x-run-id"], first.headers()["x-run-id"], "it is the same run");
    seen.push_str(&first.text().await.unwrap());
    let both = ["message_start", "tool_call_start", "tool_call_result"];
    let both = [both, both].concat().into_iter().chain(["message_start", "content_chunk", "message_complete"]);
    let both: Vec<&str> = both.collect();
    assert_eq!(names(&frames::parse(&seen)), both);
    assert_eq!(names(&frames::parse(&second.text().await.unwrap())), both, "who decided the second sees all of it");
    assert_eq!(w.writes(), [FIRST, SECOND]);
    assert_eq!(w.s.asked().len(), 2, "one answer to both");
    let asked = w.s.last_asked();
    let roles: Vec<&str> = asked[asked.len() - 6..].iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["assistant", "tool", "assistant", "user", "assistant", "tool"]);
    assert!(w.told().starts_with("[Decision on a waiting call: the user approved the call of close_ticket."));
}

#[tokio::test]
async fn a_second_that_is_turned_down_is_told_and_not_made() {
    let w = World::playing([closes_both(), says("One is.")]).await.with(&LONG).await;
    let [one, two] = shown(&w).await;
    let (first, _) = first_made(&w, &one).await;
    w.decide(&two, &reject()).await;
    first.text().await.unwrap();
    assert_eq!((w.writes(), w.s.asked().len()), (vec![FIRST.to_owned()], 2));
    assert!(w.told().contains("the user turned down the call of close_ticket"), "{}", w.told());
}

#[tokio::test]
async fn where_no_second_comes_the_run_goes_on_and_the_other_still_waits() {
    let w = World::playing([closes_both(), says("One is."), says("Now both.")]).await;
    let w = w.with(&[("RUNS__DECISIONS_S", "1")]).await;
    let [one, two] = shown(&w).await;
    assert_made(&w.decide(&one, &approve()).await, true);
    assert_eq!(w.waiting(&w.s.app.token).await, [id(&two)]);
    assert_eq!(names(&w.decide(&two, &approve()).await), MADE, "in a run of its own, which waits for nothing more");
    assert_eq!((w.writes(), w.s.asked().len()), (vec![FIRST.to_owned(), SECOND.to_owned()], 3));
}

#[tokio::test]
async fn a_run_that_is_stopped_while_it_waits_has_made_the_first_and_leaves_the_second() {
    let w = World::playing([closes_both(), says("Now both.")]).await.with(&LONG).await;
    let [one, two] = shown(&w).await;
    let (first, _) = first_made(&w, &one).await;
    let run = first.headers()["x-run-id"].to_str().unwrap().to_owned();
    let url = w.s.app.url(&format!("/v1/agent/runs/{run}/cancel"));
    w.s.app.http.post(url).bearer_auth(&w.s.app.token).send().await.unwrap();
    first.text().await.unwrap();
    assert_eq!((w.writes(), w.waiting(&w.s.app.token).await), (vec![FIRST.to_owned()], vec![id(&two).to_owned()]));
    assert_made(&w.decide(&two, &approve()).await, true);
    let again = w.decide_as(&w.s.app.token, id(&one), &approve()).await;
    assert_eq!(problem(again).await, (409, "already_decided".to_owned()));
    assert_eq!(w.writes(), [FIRST, SECOND], "each once");
}

#[tokio::test]
async fn a_joined_decision_is_taken_once_and_found_again_by_whoever_repeats_it_with_a_key() {
    let w = World::playing([closes_both(), says("Both are closed.")]).await.with(&LONG).await;
    let [one, two] = shown(&w).await;
    let (first, _) = first_made(&w, &one).await;
    let send = async || {
        let url = w.s.app.url(&format!("/v1/agent/approvals/{}", id(&two)));
        let request = w.s.app.http.post(url).bearer_auth(&w.s.app.token).header("idempotency-key", "k");
        let response = request.json(&approve()).send().await.unwrap();
        (response.status().as_u16(), response.headers()["x-run-id"].clone())
    };
    let joined = send().await;
    first.text().await.unwrap();
    assert_eq!(send().await, joined);
    let other = w.decide_as(&w.s.app.token, id(&two), &reject()).await;
    assert_eq!(problem(other).await, (409, "already_decided".to_owned()));
    assert_eq!(w.writes(), [FIRST, SECOND], "each once");
}

#[tokio::test]
async fn an_answer_to_several_decisions_is_given_again_without_the_calls() {
    let w = World::playing([closes_both(), says("Both."), says("Both of them.")]).await.with(&LONG).await;
    let [one, two] = shown(&w).await;
    let (first, _) = first_made(&w, &one).await;
    w.decide(&two, &approve()).await;
    first.text().await.unwrap();
    let mut again = body("");
    again["regenerate"] = json!(true);
    again.as_object_mut().unwrap().remove("message");
    assert_eq!(names(&w.s.app.chat(&again).await), ["message_start", "content_chunk", "message_complete"]);
    assert_eq!(w.writes(), [FIRST, SECOND], "each is made once");
    let results = w.s.last_asked().into_iter().filter(|message| message["content"] == json!(r#"{"ok":true}"#));
    assert_eq!(results.count(), 2, "and the model reads both");
}

#[tokio::test]
async fn a_reader_that_leaves_while_the_run_waits_loses_nothing_that_was_decided() {
    let w = World::playing([closes_both(), says("Now both.")]).await.with(&LONG).await;
    let [one, two] = shown(&w).await;
    let (first, _) = first_made(&w, &one).await;
    drop(first);
    let is_over = async || {
        let (_, conversation) = w.get_as(&w.s.app.token, "/v1/agent/conversations/c").await;
        conversation.get("live_run_id").is_none().then_some(())
    };
    wait::eventually("the run ends with its reader", is_over).await;
    assert_made(&w.decide(&two, &approve()).await, true);
    assert_eq!(w.writes(), [FIRST, SECOND]);
}
