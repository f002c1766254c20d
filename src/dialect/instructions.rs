//! A client's own instructions for the model, whatever the protocol calls them: its system messages. Only where the profile
//! takes them.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::DecodeError;
use super::asked::Choices;
use crate::bounded::json::{parse, parse_bytes};

#[derive(Deserialize)]
struct Body<'a> {
    /// What assistant-ui's transport sends of `useAssistantInstructions`.
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
}

/// A message of protocols that have content, or parts.
#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

/// The `system` of `body` and the system messages among its `messages`, as [`taken`] has them. What is no message is passed over: whoever
/// reads those says so.
///
/// # Errors
/// See [`taken`].
pub(super) fn of_body(
    body: &[u8],
    choices: Option<Choices>,
    max_bytes: usize,
) -> Result<Option<Arc<str>>, DecodeError> {
    if !choices.is_some_and(|choices| choices.instructions) {
        return Ok(None);
    }
    let Ok(Body { system, messages }) = parse_bytes(body) else { return Ok(None) };
    let messages = messages.unwrap_or_default().into_iter().filter_map(|raw| parse::<Message<'_>>(raw.get()).ok());
    let own = messages.filter(|message| matches!(message.role.as_str(), "system" | "developer"));
    let texts = own.filter_map(|message| text(message.content.or(message.parts)?));
    let texts: Vec<String> = system.and_then(text).into_iter().chain(texts).collect();
    taken(&texts, choices, ("messages", max_bytes))
}

fn text(raw: &RawValue) -> Option<String> {
    if let Ok(text) = parse(raw.get()) {
        return Some(text);
    }
    let parts: Vec<Part> = parse(raw.get()).ok()?;
    Some(parts.into_iter().filter_map(|part| part.text).collect::<Vec<_>>().join("\n"))
}

/// All of `texts`, in order, at most `max_bytes` of them (0: no limit); `None` where there are none, or they are not taken.
///
/// # Errors
/// When they are longer; they are in `field`.
pub(super) fn taken(
    texts: &[String],
    choices: Option<Choices>,
    (field, max_bytes): (&'static str, usize),
) -> Result<Option<Arc<str>>, DecodeError> {
    let said: Vec<&str> = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
    if said.is_empty() || !choices.is_some_and(|choices| choices.instructions) {
        return Ok(None);
    }
    let all = said.join("\n\n");
    match max_bytes != 0 && all.len() > max_bytes {
        true => Err(DecodeError::TooLarge { field, max_bytes }),
        false => Ok(Some(all.into())),
    }
}
