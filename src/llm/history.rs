//! The conversation as every vendor must get it: each call answered, nothing empty, no two user messages in a row,
//! replay data only for its own origin. The vendors' wires write these entries down.
//!
//! **Invariant:** nothing is copied on the way: an entry's `'a` is the conversation's own, and the only texts that are made
//! new are those that no message has as it stands (two user messages in a row, decisions written into a message).
//! **Invariant:** an entry depends on no later message, so what was sent once is the beginning of what is sent next, and
//! vendors find it in their caches. Only the newest user message may still grow.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Map;

use crate::bounded::json;
use crate::chat::file::FileRef;
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin};
use crate::chat::tool::{ToolCall, ToolInput, ToolResult};

/// Stands between tool results and the user's next message when a run failed in between: some servers and many chat
/// templates refuse a user right after a tool.
pub(crate) const NO_ANSWER: &str = "[No answer was given.]";

/// Stands between tool results and the files that came with them, for the same servers.
pub(crate) const FILES_FOLLOW: &str = "[Files of these results follow.]";

/// Stands for a failure without a word, where an empty one is refused.
pub(crate) const NO_OUTPUT: &str = "[No output.]";

/// Every vendor refuses a history with an unanswered call, so a lost result is sent as an error.
const LOST_RESULT: &str = r#"{"error":"the result of this call was not recorded"}"#;

/// One entry of the history.
#[derive(Debug)]
pub(crate) enum Entry<'a> {
    /// What the user said since the last entry.
    User(UserTurn<'a>),
    /// A model's answer, with the results of its calls.
    Assistant(AssistantTurn<'a>),
}

/// What a user said.
#[derive(Debug)]
pub(crate) struct UserTurn<'a> {
    /// The text; blank only beside files.
    pub(crate) text: Cow<'a, str>,
    /// The files that belong to it.
    pub(crate) files: Vec<&'a FileRef>,
}

/// An assistant message that has text or calls.
#[derive(Debug)]
pub(crate) struct AssistantTurn<'a> {
    /// The pieces, in stream order.
    pub(crate) parts: &'a [AssistantPart],
    /// Whether the same vendor and model wrote it: only then its replay data means anything.
    pub(crate) is_ours: bool,
    /// One per call, in call order; empty when there are no calls.
    pub(crate) answers: Vec<CallResult<'a>>,
}

/// A call's result.
#[derive(Debug)]
pub(crate) struct CallResult<'a> {
    /// The call.
    pub(crate) call: &'a ToolCall,
    /// For the model.
    pub(crate) content: &'a str,
    /// Whether `content` reports a failure.
    pub(crate) is_error: bool,
    /// What the tool made besides.
    pub(crate) files: &'a [FileRef],
}

/// A result that says that it is a failure.
#[derive(Deserialize)]
struct Failing {
    error: Option<IgnoredAny>,
}

impl<'a> CallResult<'a> {
    /// The content for a vendor that has no field for failure: a failure says so in its text.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        // Our own say so in a field.
        if self.is_error && !json::parse::<Failing>(self.content).is_ok_and(|read| read.error.is_some()) {
            return format!("error: {}", self.content).into();
        }
        self.content.into()
    }
}

impl<'a> AssistantTurn<'a> {
    /// The text parts that are not blank, in order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.parts.iter().filter_map(|part| match part {
            AssistantPart::Text { text, .. } if !text.trim().is_empty() => Some(text.as_str()),
            AssistantPart::Text { .. }
            | AssistantPart::Thinking { .. }
            | AssistantPart::ToolCall { .. }
            | AssistantPart::Opaque(_) => None,
        })
    }

    /// All text, joined; borrowed when it is one piece.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        joined(self.texts())
    }

    /// All reasoning, joined.
    pub(crate) fn thinking(&self) -> Cow<'a, str> {
        joined(self.parts.iter().filter_map(|part| match part {
            AssistantPart::Thinking { text, .. } => Some(text.as_str()),
            AssistantPart::Text { .. } | AssistantPart::ToolCall { .. } | AssistantPart::Opaque(_) => None,
        }))
    }
}

fn joined<'a>(pieces: impl Iterator<Item = &'a str>) -> Cow<'a, str> {
    let joined = pieces.map(Cow::Borrowed).reduce(|mut all, piece| {
        all.to_mut().push_str(&piece);
        all
    });
    joined.unwrap_or_default()
}

/// The entries of `messages`, for a model of `origin`.
pub(crate) fn entries<'a>(messages: &'a [Message], origin: &ModelOrigin) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::User(user) => {
                let text = match (user.decisions.as_slice(), &user.note) {
                    ([], None) => Cow::Borrowed(user.text.as_str()),
                    (_, _) => Cow::Owned(user.model_text()),
                };
                match entries.last_mut() {
                    // A run that failed before its answer leaves two in a row; many chat templates refuse that.
                    Some(Entry::User(before)) => {
                        before.text = format!("{}\n\n{text}", before.text).into();
                        before.files.extend(&user.files);
                    }
                    Some(Entry::Assistant(_)) | None => {
                        entries.push(Entry::User(UserTurn { text, files: user.files.iter().collect() }));
                    }
                }
            }
            Message::Assistant(answer) => {
                let results = match messages.get(at + 1) {
                    Some(Message::ToolResults(results)) => results.as_slice(),
                    Some(Message::User(_) | Message::Assistant(_)) | None => &[],
                };
                let is_ours = *answer.origin == *origin;
                let turn = AssistantTurn { parts: &answer.parts, is_ours, answers: answers(answer, results) };
                if !turn.answers.is_empty() || turn.texts().next().is_some() {
                    entries.push(Entry::Assistant(turn));
                }
            }
            // Taken together with the calls they answer.
            Message::ToolResults(_) => {}
        }
    }
    entries
}

fn answers<'a>(message: &'a AssistantMessage, results: &'a [ToolResult]) -> Vec<CallResult<'a>> {
    let answer = |(at, call): (usize, &'a ToolCall)| {
        // Where they are in the common case, so that many of them need no search.
        let in_order = results.get(at).filter(|result| result.id == call.id);
        match in_order.or_else(|| results.iter().find(|result| result.id == call.id)) {
            Some(result) => {
                CallResult { call, content: &result.content, is_error: result.fate.is_error(), files: &result.files }
            }
            None => CallResult { call, content: LOST_RESULT, is_error: true, files: &[] },
        }
    };
    message.calls().enumerate().map(answer).collect()
}

/// A call's arguments as an object; what was no object is sent as an empty one, since vendors take nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'a>(pub(crate) &'a ToolInput);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ToolInput::Object(map) => map.serialize(serializer),
            ToolInput::Invalid(_) => Map::new().serialize(serializer),
        }
    }
}

/// The arguments as the text of their JSON, as some vendors take them.
pub(crate) fn as_text<S: Serializer>(arguments: &Arguments<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&serde_json::to_string(arguments).map_err(S::Error::custom)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chat::fate::CallFate;
    use crate::chat::ids::ToolCallId;
    use crate::chat::message::UserMessage;

    fn origin(model: &str) -> ModelOrigin {
        ModelOrigin { provider: "p".to_owned(), model: model.to_owned() }
    }

    fn assistant_message(model: &str, parts: Vec<AssistantPart>) -> Message {
        Message::Assistant(AssistantMessage { origin: Arc::new(origin(model)), parts })
    }

    fn text(text: &str) -> AssistantPart {
        AssistantPart::Text { text: text.to_owned(), replay: None }
    }

    fn call(id: &str) -> AssistantPart {
        let input = ToolInput::Object(Map::new());
        let call = ToolCall { id: ToolCallId::from_model(id), name: "t".to_owned(), input };
        AssistantPart::ToolCall { call, replay: None }
    }

    fn result(id: &str, content: &str) -> ToolResult {
        let id = ToolCallId::from_model(id);
        ToolResult { id, name: "t".to_owned(), content: content.to_owned(), fate: CallFate::Done, files: Vec::new() }
    }

    fn lines(messages: &[Message]) -> Vec<String> {
        let line = |entry: &Entry<'_>| match entry {
            Entry::User(said) => format!("user {:?}", said.text),
            Entry::Assistant(turn) => {
                let answers: Vec<_> = turn.answers.iter().map(|a| format!(" {}={}", a.call.id, a.content)).collect();
                format!("{} {:?}{}", if turn.is_ours { "ours" } else { "foreign" }, turn.text(), answers.concat())
            }
        };
        entries(messages, &origin("m")).iter().map(line).collect()
    }

    #[test]
    fn every_call_is_answered_and_nothing_empty_is_left() {
        let messages = [
            Message::User(UserMessage::new("a")),
            assistant_message("m", vec![AssistantPart::Thinking { text: "hm".to_owned(), replay: None }, text(" ")]),
            Message::User(UserMessage::new("b")),
            assistant_message("m", vec![text("x"), call("1"), text("y"), call("2")]),
            Message::ToolResults(vec![result("2", "two"), result("9", "orphan")]),
            assistant_message("other", vec![call("1")]),
            Message::User(UserMessage::new("c")),
        ];
        let expected = [
            r#"user "a\n\nb""#,
            &format!(r#"ours "xy" 1={LOST_RESULT} 2=two"#),
            &format!(r#"foreign "" 1={LOST_RESULT}"#),
            r#"user "c""#,
        ];
        assert_eq!(lines(&messages), expected);
    }
}
