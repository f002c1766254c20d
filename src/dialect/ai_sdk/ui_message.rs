//! Messages as clients keep them. All of it is the client's word: only the newest message is read, and of an answer
//! only its user's decisions and the results of the page's own tools. Parts of kinds that we do not know are passed
//! over.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bounded::json::parse;
use crate::chat::approval::{Deciding, Decision, Seen};
use crate::chat::ids::ApprovalId;
use crate::dialect::given::{ClientResult, Content, of_url, uploaded};

/// The longest reason for a decision, in bytes.
const REASON_BYTES: usize = 2000;

/// The longest id that a client gives a message, in bytes.
const ID_BYTES: usize = 256;

/// The fields that are read of any message.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) id: Option<String>,
    pub(super) role: String,
}

impl Head {
    /// The head of a message; `None` where it is no message.
    pub(super) fn read(raw: &RawValue) -> Option<Self> {
        let head: Self = object(raw)?;
        let is_short = head.id.as_ref().is_none_or(|id| (1..=ID_BYTES).contains(&id.len()));
        is_short.then_some(head)
    }
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    r#type: String,
    state: Option<String>,
    text: Option<String>,
    /// A file's `data:` URL, or the id of an upload.
    url: Option<String>,
    filename: Option<String>,
    tool_call_id: Option<String>,
    provider_executed: Option<bool>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    error_text: Option<String>,
    #[serde(borrow)]
    approval: Option<&'a RawValue>,
}

/// An approval as it comes back. Nothing but `true` lets a call through.
#[derive(Deserialize)]
pub(super) struct Answered {
    id: String,
    approved: bool,
    reason: Option<String>,
}

impl Answered {
    /// The decision in `raw`.
    ///
    /// # Errors
    /// Its mistake.
    pub(super) fn read(raw: &RawValue) -> Result<Deciding, String> {
        let Some(Self { id, approved, reason }) = object(raw) else {
            return Err("must have the id of an approval, approved, true or false, and perhaps a reason".to_owned());
        };
        let approval = ApprovalId::parse(&id).map_err(|_| "names an approval that is none".to_owned())?;
        let comment = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
        if comment.as_ref().is_some_and(|comment| comment.len() > REASON_BYTES) {
            return Err(format!("has a reason of more than {REASON_BYTES} bytes"));
        }
        let decision = Decision { approve: approved, comment };
        Ok(Deciding { approval, decision, is_farewell: false, seen: Seen::Unknown })
    }
}

/// The new parts of an answer that goes on.
#[derive(Default)]
pub(super) struct News {
    /// Decisions in earlier steps, that have no answer: a run broke off before them, or they were read long ago.
    pub(super) left: Vec<Deciding>,
    pub(super) decisions: Vec<Deciding>,
    pub(super) results: Vec<ClientResult>,
}

/// The text of a user's message, and its files.
///
/// # Errors
/// Why there is none, or none that can be answered.
pub(super) fn said(raw: &RawValue) -> Result<Content, String> {
    let (mut text, mut files) = (String::new(), Vec::new());
    for part in parts(raw)? {
        match part.r#type.as_str() {
            "text" => {
                let Some(more) = part.text else { return Err("has a text part without a text".to_owned()) };
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&more);
            }
            "file" => {
                let url = part.url.unwrap_or_default();
                let file = match uploaded(&url) {
                    Ok(file) => Ok(file),
                    Err(_) => of_url(&url, part.filename),
                };
                files.push(file.map_err(|why| format!("has a file that {why}"))?);
            }
            _ => {}
        }
    }
    match text.trim().is_empty() && files.is_empty() {
        true => Err("has no text".to_owned()),
        false => Ok(Content { text, files }),
    }
}

/// The parts added to the last step of an answer, and the decisions before it that may still be open.
///
/// # Errors
/// Its mistake.
pub(super) fn news(raw: &RawValue, max_result_bytes: usize) -> Result<News, String> {
    let mut news = News::default();
    let mut answered: Vec<&RawValue> = Vec::new();
    for part in parts(raw)? {
        if part.r#type == "step-start" {
            // The parts before it have been read. One that cannot be read there is no decision.
            news.left.extend(answered.drain(..).filter_map(|raw| Answered::read(raw).ok()));
            news.results.clear();
            continue;
        }
        let is_pages_own = part.r#type.starts_with("tool-");
        if !is_pages_own && part.r#type != "dynamic-tool" {
            continue;
        }
        match part.state.as_deref() {
            Some("approval-responded") => {
                answered.push(part.approval.ok_or_else(|| "has a decision without its approval".to_owned())?);
            }
            Some("output-available") if is_pages_own && part.provider_executed != Some(true) => {
                let content = part.output.map_or_else(|| "null".to_owned(), result_text);
                news.results.push(ClientResult {
                    call: call(part.tool_call_id)?,
                    content,
                    files: Vec::new(),
                    is_error: false,
                    said: None,
                });
            }
            Some("output-error") if is_pages_own && part.provider_executed != Some(true) => {
                let content = part.error_text.unwrap_or_else(|| "the tool failed".to_owned());
                news.results.push(ClientResult {
                    call: call(part.tool_call_id)?,
                    content,
                    files: Vec::new(),
                    is_error: true,
                    said: None,
                });
            }
            Some(_) | None => {}
        }
        if news.results.last().is_some_and(|result| max_result_bytes != 0 && result.content.len() > max_result_bytes) {
            return Err(format!("has a result of more than {max_result_bytes} bytes"));
        }
    }
    for raw in answered {
        news.decisions.push(Answered::read(raw).map_err(|why| format!("has a decision that {why}"))?);
    }
    Ok(news)
}

fn call(id: Option<String>) -> Result<String, String> {
    id.ok_or_else(|| "has a result without its toolCallId".to_owned())
}

/// A result for the model: a text as it is, everything else as JSON.
fn result_text(output: &RawValue) -> String {
    parse::<String>(output.get()).unwrap_or_else(|_| output.get().to_owned())
}

fn parts(raw: &RawValue) -> Result<Vec<Part<'_>>, String> {
    let wrong = || "must have parts, a list of objects with a type".to_owned();
    let Body { parts } = object(raw).ok_or_else(wrong)?;
    parts.into_iter().map(|part| object(part).ok_or_else(wrong)).collect()
}

/// The object that `raw` is; a list would pass for the fields in their order.
pub(super) fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    Some(raw.get()).filter(|text| text.starts_with('{')).and_then(|text| parse(text).ok())
}
