//! A research desk: streams of interest, the articles found for them, and reports about those. It is here so that pages and
//! tabs have something to show, and stands for a backend whose API nobody wrote a line of Rust for.

use serde::{Deserialize, Serialize};

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
    /// What it is about.
    pub stream_id: u32,
    title: String,
    summary: String,
    created_date: String,
    /// What it is made of.
    pub article_ids: Vec<u32>,
}

/// An article.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Article {
    /// Its id.
    pub id: u32,
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

    /// The articles that have a word of `query`, those with most of them first; all of them for none.
    pub fn search(&self, query: &str) -> Vec<Article> {
        let words: Vec<String> =
            query.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2).map(str::to_lowercase).collect();
        let mut found: Vec<(usize, &Article)> =
            self.articles.iter().map(|article| (article.hits(&words), article)).collect();
        found.retain(|(hits, _)| words.is_empty() || *hits > 0);
        found.sort_by_key(|(hits, _)| std::cmp::Reverse(*hits));
        found.into_iter().map(|(_, article)| article.clone()).collect()
    }
}

impl Article {
    /// How many of `words` it has.
    fn hits(&self, words: &[String]) -> usize {
        let text = format!("{} {} {}", self.title, self.text, self.journal).to_lowercase();
        words.iter().filter(|word| text.contains(word.as_str())).count()
    }
}
