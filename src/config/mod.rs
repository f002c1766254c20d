//! Configuration: the built-in defaults, then a file, then the environment; and the files of `config/` as domain types.
//!
//! Each module owns its section's type; this floor gathers them. **Invariant:** nothing else reads the environment, and
//! every problem is reported, not just the first.

pub mod assets;
mod backends;
pub mod catalogue;
mod check;
mod document;
mod fitting;
mod issuers;
mod launch;
mod layers;
mod mcp;
mod models;
mod named;
mod observability;
mod otel;
mod own_data;
mod plans;
mod prices;
mod providers;
mod subscribers;

use std::collections::BTreeMap;
use std::fmt;
use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::Deserialize;

use crate::agent::ports::quotas::Quotas;
use crate::agent::spend::budget::Budget;
use crate::agent::spend::prices::Prices;
use crate::chat::cost::Cost;
use crate::directives;
use crate::files;
use crate::http;
use crate::llm;
use crate::runs;
use crate::runs::starts::Pace;
use crate::store;
use crate::tools;
use crate::webhooks;
use crate::workspace;
use assets::Assets;

pub(crate) use check::DEMO;
#[cfg(not(feature = "demo"))]
pub(crate) use check::no_demo_backend;
pub use launch::Launch;
pub use observability::{Metrics, Telemetry};
pub use plans::{Helpers, Jobs, PlansConfig, Titles};

/// All settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The product's address and its limits.
    pub server: http::ServerConfig,
    /// How the chat page calls itself and looks, and how its users sign in.
    pub page: http::PageConfig,
    /// The accepted tokens.
    pub auth: http::auth::AuthConfig,
    /// The pages of the `chat-stream` protocol.
    pub chat_stream: http::ChatStreamConfig,
    /// The clients of the `chat-message` protocol.
    pub chat_message: http::ChatMessageConfig,
    /// The language models.
    pub llm: llm::LlmConfig,
    /// Meanings of texts, by which tools are found among many.
    pub embeddings: llm::embeddings::EmbeddingsConfig,
    /// The REST backend.
    pub backend: Backend,
    /// Further REST backends, by name.
    pub backends: BTreeMap<String, tools::backend::NamedBackend>,
    /// Servers of tools, by name.
    pub mcp: BTreeMap<String, tools::mcp::McpConfig>,
    /// The database.
    pub store: store::StoreConfig,
    /// The event log.
    pub events: runs::config::Events,
    /// The bounds of what comes in.
    pub limits: LimitsConfig,
    /// The bounds of a run, and its end when no reader is left.
    pub runs: runs::config::RunsConfig,
    /// The bounds of plans and sub-agents.
    pub plans: PlansConfig,
    /// Commands that outlive their request.
    pub directives: directives::config::DirectivesConfig,
    /// Facts that others hear of.
    pub signals: webhooks::SignalsConfig,
    /// What the tools of the web may reach.
    pub web: tools::web::WebConfig,
    /// What users attach to their messages, and what tools make.
    pub files: files::FilesConfig,
    /// The files that an agent works on.
    pub workspace: workspace::config::WorkspaceConfig,
    /// The models that do jobs beside runs.
    pub helpers: Helpers,
    /// Who gives conversations their titles.
    pub titles: Titles,
    /// The level and the format of the log.
    pub log: Log,
    /// A page for Prometheus.
    pub metrics: Metrics,
    /// Traces.
    pub telemetry: Telemetry,
    /// What models cost; see `prices`.
    #[serde(skip)]
    pub prices: Prices,
    /// How an editor has started this server, where one has.
    #[serde(skip)]
    pub launch: Option<Launch>,
}

/// `[backend]`: the REST API that tools call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// The embedded demo backend, or a real one.
    pub mode: BackendMode,
    /// `http`: the API root; `/v1/…` is appended.
    pub base_url: String,
    /// Seconds for a whole call; 0 means none.
    pub timeout_s: u64,
    /// Whether the caller's token is sent in the cookie too that it came in.
    pub cookie: bool,
    /// The credentials by which directives are sent whose caller is not there.
    pub service: tools::backend::ServiceConfig,
}

/// Which backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendMode {
    /// The embedded one.
    Demo,
    /// The one at `base_url`.
    Http,
}

/// `[limits]`: what comes in, and how much of everything there may be; sizes in bytes, 0 means none.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    /// The longest `message`.
    pub message_bytes: usize,
    /// The largest `context`.
    pub context_bytes: usize,
    /// How much of a conversation the model is sent, newest first.
    pub history_bytes: usize,
    /// The longest result of one tool call; the rest is cut, with a note.
    pub tool_result_bytes: usize,
    /// The largest payload of a tool that is kept for the client, as JSON; a larger one is left out, with a note.
    pub payload_bytes: usize,
    /// The largest answer that is read from the backend.
    pub backend_answer_bytes: usize,
    /// Memory for what others send, of the whole process: bodies, JSON while it is read, exports.
    pub memory_bytes: usize,
    /// The longest arguments of one tool call, as JSON.
    pub tool_arguments_bytes: usize,
    /// Live runs of a user, in all processes.
    pub active_runs_per_user: u32,
    /// Live runs of a tenant, in all processes.
    pub active_runs_per_tenant: u32,
    /// Live runs of this process.
    pub active_runs_per_replica: usize,
    /// Runs that a user may begin in a minute, in the long run.
    pub starts_per_minute: u32,
    /// Runs that a user may begin at once; without `starts_per_minute` it says nothing.
    pub starts_burst: u32,
    /// Readers of one run at this process.
    pub readers_per_run: u32,
    /// Events of one run.
    pub run_events: u64,
    /// Bytes of all events of one run.
    pub run_bytes: u64,
    /// Tokens of a user on a day, in UTC.
    pub tokens_per_user_day: u64,
    /// US dollars of a tenant in a month, in UTC.
    pub usd_per_tenant_month: f64,
    /// Calls that may wait for approval in one conversation, at most 100.
    pub approvals: usize,
    /// Previews that may wait for their decision in one conversation, at most 100.
    pub previews: usize,
    /// Payloads that one conversation keeps.
    pub payloads: usize,
    /// Conversations of a user.
    pub conversations_per_user: u64,
    /// Conversations of a tenant.
    pub conversations_per_tenant: u64,
    /// The stored bytes of a user.
    pub stored_bytes_per_user: u64,
    /// The stored bytes of a tenant.
    pub stored_bytes_per_tenant: u64,
    /// Exports of a user on a day, in UTC.
    pub exports_per_user_day: u64,
    /// Exports of a tenant on a day, in UTC.
    pub exports_per_tenant_day: u64,
}

impl LimitsConfig {
    /// Those of runs.
    pub fn bounds(&self) -> runs::config::RunBounds {
        runs::config::RunBounds {
            per_user: self.active_runs_per_user,
            per_tenant: self.active_runs_per_tenant,
            per_replica: self.active_runs_per_replica,
            readers_per_run: self.readers_per_run,
            run_events: self.run_events,
            run_bytes: self.run_bytes,
            quotas: self.quotas(),
        }
    }

    /// How much may be kept for users and tenants.
    pub fn quotas(&self) -> Quotas {
        Quotas {
            conversations_per_user: self.conversations_per_user,
            conversations_per_tenant: self.conversations_per_tenant,
            bytes_per_user: self.stored_bytes_per_user,
            bytes_per_tenant: self.stored_bytes_per_tenant,
            exports_per_user_day: self.exports_per_user_day,
            exports_per_tenant_day: self.exports_per_tenant_day,
        }
    }

    /// How often a user may begin a run.
    pub fn pace(&self) -> Option<Pace> {
        let per_minute = NonZeroU32::new(self.starts_per_minute)?;
        Some(Pace { per_minute, burst: NonZeroU32::new(self.starts_burst).unwrap_or(NonZeroU32::MIN) })
    }

    /// What users and tenants may use.
    pub fn budget(&self) -> Budget {
        // A cast of what is too large ends at the largest.
        let nano_usd = (self.usd_per_tenant_month * 1e9).round() as u64;
        Budget {
            tokens_per_user_day: Some(self.tokens_per_user_day).filter(|tokens| *tokens != 0),
            cost_per_tenant_month: Some(Cost { nano_usd }).filter(|_| self.usd_per_tenant_month > 0.0),
        }
    }
}

/// `[log]`: what is logged to standard error, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// A `tracing` filter.
    pub level: String,
    /// Text for people or JSON for machines.
    pub format: LogFormat,
    /// Whether text has colours on a terminal.
    pub colors: bool,
}

impl Log {
    /// Whether lines have colours.
    pub fn has_colors(&self) -> bool {
        self.colors && std::io::stderr().is_terminal()
    }
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A mistake in the configuration, in words for its operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting, e.g. `llm.provider`, or the file.
    pub key: String,
    /// The mistake; never a secret.
    pub reason: String,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

/// The sources of settings.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// `--config`: a file instead of `default.toml`.
    pub file: Option<PathBuf>,
    /// `--config-dir`: a folder whose files replace the built-in ones.
    pub dir: Option<PathBuf>,
    /// The environment's variables.
    pub env: BTreeMap<String, String>,
    /// `--workdir`: how an editor has started this server.
    pub launch: Option<Launch>,
}

impl Sources {
    /// The process's own environment; `config/` as the folder when it exists and none is named.
    pub fn of_process(file: Option<PathBuf>, dir: Option<PathBuf>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "only this function reads the environment")]
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let dir = dir.or_else(|| Some(PathBuf::from("config")).filter(|dir| dir.is_dir()));
        Self { file, dir, env, launch: None }
    }

    /// The folder's files over the built-in ones.
    pub fn assets(&self) -> Assets {
        Assets::new(self.dir.clone())
    }
}

/// The path of this program, which starts itself anew as the sandbox of commands.
///
/// # Errors
/// When the system does not tell it.
pub fn program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// Where this process finds programs, where it says so.
pub fn search_path() -> Option<String> {
    let path = std::env::var_os("PATH")?;
    path.into_string().ok().filter(|path| !path.is_empty())
}

impl Config {
    /// The settings of all layers, checked.
    ///
    /// # Errors
    /// Every problem at once.
    pub fn load(sources: &Sources) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        if let Some(dir) = sources.dir.as_ref().filter(|dir| !dir.is_dir()) {
            problems.push(Problem::new(dir.display().to_string(), "is not a folder"));
        }
        let config = layers::read(sources, &mut problems);
        if let Some(config) = &config {
            check::check(config, &mut problems);
        }
        match config {
            Some(mut config) if problems.is_empty() => {
                mcp::lend(&mut config);
                Ok(config)
            }
            Some(_) | None => Err(problems),
        }
    }

    /// Settings that are allowed, and are weaker than they could be or of no use; for the operator.
    pub fn weaknesses(&self) -> Vec<String> {
        let mut weaknesses = self.auth.weaknesses();
        if self.backend.mode == BackendMode::Demo && !self.backend.base_url.is_empty() {
            weaknesses
                .push("backend.base_url is of no use with backend.mode \"demo\": the demo backend answers".to_owned());
        }
        weaknesses.extend(self.llm.weakness());
        weaknesses.extend(self.telemetry.unusable.iter().cloned());
        weaknesses
    }

    /// The settings that name a model for a job, each with what it says.
    fn helper_names(&self) -> [(&'static str, &str); 8] {
        let Helpers { plan, review, executor, clarify, title, message } = &self.helpers;
        [
            ("runs.summary_model", &self.runs.summary_model),
            ("helpers.plan", plan),
            ("helpers.review", review),
            ("helpers.executor", executor),
            ("helpers.clarify", clarify),
            ("helpers.title", title),
            ("helpers.message", message),
            ("titles.model", &self.titles.model),
        ]
    }

    /// The models that do the jobs beside runs.
    pub fn jobs(&self) -> Jobs {
        let [summary, plan, review, executor, clarify, title, message, titles] =
            self.helper_names().map(|(key, name)| check::helper(self, key, name, &mut Vec::new()));
        Jobs { summary, plan, review, executor, clarify, title, message, titles }
    }

    /// The settings as far as they can be read, wrong ones replaced by their defaults: for finding more mistakes, not
    /// for use.
    pub fn readable(sources: &Sources) -> Option<Self> {
        layers::read(sources, &mut Vec::new())
    }
}
