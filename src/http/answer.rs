//! A run as one JSON document, for clients that do not read streams.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::Services;
use super::earlier::walk;
use super::problem::Problem;
use super::views::{
    BegunBody, ErrorBody, RunBody, UsageBody, header_of_conversation, header_of_run, header_value, run_state,
};
use crate::agent::ports::conversations::{MessageView, Role};
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;
use crate::chat::payload::Payload;
use crate::chat::run::{RunRecord, RunState};
use crate::chat::stream::Usage;
use crate::dialect::asked::Shape;
use crate::dialect::bodies::{NoticeBody, PayloadBody, SuggestionsBody};
use crate::runs::log::ring::Next;
use crate::runs::{AttachError, Attached, StartError};

/// An answer is one user's, for once.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The whole answer.
#[derive(Serialize, ToSchema)]
#[schema(as = Answer)]
pub(super) struct AnswerBody<'a> {
    run_id: String,
    conversation_id: String,
    #[schema(schema_with = run_state)]
    state: &'static str,
    /// What the last turn said.
    message: String,
    artifacts: Vec<ArtifactBody>,
    /// What its user is to know besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<NoticeBody>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    payloads: Vec<PayloadBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestions: Option<SuggestionsBody>,
    usage: UsageBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Artifact)]
struct ArtifactBody {
    kind: String,
    payload: Value,
}

/// 202 with the run of a background request, which goes on by itself: as it is, or, where that cannot be read, with
/// what is known of it.
pub(super) async fn accepted(services: &Services, owner: &Owner, attached: &Attached) -> Response {
    let location = location(attached.run);
    match services.runs.find(owner, attached.run).await {
        Ok(Some(run)) => (StatusCode::ACCEPTED, location, Json(RunBody::from_run(&run))).into_response(),
        Ok(None) => (StatusCode::ACCEPTED, location, Json(begun(attached))).into_response(),
        Err(error) => {
            tracing::warn!(error = %Causes(&error), run.id = %attached.run, "a run that has begun not read");
            (StatusCode::ACCEPTED, location, Json(begun(attached))).into_response()
        }
    }
}

fn begun(attached: &Attached) -> BegunBody {
    BegunBody::from_run(attached.run, &attached.conversation)
}

fn location(run: RunId) -> [(HeaderName, HeaderValue); 1] {
    [(header::LOCATION, header_value(&format!("/v1/agent/runs/{run}")))]
}

/// The run that the same request began before and whose events cannot be read: a document is made from what the store
/// has.
///
/// # Errors
/// When it is wanted as a stream, still runs, or its answer is not on the newest branch.
pub(super) async fn joined(
    services: &Services,
    owner: &Owner,
    run: RunId,
    why: AttachError,
    shape: Shape,
) -> Result<Response, Problem> {
    let record = match services.runs.find(owner, run).await {
        Ok(record) => record,
        Err(error) => {
            tracing::warn!(error = %Causes(&error), run.id = %run, "a run that was joined not read");
            None
        }
    };
    let is_evicted = matches!(why, AttachError::Evicted);
    let conversation = record.as_ref().map(|record| record.conversation.clone());
    let problem = Problem::from(StartError::Joined { run, why }).about(run, conversation);
    let (Some(record), Shape::Record, true) = (record, shape, is_evicted) else { return Err(problem) };
    let ids = [header_of_run(run), header_of_conversation(&record.conversation)];
    if record.background {
        return Ok((StatusCode::ACCEPTED, ids, location(run), Json(RunBody::from_run(&record))).into_response());
    }
    if record.state.is_live() {
        return Err(problem);
    }
    let message = last_words(services, owner, &record).await?.ok_or(problem)?;
    let body = AnswerBody {
        run_id: run.to_string(),
        conversation_id: record.conversation.to_string(),
        state: record.state.name(),
        message,
        artifacts: Vec::new(),
        notices: Vec::new(),
        payloads: Vec::new(),
        suggestions: None,
        usage: UsageBody::from_usage(record.usage, record.cost),
        error: record.error.as_ref().map(ErrorBody::from_failure),
    };
    Ok((ids, [(header::CACHE_CONTROL, NO_STORE)], Json(body)).into_response())
}

/// The last text of the model in the run, as users see it.
async fn last_words(services: &Services, owner: &Owner, run: &RunRecord) -> Result<Option<String>, Problem> {
    let mut last = None;
    let look = |messages: Vec<MessageView>| {
        let newest = messages.into_iter().rfind(|message| message.id.run == run.id);
        last = newest.map(|message| match message.role {
            Role::User => String::new(),
            Role::Assistant => message.text,
        });
        if last.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    walk(services, owner, &run.conversation, look).await?;
    Ok(last)
}

/// 200 with the answer when the run has ended, however it did: `state` and `error` tell. One that is there soon has its
/// length and whole `Server-Timing` in the head. Of a longer one the head goes out first, and then a line break now and
/// then, which JSON allows, so that no proxy takes the silence for a dead connection.
pub(super) async fn whole(services: &Services, owner: Owner, attached: Attached) -> Response {
    let services = services.clone();
    let mut waiting = Waiting { services, owner, attached, so_far: AnswerSoFar::default(), done: false };
    let soon = waiting.services.keep_alive.map_or(SOON, |silence| silence.min(SOON));
    let body = match timeout(soon, waiting.last()).await {
        Ok(last) => Body::from(waiting.document(&last).await),
        Err(_) => Body::from_stream(stream::unfold(waiting, |mut waiting| async move {
            let piece = waiting.next_piece().await?;
            Some((Ok::<_, Infallible>(piece), waiting))
        })),
    };
    let headers =
        [(header::CONTENT_TYPE, HeaderValue::from_static("application/json")), (header::CACHE_CONTROL, NO_STORE)];
    (headers, body).into_response()
}

/// How long the head of an answer waits for its end; not longer, since it names the run to whoever wants to cancel it.
const SOON: Duration = Duration::from_secs(3);

struct Waiting {
    services: Services,
    owner: Owner,
    attached: Attached,
    so_far: AnswerSoFar,
    done: bool,
}

/// The answer of a run so far.
#[derive(Default)]
struct AnswerSoFar {
    message: String,
    artifacts: Vec<ArtifactBody>,
    notices: Vec<NoticeBody>,
    payloads: Vec<Arc<Payload>>,
    suggestions: Option<SuggestionsBody>,
}

/// Why nothing more is waited for.
enum Last {
    /// The run's terminal event has come.
    End(AgentEvent),
    /// What comes next is missing here, or comes elsewhere: this server stops and another one runs it.
    Missing,
}

impl Waiting {
    async fn next_piece(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let last = match self.services.keep_alive {
            None => self.last().await,
            Some(silence) => match timeout(silence, self.last()).await {
                Ok(last) => last,
                Err(_) => return Some(Bytes::from_static(b"\n")),
            },
        };
        self.done = true;
        Some(Bytes::from(self.document(&last).await))
    }

    /// Takes everything in until nothing more is waited for. Dropping the future loses nothing.
    async fn last(&mut self) -> Last {
        let Self { services, attached, so_far, .. } = self;
        let runs_elsewhere = !attached.is_local;
        tokio::select! {
            biased;
            last = so_far.all(attached) => last,
            () = services.runs.draining().cancelled(), if runs_elsewhere => Last::Missing,
        }
    }

    async fn document(&mut self, last: &Last) -> Vec<u8> {
        let found = match self.services.runs.find(&self.owner, self.attached.run).await {
            Ok(Some(record)) => Found::Run(Box::new(record)),
            Ok(None) => Found::Deleted,
            Err(error) => {
                tracing::warn!(error = %Causes(&error), run.id = %self.attached.run, "run not read for its answer");
                Found::Unknown
            }
        };
        let (state, error) = outcome(last, &found);
        // No event tells it.
        let cost = match &found {
            Found::Run(record) => record.cost,
            Found::Deleted | Found::Unknown => None,
        };
        let usage = match (last, found) {
            (
                Last::End(
                    AgentEvent::Finished { usage }
                    | AgentEvent::AwaitingApproval { usage }
                    | AgentEvent::AwaitingClient { usage, .. },
                ),
                _,
            ) => *usage,
            (Last::End(_) | Last::Missing, Found::Run(record)) => record.usage,
            (Last::End(_) | Last::Missing, Found::Deleted | Found::Unknown) => Usage::default(),
        };
        let payloads = std::mem::take(&mut self.so_far.payloads);
        let body = AnswerBody {
            run_id: self.attached.run.to_string(),
            conversation_id: self.attached.conversation.to_string(),
            state: state.name(),
            message: std::mem::take(&mut self.so_far.message),
            artifacts: std::mem::take(&mut self.so_far.artifacts),
            notices: std::mem::take(&mut self.so_far.notices),
            payloads: payloads.iter().map(|payload| PayloadBody::from_payload(payload)).collect(),
            suggestions: self.so_far.suggestions.take(),
            usage: UsageBody::from_usage(usage, cost),
            error,
        };
        serde_json::to_vec(&body).unwrap_or_else(|error| {
            // Texts, numbers and JSON values always serialise.
            tracing::error!(%error, "answer not written");
            b"null".to_vec()
        })
    }
}

/// What the store has of the run.
enum Found {
    Run(Box<RunRecord>),
    Deleted,
    /// It did not answer.
    Unknown,
}

/// The state of the run, from its stream, which may know it before the store does; where the stream's end is missing,
/// from the store, and then the answer may be incomplete.
fn outcome(last: &Last, found: &Found) -> (RunState, Option<ErrorBody>) {
    match last {
        Last::End(event) => {
            // Nothing but an end is waited for.
            (event.ends_as().unwrap_or(RunState::Completed), event.failure().map(ErrorBody::from_failure))
        }
        Last::Missing => {
            let state = match found {
                Found::Run(record) => record.state,
                Found::Deleted => RunState::Cancelled,
                // No record says that it ended.
                Found::Unknown => RunState::Running,
            };
            (state, Some(ErrorBody::resync()))
        }
    }
}

impl AnswerSoFar {
    /// Takes everything in until the run has ended, or what comes next is missing. Dropping the future loses nothing.
    async fn all(&mut self, attached: &mut Attached) -> Last {
        while let Next::Event { event, .. } = attached.next().await {
            match &*event {
                AgentEvent::TurnStarted { .. } => self.message.clear(),
                AgentEvent::TextDelta { text } => self.message.push_str(text),
                AgentEvent::Notice(notice) => self.notices.push(NoticeBody::of(notice)),
                AgentEvent::Artifact(artifact) => self
                    .artifacts
                    .push(ArtifactBody { kind: artifact.kind.to_string(), payload: artifact.payload.clone() }),
                AgentEvent::PlaceChanged { .. }
                | AgentEvent::State(_)
                | AgentEvent::Summarising
                | AgentEvent::Summarised
                | AgentEvent::TurnEnded { .. }
                | AgentEvent::ThinkingDelta { .. }
                | AgentEvent::ToolCallStarted { .. }
                | AgentEvent::ToolCallReady { .. }
                | AgentEvent::ToolProgress { .. }
                | AgentEvent::ToolCallHeld { .. }
                | AgentEvent::CallDecided { .. }
                | AgentEvent::ToolCallFinished { .. }
                | AgentEvent::Directive(_)
                | AgentEvent::Operation(_)
                | AgentEvent::Plan(_)
                | AgentEvent::Within(_)
                | AgentEvent::RoundEnded
                | AgentEvent::LimitReached
                | AgentEvent::Diagnosed(_)
                | AgentEvent::Observed(_) => {}
                AgentEvent::Payload(payload) => self.payloads.push(Arc::clone(payload)),
                AgentEvent::Suggested(suggestions) => {
                    self.suggestions = Some(SuggestionsBody::from_suggestions(suggestions))
                }
                AgentEvent::Finished { .. }
                | AgentEvent::AwaitingApproval { .. }
                | AgentEvent::AwaitingClient { .. }
                | AgentEvent::Failed(_)
                | AgentEvent::Cancelled
                | AgentEvent::Interrupted => {
                    return Last::End((*event).clone());
                }
            }
        }
        Last::Missing
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorBody, Found, Last, outcome};
    use crate::chat::event::AgentEvent;
    use crate::chat::failure::Failure;
    use crate::chat::ids::{ConversationId, RunId};
    use crate::chat::run::{RunRecord, RunState};
    use crate::chat::stream::Usage;

    fn in_state(state: RunState) -> Found {
        Found::Run(Box::new(RunRecord {
            id: RunId::fresh(),
            conversation: ConversationId::fresh(),
            state,
            context_type: "workflow".to_owned(),
            turns: 0,
            usage: Usage::default(),
            cost: None,
            error: None,
            created_at_ms: 0,
            finished_at_ms: None,
            last_event_id: None,
            request_id: "r".to_owned(),
            background: false,
            direct: false,
            continues: None,
            left: Vec::new(),
        }))
    }

    #[test]
    fn an_end_is_reported_before_the_store_knows_it_and_nothing_else_is_reported_as_one() {
        use RunState::{AwaitingApproval, Cancelled, Completed, Failed, Interrupted, Running};
        let finished = || Last::End(AgentEvent::Finished { usage: Usage::default() });
        let waits = || Last::End(AgentEvent::AwaitingApproval { usage: Usage::default() });
        let internal = || Some(ErrorBody::from_failure(&Failure::internal()));
        let resync = || Some(ErrorBody::resync());
        let rows = [
            (Last::End(AgentEvent::Interrupted), in_state(Running), (Interrupted, None), "not recorded yet"),
            (Last::End(AgentEvent::Cancelled), in_state(Running), (Cancelled, None), "not recorded yet"),
            (
                Last::End(AgentEvent::Failed(Failure::internal())),
                Found::Unknown,
                (Failed, internal()),
                "the stream knows",
            ),
            (finished(), in_state(Running), (Completed, None), "not recorded yet"),
            (waits(), in_state(Running), (AwaitingApproval, None), "it ended with a call that waits"),
            (finished(), Found::Deleted, (Completed, None), "deleted right after"),
            (Last::Missing, in_state(Running), (Running, resync()), "it goes on elsewhere"),
            (Last::Missing, in_state(Completed), (Completed, resync()), "its words may be incomplete"),
            (Last::Missing, Found::Deleted, (Cancelled, resync()), "it is gone"),
            (Last::Missing, Found::Unknown, (Running, resync()), "no record says that it ended"),
        ];
        for (last, found, expected, reason) in rows {
            assert_eq!(outcome(&last, &found), expected, "{reason}");
        }
    }
}
