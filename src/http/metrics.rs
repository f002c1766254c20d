//! `GET /metrics`: the page for Prometheus, on the product's port or on one of its own. Without a token, as Prometheus
//! expects it, and therefore off unless an operator chooses a port.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::observe::prometheus::Page;

/// Prometheus' text format, version 0.0.4.
const TYPE: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The routes of a port of its own; also those that the product's port gets.
pub fn routes<S: Clone + Send + Sync + 'static>(page: Page) -> Router<S> {
    Router::new().route("/metrics", get(show).with_state(page))
}

async fn show(State(page): State<Page>) -> impl IntoResponse {
    let headers = [(header::CONTENT_TYPE, TYPE), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (headers, page.text())
}
