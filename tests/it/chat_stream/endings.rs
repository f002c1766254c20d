//! How runs end that do not end well, what their page is told, and what is kept of them.

use serde_json::{Value, json};

use super::{Kh, hi, kinds, typed, within};
use crate::support::frames::read_until;
use crate::support::model::{calls, says, turn};
use crate::support::upstream::Answer;

/// The number of Ada's only chat.
async fn only_chat(kh: &Kh) -> Value {
    let list = kh.get("/api/chats").await;
    assert_eq!(list["chats"].as_array().unwrap().len(), 1, "{list}");
    list["chats"][0]["id"].clone()
}

#[tokio::test]
async fn failures_of_the_model_are_told_in_plain_words_kept_and_got_over() {
    let quota = r#"{"error":{"message":"secret","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let error = r#"{"error":{"message":"secret"}}"#;
    let rows = [
        (Answer::status(429, "application/json", quota), "credit"),
        (Answer::status(429, "application/json", error), "rate limit"),
        (Answer::status(401, "application/json", error), "authentication"),
        (Answer::status(503, "application/json", error), "connection"),
        (turn().text("Half.").hangs().answer(), "timeout"),
    ];
    let settings = [("LLM__RETRY__ATTEMPTS", "1"), ("LLM__IDLE_TIMEOUT_S", "1")];
    for (answer, word) in rows {
        let kh = Kh::with(&[], &settings, [answer, says("Better.").answer()]).await;
        let events = kh.hears(&hi()).await;
        let last = events.last().unwrap();
        let message = last["message"].as_str().unwrap();
        assert_eq!((last["type"].as_str(), last.as_object().unwrap().len()), (Some("error"), 2), "{word}");
        assert!(message.contains(word) && !message.contains("secret"), "{word}: {message}");

        let chat = only_chat(&kh).await;
        let kept = kh.get(&format!("/api/chats/{chat}")).await;
        let answer = &kept["messages"][1];
        let said = if word == "timeout" { "Half." } else { "" };
        assert_eq!((&answer["role"], &answer["content"]), (&json!("assistant"), &json!(said)), "{word}");
        assert_eq!(answer["extras"], json!({"error": message, "outcome": "error"}), "{word}");
        let again = kh.answer(&within(&chat, typed("Again", &json!({})))).await;
        assert_eq!((&again["message"], &again["conversation_id"]), (&json!("Better."), &chat), "{word}");
    }
}

#[tokio::test]
async fn a_page_that_goes_away_stops_the_work_and_what_was_said_is_kept() {
    let kh = Kh::with(&[], &[], [turn().text("Half a thought").hangs().answer(), says("Yes.").answer()]).await;
    let mut response = kh.post(&hi()).await;
    read_until(&mut response, "Half").await;
    drop(response);
    kh.s.model.clients_gone(1).await;
    let chat = only_chat(&kh).await;
    // The next message waits until the one before it has come to its end.
    kh.answer(&within(&chat, typed("Go on", &json!({})))).await;
    let kept = kh.get(&format!("/api/chats/{chat}")).await;
    assert_eq!(kept["messages"][1]["content"], "Half a thought");
    assert_eq!(kept["messages"][1]["extras"], json!({"outcome": "cancelled"}));
    let asked = kh.s.last_asked();
    let said: Vec<_> = asked[1..].iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["Hi", "Half a thought", "Go on"]);
}

#[tokio::test]
async fn a_run_that_is_cancelled_elsewhere_ends_its_stream_so() {
    let kh = Kh::with(&[], &[], [turn().text("Half").hangs().answer()]).await;
    let mut response = kh.post(&hi()).await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let mut seen = read_until(&mut response, "Half").await;
    let app = &kh.s.app;
    let cancel = app.http.post(app.url(&format!("/v1/agent/runs/{run}/cancel"))).bearer_auth(&app.token);
    assert_eq!(cancel.send().await.unwrap().status(), 200);
    seen.push_str(&response.text().await.unwrap());
    let events = super::page::read(&seen);
    assert_eq!(kinds(&events), ["status", "text_delta", "cancelled"]);
    assert_eq!(events.last(), Some(&json!({"type": "cancelled"})));
}

#[tokio::test]
async fn an_answer_that_reaches_a_limit_or_is_empty_stands_and_says_so() {
    let cut = "[The answer was cut off here: it had reached its length limit.]";
    let nothing = "[The model gave no answer. Please try again.]";
    let more = "[[tool:0]]\n\n[The model had nothing more to say.]";
    let at_limit = "[[tool:0]]\n\n[[tool:1]]\n\n[[tool:2]]\n\n[The model had nothing more to say.]";
    let call = || calls("c", "discover_trigger_types", &json!({}));
    let rows = [
        (vec![turn().text("Half an ans").finish("length")], format!("Half an ans\n\n{cut}"), "at its limit"),
        (vec![turn().done(), turn().done()], nothing.to_owned(), "empty, and empty again"),
        (vec![call(), turn().done(), turn().done()], more.to_owned(), "empty after a good call"),
        (vec![call(), call(), call(), turn().done()], at_limit.to_owned(), "empty when all turns are used up"),
    ];
    for (turns, expected, reason) in rows {
        let kh = Kh::playing(turns.into_iter().chain([says("Better.")])).await;
        let events = kh.hears(&hi()).await;
        let payload = super::complete(&events);
        assert_eq!(payload["message"], expected, "{reason}");
        assert_eq!(super::text(&events), expected, "{reason}");
        let chat = &payload["conversation_id"];
        let kept = kh.get(&format!("/api/chats/{chat}")).await;
        let answer = &kept["messages"][1];
        let history = payload["tool_history"].as_array().map(|history| json!({"tool_history": history}));
        assert_eq!((&answer["content"], &answer["extras"]), (&json!(expected), &json!(history)), "{reason}");
        let again = kh.answer(&within(chat, typed("Again", &json!({})))).await;
        assert_eq!(again["message"], "Better.", "{reason}");
    }
}
