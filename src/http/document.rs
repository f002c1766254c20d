//! A run as one document of its protocol. The status waits for the outcome, so that a run that fails is an error like any
//! other. A silence that proxies would take for a dead connection is filled after a while: from then on the status is
//! 200, and a failure is in its body.

use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::problem::openai_chat::NO_RETRY;
use super::{Services, filler};
use crate::chat::failure::FailureCode;
use crate::dialect::reply::{Document, Outcome};
use crate::runs::Attached;
use crate::runs::log::ring::Next;

/// How many times the silence of a stream is waited for the outcome before anything is sent: with the usual 15 seconds
/// less than the minute after which the usual proxies give up.
const SILENCES: u32 = 3;

/// The answer when the run has ended. Dropping the future, or the body, lets go of the run.
pub(super) async fn whole(services: &Services, attached: Attached, document: Box<dyn Document>) -> Response {
    let mut waiting = Waiting { services: services.clone(), attached, document };
    match in_time(services.keep_alive, waiting.outcome()).await {
        Some(Outcome::Whole(document)) => json(document),
        // The message is stored, and the server has tried what it could: a client that repeats it would store it twice.
        Some(Outcome::Failed(failure, document)) => {
            (status_of(failure.code), HEADERS, [NO_RETRY], document).into_response()
        }
        None => padded(services.keep_alive, async move { Body::from(waiting.outcome().await.into_body()) }),
    }
}

/// What `waiting` comes to, while there is no need yet to send anything; else `None`.
pub(super) async fn in_time<T>(silence: Option<Duration>, waiting: impl Future<Output = T>) -> Option<T> {
    match silence {
        None => Some(waiting.await),
        Some(silence) => timeout(silence.saturating_mul(SILENCES), waiting).await.ok(),
    }
}

/// A document that comes later, behind line breaks, which JSON allows.
pub(super) fn padded(silence: Option<Duration>, later: impl Future<Output = Body> + Send + 'static) -> Response {
    (HEADERS, filler::until(silence, b"\n", later)).into_response()
}

/// A document that is there already.
pub(super) fn json(document: Vec<u8>) -> Response {
    (HEADERS, document).into_response()
}

const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

struct Waiting {
    services: Services,
    attached: Attached,
    document: Box<dyn Document>,
}

impl Waiting {
    /// Takes everything in until the run has ended, or what comes next is missing. Dropping the future loses nothing.
    async fn outcome(&mut self) -> Outcome {
        let Self { services, attached, document } = self;
        let runs_elsewhere = !attached.is_local;
        let heard = async {
            while let Next::Event { event, .. } = attached.next().await {
                if let Some(outcome) = document.hear(&event) {
                    return Some(outcome);
                }
            }
            None
        };
        let outcome = tokio::select! {
            biased;
            outcome = heard => outcome,
            () = services.runs.draining().cancelled(), if runs_elsewhere => None,
        };
        outcome.unwrap_or_else(|| document.lost())
    }
}

/// The status of a run that failed with that code.
fn status_of(code: FailureCode) -> StatusCode {
    match code {
        FailureCode::ContextTooLong => StatusCode::BAD_REQUEST,
        FailureCode::QuotaExceeded | FailureCode::ProviderRateLimited | FailureCode::ProviderQuotaExceeded => {
            StatusCode::TOO_MANY_REQUESTS
        }
        FailureCode::DataDenied => StatusCode::FORBIDDEN,
        FailureCode::RunTimeout | FailureCode::ProviderTimeout => StatusCode::GATEWAY_TIMEOUT,
        FailureCode::StoreUnavailable | FailureCode::Interrupted | FailureCode::Resync => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        FailureCode::ModelRefused
        | FailureCode::ModelNotFound
        | FailureCode::ModelFault
        | FailureCode::InvalidAnswer
        | FailureCode::ModelPaused
        | FailureCode::ProviderUnauthorized
        | FailureCode::ProviderUnavailable
        | FailureCode::ProviderRejected
        | FailureCode::ProviderTruncated
        | FailureCode::DataUnavailable
        | FailureCode::WorkspaceUnavailable
        | FailureCode::ProviderMalformed => StatusCode::BAD_GATEWAY,
        FailureCode::Internal
        | FailureCode::RunTooLong
        | FailureCode::MaxTurns
        | FailureCode::ToolCallLimit
        | FailureCode::ToolFailures
        | FailureCode::MaxTokens
        | FailureCode::EmptyAnswer
        | FailureCode::ContentFiltered => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::{FailureCode, status_of};

    #[test]
    fn a_failed_run_has_the_status_of_its_cause() {
        let rows = [
            (FailureCode::ContextTooLong, 400, "the client can change that"),
            (FailureCode::ProviderRateLimited, 429, "the model service has too much to do"),
            (FailureCode::ProviderTimeout, 504, "the model service takes too long"),
            (FailureCode::ProviderTruncated, 502, "the model service broke off"),
            (FailureCode::ModelRefused, 502, "the model refused"),
            (FailureCode::StoreUnavailable, 503, "not now"),
            (FailureCode::MaxTurns, 500, "a bound of ours"),
            (FailureCode::Internal, 500, "our own fault"),
        ];
        for (code, status, reason) in rows {
            assert_eq!(status_of(code).as_u16(), status, "{reason}");
        }
    }
}
