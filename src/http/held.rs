//! A JSON body whose memory stays reserved until it is sent.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;

use super::problem::Problem;
use super::share::{self, Slot};
use crate::bounded::memory::Reservation;

/// The text of a body, with its memory: the process's and its user's.
struct Held {
    text: Vec<u8>,
    _memory: Reservation,
    _share: share::Bytes,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

/// `body` as an answer. `held` is the memory that it takes; the text gets its own, and is written off the workers.
///
/// # Errors
/// When there is no memory for it, or its user holds too much.
pub(super) async fn json<T: Serialize + Send + 'static>(
    body: T,
    mut held: Reservation,
    slot: &Slot,
) -> Result<Response, Problem> {
    let written = tokio::task::spawn_blocking(move || {
        let bytes = held.bytes();
        // Texts grow by little as JSON.
        held.grow(bytes)?;
        let text = serde_json::to_vec(&body).map_err(|error| {
            tracing::error!(%error, "an answer was not written");
            Problem::internal()
        })?;
        drop(body);
        held.shrink_to(text.len());
        held.grow(text.len() - held.bytes())?;
        Ok::<_, Problem>((text, held))
    });
    let (text, memory) = written.await.unwrap_or_else(|_| Err(Problem::internal()))?;
    let share = slot.bytes(text.len())?;
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((json, Bytes::from_owner(Held { text, _memory: memory, _share: share })).into_response())
}
