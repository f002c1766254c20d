//! A body that comes later: until then its connection is kept open with something that its reader passes over.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::Error;
use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::time::timeout;

enum Coming {
    Awaited(Pin<Box<dyn Future<Output = Body> + Send>>),
    Here(BodyDataStream),
}

/// The body that `later` makes; `filler` goes out at once, and after each `silence` until it is there. Dropping it drops `later`.
pub(super) fn until(
    silence: Option<Duration>,
    filler: &'static [u8],
    later: impl Future<Output = Body> + Send + 'static,
) -> Body {
    let silence = silence.unwrap_or(Duration::MAX);
    let begin = (Coming::Awaited(Box::pin(later)), Duration::ZERO);
    Body::from_stream(stream::unfold(begin, move |(mut coming, wait)| async move {
        loop {
            coming = match coming {
                Coming::Awaited(mut later) => match timeout(wait, later.as_mut()).await {
                    Ok(body) => Coming::Here(body.into_data_stream()),
                    Err(_) => {
                        let piece = Ok::<_, Error>(Bytes::from_static(filler));
                        return Some((piece, (Coming::Awaited(later), silence)));
                    }
                },
                Coming::Here(mut body) => {
                    let piece = body.next().await?;
                    return Some((piece, (Coming::Here(body), silence)));
                }
            };
        }
    }))
}
