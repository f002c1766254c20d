//! A server that is built without the feature `demo`: the check of the settings has refused whatever names it.

use std::sync::Arc;

use url::Url;

use super::StartError;
use super::parts::BuiltInModel;
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::Authenticator;
use crate::chat::caller::Bearer;
use crate::config::assets::Assets;
use crate::config::no_demo_backend;

/// There is no demo model.
pub(super) fn model() -> Option<BuiltInModel> {
    None
}

/// There is no demo backend.
pub(super) fn check(_assets: &Assets) -> Result<(), StartError> {
    Err(absent())
}

fn absent() -> StartError {
    StartError::Config(vec![no_demo_backend()])
}

/// Nothing that could be started.
pub(super) struct DemoBackend;

impl DemoBackend {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) async fn start(
        &self,
        _assets: &Assets,
        _auth: Arc<dyn Authenticator>,
        _service: Option<Bearer>,
        _clock: Arc<dyn Clock>,
    ) -> Result<Url, StartError> {
        Err(absent())
    }

    pub(super) async fn stop(&self) {}
}
