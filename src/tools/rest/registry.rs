//! The declared tools, put together with what they work with.

use std::sync::Arc;

use super::command::{Command, RestCommands};
use super::data::Loaders;
use super::declared::Declared;
use super::directive_tool::DirectiveTool;
use super::lookup::Lists;
use super::titles::Titles;
use super::tool::RestTool;
use crate::agent::ports::directives::DirectiveDesk;
use crate::chat::directive::RunsAs;
use crate::tools::Tool;
use crate::tools::backend::{Backend, Backends, UnknownBackend};
use crate::tools::executor::Handler;

/// Declared tools, of which some are directives.
pub struct RestTools {
    sent_by_runs: Vec<Handler>,
    of_directives: Vec<(String, RestTool, Arc<Command>)>,
    titled: Vec<(String, Arc<Declared>, Arc<Backend>)>,
    lists: Arc<Lists>,
    loaders: Arc<Loaders>,
}

impl RestTools {
    /// The tools of these names. What a write makes stale is dropped from `loaders`.
    ///
    /// # Errors
    /// When one names a backend that is not there.
    pub fn new(
        backends: &Backends,
        loaders: &Arc<Loaders>,
        declared: impl IntoIterator<Item = (String, Declared)>,
    ) -> Result<Self, UnknownBackend> {
        let (lists, loaders) = (Arc::new(Lists::empty()), loaders.clone());
        let (sent_by_runs, of_directives, titled) = (Vec::new(), Vec::new(), Vec::new());
        let mut tools = Self { sent_by_runs, of_directives, titled, lists, loaders };
        for (name, declared) in declared {
            let backend = backends.get(declared.backend())?.clone();
            let service = backends.service(declared.backend()).cloned();
            let (lists, loaders, declared) = (tools.lists.clone(), tools.loaders.clone(), Arc::new(declared));
            tools.titled.push((name.clone(), declared.clone(), backend.clone()));
            let tool = RestTool::new(backend.clone(), lists, loaders, declared.clone());
            match declared.directive.clone() {
                None => tools.sent_by_runs.push((name.into(), Arc::new(tool))),
                Some(spec) => {
                    let service = service.filter(|_| spec.rule.runs_as == RunsAs::Service);
                    tools.of_directives.push((name, tool, Arc::new(Command { spec, declared, backend, service })));
                }
            }
        }
        Ok(tools)
    }

    /// The commands that the directives are. A result of more than `max_result_bytes` is left out; 0 keeps all.
    pub fn commands(&self, max_result_bytes: usize) -> RestCommands {
        let commands = self.of_directives.iter().map(|(_, _, command)| command.clone());
        RestCommands::new(commands, self.lists.clone(), self.loaders.clone(), max_result_bytes)
    }

    /// What calls that wait are called.
    pub fn titles(&self) -> Titles {
        Titles::new(self.titled.iter().cloned())
    }

    /// The handlers, by the tools' names; those of directives request them from `desk`.
    pub fn handlers(self, desk: &Arc<dyn DirectiveDesk>) -> Vec<Handler> {
        let mut handlers = self.sent_by_runs;
        handlers.extend(self.of_directives.into_iter().map(|(name, rest, command)| {
            let tool: Arc<dyn Tool> = Arc::new(DirectiveTool { rest, command, desk: desk.clone() });
            (name.into(), tool)
        }));
        handlers
    }
}
