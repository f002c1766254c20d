//! The workspaces, for the tools that work in them, the runs that keep their files, and the routes that take back.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use super::StartError;
use crate::agent::ports::checkpoints::Checkpoints;
use crate::agent::ports::models::{ChoiceLost, ChosenModel, ChosenModels, ModelDesk, ModelSettings, NotTaken};
use crate::agent::ports::workspace::{Choice, Choices, Failure};
use crate::chat::approval::Consent;
use crate::chat::caller::Owner;
use crate::config;
use crate::http::WorkspaceDesk;
use crate::llm::settings::LiveModels;
use crate::tools::Workplace;
use crate::workspace::config::{Commands, ModelEditing, WorkspaceConfig};
use crate::workspace::{Folders, Shared, StatusFile};

/// The workspaces, where there are some.
pub(super) struct Workspace(Option<Opened>);

struct Opened {
    folders: Arc<Folders>,
    role: String,
    profile: String,
    commands: Commands,
    may_edit_models: bool,
    status_file: PathBuf,
    /// What is known once it is open.
    shared: Option<Shared>,
    status: Option<StatusFile>,
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
        Ok(Self(Some(Opened {
            folders,
            role: config.role.clone(),
            profile: config.profile.clone(),
            commands: config.commands,
            may_edit_models: config.config == ModelEditing::Edit,
            status_file: config.status_file.clone(),
            shared: None,
            status: None,
        })))
    }

    /// Takes the folder that all share, where they do, and finds out what commands run in. The status file of that folder
    /// is this server's from then on.
    ///
    /// # Errors
    /// When the folder cannot be had, or another process holds it.
    pub(super) async fn open(&mut self) -> Result<(), StartError> {
        let Some(opened) = &mut self.0 else { return Ok(()) };
        opened.shared = opened.folders.start().await.map_err(|error| StartError::Workspace(error.into()))?;
        opened.status = opened.shared.as_ref().map(|shared| StatusFile::starting(&opened.status_file, &shared.state));
        Ok(())
    }

    /// The server answers at `port`.
    pub(super) fn ready(&mut self, port: u16) {
        if let Some(status) = self.0.as_mut().and_then(|opened| opened.status.as_mut()) {
            status.ready(port);
        }
    }

    /// It begins no more work.
    pub(super) fn stopping(&self) {
        if let Some(status) = self.0.as_ref().and_then(|opened| opened.status.as_ref()) {
            status.stopping();
        }
    }

    pub(super) fn tools(&self) -> Option<Workplace> {
        let Opened { folders, role, commands, shared, .. } = self.0.as_ref()?;
        let is_held = shared.as_ref().is_some_and(|shared| shared.holds_commands);
        let commands = match commands {
            Commands::Off => None,
            Commands::Auto => Some(Consent::Auto),
            Commands::Sandboxed if is_held => Some(Consent::Auto),
            Commands::Ask | Commands::Sandboxed => Some(Consent::User),
        };
        Some(Workplace { workspaces: folders.clone(), role: role.clone(), commands })
    }

    pub(super) fn checkpoints(&self) -> Option<(Arc<dyn Checkpoints>, String)> {
        let Opened { folders, role, .. } = self.0.as_ref()?;
        Some((folders.clone() as Arc<dyn Checkpoints>, role.clone()))
    }

    /// What routes need; `models` are all that can be asked.
    pub(super) fn desk(&self, port: u16, models: Arc<LiveModels>) -> Option<(WorkspaceDesk, Arc<dyn ChosenModels>)> {
        let Opened { folders, role, profile, may_edit_models, .. } = self.0.as_ref()?;
        let models = Arc::new(Models { live: models, choices: folders.clone(), profile: profile.clone() });
        let desk = WorkspaceDesk {
            changes: folders.clone(),
            checkpoints: folders.clone(),
            choices: folders.clone(),
            models: models.clone(),
            may_edit_models: *may_edit_models,
            profile: profile.clone(),
            role: role.clone(),
            port,
            extents: Arc::default(),
        };
        Some((desk, models))
    }

    /// Where the settings of models are kept: beside what all share.
    pub(super) fn models_file(&self) -> Option<PathBuf> {
        Some(self.0.as_ref()?.shared.as_ref()?.state.join("models.json"))
    }
}

/// The models that can be asked, and whose choice they are.
struct Models {
    live: Arc<LiveModels>,
    choices: Arc<dyn Choices>,
    /// The `context_type` of the profile whose models are chosen.
    profile: String,
}

fn lost(failure: &Failure) -> ChoiceLost {
    tracing::error!(error.kind = failure.code, reason = failure.message, "the choice of a model was not read or kept");
    ChoiceLost
}

#[async_trait]
impl ModelDesk for Models {
    fn settings(&self) -> Arc<ModelSettings> {
        self.live.settings()
    }

    async fn replace(&self, before: &Arc<ModelSettings>, after: ModelSettings) -> Result<(), NotTaken> {
        self.live.replace(before, after).await
    }

    async fn chosen(&self, owner: &Owner) -> Result<Option<String>, ChoiceLost> {
        self.choices.chosen(owner, Choice::Workload).await.map_err(|failure| lost(&failure))
    }

    async fn choose(&self, owner: &Owner, workload: Option<&str>) -> Result<(), ChoiceLost> {
        self.choices.choose(owner, Choice::Workload, workload).await.map_err(|failure| lost(&failure))
    }
}

#[async_trait]
impl ChosenModels for Models {
    async fn chosen(&self, owner: &Owner, context_type: &str, named: Option<&str>) -> Option<ChosenModel> {
        if context_type != self.profile {
            return None;
        }
        if let Some(model) = named.and_then(|named| self.live.model(named)) {
            return Some(model);
        }
        let chosen = ModelDesk::chosen(self, owner).await.ok().flatten();
        chosen
            .and_then(|chosen| self.live.model(&chosen))
            .or_else(|| self.live.model(self.settings().default.as_ref()?))
    }
}
