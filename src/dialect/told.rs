//! What clients tell of a conversation that they keep themselves, whatever the protocol: texts, calls of their own tools, and
//! how much of them is taken.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bounded::json::parse;
use crate::chat::file::pdf_tokens;
use crate::chat::model::Effort;
use crate::dialect::given::{ClientMessage, Content, ToldCall, content};
use crate::dialect::{DecodeError, Settings, call_ids};

/// Which results at the end of a request are told with all else, since nobody here waits for them.
#[derive(Clone, Copy)]
pub(super) struct Unawaited<'a> {
    /// Whether all of them are: whoever waited for them does not any more. Else those of calls that another server has made.
    pub(super) all: bool,
    /// Whether the profile of that name believes what its clients tell of their own tools.
    pub(super) believes: &'a dyn Fn(&str) -> bool,
}

impl Unawaited<'_> {
    /// Whether the result of the call that the client knows as `id` is one, in a request to `profile`.
    pub(super) fn has(self, profile: Option<&str>, id: &str) -> bool {
        (self.all || call_ids::read(id).is_none()) && profile.is_some_and(self.believes)
    }
}

/// What is asked where a client tells results of calls that nobody here waits for: its model goes on behind them.
pub(super) fn go_on() -> Content {
    Content { text: "Go on.".to_owned(), files: Vec::new() }
}

/// The last of a client's instructions as the question, where it says nothing else: a template with a system message alone.
pub(super) fn as_question(instructions: &mut Vec<String>) -> Option<Content> {
    let last = instructions.iter().rposition(|text| !text.trim().is_empty())?;
    Some(Content { text: instructions.remove(last), files: Vec::new() })
}

/// What a picture in a request counts at most, in bytes of text: a large one has about 1,600 tokens.
const IMAGE_BYTES: usize = 6400;

/// How a PDF document begins in base64: `%PDF-`.
const PDF: &str = "JVBERi0";

/// About how many tokens these parts of a request have: one for four bytes, but for files, whose base64 does not count.
pub(super) fn tokens<'a>(parts: impl IntoIterator<Item = &'a RawValue>) -> usize {
    // A `/` and the end of a line may be escaped.
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_' | '\\');
    let bytes = parts.into_iter().map(|part| {
        let counted = part.get().split_inclusive(|c| !is_base64(c)).map(|run| match run.starts_with(PDF) {
            true => 4 * usize::try_from(pdf_tokens(run.len() as u64 / 4 * 3)).unwrap_or(usize::MAX / 4),
            // Letters that are escaped one by one are text.
            false if run.contains("\\u") => run.len(),
            false => run.len().min(IMAGE_BYTES),
        });
        counted.sum::<usize>()
    });
    bytes.sum::<usize>().div_ceil(4)
}

/// How much is taken of what clients tell.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest message that is to be answered, in bytes; 0 means no limit.
    pub max_message_bytes: usize,
    /// The longest result of a client's own tool, in bytes; 0 means no limit.
    pub max_result_bytes: usize,
    /// How much is taken of a conversation that the client tells, newest first, in bytes; 0 means no limit.
    pub max_history_bytes: usize,
}

impl From<&Settings> for Limits {
    fn from(settings: &Settings) -> Self {
        let Settings { message_bytes, context_bytes, history_bytes, .. } = *settings;
        Self { max_message_bytes: message_bytes, max_result_bytes: context_bytes, max_history_bytes: history_bytes }
    }
}

/// Whether `text`, which stands in `field`, has at most `max_bytes`; 0 means no limit.
///
/// # Errors
/// When it has more.
pub(super) fn fits(field: &'static str, text: &str, max_bytes: usize) -> Result<(), DecodeError> {
    match max_bytes != 0 && text.len() > max_bytes {
        true => Err(DecodeError::TooLarge { field, max_bytes }),
        false => Ok(()),
    }
}

#[derive(Deserialize)]
struct Part {
    r#type: String,
    text: Option<String>,
}

/// A content that is text: a string, or parts of these kinds that are all text. `null` is an empty one.
pub(super) fn words(raw: Option<&RawValue>, kinds: &[&str]) -> Option<String> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Some(String::new()) };
    if let Ok(text) = parse::<String>(raw.get()) {
        return Some(text);
    }
    let all: Vec<Part> = parse(raw.get()).ok()?;
    let is_text = |part: &Part| kinds.contains(&part.r#type.as_str()) && part.text.is_some();
    all.iter().all(is_text).then(|| joined(all, kinds))
}

/// The text in a content, whatever else there is; `None` where it is none at all.
pub(super) fn text_in(raw: Option<&RawValue>, kinds: &[&str]) -> Option<String> {
    words(raw, kinds).or_else(|| Some(joined(parse(raw?.get()).ok()?, kinds)))
}

/// What is said in `raw`, without what cannot be read.
pub(super) fn content_in(raw: Option<&RawValue>, text_kinds: &[&str]) -> Content {
    content(raw, text_kinds).unwrap_or_else(|_| {
        let text = text_in(raw, text_kinds).unwrap_or_default();
        Content { text, files: Vec::new() }
    })
}

fn joined(parts: Vec<Part>, kinds: &[&str]) -> String {
    let texts = parts.into_iter().filter(|part| kinds.contains(&part.r#type.as_str())).filter_map(|part| part.text);
    texts.collect::<Vec<_>>().join("\n")
}

/// The newest messages whose words have at most `max_bytes` together; 0 means all. Calls are bounded where it is known which of
/// them count.
pub(super) fn bounded(mut earlier: Vec<ClientMessage>, max_bytes: usize) -> Vec<ClientMessage> {
    let mut bytes = 0_usize;
    let fitting = earlier.iter().rev().take_while(|message| {
        let words = if matches!(message, ClientMessage::Calls(_)) { 0 } else { message.bytes() };
        bytes = bytes.saturating_add(words);
        max_bytes == 0 || bytes <= max_bytes
    });
    let fitting = fitting.count();
    earlier.split_off(earlier.len() - fitting)
}

/// The calls of one turn of a model while a client's messages are read. Which of them count is decided where the profile and
/// its tools are known.
#[derive(Default)]
pub(super) struct ToldTurn(Vec<Open>);

struct Open {
    id: String,
    tool: String,
    arguments: String,
    result: Option<(Content, bool)>,
}

impl ToldTurn {
    /// A call of the turn.
    pub(super) fn call(&mut self, id: String, tool: String, arguments: String) {
        self.0.push(Open { id, tool, arguments, result: None });
    }

    /// The result of a call of the turn; one of any other call is left out.
    pub(super) fn result(&mut self, id: &str, content: Content, is_error: bool) {
        if let Some(open) = self.0.iter_mut().find(|open| open.id == id && open.result.is_none()) {
            open.result = Some((content, is_error));
        }
    }

    /// Whether a call has its result already: a call behind it is one of the next turn.
    pub(super) fn has_result(&self) -> bool {
        self.0.iter().any(|open| open.result.is_some())
    }

    /// The end of the turn: its calls that have results, in order. The others are left out.
    pub(super) fn end(&mut self) -> Option<ClientMessage> {
        let calls = std::mem::take(&mut self.0).into_iter().filter_map(|Open { id: _, tool, arguments, result }| {
            let (Content { text: result, files }, is_error) = result?;
            Some(ToldCall { tool, arguments, result, files, is_error })
        });
        let calls: Vec<ToldCall> = calls.collect();
        (!calls.is_empty()).then_some(ClientMessage::Calls(calls))
    }
}

/// How much a model is to think, by the names that OpenAI's clients have for it. What has no name here is no wish.
pub(super) fn effort(name: &str) -> Option<Effort> {
    match name {
        "minimal" => Some(Effort::Low),
        "xhigh" => Some(Effort::Max),
        name => Effort::parse(name),
    }
}
