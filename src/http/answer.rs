//! A run as one JSON document, for clients that do not read streams.

use std::convert::Infallible;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use super::Services;
use super::problem::Problem;
use super::views::{ErrorBody, RunBody, UsageBody};
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::run::{RunRecord, RunState};
use crate::runs::Attached;
use crate::runs::log::ring::Next;

/// The whole answer.
#[derive(Serialize)]
struct AnswerBody {
    run_id: String,
    conversation_id: String,
    state: &'static str,
    /// What the last turn said.
    message: String,
    artifacts: Vec<ArtifactBody>,
    usage: UsageBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

#[derive(Serialize)]
struct ArtifactBody {
    kind: String,
    payload: Value,
}

/// 202 with the run of a background request, which goes on by itself.
pub(super) async fn accepted(services: &Services, owner: &Owner, attached: &Attached) -> Result<Response, Problem> {
    let run = services.runs.find(owner, attached.run).await?.ok_or_else(Problem::no_such_run)?;
    let place = HeaderValue::from_str(&format!("/v1/agent/runs/{}", attached.run)).map_err(|_| Problem::internal())?;
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], Json(RunBody::of(&run))).into_response())
}

/// 200 with the answer when the run has ended, however it did: `state` and `error` tell. Until then a line break goes out now and
/// then, which JSON allows, so that no proxy takes the silence for a dead connection.
pub(super) fn whole(services: &Services, owner: Owner, attached: Attached) -> Response {
    let waiting = Waiting { services: services.clone(), owner, attached, said: Said::default(), done: false };
    let body = Body::from_stream(stream::unfold(waiting, |mut waiting| async move {
        let piece = waiting.next_piece().await?;
        Some((Ok::<_, Infallible>(piece), waiting))
    }));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, body).into_response()
}

struct Waiting {
    services: Services,
    owner: Owner,
    attached: Attached,
    said: Said,
    done: bool,
}

/// What a run has said so far.
#[derive(Default)]
struct Said {
    message: String,
    artifacts: Vec<ArtifactBody>,
    end: Option<AgentEvent>,
}

impl Waiting {
    async fn next_piece(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let all = self.said.all(&mut self.attached);
        match self.services.keep_alive {
            None => all.await,
            Some(silence) => {
                if timeout(silence, all).await.is_err() {
                    return Some(Bytes::from_static(b"\n"));
                }
            }
        }
        self.done = true;
        Some(Bytes::from(self.document().await))
    }

    async fn document(&mut self) -> Vec<u8> {
        let record = match self.services.runs.find(&self.owner, self.attached.run).await {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(error = %Causes(&error), run.id = %self.attached.run, "run not read for its answer");
                None
            }
        };
        let (state, error) = self.outcome(record.as_ref());
        let usage = match &self.said.end {
            Some(AgentEvent::Finished { usage }) => *usage,
            Some(_) | None => record.map(|record| record.usage).unwrap_or_default(),
        };
        let body = AnswerBody {
            run_id: self.attached.run.to_string(),
            conversation_id: self.attached.conversation.to_string(),
            state: state.name(),
            message: std::mem::take(&mut self.said.message),
            artifacts: std::mem::take(&mut self.said.artifacts),
            usage: UsageBody::of(usage),
            error,
        };
        serde_json::to_vec(&body).unwrap_or_else(|error| {
            // Texts, numbers and JSON values always serialise.
            tracing::error!(%error, "answer not written");
            b"null".to_vec()
        })
    }

    /// How the run ended: as its stream said, or, where that was lost, as the store says.
    fn outcome(&self, record: Option<&RunRecord>) -> (RunState, Option<ErrorBody>) {
        let end = self.said.end.clone().or_else(|| record?.end());
        match end {
            Some(AgentEvent::Finished { .. }) => (record.map_or(RunState::Completed, |record| record.state), None),
            Some(AgentEvent::Failed(failure)) => (RunState::Failed, Some(ErrorBody::of(&failure))),
            Some(AgentEvent::Cancelled) => (RunState::Cancelled, None),
            Some(_) | None => (record.map_or(RunState::Interrupted, |record| record.state), None),
        }
    }
}

impl Said {
    /// Takes everything in until the run has ended. Dropping the future loses nothing.
    async fn all(&mut self, attached: &mut Attached) {
        while let Next::Event { event, .. } = attached.next().await {
            match &*event {
                AgentEvent::TurnStarted { .. } => self.message.clear(),
                AgentEvent::TextDelta { text } => self.message.push_str(text),
                AgentEvent::Artifact(artifact) => self
                    .artifacts
                    .push(ArtifactBody { kind: artifact.kind.to_string(), payload: artifact.payload.clone() }),
                AgentEvent::ThinkingDelta { .. }
                | AgentEvent::ToolCallStarted { .. }
                | AgentEvent::ToolCallFinished { .. } => {}
                AgentEvent::Finished { .. }
                | AgentEvent::Failed(_)
                | AgentEvent::Cancelled
                | AgentEvent::Interrupted => {
                    self.end = Some((*event).clone());
                    return;
                }
            }
        }
    }
}
