//! The tools: arguments in, what the model reads out.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::fetch::Fetcher;
use super::search::Searcher;
use crate::agent::ports::tools::ToolContext;
use crate::bounded::client::system_lookup;
use crate::chat::causes::Causes;
use crate::chat::tool::ToolOutput;
use crate::tools::executor::Handler;
use crate::tools::worded::{Wording, told};
use crate::tools::{Deps, Tool, ToolError, Unready};

const FETCH: Wording = Wording { name: "web_fetch", kind: "web_browse_error" };

const SEARCH: Wording = Wording { name: "web_search", kind: "web_search_error" };

/// The handlers of `config/tools/web.json`, in its order.
pub(super) fn tools(deps: &Deps) -> Result<Vec<Handler>, Unready> {
    let (config, intake) = (&deps.web, || deps.intake.clone());
    let fetcher = Fetcher::new(config.exceptions()?, config.timeout(), &system_lookup(), intake())?;
    let searcher = config.engine().map(|engine| Searcher::new(engine, config.timeout(), intake())).transpose()?;
    Ok(vec![(FETCH.name.into(), Arc::new(WebFetch(fetcher))), (SEARCH.name.into(), Arc::new(WebSearch(searcher)))])
}

struct WebFetch(Fetcher);

#[derive(Deserialize)]
struct FetchArgs {
    url: String,
}

#[async_trait]
impl Tool for WebFetch {
    async fn call(&self, args: &Map<String, Value>, _: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let FetchArgs { url } = FETCH.args(args)?;
        match self.0.fetch(&url).await {
            Ok(page) => Ok(told(&page)),
            Err(error) => {
                tracing::debug!(error = %Causes(&error), "a page was not fetched");
                Err(FETCH.error(error.code(), &error.to_string()))
            }
        }
    }

    fn wording(&self) -> Option<Wording> {
        Some(FETCH)
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        FETCH.args::<FetchArgs>(args).map(drop)
    }
}

/// Without an engine it is not offered.
struct WebSearch(Option<Searcher>);

#[derive(Deserialize)]
struct SearchArgs {
    query: String,
    #[serde(default)]
    num_results: Option<i64>,
}

#[async_trait]
impl Tool for WebSearch {
    async fn call(&self, args: &Map<String, Value>, _: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let SearchArgs { query, num_results } = SEARCH.args(args)?;
        let Some(searcher) = &self.0 else { return Err(ToolError::Refused("there is no search engine".to_owned())) };
        match searcher.search(&query, num_results).await {
            Ok(results) => Ok(told(&results)),
            Err(error) => {
                tracing::debug!(error = %Causes(&error), "a search has failed");
                Err(SEARCH.error(error.code(), &error.to_string()))
            }
        }
    }

    fn wording(&self) -> Option<Wording> {
        Some(SEARCH)
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        SEARCH.args::<SearchArgs>(args).map(drop)
    }

    fn is_on(&self) -> bool {
        self.0.is_some()
    }
}
