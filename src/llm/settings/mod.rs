//! The models as an editor may change them while the server runs: those of the configuration, with what was made different
//! (`kept`). A change takes effect with the next call of a model (`Router::put`).
//!
//! **Invariant:** no key leaves this module but to its provider.

mod kept;
mod kinds;
mod state;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Mutex;

use super::config::LlmConfig;
use super::router::Router;
use crate::agent::ports::models::{ChosenModel, ModelSettings, NotTaken};
use crate::chat::causes::Causes;
use crate::chat::message::ModelOrigin;
use kept::Kept;
use kinds::Kind;
use state::State;

/// The settings of models, at work.
pub struct LiveModels {
    configured: LlmConfig,
    /// What the configuration makes of itself.
    base: State,
    router: Arc<Router>,
    /// Where changes are kept; `None`: nowhere, and none is taken.
    file: Option<PathBuf>,
    state: ArcSwap<State>,
    /// Held while somebody changes them.
    changing: Arc<Mutex<()>>,
}

impl LiveModels {
    /// The models of `configured`, whose runs ask `defaults` by default, with what `file` has kept. A file that cannot be
    /// read is logged and left as it is: nothing is changed until somebody has mended it.
    pub async fn open(
        configured: &LlmConfig,
        defaults: &[ModelOrigin],
        router: Arc<Router>,
        file: Option<PathBuf>,
    ) -> Arc<Self> {
        let base = State::configured(configured, defaults);
        let kept = match file.clone() {
            Some(file) => aside(move || Kept::read(&file)).await,
            None => Ok(Kept::default()),
        };
        let (kept, file) = match kept {
            Ok(kept) => (kept, file),
            Err(error) => {
                tracing::error!(%error, ?file, "the settings of models that were kept cannot be read");
                (Kept::default(), None)
            }
        };
        let state = base.with(kept);
        let live = Self {
            configured: configured.clone(),
            state: ArcSwap::from_pointee(state),
            base,
            router,
            file,
            changing: Arc::default(),
        };
        let state = live.state.load_full();
        let models = live.connected(&live.base, &state);
        for (provider, reason) in models.unusable() {
            tracing::error!(gen_ai.provider.name = provider, reason, "a provider that was kept cannot be asked");
        }
        live.state.store(Arc::new(state.with_unusable(models.unusable())));
        live.router.put(models);
        Arc::new(live)
    }

    /// See [`crate::agent::ports::models::ModelDesk::settings`].
    pub fn settings(&self) -> Arc<ModelSettings> {
        self.state.load().settings.clone()
    }

    /// The model of a workload that answers.
    pub fn model(&self, workload: &str) -> Option<ChosenModel> {
        self.state.load().model(workload)
    }

    /// See [`crate::agent::ports::models::ModelDesk::replace`].
    ///
    /// # Errors
    /// See [`NotTaken`].
    pub async fn replace(self: &Arc<Self>, before: &Arc<ModelSettings>, after: ModelSettings) -> Result<(), NotTaken> {
        let changing = Arc::clone(&self.changing).lock_owned().await;
        let now = self.state.load_full();
        if !Arc::ptr_eq(before, &now.settings) {
            return Err(NotTaken::Changed);
        }
        let next = now.changed(after, &self.base).map_err(NotTaken::Mistakes)?;
        let models = self.connected(&now, &next);
        // What is not touched may stay as broken as it is, and what has no address yet is only unfinished.
        let (changed, unusable) = (next.differing(&now), models.unusable());
        let is_new = |provider: &String| changed.contains(provider) && next.has_address(provider);
        let mistakes = unusable.iter().filter(|(provider, _)| is_new(provider));
        let mistakes: Vec<String> = mistakes.map(|(_, reason)| reason.clone()).collect();
        if !mistakes.is_empty() {
            return Err(NotTaken::Mistakes(mistakes));
        }
        let next = Arc::new(next.with_unusable(unusable));
        let Some(file) = self.file.clone() else {
            tracing::error!("there is no file that could keep the settings of models");
            return Err(NotTaken::NotKept);
        };
        let (kept, live) = (self.base.difference(&next), Arc::clone(self));
        // What the file has is at work, also where nobody waits for it any more.
        let change = move || {
            let _changing = changing;
            kept.write(&file)?;
            live.router.put(models);
            live.state.store(next);
            Ok(())
        };
        aside(change).await.map_err(|error| {
            tracing::error!(error = %Causes(&error), "the settings of models were not kept");
            NotTaken::NotKept
        })
    }

    fn connected(&self, before: &State, after: &State) -> super::router::Models {
        let config = after.config(&self.configured);
        let (origins, changed) = (after.origins(), after.differing(before));
        self.router.renewed(&config, &origins, &changed, &after.wrong(&self.base))
    }
}

/// Does what blocks off the workers.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
