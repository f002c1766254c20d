//! The composition root: settings become a running product. The only place that names every floor.

mod check;

use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;
use uuid::Uuid;

use crate::agent::ports::clock::{Clock, SystemClock};
use crate::agent::ports::embeddings::Embedder;
use crate::agent::ports::identity::Authenticator;
use crate::agent::ports::store::StoreError;
use crate::agent::profile::Profiles;
use crate::agent::run::{Agent, Limits};
use crate::agent::selection::Finder;
use crate::chat::message::ModelOrigin;
use crate::config::assets::Assets;
use crate::config::catalogue::{self, Catalogue};
use crate::config::{BackendMode, Config, Problem};
use crate::demo::backend::{Seed, SeedError};
use crate::demo::model::DemoModel;
use crate::dialect::ag_ui::AgUi;
use crate::dialect::agent_chat::AgentChat;
use crate::dialect::ai_sdk::AiSdk;
use crate::dialect::chat_stream::ChatStream;
use crate::dialect::openai_chat::OpenAiChat;
use crate::http::auth::{self, AuthSetupError, DevTokens, Jwt, Mode};
use crate::http::{self, Readiness, Services, server};
use crate::llm::embeddings::Embeddings;
use crate::llm::{self, Router};
use crate::runs::log::{self, EventLog, LogError};
use crate::runs::{Parts, Runs, Summariser};
use crate::store::{self, Store};
use crate::tools::backend::Backend;
use crate::tools::data::Loaders;
use crate::tools::executor::Toolbox;
use crate::tools::mcp;
use crate::tools::previews::Desk;
use crate::tools::{self, Deps};

pub use check::{check, probe};

/// The product, listening and ready to serve.
pub struct App {
    listener: TcpListener,
    address: SocketAddr,
    router: axum::Router,
    runs: Arc<Runs>,
    log: Arc<dyn EventLog>,
    desk: Arc<Desk>,
    mcp: Arc<mcp::Servers>,
    store: Arc<dyn Store>,
    auth: Arc<Jwt>,
    dev_tokens: Option<DevTokens>,
    models: Vec<ModelOrigin>,
    drain: Duration,
    demo_backend: TaskTracker,
    demo_stop: CancellationToken,
}

/// Why the product did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Files of the configuration are wrong; all of them are named.
    #[error("the configuration has mistakes")]
    Config(Vec<Problem>),
    /// No verifier for tokens could be made.
    #[error("identity: {0}")]
    Auth(#[from] AuthSetupError),
    /// The database could not be opened.
    #[error("store: {0}")]
    Store(#[from] store::OpenError),
    /// The event log could not be set up.
    #[error("events: {0}")]
    Log(#[from] LogError),
    /// The model's client could not be made.
    #[error("model: {0}")]
    Llm(#[from] llm::ConnectError),
    /// The client of the servers of tools could not be made.
    #[error("mcp: {0}")]
    Mcp(#[from] mcp::LinkError),
    /// The backend's client could not be made.
    #[error("backend: {0}")]
    Backend(#[from] reqwest::Error),
    /// A socket could not be bound.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// What happened.
        #[source]
        error: std::io::Error,
    },
}

impl App {
    /// Opens the database, starts the demo backend if it is asked for, and binds the listener.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn build(config: &Config, assets: &Assets) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let auth = auth::build(&config.auth)?;
        let dev_tokens = (config.auth.mode == Mode::Dev).then(|| DevTokens::new(auth.clone(), clock.clone()));
        let store = store::open(&config.store, clock.clone()).await?;

        let demo_backend = TaskTracker::new();
        let demo_stop = CancellationToken::new();
        let backend_root = match config.backend.mode {
            BackendMode::Http => root(&config.backend.base_url)?,
            BackendMode::Demo => {
                let seed = demo_seed(assets)?;
                let (listener, address) = listen("127.0.0.1:0").await?;
                let router = crate::demo::backend::router(seed, auth.clone(), clock.clone());
                let stop = demo_stop.clone().cancelled_owned();
                demo_backend.spawn(crate::demo::backend::serve(listener, router, stop));
                root(&format!("http://{address}"))?
            }
        };
        let backend = Arc::new(backend_client(config, backend_root)?);
        let (toolbox, profiles, loaders) = tools_and_profiles(config, assets, backend.clone(), store.clone())?;
        let embeddings = config.embeddings.is_on().then(|| Embeddings::connect(&config.embeddings)).transpose()?;

        let models = default_models(config)?;
        let router = router(config, &profiles)?;
        let log = log::open(&config.events, Duration::from_secs(config.runs.retention_s)).await?;
        let mcp = mcp::Servers::start(&config.mcp).await?;
        let agent = Agent {
            llm: Arc::new(router),
            tools: Arc::new(toolbox.sourced_by(mcp.clone())),
            data: loaders,
            finder: Finder::new(embeddings.map(|embeddings| Arc::new(embeddings) as Arc<dyn Embedder>)),
            store: store.clone(),
            payloads: store.clone(),
            clock,
            prices: config.prices.clone(),
            limits: Limits {
                max_turns: config.runs.max_turns,
                max_tool_calls: config.runs.max_tool_calls,
                wall: Duration::from_secs(config.runs.wall_s),
                approval: Duration::from_secs(config.runs.approval_s),
            },
        };
        let parts = Parts {
            agent: Arc::new(agent),
            store: store.clone(),
            approvals: store.clone(),
            leases: store.clone(),
            log: log.clone(),
            summaries: store.clone(),
            summariser: config.summariser(),
            profiles,
            settings: config.runs.settings(config.limits.history_bytes),
        };
        let runs = Runs::new(parts, Uuid::now_v7().to_string());
        let desk = Arc::new(Desk::new(backend, store.clone()));
        let services = Services {
            runs: runs.clone(),
            authenticator: auth.clone() as Arc<dyn Authenticator>,
            dev_tokens: dev_tokens.clone(),
            previews: desk.clone(),
            waiting_previews: store.clone(),
            conversations: store.clone(),
            readiness: Arc::new(StoreReady(store.clone())),
            agent_chat: Arc::new(AgentChat {
                max_message_bytes: config.limits.message_bytes,
                max_context_bytes: config.limits.context_bytes,
            }),
            chat_stream: ChatStream {
                max_message_bytes: config.limits.message_bytes,
                max_context_bytes: config.limits.context_bytes,
            },
            ai_sdk: AiSdk {
                version: config.server.ai_sdk_version,
                max_message_bytes: config.limits.message_bytes,
                max_context_bytes: config.limits.context_bytes,
            },
            openai_chat: OpenAiChat {
                max_message_bytes: config.limits.message_bytes,
                max_result_bytes: config.limits.context_bytes,
                max_history_bytes: config.limits.history_bytes,
            },
            chats: store.clone(),
            ag_ui: AgUi {
                max_message_bytes: config.limits.message_bytes,
                max_context_bytes: config.limits.context_bytes,
            },
            keep_alive: none_if_zero(config.server.keep_alive_s),
        };
        let (listener, address) = listen(&config.server.bind).await?;
        Ok(Self {
            listener,
            address,
            router: http::router(&config.server, services),
            runs,
            log,
            desk,
            mcp,
            store,
            auth,
            dev_tokens,
            models,
            drain: Duration::from_secs(config.server.drain_s),
            demo_backend,
            demo_stop,
        })
    }

    /// The address it really listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Who answers where a profile says nothing: the first, and its fallbacks in order of trying.
    pub fn models(&self) -> &[ModelOrigin] {
        &self.models
    }

    /// The verifier, which signs tokens too in the modes that can.
    pub fn tokens(&self) -> Arc<Jwt> {
        self.auth.clone()
    }

    /// Makes tokens of the development user; `None` in all modes but `dev`.
    pub fn dev_tokens(&self) -> Option<&DevTokens> {
        self.dev_tokens.as_ref()
    }

    /// Serves until `shutdown` is done. Then no new run starts, running ones get the drain time, what is left is
    /// interrupted, and everything is closed in order. `hurry` ends the drain time early.
    pub async fn serve(self, shutdown: impl Future<Output = ()>, hurry: impl Future<Output = ()>) {
        let abort = CancellationToken::new();
        let hurried = CancellationToken::new();
        let stop_accepting = CancellationToken::new();
        let all_closed = CancellationToken::new();
        let serving =
            server::serve(self.listener, self.router, stop_accepting.clone().cancelled_owned(), abort.clone());
        let runs = &self.runs;
        let draining = async {
            shutdown.await;
            tracing::info!(drain_s = self.drain.as_secs(), "draining");
            let now = Instant::now();
            let deadline = now.checked_add(self.drain).unwrap_or(now + A_YEAR);
            runs.drain();
            tokio::select! {
                () = runs.finished() => {}
                () = until(deadline, &hurried) => {
                    runs.interrupt_all();
                    // A store that does not answer keeps nobody any more: what is not recorded, its lease ends.
                    let _ = timeout(LAST_BYTES, runs.finished()).await;
                }
            }
            stop_accepting.cancel();
            // Answers may still be on their way to slow readers, and decisions under way.
            let closed = async {
                self.desk.drain().await;
                all_closed.cancelled().await;
            };
            tokio::select! {
                () = closed => {}
                () = async {
                    until(deadline, &hurried).await;
                    sleep(LAST_BYTES).await;
                } => abort.cancel(),
            }
        };
        let hurrying = async {
            tokio::select! {
                () = hurry => hurried.cancel(),
                () = all_closed.cancelled() => {}
            }
        };
        let serving = async {
            serving.await;
            all_closed.cancel();
        };
        tokio::join!(serving, draining, hurrying);
        let _ = timeout(LAST_BYTES, self.desk.drain()).await;
        // A program that does not end by itself is killed when its handle goes.
        let _ = timeout(LAST_BYTES, self.mcp.close()).await;
        self.demo_stop.cancel();
        self.demo_backend.close();
        self.demo_backend.wait().await;
        self.log.close().await;
        self.store.close().await;
        tracing::info!("stopped");
    }
}

/// Ends at the deadline, or when there is no time left.
async fn until(deadline: Instant, hurried: &CancellationToken) {
    tokio::select! {
        () = sleep_until(deadline) => {}
        () = hurried.cancelled() => {}
    }
}

/// Stands for times that no clock reaches.
const A_YEAR: Duration = Duration::from_secs(31_536_000);

/// What whoever is left gets for their last words when there is no time left.
const LAST_BYTES: Duration = Duration::from_secs(1);

fn demo_seed(assets: &Assets) -> Result<Seed, StartError> {
    let wrong = |error: SeedError| StartError::Config(vec![Problem::new("demo", error.to_string())]);
    Seed::parse(|name| assets.text(&format!("demo/{name}"))).map_err(wrong)
}

fn backend_client(config: &Config, root: Url) -> Result<Backend, reqwest::Error> {
    let timeout = none_if_zero(config.backend.timeout_s);
    let max_answer_bytes = match config.limits.backend_answer_bytes {
        0 => usize::MAX,
        bytes => bytes,
    };
    Backend::new(root, timeout, max_answer_bytes)
}

fn tools_and_profiles(
    config: &Config,
    assets: &Assets,
    backend: Arc<Backend>,
    store: Arc<dyn Store>,
) -> Result<(Toolbox, Profiles, Arc<Loaders>), StartError> {
    let deps = Deps { backend, drafts: store.clone(), previews: store.clone(), payloads: store };
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
fn default_models(config: &Config) -> Result<Vec<ModelOrigin>, StartError> {
    let mut problems = Vec::new();
    let models = catalogue::default_models(&config.llm, &mut problems);
    if problems.is_empty() { Ok(models) } else { Err(StartError::Config(problems)) }
}

/// All models that some profile may ask, or a summary.
fn router(config: &Config, profiles: &Profiles) -> Result<Router, llm::ConnectError> {
    let demo = DemoModel::new();
    let origin = demo.origin().clone();
    let summariser = match config.summariser() {
        Summariser::Model(origin) => Some(origin),
        Summariser::SameModel | Summariser::Nobody => None,
    };
    let wanted = profiles.all().flat_map(|profile| profile.models.origins()).chain(&summariser);
    let router = Router::connect(&config.llm, wanted.filter(|wanted| **wanted != origin))?;
    Ok(router.with(origin, Arc::new(demo)))
}

struct StoreReady(Arc<dyn Store>);

#[async_trait::async_trait]
impl Readiness for StoreReady {
    async fn check(&self) -> Result<(), StoreError> {
        self.0.ready().await
    }
}

async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Listen { address: address.to_owned(), error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

fn root(url: &str) -> Result<Url, StartError> {
    let problem = |_| StartError::Config(vec![Problem::new("backend.base_url", "is not a URL")]);
    Url::parse(url).map_err(problem)
}

fn none_if_zero(seconds: u64) -> Option<Duration> {
    (seconds != 0).then(|| Duration::from_secs(seconds))
}
