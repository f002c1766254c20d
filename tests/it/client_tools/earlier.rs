//! Conversations that a client keeps to itself.

use serde_json::json;
use switchboard::agent::ports::conversations::{Listed, Page};
use switchboard::chat::ids::{MessageId, RunId};
use switchboard::chat::input::{Ask, ClientMessage, Parent, RunInput};
use switchboard::chat::message::Message;

use super::{Desk, ada, calls, input, result, says, told, tool};
use crate::support::whole::seen;

fn words(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User(user) => user.text.clone(),
        Message::Assistant(assistant) => assistant.text(),
        Message::ToolResults(_) => String::new(),
    };
    messages.iter().map(text).collect()
}

#[tokio::test]
async fn what_was_said_before_goes_before_the_first_message_alone() {
    let d = Desk::playing([says("Three."), says("Four.")]).await;
    let earlier = vec![ClientMessage::User("One?".to_owned(), Vec::new()), ClientMessage::Assistant("Two.".to_owned())];
    let ask = |text: &str| RunInput { earlier: earlier.clone(), unlisted: true, ..input(Ask::message(text), &[]) };
    assert_eq!(told(&d.ask(ask("And?")).await.unwrap()), ["end"]);
    assert_eq!(words(&d.last_asked().0), ["One?", "Two.", "And?"]);
    assert_eq!(told(&d.ask(ask("More?")).await.unwrap()), ["end"]);
    let all = ["One?", "Two.", "And?", "Three.", "More?"];
    assert_eq!(words(&d.last_asked().0), all, "it is told once: the server's own history is never replaced");

    let owner = ada().owner;
    let listed = d.store.conversations(&owner, Listed::default(), Page { limit: 9, cursor: None }).await.unwrap();
    assert!(listed.items.is_empty(), "it is unlisted");
    let view = seen(&*d.store, &owner, &ask("").conversation.unwrap()).await.unwrap();
    assert_eq!(view.messages.len(), 4, "what the client told is nobody's message");
}

#[tokio::test]
async fn what_was_said_before_is_there_when_the_client_tells_its_results_or_wants_another_answer() {
    let asking = calls(&[("t1", "locate", json!({"city": "Ulm"}))]);
    let d = Desk::playing([asking, vec![], says("North."), says("Far north."), says("Ulm?")]).await;
    let earlier = vec![ClientMessage::User("One?".to_owned(), Vec::new()), ClientMessage::Assistant("Two.".to_owned())];
    let first = RunInput { earlier, unlisted: true, ..input(Ask::message("Where?"), &[tool("locate")]) };
    let events = d.ask(first).await.unwrap();
    assert_eq!(told(&events).last().unwrap(), "awaiting client: t1");
    let results = || input(Ask::Results(vec![result("t1", "48")]), &[]);
    assert_eq!(told(&d.ask(results()).await.unwrap()), ["failed: provider_rejected"]);
    for (ask, reason) in [(results(), "the results"), (input(Ask::Again, &[]), "another answer")] {
        assert_eq!(told(&d.ask(ask).await.unwrap()), ["end"]);
        assert_eq!(words(&d.last_asked().0)[..3], ["One?", "Two.", "Where?"], "{reason}");
    }
    let (again, parent) =
        (input(Ask::Again, &[]), Some(Parent::Message(MessageId { run: first_run(&d).await, seq: 0 })));
    assert_eq!(told(&d.ask(RunInput { parent, ..again }).await.unwrap()), ["end"]);
    assert_eq!(words(&d.last_asked().0), ["One?", "Two.", "Where?"], "its question again");
}

/// The run with which the conversation begins.
async fn first_run(d: &Desk) -> RunId {
    let id = input(Ask::Again, &[]).conversation.unwrap();
    seen(&*d.store, &ada().owner, &id).await.unwrap().messages[0].id.run
}
