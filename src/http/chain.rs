//! Runs that follow each other, shown as one stream.

use std::convert::Infallible;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::{StreamExt, stream};

use super::chat::of;
use super::sse::{self, View};
use crate::chat::causes::Causes;
use crate::dialect::RunIds;
use crate::runs::chain::Chain;
use crate::runs::{Attached, StartError};

/// How a protocol shows the runs of a chain.
pub(super) trait Shows: Send + 'static {
    /// How the next run is shown. The first one begins the stream, the last one ends it.
    fn view(&mut self, of: RunIds, is_first: bool, is_last: bool) -> View;

    /// Whether the run that is shown has ended so that the next one may begin.
    fn goes_on(&self) -> bool;

    /// The end of a stream whose next run did not begin.
    fn broken_off(&self, error: &StartError) -> Bytes;
}

/// The runs from `first` on, as one body. Dropping it lets go of the run that lives; the others never begin.
pub(super) fn body(first: Attached, chain: Chain, mut shows: impl Shows) -> Body {
    let view = shows.view(of(&first), true, chain.is_at_its_end());
    let now = sse::body(first, view).into_data_stream();
    let shown = Shown { chain, shows, now: Some(now) };
    Body::from_stream(stream::unfold(shown, |mut shown| async move {
        let piece = shown.next_piece().await?;
        Some((Ok::<_, Infallible>(piece), shown))
    }))
}

struct Shown<S> {
    chain: Chain,
    shows: S,
    /// The run that is shown; `None` when the stream has ended.
    now: Option<BodyDataStream>,
}

impl<S: Shows> Shown<S> {
    async fn next_piece(&mut self) -> Option<Bytes> {
        loop {
            // Its pieces are never errors.
            if let Some(Ok(piece)) = self.now.as_mut()?.next().await {
                return Some(piece);
            }
            self.now = None;
            if !self.shows.goes_on() {
                return None;
            }
            match self.chain.next().await? {
                Ok(attached) => {
                    let view = self.shows.view(of(&attached), false, self.chain.is_at_its_end());
                    self.now = Some(sse::body(attached, view).into_data_stream());
                }
                Err(error) => {
                    tracing::warn!(error = %Causes(&error), "a later run of the request did not begin");
                    return Some(self.shows.broken_off(&error));
                }
            }
        }
    }
}
