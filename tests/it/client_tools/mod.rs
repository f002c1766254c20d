//! Tools that a client brings and runs itself, and conversations that it keeps to itself, at the port that dialects
//! speak to: what is asked for goes in, events come out, over a store and a loop as they are.

mod earlier;
mod results;
mod turns;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Map, Value, json};
use switchboard::agent::offer::selection::Finder;
use switchboard::agent::ports::clock::SystemClock;
use switchboard::agent::ports::data::{DataLoader, Loaded, Warm};
use switchboard::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError, ProviderErrorKind};
use switchboard::agent::ports::tools::{OfferedTool, ToolContext, ToolExecutor};
use switchboard::agent::prompt::fence::Fences;
use switchboard::agent::spend::budget::{Budget, Budgets};
use switchboard::agent::spend::limits::{PlanLimits, RunLimits};
use switchboard::agent::spend::prices::Prices;
use switchboard::agent::turn::context::{Agent, Helpers};
use switchboard::bounded::intake::Intake;
use switchboard::bounded::memory::Memory;
use switchboard::chat::caller::{Bearer, Caller, Owner};
use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::ConversationId;
use switchboard::chat::input::{Ask, ClientResult, OnBusy, RunInput, RunOptions, Screen};
use switchboard::chat::message::{Message, ModelOrigin};
use switchboard::chat::model::Helper;
use switchboard::chat::stream::{CallSlot, FinishReason, StreamEvent, Usage};
use switchboard::chat::tool::{Effect, ToolCall, ToolDef, ToolInput, ToolOutput};
use switchboard::config::{Sources, catalogue};
use switchboard::llm;
use switchboard::runs::config::{RunBounds, Settings};
use switchboard::runs::log::local::LocalLog;
use switchboard::runs::log::ring::Next;
use switchboard::runs::starts::Starts;
use switchboard::runs::{Attached, Parts, Request, Runs, StartError, Summariser};
use switchboard::store::{self, Store};
use switchboard::tools::BuiltIn;
use tempfile::TempDir;

use crate::support::tickets::{PROFILE, TOOLS};

/// Plays turns, one after the other, and keeps what it was asked; an empty turn is a failure.
#[derive(Default)]
pub struct Model {
    turns: Mutex<VecDeque<Vec<StreamEvent>>>,
    asked: Mutex<Vec<(Vec<Message>, Vec<String>)>>,
}

#[async_trait]
impl LlmProvider for Model {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        assert_valid(request.messages);
        let tools = request.tools.iter().map(|tool| tool.name.clone()).collect();
        self.asked.lock().unwrap().push((request.messages.to_vec(), tools));
        let turn = self.turns.lock().unwrap().pop_front().expect("no model call is left");
        if turn.is_empty() {
            return Err(ProviderError::new(ProviderErrorKind::Rejected, "no"));
        }
        let events = futures::stream::iter(turn.into_iter().map(Ok)).boxed();
        let origin = ModelOrigin { provider: "fake".to_owned(), model: "one".to_owned() };
        Ok(EventStream { origin: Arc::new(origin), request_id: None, events })
    }
}

/// Every vendor takes it: it begins with the user, each call has one result right behind its turn, and no id is used
/// twice.
fn assert_valid(messages: &[Message]) {
    assert!(matches!(messages.first(), Some(Message::User(_))), "{messages:#?}");
    let mut ids = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let called: Vec<_> = match message {
            Message::Assistant(assistant) => assistant.calls().map(|call| &call.id).collect(),
            Message::User(_) | Message::ToolResults(_) => Vec::new(),
        };
        assert!(called.iter().all(|id| ids.insert(id.as_str())), "an id twice: {messages:#?}");
        let answered: Vec<_> = match messages.get(at + 1) {
            Some(Message::ToolResults(results)) => results.iter().map(|result| &result.id).collect(),
            Some(Message::User(_) | Message::Assistant(_)) | None => Vec::new(),
        };
        assert_eq!(called, answered, "{messages:#?}");
    }
}

/// The tools of the server, which do nothing.
struct Tools;

#[async_trait]
impl ToolExecutor for Tools {
    async fn execute(&self, call: &ToolCall, _cx: &ToolContext<'_>) -> ToolOutput {
        ToolOutput::ok(json!({ "did": call.name }).to_string())
    }

    fn check(&self, _call: &ToolCall) -> Result<Effect, Box<ToolOutput>> {
        Ok(Effect::Read)
    }

    async fn complete(&self, call: &ToolCall, _cx: &ToolContext<'_>) -> Result<Map<String, Value>, Box<ToolOutput>> {
        match &call.input {
            ToolInput::Object(arguments) => Ok(arguments.clone()),
            ToolInput::Invalid(_) => Ok(Map::new()),
        }
    }

    fn source(&self, _: &str) -> String {
        String::new()
    }

    fn sourced(&self, _source: &str) -> Vec<OfferedTool> {
        Vec::new()
    }
}

#[async_trait]
impl DataLoader for Tools {
    async fn load(&self, _loader: &str, _cx: &ToolContext<'_>) -> Loaded {
        Loaded::Nothing
    }

    async fn warm(&self, _loader: &str, _cx: &ToolContext<'_>) -> Warm {
        Warm::Nothing
    }
}

/// Runs over a store of their own.
pub struct Desk {
    pub runs: Arc<Runs>,
    pub store: Arc<dyn Store>,
    pub model: Arc<Model>,
    _data: TempDir,
}

impl Desk {
    /// Where the model plays these turns.
    pub async fn playing(turns: impl IntoIterator<Item = Vec<StreamEvent>>) -> Self {
        let data = tempfile::tempdir().unwrap();
        for (path, text) in [("tools/tickets.toml", TOOLS), ("profiles/tickets.toml", PROFILE)] {
            let path = data.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let sources = Sources { dir: Some(data.path().to_owned()), ..Sources::default() };
        // All others are said to be built in.
        let is_built_in =
            |name: &str| (!["close_ticket", "refund", "get_ticket", "note"].contains(&name)).then(BuiltIn::default);
        let llm = llm::LlmConfig::default();
        let loaded = catalogue::load(&sources.assets(), &llm, &catalogue::Referents::default(), is_built_in).unwrap();
        let url = format!("sqlite://{}", data.path().join("test.db").display());
        let store = store::open(
            &store::StoreConfig { url, max_connections: 1, ..store::StoreConfig::default() },
            Arc::new(SystemClock),
            Arc::default(),
        )
        .await
        .unwrap();
        let model = Arc::new(Model { turns: Mutex::new(turns.into_iter().collect()), asked: Mutex::default() });
        let limits = RunLimits {
            max_turns: 9,
            max_tool_calls: 3,
            tool_arguments_bytes: 0,
            wall: Duration::ZERO,
            approval: Duration::from_secs(60),
            summary_wait: Duration::ZERO,
            decisions: Duration::ZERO,
            repeated_calls: 0,
            approvals: 0,
            payloads: 0,
            plans: PlanLimits::default(),
        };
        let agent = Arc::new(Agent {
            llm: model.clone(),
            tools: Arc::new(Tools),
            data: Arc::new(Tools),
            finder: Finder::default(),
            store: store.clone(),
            files: Arc::new(switchboard::files::NoFiles),
            checkpoints: None,
            payloads: store.clone(),
            approvals: store.clone(),
            decisions: store.clone(),
            plans: store.clone(),
            names: store.clone(),
            helpers: Helpers::default(),
            chats: store.clone(),
            fences: Fences::fresh(),
            clock: Arc::new(SystemClock),
            profiles: Arc::new(loaded.profiles),
            prices: Prices::default(),
            budgets: Budgets::new(Budget::default(), store.clone(), Arc::new(SystemClock)),
            intake: Intake::new(Memory::new(0)),
            limits,
        });
        let settings = Settings {
            grace: Duration::ZERO,
            on_busy: OnBusy::Reject,
            queue: 0,
            lease: Duration::from_secs(15),
            trail: None,
            unlisted: None,
            history_bytes: 1200,
            bounds: RunBounds::default(),
        };
        let parts = Parts {
            agent: agent.clone(),
            store: store.clone(),
            approvals: store.clone(),
            leases: store.clone(),
            log: LocalLog::new(0, 0, Duration::from_secs(60)),
            summaries: store.clone(),
            summariser: Summariser { writer: Helper::Off, agent },
            sessions: store.clone(),
            labeller: Helper::Off,
            titles: store.clone(),
            titler: Helper::Off,
            places: store.clone(),
            plans: store.clone(),
            chosen: None,
            settings,
            starts: Starts::new(None, None),
        };
        Self { runs: Runs::new(parts, "here".to_owned()), store, model, _data: data }
    }

    /// The events of a request, to the end.
    pub async fn ask(&self, input: RunInput) -> Result<Vec<AgentEvent>, StartError> {
        let request = Request { id: "r".to_owned(), key: None, may_repeat: false };
        let mut attached: Attached = self.runs.start(ada(), input, request).await?;
        let mut events = Vec::new();
        while let Next::Event { event, .. } = attached.next().await {
            events.push((*event).clone());
            if event.is_terminal() {
                break;
            }
        }
        Ok(events)
    }

    /// The events of a message with a client that has these tools.
    pub async fn say(&self, text: &str, tools: &[Arc<ToolDef>]) -> Vec<AgentEvent> {
        self.ask(input(Ask::message(text), tools)).await.unwrap()
    }

    /// What the model was asked with in the newest call.
    pub fn last_asked(&self) -> (Vec<Message>, Vec<String>) {
        self.model.asked.lock().unwrap().last().unwrap().clone()
    }

    /// What the model read as the newest results.
    pub fn last_results(&self) -> Vec<String> {
        let (messages, _) = self.last_asked();
        let results = messages.into_iter().rev().find_map(|message| match message {
            Message::ToolResults(results) => Some(results),
            Message::User(_) | Message::Assistant(_) => None,
        });
        results.unwrap().into_iter().map(|result| result.content).collect()
    }
}

pub fn ada() -> Caller {
    let owner = Owner { tenant: String::new(), user: "ada".to_owned() };
    Caller { owner, known_as: None, expires_at_ms: None, roles: Vec::new(), bearer: Bearer::new("t"), cookie: None }
}

/// A request in the conversation `c`.
pub fn input(ask: Ask, tools: &[Arc<ToolDef>]) -> RunInput {
    RunInput {
        ask,
        screen: Screen::Type("tickets".to_owned()),
        conversation: Some(ConversationId::parse("c").unwrap()),
        parent: None,
        earlier: Vec::new(),
        unlisted: false,
        options: RunOptions { client_tools: tools.to_vec(), ..RunOptions::default() },
    }
}

/// A tool of the client that takes a city.
pub fn tool(name: &str) -> Arc<ToolDef> {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Arc::new(ToolDef { name: name.to_owned(), description: "Of the client.".to_owned(), input_schema: schema })
}

/// What a client says came of a call.
pub fn result(call: &str, content: &str) -> ClientResult {
    ClientResult { call: call.to_owned(), content: content.to_owned(), files: Vec::new(), is_error: false, said: None }
}

const USAGE: Usage = Usage { input_tokens: 10, output_tokens: 5, cached_input_tokens: 0, reasoning_tokens: 0 };

pub fn says(text: &str) -> Vec<StreamEvent> {
    vec![StreamEvent::Text(text.to_owned()), finished()]
}

/// A turn that calls tools: id, name, arguments.
pub fn calls(calls: &[(&str, &str, Value)]) -> Vec<StreamEvent> {
    let mut events = vec![StreamEvent::Text("Looking.".to_owned())];
    for (slot, (id, name, input)) in calls.iter().enumerate() {
        let slot = CallSlot(u32::try_from(slot).unwrap());
        let (id, name) = (Some((*id).to_owned()), (*name).to_owned());
        events.push(StreamEvent::ToolCallStarted { slot, id, name });
        events.push(StreamEvent::ToolCallInput { slot, json: input.to_string() });
    }
    events.push(finished());
    events
}

fn finished() -> StreamEvent {
    StreamEvent::Finished { reason: FinishReason::Stop, usage: Some(USAGE) }
}

/// What becomes of calls, in the order of the events: `started t1`, `ready t1 {…}`, `held t1`, `finished t1`, `failed
/// t1`; and the end.
pub fn told(events: &[AgentEvent]) -> Vec<String> {
    let line = |event: &AgentEvent| match event {
        AgentEvent::ToolCallStarted { id, .. } => Some(format!("started {id}")),
        AgentEvent::ToolCallReady { id, input, .. } => {
            let ToolInput::Object(input) = &**input else { return None };
            Some(format!("ready {id} {}", Value::Object(input.clone())))
        }
        AgentEvent::ToolCallHeld { id, .. } => Some(format!("held {id}")),
        AgentEvent::ToolCallFinished { id, fate, .. } if !fate.is_error() => Some(format!("finished {id}")),
        AgentEvent::ToolCallFinished { id, .. } => Some(format!("failed {id}")),
        AgentEvent::Finished { .. } => Some("end".to_owned()),
        AgentEvent::AwaitingApproval { .. } => Some("awaiting approval".to_owned()),
        AgentEvent::AwaitingClient { calls, .. } => {
            let calls: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
            Some(format!("awaiting client: {}", calls.join(" ")))
        }
        AgentEvent::Failed(failure) => Some(format!("failed: {}", failure.code.name())),
        other => other.is_terminal().then(|| format!("{other:?}")),
    };
    events.iter().filter_map(line).collect()
}
