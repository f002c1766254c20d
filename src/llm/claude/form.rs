//! How a model is held to the form of its answer: <https://platform.claude.com/docs/en/build-with-claude/structured-outputs>.
//! What its version cannot do is done by a tool that has to be called, whose arguments are the answer; and where no call can be
//! forced either, by words.

use serde_json::Value;

use crate::agent::ports::llm::{ChatRequest, MustCall};
use crate::chat::answer_format::AnswerFormat;
use crate::llm::anthropic::Holds;
use crate::llm::{form, schema};

/// The tool whose arguments are an answer.
const ANSWER_TOOL: &str = "give_answer";

/// The form of one answer.
#[derive(Debug)]
pub(super) struct Form<'a> {
    pub(super) answer: Way<'a>,
    /// Whether the model can be told that a tool has to be called.
    pub(super) forces_calls: bool,
    /// What is said where it cannot.
    call_words: Option<String>,
}

/// How it is brought about.
#[derive(Debug)]
pub(super) enum Way<'a> {
    /// It has none.
    Free,
    /// The model takes the schema.
    Schema(Value),
    /// As the arguments of this tool.
    Tool { name: &'static str, description: String, schema: &'a Value },
    /// By asking for it.
    Words(String),
}

impl<'a> Form<'a> {
    /// The form of the answer to `chat`, of the model called `model`.
    pub(super) fn new(chat: &ChatRequest<'a>, model: &str, structured_outputs: bool) -> Self {
        let holds = Holds::from_model(model);
        let is_free_name = chat.tools.iter().all(|tool| tool.name != ANSWER_TOOL);
        let answer = match chat.format {
            None => Way::Free,
            // Nothing that is held to a schema is open.
            Some(format @ AnswerFormat::Object) => Way::Words(form::of_answer(format)),
            Some(format @ AnswerFormat::Schema(answer)) => {
                let closed =
                    Some(&answer.schema).filter(|_| structured_outputs && holds.schema).and_then(schema::closed);
                match closed {
                    Some(schema) => Way::Schema(schema),
                    None if holds.calls && is_free_name => {
                        let about = answer.description.as_deref().unwrap_or(&answer.name);
                        let description = format!("Gives the answer, once all that it needs is known: {about}");
                        Way::Tool { name: ANSWER_TOOL, description, schema: &answer.schema }
                    }
                    None => Way::Words(form::of_answer(format)),
                }
            }
        };
        let call_words = form::of_call(chat.must_call).filter(|_| !holds.calls);
        Self { answer, forces_calls: holds.calls, call_words }
    }

    /// What the model is told of it besides.
    pub(super) fn words(&self, must_call: MustCall<'_>) -> Option<&str> {
        match &self.answer {
            Way::Words(words) => Some(words),
            Way::Free | Way::Schema(_) | Way::Tool { .. } if must_call != MustCall::No => self.call_words.as_deref(),
            Way::Free | Way::Schema(_) | Way::Tool { .. } => None,
        }
    }

    /// The tool whose arguments are the answer, where there is one.
    pub(super) fn answer_tool(&self) -> Option<&'static str> {
        match self.answer {
            Way::Tool { name, .. } => Some(name),
            Way::Free | Way::Schema(_) | Way::Words(_) => None,
        }
    }
}
