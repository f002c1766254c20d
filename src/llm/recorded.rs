//! A vendor's answer read from bytes that are already here: no socket, no clock, and otherwise the very code that reads an
//! answer from the network. Tests replay recordings with it, fuzzers feed it what no vendor would send.

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};

use super::Wire;
use super::answer::{self, Fold, Frames};
use crate::agent::ports::llm::ProviderError;
use crate::chat::stream::StreamEvent;

/// What an answer on `wire` says, its body (a status 200, no content encoding) given in `pieces`, as a connection would
/// deliver it. The last item, and no other, is [`StreamEvent::Finished`] or an error. Never waits.
pub fn events<P: AsRef<[u8]>>(
    wire: impl Into<&'static Wire>,
    pieces: impl IntoIterator<Item = P>,
) -> Vec<Result<StreamEvent, ProviderError>> {
    let pieces = pieces.into_iter().map(|piece| Bytes::copy_from_slice(piece.as_ref())).collect();
    (wire.into().recorded)(pieces)
}

/// What `reader` makes of `pieces`.
pub(super) fn read(pieces: Vec<Bytes>, reader: (impl Frames, impl Fold)) -> Vec<Result<StreamEvent, ProviderError>> {
    let events = answer::events(stream::iter(pieces.into_iter().map(Ok)), None, reader);
    // Every piece is ready, so the whole answer is.
    events.collect().now_or_never().unwrap_or_default()
}
