//! `web_search`: a search engine that speaks SearXNG's JSON
//! (<https://docs.searxng.org/dev/search_api.html>): `GET URL?q=…&format=json`.
//!
//! Its address is the operator's and may be private. What it answers is written by strangers all the same.

use std::time::Duration;

use reqwest::{Client, Url};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::{self, BodyError};
use super::page::is_readable;
use crate::bounded::client::{self, Reach};
use crate::bounded::intake::Intake;
use crate::bounded::json::{self, JsonError, NodeBudget, Wanted};
use crate::bounded::memory::{Exhausted, Kind};

/// Results where the model asks for no number, and at most: the protocol's numbers.
const RESULTS: i64 = 5;
const MOST_RESULTS: i64 = 50;

/// The longest query: engines refuse longer addresses.
const QUERY_CHARS: usize = 1000;

/// The longest texts of one result, in characters, and the longest address, in bytes. Longer texts are cut; an address
/// cannot be, and its result is left out.
const TITLE_CHARS: usize = 300;
const SNIPPET_CHARS: usize = 1000;
const URL_BYTES: usize = 2048;

/// What `web_search` found; as JSON it is what the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "web_search_result")]
pub struct WebResults {
    /// What was asked for.
    pub query: String,
    /// The best first.
    pub results: Vec<WebResult>,
    /// How many there are here.
    pub count: usize,
}

/// One page that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WebResult {
    /// Its title, on one line.
    pub title: String,
    /// Its address: `http` or `https`.
    pub url: String,
    /// Words of it, on one line.
    pub snippet: String,
}

/// Why nothing was searched, in words for the model. The engine's address is never told.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The query is blank or too long.
    #[error("the query must have 1 to {QUERY_CHARS} characters")]
    Query,
    /// There cannot be so many results.
    #[error("num_results must be 1 to {MOST_RESULTS}")]
    Number,
    /// The time is over.
    #[error("the search engine did not answer in time")]
    Timeout,
    /// It does not answer, or broke off.
    #[error("the search engine cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// It answers with no success.
    #[error("the search engine answered HTTP {0}")]
    Status(u16),
    /// The body could not be read.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// It says too much.
    #[error("the search engine's answer is too long")]
    TooLong,
    /// It is no JSON, or too much of it.
    #[error("the search engine's answer cannot be read as the JSON that it should be")]
    Json(#[source] JsonError),
    /// It is JSON of another shape.
    #[error("the search engine's answer has no list of results")]
    Shape,
    /// No memory is left for it.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

impl SearchError {
    /// The protocol's code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Query | Self::Number => "bad_params",
            Self::Timeout
            | Self::Unreachable(_)
            | Self::Status(_)
            | Self::Body(_)
            | Self::TooLong
            | Self::Json(_)
            | Self::Shape
            | Self::Exhausted(_) => "exception",
        }
    }
}

/// Asks one search engine.
#[derive(Debug, Clone)]
pub struct Searcher {
    http: Client,
    engine: Url,
    timeout: Duration,
    intake: Intake,
}

/// A result as the engine has it.
#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    title: Option<String>,
    url: String,
    #[serde(default)]
    content: Option<String>,
}

impl Searcher {
    /// Asks the engine at `engine`; `timeout` bounds a whole search, and `intake` reads the answer.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub fn new(engine: Url, timeout: Duration, intake: Intake) -> Result<Self, reqwest::Error> {
        // The engine's address is trusted, and no other that it names.
        let http = client::builder(Reach::Private).retry(reqwest::retry::never()).no_proxy().build()?;
        Ok(Self { http, engine, timeout, intake })
    }

    /// The first `num_results` (5) pages for `query`.
    ///
    /// # Errors
    /// See [`SearchError`].
    pub async fn search(&self, query: &str, num_results: Option<i64>) -> Result<WebResults, SearchError> {
        let asked = query.trim();
        if asked.is_empty() || asked.chars().count() > QUERY_CHARS {
            return Err(SearchError::Query);
        }
        let most = Some(num_results.unwrap_or(RESULTS)).filter(|most| (1..=MOST_RESULTS).contains(most));
        let most = most.and_then(|most| usize::try_from(most).ok()).ok_or(SearchError::Number)?;
        let mut url = self.engine.clone();
        url.query_pairs_mut().append_pair("q", asked).append_pair("format", "json");
        let answered = tokio::time::timeout(self.timeout, self.ask(url, most)).await;
        let results = answered.map_err(|_| SearchError::Timeout)??;
        Ok(WebResults { query: query.to_owned(), count: results.len(), results })
    }

    async fn ask(&self, url: Url, most: usize) -> Result<Vec<WebResult>, SearchError> {
        let sent = self.http.get(url).send().await;
        let response = sent.map_err(|error| SearchError::Unreachable(error.without_url()))?;
        if !response.status().is_success() {
            return Err(SearchError::Status(response.status().as_u16()));
        }
        let mut held = self.intake.memory().reserve(Kind::Json, 0)?;
        let body = body::read(response, &mut held).await?;
        if !body.is_whole {
            return Err(SearchError::TooLong);
        }
        let size = body.bytes.len();
        let work = move || {
            let fields = ["title", "url", "content"].map(|name| Wanted::field(name, Wanted::All));
            let wanted = Wanted::field("results", fields.into_iter().fold(Wanted::nothing(), Wanted::and));
            let mut budget = NodeBudget::for_bytes(size, Some(held));
            let text = json::utf8(&body.bytes).map_err(SearchError::Json)?;
            read(json::read(text, &wanted, &mut budget).map_err(SearchError::Json)?, most)
        };
        self.intake.work(size, work).await
    }
}

/// The first results of an answer. One of another shape, or without an address that can be fetched, is left out.
fn read(answer: Value, most: usize) -> Result<Vec<WebResult>, SearchError> {
    let Value::Object(mut fields) = answer else { return Err(SearchError::Shape) };
    let Some(Value::Array(found)) = fields.remove("results") else { return Err(SearchError::Shape) };
    let results = found.into_iter().filter_map(|one| {
        let Found { title, url, content } = Found::deserialize(one).ok()?;
        let url = Some(url).filter(|url| url.len() <= URL_BYTES).and_then(|url| Url::parse(&url).ok())?;
        let title = one_line(&title.unwrap_or_default(), TITLE_CHARS);
        let snippet = one_line(&content.unwrap_or_default(), SNIPPET_CHARS);
        matches!(url.scheme(), "http" | "https").then(|| WebResult { title, url: url.into(), snippet })
    });
    Ok(results.take(most).collect())
}

/// `text` without control characters, its blanks as one space each, cut after `most` characters.
fn one_line(text: &str, most: usize) -> String {
    // Each word takes a character at least, so that no more of them are looked at than are needed.
    let words: Vec<_> = text.split_whitespace().take(most).collect();
    words.join(" ").chars().filter(|c| is_readable(*c)).take(most).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn urls(answer: Value) -> Result<Vec<String>, String> {
        let read = read(answer, 50).map_err(|error| error.to_string())?;
        Ok(read.into_iter().map(|result| result.url).collect())
    }

    #[test]
    fn what_is_no_result_is_left_out() {
        let good = json!({"url": "https://a.test/", "title": null});
        let long = format!("https://a.test/{}", "x".repeat(URL_BYTES));
        let bad = [
            json!(null),
            json!([]),
            json!("https://a.test/"),
            json!({"title": "without an address"}),
            json!({"url": 7}),
            json!({"url": "https://a.test/", "title": ["a list"]}),
            json!({"url": "javascript:alert(1)"}),
            json!({"url": "file:///etc/passwd"}),
            json!({"url": "/relative"}),
            json!({"url": long}),
        ];
        let entries: Vec<Value> = bad.into_iter().chain([good]).collect();
        assert_eq!(urls(json!({"results": entries, "more": 1})), Ok(vec!["https://a.test/".to_owned()]));
        assert_eq!(urls(json!({"results": []})), Ok(vec![]));
        for answer in [json!([]), json!({}), json!("x"), json!({"results": {}}), json!({"results": null})] {
            assert_eq!(urls(answer), Err("the search engine's answer has no list of results".to_owned()));
        }
    }

    #[test]
    fn texts_are_cut_to_one_line() {
        assert_eq!(one_line("  a\n\tb\0\u{1b}[31mc \u{a0} d ", 100), "a b[31mc d");
        assert_eq!(one_line(&"é ".repeat(1000), 5), "é é é");
    }
}
