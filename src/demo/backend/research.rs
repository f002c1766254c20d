//! The routes of the research desk. A scan is a search that takes its time and tells how far it is, one JSON object a line.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::json;

use super::caller::AnyUser;
use super::error::ApiError;
use super::extract::{Body as JsonBody, Params, PathOf};
use super::records::research::{Article, Report, Research};
use super::state::Demo;

/// Articles in one answer.
const MOST: usize = 20;

/// How long one step takes: long enough to be seen.
const STEP: Duration = Duration::from_millis(150);

/// What is looked through, in order.
const SHELVES: [&str; 4] = ["recent issues", "reviews", "trials", "preprints"];

/// `GET /v1/research/articles?q=&limit=`: those with the most words of `q`, best first.
pub async fn articles(State(demo): State<Arc<Demo>>, _: AnyUser, params: Params) -> Result<Response, ApiError> {
    let limit: usize = params.parse("limit")?.unwrap_or(5);
    let found = demo.records().research.search(params.text("q").unwrap_or_default());
    let total = found.len();
    let items: Vec<Article> = found.into_iter().take(limit.min(MOST)).collect();
    Ok(Json(json!({"items": items, "total": total})).into_response())
}

/// `GET /v1/research/articles/{id}`.
pub async fn article(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<u32>) -> Result<Response, ApiError> {
    let article = demo.records().research.articles.iter().find(|article| article.id == id).cloned();
    Ok(Json(article.ok_or_else(|| ApiError::not_found("article not found"))?).into_response())
}

#[derive(Debug, Deserialize)]
pub struct Scan {
    #[serde(default)]
    query: String,
}

/// `POST /v1/research/articles/scan`: lines of progress, then `{"result": …}` with the articles.
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

/// `GET /v1/research/streams`.
pub async fn streams(State(demo): State<Arc<Demo>>, _: AnyUser) -> Response {
    let streams = demo.records().research.streams.clone();
    Json(json!({ "items": streams })).into_response()
}

/// `GET /v1/research/streams/{id}`.
pub async fn stream(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<u32>) -> Result<Response, ApiError> {
    let stream = demo.records().research.streams.iter().find(|stream| stream.id == id).cloned();
    Ok(Json(stream.ok_or_else(no_such_stream)?).into_response())
}

/// `POST /v1/research/streams/{id}/archive`: nothing new is looked for any more.
pub async fn archive(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<u32>) -> Result<Response, ApiError> {
    let mut records = demo.records();
    let stream = records.research.streams.iter_mut().find(|stream| stream.id == id).ok_or_else(no_such_stream)?;
    stream.is_archived = true;
    Ok(Json(stream.clone()).into_response())
}

/// `GET /v1/research/reports?stream_id=`.
pub async fn reports(State(demo): State<Arc<Demo>>, _: AnyUser, params: Params) -> Result<Response, ApiError> {
    let stream: Option<u32> = params.parse("stream_id")?;
    let records = demo.records();
    let found = records.research.reports.iter().filter(|report| stream.is_none_or(|id| report.stream_id == id));
    let items: Vec<Report> = found.cloned().collect();
    Ok(Json(json!({ "items": items })).into_response())
}

/// `GET /v1/research/reports/{id}`, its articles with it.
pub async fn report(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<u32>) -> Result<Response, ApiError> {
    let records = demo.records();
    let Research { reports, articles, .. } = &records.research;
    let report = reports.iter().find(|report| report.id == id).ok_or_else(no_such_report)?;
    let articles: Vec<&Article> = articles.iter().filter(|article| report.article_ids.contains(&article.id)).collect();
    let mut body = json!(report);
    body["articles"] = json!(articles);
    Ok(Json(body).into_response())
}

/// `DELETE /v1/research/reports/{id}`. Whoever asks for it has had it approved by an administrator: the tool says so.
pub async fn delete_report(
    State(demo): State<Arc<Demo>>,
    _: AnyUser,
    PathOf(id): PathOf<u32>,
) -> Result<StatusCode, ApiError> {
    let mut records = demo.records();
    let reports = &mut records.research.reports;
    let at = reports.iter().position(|report| report.id == id).ok_or_else(no_such_report)?;
    reports.remove(at);
    Ok(StatusCode::NO_CONTENT)
}

fn no_such_stream() -> ApiError {
    ApiError::not_found("stream not found")
}

fn no_such_report() -> ApiError {
    ApiError::not_found("report not found")
}
