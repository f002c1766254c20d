//! The workspaces, for the tools that work in them, the runs that keep their files, and the routes that take back.

use std::sync::Arc;

use super::StartError;
use crate::agent::ports::checkpoints::Checkpoints;
use crate::chat::approval::Consent;
use crate::config;
use crate::http::WorkspaceDesk;
use crate::tools::Workplace;
use crate::workspace::Folders;
use crate::workspace::config::{Commands, WorkspaceConfig};

/// The workspaces, where there are some.
pub(super) struct Workspace(Option<Opened>);

struct Opened {
    folders: Arc<Folders>,
    role: String,
    profile: String,
    commands: Option<Consent>,
}

impl Workspace {
    /// The workspaces of `config`, none of which is taken yet.
    ///
    /// # Errors
    /// When this program cannot be found.
    pub(super) fn new(config: &WorkspaceConfig) -> Result<Self, StartError> {
        if !config.is_on() {
            return Ok(Self(None));
        }
        let program = match config.program.as_os_str().is_empty() {
            true => config::program().map_err(|error| StartError::Workspace(error.into()))?,
            false => config.program.clone(),
        };
        let folders = Folders::new(config, program, config::search_path());
        let commands = match config.commands {
            Commands::Off => None,
            Commands::Ask => Some(Consent::User),
            Commands::Auto => Some(Consent::Auto),
        };
        Ok(Self(Some(Opened { folders, role: config.role.clone(), profile: config.profile.clone(), commands })))
    }

    /// Takes the folder that all share, where they do, and finds out what commands run in.
    ///
    /// # Errors
    /// When the folder cannot be had, or another process holds it.
    pub(super) async fn open(&self) -> Result<(), StartError> {
        match &self.0 {
            Some(Opened { folders, .. }) => folders.start().await.map_err(|error| StartError::Workspace(error.into())),
            None => Ok(()),
        }
    }

    pub(super) fn tools(&self) -> Option<Workplace> {
        let Opened { folders, role, commands, .. } = self.0.as_ref()?;
        Some(Workplace { workspaces: folders.clone(), role: role.clone(), commands: commands.clone() })
    }

    pub(super) fn checkpoints(&self) -> Option<(Arc<dyn Checkpoints>, String)> {
        let Opened { folders, role, .. } = self.0.as_ref()?;
        Some((folders.clone() as Arc<dyn Checkpoints>, role.clone()))
    }

    pub(super) fn desk(&self) -> Option<WorkspaceDesk> {
        let Opened { folders, role, profile, .. } = self.0.as_ref()?;
        Some(WorkspaceDesk {
            changes: folders.clone(),
            checkpoints: folders.clone(),
            current: folders.clone(),
            profile: profile.clone(),
            role: role.clone(),
        })
    }
}
