//! The conversation for models: what tools have said in it before, and what it is called.

mod results;
mod title;

use std::sync::Arc;

use crate::tools::executor::Handler;
use crate::tools::{Deps, Unready};
use crate::toolsets::Toolset;

/// The tools of the conversation.
pub const TOOLSET: Toolset = Toolset { name: "dialog", page: Vec::new, tools, reader: None };

/// The handlers of `config/tools/dialog.json`, in its order.
fn tools(deps: &Deps) -> Result<Vec<Handler>, Unready> {
    Ok(vec![
        (results::WORDING.name.into(), Arc::new(results::GetResult(deps.calls.clone()))),
        (title::WORDING.name.into(), Arc::new(title::SetTitle::new(deps.titles.clone()))),
    ])
}
