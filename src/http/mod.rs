//! The product's HTTP surface: every route on this page, each in its own file.
//!
//! **Invariant:** only this floor knows status codes; [`problem::Problem`] is the one error, and its body the one
//! error body but for the routes of `chat-stream` and of OpenAI's protocol, whose clients know others.

mod accept;
mod ag_ui;
mod ai_sdk;
mod answer;
mod approvals;
pub mod audit;
pub mod auth;
mod body;
mod chain;
mod chat;
mod chat_stream;
pub mod code;
mod conversation_views;
mod conversations;
mod copilotkit;
pub mod description;
mod docs;
mod earlier;
mod export;
mod files;
pub mod health;
pub mod metrics;
mod openai_chat;
mod page;
mod previews;
pub mod problem;
mod profiles;
pub mod recorder;
mod request_id;
mod runs;
pub mod server;
mod share;
mod sse;
mod usage;
mod views;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::routing::{get, post};
use axum::{Router, middleware};
use serde::Deserialize;
use tower::util::option_layer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::agent::ports::audit::AuditStore;
use crate::agent::ports::chats::ChatStore;
use crate::agent::ports::conversations::ConversationStore;
use crate::agent::ports::identity::Authenticator;
use crate::agent::ports::previews::PreviewDesk;
use crate::agent::ports::quotas::{QuotaStore, Quotas};
use crate::agent::ports::usage::UsageStore;
use crate::bounded::memory::Memory;
use crate::dialect::Dialect;
use crate::dialect::ag_ui::AgUi;
use crate::dialect::ai_sdk::{AiSdk, Version};
use crate::dialect::chat_stream::ChatStream;
use crate::dialect::openai_chat::OpenAiChat;
use crate::observe::prometheus::Page;
use crate::runs::Runs;
use problem::Problem;
use recorder::Recorder;

pub use chat_stream::Config as ChatStreamConfig;

/// `[server]`: where and how the product listens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address and port; port 0 takes a free one.
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
    /// Whether the chat page is served.
    pub page: bool,
    /// Whether the API's description and its page are served.
    pub docs: bool,
    /// The role that may see what its whole tenant has used; empty is nobody.
    pub usage_role: String,
    /// Roles that are told in `Server-Timing` where the time of an answer went; in `dev` mode everybody is.
    pub timing_roles: Vec<String>,
    /// The role that may read the audit record of its tenant; empty is nobody.
    pub audit_role: String,
    /// The role that may read the chats of all users of its tenant; empty is nobody.
    pub admin_role: String,
}

impl Default for Config {
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
            max_connections: 10_000,
            connections_per_address: 1000,
            trusted_proxies: PRIVATE.map(str::to_owned).to_vec(),
            requests_per_user: 256,
            bytes_per_user: 16 << 20,
            ai_sdk_version: Version::V5,
            page: true,
            docs: true,
            usage_role: String::new(),
            timing_roles: Vec::new(),
            audit_role: String::new(),
            admin_role: "platform_admin".to_owned(),
        }
    }
}

/// Where reverse proxies are: this machine, and networks that nobody outside of them can reach us from.
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

/// What the routes work with.
#[derive(Clone)]
pub struct Services {
    /// Starts runs.
    pub runs: Arc<Runs>,
    /// Verifies tokens.
    pub authenticator: Arc<dyn Authenticator>,
    /// Makes those of the page; `None` where they come from somebody else.
    pub dev_tokens: Option<auth::DevTokens>,
    /// Shows previews that wait, and decides them.
    pub previews: Arc<dyn PreviewDesk>,
    /// Shows and changes conversations.
    pub conversations: Arc<dyn ConversationStore>,
    /// Tells whether a run could be served now.
    pub readiness: Arc<dyn Readiness>,
    /// The native protocol.
    pub agent_chat: Arc<dyn Dialect>,
    /// The same, as lines of JSON.
    pub ndjson: Arc<dyn Dialect>,
    /// The protocol of page assistants.
    pub chat_stream: ChatStream,
    /// The protocol of the AI SDK.
    pub ai_sdk: AiSdk,
    /// OpenAI's protocol.
    pub openai_chat: OpenAiChat,
    /// Tells what users have used.
    pub usage: Arc<dyn UsageStore>,
    /// Who may see what the whole tenant has used; empty is nobody.
    pub usage_role: String,
    /// Who may read the audit record of their tenant; empty is nobody.
    pub audit_role: String,
    /// Who may read the chats of all users of their tenant; empty is nobody.
    pub admin_role: String,
    /// Counts exports.
    pub exports: Arc<dyn QuotaStore>,
    /// How many there may be.
    pub quotas: Quotas,
    /// The audit record.
    pub audit: Arc<dyn AuditStore>,
    /// Counts the tokens that were refused.
    pub recorder: Arc<Recorder>,
    /// Numbers their conversations and shows them.
    pub chats: Arc<dyn ChatStore>,
    /// AG-UI and CopilotKit.
    pub ag_ui: AgUi,
    /// The page for Prometheus, where it is on this port.
    pub metrics: Option<Page>,
    /// Has tokens renewed, where somebody does that.
    pub renewal: Option<Arc<auth::Renewal>>,
    /// The budget for what is taken in and given out as a whole.
    pub memory: Memory,
    /// Silence on a stream before a comment is sent.
    pub keep_alive: Option<Duration>,
}

/// Tells whether the parts that a run needs are there.
#[async_trait::async_trait]
pub trait Readiness: Send + Sync {
    /// What stands and what does not, in bounded time.
    async fn check(&self) -> health::Report;
}

/// The whole surface.
pub fn router(config: &Config, services: Services) -> Router {
    let taken_in = body::Bounds {
        head_bytes: Some(config.head_bytes).filter(|bytes| *bytes != 0),
        body_bytes: Some(config.body_limit_bytes).filter(|bytes| *bytes != 0),
        time: Some(config.body_timeout_s).filter(|time| *time != 0).map(Duration::from_secs),
    };
    let shares = share::Shares::of(config, services.dev_tokens.is_some());
    let renews = services.renewal.is_some();
    Router::new()
        .route("/v1/agent/chat", post(chat::post))
        .route("/v1/agent/runs/{run_id}", get(runs::get))
        .route("/v1/agent/runs/{run_id}/events", get(runs::events))
        .route("/v1/agent/runs/{run_id}/cancel", post(runs::cancel))
        .route("/v1/agent/runs/{run_id}/continue", post(runs::go_on))
        .route("/v1/agent/conversations", get(conversations::list))
        .route(
            "/v1/agent/conversations/{conversation_id}",
            get(conversations::get).patch(conversations::rename).delete(conversations::delete),
        )
        .route("/v1/agent/conversations/{conversation_id}/export", get(conversations::export))
        .route("/v1/agent/conversations/{conversation_id}/trail", get(conversations::trail))
        .route("/v1/agent/profiles", get(profiles::list))
        .route("/v1/agent/usage", get(usage::get))
        .route("/v1/agent/audit", get(audit::get))
        .route("/v1/agent/approvals", get(approvals::list))
        .route("/v1/agent/approvals/{approval_id}", get(approvals::get).post(approvals::decide))
        .route("/v1/agent/previews/{preview_id}", get(previews::get))
        .route("/v1/agent/previews/{preview_id}/decision", post(previews::decide))
        .route("/v1/ai-sdk/chat", post(ai_sdk::post))
        .route("/v1/ai-sdk/chat/{chat_id}/stream", get(ai_sdk::resume))
        .route("/v1/ai-sdk/chat/{chat_id}/stop", post(ai_sdk::stop))
        .route("/api/chat/stream", post(chat_stream::post))
        .route("/api/chats", get(chat_stream::list))
        .route("/api/chats/{chat_id}", get(chat_stream::get))
        .route("/api/chats/admin/all", get(chat_stream::all))
        .route("/api/chats/admin/{chat_id}", get(chat_stream::of_any))
        .route("/v1/ag-ui/{agent}", post(ag_ui::post))
        .route("/v1/copilotkit/info", get(copilotkit::info))
        .route("/v1/copilotkit/agent/{agent}/run", post(ag_ui::post))
        .route("/v1/copilotkit/agent/{agent}/connect", post(copilotkit::connect))
        .route("/v1/copilotkit/agent/{agent}/stop/{thread}", post(copilotkit::stop))
        .route("/v1/models", get(openai_chat::models::list))
        .route("/v1/models/{*model}", get(openai_chat::models::get))
        .route("/v1/chat/completions", post(openai_chat::post))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .merge(services.metrics.clone().map_or_else(Router::new, metrics::routes))
        .merge(if config.page { page::routes() } else { Router::new() })
        .merge(if config.docs { description::routes().merge(docs::routes()) } else { Router::new() })
        .fallback(|| async { Problem::not_found("there is nothing at this path") })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(services)
        .layer(option_layer(renews.then(|| middleware::from_fn(auth::renewing))))
        .layer(middleware::from_fn_with_state(taken_in, body::layer))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            axum::response::IntoResponse::into_response(Problem::internal())
        }))
        .layer(option_layer(cors(&config.cors_allowed_origins)))
        .layer(middleware::from_fn_with_state(taken_in, body::preflight))
        .layer(middleware::from_fn_with_state(shares, request_id::layer))
}

/// CORS outside of whatever answers, so that preflights need no token and error answers carry the headers too. Without listed
/// origins there is none. It answers every `OPTIONS` itself, so what holds for all requests stands outside of it.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let request_id = HeaderName::from_static("x-request-id");
    let allowed = match origins.iter().any(|origin| origin == "*") {
        true => AllowOrigin::any(),
        false => AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok())),
    };
    let layer = CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE, Method::OPTIONS])
        // Clients of many kinds send headers of their own, and none of them says who somebody is but the token.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            request_id,
            HeaderName::from_static("x-run-id"),
            HeaderName::from_static("x-conversation-id"),
            HeaderName::from_static("x-resumable-stream-id"),
            HeaderName::from_static("server-timing"),
            HeaderName::from_static("x-should-retry"),
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
