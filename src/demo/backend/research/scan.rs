//! `POST /v1/research/articles/scan`: a search that takes its time and tells how far it is, one JSON object a line.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::json;

use crate::demo::backend::caller::AnyUser;
use crate::demo::backend::extract::Body as JsonBody;
use crate::demo::backend::records::Demo;

/// How long one step takes: long enough to be seen.
const STEP: Duration = Duration::from_millis(150);

/// What is looked through, in order.
const SHELVES: [&str; 4] = ["recent issues", "reviews", "trials", "preprints"];

#[derive(Debug, Deserialize)]
pub struct Scan {
    #[serde(default)]
    query: String,
}

/// Lines of progress, then `{"result": …}` with the articles.
pub async fn scan(State(demo): State<Arc<Demo>>, _: AnyUser, JsonBody(Scan { query }): JsonBody<Scan>) -> Response {
    let found = demo.records().research.search(&query);
    let shelves = SHELVES.len();
    let mut lines: Vec<String> = SHELVES
        .iter()
        .enumerate()
        .map(|(at, shelf)| {
            let so_far = found.len() * (at + 1) / shelves;
            json!({
                "stage": "scanning",
                "message": format!("Looking through {shelf}"),
                "progress": (at + 1) as f64 / (shelves + 1) as f64,
                "data": {"found": so_far},
            })
            .to_string()
        })
        .collect();
    lines.push(json!({"result": {"items": found, "total": found.len()}}).to_string());
    let body = stream::iter(lines).then(|line| async move {
        tokio::time::sleep(STEP).await;
        Ok::<_, Infallible>(Bytes::from(line + "\n"))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(body)).into_response()
}
