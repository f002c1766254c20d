//! Runs that follow each other, sent as one stream.

use std::convert::Infallible;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::{StreamExt, stream};

use super::Services;
use super::replies::{refusal, view};
use super::sse;
use crate::dialect::reply::{Position, Reply};
use crate::runs::Attached;
use crate::runs::chain::Chain;

/// The runs from `first` on, as one body. Dropping it lets go of the run that lives; the others never begin.
pub(super) fn body(
    services: Services,
    first: Attached,
    chain: Chain,
    number: Option<i64>,
    reply: Box<dyn Reply>,
) -> Body {
    let mut chain_body = ChainBody { services, chain, number, reply, now: None };
    chain_body.show(first, true);
    Body::from_stream(stream::unfold(chain_body, |mut chain_body| async move {
        let piece = chain_body.next_piece().await?;
        Some((Ok::<_, Infallible>(piece), chain_body))
    }))
}

struct ChainBody {
    services: Services,
    chain: Chain,
    number: Option<i64>,
    reply: Box<dyn Reply>,
    /// The run whose events are sent; `None` when the stream has ended.
    now: Option<BodyDataStream>,
}

impl ChainBody {
    fn show(&mut self, run: Attached, is_first: bool) {
        let at = Position { is_first, is_last: self.chain.is_at_its_end() };
        let view = view(&self.services, &mut *self.reply, &run, self.number, at);
        self.now = Some(sse::body(run, view).into_data_stream());
    }

    async fn next_piece(&mut self) -> Option<Bytes> {
        loop {
            // Its pieces are never errors.
            if let Some(Ok(piece)) = self.now.as_mut()?.next().await {
                return Some(piece);
            }
            self.now = None;
            if !self.reply.goes_on() {
                return None;
            }
            if self.chain.is_at_its_end() {
                return None;
            }
            let Some(next) = self.chain.next().await else { return Some(self.reply.finished()) };
            match next {
                Ok(attached) => self.show(attached, false),
                Err(not) => {
                    tracing::warn!(error = %not.cause, "a later run of the request did not begin");
                    return Some(self.reply.broken_off(&refusal(&not, self.chain.request_id())));
                }
            }
        }
    }
}
