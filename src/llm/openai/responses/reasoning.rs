//! Reasoning between the turns of a run. Nothing is stored at the server, so a reasoning item goes back whole, sealed as it
//! came, and only to the model that made it: <https://developers.openai.com/api/docs/guides/reasoning>. What has to go back
//! travels as replay data; what a model refuses is left out, and not said to it again.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::event::Item;
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::bounded::json::parse;
use crate::chat::message::Replay;
use crate::chat::model::Effort;
use crate::llm::answer::malformed;
use crate::llm::failure;

/// What goes back to the server as it came, in a shape that no other wire of the vendor takes for its own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kept<'a> {
    /// A whole reasoning item, on the thinking piece.
    ReasoningItem(#[serde(borrow)] &'a RawValue),
    /// Which part of an answer a message is, on its text.
    Phase(#[serde(borrow)] &'a RawValue),
}

/// A reasoning item as a request has it.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "reasoning")]
struct Back<'a> {
    /// Only where nothing is sealed: with an id, a sealed item is looked for in a store that does not have it
    /// (bifrost#5410).
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    summary: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted_content: Option<&'a RawValue>,
}

impl<'a> Kept<'a> {
    /// As replay data.
    pub(super) fn to_replay(&self) -> Result<Replay, ProviderError> {
        Ok(Replay::new(to_raw_value(self).map_err(malformed)?))
    }

    /// What `replay` keeps; `None` where it is another wire's.
    pub(super) fn from_replay(replay: &'a Replay) -> Option<Self> {
        parse(replay.raw().get()).ok()
    }
}

/// The replay data of a whole reasoning item: sealed, or with its own words where the server seals nothing. `None` where the
/// item has neither, and would be refused.
pub(super) fn to_replay(item: &Item<'_>) -> Result<Option<Replay>, ProviderError> {
    let is_text = |raw: &&RawValue| raw.get().starts_with('"') && raw.get() != r#""""#;
    let is_list = |raw: &&RawValue| raw.get().starts_with('[');
    let encrypted_content = item.encrypted_content.filter(is_text);
    let content = item.content.filter(is_list).filter(|list| list.get() != "[]" && encrypted_content.is_none());
    if encrypted_content.is_none() && content.is_none() {
        return Ok(None);
    }
    let nothing = to_raw_value::<[u8; 0]>(&[]).map_err(malformed)?;
    let back = Back {
        id: item.id.filter(|_| content.is_some()),
        summary: item.summary.filter(is_list).unwrap_or(&nothing),
        content,
        encrypted_content,
    };
    let back = to_raw_value(&back).map_err(malformed)?;
    Kept::ReasoningItem(&back).to_replay().map(Some)
}

/// What is asked of a model besides its answer, as far as it takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asks {
    /// That its reasoning comes sealed.
    pub(super) encrypted: bool,
    /// That it tells a summary of its reasoning.
    pub(super) summary: bool,
    /// A temperature.
    pub(super) temperature: bool,
    /// How much it thinks.
    pub(super) effort: Option<Effort>,
    /// That it reads reasoning of earlier turns.
    pub(super) replays: bool,
}

impl Asks {
    /// All that the model called `model` is known to take, or may, where no effort is wanted.
    pub(super) fn of_model(model: &str) -> Self {
        let reasons = reasons(model);
        // Who does not reason refuses the question for it (pydantic-ai#2867), who does refuses a temperature.
        let (encrypted, temperature) = (reasons != Some(false), reasons != Some(true));
        Self { encrypted, summary: true, temperature, effort: None, replays: true }
    }

    /// Without what `error` refuses; `None` where it refuses nothing of this. That a model cannot do without thinking stays an error.
    pub(super) fn without_refused(self, error: &ProviderError) -> Option<Self> {
        if error.kind != ProviderErrorKind::Rejected {
            return None;
        }
        let words = error.detail.to_string().to_lowercase();
        let names = |name: &str| failure::is_about(error, name);
        // Of another key or organisation, or too old.
        let less = if names("invalid_encrypted_content") || words.contains("could not be verified") {
            Self { replays: false, ..self }
        } else if names("include") || words.contains("encrypted content is not supported") {
            Self { encrypted: false, ..self }
        } else if names("reasoning.summary") || words.contains("reasoning summar") {
            Self { summary: false, ..self }
        } else if names("reasoning.effort") {
            Self { effort: self.effort.and_then(less), ..self }
        } else if names("temperature") {
            Self { temperature: false, ..self }
        } else {
            self
        };
        (less != self).then_some(less)
    }
}

/// The effort before this one; `None` leaves it to the model.
fn less(effort: Effort) -> Option<Effort> {
    match effort {
        Effort::None => Some(Effort::None),
        Effort::Low => None,
        Effort::Medium => Some(Effort::Low),
        Effort::High => Some(Effort::Medium),
        Effort::Max => Some(Effort::High),
    }
}

/// What one model has refused so far; reasoning of earlier turns is not of the model's kind, and is tried again.
#[derive(Debug, Default)]
pub(super) struct Refused {
    encrypted: AtomicBool,
    summary: AtomicBool,
    temperature: AtomicBool,
    /// In the order of [`Effort::ALL`].
    efforts: [AtomicBool; Effort::ALL.len()],
}

impl Refused {
    /// `asks` without what was refused.
    pub(super) fn less(&self, asks: Asks) -> Asks {
        let takes = |refused: &AtomicBool| !refused.load(Ordering::Relaxed);
        Asks {
            encrypted: asks.encrypted && takes(&self.encrypted),
            summary: asks.summary && takes(&self.summary),
            temperature: asks.temperature && takes(&self.temperature),
            effort: std::iter::successors(asks.effort, |effort| less(*effort)).find(|effort| takes(self.of(*effort))),
            replays: asks.replays,
        }
    }

    /// Whether that effort was refused.
    fn of(&self, effort: Effort) -> &AtomicBool {
        let [none, low, medium, high, max] = &self.efforts;
        match effort {
            Effort::None => none,
            Effort::Low => low,
            Effort::Medium => medium,
            Effort::High => high,
            Effort::Max => max,
        }
    }

    /// Remembers what `less` no longer asks of what `asks` did.
    pub(super) fn remember(&self, asks: Asks, less: Asks) {
        if let Some(effort) = asks.effort.filter(|_| asks.effort != less.effort) {
            self.of(effort).store(true, Ordering::Relaxed);
        }
        let rows = [
            (&self.encrypted, asks.encrypted, less.encrypted),
            (&self.summary, asks.summary, less.summary),
            (&self.temperature, asks.temperature, less.temperature),
        ];
        rows.into_iter()
            .filter(|(_, was, is)| was != is)
            .for_each(|(refused, ..)| refused.store(true, Ordering::Relaxed));
    }
}

/// Whether the model called `name` reasons; `None` where its name does not tell, such as that of a deployment.
fn reasons(name: &str) -> Option<bool> {
    let name = name.to_ascii_lowercase();
    // `openai/gpt-5`, `ft:gpt-4.1:organisation::id`.
    let name = name.rsplit('/').next().unwrap_or_default();
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let number =
        |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse::<u32>().ok());
    match name.strip_prefix("gpt-") {
        Some(version) if version.starts_with("oss") => Some(true),
        // Some of them reason and some do not.
        Some(version) if version.contains("-chat") => None,
        Some(version) => number(version).map(|major| major >= 5),
        None if name.starts_with("chatgpt") => Some(false),
        None if name.starts_with("codex") || name.strip_prefix('o').and_then(number).is_some() => Some(true),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use reqwest::header::HeaderMap;
    use reqwest::{StatusCode, Url};

    use super::*;

    #[test]
    fn whether_a_model_reasons_is_told_by_its_name() {
        for (name, expected) in [
            ("gpt-5.5-mini", Some(true)),
            ("gpt-5", Some(true)),
            ("gpt-10-pro", Some(true)),
            ("openai/gpt-5.2-codex", Some(true)),
            ("o3", Some(true)),
            ("o4-mini-2025-04-16", Some(true)),
            ("codex-mini-latest", Some(true)),
            ("gpt-oss-120b", Some(true)),
            ("gpt-4o", Some(false)),
            ("GPT-4.1-nano", Some(false)),
            ("ft:gpt-4.1:acme::abc", Some(false)),
            ("gpt-3.5-turbo", Some(false)),
            ("chatgpt-4o-latest", Some(false)),
            ("gpt-5-chat-latest", None),
            ("gpt-next", None),
            ("our-deployment", None),
            ("olmo-3", None),
            ("qwen3", None),
            ("", None),
        ] {
            assert_eq!(reasons(name), expected, "{name}");
        }
    }

    #[test]
    fn a_refused_effort_becomes_less_and_then_the_models_own() {
        let body =
            r#"{"error":{"message":"Unsupported value.","param":"reasoning.effort","code":"unsupported_value"}}"#;
        let url = Url::parse("https://api.openai.com/v1/responses").unwrap();
        let headers = HeaderMap::new();
        let refused =
            failure::of_status(StatusCode::BAD_REQUEST, &headers, body.as_bytes(), &url, Timestamp::UNIX_EPOCH);
        let asks = |effort| Asks { effort, ..Asks::of_model("gpt-5") };
        let less = |effort| asks(Some(effort)).without_refused(&refused);
        assert_eq!(less(Effort::Max), Some(asks(Some(Effort::High))));
        assert_eq!(less(Effort::Low), Some(asks(None)));
        assert_eq!([less(Effort::None), asks(None).without_refused(&refused)], [None, None]);
    }

    #[test]
    fn what_was_refused_is_not_asked_again_but_for_reasoning_of_earlier_turns() {
        let asks = Asks { temperature: false, ..Asks::of_model("") };
        let refused = Refused::default();
        refused.remember(asks, Asks { replays: false, ..asks });
        assert_eq!(refused.less(asks), asks);
        refused.remember(asks, Asks { encrypted: false, ..asks });
        assert_eq!(refused.less(asks), Asks { encrypted: false, ..asks });
        let asks = |effort| Asks { effort, encrypted: false, ..asks };
        let high = asks(Some(Effort::High));
        refused.remember(high, asks(Some(Effort::Medium)));
        assert_eq!(
            [refused.less(high), refused.less(asks(Some(Effort::Max)))],
            [asks(Some(Effort::Medium)), asks(Some(Effort::Max))]
        );
        assert_eq!(refused.less(asks(Some(Effort::None))), asks(Some(Effort::None)));
    }
}
