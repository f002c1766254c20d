//! A connection to a server: how it is made, and what a server may tell us unasked.
//!
//! **Invariant:** a server gets what the operator has configured for it and nothing of a caller: no token, no name. A
//! program gets a bare environment, since ours holds keys.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, CustomResult, Implementation, ListToolsRequest,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion, ServerResult, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, Peer, ServiceError, ServiceExt};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use super::config::McpConfig;
use super::guard::Guarded;
use super::look::EVENT_BYTES;
use super::program::{self, short};
use crate::bounded::address::is_loopback;
use crate::bounded::client::{Reach, builder};
use crate::bounded::intake::Intake;
use crate::bounded::json::{self, NodeBudget};
use crate::chat::names;
use crate::tools::backend::MachineTokens;
use crate::tools::secret::header;

/// 100 pages of tools, and 1,000 tools: whoever has more has an error.
const PAGES: usize = 100;
const TOOLS: usize = 1000;

/// 64 notices of progress wait for their call; more are dropped, since only the newest are of interest.
const PROGRESS_WAITING: usize = 64;

/// 1,000 requests at once: more than a process has runs. Those behind it wait for one to end, listings too.
const REQUESTS: usize = 1000;

/// Replaces a path.
const PATH: &str = "[path]";

/// 8 characters: a part of a path that is as long may be a key wherever it stands.
const KEY_CHARS: usize = 8;

/// A running connection.
pub(super) type Running = RunningService<RoleClient, Listener>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The program could not be started.
    #[error("the program could not be started")]
    Start(#[source] std::io::Error),
    /// The HTTP client could not be made.
    #[error("the http client could not be set up")]
    Client(#[source] reqwest::Error),
    /// The handshake failed.
    #[error("the handshake failed: {0}")]
    Handshake(String),
    /// The tools could not be had.
    #[error("the tools could not be listed: {0}")]
    List(String),
    /// It took too long.
    #[error("it did not answer within {0} s")]
    TimedOut(u64),
}

impl LinkError {
    /// The same without the path of `url`, which may hold a key: clients repeat the address in their errors, and servers the
    /// path.
    pub(super) fn without(self, url: &str) -> Self {
        match self {
            Self::Handshake(text) => Self::Handshake(short(&hidden(&text, url))),
            Self::List(text) => Self::List(short(&hidden(&text, url))),
            other @ (Self::Start(_) | Self::Client(_) | Self::TimedOut(_)) => other,
        }
    }
}

/// `text` without the path of `url`, whole or in parts.
fn hidden(text: &str, url: &str) -> String {
    let mut hidden = text.to_owned();
    let Ok(parsed) = Url::parse(url) else { return hidden.replace(url, PATH) };
    let root = parsed.origin().ascii_serialization();
    let as_written = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    let parts = parsed.path().split('/').chain(as_written.into_iter().flat_map(|path| path.split('/')));
    let long = parts.filter(|part| part.len() >= KEY_CHARS);
    let whole = [url, parsed.as_str(), parsed.path()].into_iter().filter(|whole| whole.len() > 1);
    for secret in whole.chain(long) {
        hidden = hidden.replace(secret, if secret.contains("://") { root.as_str() } else { PATH });
    }
    hidden
}

/// Takes what a server says unasked.
#[derive(Clone, Default)]
pub(super) struct Listener {
    /// Its tools have changed, or it may be gone: a listing is due.
    pub(super) look: Arc<Notify>,
    calls: Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>>,
}

/// The progress of one call, until it is dropped.
pub(super) struct Progress {
    token: ProgressToken,
    listener: Listener,
    notices: mpsc::Receiver<ProgressNotificationParam>,
}

impl Listener {
    /// The progress with `token`.
    pub(super) fn follow(&self, token: ProgressToken) -> Progress {
        let (tell, notices) = mpsc::channel(PROGRESS_WAITING);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), tell);
        Progress { token, listener: self.clone(), notices }
    }
}

impl Progress {
    /// The next notice.
    pub(super) async fn next(&mut self) -> Option<ProgressNotificationParam> {
        self.notices.recv().await
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.listener.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("switchboard", env!("CARGO_PKG_VERSION"));
        // The newest revision has no handshake.
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, notice: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tell) = calls.get(&notice.progress_token) {
            // One that does not fit is dropped.
            let _ = tell.try_send(notice);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.look.notify_one();
    }
}

/// A client for a server; one on this machine is reached without the proxy that the environment may name.
pub(super) fn client(name: &str, config: &McpConfig, intake: &Intake) -> Result<Guarded, LinkError> {
    let url = config.url.expose();
    let is_near = Url::parse(url).is_ok_and(|url| is_loopback(&url));
    let client = builder(Reach::Private);
    let client = if is_near { client.no_proxy() } else { client };
    let tokens = MachineTokens::new(name, &config.issuer(), if config.send_resource { url } else { "" })
        .map_err(LinkError::Client)?;
    Ok(Guarded::new(client.build().map_err(LinkError::Client)?, tokens, intake.clone()))
}

/// Connects to the server called `name` and shakes hands. `tasks` read a program's log until `stop`.
pub(super) async fn connect(
    name: &str,
    config: &McpConfig,
    http: &Guarded,
    listener: Listener,
    (tasks, stop): (&TaskTracker, &CancellationToken),
) -> Result<Running, LinkError> {
    let served = match config.command.is_empty() {
        true => {
            let headers = config.headers.iter().filter_map(|(name, value)| header(name, value).ok()).collect();
            let endpoint = StreamableHttpClientTransportConfig::with_uri(config.url.expose())
                .custom_headers(headers)
                .max_concurrent_requests(REQUESTS)
                .max_sse_event_size(EVENT_BYTES);
            let transport = || StreamableHttpClientTransport::with_client(http.clone(), endpoint.clone());
            match listener.clone().serve(transport()).await {
                // Statuses of such a refusal are many.
                Err(refused) => listener.serve_with_lifecycle(transport(), newest()).await.map_err(|_| refused),
                served => served,
            }
        }
        false => match listener
            .clone()
            .serve(program::start(name, config, http.intake(), (tasks, stop)).map_err(LinkError::Start)?)
            .await
        {
            Err(refused @ ClientInitializeError::JsonRpcError(_)) => {
                let again = program::start(name, config, http.intake(), (tasks, stop)).map_err(LinkError::Start)?;
                listener.serve_with_lifecycle(again, newest()).await.map_err(|_| refused)
            }
            served => served,
        },
    };
    served.map_err(|error| LinkError::Handshake(error.to_string()).without(config.url.expose()))
}

/// The newest revision, for servers that know no `initialize` any more. Others are asked that first: some end the connection
/// over whatever comes before it.
fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

/// All tools of a server, as it tells them. In all pages together they may take what one event may.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, LinkError> {
    let refused = |error: &dyn std::fmt::Display| LinkError::List(error.to_string());
    let mut tools: Vec<Tool> = Vec::new();
    let mut cursor: Option<String> = None;
    let mut budget = NodeBudget::for_bytes(EVENT_BYTES, None);
    for _ in 0..PAGES {
        let asked = cursor.take();
        let (page, next) = page(peer, asked.clone()).await?;
        for tool in &page {
            let definition = serde_json::to_value(tool).map_err(|error| refused(&error))?;
            budget.take(json::memory(&definition)).map_err(|error| refused(&error))?;
        }
        // A server that says the same cursor again, and nothing new, has no more.
        let is_known = |tool: &Tool| tools.iter().any(|known| known.name == tool.name);
        if next.is_some() && next == asked && page.iter().all(is_known) {
            return Ok(tools);
        }
        tools.extend(page);
        cursor = next;
        if cursor.is_none() || tools.len() > TOOLS {
            break;
        }
    }
    match cursor.is_none() && tools.len() <= TOOLS {
        true => Ok(tools),
        false => Err(LinkError::List(format!("there are more than {TOOLS} of them, or {PAGES} pages"))),
    }
}

/// The tools behind `cursor`, and the next cursor. A tool whose definition is none of the protocol is left out.
async fn page(peer: &Peer<RoleClient>, cursor: Option<String>) -> Result<(Vec<Tool>, Option<String>), LinkError> {
    let refused = |error: &dyn std::fmt::Display| LinkError::List(error.to_string());
    let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
    match peer.list_tools(params.clone()).await {
        Ok(page) => return Ok((page.tools, page.next_cursor)),
        Err(ServiceError::UnexpectedResponse) => {}
        Err(error) => return Err(refused(&error)),
    }
    let request = ListToolsRequest { params, ..ListToolsRequest::default() };
    let answer = peer.send_request(ClientRequest::ListToolsRequest(request)).await.map_err(|error| refused(&error))?;
    let ServerResult::CustomResult(CustomResult(Value::Object(mut page))) = answer else {
        return Err(refused(&ServiceError::UnexpectedResponse));
    };
    let Some(Value::Array(tools)) = page.remove("tools") else {
        return Err(refused(&ServiceError::UnexpectedResponse));
    };
    let read = |tool: Value| {
        let name: Option<String> = tool["name"].as_str().map(|name| name.chars().take(names::MAX_BYTES).collect());
        let read = json::parse(&tool.to_string());
        read.inspect_err(
            |error| tracing::warn!(gen_ai.tool.name = ?name, %error, "a tool of a server is not understood"),
        )
        .ok()
    };
    let cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Ok((tools.into_iter().filter_map(read).collect(), cursor))
}

/// Whether a message that failed never left: the server was not there.
pub(super) fn never_left(error: &ServiceError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = match error {
        ServiceError::TransportSend(error) => Some(&*error.error),
        _ => None,
    };
    while let Some(error) = cause {
        if error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect) {
            return true;
        }
        cause = error.source();
    }
    false
}
