//! The demo model's tests: single messages as a table (`messages`), whole dialogues as data (`workflow_dialogues`,
//! `table_dialogues`), odd input, and what its stream looks like.

mod messages;
mod odd_input;
mod streaming;
mod table_dialogues;
mod workflow_dialogues;

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::answer;
use super::scene::Answer;
use crate::agent::ports::llm::{ChatRequest, SystemPrompt};
use crate::chat::fate::CallFate;
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, UserMessage};
use crate::chat::model::ModelChoice;
use crate::chat::tool::{ToolCall, ToolDef, ToolInput, ToolResult};
use crate::demo::model::DemoModel;

/// The tools of the workflow profile.
pub(super) const WORKFLOW: &[&str] = &[
    "discover_action_types",
    "discover_trigger_types",
    "discover_entities",
    "get_workflow_rule",
    "explain_workflow_node",
    "list_workflow_rules",
    "list_my_alerts",
    "get_alert_detail",
    "list_alerts_for_rule",
    "create_workflow",
    "update_workflow",
    "validate_workflow",
    "preview_workflow",
    "start_draft",
    "add_draft_action",
    "remove_draft_action",
    "preview_draft",
];

/// The tools of the tables profile.
pub(super) const TABLES: &[&str] = &[
    "search_database_schema",
    "discover_table_reference",
    "get_table_config",
    "list_table_configs",
    "validate_table_config",
    "preview_table_config",
    "create_table_config",
    "update_table_config",
    "apply_column_change",
    "apply_filter_change",
    "apply_join_change",
    "apply_sort_change",
];

/// A conversation with the model, its tools played by the test.
pub(super) struct Dialogue {
    pub system: SystemPrompt,
    pub tools: Vec<Arc<ToolDef>>,
    pub messages: Vec<Message>,
    calls: u32,
}

impl Dialogue {
    /// A conversation on a screen with these tools and this state.
    pub(super) fn on(tools: &[&str], screen: Option<Value>) -> Self {
        let context = screen.map(|screen| format!("What the user sees:\n\n```json\n{screen}\n```")).unwrap_or_default();
        let tool = |name: &&str| {
            Arc::new(ToolDef { name: (*name).to_owned(), description: String::new(), input_schema: json!({}) })
        };
        Self {
            system: SystemPrompt { instructions: Arc::from("instructions"), context },
            tools: tools.iter().map(tool).collect(),
            messages: Vec::new(),
            calls: 0,
        }
    }

    /// The user says something; the model's next turn.
    pub(super) fn user(&mut self, text: &str) -> Turn {
        self.message(UserMessage::new(text))
    }

    /// The same with decisions.
    pub(super) fn message(&mut self, message: UserMessage) -> Turn {
        self.messages.push(Message::User(message));
        self.turn()
    }

    /// The calls of the turn before get these results, `Err` for failed ones; the model's next turn.
    pub(super) fn results(&mut self, results: &[Result<Value, &str>]) -> Turn {
        let Some(Message::Assistant(said)) = self.messages.last() else { panic!("no calls to answer") };
        let calls: Vec<ToolCall> = said.calls().cloned().collect();
        assert_eq!(calls.len(), results.len(), "one result for each call: {calls:?}");
        let answered = calls.into_iter().zip(results).map(|(call, result)| ToolResult {
            id: call.id,
            name: call.name,
            content: result.clone().unwrap_or_else(|error| json!({ "error": error })).to_string(),
            fate: if result.is_err() { CallFate::Failed } else { CallFate::Done },
        });
        self.messages.push(Message::ToolResults(answered.collect()));
        self.turn()
    }

    fn turn(&mut self) -> Turn {
        let model = ModelChoice::from_model(DemoModel::new().origin().clone(), None);
        let request = ChatRequest {
            system: &self.system,
            messages: &self.messages,
            tools: &self.tools,
            may_call: true,
            model: &model,
            deadline: None,
        };
        let Answer { text, calls } = answer(&request);
        let shown = calls.iter().map(|call| format!("{} {}", call.tool, Value::Object(call.input.clone()))).collect();
        let mut parts = vec![AssistantPart::Text { text: text.clone(), replay: None }];
        for call in calls {
            self.calls += 1;
            let id = ToolCallId::from_model(format!("t{}", self.calls));
            let call = ToolCall { id, name: call.tool.into_owned(), input: ToolInput::Object(call.input) };
            parts.push(AssistantPart::ToolCall { call, replay: None });
        }
        let origin = Arc::new(ModelOrigin { provider: "demo".to_owned(), model: "rules-1".to_owned() });
        self.messages.push(Message::Assistant(AssistantMessage { origin, parts }));
        Turn { text, calls: shown }
    }
}

/// One turn of the model, for comparing.
#[derive(Debug, PartialEq)]
pub(super) struct Turn {
    pub text: String,
    /// `name {arguments}` of each call.
    pub calls: Vec<String>,
}

impl Turn {
    /// Asserts that the turn makes exactly these calls.
    #[track_caller]
    pub(super) fn calls(self, expected: &[&str]) {
        assert_eq!(self.calls, expected, "said: {}", self.text);
    }

    /// Asserts that the turn is this text, without calls.
    #[track_caller]
    pub(super) fn says(self, expected: &str) {
        assert_eq!(self, Turn { text: expected.to_owned(), calls: Vec::new() });
    }
}
