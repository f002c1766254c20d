//! No workspace: this server is built without the feature of it. Settings that name one are a mistake.

use std::path::PathBuf;
use std::sync::Arc;

use super::StartError;
use crate::agent::ports::checkpoints::Checkpoints;
use crate::agent::ports::models::ChosenModels;
use crate::http::WorkspaceDesk;
use crate::llm::settings::LiveModels;
use crate::tools::Workplace;
use crate::workspace::config::WorkspaceConfig;

/// Nothing.
pub(super) struct Workspace;

impl Workspace {
    #[expect(clippy::unnecessary_wraps, reason = "with the feature it may fail")]
    pub(super) fn new(_: &WorkspaceConfig) -> Result<Self, StartError> {
        Ok(Self)
    }

    #[expect(clippy::unused_async, reason = "with the feature it waits")]
    pub(super) async fn open(&mut self) -> Result<(), StartError> {
        Ok(())
    }

    pub(super) fn ready(&mut self, _: u16) {}

    pub(super) fn stopping(&self) {}

    pub(super) fn tools(&self) -> Option<Workplace> {
        None
    }

    pub(super) fn checkpoints(&self) -> Option<(Arc<dyn Checkpoints>, String)> {
        None
    }

    pub(super) fn desk(&self, _: u16, _: Arc<LiveModels>) -> Option<(WorkspaceDesk, Arc<dyn ChosenModels>)> {
        None
    }

    pub(super) fn models_file(&self) -> Option<PathBuf> {
        None
    }
}
