//! The web for models: `web_fetch` reads one page, `web_search` asks a search engine.
//!
//! ```text
//! address ─vet─▶ client: one look-up, all addresses vetted ─▶ answer ─▶ redirect: vetted anew, at most 5
//!                                                                 └─▶ body, bounded ─▶ page: charset, HTML ─▶ text
//! ```
//!
//! **Invariant:** nobody is connected to whose address was not vetted, but for the operator's exceptions.
//! **Invariant:** nothing of a user, a run or this server goes along: no cookie, no token, no referrer.

mod body;
mod fetch;
mod html;
mod page;
pub mod recorded;
mod search;
mod tools;

#[cfg(test)]
mod tests;

use crate::toolsets::Toolset;

/// The tools of the web.
pub const TOOLSET: Toolset = Toolset { name: "web", page: Vec::new, tools: tools::tools, reader: None };
