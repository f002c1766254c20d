//! The user's own decision: the exact call is made, or the model hears that it was not.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{HELD, MADE, World, approve, assert_made, body, id, problem, reject};
use crate::support::frames::{self, data, names};
use crate::support::model::{calls, says, turn};
use crate::support::tickets::write;

fn closing() -> crate::support::model::Script {
    calls("c1", "close_ticket", &json!({"id": 7, "reason": "done & \"dusted\""}))
}

const CLOSED: &str = r#"POST /v1/tickets/7/close {"reason":"done & \"dusted\""}"#;

#[tokio::test]
async fn a_call_waits_is_shown_whole_and_is_made_when_its_user_says_yes() {
    let w = World::playing([closing(), says("Closed.")]).await;
    let frames = w.say("Close 7").await;
    assert_eq!(names(&frames), HELD);
    let shown = data(&frames, "approval_request");
    let expected = json!({
        "approval_id": shown["approval_id"],
        "tool": "close_ticket",
        "arguments": {"id": 7, "reason": "done & \"dusted\""},
        "digest": shown["digest"],
        "tool_use_id": "c1",
        "needs": "user",
        "expires_at_ms": shown["expires_at_ms"],
    });
    assert_eq!(*shown, expected);
    assert_eq!(data(&frames, "tool_call_result")["is_error"], json!(false), "that it waits is no failure");
    assert_eq!(w.writes(), [""; 0]);

    assert_made(&w.decide(shown, &approve()).await, true);
    assert_eq!(w.writes(), [CLOSED]);
    let token = format!("Bearer {}", w.s.app.token);
    assert_eq!(w.backend.requests()[0].header("authorization"), Some(token.as_str()));
    assert!(w.told().starts_with("[Decision on a waiting call: the user approved the call of close_ticket."));
    assert_eq!(w.s.last_asked().last().unwrap()["content"], json!(r#"{"ok":true}"#), "the model reads the answer");
    assert_eq!(w.s.result_of("c1")["status"], json!("awaiting_approval"), "and what it read before stays");
    assert_eq!(w.s.result_of("c1").get("approval_id"), None, "a model needs no id of it");
}

#[tokio::test]
async fn an_answer_to_an_approved_call_may_be_given_again_and_the_call_is_not() {
    let w = World::playing([closing(), says("Closed."), says("It is closed.")]).await;
    let shown = w.held("Close 7").await;
    assert_made(&w.decide(&shown, &approve()).await, true);
    let again = json!({"regenerate": true, "context_type": "tickets", "conversation_id": "c"});
    let frames = w.s.app.chat(&again).await;
    assert_eq!(names(&frames), ["message_start", "content_chunk", "message_complete"]);
    assert_eq!(w.writes(), [CLOSED], "it is made once");
    let asked = w.s.last_asked();
    // Between the two stands that nothing was said: the answer of before is not on this branch.
    let [.., result, _, told] = &asked[..] else { panic!("{asked:#?}") };
    assert_eq!((&result["role"], &result["content"]), (&json!("tool"), &json!(r#"{"ok":true}"#)), "it was made");
    assert!(told["content"].as_str().unwrap().contains("do not make it again"), "{told}");
}

#[tokio::test]
async fn a_call_that_is_turned_down_is_not_made_and_the_model_hears_why() {
    let w = World::playing([closing(), says("All right.")]).await;
    let shown = w.held("Close 7").await;
    let frames = w.decide(&shown, &json!({"decision": "reject", "comment": "not\nyet \"please\""})).await;
    assert_eq!(names(&frames), ["message_start", "content_chunk", "message_complete"]);
    let told = "[Decision on a waiting call: the user turned down the call of close_ticket. It was not made; do not make it \
                again unless they ask for it. Their words: \"not yet \\\"please\\\"\"]";
    assert_eq!(w.told(), told);
    assert_eq!(w.writes(), [""; 0]);
}

#[tokio::test]
async fn a_restart_in_between_changes_nothing() {
    let w = World::playing([closing(), says("Closed.")]).await;
    let shown = w.held("Close 7").await;
    let w = w.restarted(async |_| {}).await;
    assert_eq!(w.waiting(&w.s.app.token).await, [id(&shown)]);
    assert_made(&w.decide(&shown, &approve()).await, true);
    assert_eq!(w.writes(), [CLOSED]);
}

#[tokio::test]
async fn two_calls_of_a_turn_are_decided_one_by_one() {
    let both = turn()
        .call("c1", "close_ticket", &json!({"id": 1}))
        .call("c2", "close_ticket", &json!({"id": 2}))
        .call("c3", "note", &json!({"text": "both closed"}))
        .done();
    let w = World::playing([both, says("First."), says("Second.")]).await;
    let frames = w.say("Close both").await;
    let results: Vec<_> = frames.iter().filter(|frame| frame.event == "tool_call_result").collect();
    assert!(results[2].data["is_error"] == json!(true), "what comes after may build on it: {frames:#?}");
    let shown: Vec<_> = frames.iter().filter(|frame| frame.event == "approval_request").map(|f| &f.data).collect();
    assert_eq!(shown.len(), 2);
    assert_eq!(w.writes(), [""; 0]);
    assert_made(&w.decide(shown[1], &approve()).await, true);
    assert_eq!(w.writes(), ["POST /v1/tickets/2/close {}"]);
    assert_made(&w.decide(shown[0], &approve()).await, true);
    assert_eq!(w.writes(), ["POST /v1/tickets/2/close {}", "POST /v1/tickets/1/close {}"]);
}

#[tokio::test]
async fn a_tool_that_is_gone_or_not_for_this_user_any_more_is_not_called() {
    let w = World::playing([closing(), says("No such tool.")]).await;
    let shown = w.held("Close 7").await;
    let without = super::PROFILE.replace(r#""close_ticket", "#, "");
    let w = w.restarted(async |data| write(data, "profiles/tickets.toml", &without)).await;
    assert_made(&w.decide(&shown, &approve()).await, false);
    assert_eq!(w.writes(), [""; 0], "the profile has it no more");

    let w = World::playing([closing(), says("Not yours.")]).await;
    let shown = w.held("Close 7").await;
    let closer = super::TOOLS.replacen("approval =", "roles = [\"closer\"]\napproval =", 1);
    let w = w.restarted(async |data| write(data, "tools/tickets.toml", &closer)).await;
    assert_made(&w.decide(&shown, &approve()).await, false);
    assert_eq!(w.writes(), [""; 0], "its user has not the role");

    let w = World::playing([closing()]).await;
    let shown = w.held("Close 7").await;
    let profile = super::PROFILE.replace("tools =", "roles = [\"closer\"]\ntools =");
    let w = w.restarted(async |data| write(data, "profiles/tickets.toml", &profile)).await;
    let refused = w.decide_as(&w.s.app.token, id(&shown), &approve()).await;
    assert_eq!(problem(refused).await, (403, "forbidden".to_owned()), "its user may not use the assistant");
    assert_eq!(w.writes(), [""; 0]);
}

#[tokio::test]
async fn a_decision_may_be_answered_as_one_document_or_in_the_background() {
    let w = World::playing([closing(), says("Closed."), closing(), says("Closed.")]).await;
    let as_json = |request: reqwest::RequestBuilder| request.header("accept", "application/json");
    let app = &w.s.app;
    let request = as_json(app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token).json(&body("Close 7")));
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["state"], json!("awaiting_approval"));
    assert_eq!(answer["artifacts"][0]["kind"], json!("approval_request"));
    let shown = &answer["artifacts"][0]["payload"];
    let url = app.url(&format!("/v1/agent/approvals/{}", id(shown)));
    let decided = as_json(app.http.post(url).bearer_auth(&app.token).json(&approve())).send().await.unwrap();
    assert_eq!(decided.status(), 200);
    let answer: Value = decided.json().await.unwrap();
    assert_eq!((&answer["state"], &answer["message"]), (&json!("completed"), &json!("Closed.")));
    assert_eq!(w.writes(), [CLOSED]);

    let shown = w.held("Close 7 again").await;
    let url = app.url(&format!("/v1/agent/approvals/{}", id(&shown)));
    let decision = json!({"decision": "approve", "background": true});
    let decided = as_json(app.http.post(url).bearer_auth(&app.token).json(&decision)).send().await.unwrap();
    assert_eq!(decided.status(), 202);
    let run = decided.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let events = app.http.get(app.url(&format!("/v1/agent/runs/{run}/events"))).bearer_auth(&app.token);
    let events = events.send().await.unwrap().text().await.unwrap();
    let frames: Vec<_> = crate::support::frames::numbered(&events).into_iter().map(|(_, frame)| frame).collect();
    assert_eq!(names(&frames), MADE);
    assert_eq!(w.writes(), [CLOSED, CLOSED]);
}

#[tokio::test]
async fn the_decision_goes_on_with_the_screen_of_the_question() {
    let tools = super::TOOLS.replacen(
        "approval = \"user\"",
        "approval = \"user\"\ninject = { reason = \"{{ context.why }}\" }",
        1,
    );
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 7})), says("Closed.")]).await;
    let w = w.restarted(async |data| write(data, "tools/tickets.toml", &tools)).await;
    let mut asked = body("Close 7");
    asked["context"] = json!({"why": "sold"});
    let frames = w.s.app.chat(&asked).await;
    let shown = data(&frames, "approval_request").clone();
    assert_eq!(shown["arguments"], json!({"id": 7, "reason": "sold"}), "what is filled in is shown");
    let elsewhere = json!({"decision": "approve", "context": {"why": "stolen"}});
    assert_made(&w.decide(&shown, &elsewhere).await, true);
    assert_eq!(w.writes(), [r#"POST /v1/tickets/7/close {"reason":"sold"}"#]);
}

#[tokio::test]
async fn the_approved_call_takes_none_of_the_models_turns() {
    let profile = format!("{}[bounds]\nmax_turns = 2\n", super::PROFILE);
    let w = World::playing([closing(), says("Closed.")]).await;
    let w = w.restarted(async |data| write(data, "profiles/tickets.toml", &profile)).await;
    let shown = w.held("Close 7").await;
    assert_made(&w.decide(&shown, &approve()).await, true);
    assert_eq!(w.writes(), [CLOSED]);
}

#[tokio::test]
async fn a_decision_goes_on_with_the_turns_that_its_message_has_left() {
    let profile = format!("{}[bounds]\nmax_turns = 1\n", super::PROFILE);
    let w = World::playing([closing()]).await;
    let w = w.restarted(async |data| write(data, "profiles/tickets.toml", &profile)).await;
    let shown = w.held("Close 7").await;
    let frames = w.decide(&shown, &approve()).await;
    assert_eq!(data(&frames, "tool_call_result")["is_error"], json!(false), "what was approved is made");
    assert_eq!(data(&frames, "error")["code"], json!("max_turns"));
    assert_eq!(w.writes(), [CLOSED]);
}

#[tokio::test]
async fn calls_beyond_the_limit_are_answered_and_have_their_place() {
    let profile = format!("{}[bounds]\nmax_tool_calls = 1\non_limit = \"answer\"\n", super::PROFILE);
    let both = turn()
        .text("I look.")
        .call("c1", "note", &json!({"text": "a"}))
        .call("c2", "close_ticket", &json!({"id": 7}))
        .done();
    let w = World::playing([both, says("That is all.")]).await;
    let w = w.restarted(async |data| write(data, "profiles/tickets.toml", &profile)).await;
    let frames = w.say("Close 7").await;
    let results: Vec<_> = frames.iter().filter(|frame| frame.event == "tool_call_result").collect();
    let failed: Vec<_> = results.iter().map(|frame| frame.data["is_error"].as_bool().unwrap()).collect();
    assert_eq!(failed, [false, true], "{frames:#?}");
    assert_eq!(names(&frames).last(), Some(&"message_complete"));
    let refused = json!({"error": "the limit of tool calls is reached; answer with what you have"});
    assert_eq!(w.s.result_of("c2"), refused);
    assert_eq!(w.writes(), [r#"POST /v1/notes {"text":"a"}"#]);
    let (_, chat) = w.get_as(&w.s.app.token, "/v1/agent/conversations/c").await;
    let said: Vec<_> = chat["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!(said, ["Close 7", "I look.", "That is all."]);
}

#[tokio::test]
async fn what_was_said_before_the_limit_is_kept_while_the_last_words_are_said() {
    let profile = format!("{}[bounds]\nmax_tool_calls = 1\non_limit = \"answer\"\n", super::PROFILE);
    let both =
        turn().text("I look.").call("c1", "note", &json!({"text": "a"})).call("c2", "close_ticket", &json!({"id": 7}));
    let gate = Arc::new(Notify::new());
    let last = turn().text("That").answer().gated(&gate, says(" is all.").bytes());
    let w = World::answering([both.done().answer(), last]).await;
    let w = w.restarted(async |data| write(data, "profiles/tickets.toml", &profile)).await;
    let mut response = w.s.app.post(&body("Close 7")).await;
    frames::read_until(&mut response, "That").await;
    let (_, chat) = w.get_as(&w.s.app.token, "/v1/agent/conversations/c").await;
    let said: Vec<_> = chat["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert!(said.len() >= 2 && said[1] == "I look.", "{chat}");
    gate.notify_one();
    response.text().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_a_decision_is_refused() {
    let w = World::playing([closing()]).await;
    let shown = w.held("Close 7").await;
    let long = json!({"decision": "approve", "comment": "x".repeat(4097)});
    let rows = [
        (json!({}), (422, "invalid_request"), "no decision"),
        (json!({"decision": "accept"}), (422, "invalid_request"), "another word"),
        (json!({"decision": true}), (422, "invalid_request"), "no word"),
        (long, (422, "invalid_request"), "a comment without end"),
        (json!({"decision": "approve", "on_busy": "wait"}), (400, "invalid_request"), "an unknown policy"),
        (json!({"decision": "approve", "context": 1}), (400, "invalid_request"), "a screen that is none"),
        (json!({"decision": "approve", "digest": "00"}), (409, "digest_mismatch"), "what was shown was another call"),
        (json!({"decision": "reject", "digest": ""}), (409, "digest_mismatch"), "an empty digest"),
    ];
    for (body, (status, code), reason) in rows {
        let refused = w.decide_as(&w.s.app.token, id(&shown), &body).await;
        assert_eq!(problem(refused).await, (status, code.to_owned()), "{reason}");
    }
    for (id, reason) in [("x", "no id"), ("11111111-1111-4111-8111-111111111111", "nobody's")] {
        let refused = w.decide_as(&w.s.app.token, id, &reject()).await;
        assert_eq!(problem(refused).await, (404, "not_found".to_owned()), "{reason}");
    }
    assert_eq!(w.waiting(&w.s.app.token).await, [id(&shown)], "it still waits");
    assert_eq!(w.writes(), [""; 0]);
}

#[tokio::test]
async fn a_decision_has_the_first_number_of_its_run_and_no_frame() {
    let w = World::playing([closing(), says("Closed."), closing(), says("All right.")]).await;
    for decision in ["approve", "reject"] {
        let shown = w.held("Close 7").await;
        let body = json!({"decision": decision, "background": true});
        let told = w.decide_as(&w.s.app.token, id(&shown), &body).await.text().await.unwrap();
        assert!(told.starts_with("id: 1\nevent: message_start\n"), "{told}");
    }
}

#[tokio::test]
async fn a_decision_is_no_start() {
    let w = World::playing([calls("t1", "close_ticket", &json!({"id": 7})), says("Closed.")]).await;
    let w = w.with(&[("LIMITS__STARTS_PER_MINUTE", "1"), ("LIMITS__STARTS_BURST", "1")]).await;
    let shown = w.held("Close it").await;
    assert_made(&w.decide(&shown, &approve()).await, true);
    let refused = w.s.app.post(&body("And now?")).await;
    assert_eq!(problem(refused).await, (429, "rate_limited".to_owned()), "a message is one");
}
