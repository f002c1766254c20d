//! The tools of one run: what its profile offers, as far as the caller's roles let them.
//!
//! **Invariant:** a tool that the caller may not use is not offered, not found and not run; for the model it does not exist.

use std::sync::Arc;

use super::ports::embeddings::Embedder;
use super::ports::tools::{OfferedTool, ToolExecutor};
use super::profile::Profile;
use super::selection;
use crate::chat::caller::Caller;
use crate::chat::tool::{Policy, ToolDef};

/// What a run may use.
pub(super) struct Offer {
    /// What the model is told of, in order.
    defs: Vec<Arc<ToolDef>>,
    /// All that the caller may use here.
    tools: Vec<OfferedTool>,
    /// Names that run without being offered.
    accepts: Vec<String>,
}

/// What a call's name means in this run.
pub(super) enum Look {
    /// It may run as its policy says.
    Offered(Policy),
    /// It may be used here, and the model has not been told how.
    Unseen,
    /// There is no such tool for this caller.
    Unknown,
}

impl Offer {
    /// What `profile` offers `caller` for this message.
    pub(super) async fn of(
        profile: &Profile,
        caller: &Caller,
        executor: &dyn ToolExecutor,
        _embedder: Option<&dyn Embedder>,
        message: &str,
    ) -> Self {
        let named = profile.sourced.iter().flat_map(|wanted| {
            executor.sourced(&wanted.source).into_iter().filter(|tool| tool.def.name == wanted.name)
        });
        let sourced = named.chain(profile.sources.iter().flat_map(|source| executor.sourced(source)));
        let mut tools: Vec<OfferedTool> = Vec::new();
        for tool in profile.tools.iter().cloned().chain(sourced) {
            if tool.policy.lets(caller) && !tools.iter().any(|other| other.def.name == tool.def.name) {
                tools.push(tool);
            }
        }
        let defs = match &profile.selection {
            None => tools.iter().map(|tool| tool.def.clone()).collect(),
            Some(selection) => {
                let is_core = |tool: &&OfferedTool| selection.core.contains(&tool.def.name);
                let (core, others): (Vec<_>, Vec<_>) = tools.iter().partition(is_core);
                let best = selection::best(message, &others, selection.most);
                let best = best.into_iter().filter_map(|at| others.get(at).copied());
                core.into_iter().chain(best).map(|tool| tool.def.clone()).collect()
            }
        };
        Self { defs, tools, accepts: profile.accepts.clone() }
    }

    /// What the model is told of.
    pub(super) fn defs(&self) -> &[Arc<ToolDef>] {
        &self.defs
    }

    /// What `name` means here.
    pub(super) fn look(&self, name: &str) -> Look {
        if let Some(tool) = self.tools.iter().find(|tool| tool.def.name == name) {
            return match self.defs.iter().any(|def| def.name == name) {
                true => Look::Offered(tool.policy.clone()),
                false => Look::Unseen,
            };
        }
        match self.accepts.iter().any(|known| known == name) {
            true => Look::Offered(Policy::default()),
            false => Look::Unknown,
        }
    }

    /// Tells the model of a tool from the next turn on.
    pub(super) fn add(&mut self, name: &str) {
        let tool = self.tools.iter().find(|tool| tool.def.name == name);
        if let Some(tool) = tool.filter(|tool| !self.defs.contains(&tool.def)) {
            self.defs.push(tool.def.clone());
        }
    }
}
