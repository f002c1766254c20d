//! The events of a Responses stream as JSON. Every field is optional, since servers leave out what they like; and each is
//! taken as it stands there, since most events are of one kind and have a field or two that matter.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::llm::failure::ErrorField;
use crate::llm::lenient;

/// One event: which fields there are depends on its kind.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    item_id: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient::number")]
    output_index: Option<i64>,
    #[serde(default, deserialize_with = "lenient::number")]
    summary_index: Option<i64>,
    #[serde(default, deserialize_with = "lenient::number")]
    content_index: Option<i64>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient::error")]
    pub(super) error: Option<ErrorField>,
}

/// Which item an event is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// Its id, as the JSON has it; never empty.
    pub(super) id: Option<&'a str>,
    pub(super) index: Option<i64>,
}

impl<'a> Event<'a> {
    /// Its kind; empty where it has none.
    pub(super) fn kind(&self) -> &'a str {
        bare(self.kind)
    }

    /// Which item it is about.
    pub(super) fn place(&self) -> Place<'a> {
        Place { id: id(self.item_id), index: self.output_index }
    }

    /// The part of its item that it is about.
    pub(super) fn part(&self) -> Option<i64> {
        self.summary_index.or(self.content_index)
    }
}

/// An output item: which fields there are depends on its kind.
#[derive(Debug, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient::name")]
    call_id: Option<String>,
    #[serde(default, deserialize_with = "lenient::name")]
    name: Option<String>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) encrypted_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) phase: Option<&'a RawValue>,
}

impl<'a> Item<'a> {
    /// Its kind; empty where it has none.
    pub(super) fn kind(&self) -> &'a str {
        bare(self.kind)
    }

    /// Which item it is, at the place `index` of the output.
    pub(super) fn place(&self, index: Option<i64>) -> Place<'a> {
        Place { id: id(self.id), index }
    }

    /// The id of a call, by which it is answered.
    pub(super) fn take_call_id(&mut self) -> Option<String> {
        self.call_id.take().filter(|id| !id.is_empty())
    }

    /// The name of a call.
    pub(super) fn take_name(&mut self) -> Option<String> {
        self.name.take().filter(|name| !name.is_empty())
    }
}

/// A piece of a message, of a summary or of reasoning.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) refusal: Option<String>,
}

/// The response, as the events of its beginning and its end have it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient::error")]
    pub(super) error: Option<ErrorField>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    incomplete_details: Option<IncompleteDetails>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) usage: Option<Usage>,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

impl<'a> Response<'a> {
    /// Its status; empty where it says none.
    pub(super) fn status(&self) -> &'a str {
        bare(self.status)
    }

    /// Why it is not complete.
    pub(super) fn incomplete_reason(&self) -> Option<&str> {
        self.incomplete_details.as_ref()?.reason.as_deref()
    }
}

/// Counters of the whole response.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) input_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct InputDetails {
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct OutputDetails {
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) reasoning_tokens: Option<u64>,
}

/// The text of a plain word in quotes, which nobody escapes.
fn bare(json: Option<&RawValue>) -> &str {
    json.map_or("", RawValue::get).trim_matches('"')
}

fn id(json: Option<&RawValue>) -> Option<&str> {
    json.map(RawValue::get).filter(|json| *json != r#""""#)
}
