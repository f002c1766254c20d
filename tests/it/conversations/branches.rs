//! What a conversation with several branches shows: the newest one.

use serde_json::{Value, json};

use super::{get, said};
use crate::runs::{background, body, header, post, run_in, scripted};
use crate::support::model::{Scripted, says, turn};

#[tokio::test]
async fn an_answer_given_again_takes_the_place_of_the_first() {
    let s = Scripted::playing([says("Red."), says("Blue."), says("As you like.")]).await;
    s.app.chat(&body("A colour?")).await;
    s.app.chat(&json!({"regenerate": true, "context_type": "workflow", "conversation_id": "c"})).await;
    assert_eq!(said(&s.app, "c").await, ["user: A colour?", "assistant: Blue."]);
    s.app.chat(&body("Good")).await;
    let whole = ["user: A colour?", "assistant: Blue.", "user: Good", "assistant: As you like."];
    assert_eq!(said(&s.app, "c").await, whole);
    assert_eq!(get(&s.app, "").await["items"][0]["message_count"], 4);
}

#[tokio::test]
async fn an_edited_message_takes_the_place_of_the_first_and_what_followed() {
    let s = Scripted::playing(["Hello.", "Seven.", "Quite.", "Eight.", "Good day."].map(says)).await;
    s.app.chat(&body("Hi")).await;
    s.app.chat(&body("Three and four?")).await;
    s.app.chat(&body("Sure?")).await;
    let shown = get(&s.app, "/c").await;
    let mut edited = body("Four and four?");
    edited["parent_message_id"] = shown["messages"][1]["id"].clone();
    s.app.chat(&edited).await;
    assert_eq!(said(&s.app, "c").await, ["user: Hi", "assistant: Hello.", "user: Four and four?", "assistant: Eight."]);
    let mut first = body("Good morning");
    first["parent_message_id"] = json!("root");
    s.app.chat(&first).await;
    assert_eq!(said(&s.app, "c").await, ["user: Good morning", "assistant: Good day."]);
    assert_eq!(get(&s.app, "/c").await["title"], "Hi", "the conversation keeps its name");
}

#[tokio::test]
async fn a_branch_from_the_middle_of_a_run_shows_what_came_before_it() {
    // The message with the call, and the one with its result.
    for named in [1, 2] {
        let s = Scripted::playing([
            turn().text("Let me see.").call("t1", "discover_trigger_types", &json!({})).done(),
            says("Four."),
            says("Stopped."),
        ])
        .await;
        s.app.chat(&body("How many?")).await;
        let shown = get(&s.app, "/c").await;
        let run = shown["messages"][0]["id"].as_str().unwrap().split('.').next().unwrap().to_owned();
        let mut instead = body("Wait");
        instead["parent_message_id"] = json!(format!("{run}.{named}"));
        s.app.chat(&instead).await;
        let whole = ["user: How many?", "assistant: Let me see.", "user: Wait", "assistant: Stopped."];
        assert_eq!(said(&s.app, "c").await, whole);
        assert_eq!(get(&s.app, "/c").await["messages"][1]["tool_calls"][0]["state"], "done");
        let roles: Vec<Value> = s.last_asked().iter().map(|message| message["role"].clone()).collect();
        assert_eq!(
            roles,
            ["system", "user", "assistant", "tool", "assistant", "user"],
            "{named}: a call and its result"
        );
    }
}

#[tokio::test]
async fn what_the_server_says_to_have_an_answer_continued_is_not_shown() {
    let s = scripted([turn().text("Half a").breaks().answer(), says(" thought.").answer()]).await;
    let first = s.app.post(&background("Think")).await;
    let id = header(&first, "x-run-id");
    first.text().await.unwrap();
    run_in(&s.app, &id, "failed").await;
    post(&s.app, &format!("/v1/agent/runs/{id}/continue"), &[], &json!({})).await.text().await.unwrap();
    assert_eq!(said(&s.app, "c").await, ["user: Think", "assistant: Half a", "assistant:  thought."]);
}

#[tokio::test]
async fn a_question_that_is_answered_by_going_on_is_shown() {
    let broken = turn().breaks().answer();
    let s = Scripted::with(&[("LLM__RETRY__ATTEMPTS", "1")], [broken, says("Here I am.").answer()]).await;
    let first = s.app.post(&body("Hello?")).await;
    let id = header(&first, "x-run-id");
    first.text().await.unwrap();
    run_in(&s.app, &id, "failed").await;
    post(&s.app, &format!("/v1/agent/runs/{id}/continue"), &[], &json!({})).await.text().await.unwrap();
    assert_eq!(said(&s.app, "c").await, ["user: Hello?", "assistant: Here I am."]);
}

#[tokio::test]
async fn a_continuation_that_said_nothing_is_continued_without_a_word_of_the_servers() {
    let s = Scripted::with(
        &[("LLM__RETRY__ATTEMPTS", "1")],
        [turn().text("Half a").breaks().answer(), turn().breaks().answer(), says(" thought.").answer()],
    )
    .await;
    let mut response = s.app.post(&body("Think")).await;
    for _ in 0..2 {
        let id = header(&response, "x-run-id");
        response.text().await.unwrap();
        run_in(&s.app, &id, "failed").await;
        response = post(&s.app, &format!("/v1/agent/runs/{id}/continue"), &[], &json!({})).await;
    }
    response.text().await.unwrap();
    assert_eq!(said(&s.app, "c").await, ["user: Think", "assistant: Half a", "assistant:  thought."]);
}
