//! Earlier messages of a client that keeps its conversation to itself: kept with the first run of the conversation, and
//! history of every run whose way back ends at the root.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::history::HistoryBudget;
use super::record_error::RecordError;
use super::transcript::FileRow;
use crate::chat::fate::CallFate;
use crate::chat::ids::ToolCallId;
use crate::chat::input::{ClientMessage, ToldCall};
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, UserMessage};
use crate::chat::tool::{ToolCall, ToolInput, ToolResult};

/// A message as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Kept<'a> {
    /// Whether the words are the user's; else they are the assistant's.
    Words(bool, Cow<'a, str>),
    /// The user's words with files.
    WithFiles(Cow<'a, str>, Vec<FileRow<'a>>),
    /// The calls of one turn.
    Calls(Vec<KeptCall<'a>>),
}

#[derive(Serialize, Deserialize)]
struct KeptCall<'a> {
    tool: Cow<'a, str>,
    arguments: Cow<'a, str>,
    result: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileRow<'a>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

impl<'a> KeptCall<'a> {
    fn of(call: &'a ToldCall) -> Self {
        let ToldCall { tool, arguments, result, files, is_error } = call;
        let (tool, arguments, result) = (Cow::Borrowed(&**tool), Cow::Borrowed(&**arguments), Cow::Borrowed(&**result));
        Self { tool, arguments, result, files: files.iter().map(FileRow::of).collect(), is_error: *is_error }
    }

    fn bytes(&self) -> usize {
        self.tool.len() + self.arguments.len() + self.result.len()
    }
}

impl<'a> Kept<'a> {
    /// `None` where nothing is said.
    fn of(message: &'a ClientMessage) -> Option<Self> {
        match message {
            ClientMessage::User(text, files) if !files.is_empty() => {
                Some(Self::WithFiles(Cow::Borrowed(text), files.iter().map(FileRow::of).collect()))
            }
            ClientMessage::User(text, _) | ClientMessage::Assistant(text) if text.trim().is_empty() => None,
            ClientMessage::User(text, _) => Some(Self::Words(true, Cow::Borrowed(text))),
            ClientMessage::Assistant(text) => Some(Self::Words(false, Cow::Borrowed(text))),
            ClientMessage::Calls(calls) => Some(Self::Calls(calls.iter().map(KeptCall::of).collect())),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Words(_, text) | Self::WithFiles(text, _) => text.len(),
            Self::Calls(calls) => calls.iter().map(KeptCall::bytes).sum(),
        }
    }
}

/// What was said before a conversation began here.
pub(super) struct ClientHistory {
    /// As it is kept.
    pub(super) text: String,
    /// As it is read from there, the newest first.
    pub(super) messages: Vec<Message>,
}

impl ClientHistory {
    /// The newest of `earlier` that fit in `bytes` of text (0 means no limit); `None` without text.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub(super) fn from_messages(earlier: &[ClientMessage], bytes: usize) -> Result<Option<Self>, RecordError> {
        let mut budget = HistoryBudget::new(bytes);
        let fitting = earlier.iter().rev().take_while(|message| budget.take(message.bytes())).count();
        let rows: Vec<Kept<'_>> = earlier.iter().skip(earlier.len() - fitting).filter_map(Kept::of).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_string(&rows).map_err(RecordError::json("what was said before"))?;
        Ok(Some(Self { text, messages: newest_first(rows, &mut HistoryBudget::new(bytes)) }))
    }
}

/// The newest messages of `text` that fit in `budget`, the newest first.
///
/// # Errors
/// When it is not what is kept of a [`ClientHistory`].
pub(super) fn decode_client_history(text: &str, budget: &mut HistoryBudget) -> Result<Vec<Message>, RecordError> {
    let rows: Vec<Kept<'_>> = serde_json::from_str(text).map_err(RecordError::json("what was said before"))?;
    Ok(newest_first(rows, budget))
}

fn newest_first(rows: Vec<Kept<'_>>, budget: &mut HistoryBudget) -> Vec<Message> {
    // No model: there is no replay data of a vendor for these answers.
    let origin = Arc::new(ModelOrigin { provider: "switchboard".to_owned(), model: "told".to_owned() });
    let assistant = |parts| Message::Assistant(AssistantMessage { origin: origin.clone(), parts });
    let mut newest_first = Vec::with_capacity(rows.len());
    for (at, row) in rows.into_iter().enumerate().rev() {
        if !budget.take(row.bytes()) {
            break;
        }
        match row {
            Kept::WithFiles(text, files) => {
                let files = files.into_iter().filter_map(FileRow::into_file).collect();
                newest_first.push(Message::User(UserMessage { files, ..UserMessage::new(text.into_owned()) }));
            }
            Kept::Words(true, text) => newest_first.push(Message::User(UserMessage::new(text.into_owned()))),
            Kept::Words(false, text) => {
                let text = AssistantPart::Text { text: text.into_owned(), replay: None };
                match newest_first.last_mut() {
                    // What a model says before its calls is of the same turn.
                    Some(Message::Assistant(turn)) if turn.calls().next().is_some() => turn.parts.insert(0, text),
                    _ => newest_first.push(assistant(vec![text])),
                }
            }
            Kept::Calls(calls) => {
                let (calls, results) = calls.into_iter().enumerate().map(|(nth, call)| told(at, nth, call)).unzip();
                newest_first.push(Message::ToolResults(results));
                newest_first.push(assistant(calls));
            }
        }
    }
    newest_first
}

/// A call and its result. Its place gives the id, so that the same history is the same for a model each time.
fn told(at: usize, nth: usize, call: KeptCall<'_>) -> (AssistantPart, ToolResult) {
    let KeptCall { tool, arguments, result, files, is_error } = call;
    let files = files.into_iter().filter_map(FileRow::into_file).collect();
    let (tool, result) = (tool.into_owned(), result.into_owned());
    let id = ToolCallId::from_model(format!("told_{at}_{nth}"));
    let fate = if is_error { CallFate::Failed } else { CallFate::Done };
    let result = ToolResult { id: id.clone(), name: tool.clone(), content: result, fate, files };
    let call = ToolCall { id, name: tool, input: ToolInput::parse(&arguments) };
    (AssistantPart::ToolCall { call, replay: None }, result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::history::presentable;

    /// The texts that a model sees of it, once `kept` bytes were kept and `left` bytes are left.
    fn seen(earlier: &[ClientMessage], kept: usize, left: usize) -> String {
        let Some(history) = ClientHistory::from_messages(earlier, kept).unwrap() else { return String::new() };
        let ClientHistory { text, messages } = history;
        let read = decode_client_history(&text, &mut HistoryBudget::new(kept)).unwrap();
        assert_eq!(format!("{messages:?}"), format!("{read:?}"), "what is kept reads the same");
        let texts = presentable(decode_client_history(&text, &mut HistoryBudget::new(left)).unwrap()).into_iter().map(
            |message| match message {
                Message::User(user) => user.text,
                Message::Assistant(assistant) => {
                    let calls = assistant.calls().map(|call| format!("{}({})", call.name, call.id.as_str()));
                    assistant.texts().map(str::to_owned).chain(calls).collect::<Vec<_>>().join("+")
                }
                Message::ToolResults(results) => {
                    results.iter().map(|result| result.content.as_str()).collect::<Vec<_>>().join("+")
                }
            },
        );
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_newest_that_fits_is_history_and_begins_with_the_user() {
        let user = |text: &str| ClientMessage::User(text.to_owned(), Vec::new());
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
        assert!(ClientHistory::from_messages(&[], 9).unwrap().is_none());
    }

    #[test]
    fn calls_stand_behind_the_words_of_their_turn_and_fall_away_with_their_results() {
        let call = |tool: &str, result: &str| ToldCall {
            tool: tool.to_owned(),
            arguments: r#"{"a":1}"#.to_owned(),
            result: result.to_owned(),
            files: Vec::new(),
            is_error: false,
        };
        let earlier = [
            ClientMessage::User("one".to_owned(), Vec::new()),
            ClientMessage::Assistant("look".to_owned()),
            ClientMessage::Calls(vec![call("f", "ff"), call("g", "gg")]),
            ClientMessage::Calls(vec![call("h", "hh")]),
            ClientMessage::Assistant("two".to_owned()),
        ];
        let all = "one look+f(told_2_0)+g(told_2_1) ff+gg h(told_3_0) hh two";
        let rows = [(0, all, "all"), (40, all, "to the byte"), (20, "", "calls whose question does not fit")];
        for (bytes, expected, reason) in rows {
            assert_eq!(seen(&earlier, bytes, 0), expected, "{reason}, when it is kept");
            assert_eq!(seen(&earlier, 0, bytes), expected, "{reason}, when it is read");
        }
        let before = r#"[[true,"hello"],[false,"hi"]]"#;
        let read = decode_client_history(before, &mut HistoryBudget::new(0)).unwrap();
        assert_eq!(read.len(), 2, "what earlier versions kept");
    }
}
