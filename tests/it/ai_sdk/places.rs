//! Answering again, and editing what was said.

use serde_json::{Value, json};

use super::{Stream, World, post, problem, request, user};
use crate::support::model::says;

/// What the model heard the last time, without what the server told it.
fn heard(w: &World) -> Vec<Value> {
    let messages = w.s.last_asked().into_iter().filter(|message| message["role"] != "system");
    messages.map(|message| message["content"].clone()).collect()
}

/// An answer as the client keeps it.
fn answer(stream: &Stream) -> Value {
    json!({"id": format!("{}.1", stream.run), "role": "assistant", "parts": [{"type": "text", "text": stream.text()}]})
}

#[tokio::test]
async fn an_answer_is_given_again() {
    let w = World::playing(["One.", "Two.", "Two again.", "Two, third.", "Two, fourth.", "One again."].map(says)).await;
    let one = w.say("First").await;
    let before = json!([user("u1", "First"), answer(&one), user("u2", "Second")]);
    let two = w.ask("", &request(before.clone())).await;
    let again = |messages: &Value, id: Value| {
        let mut body = request(messages.clone());
        (body["trigger"], body["messageId"]) = (json!("regenerate-message"), id);
        body
    };
    let theirs = json!({"id": "theirs", "role": "assistant", "parts": []});
    let first = json!([user("u1", "First")]);
    let rows = [
        (
            again(&before, answer(&two)["id"].clone()),
            "Two again.",
            &["First", "One.", "Second"][..],
            "the answer is ours",
        ),
        (again(&before, json!("u2")), "Two, third.", &["First", "One.", "Second"][..], "the question is named"),
        (again(&before, json!(null)), "Two, fourth.", &["First", "One.", "Second"][..], "the newest"),
        (again(&first, json!("u1")), "One again.", &["First"][..], "a question that is not the newest"),
    ];
    for (body, expected, thread, reason) in rows {
        assert_eq!(w.ask("", &body).await.text(), expected, "{reason}");
        assert_eq!(heard(&w), thread, "{reason}");
    }
    let unknown = "messageId names a message whose place in the conversation is not known here";
    for messages in [json!([]), json!([theirs]), json!([user("u1", "First"), theirs, user("u2", "Second")])] {
        let (status, _, detail) = problem(post(&w.s.app, "", &again(&messages, json!("x"))).await).await;
        assert_eq!((status, detail.as_str()), (400, unknown), "{messages}");
    }
}

#[tokio::test]
async fn an_edited_message_takes_the_place_of_the_earlier_one() {
    let w = World::playing([says("One."), says("Two."), says("Two, edited."), says("One, edited.")]).await;
    let one = w.say("First").await;
    let two = w.ask("", &request(json!([user("u1", "First"), answer(&one), user("u2", "Second")]))).await;
    let edit = |messages: Value, id: &str| {
        let mut body = request(messages);
        body["messageId"] = json!(id);
        body
    };
    let second = edit(json!([user("u1", "First"), answer(&one), user("u2", "Second, edited")]), "u2");
    assert_eq!(w.ask("", &second).await.text(), "Two, edited.");
    assert_eq!(heard(&w), ["First", "One.", "Second, edited"]);
    let first = edit(json!([user("u1", "First, edited")]), "u1");
    assert_eq!(w.ask("", &first).await.text(), "One, edited.");
    assert_eq!(heard(&w), ["First, edited"]);
    let mut nothing = request(json!([]));
    (nothing["id"], nothing["trigger"]) = (json!("new"), json!("regenerate-message"));
    let (status, _, detail) = problem(post(&w.s.app, "", &nothing).await).await;
    assert_eq!((status, detail.as_str()), (400, "trigger asks for another answer, and there is no question yet"));
    nothing["messageId"] = json!(format!("{}.1", one.run));
    let (status, _, detail) = problem(post(&w.s.app, "", &nothing).await).await;
    assert_eq!((status, detail.as_str()), (400, "messageId names no message of this conversation"));
    let gone = edit(json!([user("x", "Gone")]), &format!("{}.0", two.run));
    let (status, _, detail) = problem(post(&w.s.app, "", &gone).await).await;
    assert_eq!((status, detail.as_str()), (400, "messageId names no message of the conversation's newest branch"));
    let theirs = json!({"id": "theirs", "role": "assistant", "parts": []});
    let unknown = edit(json!([user("u1", "First"), theirs, user("u2", "Second")]), "u2");
    let (status, _, detail) = problem(post(&w.s.app, "", &unknown).await).await;
    assert_eq!(
        (status, detail.as_str()),
        (400, "messageId names a message whose place in the conversation is not known here")
    );
}
