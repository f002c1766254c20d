//! The web for models: `web_fetch` reads one page, `web_search` asks a search engine.
//!
//! ```text
//! address ─vet─▶ resolver: one look-up, all addresses vetted ─▶ answer ─▶ redirect: vetted anew, at most 5
//!                                                                 └─▶ body, bounded ─▶ page: charset, HTML ─▶ text
//! ```
//!
//! **Invariant:** nobody is connected to whose address was not vetted, but for the operator's exceptions.
//! **Invariant:** nothing of a user, a run or this server goes along: no cookie, no token, no referrer.

mod body;
mod fetch;
mod html;
mod page;
mod resolver;
mod search;
mod tools;

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::toolsets::Toolset;

/// The tools of the web.
pub const TOOLSET: Toolset = Toolset { name: "web", page: Vec::new, tools: tools::tools, reader: None };

/// What the model reads of a call that failed, as JSON with the `type` of its tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// `web_browse_error` or `web_search_error`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The tool that was asked for.
    pub name: &'static str,
    /// One of the codes of the tool.
    pub code: &'static str,
    /// Words that help the model.
    pub error: String,
}

impl From<&fetch::FetchError> for Failure {
    fn from(error: &fetch::FetchError) -> Self {
        Self { kind: "web_browse_error", name: "web_fetch", code: error.code(), error: error.to_string() }
    }
}

impl From<&search::SearchError> for Failure {
    fn from(error: &search::SearchError) -> Self {
        Self { kind: "web_search_error", name: "web_search", code: error.code(), error: error.to_string() }
    }
}
