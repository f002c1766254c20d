//! Shell commands of an agent, in a sandbox: what they may read, write, reach and use up is bounded, and nothing that
//! they started outlives them.
//!
//! ```text
//! run ─▶ tree: bwrap, or our own namespaces ─▶ init: first process inside ─▶ command: limits, Landlock, seccomp ─▶ sh
//!  ▲       │ one socket: what to run goes in, "it runs" and the exit code come out; its end ends everything
//!  └───────┴─ output: both pipes, their heads kept, the rest counted
//! ```
//!
//! `init` and `command` are this very program, started anew under the hidden name [`exec::NAME`]: walls are raised by
//! a process around itself, and a server with many threads cannot do that for its child without `unsafe`.
//!
//! **Invariant:** a command gets nothing of the server's environment and none of its open files.
//! **Invariant:** what was asked for and does not work here is refused, never replaced by less.
//!
//! What is not covered: hooks of repositories below the root's own, a `.git` that a command made itself, the sum of
//! what is written to the disk (one file is bounded, and so is the temporary folder), and 32-bit programs, which the
//! filter of system calls ends.

mod bubblewrap;
pub mod exec;
mod git;
mod layout;
mod mount;
mod output;
mod place;
pub mod probe;
pub mod request;
mod run;
mod settings;
mod spawner;
mod spec;
mod tree;

use std::path::PathBuf;
use std::sync::Arc;

use self::spawner::Spawner;
use self::spec::Ground;
use self::tree::Dying;

pub use self::settings::{CommandSettings, Kind, Wanted};

/// Runs commands in one root. Cheap to clone; made by [`probe::probe`].
#[derive(Debug, Clone)]
pub struct Commands {
    shared: Arc<Shared>,
}

/// What all commands of a root have in common.
#[derive(Debug)]
struct Shared {
    /// What holds the commands in, or why nothing does.
    kind: Kind,
    /// The folder, without links in its path.
    root: PathBuf,
    /// The state folder, without links in its path.
    state: PathBuf,
    settings: CommandSettings,
    /// `None` where no command runs.
    spawner: Option<Spawner>,
    dying: Arc<Dying>,
}

impl Commands {
    /// What holds the commands in.
    pub fn kind(&self) -> &Kind {
        &self.shared.kind
    }

    /// Waits until nothing is left of the commands that were given up by dropping their future. Whoever reads the
    /// files afterwards reads what stays.
    pub async fn settled(&self) {
        self.shared.dying.none().await;
    }
}

impl Shared {
    /// Where commands of this kind run; `None` where they do not.
    fn ground(&self) -> Option<Ground> {
        match &self.kind {
            Kind::Bubblewrap => Some(Ground::Bubblewrap),
            Kind::Landlock { namespaces: true } => Some(Ground::Namespaces),
            Kind::Landlock { namespaces: false } => Some(Ground::Landlock),
            Kind::None => Some(Ground::Open),
            Kind::Unavailable { .. } => None,
        }
    }
}
