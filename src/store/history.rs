//! How much of a conversation a run sees: the newest messages that fit, cut so that every vendor accepts the rest.

use crate::chat::message::{AssistantMessage, Message};

/// The bytes that are left for history while messages are read, newest first.
pub(super) struct HistoryBudget(Option<usize>);

impl HistoryBudget {
    /// A budget of `bytes` of stored messages; 0 means no limit.
    pub(super) fn new(bytes: usize) -> Self {
        Self((bytes > 0).then_some(bytes))
    }

    /// Whether a message of `bytes` still fits; if so its bytes are taken.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let Some(left) = &mut self.0 else { return true };
        let Some(rest) = left.checked_sub(bytes) else { return false };
        *left = rest;
        true
    }
}

/// The messages as a model may see them, oldest first: they begin with a user message, and calls stand only
/// together with the results of all of them.
pub(super) fn presentable(newest_first: Vec<Message>) -> Vec<Message> {
    let mut messages =
        newest_first.into_iter().rev().skip_while(|message| !matches!(message, Message::User(_))).peekable();
    let mut kept = Vec::new();
    while let Some(message) = messages.next() {
        match message {
            Message::User(_) => kept.push(message),
            Message::Assistant(ref assistant) if assistant.calls().next().is_none() => kept.push(message),
            Message::Assistant(ref assistant) => {
                if let Some(results) = messages.next_if(|next| answers(next, assistant)) {
                    kept.extend([message, results]);
                }
            }
            // Results that are still here have lost their calls.
            Message::ToolResults(_) => {}
        }
    }
    kept
}

/// Whether `message` is the results of all of `assistant`'s calls, in their order.
fn answers(message: &Message, assistant: &AssistantMessage) -> bool {
    match message {
        Message::ToolResults(results) => {
            results.iter().map(|result| &result.id).eq(assistant.calls().map(|call| &call.id))
        }
        Message::User(_) | Message::Assistant(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{HistoryBudget, presentable};
    use crate::chat::fate::CallFate;
    use crate::chat::ids::ToolCallId;
    use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, UserMessage};
    use crate::chat::tool::{ToolCall, ToolInput, ToolResult};

    /// A message from one word: `u` a user's, `a` an answer, `c12` calls 1 and 2, `r12` their results.
    fn message(word: &str) -> Message {
        let (kind, ids) = word.split_at(1);
        let ids = ids.chars().map(ToolCallId::from_model);
        let name = "lookup".to_owned();
        match kind {
            "u" => Message::User(UserMessage::new("hello")),
            "r" => Message::ToolResults(
                ids.map(|id| ToolResult {
                    id,
                    name: name.clone(),
                    content: "{}".into(),
                    fate: CallFate::Done,
                    files: Vec::new(),
                })
                .collect(),
            ),
            _ => Message::Assistant(AssistantMessage {
                origin: Arc::new(ModelOrigin { provider: "demo".into(), model: "m".into() }),
                parts: ids
                    .map(|id| AssistantPart::ToolCall {
                        call: ToolCall { id, name: name.clone(), input: ToolInput::Invalid(String::new()) },
                        replay: None,
                    })
                    .collect(),
            }),
        }
    }

    fn word(message: &Message) -> String {
        match message {
            Message::User(_) => "u".into(),
            Message::ToolResults(results) => format!("r{}", results.iter().map(|r| r.id.as_str()).collect::<String>()),
            Message::Assistant(assistant) => {
                let ids: String = assistant.calls().map(|call| call.id.as_str()).collect();
                if ids.is_empty() { "a".into() } else { format!("c{ids}") }
            }
        }
    }

    #[test]
    fn what_a_model_may_see_begins_with_a_user_message_and_holds_no_half_of_a_tool_pair() {
        let rows = [
            ("", "", "an empty conversation"),
            ("u a u a", "u a u a", "all of it is well formed"),
            ("a u a", "u a", "an answer whose question did not fit"),
            ("r1 a u a", "u a", "results whose calls did not fit"),
            ("c1 r1 a", "", "only the newest part of one long run fits"),
            ("u c12 r12 a", "u c12 r12 a", "two calls of one turn with both results"),
            ("u c1 r1 c1 r1 a", "u c1 r1 c1 r1 a", "ids are unique in their turn only"),
            ("u c1 u a", "u u a", "calls without results are left out"),
            ("u c1", "u", "calls at the end are left out too"),
            ("u r1 a", "u a", "results without calls are left out"),
            ("u c12 r1 a", "u a", "a part of the results is as bad as none"),
            ("u c12 r21 a", "u a", "results in another order than the calls"),
            ("u c1 r2 a", "u a", "results of other calls"),
            ("u u u a", "u u u a", "runs that failed leave only their question"),
        ];
        for (stored, seen, reason) in rows {
            let newest_first = stored.split_whitespace().rev().map(message).collect();
            let words: Vec<_> = presentable(newest_first).iter().map(word).collect();
            assert_eq!(words.join(" "), seen, "{reason}");
        }
    }

    #[test]
    fn messages_are_taken_while_they_fit() {
        let rows: [(usize, &[usize], &[bool], &str); 4] = [
            (10, &[4, 6, 1], &[true, true, false], "the border itself fits"),
            (10, &[11], &[false], "one message larger than the budget"),
            (10, &[0, 10, 0], &[true, true, true], "an empty one takes nothing"),
            (0, &[usize::MAX, usize::MAX], &[true, true], "0 means no limit"),
        ];
        for (bytes, sizes, expected, reason) in rows {
            let mut budget = HistoryBudget::new(bytes);
            let taken: Vec<_> = sizes.iter().map(|size| budget.take(*size)).collect();
            assert_eq!(taken, expected, "{reason}");
        }
    }
}
