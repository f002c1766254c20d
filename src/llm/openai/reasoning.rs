//! Reasoning that goes back to the server it came from. The fold marks it with the way it came, as replay data on the
//! thinking piece; the next request reads the mark and says the reasoning in the same way.
//!
//! `reasoning_details` are `OpenRouter`'s, <https://openrouter.ai/docs/guides/best-practices/reasoning-tokens>: a block
//! streams in fragments, and its signature is valid for the whole block only, so the fragments are joined before they go
//! back (agno#8794 is what happens otherwise). Nothing else about them is understood.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::agent::ports::llm::ProviderError;
use crate::bounded::json::parse;
use crate::chat::message::{AssistantPart, Replay};
use crate::llm::answer::{malformed, read};
use crate::llm::few::Few;
use crate::llm::history::AssistantTurn;

/// How reasoning came, and what must come back. As JSON the name of the field, or an object with the blocks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark<'a> {
    /// As this field's text; `DeepSeek` wants the field in every message of the assistant, empty if need be.
    ReasoningContent,
    /// As this field's text. vLLM reads it (vllm#38488), Groq documents it for the models that send it, and refuses it,
    /// even empty, for others: it goes into the messages that had it, and into no other.
    Reasoning,
    /// As blocks, beside a text that repeats them.
    ReasoningDetails(#[serde(borrow)] &'a RawValue),
    /// As blocks of Claude's, which refuses calls without the thinking before them where it thinks (opencode#3077).
    ThinkingBlocks(#[serde(borrow)] &'a RawValue),
}

impl<'a> Mark<'a> {
    /// The mark as replay data.
    pub(super) fn to_replay(&self) -> Result<Replay, ProviderError> {
        Ok(Replay::new(to_raw_value(self).map_err(malformed)?))
    }

    /// The mark on the reasoning of `turn`, when this server wrote it.
    pub(super) fn from_turn(turn: &AssistantTurn<'a>) -> Option<Self> {
        if !turn.is_ours {
            return None;
        }
        let mut found = None;
        for part in turn.parts {
            let AssistantPart::Thinking { replay: Some(replay), .. } = part else { continue };
            match parse(replay.raw().get()) {
                // The blocks have it all.
                Ok(blocks @ (Self::ReasoningDetails(_) | Self::ThinkingBlocks(_))) => return Some(blocks),
                Ok(field @ (Self::ReasoningContent | Self::Reasoning)) => found = found.or(Some(field)),
                // Of a version of this program that is yet to come.
                Err(_) => {}
            }
        }
        found
    }
}

/// The reasoning of one assistant message, in the fields of the request: in the one it came in, and besides
/// empty in `reasoning_content` where every message must have that.
#[derive(Debug, Default, Serialize)]
pub(super) struct Echo<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_blocks: Option<&'a RawValue>,
}

impl<'a> Echo<'a> {
    /// The reasoning of `turn`.
    pub(super) fn from_turn(turn: &AssistantTurn<'a>) -> Self {
        match Mark::from_turn(turn) {
            Some(Mark::ReasoningContent) => Self { reasoning_content: Some(turn.thinking()), ..Self::default() },
            Some(Mark::Reasoning) => Self { reasoning: Some(turn.thinking()), ..Self::default() },
            Some(Mark::ReasoningDetails(details)) => Self { reasoning_details: Some(details), ..Self::default() },
            Some(Mark::ThinkingBlocks(blocks)) => Self { thinking_blocks: Some(blocks), ..Self::default() },
            None => Self::default(),
        }
    }

    /// With `reasoning_content`, empty where there is none.
    pub(super) fn with_content(self) -> Self {
        Self { reasoning_content: self.reasoning_content.or(Some(Cow::default())), ..self }
    }
}

/// 10,000 blocks and fields of blocks in one answer: each costs far more memory than bytes, and real answers have a few
/// hundred.
const MAX_FIELDS: usize = 10_000;

/// The blocks of one answer so far.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// How many there are, their fields counted besides.
    count: usize,
    blocks: Vec<Block>,
    /// The position of the newest block of each index and type.
    positions: HashMap<(String, String), usize>,
}

/// A fragment as it came: a field's name and its JSON.
type Fragment<'a> = BTreeMap<String, &'a RawValue>;

#[derive(Debug, Default)]
struct Block {
    /// Everything but the texts, as it came.
    fields: BTreeMap<String, Box<RawValue>>,
    /// What comes in pieces: `text`, `summary` and `thinking`.
    texts: BTreeMap<&'static str, String>,
}

impl Details {
    /// Folds the blocks or fragments in `list`; the text in them, for an answer that says its reasoning nowhere else. What
    /// is no list of objects says nothing.
    pub(super) fn push(&mut self, list: &RawValue) -> Result<String, ProviderError> {
        let mut reasoning = String::new();
        let fragments = parse::<Few<Fragment<'_>>>(list.get()).unwrap_or_default();
        for fragment in fragments.into_iter().filter(|fragment| !fragment.is_empty()) {
            let known = self.blocks.len();
            let at = self.find(&fragment);
            let added = self.blocks.len() - known;
            let Some(block) = self.blocks.get_mut(at) else { continue };
            let is_new = |name: &&String| text_field(name).is_none() && !block.fields.contains_key(*name);
            self.count += added + fragment.keys().filter(is_new).count();
            if self.count > MAX_FIELDS {
                return Err(malformed(format!("the answer has more than {MAX_FIELDS} blocks and fields of reasoning")));
            }
            for (name, value) in fragment {
                match text_field(&name) {
                    Some(name) if value.get().starts_with('"') => {
                        let piece: String = read(value.get())?;
                        reasoning.push_str(&piece);
                        block.texts.entry(name).or_default().push_str(&piece);
                    }
                    // A later null or empty value does not take an earlier one back.
                    _ if matches!(value.get(), "null" | r#""""#) && block.fields.contains_key(&name) => {}
                    _ => {
                        block.fields.insert(name, value.to_owned());
                    }
                }
            }
        }
        Ok(reasoning)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The whole blocks, to be sent back; `None` when there are none.
    pub(super) fn take(&mut self) -> Result<Option<Box<RawValue>>, ProviderError> {
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for Block { mut fields, texts } in std::mem::take(self).blocks {
            for (name, text) in texts {
                fields.insert(name.to_owned(), to_raw_value(&text).map_err(malformed)?);
            }
            blocks.push(fields);
        }
        if blocks.is_empty() {
            return Ok(None);
        }
        to_raw_value(&blocks).map_err(malformed).map(Some)
    }

    /// The block that `fragment` belongs to, a new one if need be.
    fn find(&mut self, fragment: &Fragment<'_>) -> usize {
        let field = |name: &str| fragment.get(name).map(|raw| raw.get()).filter(|json| *json != "null");
        let kind = field("type").unwrap_or_default();
        let found = match field("index") {
            Some(index) => self.positions.get(&(index.to_owned(), kind.to_owned())).copied(),
            // Without an index only text goes on, and only where it stopped; opaque data comes whole, and a signature last.
            None => self.blocks.len().checked_sub(1).filter(|&at| {
                let is_last = |name| self.blocks[at].json(name) == field(name);
                let has_text = fragment.iter().any(|(name, json)| text_field(name).is_some() && json.get() != r#""""#);
                let is_signed = self.blocks[at].json("signature").is_some_and(|json| json != r#""""#);
                is_last("index") && is_last("type") && field("data").is_none() && !(is_signed && has_text)
            }),
        };
        // Two blocks with different ids are two blocks, whatever their index.
        let found = found.filter(|&at| match (self.blocks[at].json("id"), field("id")) {
            (Some(known), Some(id)) => known == id,
            (None, _) | (_, None) => true,
        });
        found.unwrap_or_else(|| {
            let at = self.blocks.len();
            self.blocks.push(Block::default());
            if let Some(index) = field("index") {
                self.positions.insert((index.to_owned(), kind.to_owned()), at);
            }
            at
        })
    }
}

impl Block {
    /// The JSON of a field, if it says anything.
    fn json(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|raw| raw.get()).filter(|json| *json != "null")
    }
}

fn text_field(name: &str) -> Option<&'static str> {
    match name {
        "text" => Some("text"),
        "summary" => Some("summary"),
        "thinking" => Some("thinking"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn fragments_become_the_blocks_that_were_meant() {
        let text = |index: u32, text: &str| json!({"type": "reasoning.text", "index": index, "text": text});
        let table = [
            (
                "one signed block in fragments, the signature last",
                vec![
                    json!([{"type": "reasoning.text", "index": 0, "text": "", "signature": "", "format": "claude"}]),
                    json!([{"type": "reasoning.text", "index": 0, "text": "a", "signature": null}]),
                    json!([text(0, "b")]),
                    json!([{"type": "reasoning.text", "index": 0, "signature": "SIG=="}]),
                    json!([text(0, "")]),
                ],
                json!([{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "SIG==", "format": "claude"}]),
                "ab",
            ),
            (
                "interleaved indexes, several in a chunk",
                vec![json!([text(0, "a"), text(1, "x")]), json!([text(1, "y"), text(0, "b")])],
                json!([text(0, "ab"), text(1, "xy")]),
                "axyb",
            ),
            (
                "a summary and encrypted data under one index, unknown fields",
                vec![
                    json!([{"type": "reasoning.summary", "index": 0, "summary": "s", "x": {"y": [1.50]}}]),
                    json!([{"type": "reasoning.encrypted", "index": 0, "data": "AA", "id": "rs_1"}]),
                ],
                json!([
                    {"type": "reasoning.summary", "index": 0, "summary": "s", "x": {"y": [1.50]}},
                    {"type": "reasoning.encrypted", "index": 0, "data": "AA", "id": "rs_1"},
                ]),
                "s",
            ),
            (
                "encrypted data of two calls with one index",
                vec![json!([
                    {"type": "reasoning.encrypted", "index": 0, "data": "A", "id": "call_1"},
                    {"type": "reasoning.encrypted", "index": 0, "data": "B", "id": "call_2"},
                ])],
                json!([
                    {"type": "reasoning.encrypted", "index": 0, "data": "A", "id": "call_1"},
                    {"type": "reasoning.encrypted", "index": 0, "data": "B", "id": "call_2"},
                ]),
                "",
            ),
            (
                "no index: text goes on, data does not",
                vec![
                    json!([{"type": "reasoning.text", "text": "a"}]),
                    json!([{"type": "reasoning.text", "text": "b"}]),
                    json!([{"type": "reasoning.encrypted", "data": "A"}, {"type": "reasoning.encrypted", "data": "B"}]),
                ],
                json!([
                    {"type": "reasoning.text", "text": "ab"},
                    {"type": "reasoning.encrypted", "data": "A"},
                    {"type": "reasoning.encrypted", "data": "B"},
                ]),
                "ab",
            ),
        ];
        let table = table.into_iter().chain([(
            "Claude's: a signature ends a block",
            vec![
                json!([{"type": "thinking", "thinking": "a", "signature": null}]),
                json!([{"type": "thinking", "thinking": "b"}]),
                json!([{"type": "thinking", "thinking": "", "signature": "S1=="}]),
                json!([{"type": "thinking", "thinking": "c"}, {"type": "redacted_thinking", "data": "R"}]),
            ],
            json!([
                {"type": "thinking", "thinking": "ab", "signature": "S1=="},
                {"type": "thinking", "thinking": "c"},
                {"type": "redacted_thinking", "data": "R"},
            ]),
            "abc",
        )]);
        for (why, lists, expected, text) in table {
            let (mut details, mut reasoning) = (Details::default(), String::new());
            for list in lists {
                reasoning.push_str(&details.push(&to_raw_value(&list).unwrap()).unwrap());
            }
            let blocks: Value = serde_json::from_str(details.take().unwrap().unwrap().get()).unwrap();
            assert_eq!(blocks, expected, "{why}");
            assert_eq!(reasoning, text, "{why}");
        }
    }

    #[test]
    fn what_is_no_list_of_blocks_says_nothing() {
        let mut details = Details::default();
        for odd in [json!([]), json!({}), json!("x"), json!([1]), json!(null)] {
            assert_eq!(details.push(&to_raw_value(&odd).unwrap()).unwrap(), "", "{odd}");
        }
        assert!(details.take().unwrap().is_none());
    }
}
