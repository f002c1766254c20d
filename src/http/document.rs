//! A run as one document of its protocol. The status waits for the outcome, so that a run that fails is an error like any
//! other. A silence that proxies would take for a dead connection is filled after a while: from then on the status is
//! 200, and a failure is told in its body.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use tokio::time::timeout;

use super::Services;
use super::problem::openai_chat::NO_RETRY;
use crate::agent::ports::usage::QUOTA_EXCEEDED;
use crate::dialect::reply::{Document, Outcome};
use crate::runs::Attached;
use crate::runs::log::ring::Next;

/// How many times the silence of a stream is waited for the outcome before anything is sent: with the usual 15 seconds
/// less than the minute after which the usual proxies give up.
const SILENCES: u32 = 3;

/// The answer when the run has ended. Dropping the future, or the body, lets go of the run.
pub(super) async fn whole(services: &Services, attached: Attached, document: Box<dyn Document>) -> Response {
    let mut waiting = Waiting { services: services.clone(), attached, document, done: false };
    let outcome = match services.keep_alive {
        None => Some(waiting.outcome().await),
        Some(silence) => timeout(silence.saturating_mul(SILENCES), waiting.outcome()).await.ok(),
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    match outcome {
        Some(Outcome::Whole(document)) => (headers, document).into_response(),
        // What was asked is kept, and the server has tried what it could: sent again by itself it would only be asked twice.
        Some(Outcome::Failed(failure, document)) => {
            (status_of(&failure.code), headers, [NO_RETRY], document).into_response()
        }
        None => (headers, waiting.body()).into_response(),
    }
}

struct Waiting {
    services: Services,
    attached: Attached,
    document: Box<dyn Document>,
    done: bool,
}

impl Waiting {
    /// Takes everything in until the run has ended, or what comes next is missing. Dropping the future loses nothing.
    async fn outcome(&mut self) -> Outcome {
        let Self { services, attached, document, .. } = self;
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

    /// Line breaks, which JSON allows, until the document comes.
    fn body(self) -> Body {
        Body::from_stream(stream::unfold((self, true), |(mut waiting, is_first)| async move {
            let piece = waiting.next_piece(is_first).await?;
            Some((Ok::<_, Infallible>(piece), (waiting, false)))
        }))
    }

    async fn next_piece(&mut self, is_first: bool) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let silence = if is_first { Duration::ZERO } else { self.services.keep_alive.unwrap_or(Duration::MAX) };
        match timeout(silence, self.outcome()).await {
            Ok(outcome) => {
                self.done = true;
                Some(Bytes::from(outcome.into_body()))
            }
            Err(_) => Some(Bytes::from_static(b"\n")),
        }
    }
}

/// The status of a run that failed with that code.
fn status_of(code: &str) -> StatusCode {
    match code {
        "context_too_long" => StatusCode::BAD_REQUEST,
        QUOTA_EXCEEDED | "provider_rate_limited" | "provider_quota_exceeded" => StatusCode::TOO_MANY_REQUESTS,
        "run_timeout" | "provider_timeout" => StatusCode::GATEWAY_TIMEOUT,
        "store_unavailable" | "interrupted" | "resync" => StatusCode::SERVICE_UNAVAILABLE,
        code if code.starts_with("provider_") || code.starts_with("model_") => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::status_of;

    #[test]
    fn a_failed_run_has_the_status_of_its_cause() {
        let rows = [
            ("context_too_long", 400, "the client can change that"),
            ("provider_rate_limited", 429, "the model service has too much to do"),
            ("provider_timeout", 504, "the model service takes too long"),
            ("provider_truncated", 502, "the model service broke off"),
            ("model_refused", 502, "the model said no"),
            ("store_unavailable", 503, "not now"),
            ("max_turns", 500, "a bound of ours"),
            ("internal", 500, "our own fault"),
        ];
        for (code, status, reason) in rows {
            assert_eq!(status_of(code).as_u16(), status, "{reason}");
        }
    }
}
