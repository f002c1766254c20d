//! A message as it comes: JSON-RPC in a body, and headers that repeat some of it. Which era it is of says the message itself.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::outline::{Id, Meta, Outline, string};
use crate::bounded::json::{check, utf8};
use crate::dialect::json;

/// The revision without sessions.
pub const NEWEST: &str = "2026-07-28";

/// Those with an `initialize`, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The first whose results may have links to files.
const LINKS: &str = "2025-06-18";

/// The extension by which a call may become a task.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Which kind of revision a message is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Each request says who its client is.
    Modern,
    /// The client has said so in an `initialize`, which nobody remembers.
    Legacy,
}

/// A client, as far as its request says.
#[derive(Debug, Clone)]
pub struct Client {
    /// The era.
    pub era: Era,
    /// Whether it can show its user a form.
    pub elicits: bool,
    /// Whether a call may become a task.
    pub tasks: bool,
    /// Whether its revision knows links to files.
    pub links: bool,
    /// What it calls the progress of this request, where it wants to hear of it.
    pub progress: Option<Id>,
}

/// A message.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// It wants a result.
    Request(Request<'a>),
    /// It does not. The request that it calls off, where it does that; no other changes anything here.
    Notification(Option<Id>),
}

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    /// Its id.
    pub id: Id,
    /// The method.
    pub method: String,
    /// Its parameters, an object.
    pub params: Option<&'a RawValue>,
    /// Whose it is.
    pub client: Client,
}

/// A message that is not carried out.
#[derive(Debug)]
pub struct Refused {
    /// Its id, where it has one.
    pub id: Option<Id>,
    /// The era, as far as it is known.
    pub era: Era,
    /// Why.
    pub error: RpcError,
}

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// It is no JSON.
    #[error("the body is not usable JSON: {0}")]
    NotJson(String),
    /// It is no message.
    #[error("{0}")]
    Invalid(String),
    /// There is no such method.
    #[error("there is no method {0:?} here")]
    NoSuchMethod(String),
    /// The parameters are wrong.
    #[error("{0}")]
    Params(String),
    /// It does not say who its client is.
    #[error("params._meta must have {0}")]
    NoMeta(&'static str),
    /// Headers and body do not say the same.
    #[error("{0}")]
    HeaderMismatch(String),
    /// The client has not said that it knows tasks.
    #[error("this needs a client that declares the extension {TASKS}")]
    NeedsTasks,
    /// Nobody speaks that revision here.
    #[error("the revision {0:?} is not spoken here")]
    UnsupportedVersion(String),
}

impl RpcError {
    /// Its number.
    pub fn code(&self) -> i32 {
        match self {
            Self::NotJson(_) => -32700,
            Self::Invalid(_) => -32600,
            Self::NoSuchMethod(_) => -32601,
            Self::Params(_) | Self::NoMeta(_) => -32602,
            Self::HeaderMismatch(_) => -32020,
            Self::NeedsTasks => -32021,
            Self::UnsupportedVersion(_) => -32022,
        }
    }

    fn data(&self) -> Option<Value> {
        match self {
            Self::NeedsTasks => Some(json!({"requiredCapabilities": {"extensions": {TASKS: {}}}})),
            Self::UnsupportedVersion(requested) => Some(json!({"supported": spoken(), "requested": requested})),
            Self::NotJson(_)
            | Self::Invalid(_)
            | Self::NoSuchMethod(_)
            | Self::Params(_)
            | Self::NoMeta(_)
            | Self::HeaderMismatch(_) => None,
        }
    }
}

/// All revisions, newest first.
pub(super) fn spoken() -> Vec<&'static str> {
    [NEWEST].into_iter().chain(LEGACY).collect()
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    jsonrpc: &'static str,
    id: Option<&'a Id>,
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

/// The answer to the request `id` that says why it is not carried out.
pub fn error(id: Option<&Id>, error: &RpcError) -> Vec<u8> {
    error_of(id, (error.code(), &error.to_string()), error.data().as_ref())
}

/// The same of any other error.
pub fn error_of(id: Option<&Id>, (code, message): (i32, &str), data: Option<&Value>) -> Vec<u8> {
    let body = ErrorBody { jsonrpc: "2.0", id, error: Inner { code, message, data } };
    // Texts and numbers always serialise.
    serde_json::to_vec(&body).unwrap_or_default()
}

#[derive(Default, Deserialize)]
struct Capabilities<'a> {
    #[serde(borrow)]
    elicitation: Option<&'a RawValue>,
    #[serde(borrow)]
    extensions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Elicitation<'a> {
    #[serde(borrow)]
    form: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Extensions<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/tasks")]
    tasks: Option<&'a RawValue>,
}

/// The message in `body`.
///
/// # Errors
/// When it is none that can be carried out, and what to answer then.
pub fn read<'a>(body: &'a [u8], headers: &HeaderMap) -> Result<Incoming<'a>, Refused> {
    let nameless = |error| Refused { id: None, era: Era::Modern, error };
    let text = json::object(body).map_err(|error| {
        // A list, which is a batch of earlier revisions, or a plain value: JSON, and no message.
        let is_json = utf8(body).is_ok_and(|text| !text.trim_start().starts_with('{') && check(text).is_ok());
        nameless(match is_json {
            true => RpcError::Invalid("the body must be one JSON-RPC message, an object".to_owned()),
            false => RpcError::NotJson(error.to_string()),
        })
    })?;
    let raw = Outline::read(text).map_err(|error| nameless(RpcError::NotJson(error.to_string())))?;
    let invalid =
        |error: &str, id: Option<Id>| Refused { id, era: Era::Modern, error: RpcError::Invalid(error.to_owned()) };
    let id = match raw.id() {
        Some(None) => return Err(invalid("id must be a text or a whole number, of at most 256 bytes", None)),
        Some(Some(id)) => Some(id),
        None => None,
    };
    if string(raw.jsonrpc).as_deref() != Some("2.0") {
        return Err(invalid("jsonrpc must be \"2.0\"", id));
    }
    let Some(method) = raw.method() else {
        // What the client says to a request of ours, of which there are none.
        return match raw.is_answer() {
            true => Ok(Incoming::Notification(None)),
            false => Err(invalid("method must be a text", id)),
        };
    };
    let Some(id) = id else {
        return Ok(Incoming::Notification(raw.params().and_then(|params| params.called_off(&method))));
    };
    let refused = |era, error| Refused { id: Some(id.clone()), era, error };
    let wrong = |text: &str| refused(Era::Modern, RpcError::Params(text.to_owned()));
    let params = match raw.params {
        None => None,
        Some(_) => Some(raw.params().ok_or_else(|| wrong("params must be an object"))?),
    };
    let meta = match params.as_ref().and_then(|params| params.meta) {
        None => Meta::default(),
        Some(raw) => json::fields(raw).ok_or_else(|| wrong("params._meta must be an object"))?,
    };
    let named = params.as_ref().and_then(|params| params.named(&method));
    let client = client((&method, named.as_deref()), &meta, headers).map_err(|(era, error)| refused(era, error))?;
    Ok(Incoming::Request(Request { id, method, params: raw.params, client }))
}

/// The client of a request for `method`, about what is called so.
fn client(
    (method, named): (&str, Option<&str>),
    meta: &Meta<'_>,
    headers: &HeaderMap,
) -> Result<Client, (Era, RpcError)> {
    let modern = |error| (Era::Modern, error);
    let progress = meta.progress.and_then(Id::read);
    let version = one(headers, "mcp-protocol-version").map_err(modern)?;
    let links = version.is_none_or(|version| version >= LINKS);
    let legacy = Client { era: Era::Legacy, elicits: false, tasks: false, links, progress: progress.clone() };
    let said = meta.version();
    // The newest revision has none: who speaks that is told so.
    if method == "initialize" && said.is_none() {
        return match one(headers, "mcp-method").map_err(modern)? {
            Some(header) if header != method => Err(modern(differs("Mcp-Method", header, method))),
            Some(_) | None => Ok(legacy),
        };
    }
    let is_modern = said.is_some() || method == "server/discover" || version.is_some_and(|version| version >= NEWEST);
    if !is_modern {
        return match version {
            Some(version) if !LEGACY.contains(&version) => {
                Err((Era::Legacy, RpcError::UnsupportedVersion(short(version))))
            }
            Some(_) | None => Ok(legacy),
        };
    }
    let said = said.ok_or(modern(RpcError::NoMeta("io.modelcontextprotocol/protocolVersion")))?;
    match version {
        None => return Err(modern(missing("MCP-Protocol-Version"))),
        Some(version) if version != said => return Err(modern(differs("MCP-Protocol-Version", version, &said))),
        Some(_) => {}
    }
    if said != NEWEST {
        return Err(modern(RpcError::UnsupportedVersion(short(&said))));
    }
    let capabilities: Option<Capabilities<'_>> = meta.capabilities.and_then(json::fields);
    let capabilities = capabilities.ok_or(modern(RpcError::NoMeta("io.modelcontextprotocol/clientCapabilities")))?;
    match one(headers, "mcp-method").map_err(modern)? {
        None => return Err(modern(missing("Mcp-Method"))),
        Some(header) if header != method => return Err(modern(differs("Mcp-Method", header, method))),
        Some(_) => {}
    }
    if let Some(named) = named {
        let header = one(headers, "mcp-name").map_err(modern)?.ok_or_else(|| modern(missing("Mcp-Name")))?;
        let plain =
            plain(header).ok_or_else(|| modern(RpcError::HeaderMismatch("Mcp-Name is not base64".to_owned())))?;
        if plain != named {
            return Err(modern(differs("Mcp-Name", &plain, named)));
        }
    }
    let elicits = capabilities.elicitation.and_then(json::fields::<Elicitation<'_>>);
    let extensions = capabilities.extensions.and_then(json::fields::<Extensions<'_>>);
    Ok(Client {
        era: Era::Modern,
        // Who names no mode can show forms, as all could when there was no other.
        elicits: elicits.is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
        tasks: extensions.is_some_and(|extensions| extensions.tasks.is_some_and(|raw| raw.get().starts_with('{'))),
        links: true,
        progress,
    })
}

/// The one value of a header.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(RpcError::HeaderMismatch(format!("{name} must be given once")));
    }
    let text = value.to_str().map_err(|_| RpcError::HeaderMismatch(format!("{name} must be printable ASCII")))?;
    Ok(Some(text.trim()))
}

/// A header's value as it was before it was made fit for one.
fn plain(header: &str) -> Option<String> {
    match header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(header.to_owned()),
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
    }
}

fn missing(header: &str) -> RpcError {
    RpcError::HeaderMismatch(format!("the header {header} is missing"))
}

fn differs(header: &str, value: &str, body: &str) -> RpcError {
    let (value, body) = (short(value), short(body));
    RpcError::HeaderMismatch(format!("the header {header} says {value:?}, and the body {body:?}"))
}

/// As much of a stranger's text as goes into an error.
fn short(text: &str) -> String {
    text.chars().take(100).collect()
}
