//! What whoever may see how a run is carried out is told while it goes on.
//!
//! **Invariant:** it never has the caller's token.

use super::context::{Role, Turns};
use super::state::Transcript;
use crate::agent::offer::Offer;
use crate::agent::ports::llm::SystemPrompt;
use crate::chat::event::AgentEvent;
use crate::chat::fate::CallError;
use crate::chat::observation::{Observation, Prepared};
use crate::chat::state::{tokens_of, tokens_of_text};
use crate::chat::tool::{ToolCall, ToolDef, ToolOutput};

/// 256 KiB of a system prompt are told.
const PROMPT_BYTES: usize = 256 << 10;

/// Stands for the caller's token.
const TOKEN: &str = "[token]";

/// A call that is told of when it has come to its end.
pub(super) struct Seen {
    id: String,
    tool: String,
    error: Option<CallError>,
    since_ms: i64,
}

impl Turns<'_> {
    fn is_seen(&self) -> bool {
        self.profile.diagnostics.shape_for(self.cx.caller).is_some()
    }

    /// Tells of what the model is about to be sent.
    pub(super) fn observe_prompt(&self, system: &SystemPrompt, offer: &Offer, transcript: &Transcript) {
        // What a helper is told is the business of its own profile.
        if !self.is_seen() || matches!(self.role, Role::Helps(_)) {
            return;
        }
        let prompt = system.text();
        let system_prompt_tokens = tokens_of_text(&prompt);
        let bearer = self.cx.caller.bearer.expose();
        let mut prompt = match bearer.is_empty() {
            true => prompt.to_string(),
            false => prompt.replace(bearer, TOKEN),
        };
        prompt.truncate(prompt.floor_char_boundary(PROMPT_BYTES));
        let definition = |def: &ToolDef| {
            let schema = tokens_of_text(&def.input_schema.to_string());
            tokens_of_text(&def.name) + tokens_of_text(&def.description) + schema
        };
        let of_profile: Vec<String> = offer.tools().iter().map(|tool| tool.def.name.clone()).collect();
        let tools: Vec<String> = offer.defs().iter().map(|def| def.name.clone()).collect();
        let prepared = Prepared {
            run: self.cx.run.to_string(),
            at_ms: self.now_ms(),
            context_type: self.profile.context_type.clone(),
            focus: self.cx.place.and_then(|place| place.focus.as_ref()).map(|focus| focus.fields().into()),
            system_prompt: prompt,
            system_prompt_tokens,
            tools_tokens: offer.defs().iter().map(|def| definition(def)).sum(),
            conversation_tokens: tokens_of(transcript.messages.all()),
            is_chosen: self.profile.selection.is_some(),
            tools,
            of_profile,
        };
        self.emit(AgentEvent::Observed(Box::new(Observation::Prepared(Box::new(prepared)))));
    }

    /// A call that began then has come to `output`; `None` where nobody is told.
    pub(super) fn seen(&self, call: &ToolCall, output: &ToolOutput, since_ms: i64) -> Option<Seen> {
        let (id, tool) = (call.id.to_string(), call.name.clone());
        let error = || output.error.unwrap_or(CallError::Failed);
        self.is_seen().then(|| Seen { id, tool, error: output.fate.is_error().then(error), since_ms })
    }

    /// Tells of a call that has come to its end.
    pub(super) fn observe_call(&self, seen: Option<Seen>, offer: &Offer) {
        let Some(Seen { id, tool, error, since_ms }) = seen else { return };
        let observation = match error {
            Some(CallError::NotOffered) => Observation::NotOffered {
                tool,
                context_type: self.profile.context_type.clone(),
                offered: offer.defs().len(),
            },
            error => Observation::Called {
                id,
                tool,
                duration_ms: u64::try_from(self.now_ms().saturating_sub(since_ms)).unwrap_or_default(),
                error,
            },
        };
        self.emit(AgentEvent::Observed(Box::new(observation)));
    }
}
