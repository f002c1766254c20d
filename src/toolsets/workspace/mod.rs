//! Files and commands for models: what a coding agent does in its workspace.
//!
//! **Invariant:** nothing here touches a file: all goes through the port [`crate::agent::ports::workspace`].

mod command;
mod files;

use std::sync::Arc;

use crate::agent::ports::workspace::Failure;
use crate::chat::tool::Policy;
use crate::tools::executor::Handler;
use crate::tools::worded::Wording;
use crate::tools::{Deps, ToolError, Unready, Workplace};
use crate::toolsets::Toolset;

/// The tools of the workspace.
pub const TOOLSET: Toolset = Toolset { name: "workspace", page: Vec::new, tools, reader: None };

/// The handlers of `config/tools/workspace.json`, in its order.
fn tools(deps: &Deps) -> Result<Vec<Handler>, Unready> {
    let place = || deps.workspace.clone();
    Ok(vec![
        ("read_file".into(), Arc::new(files::Read(place()))),
        ("write_to_file".into(), Arc::new(files::Write(place()))),
        ("replace_in_file".into(), Arc::new(files::Replace(place()))),
        ("delete_file".into(), Arc::new(files::Delete(place()))),
        ("list_files".into(), Arc::new(files::List(place()))),
        ("search_files".into(), Arc::new(files::Search(place()))),
        ("run_command".into(), Arc::new(command::Run(place()))),
    ])
}

/// Who may use the tools of `place`.
fn policy(place: Option<&Workplace>) -> Policy {
    let role = place.map(|place| place.role.clone()).filter(|role| !role.is_empty());
    Policy { roles: role.into_iter().collect(), ..Policy::default() }
}

/// A tool that is called though it is switched off.
fn off() -> ToolError {
    ToolError::Refused("there is no workspace".to_owned())
}

/// A failure of the workspace in the words of `wording`.
fn failed(wording: Wording) -> impl Fn(Failure) -> ToolError {
    move |failure| wording.error(failure.code, &failure.message)
}
