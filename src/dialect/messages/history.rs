//! The `messages` of a request: what is new behind the last thing that the assistant said, and what was said before.
//!
//! **Invariant:** of what was said before, words of a user and of an assistant are told, and calls that have the shape of the
//! client's own. A call of ours that a client tells, and its result, could be made up.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bounded::json::parse;
use crate::chat::file::GivenFile;
use crate::dialect::given::{self, ClientMessage, ClientResult};
use crate::dialect::json;
use crate::dialect::told::{ToldTurn, text_in};

/// The blocks of a content that are text.
const TEXT: [&str; 1] = ["text"];

/// What a request tells.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Told {
    /// What a client wants of the assistant: its system messages, in order.
    pub(super) instructions: Vec<String>,
    /// What was said before what is new.
    pub(super) earlier: Vec<ClientMessage>,
    /// New words of the user's, message by message, with their files; never blank without one.
    pub(super) texts: Vec<given::Content>,
    /// New results of the client's tools, by the ids that it knows.
    pub(super) results: Vec<ClientResult>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
    System,
}

#[derive(Deserialize)]
struct Block<'a> {
    r#type: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
}

/// A call as a client tells it: its id, its tool, and its arguments as JSON text.
type Call = (String, String, String);

/// The content of a message, as far as it is read.
#[derive(Default)]
struct Content {
    words: Vec<String>,
    files: Vec<GivenFile>,
    calls: Vec<Call>,
    results: Vec<ClientResult>,
    /// Why something in it that a user may send is not read.
    unread: Option<&'static str>,
}

/// What `raw` tells. Where `is_unawaited` finds the call of a result at its end, those are told with all else, and only the words
/// beside them are new.
///
/// # Errors
/// What it must be.
pub(super) fn read(raw: &RawValue, is_unawaited: impl Fn(&str) -> bool) -> Result<Told, String> {
    let list = json::objects::<Message<'_>>(raw, "a list of messages")?;
    let mut told = Told::default();
    let mut messages = Vec::with_capacity(list.len());
    for (at, message) in list.into_iter().enumerate() {
        let role = message.as_ref().and_then(|message| parse::<Role>(message.role?.get()).ok());
        match message.zip(role) {
            Some((message, Role::System)) => told.instructions.extend(text_in(message.content, &TEXT)),
            Some((message, role)) => messages.push((at, role, message.content)),
            None => return Err(format!("must have one of the roles user, assistant or system in message {at}")),
        }
    }
    let begin = messages.iter().rposition(|(_, role, _)| *role == Role::Assistant).map_or(0, |last| last + 1);
    let (before, new) = messages.split_at(begin);
    if new.is_empty() {
        return Err("must end with a message of the user's".to_owned());
    }
    for (at, _, raw) in new {
        let Content { words, files, results, unread, calls: _ } =
            content(*raw).map_err(|reason| format!("must have {reason} in message {at}"))?;
        if let Some(reason) = unread {
            return Err(format!("{reason} (message {at})"));
        }
        told.texts.extend(said(&words, files));
        told.results.extend(results);
    }
    if told.texts.is_empty() && told.results.is_empty() {
        return Err("must end with text that is not blank, or with results of tools".to_owned());
    }
    told.earlier = match told.results.iter().any(|result| is_unawaited(&result.call)) {
        true => {
            told.results.clear();
            earlier(&messages, begin)
        }
        false => earlier(before, begin),
    };
    Ok(told)
}

/// What was said before; what else there was has been refused or answered when it was new. Words from message `new` on are new.
fn earlier(messages: &[(usize, Role, Option<&RawValue>)], new: usize) -> Vec<ClientMessage> {
    let (mut earlier, mut turn) = (Vec::new(), ToldTurn::default());
    for (at, (_, role, raw)) in messages.iter().enumerate() {
        let Content { words, files, calls, results, unread: _ } = content(*raw).unwrap_or_default();
        match role {
            Role::User => {
                for ClientResult { call, content: text, files, is_error, said: _ } in results {
                    turn.result(&call, given::Content { text, files }, is_error);
                }
                // Further results may follow in the next message.
                if let Some(said) = said(&words, files).filter(|_| at < new) {
                    earlier.extend(turn.end());
                    earlier.extend(said.of_user());
                }
            }
            Role::Assistant => {
                earlier.extend(turn.end());
                earlier.extend(joined(&words).map(ClientMessage::Assistant));
                calls.into_iter().for_each(|(id, tool, arguments)| turn.call(id, tool, arguments));
            }
            Role::System => {}
        }
    }
    earlier.extend(turn.end());
    earlier
}

/// What a user says, if it is something.
fn said(words: &[String], files: Vec<GivenFile>) -> Option<given::Content> {
    let text = joined(words).unwrap_or_default();
    (!text.is_empty() || !files.is_empty()).then_some(given::Content { text, files })
}

fn joined(words: &[String]) -> Option<String> {
    Some(words.join("\n")).filter(|words| !words.trim().is_empty())
}

/// A content, which is a text or a list of blocks.
///
/// # Errors
/// What it must have.
fn content(raw: Option<&RawValue>) -> Result<Content, &'static str> {
    let raw = raw.ok_or("a content")?;
    if let Ok(text) = parse::<String>(raw.get()) {
        return Ok(Content { words: vec![text], ..Content::default() });
    }
    const SHAPE: &str = "a text, or a list of blocks that have types,";
    let blocks: Vec<&RawValue> = parse(raw.get()).map_err(|_| SHAPE)?;
    let mut content = Content::default();
    for raw in blocks {
        let block: Block<'_> = json::fields(raw).ok_or(SHAPE)?;
        match block.r#type.as_str() {
            "text" => content.words.extend(block.text),
            "tool_use" => content.calls.extend(call(block)),
            "tool_result" => content.results.push(result(block)?),
            // Nobody but the assistant has these.
            "thinking" | "redacted_thinking" => {}
            kind if kind.ends_with("_tool_use") || kind.ends_with("_tool_result") => {}
            _ => match given::of_part(raw) {
                Ok(file) => content.files.push(file),
                Err(reason) => content.unread = Some(reason),
            },
        }
    }
    Ok(content)
}

/// A call of a tool of the client's.
fn call(block: Block<'_>) -> Option<Call> {
    let input = block.input.map_or_else(|| "{}".to_owned(), |input| input.get().to_owned());
    Some((block.id?, block.name?, input))
}

fn result(block: Block<'_>) -> Result<ClientResult, &'static str> {
    let call = block.tool_use_id.filter(|id| !id.is_empty()).ok_or("a tool_use_id in each result")?;
    let (content, files) =
        result_content(block.content).ok_or("a text, or a list of blocks that have types, in each result")?;
    Ok(ClientResult { call, content, files, is_error: block.is_error.unwrap_or(false), said: None })
}

/// A result as text and files. What is neither is named, so that the model knows that something was there.
fn result_content(content: Option<&RawValue>) -> Option<(String, Vec<GivenFile>)> {
    let Some(content) = json::given(content) else { return Some(Default::default()) };
    if let Ok(text) = parse(content.get()) {
        return Some((text, Vec::new()));
    }
    let blocks: Vec<&RawValue> = parse(content.get()).ok()?;
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for raw in blocks {
        let block: Block<'_> = json::fields(raw)?;
        match (block.r#type.as_str(), block.text) {
            ("text", Some(text)) => texts.push(text),
            _ => match given::of_part(raw) {
                Ok(file) => files.push(file),
                Err(_) => texts.push("[something that cannot be read here]".to_owned()),
            },
        }
    }
    Some((texts.join("\n"), files))
}
