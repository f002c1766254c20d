//! The tools: arguments in, what the model reads out.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fetch::Fetcher;
use super::resolver::system_lookup;
use super::search::Searcher;
use super::{Failure, search};
use crate::agent::ports::tools::ToolContext;
use crate::chat::causes::Causes;
use crate::chat::fate::{CallError, CallFate};
use crate::chat::tool::ToolOutput;
use crate::tools::executor::Handler;
use crate::tools::{Deps, Tool, ToolError, Unready, parse_args};

/// The handlers of `config/tools/web.json`, in its order.
pub(super) fn tools(deps: &Deps) -> Result<Vec<Handler>, Unready> {
    let (config, intake) = (&deps.web, || deps.intake.clone());
    let fetcher = Fetcher::new(config.exceptions()?, config.timeout(), &system_lookup(), intake())?;
    let searcher = config.engine().map(|engine| Searcher::new(engine, config.timeout(), intake())).transpose()?;
    Ok(vec![("web_fetch".into(), Arc::new(WebFetch(fetcher))), ("web_search".into(), Arc::new(WebSearch(searcher)))])
}

struct WebFetch(Fetcher);

#[derive(Deserialize)]
struct FetchArgs {
    url: String,
}

#[async_trait]
impl Tool for WebFetch {
    async fn call(&self, args: &Map<String, Value>, _: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let FetchArgs { url } = parse_args(args)?;
        Ok(match self.0.fetch(&url).await {
            Ok(page) => told(&page),
            Err(error) => {
                tracing::debug!(error = %Causes(&error), "a page was not fetched");
                failed(&Failure::from(&error))
            }
        })
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        parse_args::<FetchArgs>(args).map(drop)
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
        let SearchArgs { query, num_results } = parse_args(args)?;
        let Some(searcher) = &self.0 else { return Err(ToolError::Refused("there is no search engine".to_owned())) };
        Ok(match searcher.search(&query, num_results).await {
            Ok(results) => told(&results),
            Err(error) => {
                tracing::debug!(error = %Causes(&error), "a search has failed");
                failed(&Failure::from(&error))
            }
        })
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        parse_args::<SearchArgs>(args).map(drop)
    }

    fn is_on(&self) -> bool {
        self.0.is_some()
    }
}

/// A result, with the `type` of its tool.
fn told(result: &impl Serialize) -> ToolOutput {
    match serde_json::to_string(result) {
        Ok(content) => ToolOutput::ok(content),
        Err(error) => ToolOutput::error(&error.to_string()),
    }
}

fn failed(failure: &Failure) -> ToolOutput {
    let error = match failure.code {
        "timeout" => CallError::TimedOut,
        search::BAD_PARAMS => CallError::BadArguments,
        _ => CallError::Failed,
    };
    ToolOutput { fate: CallFate::Failed, error: Some(error), ..told(failure) }
}
