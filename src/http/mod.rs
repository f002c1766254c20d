//! The product's HTTP surface: the routes of all protocols (`wires`), and what is around them.
//!
//! **Invariant:** only this floor knows status codes; [`problem::Problem`] is the one error, and its body the one
//! error body but for protocols whose clients know others (`problem::ErrorFormat`).

mod address;
mod agent_stream;
mod ai_sdk;
mod answer;
mod approvals;
pub mod audit;
pub mod auth;
mod body;
mod branch;
mod calls;
mod chain;
mod changes;
mod chat_message;
mod chat_stream;
mod client_files;
pub mod code;
mod conversation_views;
mod conversations;
mod copilotkit;
mod current;
mod deliveries;
pub mod description;
mod directives;
mod docs;
mod document;
mod earlier;
mod export;
mod extents;
mod feedback;
mod files;
mod filler;
mod given;
pub mod health;
mod held;
mod hidden;
mod mcp;
mod messages;
pub mod metrics;
mod openai_chat;
mod packages;
mod page;
mod pages;
mod plans;
mod previews;
mod prewarm;
pub mod problem;
mod profiles;
mod prose;
pub mod recorder;
mod replies;
mod request_id;
mod responses;
mod restored;
mod runs;
mod search;
mod serve;
pub mod server;
mod share;
mod signals;
mod smithy;
mod sse;
mod timeline;
mod uploads;
mod usage;
mod users;
mod versions;
mod views;
mod wire_info;
mod wires;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::{Router, middleware};
use serde::Deserialize;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::agent::ports::approvals::ApprovalTitles;
use crate::agent::ports::audit::AuditStore;
use crate::agent::ports::calls::CallStore;
use crate::agent::ports::chats::ChatStore;
use crate::agent::ports::conversations::{BranchStore, ConversationStore, ExportStore};
use crate::agent::ports::directives::{DirectiveDesk, DirectiveRecords, DirectiveRoles};
use crate::agent::ports::feedback::FeedbackStore;
use crate::agent::ports::files::Files;
use crate::agent::ports::identity::Authenticator;
use crate::agent::ports::places::PlaceStore;
use crate::agent::ports::plans::PlanRecords;
use crate::agent::ports::previews::PreviewDesk;
use crate::agent::ports::quotas::Quotas;
use crate::agent::ports::search::SearchStore;
use crate::agent::ports::sessions::SessionStore;
use crate::agent::ports::signals::{Bell, DeliveryStore, SignalStore};
use crate::agent::ports::usage::UsageStore;
use crate::agent::ports::users::UserStore;
use crate::bounded::intake::Intake;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::dialect;
use crate::dialect::ag_ui::OpenInterrupts;
use crate::dialect::ai_sdk::Version;
use crate::observe::prometheus::Page;
use crate::runs::Runs;
use problem::Problem;
use recorder::Recorder;

pub use changes::WorkspaceDesk;
pub use chat_message::ChatMessageConfig;
pub use chat_stream::ChatStreamConfig;
pub use mcp::ProtectedResource;
pub use packages::Packages;
pub use page::{Brand, PageConfig, Parts as PageParts};

/// `[server]`: where and how the product listens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address and port; port 0 takes a free one, and `8765+` the first free one from there on: see [`Self::bind`].
    pub bind: String,
    /// Origins that browsers may call from, exactly as they send them; `*` for any. Empty turns CORS off.
    pub cors_allowed_origins: Vec<String>,
    /// Seconds of silence on a stream before a comment is sent; 0 means never.
    pub keep_alive_s: u64,
    /// Seconds that running turns get to finish after SIGTERM.
    pub drain_s: u64,
    /// The largest request body.
    pub body_limit_bytes: usize,
    /// Seconds for a whole request body; 0 means no limit.
    pub body_timeout_s: u64,
    /// The largest request head: its first line and its headers; 0 means no limit but hyper's.
    pub head_bytes: usize,
    /// Seconds from a head's first byte to its last; 0 means no limit but that of idle connections.
    pub head_timeout_s: u64,
    /// Seconds that a connection may be idle between two requests: longer than the proxy in front uses its own again, so that
    /// the proxy closes first and no request meets a closing connection.
    pub idle_timeout_s: u64,
    /// Connections at once; 0 means no limit.
    pub max_connections: usize,
    /// Connections of one address at once; 0 means no limit.
    pub connections_per_address: usize,
    /// Addresses and networks of reverse proxies, whose connections are those of many.
    pub trusted_proxies: Vec<String>,
    /// Requests of one user at once, streams too; 0 means no limit.
    pub requests_per_user: usize,
    /// Bytes of bodies and exports of one user in memory at once; 0 means no limit.
    pub bytes_per_user: usize,
    /// The major version of the `ai` package whose chunks are sent to clients that do not say: 5, 6 or 7.
    pub ai_sdk_version: Version,
    /// What becomes of an input of AG-UI that leaves an interrupt of its thread open: `error` or `text`.
    pub ag_ui_open_interrupts: OpenInterrupts,
    /// Where people reach the server, such as `https://chat.example.com`; empty: it is not known, and links have no host.
    pub public_url: String,
    /// Whether the chat page is served.
    pub page: bool,
    /// Whether the API's description and its page are served.
    pub docs: bool,
    /// The role that may see what its whole tenant has used; empty: no user.
    pub usage_role: String,
    /// Roles that get `Server-Timing`, the time of each part of an answer; in `dev` mode every user gets it.
    pub timing_roles: Vec<String>,
    /// The role that may read the audit record of its tenant; empty: no user.
    pub audit_role: String,
    /// The role that may delete what is kept of a user of its tenant; empty: no user.
    pub deletion_role: String,
    /// The role that may read the chats of all users of its tenant; empty: no user.
    pub admin_role: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            bind: "127.0.0.1:8080".to_owned(),
            cors_allowed_origins: Vec::new(),
            keep_alive_s: 15,
            drain_s: 25,
            body_limit_bytes: 1_048_576,
            body_timeout_s: 15,
            head_bytes: 32_768,
            head_timeout_s: 5,
            idle_timeout_s: 75,
            max_connections: 10_000,
            connections_per_address: 1000,
            trusted_proxies: PRIVATE.map(str::to_owned).to_vec(),
            requests_per_user: 256,
            bytes_per_user: 64 << 20,
            ai_sdk_version: Version::V5,
            ag_ui_open_interrupts: OpenInterrupts::Error,
            public_url: String::new(),
            page: true,
            docs: true,
            usage_role: String::new(),
            timing_roles: Vec::new(),
            audit_role: String::new(),
            deletion_role: String::new(),
            admin_role: "platform_admin".to_owned(),
        }
    }
}

impl ServerConfig {
    /// Address and port to listen at, and whether a port that is taken makes room for the next one.
    pub fn bind(&self) -> (&str, bool) {
        match self.bind.strip_suffix('+') {
            Some(first) => (first, true),
            None => (&self.bind, false),
        }
    }
}

/// Addresses of reverse proxies: this machine, and private networks, which cannot be reached from outside.
const PRIVATE: [&str; 8] = [
    "127.0.0.0/8",
    "::1",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "fc00::/7",
];

/// The bounds of files.
#[derive(Debug, Clone, Copy)]
pub struct FileLimits {
    /// The largest, in bytes; `None`: no limit.
    pub max_bytes: Option<u64>,
    /// The most of one message.
    pub per_message: usize,
}

/// What the routes work with. Each request has it several times, so all share one.
#[derive(Clone)]
pub struct Services(Arc<Parts>);

impl From<Parts> for Services {
    fn from(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for Services {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The parts of [`Services`].
pub struct Parts {
    /// Starts runs.
    pub runs: Arc<Runs>,
    /// Verifies tokens.
    pub authenticator: Arc<dyn Authenticator>,
    /// Makes the tokens of the page; `None` where another issuer makes them.
    pub dev_tokens: Option<auth::DevTokens>,
    /// The user of this machine, who needs no token for some protocols; `None` where there is none.
    pub local_user: Option<auth::LocalUser>,
    /// Shows previews that wait, and decides them.
    pub previews: Arc<dyn PreviewDesk>,
    /// Says what calls that wait are about.
    pub titles: Arc<dyn ApprovalTitles>,
    /// Shows the calls that runs have made.
    pub calls: Arc<dyn CallStore>,
    /// Shows and changes conversations.
    pub conversations: Arc<dyn ConversationStore>,
    /// Knows their branches.
    pub branches: Arc<dyn BranchStore>,
    /// Opens them and moves them.
    pub places: Arc<dyn PlaceStore>,
    /// Plans.
    pub plans: Arc<dyn PlanRecords>,
    /// Requests directives, decides and changes them.
    pub directives: Arc<dyn DirectiveDesk>,
    /// Reads them.
    pub directive_records: Arc<dyn DirectiveRecords>,
    /// Who reads and operates those of the tenant.
    pub directive_roles: DirectiveRoles,
    /// What installs packages, and tells of them.
    pub packages: Packages,
    /// What agents do to files, where there is a workspace.
    pub workspace: Option<WorkspaceDesk>,
    /// Signals.
    pub signals: Arc<dyn SignalStore>,
    /// What subscribers have been told.
    pub deliveries: Arc<dyn DeliveryStore>,
    /// Rings when there is something to deliver.
    pub bell: Bell,
    /// The names of subscribers.
    pub subscribers: Vec<String>,
    /// Roles that may write signals.
    pub emit_roles: Vec<String>,
    /// Reads them as sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// Tells whether a run could be served now.
    pub readiness: Arc<dyn Readiness>,
    /// The bounds of what requests may say.
    pub dialects: dialect::Settings,
    /// Tells what users have used.
    pub usage: Arc<dyn UsageStore>,
    /// The role that may see what the whole tenant has used; empty: no user.
    pub usage_role: String,
    /// The role that may read the audit record of their tenant; empty: no user.
    pub audit_role: String,
    /// Deletes users.
    pub users: Arc<dyn UserStore>,
    /// The role that may delete what is kept of a user of their tenant; empty: no user.
    pub deletion_role: String,
    /// The role that may read the chats of all users of their tenant; empty: no user.
    pub admin_role: String,
    /// Counts exports and makes them.
    pub exports: Arc<dyn ExportStore>,
    /// Finds conversations.
    pub search: Arc<dyn SearchStore>,
    /// Keeps what users think of answers.
    pub feedback: Arc<dyn FeedbackStore>,
    /// Keeps files.
    pub files: Arc<dyn Files>,
    /// How large and how many they may be; `None` where none are kept.
    pub file_limits: Option<FileLimits>,
    /// How many there may be.
    pub quotas: Quotas,
    /// The audit record.
    pub audit: Arc<dyn AuditStore>,
    /// Counts the tokens that were refused.
    pub recorder: Arc<Recorder>,
    /// Numbers their conversations and shows them.
    pub chats: Arc<dyn ChatStore>,
    /// The page for Prometheus, where it is on this port.
    pub metrics: Option<Page>,
    /// Reads tokens from a cookie, where that is configured.
    pub cookie_tokens: Option<Arc<auth::CookieTokens>>,
    /// Tells for whom of its users a front end asks, where that is configured.
    pub forwarded_users: Option<Arc<auth::ForwardedUsers>>,
    /// Has sessions exchanged for tokens, where that is configured.
    pub session_tokens: Option<Arc<auth::SessionTokens>>,
    /// Has the page's users sign in at an issuer, where that is configured.
    pub sign_in: Option<Arc<auth::SignIn>>,
    /// Has tokens renewed, where somebody does that.
    pub renewal: Option<Arc<auth::Renewal>>,
    /// Reads what is large aside, and holds the budget of memory.
    pub intake: Intake,
    /// Silence on a stream before a comment is sent.
    pub keep_alive: Option<Duration>,
    /// What clients of the Model Context Protocol read of who gives tokens, and whose pages may come in.
    pub mcp: Arc<ProtectedResource>,
}

impl Services {
    /// Ends what is left of a conversation that was deleted: its runs, and what was kept of files. The files stay.
    async fn deleted(&self, (owner, id): (&Owner, &ConversationId), runs: Vec<RunId>) {
        self.runs.deleted(id, runs);
        let Some(WorkspaceDesk { checkpoints, .. }) = &self.workspace else { return };
        if let Err(failure) = checkpoints.forget((owner, id)).await {
            tracing::error!(error.kind = failure.code, reason = failure.message, "checkpoints not forgotten");
        }
    }
}

/// Tells whether the parts that a run needs are there.
#[async_trait::async_trait]
pub trait Readiness: Send + Sync {
    /// What stands and what does not, in bounded time.
    async fn check(&self) -> health::Report;
}

/// The whole surface; `parts` are those of the page that families of tools bring, and `brand` is the deployment's own.
pub fn router(config: &ServerConfig, services: Services, (parts, brand): (PageParts, &Brand)) -> Router {
    let taken_in = body::BodyBounds {
        head_bytes: Some(config.head_bytes).filter(|bytes| *bytes != 0),
        body_bytes: Some(config.body_limit_bytes).filter(|bytes| *bytes != 0),
        time: Some(config.body_timeout_s).filter(|time| *time != 0).map(Duration::from_secs),
    };
    let shares = share::Shares::from_config(config, services.dev_tokens.is_some());
    let renews = services.renewal.is_some();
    let has_tokens = services.dev_tokens.is_some() || services.sign_in.is_some();
    let has_cookie = services.cookie_tokens.is_some() || services.session_tokens.is_some();
    let (protocols, wires) = wires::routes(&services.dialects);
    // The first is the outermost. As one layer, since a router puts a box around each route for each that it has.
    let around = ServiceBuilder::new()
        .layer(middleware::from_fn_with_state((shares, wires), request_id::layer))
        .layer(middleware::from_fn_with_state(taken_in, body::preflight))
        .option_layer(cors(&config.cors_allowed_origins, has_cookie))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            axum::response::IntoResponse::into_response(Problem::internal())
        }))
        .layer(middleware::from_fn_with_state(taken_in, body::layer))
        .option_layer(renews.then(|| middleware::from_fn(auth::renewing)));
    let (routes, _) = protocols.merge(health::routes()).split_for_parts();
    routes
        .merge(services.metrics.clone().map_or_else(Router::new, metrics::routes))
        .merge(if config.page { page::routes(parts, brand, has_tokens) } else { Router::new() })
        .merge(if config.docs { description::routes().merge(docs::routes()) } else { Router::new() })
        .fallback(nothing)
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(services)
        .layer(around)
}

/// The routes of the native protocol beside its chat turns.
fn native() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(runs::get))
        .routes(routes!(calls::list))
        .routes(routes!(runs::events))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::go_on))
        .routes(routes!(feedback::give, feedback::take_back))
        .merge(uploads::routes())
        .routes(routes!(conversations::list, conversations::open))
        .routes(routes!(conversations::get, conversations::change, conversations::delete))
        .routes(routes!(conversations::export))
        .routes(routes!(search::search))
        .routes(routes!(conversations::trail))
        .routes(routes!(prewarm::prewarm))
        .routes(routes!(changes::changes))
        .routes(routes!(changes::checkpoints))
        .routes(routes!(changes::approve))
        .routes(routes!(changes::reset))
        .routes(routes!(changes::restore))
        .routes(routes!(plans::list))
        .routes(routes!(plans::get, plans::drop_waiting))
        .routes(routes!(profiles::list))
        .routes(routes!(usage::get))
        .routes(routes!(audit::get))
        .routes(routes!(users::delete))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::get, approvals::decide))
        .routes(routes!(directives::list, directives::request))
        .routes(routes!(directives::get))
        .routes(routes!(directives::decide))
        .routes(routes!(directives::cancel))
        .routes(routes!(directives::rerun))
        .routes(routes!(signals::list, signals::emit))
        .routes(routes!(signals::get))
        .routes(routes!(signals::replay))
        .routes(routes!(timeline::get))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::retry))
        .routes(routes!(previews::get))
        .routes(routes!(previews::decide))
}

/// 404.
async fn nothing() -> Problem {
    Problem::not_found("there is nothing at this path")
}

/// CORS outside of whatever answers, so that preflights need no token and error answers carry the headers too. Without listed
/// origins there is none. It answers every `OPTIONS` itself, so what holds for all requests stands outside of it. With
/// `has_cookie`, pages of listed origins may send their cookie; those of `*` may not.
fn cors(origins: &[String], has_cookie: bool) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let request_id = HeaderName::from_static("x-request-id");
    let is_any = origins.iter().any(|origin| origin == "*");
    let allowed = match is_any {
        true => AllowOrigin::any(),
        false => AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok())),
    };
    let layer = CorsLayer::new()
        .allow_origin(allowed)
        .allow_credentials(has_cookie && !is_any)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS])
        // Clients of many kinds send headers of their own, and only the token identifies the user.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            request_id,
            request_id::NAME_OF_MESSAGES,
            HeaderName::from_static("x-run-id"),
            HeaderName::from_static("mcp-session-id"),
            HeaderName::from_static("x-conversation-id"),
            HeaderName::from_static("x-resumable-stream-id"),
            HeaderName::from_static("server-timing"),
            HeaderName::from_static("x-should-retry"),
            HeaderName::from_static("x-switchboard-ignored"),
            auth::NEW_TOKEN,
            HeaderName::from_static("x-vercel-ai-ui-message-stream"),
            header::LOCATION,
            header::RETRY_AFTER,
            views::RATE_LIMIT,
            views::RATE_LIMIT_POLICY,
            header::WWW_AUTHENTICATE,
        ])
        .max_age(Duration::from_secs(600));
    Some(layer)
}
