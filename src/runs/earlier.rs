//! What a client that keeps its conversation to itself says was said before: the history of a run whose conversation
//! begins with it.

use std::sync::Arc;

use crate::chat::input::Told;
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, UserMessage};

/// The newest of `told` that fit in `bytes` of text, as a model may see them: they begin with the user, and nobody says
/// nothing. 0 means no limit.
pub(super) fn history(told: &[Told], bytes: usize) -> Vec<Message> {
    let mut room = if bytes == 0 { usize::MAX } else { bytes };
    let fits = told.iter().rev().take_while(|told| {
        let left = room.checked_sub(words(told).len());
        room = left.unwrap_or_default();
        left.is_some()
    });
    let kept = fits.count();
    let kept = told.iter().skip(told.len() - kept).filter(|told| !words(told).trim().is_empty());
    // Of no vendor: what one wants back with its own answers is not there.
    let origin = Arc::new(ModelOrigin { provider: "switchboard".to_owned(), model: "told".to_owned() });
    let message = |told: &Told| match told {
        Told::User(text) => Message::User(UserMessage::new(text)),
        Told::Assistant(text) => {
            let parts = vec![AssistantPart::Text { text: text.clone(), replay: None }];
            Message::Assistant(AssistantMessage { origin: origin.clone(), parts })
        }
    };
    kept.skip_while(|told| matches!(told, Told::Assistant(_))).map(message).collect()
}

fn words(told: &Told) -> &str {
    match told {
        Told::User(text) | Told::Assistant(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_that_fits_is_history_and_begins_with_the_user() {
        let user = |text: &str| Told::User(text.to_owned());
        let answer = |text: &str| Told::Assistant(text.to_owned());
        let told = [answer("hello"), user("one"), answer("two"), user(" "), user("three"), answer("four")];
        let rows = [
            (0, "one two three four", "all, without the answer to nothing and what is blank"),
            (16, "one two three four", "to the byte"),
            (15, "three four", "an answer whose question does not fit"),
            (9, "three four", "one pair"),
            (8, "", "not even that"),
        ];
        for (bytes, expected, reason) in rows {
            let said = history(&told, bytes).into_iter().map(|message| match message {
                Message::User(user) => user.text,
                Message::Assistant(assistant) => assistant.text(),
                Message::ToolResults(_) => unreachable!(),
            });
            assert_eq!(said.collect::<Vec<_>>().join(" "), expected, "{reason}");
        }
        assert_eq!(history(&[], 9).len(), 0);
    }
}
