//! A research desk: streams of interest, the articles found for them, and reports about those. It is here so that pages and
//! tabs have something to show, and stands for a backend whose API nobody wrote a line of Rust for.

mod routes;
mod scan;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};

use super::records::Demo;

/// The file `research.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Research {
    /// What somebody wants to be kept informed about.
    pub streams: Vec<Stream>,
    /// What was written about it.
    pub reports: Vec<Report>,
    /// What was found; made up, every one.
    pub articles: Vec<Article>,
}

/// A stream of interest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    purpose: String,
    query: String,
    /// Whether nothing new is looked for any more.
    #[serde(default)]
    pub is_archived: bool,
}

/// A report about a stream.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Its id.
    pub id: u32,
    stream_id: u32,
    title: String,
    summary: String,
    created_date: String,
    article_ids: Vec<u32>,
}

/// An article.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Article {
    id: u32,
    title: String,
    authors: Vec<String>,
    journal: String,
    year: u16,
    #[serde(rename = "abstract")]
    text: String,
}

impl Research {
    /// The first report that names a stream or an article that is not there, for the seed's check.
    pub fn report_of_nothing(&self) -> Option<u32> {
        let is_whole = |report: &&Report| {
            self.streams.iter().any(|stream| stream.id == report.stream_id)
                && report.article_ids.iter().all(|id| self.articles.iter().any(|article| article.id == *id))
        };
        self.reports.iter().find(|report| !is_whole(report)).map(|report| report.id)
    }
}

impl Article {
    /// How many of `words` it has.
    fn hits(&self, words: &[String]) -> usize {
        let text = format!("{} {} {}", self.title, self.text, self.journal).to_lowercase();
        words.iter().filter(|word| text.contains(word.as_str())).count()
    }
}

/// The routes below `/v1/research`.
pub fn router() -> Router<Arc<Demo>> {
    Router::new()
        .route("/articles", get(routes::articles))
        .route("/articles/{id}", get(routes::article))
        .route("/articles/scan", post(scan::scan))
        .route("/streams", get(routes::streams))
        .route("/streams/{id}", get(routes::stream))
        .route("/streams/{id}/archive", post(routes::archive))
        .route("/reports", get(routes::reports))
        .route("/reports/{id}", get(routes::report).delete(routes::delete_report))
}
