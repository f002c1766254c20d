//! The fold of one turn: a model's stream events in, one assistant message out. It is keyed by [`CallSlot`], so the
//! arguments of parallel calls may interleave as they like.
//!
//! **Invariant:** pure. Whatever the model sends, the fold answers with a message; a bad argument is data, not an error.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::chat::event::AgentEvent;
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantMessage, AssistantPart, ModelOrigin, Replay};
use crate::chat::stream::{CallSlot, FinishReason, ReplayOn, StreamEvent, Usage};
use crate::chat::tool::{ToolCall, ToolInput};

/// 1 MiB of arguments for one call: far above any real one, far below what a runaway model could send.
const MAX_INPUT_BYTES: usize = 1 << 20;

/// 1 KiB of arguments over the cap is kept, enough to recognise them in the trail.
const OVERSIZED_KEPT_BYTES: usize = 1 << 10;

/// A turn while it streams.
#[derive(Debug)]
pub struct TurnFold {
    origin: Arc<ModelOrigin>,
    parts: Vec<Part>,
    /// Where in `parts` each call is.
    calls: HashMap<CallSlot, usize>,
    /// Taken by this turn's calls or earlier ones.
    ids: HashSet<String>,
    reason: Option<FinishReason>,
    usage: Option<Usage>,
}

/// A turn that has ended.
#[derive(Debug, Clone)]
pub struct Turn {
    /// What the model produced.
    pub message: AssistantMessage,
    /// Why it stopped; `None` when its terminal marker never came.
    pub reason: Option<FinishReason>,
    /// Token counts, where the vendor gave any.
    pub usage: Option<Usage>,
    /// The call ids that the conversation has had, this turn's among them.
    pub used_ids: HashSet<String>,
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
    /// An empty turn of `origin`. `used_ids` are the call ids that the conversation has had: no call gets one of them again.
    pub fn new(origin: Arc<ModelOrigin>, used_ids: HashSet<String>) -> Self {
        Self { origin, parts: Vec::new(), calls: HashMap::new(), ids: used_ids, reason: None, usage: None }
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
            StreamEvent::Finished { reason, usage } => {
                self.reason = Some(reason);
                self.usage = usage;
                None
            }
        }
    }

    /// The turn as it stands. A call that the token limit cut off is left out: what remains of its arguments would
    /// ask for something the model never said.
    pub fn finish(self) -> Turn {
        let cut_off = self.reason == Some(FinishReason::Length);
        let parts = self.parts.into_iter().filter_map(|part| part.finish(cut_off)).collect();
        Turn {
            message: AssistantMessage { origin: self.origin, parts },
            reason: self.reason,
            usage: self.usage,
            used_ids: self.ids,
        }
    }

    /// What of an interrupted turn may be kept: its text alone, since calls without results and reasoning without its
    /// signature make a history that vendors refuse. `None` when there is no text.
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
        if delta.is_empty() {
            return None;
        }
        match self.parts.last_mut() {
            Some(Part::Text { text, replay: None }) => text.push_str(&delta),
            _ => self.parts.push(Part::Text { text: delta.clone(), replay: None }),
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
        let id = match vendor_id {
            Some(id) if !id.is_empty() && !self.ids.contains(&id) => ToolCallId::from_model(id),
            Some(_) | None => ToolCallId::mint(),
        };
        self.ids.insert(id.as_str().to_owned());
        self.calls.insert(slot, self.parts.len());
        let started = AgentEvent::ToolCallStarted { id: id.as_str().to_owned(), name: name.clone() };
        self.parts.push(Part::Call { id, name, input: Input::Growing(String::new()), replay: None });
        Some(started)
    }

    fn call_mut(&mut self, slot: CallSlot) -> Option<&mut Part> {
        self.parts.get_mut(*self.calls.get(&slot)?)
    }

    fn attach(&mut self, on: ReplayOn, data: Replay) {
        match on {
            ReplayOn::Text => match self.parts.last_mut() {
                Some(Part::Text { replay: replay @ None, .. }) => *replay = Some(data),
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
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn origin() -> Arc<ModelOrigin> {
        Arc::new(ModelOrigin { provider: "test".to_owned(), model: "m".to_owned() })
    }

    fn text(text: &str) -> StreamEvent {
        StreamEvent::Text(text.to_owned())
    }

    fn thinking(text: &str) -> StreamEvent {
        StreamEvent::Thinking(text.to_owned())
    }

    fn start(slot: u32, id: &str, name: &str) -> StreamEvent {
        let id = (!id.is_empty()).then(|| id.to_owned());
        StreamEvent::ToolCallStarted { slot: CallSlot(slot), id, name: name.to_owned() }
    }

    fn input(slot: u32, json: &str) -> StreamEvent {
        StreamEvent::ToolCallInput { slot: CallSlot(slot), json: json.to_owned() }
    }

    fn replay(on: ReplayOn, data: &str) -> StreamEvent {
        StreamEvent::Replay { on, data: Replay::new(to_raw_value(data).unwrap()) }
    }

    fn finished(reason: FinishReason) -> StreamEvent {
        StreamEvent::Finished { reason, usage: None }
    }

    fn folded(events: Vec<StreamEvent>) -> TurnFold {
        let mut fold = TurnFold::new(origin(), HashSet::new());
        for event in events {
            fold.push(event);
        }
        fold
    }

    /// A message as readable lines.
    fn lines(message: &AssistantMessage) -> Vec<String> {
        let sealed = |replay: &Option<Replay>| replay.as_ref().map_or(String::new(), |r| format!(" {}", r.raw()));
        let line = |part: &AssistantPart| match part {
            AssistantPart::Text { text, replay } => format!("text {text:?}{}", sealed(replay)),
            AssistantPart::Thinking { text, replay } => format!("thinking {text:?}{}", sealed(replay)),
            AssistantPart::ToolCall { call, replay } => {
                let input = match &call.input {
                    ToolInput::Object(map) => json!(map).to_string(),
                    ToolInput::Invalid(text) => format!("invalid {text}"),
                };
                let id = if call.id.is_minted() { "minted" } else { call.id.as_str() };
                format!("call {id} {} {input}{}", call.name, sealed(replay))
            }
            AssistantPart::Opaque(data) => format!("opaque {}", data.raw()),
        };
        message.parts.iter().map(line).collect()
    }

    #[test]
    fn parallel_calls_keep_their_own_arguments_however_the_pieces_interleave() {
        let turn = folded(vec![
            text("Let me "),
            text(""),
            text("see."),
            start(0, "a", "one"),
            start(7, "b", "two"),
            input(7, r#"{"y""#),
            input(0, r#"{"x":1"#),
            input(7, ":2}"),
            input(0, "}"),
            start(0, "c", "again"),
            input(99, "{"),
            finished(FinishReason::Stop),
        ])
        .finish();
        assert_eq!(lines(&turn.message), ["text \"Let me see.\"", r#"call a one {"x":1}"#, r#"call b two {"y":2}"#]);
        assert_eq!(turn.reason, Some(FinishReason::Stop));
    }

    #[test]
    fn the_run_reports_text_reasoning_and_names_but_nothing_empty() {
        let mut fold = TurnFold::new(origin(), HashSet::new());
        let events = vec![thinking("hm"), text(""), thinking(""), text("yes"), start(0, "a", "t"), input(0, "{}")];
        let reported: Vec<_> = events.into_iter().filter_map(|event| fold.push(event)).collect();
        assert_eq!(
            reported,
            [
                AgentEvent::ThinkingDelta { text: "hm".to_owned() },
                AgentEvent::TextDelta { text: "yes".to_owned() },
                AgentEvent::ToolCallStarted { id: "a".to_owned(), name: "t".to_owned() },
            ]
        );
    }

    #[test]
    fn a_missing_or_repeated_id_is_replaced_by_one_of_ours() {
        let turn = folded(vec![start(0, "a", "t"), start(1, "", "t"), start(2, "a", "t")]).finish();
        assert_eq!(lines(&turn.message), ["call a t {}", "call minted t {}", "call minted t {}"]);
        let ids: HashSet<_> = turn.message.calls().map(|call| call.id.as_str()).collect();
        assert_eq!(ids.len(), 3);
    }

    #[test]
    fn replay_data_seals_the_piece_it_belongs_to() {
        let turn = folded(vec![
            thinking("a"),
            replay(ReplayOn::Thinking, "s1"),
            thinking("b"),
            replay(ReplayOn::Alone, "redacted"),
            replay(ReplayOn::Thinking, "s2"),
            text("x"),
            replay(ReplayOn::Text, "s3"),
            text("y"),
            start(0, "a", "t"),
            text("z"),
            replay(ReplayOn::ToolCall(CallSlot(0)), "s4"),
            replay(ReplayOn::Text, "s5"),
            replay(ReplayOn::Text, "s6"),
        ])
        .finish();
        let expected = [
            r#"thinking "a" "s1""#,
            r#"thinking "b""#,
            r#"opaque "redacted""#,
            r#"thinking "" "s2""#,
            r#"text "x" "s3""#,
            r#"text "y""#,
            r#"call a t {} "s4""#,
            r#"text "z" "s5""#,
            r#"text "" "s6""#,
        ];
        assert_eq!(lines(&turn.message), expected);
    }

    #[test]
    fn arguments_are_judged_at_the_end_by_why_the_model_stopped() {
        let cases = [
            ("", FinishReason::Stop, &["call a t {}"][..], "no arguments are an empty object"),
            (" null ", FinishReason::Stop, &["call a t {}"], "null means none"),
            (r#"{"a":"#, FinishReason::Stop, &[r#"call a t invalid {"a":"#], "kept, so that the model is told"),
            ("[1]", FinishReason::Stop, &["call a t invalid [1]"], "arguments are an object"),
            (r#"{"a":"#, FinishReason::Length, &[], "cut by the limit"),
            ("", FinishReason::Length, &[], "cut before its first argument, maybe"),
            (r#"{"a":1}"#, FinishReason::Length, &[r#"call a t {"a":1}"#], "complete"),
        ];
        for (json, reason, expected, why) in cases {
            let turn = folded(vec![start(0, "a", "t"), input(0, json), finished(reason)]).finish();
            assert_eq!(lines(&turn.message), expected, "{why}");
        }
    }

    #[test]
    fn arguments_over_the_cap_become_invalid_and_are_not_kept() {
        let piece = "é".repeat(MAX_INPUT_BYTES / 2);
        let turn = folded(vec![start(0, "a", "t"), input(0, "{"), input(0, &piece), input(0, "}")]).finish();
        let call = turn.message.calls().next().unwrap();
        let ToolInput::Invalid(kept) = &call.input else { panic!("{:?}", call.input) };
        assert_eq!(kept, &format!("{{{}", "é".repeat(511)));
    }

    #[test]
    fn of_an_interrupted_turn_only_the_text_is_kept() {
        let events = vec![thinking("t"), text("one"), replay(ReplayOn::Text, "s"), start(0, "a", "t"), text("two")];
        let message = folded(events).partial().unwrap();
        assert_eq!(lines(&message), [r#"text "one""#, r#"text "two""#]);
        assert!(folded(vec![thinking("t"), start(0, "a", "t"), replay(ReplayOn::Text, "s")]).partial().is_none());
    }
}
