//! The fold of one turn: a model's stream events in, one assistant message out. It is keyed by [`CallSlot`], so the
//! arguments of parallel calls may interleave as they like.
//!
//! **Invariant:** pure. Whatever the model sends, the fold answers with a message; a bad argument is data, not an error.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::chat::event::AgentEvent;
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantMessage, AssistantPart, ModelOrigin, Replay};
use crate::chat::stream::{CallSlot, FinishReason, ReplayOn, StreamEvent, Usage};
use crate::chat::tool::{ToolCall, ToolInput};

/// 1 MiB of arguments for one call: far above any real one, far below what a runaway model could send.
const MAX_INPUT_BYTES: usize = 1 << 20;

/// 1 KiB of arguments that are too long is kept, enough to recognise them in the trail.
pub(in crate::agent) const OVERSIZED_KEPT_BYTES: usize = 1 << 10;

/// A turn while it streams.
#[derive(Debug)]
pub struct TurnFold {
    origin: Arc<ModelOrigin>,
    parts: Vec<Part>,
    /// Where in the text of the newest part its newest delta begins; in bytes.
    newest_delta: usize,
    /// Where in `parts` each call is.
    calls: HashMap<CallSlot, usize>,
    /// Those of all calls.
    ids: CallIds,
    reason: Option<FinishReason>,
    usage: Option<Usage>,
}

/// The ids of all calls of a conversation. A run and its helpers share them.
#[derive(Debug, Clone, Default)]
pub struct CallIds(Arc<Mutex<HashSet<String>>>);

impl CallIds {
    /// Takes `id`; false where a call has it already.
    pub fn claim(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned())
    }

    /// Takes `id`, or a later one of it where calls have it already.
    pub fn claim_later(&self, id: &ToolCallId) -> ToolCallId {
        let mut ids = (1..=u32::MAX).map(|nth| id.later(nth));
        ids.find(|id| self.claim(id.as_str())).unwrap_or_else(ToolCallId::mint)
    }
}

impl FromIterator<String> for CallIds {
    fn from_iter<I: IntoIterator<Item = String>>(ids: I) -> Self {
        Self(Arc::new(Mutex::new(ids.into_iter().collect())))
    }
}

/// A turn that has ended.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The model's message.
    pub message: AssistantMessage,
    /// Why it stopped; `None` when its terminal marker never came.
    pub reason: Option<FinishReason>,
    /// Token counts, where the vendor gave any.
    pub usage: Option<Usage>,
}

/// A piece of the message whose arguments may still be coming.
#[derive(Debug)]
enum Part {
    Text { text: String, replay: Option<Replay> },
    Thinking { text: String, replay: Option<Replay> },
    Call { id: ToolCallId, name: String, input: Input, replay: Option<Replay> },
    Opaque(Replay),
}

/// The arguments of a call, joined so far.
#[derive(Debug)]
enum Input {
    Growing(String),
    /// Over the cap; only the beginning is kept.
    Oversized(String),
}

/// 64 KiB for a call's id: some gateways hide a thought's signature in it, and it goes into every later request.
const MAX_ID_BYTES: usize = 64 << 10;

/// The longest name of a tool, in bytes, that every vendor accepts.
const MAX_NAME_BYTES: usize = 64;

/// The tool's name in the alphabet that every vendor accepts. Models make names up, and one that cannot be sent back would
/// make the whole conversation unusable; a name that had to be changed is no tool's anyway.
fn callable(mut name: String) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.len() > MAX_NAME_BYTES || !name.chars().all(allowed) {
        name = name.chars().map(|c| if allowed(c) { c } else { '_' }).take(MAX_NAME_BYTES).collect();
    }
    match name.is_empty() {
        true => "unnamed".to_owned(),
        false => name,
    }
}

impl TurnFold {
    /// An empty turn of `origin`. `ids` are those of all calls of the conversation: no call gets one of them again.
    pub fn new(origin: Arc<ModelOrigin>, ids: CallIds) -> Self {
        Self { origin, parts: Vec::new(), newest_delta: 0, calls: HashMap::new(), ids, reason: None, usage: None }
    }

    /// Folds one event; what the run reports of it (text, reasoning, a call's name), if anything.
    pub fn push(&mut self, event: StreamEvent) -> Option<AgentEvent> {
        match event {
            StreamEvent::Text(text) => self.push_text(text),
            StreamEvent::Thinking(text) => self.push_thinking(text),
            StreamEvent::ToolCallStarted { slot, id, name } => self.start_call(slot, id, name),
            StreamEvent::ToolCallInput { slot, json } => {
                if let Some(Part::Call { input, .. }) = self.call_mut(slot) {
                    input.push(&json);
                }
                None
            }
            StreamEvent::Replay { on, data } => {
                self.attach(on, data);
                None
            }
            StreamEvent::Used(_) => None,
            StreamEvent::Finished { reason, usage } => {
                self.reason = Some(reason);
                self.usage = usage;
                None
            }
        }
    }

    /// The turn as it stands. A call that the token limit cut off is left out: what remains of its arguments would
    /// request something that the model never wrote.
    pub fn finish(self) -> Turn {
        let cut_off = self.reason == Some(FinishReason::Length);
        let parts = self.parts.into_iter().filter_map(|part| part.finish(cut_off)).collect();
        Turn { message: AssistantMessage { origin: self.origin, parts }, reason: self.reason, usage: self.usage }
    }

    /// The part of an interrupted turn that may be kept: its text alone, since calls without results and reasoning
    /// without its signature make a history that vendors refuse. `None` when there is no text.
    pub fn partial(self) -> Option<AssistantMessage> {
        let parts: Vec<_> = self
            .parts
            .into_iter()
            .filter_map(|part| match part {
                Part::Text { text, .. } if !text.is_empty() => Some(AssistantPart::Text { text, replay: None }),
                Part::Text { .. } | Part::Thinking { .. } | Part::Call { .. } | Part::Opaque(_) => None,
            })
            .collect();
        if parts.is_empty() {
            return None;
        }
        Some(AssistantMessage { origin: self.origin, parts })
    }

    fn push_text(&mut self, delta: String) -> Option<AgentEvent> {
        let grows = match self.parts.last_mut() {
            Some(Part::Text { text, replay: None }) => Some(text),
            _ => None,
        };
        self.newest_delta = grows.as_ref().map_or(0, |text| text.len());
        if delta.is_empty() {
            return None;
        }
        match grows {
            Some(text) => text.push_str(&delta),
            None => self.parts.push(Part::Text { text: delta.clone(), replay: None }),
        }
        Some(AgentEvent::TextDelta { text: delta })
    }

    fn push_thinking(&mut self, delta: String) -> Option<AgentEvent> {
        if delta.is_empty() {
            return None;
        }
        match self.parts.last_mut() {
            Some(Part::Thinking { text, replay: None }) => text.push_str(&delta),
            _ => self.parts.push(Part::Thinking { text: delta.clone(), replay: None }),
        }
        Some(AgentEvent::ThinkingDelta { text: delta })
    }

    fn start_call(&mut self, slot: CallSlot, vendor_id: Option<String>, name: String) -> Option<AgentEvent> {
        if self.calls.contains_key(&slot) {
            return None;
        }
        let name = callable(name);
        // Some servers count their ids anew in each answer; results are matched by id, so a repeated one is replaced.
        let is_usable = |id: &String| !id.is_empty() && id.len() <= MAX_ID_BYTES;
        let id = match vendor_id.filter(is_usable) {
            Some(id) if self.ids.claim(&id) => ToolCallId::from_model(id),
            Some(id) => ToolCallId::again(&id),
            None => ToolCallId::mint(),
        };
        self.calls.insert(slot, self.parts.len());
        let started = AgentEvent::ToolCallStarted { id: id.clone(), name: name.clone() };
        self.parts.push(Part::Call { id, name, input: Input::Growing(String::new()), replay: None });
        Some(started)
    }

    fn call_mut(&mut self, slot: CallSlot) -> Option<&mut Part> {
        self.parts.get_mut(*self.calls.get(&slot)?)
    }

    fn attach(&mut self, on: ReplayOn, data: Replay) {
        match on {
            // Signed text must not be joined with other text.
            ReplayOn::Text => match self.parts.last_mut() {
                Some(Part::Text { replay: replay @ None, .. }) if self.newest_delta == 0 => *replay = Some(data),
                Some(Part::Text { text, replay: None }) => {
                    let signed = text.split_off(text.floor_char_boundary(self.newest_delta));
                    self.parts.push(Part::Text { text: signed, replay: Some(data) });
                }
                _ => self.parts.push(Part::Text { text: String::new(), replay: Some(data) }),
            },
            ReplayOn::Thinking => match self.parts.last_mut() {
                Some(Part::Thinking { replay: replay @ None, .. }) => *replay = Some(data),
                _ => self.parts.push(Part::Thinking { text: String::new(), replay: Some(data) }),
            },
            ReplayOn::ToolCall(slot) => {
                if let Some(Part::Call { replay, .. }) = self.call_mut(slot) {
                    *replay = Some(data);
                }
            }
            ReplayOn::Alone => self.parts.push(Part::Opaque(data)),
        }
    }
}

impl Input {
    fn push(&mut self, json: &str) {
        let Self::Growing(text) = self else { return };
        if text.len() + json.len() <= MAX_INPUT_BYTES {
            text.push_str(json);
            return;
        }
        let mut kept = std::mem::take(text);
        kept.push_str(&json[..json.floor_char_boundary(OVERSIZED_KEPT_BYTES)]);
        kept.truncate(kept.floor_char_boundary(OVERSIZED_KEPT_BYTES));
        kept.shrink_to_fit();
        *self = Self::Oversized(kept);
    }

    /// The parsed arguments. `None` when the turn was `cut_off` and these may be a part of what was meant: no
    /// arguments at all are then no sign of a tool without arguments.
    fn finish(self, cut_off: bool) -> Option<ToolInput> {
        let input = match self {
            Self::Growing(text) if cut_off && text.trim().is_empty() => return None,
            Self::Growing(text) => ToolInput::parse(&text),
            Self::Oversized(text) => ToolInput::Invalid(text),
        };
        match input {
            ToolInput::Invalid(_) if cut_off => None,
            ToolInput::Invalid(_) | ToolInput::Object(_) => Some(input),
        }
    }
}

impl Part {
    fn finish(self, cut_off: bool) -> Option<AssistantPart> {
        match self {
            Self::Text { text, replay } => Some(AssistantPart::Text { text, replay }),
            Self::Thinking { text, replay } => Some(AssistantPart::Thinking { text, replay }),
            Self::Call { id, name, input, replay } => {
                let input = input.finish(cut_off)?;
                Some(AssistantPart::ToolCall { call: ToolCall { id, name, input }, replay })
            }
            Self::Opaque(replay) => Some(AssistantPart::Opaque(replay)),
        }
    }
}

#[cfg(test)]
mod tests;
