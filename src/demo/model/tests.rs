//! What holds whatever the tools answer: there is an answer, and it comes as a stream. The dialogues of the demo are in
//! `tests/it/demo_walk.rs`, over HTTP.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};

use super::DemoModel;
use super::answer::answer;
use crate::agent::ports::llm::{ChatRequest, LlmProvider, MustCall, SentFiles, SystemPrompt};
use crate::chat::fate::CallFate;
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, UserMessage};
use crate::chat::model::ModelChoice;
use crate::chat::stream::{FinishReason, StreamEvent};
use crate::chat::tool::{ToolCall, ToolDef, ToolInput, ToolResult};

const WORKFLOW: &str = include_str!("../../../config/tools/workflow.json");
const TABLES: &str = include_str!("../../../config/tools/tables.json");

/// A conversation on a screen with the tools of a file.
struct Dialogue {
    system: SystemPrompt,
    tools: Vec<Arc<ToolDef>>,
    messages: Vec<Message>,
    origin: ModelOrigin,
}

impl Dialogue {
    fn on(tools: &str, screen: &str) -> Self {
        let entries: Vec<Value> = serde_json::from_str(tools).unwrap_or_default();
        let tool = |entry: &Value| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            let (name, description) = (text("name"), text("description"));
            Arc::new(ToolDef { name, description, input_schema: entry["input_schema"].clone() })
        };
        Self {
            system: SystemPrompt {
                instructions: Arc::from(""),
                client: String::new(),
                context: format!("You see:\n\n```json\n{screen}\n```"),
            },
            tools: entries.iter().map(tool).collect(),
            messages: Vec::new(),
            origin: ModelOrigin { provider: "demo".to_owned(), model: "rules-1".to_owned() },
        }
    }

    fn request<'a>(&'a self, model: &'a ModelChoice) -> ChatRequest<'a> {
        let Self { system, tools, messages, .. } = self;
        let (must_call, format) = (MustCall::No, None);
        ChatRequest {
            system,
            messages,
            files: SentFiles::default(),
            tools,
            may_call: true,
            must_call,
            format,
            model,
            deadline: None,
        }
    }

    /// The answer to `text` where every call has this result: its words, and the calls of its turns.
    fn answered(&mut self, text: &str, result: &Value) -> (String, Vec<String>) {
        let model = ModelChoice::from_model(self.origin.clone(), None);
        self.messages.push(Message::User(UserMessage::new(text)));
        let mut made = Vec::new();
        for turn in 0..8 {
            let step = answer(&self.request(&model));
            if step.calls.is_empty() {
                return (step.text, made);
            }
            let called = step.calls.into_iter().enumerate().map(|(at, call)| {
                made.push(format!("{} {}", call.tool, Value::Object(call.input.clone())));
                let id = ToolCallId::from_model(format!("{turn}-{at}"));
                ToolCall { id, name: call.tool.into_owned(), input: ToolInput::Object(call.input) }
            });
            let called: Vec<ToolCall> = called.collect();
            let results = called.iter().map(|ToolCall { id, name, .. }| ToolResult {
                id: id.clone(),
                name: name.clone(),
                content: result.to_string(),
                fate: CallFate::Done,
                files: Vec::new(),
            });
            let results = results.collect();
            let parts = called.into_iter().map(|call| AssistantPart::ToolCall { call, replay: None }).collect();
            self.messages.push(Message::Assistant(AssistantMessage { origin: Arc::new(self.origin.clone()), parts }));
            self.messages.push(Message::ToolResults(results));
        }
        (String::new(), made)
    }
}

#[test]
fn a_message_leads_to_calls_on_its_screen() {
    let screen = json!({ "workflow_id": "r", "config_id": "c" }).to_string();
    let rows: [(&str, &str, &[&str]); 9] = [
        (WORKFLOW, "What does this workflow do?", &["get_workflow_rule {\"workflow_id\":\"r\"}"]),
        (
            WORKFLOW,
            "show my active critical alerts",
            &["list_my_alerts {\"status\":\"active\",\"severity\":\"critical\"}"],
        ),
        (WORKFLOW, "list the rules and list my alerts", &["list_workflow_rules {}", "list_my_alerts {}"]),
        (WORKFLOW, "explain the workflow \"Low Stock\"", &["get_workflow_rule {\"workflow_id\":\"Low Stock\"}"]),
        (WORKFLOW, "explain the step b2", &["explain_workflow_node {\"workflow_id\":\"r\",\"node_name\":\"b2\"}"]),
        (WORKFLOW, "call get_alert_detail {\"alert_id\": \"a\"}", &["get_alert_detail {\"alert_id\":\"a\"}"]),
        (WORKFLOW, "deactivate this workflow", &[]),
        (TABLES, "Which table configurations do we have?", &["list_table_configs {}"]),
        (TABLES, "good morning", &[]),
    ];
    for (tools, text, expected) in rows {
        let (reply, calls) = Dialogue::on(tools, &screen).answered(text, &json!({}));
        assert_eq!(calls, expected, "{text:?}: {reply}");
    }
}

#[test]
fn any_result_of_any_tool_leads_to_an_answer() {
    let odd = [
        json!(null),
        json!("`text` with **marks** and ünïcödé\n[cut: 3 of 9 bytes shown]"),
        json!([null, 1, "x", [], {}, [[["deep"]]]]),
        json!({ "results": 7, "total": -1, "rule": [], "summary": "none", "config": [], "action": 1, "errors": {} }),
        json!({ "rule": { "actions": [{ "name": "x", "action_type": "y" }] }, "summary": { "flow_outline": "  [x] x (y", "edge_count": 1 } }),
        json!({ "action": { "action_config": { "conditions": [1], "recipients": { "users": [1, {}] } } }, "incoming_from": 3 }),
        json!({ "valid": true, "config": { "data_source": 1, "visual_settings": [] } }),
    ];
    let workflow = [
        "what does this workflow do, list the rules, list my alerts and show the triggers",
        "explain the step \"A\"",
        "create a workflow that alerts when stock is low",
        "add an alert if a < 1",
    ];
    let tables = [
        "show this table",
        "show the b table",
        "hide column a and filter c = 1",
        "add column x",
        "is this table valid?",
    ];
    let screens = ["{\"workflow_id\": \"w\", \"config_id\": \"c\"}", "{broken", "[1]"];
    for screen in screens {
        for result in &odd {
            let (mut on_workflow, mut on_tables) = (Dialogue::on(WORKFLOW, screen), Dialogue::on(TABLES, screen));
            for text in workflow {
                let (reply, calls) = on_workflow.answered(text, result);
                assert!(!reply.trim().is_empty(), "{text:?} has no answer to {result}: {calls:?}");
            }
            for text in tables {
                let (reply, calls) = on_tables.answered(text, result);
                assert!(!reply.trim().is_empty(), "{text:?} has no answer to {result}: {calls:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_is_streamed_at_a_readable_pace_and_its_terminal_event_comes_last() {
    let mut dialogue = Dialogue::on(WORKFLOW, "{}");
    dialogue.messages.push(Message::User(UserMessage::new("list the rules and list my alerts")));
    let model = ModelChoice::from_model(dialogue.origin.clone(), None);
    let begun = std::time::Instant::now();
    let stream = DemoModel::new(dialogue.origin.clone()).stream_chat(dialogue.request(&model)).await;
    let events: Vec<StreamEvent> =
        stream.expect("it always answers").events.map(|event| event.expect("it never fails")).collect().await;
    assert!(begun.elapsed() >= Duration::from_millis(15), "took {:?}", begun.elapsed());
    let started = events.iter().filter(|event| matches!(event, StreamEvent::ToolCallStarted { .. })).count();
    assert_eq!(started, 2);
    assert!(matches!(events.first(), Some(StreamEvent::Text(text)) if text.starts_with("Let me look up ")));
    let Some(StreamEvent::Finished { reason: FinishReason::Stop, usage: Some(usage) }) = events.last() else {
        panic!("no end: {events:?}")
    };
    assert!(usage.input_tokens > 0 && usage.output_tokens > 0);
}
