//! Servers of tools that speak the Model Context Protocol (<https://modelcontextprotocol.io>, over streamable HTTP or with
//! a program of ours): what they offer at the moment, and calls of it.
//!
//! A tool of the server `docs` that is called `search` there is `docs__search` here.

mod call;
pub mod config;
mod guard;
mod link;
mod listing;
mod look;
mod post;
mod program;
mod result;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::link::Listener;
use self::listing::BETWEEN;
use self::server::Server;
use super::{Source, Tool};
use crate::agent::ports::pins::PinStore;
use crate::agent::ports::tools::OfferedTool;
use crate::bounded::intake::Intake;
use crate::bounded::memory::Memory;
use crate::chat::line::one_line;

pub use self::call::McpError;
pub use self::config::McpConfig;
pub use self::link::LinkError;

/// All servers.
pub struct Servers {
    by_name: BTreeMap<String, Arc<Server>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A tool as a server tells of it, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTool {
    /// The server's name for it.
    pub name: String,
    /// Its own description, on one line.
    pub description: String,
    /// The digest of its definition, as a pin wants it.
    pub digest: String,
}

impl Servers {
    /// Connects to `servers`, all at once, and waits until each has answered or has not: one that has not is tried again
    /// until [`Self::close`]. What they say goes through `intake`, and what their tools are is compared with `pins`.
    ///
    /// # Errors
    /// When no HTTP client can be made; a server that cannot be reached is none.
    pub async fn start(
        servers: &BTreeMap<String, McpConfig>,
        intake: &Intake,
        pins: Arc<dyn PinStore>,
    ) -> Result<Arc<Self>, LinkError> {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let mut by_name = BTreeMap::new();
        for (name, config) in servers {
            let http = link::client(name, config, intake)?;
            by_name.insert(name.clone(), Server::new(name, config, http, pins.clone(), (tasks.clone(), stop.clone())));
        }
        for server in by_name.values() {
            tasks.spawn(Arc::clone(server).keep());
        }
        join_all(by_name.values().map(|server| server.tried())).await;
        Ok(Arc::new(Self { by_name, tasks, stop }))
    }

    /// Ends all connections and programs.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Whoever could not go on to the end leaves no task behind.
        self.stop.cancel();
    }
}

impl Source for Servers {
    fn offered(&self, source: &str) -> Vec<OfferedTool> {
        self.by_name.get(source).map(|server| server.offered()).unwrap_or_default()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let (server, _) = name.split_once(BETWEEN)?;
        self.by_name.get(server)?.find(name).map(|tool| tool as Arc<dyn Tool>)
    }
}

/// The tools of the server called `name`, listed once; neither pins nor kept lists are looked at.
///
/// # Errors
/// When it cannot be reached.
pub async fn ask(name: &str, config: &McpConfig) -> Result<Vec<ListedTool>, LinkError> {
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let http = link::client(name, config, &Intake::new(Memory::new(0)))?;
    let asking = async {
        let listener = Listener::default();
        let running = link::connect(name, config, &http, listener, (&tasks, &stop)).await?;
        let tools = link::list(running.peer()).await.map_err(|error| error.without(config.url.expose()));
        // Whether it ends well is nothing to its tools.
        let _ = running.cancel().await;
        tools
    };
    let late = |_| Err(LinkError::TimedOut(config.connect_timeout_s));
    let tools = timeout(config.connect_patience(), asking).await.unwrap_or_else(late);
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    let listed = |tool: rmcp::model::Tool| ListedTool {
        digest: listing::digest_of(&tool),
        description: beginning(tool.description.as_deref().unwrap_or_default()),
        name: tool.name.into_owned(),
    };
    Ok(tools?.into_iter().map(listed).collect())
}

/// The first 200 characters on one line.
fn beginning(text: &str) -> String {
    one_line(text).chars().filter(|c| !c.is_control()).take(200).collect()
}
