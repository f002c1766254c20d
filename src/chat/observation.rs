//! What is told while a run goes on to whoever may see how it is carried out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fate::CallError;

/// Something that is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observation {
    /// What the model is sent first at a place.
    Prepared(Box<Prepared>),
    /// The model wants a tool that it was not offered.
    NotOffered {
        /// The tool.
        tool: String,
        /// The kind of screen.
        context_type: String,
        /// How many tools it is offered.
        offered: usize,
    },
    /// A call has come to its end.
    Called {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
        /// How long it took.
        duration_ms: u64,
        /// Why it failed; `None` where it did not.
        error: Option<CallError>,
    },
}

/// What the model is sent first at a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// The run.
    pub run: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The kind of screen.
    pub context_type: String,
    /// What the user looks at there.
    pub focus: Option<Value>,
    /// The system prompt; only the beginning of a very long one.
    pub system_prompt: String,
    /// Its tokens, estimated like all others here.
    pub system_prompt_tokens: u64,
    /// The names of the tools that are offered, in their order.
    pub tools: Vec<String>,
    /// The tokens of their definitions.
    pub tools_tokens: u64,
    /// The tokens of the conversation with the new message.
    pub conversation_tokens: u64,
    /// The tools of the profile that the caller may use.
    pub of_profile: Vec<String>,
    /// Whether they were chosen for the question.
    pub is_chosen: bool,
}

impl Observation {
    /// The bytes of its texts.
    pub fn size(&self) -> usize {
        match self {
            Self::Prepared(prepared) => {
                let Prepared { context_type, system_prompt, tools, of_profile, run, .. } = &**prepared;
                let names = tools.iter().chain(of_profile).map(String::len).sum::<usize>();
                let focus = prepared.focus.as_ref().map_or(0, |focus| focus.to_string().len());
                context_type.len() + system_prompt.len() + run.len() + names + focus
            }
            Self::NotOffered { tool, context_type, offered: _ } => tool.len() + context_type.len(),
            Self::Called { id, tool, duration_ms: _, error: _ } => id.len() + tool.len(),
        }
    }
}
