//! The demo where it is built in: its model, and its backend on a port of this machine.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use super::StartError;
use super::parts::{BuiltInModel, listen, root_url};
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::Authenticator;
use crate::chat::caller::Bearer;
use crate::config::Problem;
use crate::config::assets::Assets;
use crate::demo::backend::{self, Doors, Seed, SeedError};
use crate::demo::model::DemoModel;
use crate::llm;

/// The demo model, with the name that it signs its answers with.
pub(super) fn model() -> Option<BuiltInModel> {
    let origin = llm::demo_model()?;
    let model = DemoModel::new(origin.clone());
    Some((origin, Arc::new(model)))
}

/// The mistakes in the files of the demo backend, if any.
pub(super) fn check(assets: &Assets) -> Result<(), StartError> {
    seed(assets).map(drop)
}

fn seed(assets: &Assets) -> Result<Seed, StartError> {
    let wrong = |error: SeedError| StartError::Config(vec![Problem::new("demo", error.to_string())]);
    Seed::parse(|name| assets.text(&format!("demo/{name}"))).map_err(wrong)
}

/// The demo backend, where one was started.
pub(super) struct DemoBackend {
    serving: TaskTracker,
    stop: CancellationToken,
}

impl DemoBackend {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { serving: TaskTracker::new(), stop: CancellationToken::new() }
    }

    /// Starts it; where it is. It takes the word of whoever has the token `service` for who asks.
    pub(super) async fn start(
        &self,
        assets: &Assets,
        auth: Arc<dyn Authenticator>,
        service: Option<Bearer>,
        clock: Arc<dyn Clock>,
    ) -> Result<Url, StartError> {
        let seed = seed(assets)?;
        let (listener, address) = listen("127.0.0.1:0").await?;
        let router = backend::router(seed, Doors { auth, service }, clock);
        self.serving.spawn(backend::serve(listener, router, self.stop.clone().cancelled_owned()));
        root_url("backend.base_url", &format!("http://{address}"))
    }

    /// Stops it, when its open requests are answered.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.serving.close();
        self.serving.wait().await;
    }
}
