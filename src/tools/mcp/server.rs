//! A server and the task that keeps it connected: it connects, lists, looks again when something has changed, and comes
//! back with growing pauses when the server was gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rmcp::Peer;
use rmcp::model::Tool;
use rmcp::service::RoleClient;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call::McpTool;
use super::config::McpConfig;
use super::guard::Guarded;
use super::link::{self, LinkError, Listener, Running};
use super::listing::{self, Seen};
use crate::agent::ports::pins::PinStore;
use crate::agent::ports::tools::OfferedTool;
use crate::chat::causes::Causes;

/// The first pause before a new try, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Half a second between two looks at the tools of a server that says all the time that they change.
const BREATH: Duration = Duration::from_millis(500);

/// Ten minutes between two looks at the tools of a server that says nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

/// 5 s for a server to end by itself when we stop.
const GOODBYE: Duration = Duration::from_secs(5);

/// One server.
pub(super) struct Server {
    name: String,
    config: McpConfig,
    http: Guarded,
    pins: Arc<dyn PinStore>,
    tasks: TaskTracker,
    stop: CancellationToken,
    tools: RwLock<Tools>,
    seen: Mutex<Seen>,
    /// Whether the first try is over.
    tried: watch::Sender<bool>,
}

#[derive(Default)]
struct Tools {
    is_connected: bool,
    /// The newest list; it stays when the server goes, so that a call of it can say why it fails.
    listed: Arc<[Arc<McpTool>]>,
}

impl Server {
    pub(super) fn new(
        name: &str,
        config: &McpConfig,
        http: Guarded,
        pins: Arc<dyn PinStore>,
        (tasks, stop): (TaskTracker, CancellationToken),
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            config: config.clone(),
            http,
            pins,
            tasks,
            stop,
            tools: RwLock::default(),
            seen: Mutex::default(),
            tried: watch::Sender::new(false),
        })
    }

    /// Waits until the server has answered for the first time, or has not.
    pub(super) async fn tried(&self) {
        // It is never dropped while a caller waits.
        let _ = self.tried.subscribe().wait_for(|tried| *tried).await;
    }

    /// The tools that it offers; none while it cannot be reached.
    pub(super) fn offered(&self) -> Vec<OfferedTool> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        match tools.is_connected {
            true => tools.listed.iter().map(|tool| tool.listed.offered.clone()).collect(),
            false => Vec::new(),
        }
    }

    /// Its tool that we call `name`.
    pub(super) fn find(&self, name: &str) -> Option<Arc<McpTool>> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools.listed.iter().find(|tool| tool.listed.offered.def.name == name).cloned()
    }

    /// Keeps it connected until it is stopped.
    pub(super) async fn keep(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        // One log line for a server that stays away.
        let mut is_logged = false;
        while !self.stop.is_cancelled() {
            let since = Instant::now();
            match self.stop.run_until_cancelled(self.connected()).await {
                None => break,
                Some(Ok((running, listener))) => {
                    is_logged = false;
                    self.attend(running, &listener).await;
                    if since.elapsed() > LONGEST_PAUSE {
                        pause = FIRST_PAUSE;
                    }
                }
                Some(Err(error)) if !is_logged => {
                    is_logged = true;
                    tracing::warn!(mcp.server = self.name, error = %Causes(&error), "a server of tools cannot be used");
                }
                Some(Err(error)) => {
                    tracing::debug!(mcp.server = self.name, error = %Causes(&error), "a server of tools still cannot be used");
                }
            }
            self.tried.send_replace(true);
            let part = 0.5 + fastrand::f64() / 2.0;
            self.stop.run_until_cancelled(sleep(pause.mul_f64(part))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.tried.send_replace(true);
    }

    /// A new connection whose tools are known.
    async fn connected(&self) -> Result<(Running, Listener), LinkError> {
        let listener = Listener::default();
        let connecting = async {
            let tasks = (&self.tasks, &self.stop);
            let running = link::connect(&self.name, &self.config, &self.http, listener.clone(), tasks).await?;
            let count = self.list(running.peer(), &listener).await?;
            tracing::info!(mcp.server = self.name, tools = count, "a server of tools is connected");
            Ok(running)
        };
        let late = |_| Err(LinkError::TimedOut(self.config.connect_timeout_s));
        let running = timeout(self.config.connect_patience(), connecting).await.unwrap_or_else(late)?;
        Ok((running, listener))
    }

    /// Takes the server's tools as they are now.
    async fn list(&self, peer: &Peer<RoleClient>, listener: &Listener) -> Result<usize, LinkError> {
        let tools = link::list(peer).await.map_err(|error| error.without(self.config.url.expose()))?;
        let kept = self.kept(&tools).await;
        let listed = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.keep(kept);
            listing::offered(&self.name, &self.config, tools, &mut seen)
        };
        let listed: Arc<[_]> = listed
            .into_iter()
            .map(|listed| {
                Arc::new(McpTool {
                    listed,
                    peer: peer.clone(),
                    listener: listener.clone(),
                    patience: self.config.patience(),
                    tasks: self.tasks.clone(),
                })
            })
            .collect();
        let count = listed.len();
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Tools { is_connected: true, listed };
        Ok(count)
    }

    /// The definitions that count, where the operator has not pinned them; `None` while the store does not tell: then what
    /// this process knows of them counts, and what it does not know is not offered.
    async fn kept(&self, tools: &[Tool]) -> Option<HashMap<String, String>> {
        if !self.config.pins.is_empty() {
            return Some(HashMap::new());
        }
        let wanted = tools.iter().filter(|tool| listing::is_wanted(&self.config, tool));
        let seen: Vec<_> = wanted.map(|tool| (tool.name.to_string(), listing::digest_of(tool))).collect();
        match self.pins.keep_first(&self.name, &seen, listing::NAMES_KEPT).await {
            Ok(kept) => Some(kept),
            Err(error) => {
                tracing::warn!(mcp.server = self.name, error = %Causes(&error), "definitions of tools cannot be compared");
                None
            }
        }
    }

    /// Stays with a connection until it ends.
    async fn attend(&self, running: Running, listener: &Listener) {
        self.tried.send_replace(true);
        let peer = running.peer().clone();
        let end = running.cancellation_token();
        let mut ended = std::pin::pin!(running.waiting());
        let is_over = loop {
            let looked = tokio::select! {
                _ = &mut ended => break true,
                () = self.stop.cancelled() => break false,
                () = listener.look.notified() => self.look(&peer, listener).await,
                () = sleep(LOOK_AGAIN) => self.look(&peer, listener).await,
            };
            if let Err(error) = looked {
                tracing::warn!(mcp.server = self.name, error = %Causes(&error), "a server of tools does not answer any more");
                break false;
            }
            tokio::select! {
                _ = &mut ended => break true,
                () = self.stop.cancelled() => break false,
                () = sleep(BREATH) => {}
            }
        };
        self.tools.write().unwrap_or_else(PoisonError::into_inner).is_connected = false;
        if is_over {
            tracing::warn!(mcp.server = self.name, "the connection to a server of tools has ended");
            return;
        }
        end.cancel();
        // A program that does not end is killed when its connection is dropped.
        let _ = timeout(GOODBYE, ended).await;
    }

    async fn look(&self, peer: &Peer<RoleClient>, listener: &Listener) -> Result<(), LinkError> {
        let late = |_| Err(LinkError::TimedOut(self.config.connect_timeout_s));
        let listed = timeout(self.config.connect_patience(), self.list(peer, listener)).await;
        listed.unwrap_or_else(late).map(drop)
    }
}
