//! The composition root: settings become a running product. Only this folder names every floor.

mod audit;
mod check;
#[cfg(feature = "demo")]
mod demo;
#[cfg(not(feature = "demo"))]
#[path = "no_demo.rs"]
mod demo;
mod measure;
mod parts;
mod ready;
mod serve;
pub mod stdio;
#[cfg(feature = "workspace")]
mod workspace;
#[cfg(not(feature = "workspace"))]
#[path = "no_workspace.rs"]
mod workspace;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::agent::offer::selection::Finder;
use crate::agent::ports::audit::AuditSink;
use crate::agent::ports::clock::{Clock, SystemClock};
use crate::agent::ports::embeddings::Embedder;
use crate::agent::ports::files::Files;
use crate::agent::ports::identity::Authenticator;
use crate::agent::ports::schedules::ScheduleStore;
use crate::agent::ports::signals::Bell;
use crate::agent::prompt::fence::Fences;
use crate::agent::spend::budget::Budgets;
use crate::agent::spend::limits::RunLimits;
use crate::agent::turn::context::Agent;
use crate::bounded::intake::Intake;
use crate::bounded::memory::Memory;
use crate::chat::caller::Bearer;
use crate::chat::message::ModelOrigin;
use crate::config::assets::Assets;
use crate::config::{BackendMode, Config, Problem};
use crate::dialect;
use crate::directives::Directives;
use crate::files::{FileStore, NoFiles};
use crate::http::auth::{
    self, AuthConfig, AuthSetupError, DevTokens, ForwardedUsers, LocalUser, Mode, SessionTokens, SignIn, Tokens,
};
use crate::http::recorder::Recorder;
use crate::http::{self, Services, server};
use crate::llm;
use crate::llm::embeddings::Embeddings;
use crate::llm::settings::LiveModels;
use crate::observe::prometheus::RecorderError;
use crate::runs::log::{self, EventLog, LogError};
use crate::runs::starts::Starts;
use crate::runs::{Parts, Runs, Summariser};
use crate::store::{self, Store};
use crate::telemetry::{AuditLogs, TelemetryError};
use crate::tools::Unready;
use crate::tools::backend::UnknownBackend;
use crate::tools::mcp;
use crate::tools::previews::Desk;
use crate::tools::rest::data::Loaders;
use crate::toolsets;
use crate::webhooks::Webhooks;
use crate::workspace::config::WorkspaceConfig;
use demo::DemoBackend;
use measure::Measured;
use parts::{Bound, Tools, backends, default_models, none_if_zero, root_url, router, tools_and_profiles};
use ready::Ready;
use workspace::Workspace;

pub use audit::{AuditError, Verified, export_audit, verify_audit};
pub use check::{check, probe_backends, probe_models};

/// The product, listening and ready to serve.
pub struct App {
    listener: TcpListener,
    address: SocketAddr,
    router: axum::Router,
    bounds: server::ConnectionBounds,
    runs: Arc<Runs>,
    log: Arc<dyn EventLog>,
    desk: Arc<Desk>,
    mcp: Arc<mcp::Servers>,
    loaders: Arc<Loaders>,
    directives: Arc<Directives>,
    webhooks: Arc<Webhooks>,
    store: Arc<dyn Store>,
    auth: Arc<Tokens>,
    session_tokens: Option<Arc<SessionTokens>>,
    recorder: Arc<Recorder>,
    dev_tokens: Option<DevTokens>,
    models: Vec<ModelOrigin>,
    drain: Duration,
    demo_backend: DemoBackend,
    measured: Measured,
    workspace: Workspace,
}

/// Why the product did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Files of the configuration are wrong; all of them are named.
    #[error("the configuration has mistakes")]
    Config(Vec<Problem>),
    /// No verifier for tokens could be made.
    #[error("identity")]
    Auth(#[from] AuthSetupError),
    /// The database could not be opened.
    #[error("store")]
    Store(#[from] store::OpenError),
    /// The event log could not be set up.
    #[error("events")]
    Log(#[from] LogError),
    /// The model's client could not be made.
    #[error("model")]
    Llm(#[from] llm::ConnectError),
    /// The client of the servers of tools could not be made.
    #[error("mcp")]
    Mcp(#[from] mcp::LinkError),
    /// Nothing could be sent to the collector.
    #[error("telemetry")]
    Telemetry(#[from] TelemetryError),
    /// The backend's client could not be made.
    #[error("backend")]
    Backend(#[source] reqwest::Error),
    /// A file names a backend that the settings do not have.
    #[error("tools")]
    UnknownBackend(#[source] UnknownBackend),
    /// A family of tools cannot be made ready.
    #[error("tools")]
    Toolset(#[source] Unready),
    /// The workspace cannot be used.
    #[error("workspace")]
    Workspace(#[source] Unready),
    /// The clients of subscribers could not be made.
    #[error("signals")]
    Webhooks(#[source] reqwest::Error),
    /// The page's logo cannot be read.
    #[error("page.logo {file:?}")]
    Logo {
        /// Its file.
        file: String,
        /// The cause.
        #[source]
        error: std::io::Error,
    },
    /// Files cannot be kept.
    #[error(transparent)]
    Files(#[from] crate::files::OpenError),
    /// Nothing can be measured.
    #[error("metrics")]
    Metrics(#[from] RecorderError),
    /// A socket could not be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        #[source]
        error: std::io::Error,
    },
}

impl App {
    /// Opens the database, starts the demo backend if the configuration needs it, and listens.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn build(config: &Config, assets: &Assets) -> Result<Self, StartError> {
        let logo = |error| StartError::Logo { file: config.page.logo.clone(), error };
        let brand = http::Brand::load(&config.page).map_err(logo)?;
        let mut measured = Measured::start(&config.metrics).await?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let memory = Memory::new(config.limits.memory_bytes);
        let intake = Intake::new(memory.clone());
        // Before all else: what is kept may be in its folder.
        let mut workspace = Workspace::new(&config.workspace)?;
        workspace.open().await?;
        let auth = auth::build(&config.auth, &config.chat_stream.user_claim, clock.clone())?;
        let origins = &config.server.cors_allowed_origins;
        let session_tokens =
            SessionTokens::from_config(&config.auth.session, origins, auth.clone(), clock.clone())?.map(Arc::new);
        let AuthConfig { forwarded, leeway_s, .. } = &config.auth;
        let forwarded_users = ForwardedUsers::from_config(forwarded, *leeway_s, clock.clone());
        let WorkspaceConfig { user: local, role: of_local, .. } = &config.workspace;
        let tokens_of_own = DevTokens::new(auth.clone(), clock.clone(), local, of_local);
        let dev_tokens = (config.auth.mode == Mode::Dev).then(|| tokens_of_own.clone());
        let bound = Bound::at(config.server.bind()).await?;
        let address = bound.address();
        let local_user = match local.is_empty() {
            true => None,
            false => LocalUser::new(config.auth.mode, tokens_of_own, address),
        };
        let subscriptions = Arc::new(config.signals.subscriptions());
        let store = store::open(&config.store, clock.clone(), subscriptions).await?;
        let kept_files = FileStore::open(&config.files, &config.store.url, store.clone(), memory.clone())?;
        let files: Arc<dyn Files> = match &kept_files {
            Some(kept) => kept.clone(),
            None => Arc::new(NoFiles),
        };
        let (process, bell) = (Uuid::now_v7().to_string(), Bell::default());

        let demo_backend = DemoBackend::new();
        let backend_root = match config.backend.mode {
            BackendMode::Http => root_url("backend.base_url", &config.backend.base_url)?,
            BackendMode::Demo => {
                let service = Some(config.backend.service.token.expose()).filter(|token| !token.is_empty());
                demo_backend.start(assets, auth.clone(), service.map(Bearer::new), clock.clone()).await?
            }
        };
        let backends = backends(config, backend_root, &intake)?;
        let of_process = ((process.as_str(), &bell), (&intake, workspace.tools()));
        let Tools { toolbox, profiles, loaders, directives, desk: directive_desk, schedules, installations, titles } =
            tools_and_profiles(config, assets, &backends, store.clone(), clock.clone(), of_process)?;
        let embeddings = config.embeddings.is_on().then(|| Embeddings::connect(&config.embeddings)).transpose()?;

        let models = default_models(config)?;
        let router = Arc::new(router(config, &profiles, demo::model())?);
        router.ready(&config.llm).await?;
        // Nobody else changes models.
        let live = match config.workspace.is_on() {
            true => Some(LiveModels::open(&config.llm, &models, router.clone(), workspace.models_file()).await),
            false => None,
        };
        let (desk_of_workspace, chosen) = live.and_then(|live| workspace.desk(address.port(), live)).unzip();
        let log = log::open(&config.events, Duration::from_secs(config.runs.retention_s)).await?;
        let mcp = mcp::Servers::start(&config.mcp, &intake, store.clone()).await?;
        let profiles = Arc::new(profiles);
        let agent = Arc::new(Agent {
            llm: router.clone(),
            tools: Arc::new(toolbox.sourced_by(mcp.clone())),
            data: loaders.clone(),
            finder: Finder::new(embeddings.map(|embeddings| Arc::new(embeddings) as Arc<dyn Embedder>)),
            store: store.clone(),
            files: files.clone(),
            checkpoints: workspace.checkpoints(),
            payloads: store.clone(),
            approvals: store.clone(),
            decisions: store.clone(),
            plans: store.clone(),
            names: store.clone(),
            helpers: config.jobs().of_runs(),
            chats: store.clone(),
            fences: Fences::fresh(),
            clock: clock.clone(),
            profiles: profiles.clone(),
            prices: config.prices.clone(),
            budgets: Budgets::new(config.limits.budget(), store.clone(), clock.clone()),
            limits: RunLimits {
                max_turns: config.runs.max_turns,
                max_tool_calls: config.runs.max_tool_calls,
                tool_arguments_bytes: config.limits.tool_arguments_bytes,
                wall: Duration::from_secs(config.runs.wall_s),
                approval: Duration::from_secs(config.runs.approval_s),
                summary_wait: Duration::from_secs(config.runs.summary_wait_s),
                decisions: Duration::from_secs(config.runs.decisions_s),
                repeated_calls: config.runs.repeated_calls,
                approvals: config.limits.approvals,
                payloads: config.limits.payloads,
                plans: config.plans.limits(),
            },
            intake: intake.clone(),
        });
        let packages = http::Packages {
            install: config.chat_message.install.clone(),
            uninstall: config.chat_message.uninstall.clone(),
            installations,
            tools: agent.tools.clone(),
        };
        let readers = toolsets::readers(&backends.main);
        let desk = Arc::new(Desk::new(backends.main, store.clone(), profiles, readers));
        let parts = Parts {
            agent: agent.clone(),
            store: store.clone(),
            approvals: store.clone(),
            leases: store.clone(),
            log: log.clone(),
            summaries: store.clone(),
            summariser: Summariser { writer: config.jobs().summary, agent },
            sessions: store.clone(),
            labeller: config.jobs().title,
            titles: store.clone(),
            titler: config.jobs().titles,
            places: store.clone(),
            plans: store.clone(),
            chosen,
            settings: config.runs.settings(config.limits.history_bytes, config.limits.bounds()),
            starts: Starts::new(config.limits.pace(), log::shared_starts(&config.events)?),
        };
        let runs = Runs::new(parts, process);
        measured.look_at(store.clone(), log.clone(), memory.clone());
        let ready = Ready {
            store: store.clone(),
            runs: runs.clone(),
            log: log.clone(),
            models: router,
            last: Mutex::default(),
        };
        let sink = match config.telemetry.audit {
            true => Some(Arc::new(AuditLogs::new(&config.telemetry)?) as Arc<dyn AuditSink>),
            false => None,
        };
        let recorder = Recorder::new(store.clone(), sink);
        let services = Services::from(http::Parts {
            runs: runs.clone(),
            authenticator: auth.clone() as Arc<dyn Authenticator>,
            dev_tokens: dev_tokens.clone(),
            local_user,
            previews: desk.clone(),
            titles: Arc::new(titles),
            calls: store.clone(),
            conversations: store.clone(),
            branches: store.clone(),
            places: store.clone(),
            plans: store.clone(),
            directives: directive_desk,
            directive_records: store.clone(),
            directive_roles: config.directives.roles(),
            packages,
            workspace: desk_of_workspace,
            signals: store.clone(),
            deliveries: store.clone(),
            bell: bell.clone(),
            subscribers: config.signals.subscribers.keys().cloned().collect(),
            emit_roles: config.signals.emit_roles.clone(),
            sessions: store.clone(),
            readiness: Arc::new(ready),
            metrics: measured.page().filter(|_| config.metrics.path),
            dialects: dialect::Settings {
                message_bytes: config.limits.message_bytes,
                context_bytes: config.limits.context_bytes,
                history_bytes: config.limits.history_bytes,
                ai_sdk_version: config.server.ai_sdk_version,
                open_interrupts: config.server.ag_ui_open_interrupts,
                public_url: config.server.public_url.trim_end_matches('/').into(),
                chat_message: config.chat_message.profile.as_str().into(),
                smithy: match config.workspace.is_on() {
                    true => (config.workspace.profile.as_str().into(), config.workspace.role.as_str().into()),
                    false => ("".into(), "".into()),
                },
                now_ms: parts::now_ms,
            },
            usage: store.clone(),
            usage_role: config.server.usage_role.clone(),
            audit_role: config.server.audit_role.clone(),
            users: store.clone(),
            deletion_role: config.server.deletion_role.clone(),
            admin_role: config.server.admin_role.clone(),
            exports: store.clone(),
            search: store.clone(),
            feedback: store.clone(),
            files,
            file_limits: kept_files.as_ref().map(|_| http::FileLimits {
                max_bytes: Some(config.files.max_bytes).filter(|bytes| *bytes != 0),
                per_message: config.files.per_message,
            }),
            quotas: config.limits.quotas(),
            audit: store.clone(),
            recorder: recorder.clone(),
            chats: store.clone(),
            cookie_tokens: http::auth::CookieTokens::new(&config.auth.cookie, &config.server.cors_allowed_origins)
                .map(Arc::new),
            session_tokens: session_tokens.clone(),
            forwarded_users: forwarded_users.map(Arc::new),
            sign_in: config.page.sign_in().map(|sign_in| Arc::new(SignIn::new(sign_in, auth.clone(), clock.clone()))),
            renewal: http::auth::Renewal::from_config(&config.auth, auth.clone(), clock.clone()).map(Arc::new),
            intake: intake.clone(),
            keep_alive: none_if_zero(config.server.keep_alive_s),
            mcp: Arc::new(http::ProtectedResource::new(&config.auth, &config.server.cors_allowed_origins)),
        });
        // Last, so that a start that fails leaves nothing behind that fetches.
        let webhooks =
            Webhooks::start(&config.signals, store.clone(), clock.clone(), &bell).map_err(StartError::Webhooks)?;
        if config.launch.is_some() {
            services.open_first_dialog().await;
        }
        let listener = bound.listen()?;
        if let Some(kept) = kept_files {
            kept.start();
        }
        directives.start(schedules, &(store.clone() as Arc<dyn ScheduleStore>));
        auth.start();
        recorder.start();
        Ok(Self {
            listener,
            address,
            router: http::router(&config.server, services, (toolsets::pages().collect(), &brand)),
            bounds: server::ConnectionBounds::from_config(&config.server),
            runs,
            log,
            desk,
            mcp,
            loaders,
            directives,
            webhooks,
            store,
            auth,
            session_tokens,
            recorder,
            dev_tokens,
            models,
            drain: Duration::from_secs(config.server.drain_s),
            demo_backend,
            measured,
            workspace,
        })
    }

    /// The address it really listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the page for Prometheus, where it has one of its own.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.measured.address()
    }

    /// The models of a profile that names none: the first, and its fallbacks in order of trying.
    pub fn models(&self) -> &[ModelOrigin] {
        &self.models
    }

    /// The verifier, which signs tokens too in the modes that can.
    pub fn tokens(&self) -> Arc<Tokens> {
        self.auth.clone()
    }

    /// Makes tokens of the development user; `None` in all modes but `dev`.
    pub fn dev_tokens(&self) -> Option<&DevTokens> {
        self.dev_tokens.as_ref()
    }
}
