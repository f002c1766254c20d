//! The rows of answers as their users saw them: serde counterparts of [`crate::chat::answer`], whose types have none by
//! law.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::record_error::RecordError;
use super::transcript::IdRow;
use crate::chat::answer::{
    ActionHandler, ActionStyle, Answer, AnswerPiece, SuggestedAction, SuggestedValue, Suggestions,
};
use crate::chat::ids::FileId;
use crate::chat::notice::Notice;

/// An [`Answer`] without how it was made, which few read and which may be long.
#[derive(Serialize, Deserialize)]
struct AnswerRow<'a> {
    #[serde(borrow, rename = "said")]
    pieces: Vec<PieceRow<'a>>,
    /// Which of them are the server's own texts. Beside them, so that a program that knows of none can read the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<usize>,
    /// What was told of files, and which of the texts stand for it on wires that have nothing but text. Beside them for the same reason.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    not_shown: Vec<NotShownRow<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    values: Option<Vec<ValueRow<'a>>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    actions: Option<Vec<ActionRow<'a>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PieceRow<'a> {
    #[serde(borrow)]
    Text(Cow<'a, str>),
    #[serde(borrow)]
    Call(IdRow<'a>),
    RoundEnd,
}

#[derive(Serialize, Deserialize)]
struct NotShownRow<'a> {
    piece: usize,
    files: Vec<String>,
    message: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct ValueRow<'a> {
    label: Cow<'a, str>,
    value: Cow<'a, str>,
}

/// Its data is kept raw: the reader's depth limit then counts it alone, as it did when it came.
#[derive(Serialize, Deserialize)]
struct ActionRow<'a> {
    label: Cow<'a, str>,
    action: Cow<'a, str>,
    handler: HandlerRow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    style: Option<StyleRow>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HandlerRow {
    Client,
    Server,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StyleRow {
    Primary,
    Secondary,
    Warning,
}

/// An answer as it is stored.
pub(super) struct AnswerRecord {
    /// JSON text: texts, calls and suggestions.
    pub(super) body: String,
    /// JSON text: how it was made.
    pub(super) diagnostics: Option<String>,
}

/// The record of an answer.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_answer(answer: &Answer) -> Result<AnswerRecord, RecordError> {
    let json = RecordError::json("answer");
    let Answer { pieces, suggestions: Suggestions { values, actions }, diagnostics } = answer;
    let (mut notices, mut not_shown) = (Vec::new(), Vec::new());
    for (piece, it) in pieces.iter().enumerate() {
        match it {
            AnswerPiece::Notice(_) => notices.push(piece),
            AnswerPiece::NotShown(Notice { files, message, said: _ }) => {
                let files = files.iter().map(ToString::to_string).collect();
                not_shown.push(NotShownRow { piece, files, message: Cow::Borrowed(message) });
            }
            AnswerPiece::Text(_) | AnswerPiece::Call(_) | AnswerPiece::RoundEnd => {}
        }
    }
    let pieces = pieces.iter().map(|piece| match piece {
        AnswerPiece::Text(text) | AnswerPiece::Notice(text) | AnswerPiece::NotShown(Notice { said: text, .. }) => {
            PieceRow::Text(Cow::Borrowed(text))
        }
        AnswerPiece::Call(id) => PieceRow::Call(IdRow::from_id(id)),
        AnswerPiece::RoundEnd => PieceRow::RoundEnd,
    });
    let values = values.as_ref().map(|values| values.iter().map(value_row).collect());
    let actions = actions.as_ref().map(|actions| actions.iter().map(action_row).collect::<Result<_, _>>());
    let actions = actions.transpose().map_err(&json)?;
    let row = AnswerRow { pieces: pieces.collect(), notices, not_shown, values, actions };
    // It wraps values from elsewhere, and one that cannot be read again is not worth the answer.
    let diagnostics = diagnostics.as_ref().map(Value::to_string);
    let diagnostics = diagnostics.filter(|text| serde_json::from_str::<Value>(text).is_ok());
    Ok(AnswerRecord { body: serde_json::to_string(&row).map_err(json)?, diagnostics })
}

/// The answer of a record.
///
/// # Errors
/// When the record is not what [`encode_answer`] wrote.
pub(super) fn decode_answer(body: &str, diagnostics: Option<&str>) -> Result<Answer, RecordError> {
    let json = RecordError::json("answer");
    let row: AnswerRow<'_> = serde_json::from_str(body).map_err(&json)?;
    let mut not_shown = row.not_shown.into_iter().peekable();
    let pieces = row.pieces.into_iter().enumerate().map(|(at, piece)| {
        Ok(match piece {
            PieceRow::Text(text) => match not_shown.next_if(|row| row.piece == at) {
                Some(row) => AnswerPiece::NotShown(row.into_notice(text.into_owned())?),
                None if row.notices.contains(&at) => AnswerPiece::Notice(text.into_owned()),
                None => AnswerPiece::Text(text.into_owned()),
            },
            PieceRow::Call(id) => AnswerPiece::Call(id.into_id()),
            PieceRow::RoundEnd => AnswerPiece::RoundEnd,
        })
    });
    let pieces = pieces.collect::<Result<_, RecordError>>()?;
    let value = |row: ValueRow<'_>| SuggestedValue { label: row.label.into_owned(), value: row.value.into_owned() };
    let values = row.values.map(|values| values.into_iter().map(value).collect());
    let actions = row.actions.map(|actions| actions.into_iter().map(action).collect::<Result<_, _>>());
    let actions = actions.transpose().map_err(&json)?;
    let diagnostics = diagnostics.map(serde_json::from_str).transpose().map_err(json)?;
    Ok(Answer { pieces, suggestions: Suggestions { values, actions }, diagnostics })
}

impl NotShownRow<'_> {
    fn into_notice(self, said: String) -> Result<Notice, RecordError> {
        let files = self.files.iter().map(|id| FileId::parse(id)).collect::<Result<_, _>>()?;
        Ok(Notice { files, message: self.message.into_owned(), said })
    }
}

fn value_row(value: &SuggestedValue) -> ValueRow<'_> {
    ValueRow { label: Cow::Borrowed(&value.label), value: Cow::Borrowed(&value.value) }
}

fn action_row(action: &SuggestedAction) -> Result<ActionRow<'_>, serde_json::Error> {
    Ok(ActionRow {
        label: Cow::Borrowed(&action.label),
        action: Cow::Borrowed(&action.action),
        handler: match action.handler {
            ActionHandler::Client => HandlerRow::Client,
            ActionHandler::Server => HandlerRow::Server,
        },
        data: action.data.as_ref().map(to_raw_value).transpose()?,
        style: action.style.map(|style| match style {
            ActionStyle::Primary => StyleRow::Primary,
            ActionStyle::Secondary => StyleRow::Secondary,
            ActionStyle::Warning => StyleRow::Warning,
        }),
    })
}

fn action(row: ActionRow<'_>) -> Result<SuggestedAction, serde_json::Error> {
    Ok(SuggestedAction {
        label: row.label.into_owned(),
        action: row.action.into_owned(),
        handler: match row.handler {
            HandlerRow::Client => ActionHandler::Client,
            HandlerRow::Server => ActionHandler::Server,
        },
        data: row.data.map(|data| serde_json::from_str(data.get())).transpose()?,
        style: row.style.map(|style| match style {
            StyleRow::Primary => ActionStyle::Primary,
            StyleRow::Secondary => ActionStyle::Secondary,
            StyleRow::Warning => ActionStyle::Warning,
        }),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{AnswerRecord, decode_answer, encode_answer};
    use crate::chat::answer::{
        ActionHandler, ActionStyle, Answer, AnswerPiece, SuggestedAction, SuggestedValue, Suggestions,
    };
    use crate::chat::ids::{FileId, ToolCallId};
    use crate::chat::notice::Notice;

    fn deep(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    fn read_again(answer: &Answer) -> Answer {
        let AnswerRecord { body, diagnostics } = encode_answer(answer).unwrap();
        assert!(!body.contains('\0'), "no database takes it");
        decode_answer(&body, diagnostics.as_deref()).unwrap()
    }

    #[test]
    fn an_answer_reads_back_as_it_was() {
        let value = SuggestedValue { label: "a\u{0}\"".into(), value: "ü".into() };
        let action = SuggestedAction {
            label: "Go".into(),
            action: "go".into(),
            handler: ActionHandler::Server,
            data: Some(deep(120)),
            style: Some(ActionStyle::Warning),
        };
        let bare = SuggestedAction { handler: ActionHandler::Client, data: None, style: None, ..action.clone() };
        let pieces = vec![
            AnswerPiece::Text("one\u{0}".into()),
            AnswerPiece::Notice("[again]".into()),
            AnswerPiece::NotShown(Notice {
                files: vec![FileId::fresh()],
                message: "a\u{0}.png".into(),
                said: String::new(),
            }),
            AnswerPiece::NotShown(Notice { files: Vec::new(), message: "b".into(), said: "[b]".into() }),
            AnswerPiece::Call(ToolCallId::mint()),
            AnswerPiece::Call(ToolCallId::from_model("toolu_1")),
            AnswerPiece::RoundEnd,
            AnswerPiece::Text(String::new()),
        ];
        let suggestions = Suggestions { values: Some(vec![value]), actions: Some(vec![action, bare]) };
        let answers = [
            (Answer::default(), "nothing"),
            (Answer { suggestions: Suggestions { values: Some(vec![]), actions: None }, ..Answer::default() }, "none"),
            (Answer { pieces, suggestions, diagnostics: Some(json!({"shape": "basic", "x": 0.1})) }, "all"),
        ];
        for (answer, reason) in answers {
            assert_eq!(read_again(&answer), answer, "{reason}");
        }
    }

    #[test]
    fn what_could_not_be_read_again_does_not_cost_the_answer() {
        let answer =
            Answer { pieces: vec![AnswerPiece::Text("Hi".into())], diagnostics: Some(deep(200)), ..Answer::default() };
        assert_eq!(read_again(&answer), Answer { diagnostics: None, ..answer });
    }
}
