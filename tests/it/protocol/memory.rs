//! Conversations: what a later message finds of the earlier ones.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{Scripted, calls, says, turn};

fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_conversation_goes_on_with_everything_said_called_and_returned() {
    let s = Scripted::playing([
        turn().text("Let me see.").call("t1", "discover_trigger_types", &json!({})).done(),
        says("There are four."),
        says("As I said, four."),
    ])
    .await;
    s.app.say("c", "How many triggers?").await;
    s.app.say("c", "How many again?").await;
    let asked = s.last_asked();
    assert_eq!(roles(&asked), ["system", "user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(asked[2]["tool_calls"][0]["id"], "t1");
    assert!(asked[3]["content"].as_str().unwrap().contains("on_create"));
    assert_eq!(asked[4]["content"], "There are four.");
    assert_eq!(asked[5]["content"], "How many again?");
}

#[tokio::test]
async fn a_message_without_an_id_begins_a_conversation_that_its_header_names() {
    let s = Scripted::playing([says("Hello."), says("Hello again.")]).await;
    let first = s.app.post(&json!({"message": "Hi", "context_type": "workflow"})).await;
    let id = first.headers()["x-conversation-id"].to_str().unwrap().to_owned();
    first.text().await.unwrap();
    s.app.say(&id, "Still there?").await;
    assert_eq!(s.last_asked()[1]["content"], "Hi");
}

#[tokio::test]
async fn another_user_or_conversation_sees_nothing_of_it() {
    let s = Scripted::playing([says("Noted."), says("What?"), says("What?")]).await;
    s.app.say("c", "My secret is 42").await;
    s.app.say("d", "What is my secret?").await;
    assert_eq!(s.last_asked().len(), 2);
    let other = s.app.token_of("somebody-else", None, &["USER"]);
    let body = json!({"message": "What is my secret?", "context_type": "workflow", "conversation_id": "c"});
    s.app.post_as(&other, &body).await.text().await.unwrap();
    assert_eq!(s.last_asked().len(), 2);
}

#[tokio::test]
async fn a_conversation_survives_a_restart() {
    let s = Scripted::playing([says("Noted.")]).await;
    s.app.say("c", "Remember me").await;
    let data = s.app.stop().await;
    let model = crate::support::upstream::Upstream::script([says("Of course.").answer()]).await;
    let base_url = format!("{}/v1", model.url());
    let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &*base_url)];
    let app = TestApp::start_in(data, &settings).await;
    app.say("c", "Do you?").await;
    let messages = model.requests()[0].json()["messages"].as_array().unwrap().clone();
    assert_eq!(roles(&messages), ["system", "user", "assistant", "user"]);
    assert_eq!(messages[1]["content"], "Remember me");
}

#[tokio::test]
async fn the_users_message_is_kept_even_when_the_model_never_answers() {
    let turns = [turn().breaks().answer(), says("Here I am.").answer()];
    let s = Scripted::with(&[("LLM__RETRY__ATTEMPTS", "1")], turns).await;
    let frames = s.app.say("c", "First").await;
    assert_eq!(frames::names(&frames), ["message_start", "error"]);
    s.app.say("c", "Second").await;
    let asked = s.last_asked();
    // Two messages of the user in a row are one for models whose templates want turns to alternate.
    assert_eq!(roles(&asked), ["system", "user"]);
    let content = asked[1]["content"].as_str().unwrap();
    assert!(content.starts_with("First") && content.ends_with("Second"), "{content}");
}

#[tokio::test]
async fn the_newest_messages_that_fit_are_sent_and_tool_pairs_stay_whole() {
    let long = "x".repeat(600);
    let mut turns = Vec::new();
    for n in 0..6 {
        turns.push(calls(&format!("t{n}"), "discover_trigger_types", &json!({})).answer());
        turns.push(says(&format!("{n} {long}")).answer());
    }
    turns.push(says("Done.").answer());
    let s = Scripted::with(&[("LIMITS__HISTORY_BYTES", "5000"), ("RUNS__SUMMARY_MODEL", "off")], turns).await;
    for n in 0..6 {
        s.app.say("c", &format!("message {n}")).await;
    }
    s.app.say("c", "and now").await;
    let asked = s.last_asked();
    let roles = roles(&asked);
    assert!(asked.len() > 4 && asked.len() < 1 + 6 * 4 + 1, "some is sent and not all: {roles:?}");
    assert_eq!(roles[..2], ["system", "user"]);
    for whole_run in roles[1..roles.len() - 1].chunks(4) {
        assert_eq!(whole_run, ["user", "assistant", "tool", "assistant"]);
    }
    assert!(asked[asked.len() - 2]["content"].as_str().unwrap().starts_with("5 "), "the newest is there");
}
