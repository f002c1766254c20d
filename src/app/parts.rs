//! The parts that the composition root puts together, each made from its settings.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use url::Url;

use super::StartError;
use crate::agent::offer::profile::Profiles;
use crate::agent::prompt::summary::Writer;
use crate::bounded::intake::Intake;
use crate::chat::message::ModelOrigin;
use crate::config::assets::Assets;
use crate::config::catalogue::{self, Catalogue};
use crate::config::{BackendMode, Config, Problem};
use crate::demo::backend::{Seed, SeedError};
use crate::demo::model::DemoModel;
use crate::llm::{self, Router};
use crate::store::Store;
use crate::tools::backend::Backend;
use crate::tools::executor::Toolbox;
use crate::tools::previews::PreviewBounds;
use crate::tools::rest::data::Loaders;
use crate::tools::{self, Deps};

pub(super) fn demo_seed(assets: &Assets) -> Result<Seed, StartError> {
    let wrong = |error: SeedError| StartError::Config(vec![Problem::new("demo", error.to_string())]);
    Seed::parse(|name| assets.text(&format!("demo/{name}"))).map_err(wrong)
}

pub(super) fn backend_client(config: &Config, root: Url, intake: Intake) -> Result<Backend, reqwest::Error> {
    let timeout = none_if_zero(config.backend.timeout_s);
    let max_answer_bytes = match config.limits.backend_answer_bytes {
        0 => usize::MAX,
        bytes => bytes,
    };
    Backend::new(root, timeout, max_answer_bytes, intake)
}

pub(super) fn tools_and_profiles(
    config: &Config,
    assets: &Assets,
    backend: Arc<Backend>,
    store: Arc<dyn Store>,
) -> Result<(Toolbox, Profiles, Arc<Loaders>), StartError> {
    let preview_bounds =
        PreviewBounds { life: Duration::from_secs(config.runs.preview_s), most: config.limits.previews };
    let deps = Deps { backend, drafts: store.clone(), previews: store.clone(), preview_bounds, payloads: store };
    let built_in = [tools::workflow::tools(&deps), tools::tables::tools(&deps), tools::payloads::tools(&deps.payloads)];
    let handlers = built_in.into_iter().flatten();
    let limits = &config.limits;
    let toolbox = Toolbox::new(handlers, limits.tool_result_bytes).payloads_up_to(limits.payload_bytes);
    let sources: BTreeSet<String> = config.mcp.keys().cloned().collect();
    // The sample screens are the demo backend's.
    let assets = match config.backend.mode {
        BackendMode::Demo => assets.with_samples(),
        BackendMode::Http => assets.clone(),
    };
    let Catalogue { profiles, loaders, requests } =
        catalogue::load(&assets, &config.llm, &sources, |name| toolbox.knows(name)).map_err(StartError::Config)?;
    let loaders = Arc::new(Loaders::new(deps.backend.clone(), loaders));
    let declared = tools::rest::tool::tools(&deps.backend, &loaders, requests);
    Ok((toolbox.with(declared), profiles, loaders))
}

/// Who answers where a profile says nothing, in order of trying.
pub(super) fn default_models(config: &Config) -> Result<Vec<ModelOrigin>, StartError> {
    let mut problems = Vec::new();
    let models = catalogue::default_models(&config.llm, &mut problems);
    if problems.is_empty() { Ok(models) } else { Err(StartError::Config(problems)) }
}

/// All models that some profile may ask, or a summary.
pub(super) fn router(config: &Config, profiles: &Profiles) -> Result<Router, llm::ConnectError> {
    let demo = DemoModel::new();
    let origin = demo.origin().clone();
    let summariser = match config.summary_writer() {
        Writer::Model(origin) => Some(origin),
        Writer::SameModel | Writer::Nobody => None,
    };
    let wanted = profiles.all().flat_map(|profile| profile.models.origins()).chain(&summariser);
    let router = Router::connect(&config.llm, wanted.filter(|wanted| **wanted != origin))?;
    Ok(router.with(origin, Arc::new(demo)))
}

pub(super) async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Listen { address: address.to_owned(), error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

pub(super) fn root(url: &str) -> Result<Url, StartError> {
    let problem = |_| StartError::Config(vec![Problem::new("backend.base_url", "is not a URL")]);
    Url::parse(url).map_err(problem)
}

pub(super) fn none_if_zero(seconds: u64) -> Option<Duration> {
    (seconds != 0).then(|| Duration::from_secs(seconds))
}
