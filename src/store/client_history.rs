//! Earlier messages of a client that keeps its conversation to itself: kept with the first run of the conversation, and
//! history of every run whose way back ends at the root.

use std::sync::Arc;

use super::history::HistoryBudget;
use super::record_error::RecordError;
use crate::chat::input::ClientMessage;
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, UserMessage};

/// The newest of `earlier` that fit in `bytes` of text (0 means no limit), as JSON text; `None` without text.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_client_history(earlier: &[ClientMessage], bytes: usize) -> Result<Option<String>, RecordError> {
    let mut budget = HistoryBudget::new(bytes);
    let fitting = earlier.iter().rev().take_while(|message| budget.take(words(message).len())).count();
    let kept = earlier.iter().skip(earlier.len() - fitting).filter(|message| !words(message).trim().is_empty());
    let rows: Vec<(bool, &str)> =
        kept.map(|message| (matches!(message, ClientMessage::User(_)), words(message))).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    serde_json::to_string(&rows).map(Some).map_err(RecordError::json("what was said before"))
}

/// The newest messages of `text` that fit in `budget`, the newest first.
///
/// # Errors
/// When it is not what [`encode_client_history`] wrote.
pub(super) fn decode_client_history(text: &str, budget: &mut HistoryBudget) -> Result<Vec<Message>, RecordError> {
    let rows: Vec<(bool, String)> = serde_json::from_str(text).map_err(RecordError::json("what was said before"))?;
    // No model: there is no replay data of a vendor for these answers.
    let origin = Arc::new(ModelOrigin { provider: "switchboard".to_owned(), model: "told".to_owned() });
    let message = |(is_user, text): (bool, String)| match is_user {
        true => Message::User(UserMessage::new(text)),
        false => {
            let parts = vec![AssistantPart::Text { text, replay: None }];
            Message::Assistant(AssistantMessage { origin: origin.clone(), parts })
        }
    };
    Ok(rows.into_iter().rev().take_while(|(_, text)| budget.take(text.len())).map(message).collect())
}

fn words(message: &ClientMessage) -> &str {
    match message {
        ClientMessage::User(text) | ClientMessage::Assistant(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::history::presentable;

    /// The texts that a model sees of it, once `kept` bytes were kept and `left` bytes are left.
    fn seen(earlier: &[ClientMessage], kept: usize, left: usize) -> String {
        let Some(text) = encode_client_history(earlier, kept).unwrap() else { return String::new() };
        let texts = presentable(decode_client_history(&text, &mut HistoryBudget::new(left)).unwrap()).into_iter().map(
            |message| match message {
                Message::User(user) => user.text,
                Message::Assistant(assistant) => assistant.text(),
                Message::ToolResults(_) => unreachable!(),
            },
        );
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_newest_that_fits_is_history_and_begins_with_the_user() {
        let user = |text: &str| ClientMessage::User(text.to_owned());
        let answer = |text: &str| ClientMessage::Assistant(text.to_owned());
        let earlier = [answer("hello"), user("one"), answer("two"), user(" "), user("three"), answer("four\u{0}")];
        let rows = [
            (0, "one two three four\u{0}", "all, without the answer to nothing and what is blank"),
            (17, "one two three four\u{0}", "to the byte"),
            (15, "three four\u{0}", "an answer whose question does not fit"),
            (10, "three four\u{0}", "one pair"),
            (9, "", "not even that"),
        ];
        for (bytes, expected, reason) in rows {
            assert_eq!(seen(&earlier, bytes, 0), expected, "{reason}, when it is kept");
        }
        assert_eq!(seen(&earlier, 0, 10), "three four\u{0}", "when it is read");
        assert_eq!(encode_client_history(&[], 9).unwrap(), None);
    }
}
