//! The shapes of the wire, typed. What is not there is left out, but for what this protocol writes as `null`.

use serde::Serialize;
use utoipa::ToSchema;

use crate::chat::stream::Usage;

/// A frame of a stream.
#[derive(Serialize)]
pub(super) struct Chunk<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: &'a [Choice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<UsageBody>,
}

#[derive(Serialize)]
pub(super) struct Choice<'a> {
    pub(super) index: u32,
    pub(super) delta: Delta<'a>,
    /// `null` in all but the last.
    pub(super) finish_reason: Option<&'static str>,
}

#[derive(Serialize, Default)]
pub(super) struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) tool_calls: &'a [CallBody],
}

/// A call that is left to the client.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiToolCall)]
pub(super) struct CallBody {
    /// Its place; only streams tell it, which give a call in pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<usize>,
    pub(super) id: String,
    pub(super) r#type: &'static str,
    pub(super) function: FunctionBody,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiFunction)]
pub(super) struct FunctionBody {
    pub(super) name: String,
    /// JSON text.
    pub(super) arguments: String,
}

/// A whole answer.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiCompletion)]
pub struct Completion<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    #[schema(value_type = Vec<WholeChoice<'a>>)]
    pub(super) choices: [WholeChoice<'a>; 1],
    pub(super) usage: UsageBody,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiChoice)]
pub(super) struct WholeChoice<'a> {
    pub(super) index: u32,
    pub(super) message: MessageBody<'a>,
    #[schema(value_type = Option<Object>)]
    pub(super) logprobs: Option<()>,
    pub(super) finish_reason: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiMessage)]
pub(super) struct MessageBody<'a> {
    pub(super) role: &'static str,
    /// `null` where there are only calls.
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[schema(value_type = Option<Object>)]
    pub(super) refusal: Option<()>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<CallBody>)]
    pub(super) tool_calls: &'a [CallBody],
}

/// Tokens.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiUsage)]
pub(super) struct UsageBody {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiPromptDetails)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiCompletionDetails)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl UsageBody {
    pub(super) fn from_usage(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached_input_tokens },
            completion_tokens_details: CompletionDetails { reasoning_tokens: usage.reasoning_tokens },
        }
    }
}

/// An error: the body of an answer, or the last frame of a stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiError)]
pub struct ErrorBody<'a> {
    error: ErrorFields<'a>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiErrorDetail)]
struct ErrorFields<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

impl<'a> ErrorBody<'a> {
    /// An error of that type; `param` is the field that it is about.
    pub fn new(message: &'a str, r#type: &'a str, param: Option<&'a str>, code: &'a str) -> Self {
        Self { error: ErrorFields { message, r#type, param, code: Some(code) } }
    }
}

/// A profile as a model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiModel)]
pub struct ModelBody<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// Its name for people, which some front ends show in place of the id.
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
}

impl<'a> ModelBody<'a> {
    /// The model of that id. Nobody knows when a profile was made, so `created` is 0.
    pub fn new(id: &'a str, title: Option<&'a str>, description: Option<&'a str>) -> Self {
        Self { id, object: "model", created: 0, owned_by: "switchboard", name: title.unwrap_or(id), description }
    }
}

/// All models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiModelList)]
pub struct ModelListBody<'a> {
    object: &'static str,
    data: Vec<ModelBody<'a>>,
}

impl<'a> ModelListBody<'a> {
    /// These.
    pub fn new(data: Vec<ModelBody<'a>>) -> Self {
        Self { object: "list", data }
    }
}
