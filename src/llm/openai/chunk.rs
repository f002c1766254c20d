//! The JSON of chat completions' stream: chunks, of which any field may be missing, null or empty.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::usage::Usage;
use crate::bounded::json::parse;
use crate::llm::failure::ErrorField;
use crate::llm::few::{Few, Items};
use crate::llm::lenient;

/// One chunk of the stream. It is moved more often than it is looked at, so what nearly none has is apart, in a box. Legacy `function_call` beside or instead of `tool_calls` is not read: functions are never
/// offered, only tools.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Few<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    x_groq: Option<Box<Groq<'a>>>,
    #[serde(default, deserialize_with = "lenient::error")]
    error: Option<ErrorField>,
    /// What the chunk is, as it stands there.
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

/// What Groq adds to a chunk.
#[derive(Debug, Deserialize)]
struct Groq<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient::error")]
    error: Option<ErrorField>,
}

impl<'a> Chunk<'a> {
    /// The token counts in it, the last one being the best.
    pub(super) fn usages(&self) -> impl Iterator<Item = Usage> {
        let groq = self.x_groq.as_ref().and_then(|groq| groq.usage);
        let of_choices = self.choices.iter().flat_map(Few::iter).filter_map(|choice| choice.usage);
        // Counts that cannot be read are no reason to lose an answer.
        of_choices.chain(groq).chain(self.usage).filter_map(|raw| parse(raw.get()).ok())
    }

    /// Whether the chunk itself is an error object.
    pub(super) fn is_error(&self) -> bool {
        self.object.is_some_and(|object| object.get() == r#""error""#)
    }

    /// The error in it.
    pub(super) fn take_error(&mut self) -> Option<ErrorField> {
        self.error.take().or_else(|| self.x_groq.as_mut()?.error.take())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// The whole answer, of a server that does not stream. Boxed, since every chunk is moved with its size.
    #[serde(borrow)]
    pub(super) message: Option<Box<Delta<'a>>>,
    pub(super) finish_reason: Option<String>,
    /// Moonshot's place of the token counts.
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    pub(super) content: Option<Content>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) refusal: Option<String>,
    #[serde(default, deserialize_with = "words")]
    pub(super) reasoning_content: Option<String>,
    #[serde(default, deserialize_with = "words")]
    pub(super) reasoning: Option<String>,
    #[serde(borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    /// `LiteLLM`'s, of Claude's own.
    #[serde(borrow)]
    pub(super) thinking_blocks: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Box<Few<CallDelta<'a>>>>,
}

/// Text, also of a number (see [`words`]), or typed parts. Read by hand: an untagged enum would copy every piece of text before it
/// looks at it.
#[derive(Debug)]
pub(super) enum Content {
    Text(String),
    Parts(Box<Few<ContentPart>>),
}

/// A typed part; kinds that are not known here are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct ContentPart {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "words")]
    pub(super) text: Option<String>,
    pub(super) thinking: Option<Content>,
    /// What Databricks has in a part of the kind `reasoning`.
    pub(super) summary: Option<Content>,
}

/// A text; a number or `true` for the word that it is, as Workers AI of Cloudflare writes them (cloudflare/ai#651); or what has
/// the text in it, as Envoy's AI gateway writes reasoning. Anything else is absent.
fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let json = <&RawValue>::deserialize(from)?.get();
    Ok(match json.bytes().next() {
        Some(b'"') => Some(parse(json).map_err(D::Error::custom)?),
        Some(b'{' | b'[') => {
            parse::<Few<Worded>>(json).ok().map(|all| all.into_iter().filter_map(|one| one.text).collect())
        }
        Some(b'n') | None => None,
        Some(_) => Some(json.to_owned()),
    })
}

#[derive(Debug, Deserialize)]
struct Worded {
    text: Option<String>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_bool<E: Error>(self, word: bool) -> Result<Content, E> {
        Ok(Content::Text(word.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Content, E> {
        Ok(Content::Text(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Content, E> {
        Ok(Content::Text(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Content, E> {
        Ok(Content::Text(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Content, A::Error> {
        Items(PhantomData).visit_seq(list).map(|parts| Content::Parts(Box::new(parts)))
    }

    fn visit_map<A: MapAccess<'de>>(self, part: A) -> Result<Content, A::Error> {
        Items(PhantomData).visit_map(part).map(|parts| Content::Parts(Box::new(parts)))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default, deserialize_with = "lenient::number")]
    pub(super) index: Option<i64>,
    #[serde(default, deserialize_with = "lenient::name")]
    pub(super) id: Option<String>,
    #[serde(borrow)]
    pub(super) function: Option<FunctionDelta<'a>>,
    #[serde(borrow)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}
