//! The answer of a run for its user: the text without markers, the payloads and suggestions that were found in it, and
//! the positions of calls.

use super::markers::{Closed, Found, Markers};
use crate::agent::offer::profile::Profile;
use crate::bounded::json::JsonText;
use crate::chat::answer::{Answer, AnswerPiece, Suggestions};
use crate::chat::ids::{PayloadId, ToolCallId};
use crate::chat::line::one_line;
use crate::chat::notice::Notice;
use crate::chat::payload::{NewPayload, Payload, PayloadSource};
use crate::chat::template::Values;

/// 200 characters of a summary: one line.
const SUMMARY_CHARS: usize = 200;

/// 1 MiB of raw text is all that fits into a diagnosis.
const RAW_BYTES: usize = 1024 * 1024;

/// After 100 notes on markers no more are kept.
const RAW_NOTES: usize = 100;

/// A run's answer while it grows.
pub(super) struct Speech {
    markers: Markers,
    answer: Answer,
    /// The model's text with its markers, and notes on them; where a diagnosis wants it.
    raw: Option<Raw>,
}

/// The raw text of a model.
#[derive(Debug, Clone, Default)]
pub(super) struct Raw {
    /// The text of all turns.
    pub(super) text: String,
    /// Notes on its markers.
    pub(super) notes: Vec<String>,
}

impl Speech {
    pub(super) fn new(profile: &Profile) -> Self {
        Self { markers: Markers::from_profile(profile), answer: Answer::default(), raw: None }
    }

    /// From now on the markers are those of `profile`. Only between turns.
    pub(super) fn enter(&mut self, profile: &Profile) {
        self.markers = Markers::from_profile(profile);
    }

    /// From now on keeps what the model says as it says it, or does not.
    pub(super) fn keep_raw(&mut self, keep: bool) {
        self.raw = keep.then(Raw::default);
    }

    /// The raw text of the model; empty where it was not kept.
    pub(super) fn take_raw(&mut self) -> Raw {
        self.raw.take().unwrap_or_default()
    }

    /// The text that can be emitted now, possibly empty.
    pub(super) fn push(&mut self, text: String) -> String {
        if let Some(raw) = self.raw.as_mut().filter(|raw| raw.text.len() < RAW_BYTES) {
            raw.text.push_str(&text);
        }
        let visible = self.markers.push(text);
        self.append_text(&visible);
        visible
    }

    /// Takes `text` as it is: there are no markers in it.
    pub(super) fn push_plain(&mut self, text: &str) {
        if let Some(raw) = self.raw.as_mut().filter(|raw| raw.text.len() < RAW_BYTES) {
            raw.text.push_str(text);
        }
        self.append_text(text);
    }

    /// Drops the text of a turn that was not emitted, and what was found in it: the turn does not count.
    pub(super) fn discard(&mut self) {
        self.markers.discard();
    }

    /// Ends the text of a turn: the rest that is to be emitted, and the payloads that were in it.
    pub(super) fn close(&mut self) -> (String, Vec<NewPayload>) {
        let Closed { rest, found, notes } = self.markers.close();
        for note in &notes {
            tracing::debug!(note, "a marker in a model's text was left as it is");
        }
        if let Some(raw) = self.raw.as_mut().filter(|raw| raw.notes.len() < RAW_NOTES) {
            raw.notes.extend(notes);
        }
        self.append_text(&rest);
        let mut payloads = Vec::new();
        for found in found {
            match found {
                Found::Values(values) => self.answer.suggestions.values = Some(values),
                Found::Actions(actions) => self.answer.suggestions.actions = Some(actions),
                Found::Payload { kind, data } => payloads.push(NewPayload { kind, data: JsonText::of(&data) }),
            }
        }
        (rest, payloads)
    }

    /// A call stands here.
    pub(super) fn call(&mut self, id: ToolCallId) {
        self.answer.pieces.push(AnswerPiece::Call(id));
    }

    /// The server says this instead of the model.
    pub(super) fn notice(&mut self, text: &str) {
        self.answer.pieces.push(AnswerPiece::Notice(text.to_owned()));
    }

    /// The server tells of files that the model is not shown.
    pub(super) fn not_shown(&mut self, notice: Notice) {
        self.answer.pieces.push(AnswerPiece::NotShown(notice));
    }

    /// The calls of a turn end here.
    pub(super) fn round_end(&mut self) {
        self.answer.pieces.push(AnswerPiece::RoundEnd);
    }

    /// The answer so far, to be added to.
    pub(super) fn answer_mut(&mut self) -> &mut Answer {
        &mut self.answer
    }

    /// The model's suggestions; `None` without any.
    pub(super) fn suggestions(&self) -> Option<Suggestions> {
        Some(self.answer.suggestions.clone()).filter(|suggestions| !suggestions.is_empty())
    }

    fn append_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.answer.pieces.last_mut() {
            Some(AnswerPiece::Text(last)) => last.push_str(text),
            Some(AnswerPiece::Notice(_) | AnswerPiece::NotShown(_) | AnswerPiece::Call(_) | AnswerPiece::RoundEnd)
            | None => self.answer.pieces.push(AnswerPiece::Text(text.to_owned())),
        }
    }
}

/// The payload as it is kept: with an id, and a line about it.
pub(super) fn kept(new: NewPayload, source: PayloadSource, profile: &Profile) -> Payload {
    let NewPayload { kind, data } = new;
    let known = profile.payload_type(&kind);
    let rendered = known.and_then(|known| known.summary.as_ref()).and_then(|summary| {
        let mut values = Values::default();
        values.insert("data", data.value());
        summary.render(&values).map_err(|error| tracing::warn!(%error, payload.kind = kind, "no summary")).ok()
    });
    let summary = rendered.filter(|summary| !summary.trim().is_empty());
    let summary = summary.or_else(|| known.map(|known| known.description.clone())).unwrap_or_else(|| kind.clone());
    // One line, whatever was in the data.
    let summary = one_line(&summary).chars().take(SUMMARY_CHARS).collect();
    Payload { id: PayloadId::fresh(), kind, data, summary, source }
}
