//! The request's id through everything: taken from `X-Request-Id` when it is well formed, else made; in the span, the
//! answer's header, and the body of every problem. What is measured of every request: its span, its metrics,
//! `Server-Timing` for the operator's roles. And headers of every answer, unless it sets them itself: that no cache
//! keeps it, and that its type is what it says.

use axum::body::HttpBody;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

use super::problem::{ErrorFormat, Problem};
use super::share::Shares;
use super::wire_info::WiresByRoute;
use crate::observe::ambient::Ambient;
use crate::observe::metrics;
use crate::observe::trace_context::{TRACEPARENT, TraceParent};
use crate::observe::{names, spans};

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// What it is called in the protocol Messages.
pub(super) const NAME_OF_MESSAGES: HeaderName = HeaderName::from_static("request-id");

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The id of the request at hand, in its extensions.
#[derive(Debug, Clone)]
pub(super) struct RequestId(pub(super) String);

/// Gives the request its id and a slot for its caller, and writes the [`Problem`] that its answer carries.
pub(super) async fn layer(
    State((shares, wires)): State<(Shares, WiresByRoute)>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(&HEADER).and_then(|value| value.to_str().ok());
    let id = match given {
        Some(id) if is_well_formed(id) => id.to_owned(),
        Some(_) | None => Uuid::now_v7().to_string(),
    };
    let slot = shares.slot();
    request.extensions_mut().insert(slot.clone());
    request.extensions_mut().insert(RequestId(id.clone()));
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("unmatched", MatchedPath::as_str);
    let method = request.method().clone();
    let parent = request.headers().get(TRACEPARENT).and_then(|value| value.to_str().ok()).and_then(TraceParent::parse);
    let span = spans::http_request(&id, method.as_str(), request.uri().path(), route, parent);
    let wire = wires.find(route);
    let errors = wire.errors.of_client(request.headers());
    request.extensions_mut().insert(wire);
    let ambient = Ambient::new(id.clone(), wire.dialect);
    let started = std::time::Instant::now();
    let around = ambient.clone();
    let answer = async {
        let mut response = next.run(request).await;
        let status = response.status();
        let problem = response.extensions_mut().remove::<Problem>();
        if let Some(problem) = problem {
            if let Some(limit) = problem.rejection() {
                metrics::rejected(limit);
            }
            let mut written = problem.write(errors, &id);
            // What the router has put on the answer, such as `Allow`, stays.
            for (name, value) in response.headers() {
                if !written.headers().contains_key(name) {
                    written.headers_mut().insert(name, value.clone());
                }
            }
            response = written;
        }
        if let Ok(value) = HeaderValue::from_str(&id) {
            if errors == ErrorFormat::Messages {
                response.headers_mut().insert(NAME_OF_MESSAGES, value.clone());
            }
            response.headers_mut().insert(HEADER, value);
        }
        let headers = response.headers_mut();
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
        if slot.may_see_timing() {
            let is_whole = response.body().size_hint().exact().is_some();
            if let Ok(timing) = HeaderValue::from_str(&around.server_timing(is_whole)) {
                response.headers_mut().insert(SERVER_TIMING, timing);
            }
        }
        response.extensions_mut().insert(slot);
        metrics::http_request(route, method.as_str(), status.as_u16(), started.elapsed());
        spans::tell_current(names::HTTP_STATUS, || i64::from(status.as_u16()));
        if status.is_server_error() {
            spans::tell_current(names::ERROR_TYPE, || status.as_str().to_owned());
        }
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(http.response.status_code = status.as_u16(), duration_ms, "request answered");
        response
    };
    ambient.around(answer).instrument(span).await
}

fn is_well_formed(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !id.is_empty() && id.len() <= 128 && id.bytes().all(allowed)
}
