//! A response that is read again: from its run's events while they are kept, and else from what the store has.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use tokio::time::timeout;

use super::items;
use super::told::events;
use crate::chat::caller::Owner;
use crate::chat::run::{RunRecord, RunState};
use crate::dialect::RunIds;
use crate::dialect::reply::{Position, Reply};
use crate::dialect::responses::{About, Answer, Telling};
use crate::http::Services;
use crate::http::problem::Problem;
use crate::http::sse;
use crate::runs::log::ring::Next;
use crate::runs::{AttachError, Attached};

/// How long the end of a run that has one may take to come here.
const LAG: Duration = Duration::from_secs(1);

/// 200 with the response as it stands.
pub(super) async fn object(services: &Services, owner: &Owner, record: &RunRecord) -> Result<Response, Problem> {
    let ids = ids_of(record);
    let about = About::new(&ids, &*record.context_type, true, services.dialects.public_url.clone());
    if record.state == RunState::Queued {
        return Ok(Json(about.queued()).into_response());
    }
    let mut answer = Answer::new(about.clone(), &ids);
    let is_whole = match services.runs.attach(owner, record.id, None).await {
        Ok(attached) => hear(attached, record, &mut answer).await,
        Err(AttachError::Evicted | AttachError::TooManyReaders) => false,
        Err(error) => return Err(error.into()),
    };
    if !is_whole {
        answer = Answer::new(about, &ids);
        let messages = items::of_run(services, owner, record).await?;
        events(&messages, record).iter().for_each(|event| answer.take(event));
    }
    Ok(Json(answer.body()).into_response())
}

/// Takes in what there is; whether nothing is missing.
async fn hear(mut attached: Attached, record: &RunRecord, answer: &mut Answer) -> bool {
    loop {
        let next = match attached.try_next() {
            Some(next) => next,
            None if record.state.is_live() => return true,
            None => match timeout(LAG, attached.next()).await {
                Ok(next) => next,
                Err(_) => return false,
            },
        };
        match next {
            Next::Event { event, .. } => answer.take(&event),
            Next::Lost => return false,
            Next::Ended => return true,
        }
    }
}

/// 200 with the stream of a response whose events are not kept any more, made of what the store has.
pub(super) async fn replay(
    services: &Services,
    owner: &Owner,
    record: &RunRecord,
    mut telling: Telling,
) -> Result<Response, Problem> {
    let messages = items::of_run(services, owner, record).await?;
    let mut encoder = telling.encoder(ids_of(record), Position::ALONE);
    let mut out = BytesMut::new();
    encoder.opened(&mut out);
    events(&messages, record).iter().for_each(|event| encoder.encode(None, event, &mut out));
    Ok((sse::HEADERS, out.freeze()).into_response())
}

fn ids_of(record: &RunRecord) -> RunIds {
    RunIds {
        run: record.id,
        conversation: record.conversation.clone(),
        number: None,
        request: record.request_id.clone(),
    }
}
