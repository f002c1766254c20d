//! The parts that the composition root puts together, each made from its settings.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, lookup_host};
use url::Url;

use super::StartError;
use crate::agent::offer::profile::Profiles;
use crate::agent::ports::clock::{Clock, SystemClock};
use crate::agent::ports::directives::DirectiveDesk;
use crate::agent::ports::llm::LlmProvider;
use crate::agent::ports::signals::Bell;
use crate::agent::ports::tools::OfferedTool;
use crate::bounded::intake::Intake;
use crate::chat::message::ModelOrigin;
use crate::chat::model::Helper;
use crate::config::assets::Assets;
use crate::config::catalogue::{self, Catalogue, Referents};
use crate::config::{BackendMode, Config, DEMO, Problem};
use crate::directives::schedule::Schedule;
use crate::directives::{Desk, Directives};
use crate::llm::{self, Router};
use crate::store::Store;
use crate::tools::backend::{Access, Backend, Backends};
use crate::tools::executor::Toolbox;
use crate::tools::previews::PreviewBounds;
use crate::tools::rest::data::Loaders;
use crate::tools::rest::registry::RestTools;
use crate::tools::rest::titles::Titles;
use crate::tools::{self, Deps, Workplace};
use crate::toolsets;

/// The time of this machine, for those who only name it.
pub(super) fn now_ms() -> i64 {
    SystemClock.now_ms()
}

/// The clients of all backends; `root` is the API root of `[backend]`.
pub(super) fn backends(config: &Config, root: Url, intake: &Intake) -> Result<Backends, StartError> {
    let cookie = config.backend.cookie;
    let max_answer_bytes = match config.limits.backend_answer_bytes {
        0 => usize::MAX,
        bytes => bytes,
    };
    let client = |root, access, timeout_s| {
        let client = Backend::new(root, access, none_if_zero(timeout_s), max_answer_bytes, intake.clone());
        client.map(Arc::new).map_err(StartError::Backend)
    };
    let address = |section: &str, base_url: &str| match base_url {
        DEMO => Ok(root.clone()),
        base_url => root_url(&format!("{section}.base_url"), base_url),
    };
    let named = config.backends.iter().map(|(name, backend)| {
        let root = address(&format!("backends.{name}"), &backend.base_url)?;
        let access = Access::named((name, backend), cookie, now_ms).map_err(StartError::Backend)?;
        Ok((name.clone(), client(root, access, backend.timeout_s)?))
    });
    let named = named.collect::<Result<_, StartError>>()?;
    let main = config.backend.service.backend(root.as_str(), config.backend.timeout_s, &BTreeMap::new());
    let of_named = config.backends.iter().map(|(name, backend)| (Some(name.clone()), backend.as_service()));
    let services = of_named.chain([(None, main)]).filter_map(|(name, backend)| Some((name, backend?)));
    let services = services.map(|(name, backend)| {
        let key = name.as_ref().map_or("backend".to_owned(), |name| format!("backends.{name}"));
        let root = address(&key, &backend.base_url)?;
        let access = Access::named((&key, &backend), false, now_ms).map_err(StartError::Backend)?;
        Ok((name, client(root, access, backend.timeout_s)?))
    });
    let services = services.collect::<Result<_, StartError>>()?;
    let main = client(root.clone(), Access::of_caller(cookie), config.backend.timeout_s)?;
    Ok(Backends { main, named, services })
}

/// What the files describe, at work.
pub(super) struct Tools {
    pub(super) toolbox: Toolbox,
    pub(super) profiles: Profiles,
    pub(super) loaders: Arc<Loaders>,
    pub(super) directives: Arc<Directives>,
    pub(super) desk: Arc<dyn DirectiveDesk>,
    /// The directives that are requested again and again.
    pub(super) schedules: Vec<Schedule>,
    /// The tool that `chat_message.installations` names.
    pub(super) installations: Option<OfferedTool>,
    pub(super) titles: Titles,
}

pub(super) fn tools_and_profiles(
    config: &Config,
    assets: &Assets,
    backends: &Backends,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ((process, bell), (intake, workspace)): ((&str, &Bell), (&Intake, Option<Workplace>)),
) -> Result<Tools, StartError> {
    let preview_bounds =
        PreviewBounds { life: Duration::from_secs(config.runs.preview_s), most: config.limits.previews };
    let deps = Deps {
        backend: backends.main.clone(),
        drafts: store.clone(),
        previews: store.clone(),
        preview_bounds,
        payloads: store.clone(),
        calls: store.clone(),
        titles: store.clone(),
        web: config.web.clone(),
        workspace,
        intake: intake.clone(),
    };
    let of_families = toolsets::tools(&deps).map_err(StartError::Toolset)?;
    let handlers = of_families.into_iter().chain(tools::payloads::tools(&deps.payloads));
    let limits = &config.limits;
    let toolbox = Toolbox::new(handlers, limits.tool_result_bytes).payloads_up_to(limits.payload_bytes);
    let referents = Referents {
        sources: config.mcp.keys().cloned().collect(),
        backends: config.backends.keys().cloned().collect(),
        services: backends.services.keys().cloned().collect(),
        chat_message: config.chat_message.clone(),
    };
    // The sample screens are the demo backend's.
    let assets = match config.backend.mode {
        BackendMode::Demo => assets.with_samples(),
        BackendMode::Http => assets.clone(),
    };
    let assets = if config.workspace.is_on() { assets.with_coding() } else { assets };
    let assets = assets.with_some_profile();
    let Catalogue { profiles, loaders, requests, schedules, installations } =
        catalogue::load(&assets, &config.llm, &referents, |name| toolbox.built_in(name)).map_err(StartError::Config)?;

    let loaders = Loaders::new(backends, loaders, store.clone(), clock.clone()).map_err(StartError::UnknownBackend)?;
    let loaders = Arc::new(loaders);
    let declared = RestTools::new(backends, &loaders, requests).map_err(StartError::UnknownBackend)?;
    let commands = Arc::new(declared.commands(limits.tool_result_bytes));
    let settings = config.directives.settings(Duration::from_secs(config.runs.lease_s));
    let directives =
        Directives::new((store.clone(), store), commands, settings, process.to_owned(), clock, bell.clone());
    let desk = Arc::new(Desk(directives.clone())) as Arc<dyn DirectiveDesk>;
    let titles = declared.titles();
    let toolbox = toolbox.with(declared.handlers(&desk));
    Ok(Tools { toolbox, profiles, loaders, directives, desk, schedules, installations, titles })
}

/// The models of a profile that names none, in order of trying.
pub(super) fn default_models(config: &Config) -> Result<Vec<ModelOrigin>, StartError> {
    let mut problems = Vec::new();
    let models = catalogue::default_models(&config.llm, &mut problems);
    if problems.is_empty() { Ok(models) } else { Err(StartError::Config(problems)) }
}

/// A model that is built in, with the name that it signs its answers with.
pub(super) type BuiltInModel = (ModelOrigin, Arc<dyn LlmProvider>);

/// All models that some profile may ask, or somebody with a job beside a run.
pub(super) fn router(
    config: &Config,
    profiles: &Profiles,
    demo: Option<BuiltInModel>,
) -> Result<Router, llm::ConnectError> {
    let jobs = config.jobs();
    let helpers = jobs.all().into_iter().filter_map(|helper| match helper {
        Helper::Model(origin) => Some(origin),
        Helper::SameModel | Helper::Off => None,
    });
    let wanted = profiles.all().flat_map(|profile| profile.models.origins()).chain(helpers);
    let router = Router::connect(
        &config.llm,
        wanted.filter(|wanted| ![llm::DEMO, llm::NO_MODEL].contains(&wanted.provider.as_str())),
    )?;
    Ok(match demo {
        Some((origin, model)) => router.with(origin, model),
        None => router,
    })
}

/// Connections that wait to be taken: as many as Tokio's own listeners have.
const BACKLOG: u32 = 1024;

/// An address that is this process's. Nobody is let wait there before there is somebody to answer.
pub(super) struct Bound {
    socket: TcpSocket,
    address: SocketAddr,
}

impl Bound {
    /// The address; with `or_next`, where its port is taken, the first one behind it that is not.
    pub(super) async fn at((address, or_next): (&str, bool)) -> Result<Self, StartError> {
        let failed = |error| StartError::Listen { address: address.to_owned(), error };
        let mut bound = bind(address).await;
        if or_next && bound.as_ref().is_err_and(is_taken) {
            let (host, first) = address.rsplit_once(':').unwrap_or((address, "0"));
            for port in first.parse::<u16>().into_iter().flat_map(|first| first..=u16::MAX).skip(1) {
                bound = bind(&format!("{host}:{port}")).await;
                if !bound.as_ref().is_err_and(is_taken) {
                    break;
                }
            }
        }
        let socket = bound.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address })
    }

    /// It.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes connections from now on.
    pub(super) fn listen(self) -> Result<TcpListener, StartError> {
        let Self { socket, address } = self;
        socket.listen(BACKLOG).map_err(|error| StartError::Listen { address: address.to_string(), error })
    }
}

/// A socket at the first of the addresses that `address` stands for which can be had.
async fn bind(address: &str) -> std::io::Result<TcpSocket> {
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        match socket.bind(address) {
            Ok(()) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Listens at an address.
pub(super) async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = Bound::at((address, false)).await?;
    let address = bound.address();
    Ok((bound.listen()?, address))
}

fn is_taken(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::AddrInUse
}

/// The URL that the setting `key` is.
pub(super) fn root_url(key: &str, url: &str) -> Result<Url, StartError> {
    let problem = |_| StartError::Config(vec![Problem::new(key, "is not a URL")]);
    Url::parse(url).map_err(problem)
}

pub(super) fn none_if_zero(seconds: u64) -> Option<Duration> {
    (seconds != 0).then(|| Duration::from_secs(seconds))
}
