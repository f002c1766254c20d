//! What runs look like in JSON bodies: serde counterparts of the nouns, which have none by law.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::{Object, Type};

use crate::agent::ports::feedback::KeptFeedback;
use crate::agent::ports::usage::Used;
use crate::chat::cost::Cost;
use crate::chat::day::rfc3339 as time;
use crate::chat::failure::Failure;
use crate::chat::feedback::Feedback;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::run::{RunRecord, RunState};
use crate::chat::stream::Usage;
use crate::runs::Attached;
use crate::runs::starts::Rate;

/// A run.
#[derive(Serialize, ToSchema)]
#[schema(as = Run)]
pub(super) struct RunBody {
    pub(super) id: String,
    pub(super) conversation_id: String,
    #[schema(schema_with = run_state)]
    pub(super) state: &'static str,
    pub(super) turns: u32,
    pub(super) usage: UsageBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorBody>,
    pub(super) created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finished_at: Option<String>,
    /// `null` before the first event.
    pub(super) last_event_id: Option<u64>,
    pub(super) background: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continues: Option<String>,
}

impl RunBody {
    pub(super) fn from_run(run: &RunRecord) -> Self {
        Self {
            id: run.id.to_string(),
            conversation_id: run.conversation.to_string(),
            state: run.state.name(),
            turns: run.turns,
            usage: UsageBody::from_usage(run.usage, run.cost),
            error: run.error.as_ref().map(ErrorBody::from_failure),
            created_at: time(run.created_at_ms),
            finished_at: run.finished_at_ms.map(time),
            last_event_id: run.last_event_id,
            background: run.background,
            continues: run.continues.map(|run| run.to_string()),
        }
    }
}

/// The state of a run, for the description.
pub(super) fn run_state() -> Object {
    Object::builder().schema_type(Type::String).enum_values(Some(RunState::ALL.map(RunState::name))).build()
}

/// A run that has begun, where no more could be read of it.
#[derive(Serialize, ToSchema)]
#[schema(as = BegunRun)]
// It is one, and no run, by having nothing more.
#[serde(deny_unknown_fields)]
pub(super) struct BegunBody {
    id: String,
    conversation_id: String,
    background: bool,
}

impl BegunBody {
    /// A run in the background.
    pub(super) fn from_run(run: RunId, conversation: &ConversationId) -> Self {
        Self { id: run.to_string(), conversation_id: conversation.to_string(), background: true }
    }
}

/// What a run in the background is answered with: the run, or as much as is known of it.
#[derive(ToSchema)]
#[schema(as = AcceptedRun)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes two answers")]
pub(super) enum Accepted {
    Run(RunBody),
    Begun(BegunBody),
}

/// Token counts, and what they cost.
#[derive(Serialize, ToSchema)]
#[schema(as = Usage)]
pub(super) struct UsageBody {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cached_input_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    reasoning_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

impl UsageBody {
    pub(super) fn from_usage(usage: Usage, cost: Option<Cost>) -> Self {
        let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = usage;
        let cost_usd = cost.map(Cost::usd);
        Self { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens, cost_usd }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Counts, and what they cost where models have prices.
#[derive(Serialize, ToSchema)]
pub(super) struct UsedBody {
    runs: u64,
    turns: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_input_tokens: u64,
    cost_usd: f64,
}

impl UsedBody {
    pub(super) fn from_used(used: Used) -> Self {
        let Used { runs, turns, input_tokens, output_tokens, cached_input_tokens, cost } = used;
        Self { runs, turns, input_tokens, output_tokens, cached_input_tokens, cost_usd: cost.usd() }
    }
}

/// What a user thinks of the answer of a run.
#[derive(Serialize, ToSchema)]
#[schema(as = Feedback)]
pub(super) struct FeedbackBody {
    run_id: String,
    /// 1 or -1.
    score: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    given_at: String,
}

impl FeedbackBody {
    pub(super) fn from_kept(kept: KeptFeedback) -> Self {
        let KeptFeedback { run, feedback: Feedback { score, comment, tags }, at_ms } = kept;
        Self { run_id: run.to_string(), score: score.number(), comment, tags, given_at: time(at_ms) }
    }
}

/// Why a run failed, or why an answer is not whole.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Failure)]
pub(super) struct ErrorBody {
    code: String,
    message: String,
}

impl ErrorBody {
    pub(super) fn from_failure(failure: &Failure) -> Self {
        Self { code: failure.code.name().to_owned(), message: failure.message.clone() }
    }

    /// Something is missing here, and the run and its conversation have it.
    pub(super) fn resync() -> Self {
        let message = "Part of this answer is missing here; read the run and its conversation";
        Self { code: "resync".to_owned(), message: message.to_owned() }
    }
}

/// The headers of an answer that shows a run: which it is, and how often its user may begin another one, where that is
/// counted.
pub(super) fn headers_of(attached: &Attached) -> HeaderMap {
    let ids = [header_of_run(attached.run), header_of_conversation(&attached.conversation)];
    ids.into_iter().chain(attached.rate.iter().flat_map(headers_of_rate)).collect()
}

/// The headers of a rate (draft-ietf-httpapi-ratelimit-headers-10): what it is, what is left of it, and in how many
/// seconds that is more.
pub(super) fn headers_of_rate(rate: &Rate) -> [(HeaderName, HeaderValue); 2] {
    let Rate { quota, window_s, remaining, reset_s } = rate;
    [
        (RATE_LIMIT_POLICY, header_value(&format!(r#""starts";q={quota};w={window_s}"#))),
        (RATE_LIMIT, header_value(&format!(r#""starts";r={remaining};t={reset_s}"#))),
    ]
}

/// The header that says what may still come.
pub(super) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The header that says what the limit is.
pub(super) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The name of the header that names a run.
pub(super) const RUN_ID: HeaderName = HeaderName::from_static("x-run-id");

/// The header that names a run.
pub(super) fn header_of_run(run: RunId) -> (HeaderName, HeaderValue) {
    (RUN_ID, header_value(&run.to_string()))
}

/// The header that names a conversation.
pub(super) fn header_of_conversation(conversation: &ConversationId) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static("x-conversation-id"), header_value(conversation.as_str()))
}

/// A header of our ids alone, which are printable ASCII by construction.
pub(super) fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}
