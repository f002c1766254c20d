//! What a client that keeps its conversation to itself says was said before: kept with the first run of the
//! conversation, and history of every run whose way back ends at the root.

use std::sync::Arc;

use super::history::HistoryBudget;
use super::record_error::RecordError;
use crate::chat::input::ClientMessage;
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, UserMessage};

/// The newest of `told` that fit in `bytes` of text (0 means no limit), as JSON text; `None` where nothing was said.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_client_history(told: &[ClientMessage], bytes: usize) -> Result<Option<String>, RecordError> {
    let mut room = HistoryBudget::new(bytes);
    let fitting = told.iter().rev().take_while(|told| room.take(words(told).len())).count();
    let kept = told.iter().skip(told.len() - fitting).filter(|told| !words(told).trim().is_empty());
    let rows: Vec<(bool, &str)> = kept.map(|told| (matches!(told, ClientMessage::User(_)), words(told))).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    serde_json::to_string(&rows).map(Some).map_err(RecordError::json("what was said before"))
}

/// The newest messages of `text` that fit in `room`, the newest first.
///
/// # Errors
/// When it is not what [`encode_client_history`] wrote.
pub(super) fn decode_client_history(text: &str, room: &mut HistoryBudget) -> Result<Vec<Message>, RecordError> {
    let rows: Vec<(bool, String)> = serde_json::from_str(text).map_err(RecordError::json("what was said before"))?;
    // Of no vendor: what one wants back with its own answers is not there.
    let origin = Arc::new(ModelOrigin { provider: "switchboard".to_owned(), model: "told".to_owned() });
    let message = |(is_user, text): (bool, String)| match is_user {
        true => Message::User(UserMessage::new(text)),
        false => {
            let parts = vec![AssistantPart::Text { text, replay: None }];
            Message::Assistant(AssistantMessage { origin: origin.clone(), parts })
        }
    };
    Ok(rows.into_iter().rev().take_while(|(_, text)| room.take(text.len())).map(message).collect())
}

fn words(told: &ClientMessage) -> &str {
    match told {
        ClientMessage::User(text) | ClientMessage::Assistant(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::history::presentable;

    /// What a model sees of it, once `kept` bytes were kept and `left` bytes are left.
    fn seen(told: &[ClientMessage], kept: usize, left: usize) -> String {
        let Some(text) = encode_client_history(told, kept).unwrap() else { return String::new() };
        let said = presentable(decode_client_history(&text, &mut HistoryBudget::new(left)).unwrap()).into_iter().map(
            |message| match message {
                Message::User(user) => user.text,
                Message::Assistant(assistant) => assistant.text(),
                Message::ToolResults(_) => unreachable!(),
            },
        );
        said.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_newest_that_fits_is_history_and_begins_with_the_user() {
        let user = |text: &str| ClientMessage::User(text.to_owned());
        let answer = |text: &str| ClientMessage::Assistant(text.to_owned());
        let told = [answer("hello"), user("one"), answer("two"), user(" "), user("three"), answer("four\u{0}")];
        let rows = [
            (0, "one two three four\u{0}", "all, without the answer to nothing and what is blank"),
            (17, "one two three four\u{0}", "to the byte"),
            (15, "three four\u{0}", "an answer whose question does not fit"),
            (10, "three four\u{0}", "one pair"),
            (9, "", "not even that"),
        ];
        for (bytes, expected, reason) in rows {
            assert_eq!(seen(&told, bytes, 0), expected, "{reason}, when it is kept");
        }
        assert_eq!(seen(&told, 0, 10), "three four\u{0}", "when it is read");
        assert_eq!(encode_client_history(&[], 9).unwrap(), None);
    }
}
