//! The JSON shapes of messages' rows.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::chat::fate::CallFate;
use crate::chat::file::{FileKind, FileRef};
use crate::chat::ids::{FileId, ToolCallId};
use crate::chat::message::{AssistantPart, Replay};
use crate::chat::tool::{ToolCall, ToolInput, ToolResult};
use crate::store::change::DecidedRow;

#[derive(Serialize, Deserialize)]
pub(super) struct UserRow<'a> {
    /// `None` is the user.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) author: Option<Cow<'a, str>>,
    pub(super) text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) decisions: Vec<DecidedRow<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<FileRow<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) form: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct AssistantRow<'a> {
    pub(super) provider: Cow<'a, str>,
    pub(super) model: Cow<'a, str>,
    pub(super) parts: Vec<PartRow<'a>>,
}

/// An [`AssistantPart`]. Tagged from outside, the only tagging through which serde passes raw JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PartRow<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        replay: Option<Cow<'a, RawValue>>,
    },
    Thinking {
        text: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        replay: Option<Cow<'a, RawValue>>,
    },
    ToolCall {
        id: IdRow<'a>,
        name: Cow<'a, str>,
        input: InputRow<'a>,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        replay: Option<Cow<'a, RawValue>>,
    },
    Opaque(Cow<'a, RawValue>),
}

/// Reads replay data that is there: `null` is data too, its absence is a missing key.
fn present<'de, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'a, RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(|raw| Some(Cow::Owned(raw)))
}

/// A [`ToolCallId`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum IdRow<'a> {
    Model(Cow<'a, str>),
    Minted(Cow<'a, str>),
}

/// A [`ToolInput`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputRow<'a> {
    Object(Box<RawValue>),
    Invalid(Cow<'a, str>),
}

/// A [`ToolResult`].
#[derive(Serialize, Deserialize)]
pub(super) struct ResultRow<'a> {
    id: IdRow<'a>,
    name: Cow<'a, str>,
    content: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    /// Where `is_error` does not say it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fate: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileRow<'a>>,
}

/// What a user's row, or that of a result, says of files.
#[derive(Deserialize)]
pub(super) struct FilesOf<'a> {
    #[serde(default)]
    pub(super) files: Vec<FileRow<'a>>,
}

/// A [`FileRef`].
#[derive(Serialize, Deserialize)]
pub(in crate::store) struct FileRow<'a> {
    id: Cow<'a, str>,
    media_type: Cow<'a, str>,
    name: Cow<'a, str>,
    bytes: u64,
    #[serde(default)]
    side: u32,
}

impl<'a> FileRow<'a> {
    /// The row of `file`.
    pub(in crate::store) fn of(file: &'a FileRef) -> Self {
        let FileRef { id, kind, name, bytes, side } = file;
        let id = Cow::Owned(id.to_string());
        Self { id, media_type: Cow::Borrowed(kind.media_type()), name: Cow::Borrowed(name), bytes: *bytes, side: *side }
    }

    /// The file of this row; `None` where it is of a kind that only a later version knows.
    pub(in crate::store) fn into_file(self) -> Option<FileRef> {
        let (id, kind) = (FileId::parse(&self.id).ok()?, FileKind::of_media_type(&self.media_type)?);
        Some(FileRef { id, kind, name: self.name.into_owned(), bytes: self.bytes, side: self.side })
    }
}

impl<'a> PartRow<'a> {
    pub(super) fn from_part(part: &'a AssistantPart) -> Result<Self, serde_json::Error> {
        let raw = |replay: &'a Option<Replay>| replay.as_ref().map(|replay| Cow::Borrowed(replay.raw()));
        Ok(match part {
            AssistantPart::Text { text, replay } => Self::Text { text: Cow::Borrowed(text), replay: raw(replay) },
            AssistantPart::Thinking { text, replay } => {
                Self::Thinking { text: Cow::Borrowed(text), replay: raw(replay) }
            }
            AssistantPart::ToolCall { call, replay } => Self::ToolCall {
                id: IdRow::from_id(&call.id),
                name: Cow::Borrowed(&call.name),
                input: match &call.input {
                    ToolInput::Object(map) => InputRow::Object(to_raw_value(map)?),
                    ToolInput::Invalid(text) => InputRow::Invalid(Cow::Borrowed(text)),
                },
                replay: raw(replay),
            },
            AssistantPart::Opaque(replay) => Self::Opaque(Cow::Borrowed(replay.raw())),
        })
    }

    pub(super) fn into_part(self) -> Result<AssistantPart, serde_json::Error> {
        let replay = |raw: Option<Cow<'_, RawValue>>| raw.map(|raw| Replay::new(raw.into_owned()));
        Ok(match self {
            Self::Text { text, replay: raw } => AssistantPart::Text { text: text.into_owned(), replay: replay(raw) },
            Self::Thinking { text, replay: raw } => {
                AssistantPart::Thinking { text: text.into_owned(), replay: replay(raw) }
            }
            Self::ToolCall { id, name, input, replay: raw } => AssistantPart::ToolCall {
                call: ToolCall {
                    id: id.into_id(),
                    name: name.into_owned(),
                    input: match input {
                        InputRow::Object(raw) => ToolInput::Object(serde_json::from_str(raw.get())?),
                        InputRow::Invalid(text) => ToolInput::Invalid(text.into_owned()),
                    },
                },
                replay: replay(raw),
            },
            Self::Opaque(raw) => AssistantPart::Opaque(Replay::new(raw.into_owned())),
        })
    }
}

impl<'a> IdRow<'a> {
    /// The row of `id`.
    pub(in crate::store) fn from_id(id: &'a ToolCallId) -> Self {
        let text = Cow::Borrowed(id.as_str());
        if id.is_minted() { Self::Minted(text) } else { Self::Model(text) }
    }

    /// The id of this row.
    pub(in crate::store) fn into_id(self) -> ToolCallId {
        match self {
            Self::Model(text) => ToolCallId::from_model(text),
            Self::Minted(text) => ToolCallId::from_minted(text),
        }
    }
}

impl<'a> ResultRow<'a> {
    pub(super) fn from_result(result: &'a ToolResult) -> Self {
        Self {
            id: IdRow::from_id(&result.id),
            name: Cow::Borrowed(&result.name),
            content: Cow::Borrowed(&result.content),
            is_error: result.fate.is_error(),
            fate: result.fate.kept().map(Cow::Borrowed),
            files: result.files.iter().map(FileRow::of).collect(),
        }
    }

    pub(super) fn into_result(self) -> ToolResult {
        ToolResult {
            id: self.id.into_id(),
            name: self.name.into_owned(),
            content: self.content.into_owned(),
            fate: CallFate::of_kept(self.fate.as_deref(), self.is_error),
            files: self.files.into_iter().filter_map(FileRow::into_file).collect(),
        }
    }
}
