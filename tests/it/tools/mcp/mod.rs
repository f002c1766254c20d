//! Servers of tools: a real one that we did not write, and scripted ones that do what no good one would.

mod backends;
mod conformance;
mod everything;
mod fake;
mod habits;
mod hostile;
mod newest;
mod pins;
mod settings;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use switchboard::agent::ports::pins::PinStore;
use switchboard::agent::ports::store_error::StoreError;
use switchboard::agent::ports::tools::{OfferedTool, Report, Reporter, ToolContext};
use switchboard::bounded::intake::Intake;
use switchboard::bounded::memory::Memory;
use switchboard::chat::ids::ConversationId;
use switchboard::chat::tool::Progress;
use switchboard::tools::mcp::{McpConfig, Servers};
use switchboard::tools::{Source, Tool};

use super::{called, somebody};
use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted};
use crate::support::upstream::Upstream;

pub use self::fake::{Fake, answer, result, text, tool};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A profile with all tools of one server.
const PROFILE: &str = r#"
id = "desk"
context_type = "desk"
instructions = ["workflow/role.md"]
tools = ["discover_entities"]
sources = ["peer"]
"#;

/// The product with these servers and [`PROFILE`], and a model that plays `turns`.
pub async fn product(servers: &str, turns: impl IntoIterator<Item = Script>) -> Scripted {
    product_with(servers, PROFILE, &[], turns).await
}

/// The same with another profile and settings.
pub async fn product_with(
    servers: &str,
    profile: &str,
    settings: &[(&str, &str)],
    turns: impl IntoIterator<Item = Script>,
) -> Scripted {
    let data = tempfile::tempdir().unwrap();
    for (path, text) in [("default.toml", servers), ("profiles/desk.toml", profile)] {
        let path = data.path().join("config").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    let base_url = format!("{}/v1", model.url());
    let mut all = vec![("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", base_url.as_str())];
    all.extend(settings);
    Scripted { app: TestApp::start_in(data, &all).await, model }
}

/// A message in that profile.
pub fn message(text: &str) -> Value {
    json!({"message": text, "context_type": "desk"})
}

/// The names of the tools of each request to the model.
pub fn offered(s: &Scripted) -> Vec<Vec<String>> {
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    let names = |tools: &Value| tools.as_array().unwrap().iter().map(name).collect();
    s.model.requests().iter().map(|request| names(&request.json()["tools"])).collect()
}

/// Keeps what it sees first.
#[derive(Default)]
struct Pins(Mutex<HashMap<String, String>>);

#[async_trait]
impl PinStore for Pins {
    async fn keep_first(
        &self,
        _server: &str,
        seen: &[(String, String)],
        _most: usize,
    ) -> Result<HashMap<String, String>, StoreError> {
        let mut kept = self.0.lock().unwrap();
        for (tool, digest) in seen {
            kept.entry(tool.clone()).or_insert_with(|| digest.clone());
        }
        Ok(kept.clone())
    }

    async fn accept(&self, _server: &str, _definitions: &[(String, String)]) -> Result<(), StoreError> {
        unreachable!("nobody accepts anything")
    }
}

/// One server, `peer`, on its own.
async fn peer(config: &str) -> std::sync::Arc<Servers> {
    let config: McpConfig = toml::from_str(config).unwrap();
    let intake = Intake::new(Memory::new(0));
    Servers::start(&[("peer".to_owned(), config)].into(), &intake, Arc::new(Pins::default())).await.unwrap()
}

/// Waits until what the server offers is as wanted.
async fn until(servers: &Servers, is_wanted: impl Fn(&[OfferedTool]) -> bool) {
    let waiting = async {
        while !is_wanted(&servers.offered("peer")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
}

/// Calls a tool: its result or the text of its error, and the progress that was told.
async fn call(servers: &Servers, tool: &str, args: &Value) -> (Result<String, String>, Vec<Progress>) {
    let tool = servers.find(tool).unwrap();
    let told = Mutex::new(Vec::new());
    let report = |report| match report {
        Report::Progress(progress) => told.lock().unwrap().push(progress),
        Report::Directive(notice) => panic!("{notice:?}"),
    };
    let output = run(&*tool, args.as_object().unwrap(), Reporter::to(&report)).await;
    (output, told.into_inner().unwrap())
}

async fn run(tool: &dyn Tool, args: &Map<String, Value>, progress: Reporter<'_>) -> Result<String, String> {
    let (caller, conversation) = (somebody("t"), ConversationId::fresh());
    let cx = ToolContext { progress, ..called(&caller, &conversation) };
    tool.call(args, &cx).await.map(|output| output.content).map_err(|error| error.to_string())
}
