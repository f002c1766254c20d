//! A run as one `chat.completion`. The status waits for the outcome, so that a run that fails is an error like any
//! other. A silence that proxies would take for a dead connection is filled after a while: from then on the status is
//! 200, and a failure is an `error` in its body.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use tokio::time::timeout;

use super::refusal;
use crate::dialect::openai_chat::{Answer, Outcome, Telling};
use crate::http::Services;
use crate::http::chat::of;
use crate::http::views::headers_of;
use crate::runs::Attached;
use crate::runs::log::ring::Next;

/// How many times the silence of a stream is waited for the outcome before anything is sent: with the usual 15 seconds
/// less than the minute after which the usual proxies give up.
const SILENCES: u32 = 3;

/// The answer when the run has ended. Dropping the future, or the body, lets go of the run.
pub(super) async fn whole(services: &Services, attached: Attached, telling: Telling) -> Response {
    let ids = headers_of(&attached);
    let answer = services.openai_chat.answer(&of(&attached), telling);
    let mut waiting = Waiting { services: services.clone(), attached, answer, done: false };
    let outcome = match services.keep_alive {
        None => Some(waiting.outcome().await),
        Some(silence) => timeout(silence.saturating_mul(SILENCES), waiting.outcome()).await.ok(),
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    match outcome {
        Some(Outcome::Whole(document)) => (headers, ids, document).into_response(),
        Some(Outcome::Failed(failure)) => (ids, refusal::failed(&failure.code, &failure.message)).into_response(),
        None => (headers, ids, waiting.body()).into_response(),
    }
}

struct Waiting {
    services: Services,
    attached: Attached,
    answer: Answer,
    done: bool,
}

impl Waiting {
    /// Takes everything in until the run has ended, or what comes next is missing. Dropping the future loses nothing.
    async fn outcome(&mut self) -> Outcome {
        let Self { services, attached, answer, .. } = self;
        let runs_elsewhere = !attached.is_local;
        let heard = async {
            while let Next::Event { event, .. } = attached.next().await {
                if let Some(outcome) = answer.hear(&event) {
                    return outcome;
                }
            }
            Outcome::lost()
        };
        tokio::select! {
            biased;
            outcome = heard => outcome,
            () = services.runs.draining().cancelled(), if runs_elsewhere => Outcome::lost(),
        }
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
