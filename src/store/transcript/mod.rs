//! The rows of messages: serde counterparts of [`crate::chat::message`], whose types have none by law. A row is read as
//! it was written, to the byte: part order, minted ids, arguments that are no JSON, and whatever a vendor wants back.
//!
//! Bodies are JSON text, so a NUL in a text is stored as an escape that every database takes. Arguments and replay data
//! are kept raw: a JSON reader's depth limit then counts them alone, as it did when they came.

mod rows;

use super::record_error::RecordError;
use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::Error as _;

use super::change::DecidedRow;
use super::fates::encode_fates;
use crate::chat::file::FileRef;
use crate::chat::ids::FileId;
use crate::chat::message::{AssistantMessage, Author, Message, ModelOrigin, UserMessage};
use crate::chat::screen::ScreenState;
use rows::{AssistantRow, FilesOf, PartRow, ResultRow, UserRow};

pub(super) use rows::{FileRow, IdRow};

/// A message as it is stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// `user`, `assistant` or `tool_results`.
    pub(super) kind: &'static str,
    /// JSON text; its length is what history limits count.
    pub(super) body: String,
    /// The author of a message in the user's role, as in the body; `None` is the user.
    pub(super) author: Option<&'static str>,
    /// JSON text: what became of the calls that it answers.
    pub(super) fates: Option<String>,
    /// The files that it names.
    pub(super) files: Vec<FileId>,
}

/// A screen state as it was kept.
///
/// # Errors
/// When it is none.
pub(super) fn screen(text: &str) -> Result<ScreenState, RecordError> {
    ScreenState::parse(text).ok_or(RecordError::Context)
}

/// The record of a message.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode(message: &Message) -> Result<Record, RecordError> {
    match message {
        Message::User(user) => encode_user(user),
        Message::Assistant(assistant) => {
            let parts = assistant.parts.iter().map(PartRow::from_part).collect::<Result<_, _>>();
            let row = parts.map(|parts| AssistantRow {
                provider: Cow::Borrowed(&assistant.origin.provider),
                model: Cow::Borrowed(&assistant.origin.model),
                parts,
            });
            // Escapes are few in most texts.
            let about = assistant.texts().map(|text| text.len() + text.len() / 8).sum();
            record("assistant", about, row.map_err(RecordError::json("assistant"))?)
        }
        Message::ToolResults(results) => {
            let record = record("tool_results", 0, results.iter().map(ResultRow::from_result).collect::<Vec<_>>())?;
            let files = results.iter().flat_map(|result| &result.files).map(|file| file.id).collect();
            Ok(Record { fates: encode_fates(message)?, files, ..record })
        }
    }
}

/// The record of a user's message.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_user(user: &UserMessage) -> Result<Record, RecordError> {
    let decisions = user.decisions.iter().map(DecidedRow::from_decided).collect();
    let note = user.note.as_deref().map(Cow::Borrowed);
    let form = user.form.as_deref().map(Cow::Borrowed);
    let author = Some(user.author).filter(|author| *author != Author::User).map(Author::name);
    let files = user.files.iter().map(FileRow::of).collect();
    let text = Cow::Borrowed(user.text.as_str());
    let row = UserRow { author: author.map(Cow::Borrowed), text, decisions, note, files, form };
    let files = user.files.iter().map(|file| file.id).collect();
    Ok(Record { author, files, ..record("user", 0, row)? })
}

/// The files that the message of a record names.
///
/// # Errors
/// When the record is not what [`encode`] wrote.
pub(super) fn files(kind: &str, body: &str) -> Result<Vec<FileRef>, RecordError> {
    let rows = match kind {
        "user" => serde_json::from_str::<FilesOf<'_>>(body).map_err(RecordError::json("user"))?.files,
        "tool_results" => {
            let results: Vec<FilesOf<'_>> = serde_json::from_str(body).map_err(RecordError::json("tool_results"))?;
            results.into_iter().flat_map(|result| result.files).collect()
        }
        _ => Vec::new(),
    };
    Ok(rows.into_iter().filter_map(FileRow::into_file).collect())
}

/// The record of a row that takes `about` so many bytes, which may be millions.
fn record(kind: &'static str, about: usize, row: impl Serialize) -> Result<Record, RecordError> {
    let mut body = Vec::with_capacity(about);
    serde_json::to_writer(&mut body, &row).map_err(RecordError::json(kind))?;
    Ok(Record {
        kind,
        body: String::from_utf8(body).map_err(|error| RecordError::json(kind)(serde_json::Error::custom(error)))?,
        author: None,
        fates: None,
        files: Vec::new(),
    })
}

/// The message of a record.
///
/// # Errors
/// When the record is not what [`encode`] wrote.
pub(super) fn decode(kind: &str, body: &str) -> Result<Message, RecordError> {
    match kind {
        "user" => {
            let row: UserRow<'_> = serde_json::from_str(body).map_err(RecordError::json("user"))?;
            let decisions = row.decisions.into_iter().map(DecidedRow::into_decided).collect::<Result<_, _>>()?;
            let author =
                row.author.map_or(Some(Author::User), |name| Author::parse(&name)).ok_or(RecordError::Author)?;
            Ok(Message::User(UserMessage {
                author,
                text: row.text.into_owned(),
                decisions,
                note: row.note.map(Cow::into_owned),
                files: row.files.into_iter().filter_map(FileRow::into_file).collect(),
                form: row.form.map(Arc::from),
            }))
        }
        "assistant" => {
            let row: AssistantRow<'_> = serde_json::from_str(body).map_err(RecordError::json("assistant"))?;
            let parts = row.parts.into_iter().map(PartRow::into_part).collect::<Result<_, _>>();
            let origin = ModelOrigin { provider: row.provider.into_owned(), model: row.model.into_owned() };
            Ok(Message::Assistant(AssistantMessage {
                origin: Arc::new(origin),
                parts: parts.map_err(RecordError::json("assistant"))?,
            }))
        }
        "tool_results" => {
            let rows: Vec<ResultRow<'_>> = serde_json::from_str(body).map_err(RecordError::json("tool_results"))?;
            Ok(Message::ToolResults(rows.into_iter().map(ResultRow::into_result).collect()))
        }
        _ => Err(RecordError::Kind),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;
    use serde_json::{Map, Value};

    use super::{Record, decode, encode};
    use crate::bounded::json::MAX_DEPTH;
    use crate::chat::fate::CallFate;
    use crate::chat::file::{FileKind, FileRef};
    use crate::chat::ids::{FileId, PreviewId, ToolCallId};
    use crate::chat::message::{AssistantMessage, AssistantPart, Author, Message, ModelOrigin, Replay, UserMessage};
    use crate::chat::preview::{Decided, Verdict};
    use crate::chat::tool::{ToolCall, ToolInput, ToolResult};

    fn replay(json: &str) -> Replay {
        Replay::new(RawValue::from_string(json.to_owned()).unwrap())
    }

    fn call(id: ToolCallId, input: ToolInput, replay: Option<Replay>) -> AssistantPart {
        AssistantPart::ToolCall { call: ToolCall { id, name: "find\u{0}".into(), input }, replay }
    }

    fn picture() -> FileRef {
        FileRef { id: FileId::fresh(), kind: FileKind::Png, name: "a \"b\".png".to_owned(), bytes: 7, side: 5 }
    }

    fn assistant(parts: Vec<AssistantPart>) -> Message {
        let origin = Arc::new(ModelOrigin { provider: "claude".into(), model: "m-1".into() });
        Message::Assistant(AssistantMessage { origin, parts })
    }

    /// Messages have no equality, since raw JSON has none; their debug output shows every field and all raw bytes.
    fn assert_round_trip(message: &Message, reason: &str) {
        let Record { kind, body, .. } = encode(message).unwrap();
        let read = decode(kind, &body).unwrap();
        assert_eq!(format!("{read:?}"), format!("{message:?}"), "{reason}");
    }

    #[test]
    fn a_message_reads_back_as_it_was_written() {
        let decided = Decided {
            preview: PreviewId::fresh(),
            what: "table configuration".into(),
            name: "Züge \"A\"".into(),
            verdict: Verdict::Reject,
            comment: Some("no\u{0}pe".into()),
            saved_id: None,
            may_be_saved: true,
        };
        let accepted =
            Decided { verdict: Verdict::Accept, comment: None, saved_id: Some("9".into()), ..decided.clone() };
        let text = "nul \u{0}, separator \u{2028}, \u{202e}bidi, \u{1F600}, \"\\/".to_owned();
        let odd = replay(r#"{ "b":1.0, "a" : 1e400,"a":"\ud800 \/", "n": 123456789012345678901234567890 }"#);
        let object = serde_json::from_str::<Map<String, Value>>(r#"{"z":1,"a":{"\u0000":[null,-0.5]}}"#).unwrap();
        let rows = [
            (Message::User(UserMessage::new("")), "an empty text"),
            (
                Message::User(UserMessage {
                    decisions: vec![decided, accepted],
                    files: vec![picture()],
                    form: Some("[\"a\"]".into()),
                    ..UserMessage::by(Author::Decision, &text)
                }),
                "decisions",
            ),
            (assistant(vec![]), "no parts"),
            (
                assistant(vec![
                    AssistantPart::Thinking { text: text.clone(), replay: Some(odd.clone()) },
                    AssistantPart::Text { text: String::new(), replay: Some(replay("\"sig\"")) },
                    AssistantPart::Text { text: text.clone(), replay: None },
                    AssistantPart::Opaque(odd.clone()),
                    AssistantPart::Opaque(replay("null")),
                    AssistantPart::Thinking { text: String::new(), replay: Some(replay("null")) },
                ]),
                "part order, and replay data byte for byte",
            ),
            (
                assistant(vec![
                    call(ToolCallId::from_model("toolu_1"), ToolInput::Object(object), None),
                    call(ToolCallId::mint(), ToolInput::Object(Map::new()), Some(odd)),
                    call(ToolCallId::from_model(""), ToolInput::Invalid("{\"a\":".into()), Some(replay("null"))),
                ]),
                "minted and given ids, key order, arguments that are no json",
            ),
            (
                Message::ToolResults(vec![
                    ToolResult {
                        id: ToolCallId::mint(),
                        name: "a".into(),
                        content: text,
                        fate: CallFate::Unknown,
                        files: vec![picture()],
                    },
                    ToolResult {
                        id: ToolCallId::from_model("x"),
                        name: String::new(),
                        content: String::new(),
                        fate: CallFate::AwaitsClient,
                        files: Vec::new(),
                    },
                ]),
                "results in their order",
            ),
        ];
        for (message, reason) in &rows {
            assert_round_trip(message, reason);
        }
    }

    #[test]
    fn whatever_depth_could_be_read_from_a_model_can_be_read_again() {
        let deepest = format!("{}1{}", "{\"a\":".repeat(MAX_DEPTH), "}".repeat(MAX_DEPTH));
        let input = ToolInput::parse(&deepest);
        assert!(matches!(input, ToolInput::Object(_)), "the deepest object that the reader takes");
        let opaque = replay(&format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)));
        let parts = vec![call(ToolCallId::mint(), input, None), AssistantPart::Opaque(opaque)];
        assert_round_trip(&assistant(parts), "neither limit counts our wrapping");
    }

    #[test]
    fn a_record_that_was_never_written_is_an_error() {
        let rows = [
            ("user", "", "no json"),
            ("user", "{\"text\":\"a\"", "cut off"),
            ("user", "{}", "a field is missing"),
            ("user", "{\"text\":1}", "a field of another type"),
            ("user", r#"{"text":"a","decisions":[{"preview":"x"}]}"#, "half a decision"),
            ("assistant", r#"{"provider":"a","model":"b","parts":[{"picture":{}}]}"#, "an unknown part"),
            ("assistant", "[]", "the body of another kind"),
            ("tool_results", "{}", "the body of another kind"),
            ("system", "{}", "an unknown kind"),
        ];
        for (kind, body, reason) in rows {
            assert!(decode(kind, body).is_err(), "{reason}");
        }
    }
}
