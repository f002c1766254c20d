//! The Gemini API's JSON: the request, written from the history by reference, and the chunks of its stream. An unknown
//! field in a request is refused; in a chunk any field may be missing.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::thinking::{Generation, Held, ThinkingConfig};
use crate::agent::ports::llm::{ChatRequest, MustCall, SentFiles};
use crate::bounded::json::parse;
use crate::chat::answer_format::AnswerFormat;
use crate::chat::file::FileRef;
use crate::chat::message::{AssistantPart, ModelOrigin, Replay};
use crate::chat::tool::{ToolCall, ToolDef};
use crate::llm::failure::ErrorField;
use crate::llm::few::Few;
use crate::llm::files::{Data, Piece, pieces, returned_by};
use crate::llm::history::{self, Arguments, AssistantTurn, CallResult, Entry};
use crate::llm::{form, lenient, schema};

/// What the vendor documents for calls of a history that another model made: Gemini 3 refuses a call without a signature.
/// It also stands on a call whose own signature came with another part.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// The body of `POST …:streamGenerateContent`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SystemInstruction>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Debug, Serialize)]
struct SystemInstruction {
    parts: [TextPart; 1],
}

#[derive(Debug, Serialize)]
struct TextPart {
    text: String,
}

#[derive(Debug, Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(flatten)]
    kind: PartKind<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Signature<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum PartKind<'a> {
    Text(Cow<'a, str>),
    InlineData(Blob<'a>),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

/// The bytes of a picture or a document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'static str,
    data: Data<'a>,
}

/// What a function has made beside its response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponsePart<'a> {
    inline_data: Blob<'a>,
}

#[derive(Debug)]
enum Signature<'a> {
    Theirs(&'a Replay),
    Foreign,
}

impl Serialize for Signature<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // Kept as the JSON string it came as.
            Self::Theirs(replay) => replay.raw().serialize(serializer),
            Self::Foreign => serializer.serialize_str(FOREIGN_SIGNATURE),
        }
    }
}

#[derive(Debug, Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    args: Arguments<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct FunctionResponse<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    response: Response<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<ResponsePart<'a>>,
}

/// The vendor takes an object only, with a key that says how it went.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Response<'a> {
    Output(ToolResponse<'a>),
    Error(ToolResponse<'a>),
}

/// A result that is JSON goes in as such: the model need not read it through a second layer of quotes.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ToolResponse<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<FunctionDeclaration<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    /// JSON Schema; the older `parameters` refuses the whole request over any keyword it does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<Cow<'a, Value>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: FunctionCallingConfig<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionCallingConfig<'a> {
    mode: CallingMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

/// Which functions may be called; without a word about it the model decides.
#[derive(Debug, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum CallingMode {
    Any,
    None,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Cow<'a, Value>>,
}

/// The only type besides text.
const JSON: &str = "application/json";

impl<'a> Request<'a> {
    /// The request of `chat` to the model of `origin`.
    pub(super) fn new(chat: &ChatRequest<'a>, origin: &ModelOrigin) -> Self {
        let generation = Generation::from_model(&origin.model);
        let mut contents = Vec::new();
        for entry in history::entries(chat.messages, origin) {
            match entry {
                Entry::User(said) => {
                    let mut parts = file_parts(said.files, chat.files);
                    if parts.is_empty() || !said.text.trim().is_empty() {
                        parts.push(text_part(said.text));
                    }
                    contents.push(Content { role: "user", parts });
                }
                Entry::Assistant(turn) => {
                    contents.push(Content { role: "model", parts: model_parts(&turn, generation) });
                    if !turn.answers.is_empty() {
                        contents.push(Content { role: "user", parts: responses(&turn, generation, chat.files) });
                    }
                }
            }
        }
        let held = generation.held(form::has_tools(chat));
        // JSON may be a list too.
        let words = chat.format.filter(|format| held != Held::Schema || **format == AnswerFormat::Object);
        let words = words.map(form::of_answer);
        let system = form::system(chat, words.as_deref());
        // Before Gemini 3 a form is refused beside tools, also beside some that may not be called.
        let has_no_tools = chat.format.is_some() && held != Held::Nothing && !generation.holds_beside_tools();
        let tools = match chat.tools {
            [] => Vec::new(),
            _ if has_no_tools => Vec::new(),
            tools => vec![Tools { function_declarations: tools.iter().map(|tool| declaration(tool)).collect() }],
        };
        Self {
            system_instruction: (!system.trim().is_empty())
                .then_some(SystemInstruction { parts: [TextPart { text: system }] }),
            contents,
            tool_config: tool_config(chat).filter(|_| !tools.is_empty()),
            tools,
            generation_config: generation_config(chat, generation, held),
        }
    }

    /// Whether a temperature was wanted that cannot be sent.
    pub(super) fn lacks_temperature(&self, chat: &ChatRequest<'_>) -> bool {
        self.generation_config.temperature.is_none() && chat.model.temperature.is_some()
    }
}

fn tool_config<'a>(chat: &ChatRequest<'a>) -> Option<ToolConfig<'a>> {
    let (mode, allowed_function_names) = match (chat.may_call, chat.must_call) {
        (false, _) => (CallingMode::None, None),
        (true, MustCall::No) => return None,
        (true, MustCall::Any) => (CallingMode::Any, None),
        (true, MustCall::This(name)) => (CallingMode::Any, Some([name])),
    };
    Some(ToolConfig { function_calling_config: FunctionCallingConfig { mode, allowed_function_names } })
}

fn generation_config<'a>(chat: &ChatRequest<'a>, generation: Generation, held: Held) -> GenerationConfig<'a> {
    let (max_tokens, thinking_config) = (chat.model.max_tokens, generation.thinking(chat.model.effort));
    GenerationConfig {
        max_output_tokens: max_tokens.map(|most| thinking_config.map_or(most, |thinking| thinking.limit(most))),
        temperature: chat.model.temperature.filter(|_| generation.takes_temperature()),
        thinking_config,
        response_mime_type: chat.format.filter(|_| held != Held::Nothing).map(|_| JSON),
        response_json_schema: match chat.format {
            Some(AnswerFormat::Schema(answer)) if held == Held::Schema => schema::with_references(&answer.schema),
            Some(AnswerFormat::Schema(_) | AnswerFormat::Object) | None => None,
        },
    }
}

fn text_part(text: Cow<'_, str>) -> Part<'_> {
    Part { kind: PartKind::Text(text), thought: false, thought_signature: None }
}

/// The message's parts in stream order, each with its own signature.
fn model_parts<'a>(turn: &AssistantTurn<'a>, generation: Generation) -> Vec<Part<'a>> {
    let mut parts = Vec::with_capacity(turn.parts.len());
    let mut has_call = false;
    for part in turn.parts {
        let (kind, thought, replay) = match part {
            AssistantPart::Text { text, replay } => (PartKind::Text(text.into()), false, replay.as_ref()),
            AssistantPart::Thinking { text, replay } => (PartKind::Text(text.into()), true, replay.as_ref()),
            AssistantPart::ToolCall { call, replay } => (function_call(call, turn.is_ours), false, replay.as_ref()),
            AssistantPart::Opaque(_) => continue,
        };
        let is_first_call = matches!(kind, PartKind::FunctionCall(_)) && !std::mem::replace(&mut has_call, true);
        let thought_signature = match replay {
            Some(replay) if turn.is_ours => Some(Signature::Theirs(replay)),
            // Of parallel calls only the first is signed.
            _ if is_first_call && generation.wants_signatures() => Some(Signature::Foreign),
            _ => None,
        };
        let is_blank = matches!(&kind, PartKind::Text(text) if thought || text.trim().is_empty());
        if !is_blank || thought_signature.is_some() {
            parts.push(Part { kind, thought, thought_signature });
        }
    }
    parts
}

fn function_call(call: &ToolCall, is_ours: bool) -> PartKind<'_> {
    PartKind::FunctionCall(FunctionCall { name: &call.name, args: Arguments(&call.input), id: id(call, is_ours) })
}

/// The responses to all calls of a turn. What functions have made stands in their responses, from Gemini 3 on; else, and what
/// stands for it in words, behind them.
fn responses<'a>(turn: &AssistantTurn<'a>, generation: Generation, sent: SentFiles<'a>) -> Vec<Part<'a>> {
    let (mut parts, mut behind) = (Vec::with_capacity(turn.answers.len()), Vec::new());
    for answer in &turn.answers {
        let (mut within, mut words) = (Vec::new(), Vec::new());
        for part in file_parts(answer.files, sent) {
            match part.kind {
                PartKind::InlineData(inline_data) if generation.wants_signatures() => {
                    within.push(ResponsePart { inline_data });
                }
                _ => words.push(part),
            }
        }
        if !words.is_empty() {
            behind.push(text_part(returned_by(&answer.call.name, answer.call.id.as_str()).into()));
            behind.append(&mut words);
        }
        parts.push(response_part(answer, turn.is_ours, within));
    }
    parts.append(&mut behind);
    parts
}

/// Files as parts of a message.
fn file_parts<'a>(files: impl IntoIterator<Item = &'a FileRef>, sent: SentFiles<'a>) -> Vec<Part<'a>> {
    let kind = |piece| match piece {
        Piece::Image(data) | Piece::Pdf(_, data) => {
            PartKind::InlineData(Blob { mime_type: data.kind.media_type(), data })
        }
        Piece::Text(text) => PartKind::Text(text),
    };
    let part = |piece| Part { kind: kind(piece), thought: false, thought_signature: None };
    pieces(files, sent).into_iter().map(part).collect()
}

fn response_part<'a>(answer: &CallResult<'a>, is_ours: bool, parts: Vec<ResponsePart<'a>>) -> Part<'a> {
    let result = parse(answer.content).map_or(ToolResponse::Text(answer.content), ToolResponse::Json);
    let response = if answer.is_error { Response::Error(result) } else { Response::Output(result) };
    let kind = PartKind::FunctionResponse(FunctionResponse {
        name: &answer.call.name,
        id: id(answer.call, is_ours),
        response,
        parts,
    });
    Part { kind, thought: false, thought_signature: None }
}

/// Only an id that this vendor gave goes back; calls without one are matched by their order.
fn id(call: &ToolCall, is_ours: bool) -> Option<&str> {
    (is_ours && !call.id.is_minted()).then(|| call.id.as_str())
}

fn declaration(tool: &ToolDef) -> FunctionDeclaration<'_> {
    let parameters_json_schema = schema::with_references(&tool.input_schema);
    FunctionDeclaration { name: &tool.name, description: &tool.description, parameters_json_schema }
}

/// One chunk of the stream.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) candidates: Option<Few<Candidate<'a>>>,
    pub(super) prompt_feedback: Option<PromptFeedback>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) usage_metadata: Option<UsageMetadata>,
    pub(super) error: Option<ErrorField>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(borrow)]
    pub(super) content: Option<ModelContent<'a>>,
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ModelContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Few<ModelPart<'a>>>,
}

/// A part; kinds that are not listed here have none of these fields and are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelPart<'a> {
    pub(super) text: Option<String>,
    pub(super) thought: Option<bool>,
    #[serde(borrow)]
    pub(super) thought_signature: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) function_call: Option<ModelCall<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ModelCall<'a> {
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
    pub(super) id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
}

/// Counters, in every chunk; the last value wins.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) tool_use_prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) cached_content_token_count: Option<u64>,
}
