//! A message of JSON-RPC as far as it says what it is: for who carries it out, and for who only carries it on.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bounded::json::parse;
use crate::dialect::json;

/// 256 bytes of a request's id, and of a token for progress: they are sent again with every message.
const MAX_ID_BYTES: usize = 256;

/// What a client calls a request, or its progress: a text or a whole number, sent back as it came.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Id(Box<RawValue>);

impl Id {
    /// It, as JSON.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The id that `raw` is, if it is one.
    pub fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let is_text = text.starts_with('"');
        let is_whole = || text.bytes().enumerate().all(|(at, b)| b.is_ascii_digit() || (at == 0 && b == b'-'));
        ((is_text || is_whole()) && text.len() <= MAX_ID_BYTES).then(|| Self(raw.to_owned()))
    }
}

/// A message, none of whose parts was looked into.
#[derive(Debug, Deserialize)]
pub struct Outline<'a> {
    #[serde(borrow)]
    pub(super) jsonrpc: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "json::present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "json::present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "json::present")]
    error: Option<&'a RawValue>,
}

/// Its parameters, as far as headers repeat them.
#[derive(Debug, Default, Deserialize)]
pub struct Params<'a> {
    #[serde(borrow, rename = "_meta")]
    pub(super) meta: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, rename = "taskId")]
    task: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestId")]
    request: Option<&'a RawValue>,
}

/// What a request says of its client.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(super) capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "progressToken")]
    pub(super) progress: Option<&'a RawValue>,
}

impl<'a> Outline<'a> {
    /// The message in `text`.
    ///
    /// # Errors
    /// When it is no JSON, or no object.
    pub fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        parse(text)
    }

    /// Its id, where it has one; within, whether it can be one.
    pub fn id(&self) -> Option<Option<Id>> {
        self.id.map(Id::read)
    }

    /// Its method; `None` of an answer.
    pub fn method(&self) -> Option<String> {
        string(self.method)
    }

    /// Whether it says what has come of a request.
    pub fn is_answer(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }

    /// Whether it says what has come of the request `id`.
    pub fn answers(&self, id: &Id) -> bool {
        self.is_answer() && self.id.is_some_and(|own| own.get() == id.as_str())
    }

    /// What went wrong, where it is an answer that says so.
    pub fn error(&self) -> Option<&'a RawValue> {
        self.error.filter(|error| error.get().starts_with('{'))
    }

    /// Its parameters, where they are an object.
    pub fn params(&self) -> Option<Params<'a>> {
        json::fields(self.params?)
    }
}

impl Params<'_> {
    /// What a request for `method` is about, which a header repeats; empty where it should say so and does not.
    pub fn named(&self, method: &str) -> Option<String> {
        let named = match method {
            "tools/call" | "prompts/get" => self.name,
            "resources/read" => self.uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.task,
            _ => return None,
        };
        Some(string(named).unwrap_or_default())
    }

    /// The revision of its client's, where the request says that.
    pub fn version(&self) -> Option<String> {
        let meta: Meta<'_> = json::fields(self.meta?)?;
        meta.version()
    }

    /// The request that a notification of `method` calls off.
    pub fn called_off(&self, method: &str) -> Option<Id> {
        Id::read(self.request.filter(|_| method == "notifications/cancelled")?)
    }
}

impl Meta<'_> {
    /// The revision; empty where it is no text.
    pub(super) fn version(&self) -> Option<String> {
        self.version.map(|raw| string(Some(raw)).unwrap_or_default())
    }
}

pub(super) fn string(raw: Option<&RawValue>) -> Option<String> {
    parse(raw?.get()).ok()
}
