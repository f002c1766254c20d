//! The language model providers over real sockets: what they send, what they make of every recorded answer, and what
//! they say when something fails.

mod caps;
mod checks;
mod compatible;
mod connections;
mod deviations;
mod faults;
mod forms;
mod habits;
mod http_errors;
mod models;
mod peer;
mod properties;
mod requests;
mod resilience;
mod responses;
mod scenarios;
mod signed;
mod thoughts;
mod transcripts;
mod vertex;
mod whole_server;

use std::sync::Arc;

use futures::StreamExt;
use secrecy::ExposeSecret;
use serde_json::Value;
use switchboard::agent::ports::llm::{ChatRequest, LlmProvider, MustCall, ProviderError, SentFiles, SystemPrompt};
use switchboard::agent::turn::fold::{CallIds, Turn, TurnFold};
use switchboard::chat::message::{Message, ModelOrigin, UserMessage};
use switchboard::chat::model::ModelChoice;
use switchboard::llm::{self, Common, Vendor, Wire};

/// A configuration whose vendors are all at `base_url`.
fn config(base_url: &str) -> llm::LlmConfig {
    let mut config = llm::LlmConfig::default();
    for section in config.vendors.values_mut() {
        section.common.base_url = base_url.to_owned();
    }
    set(&mut config, Vendor::Vertex, "project = 'acme-1'\napi_key = 'ya29.token'");
    config
}

/// Has the vendor's section say `text`; address, model and key stay where it says nothing of them.
fn set(config: &mut llm::LlmConfig, vendor: Vendor, text: &str) {
    let Common { base_url, model, api_key, input: _ } = &config.vendors[&vendor].common;
    let texts = [("base_url", base_url.as_str()), ("model", model), ("api_key", api_key.expose_secret())];
    let mut section: toml::Table = texts.map(|(key, text)| (key.to_owned(), text.into())).into_iter().collect();
    section.extend(text.parse::<toml::Table>().unwrap());
    config.vendors.insert(vendor, vendor.read(section).unwrap());
}

fn provider(vendor: Vendor, base_url: &str) -> Arc<dyn LlmProvider> {
    connect(vendor, &config(base_url))
}

/// The wire that OpenAI wants to be spoken to on, which `llm.openai.wire` names elsewhere.
fn responses_wire() -> &'static Wire {
    Vendor::OpenAi.wires().iter().find(|wire| wire.name == RESPONSES).unwrap()
}

/// Its name.
const RESPONSES: &str = "responses";

/// The provider of the vendor's own model.
fn connect(vendor: Vendor, config: &llm::LlmConfig) -> Arc<dyn LlmProvider> {
    llm::connect(&origin(vendor, config), config).unwrap()
}

/// The vendor's own model.
fn origin(vendor: Vendor, config: &llm::LlmConfig) -> ModelOrigin {
    config.model(vendor.name()).unwrap()
}

/// A model that only its own provider knows.
fn some_model() -> ModelOrigin {
    ModelOrigin { provider: "some".to_owned(), model: "model".to_owned() }
}

/// One turn of a conversation that only says hello: what was folded, and the error that ended it.
async fn turn(provider: &dyn LlmProvider) -> (Turn, Option<ProviderError>) {
    let system = SystemPrompt { instructions: "Be brief.".into(), client: String::new(), context: String::new() };
    let messages = [Message::User(UserMessage::new("hello"))];
    let model = ModelChoice::from_model(some_model(), Some(100));
    let request = ChatRequest {
        system: &system,
        messages: &messages,
        files: SentFiles::default(),
        tools: &[],
        may_call: true,
        must_call: MustCall::No,
        format: None,
        model: &model,
        deadline: None,
    };
    let mut stream = match provider.stream_chat(request).await {
        Ok(stream) => stream,
        Err(error) => {
            return (TurnFold::new(Arc::new(some_model()), CallIds::default()).finish(), Some(error));
        }
    };
    let mut fold = TurnFold::new(Arc::clone(&stream.origin), CallIds::default());
    let mut failure = None;
    while let Some(item) = stream.events.next().await {
        assert!(failure.is_none(), "an event after the error");
        match item {
            Ok(event) => drop(fold.push(event)),
            Err(error) => failure = Some(error),
        }
    }
    (fold.finish(), failure)
}

/// The error and its causes in one line, as the log has them.
fn report(error: &ProviderError) -> String {
    let mut line = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        line.push_str(&format!(": {error}"));
        cause = error.source();
    }
    line
}

/// The JSON in the fixture `name`.
fn fixture(name: &str) -> Value {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
