//! The request's id through everything: taken from `X-Request-Id` when it is well formed, else made; in the span, the answer's
//! header, and the body of every problem.
//!
//! Being the outermost layer, it also ends connections on which a request came in chunks: hyper goes by those and drops a
//! length that contradicts them, so a proxy that went by the length would take what follows for a request of its own.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

use super::chat_stream::refusal;
use super::openai_chat;
use super::problem::Problem;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The id of the request at hand, in its extensions.
#[derive(Debug, Clone)]
pub(super) struct RequestId(pub(super) String);

/// Gives the request its id, and writes whatever [`Problem`] its answer carries.
pub(super) async fn layer(mut request: Request, next: Next) -> Response {
    let given = request.headers().get(&HEADER).and_then(|value| value.to_str().ok());
    let id = match given {
        Some(id) if is_well_formed(id) => id.to_owned(),
        Some(_) | None => Uuid::now_v7().to_string(),
    };
    request.extensions_mut().insert(RequestId(id.clone()));
    let span = tracing::info_span!(
        "http.request",
        request.id = id,
        http.request.method = %request.method(),
        url.path = request.uri().path(),
    );
    let started = std::time::Instant::now();
    let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
    let tells_detail = refusal::speaks_at(request.uri().path());
    let tells_openai = openai_chat::refusal::speaks_at(request.uri().path());
    async {
        let mut response = next.run(request).await;
        let status = response.status();
        let problem = response.extensions_mut().remove::<Problem>();
        if let Some(problem) = problem {
            let mut written = match (tells_detail, tells_openai) {
                (true, _) => problem.write_detail(),
                (false, true) => problem.write_openai(),
                (false, false) => problem.write(&id),
            };
            // What the router has put on the answer, such as `Allow`, stays.
            for (name, value) in response.headers() {
                if !written.headers().contains_key(name) {
                    written.headers_mut().insert(name, value.clone());
                }
            }
            response = written;
        }
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(HEADER, value);
        }
        if is_chunked {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(http.response.status_code = status.as_u16(), duration_ms, "request answered");
        response
    }
    .instrument(span)
    .await
}

fn is_well_formed(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !id.is_empty() && id.len() <= 128 && id.bytes().all(allowed)
}
