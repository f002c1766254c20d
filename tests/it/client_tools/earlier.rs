//! Conversations that a client keeps to itself.

use switchboard::agent::ports::conversations::Page;
use switchboard::chat::input::{Ask, RunInput, Told};
use switchboard::chat::message::Message;

use super::{Desk, ada, input, says, told};

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
    let earlier = vec![Told::User("One?".to_owned()), Told::Assistant("Two.".to_owned())];
    let ask = |text: &str| RunInput { earlier: earlier.clone(), unlisted: true, ..input(Ask::message(text), &[]) };
    assert_eq!(told(&d.ask(ask("And?")).await.unwrap()), ["end"]);
    assert_eq!(words(&d.last_asked().0), ["One?", "Two.", "And?"]);
    assert_eq!(told(&d.ask(ask("More?")).await.unwrap()), ["end"]);
    assert_eq!(words(&d.last_asked().0), ["And?", "Three.", "More?"], "the server's own history is never replaced");

    let owner = ada().owner;
    let listed = d.store.conversations(&owner, Page { limit: 9, cursor: None }).await.unwrap();
    assert!(listed.items.is_empty(), "it is unlisted");
    let view = d.store.conversation(&owner, &ask("").conversation.unwrap()).await.unwrap().unwrap();
    assert_eq!(view.messages.len(), 4, "what the client told is kept nowhere");
}
