//! How a run was carried out, for whoever may see that: the requests to the model, and its raw answers.
//!
//! A JSON object, the same for all wires; a dialect shows it in its own words.
//!
//! ```text
//! shape          "basic" or "trace"
//! provider       of the model that answered, else of the first that may
//! model          its model, as that provider calls it
//! max_tokens     per model call, or null      max_turns      model calls; 0 is no limit
//! temperature    a number, or null where the model's own default applies
//! tools          [{name, description, input_schema}] as they were offered when the run began
//! system_prompt  the whole text
//! messages       [{role: "user" | "assistant", content}]: texts before this run; of a trace all that the
//!                model was sent, the calls and their results in blocks
//! context        the state of the screen as the request brought it, or null
//! question       the user's text
//! raw_text       the model's text of all turns, markers and all
//! notes          [text]: what was wrong with markers, and what was cut here
//! outcome        "complete", "max_turns", "cancelled", "error" or "awaiting_approval"
//! ended          how the run ended, in one word     error      the message where it failed, else null
//! trace only:
//! turns          [{turn, sent, text, finish, usage: {input_tokens, output_tokens} or null, duration_ms,
//!                  tool_calls: [{id, name, input, output, is_error, duration_ms, payload}]}]; `sent` is how many of
//!                `messages` the model was sent, the first of them
//! usage          {input_tokens, output_tokens} of all turns
//! ```
//!
//! **Invariant:** it never has more than a mebibyte, and never the caller's token.

mod budget;
mod report;

use std::sync::Arc;

use serde_json::Value;

use self::budget::{ByteBudget, Fitted, without};
use self::report::{Content, OfferedTool, Report, SentMessage, Trace, TracedCall, TracedPayload, TracedTurn, input};
use super::speech::Raw;
use crate::agent::offer::profile::{DiagnosticsShape, Profile};
use crate::agent::ports::llm::SystemPrompt;
use crate::agent::ports::tools::ToolContext;
use crate::agent::spend::limits::RunLimits;
use crate::chat::failure::Failure;
use crate::chat::ids::ToolCallId;
use crate::chat::message::{Message, ModelOrigin};
use crate::chat::model::ModelChoice;
use crate::chat::payload::Payload;
use crate::chat::run::RunState;
use crate::chat::stream::Usage;
use crate::chat::tool::ToolDef;
use crate::chat::trail::TrailEvent;

/// 1 MiB as JSON, less what its own keys take.
const MOST_BYTES: usize = 1024 * 1024 - 4096;

/// The data of a run while it runs.
pub(super) struct Diagnosis {
    report: Report,
    /// How many messages the model was sent with the newest call.
    sent: usize,
    /// Whether the model had to answer without further calls.
    limit_reached: bool,
    budget: ByteBudget,
    bearer: String,
}

/// The data of a run that has ended.
pub(super) struct Ended<'a> {
    /// The model that answered last.
    pub(super) model: Option<&'a ModelOrigin>,
    /// The raw text.
    pub(super) raw: Raw,
    /// The question.
    pub(super) question: String,
    /// The messages before the run.
    pub(super) history: &'a [Message],
    /// All messages.
    pub(super) messages: &'a [Message],
    /// The tokens.
    pub(super) usage: Usage,
}

impl Diagnosis {
    /// A diagnosis of a run of `profile`; `None` where its caller may see none.
    pub(super) fn from_profile(
        profile: &Profile,
        cx: &ToolContext<'_>,
        model: &ModelChoice,
        limits: RunLimits,
    ) -> Option<Self> {
        let (shape, trace) = match profile.diagnostics.shape_for(cx.caller)? {
            DiagnosticsShape::Basic => ("basic", None),
            DiagnosticsShape::Trace => ("trace", Some(Trace::default())),
        };
        let mut budget = ByteBudget::new(MOST_BYTES);
        let first = model.models.first();
        let report = Report {
            shape,
            provider: first.map(|model| model.provider.clone()),
            model: first.map(|model| model.model.clone()),
            max_tokens: model.max_tokens,
            max_turns: profile.bounds.max_turns.unwrap_or(limits.max_turns),
            temperature: model.temperature,
            context: cx.context.map(|context| budget.fit(Value::Object(context.fields()))),
            trace,
            ..Report::default()
        };
        let bearer = cx.caller.bearer.expose().to_owned();
        Some(Self { report, sent: 0, limit_reached: false, budget, bearer })
    }

    /// Records the request to the model.
    pub(super) fn record_request(&mut self, system: &SystemPrompt, tools: &[Arc<ToolDef>]) {
        let Self { report, budget, .. } = self;
        report.system_prompt = budget.text(&system.text());
        report.tools.clear();
        for tool in tools {
            if !budget.entry() {
                break;
            }
            let input_schema = budget.fit(tool.input_schema.clone());
            let description = budget.text(&tool.description);
            report.tools.push(OfferedTool { name: tool.name.clone(), description, input_schema });
        }
    }

    /// Records that the model has to answer without further calls.
    pub(super) fn limit_reached(&mut self) {
        self.limit_reached = true;
    }

    /// The model is sent so many messages.
    pub(super) fn sent(&mut self, messages: usize) {
        self.sent = messages;
    }

    /// The newest call has made this.
    pub(super) fn made(&mut self, call: &ToolCallId, payload: &Payload) {
        let Some(turn) = self.report.trace.as_mut().and_then(|trace| trace.turns.last_mut()) else { return };
        let Some(call) = turn.tool_calls.iter_mut().rev().find(|noted| noted.id == call.as_str()) else { return };
        call.payload = Some(TracedPayload::new(payload, self.budget.fit(payload.data.value())));
    }

    /// Something that the trail keeps too.
    pub(super) fn record_entry(&mut self, what: &TrailEvent) {
        let Self { report: Report { trace: Some(trace), .. }, budget, .. } = self else { return };
        match what {
            TrailEvent::ModelTurn { turn, text, finish, usage, duration_ms, .. } => {
                if budget.entry() {
                    trace.turns.push(TracedTurn {
                        turn: *turn,
                        sent: self.sent,
                        text: budget.text(text.as_str()),
                        finish: Some(finish.clone()),
                        usage: usage.filter(|counted| !counted.is_estimate).map(|counted| counted.usage.into()),
                        duration_ms: *duration_ms,
                        tool_calls: Vec::new(),
                    });
                }
            }
            TrailEvent::ToolCall { turn, id, name, arguments, result, fate, duration_ms, sent: _, note: _ } => {
                if !budget.entry() {
                    return;
                }
                let call = TracedCall {
                    id: id.as_str().to_owned(),
                    name: name.clone(),
                    input: budget.fit(input(arguments)),
                    output: budget.text(result),
                    is_error: fate.is_error(),
                    duration_ms: *duration_ms,
                    payload: None,
                };
                // One that was approved has a turn that no model has spoken.
                if trace.turns.last().is_none_or(|last| last.turn != *turn) {
                    trace.turns.push(TracedTurn { turn: *turn, ..TracedTurn::default() });
                }
                if let Some(turn) = trace.turns.last_mut() {
                    turn.tool_calls.push(call);
                }
            }
            TrailEvent::UserMessage { .. }
            | TrailEvent::ApprovalDecided { .. }
            | TrailEvent::Directive(_)
            | TrailEvent::PreviewDecided(_)
            | TrailEvent::RunEnded { .. } => {}
        }
    }

    /// The whole of it, when the run has ended so.
    pub(super) fn end(mut self, run: Ended<'_>, code: &str, error: Option<&Failure>) -> Value {
        let Ended { model, raw: Raw { text, notes }, question, history, messages, usage } = run;
        let Self { report, budget, limit_reached, .. } = &mut self;
        if let Some(origin) = model {
            report.provider = Some(origin.provider.clone());
            report.model = Some(origin.model.clone());
        }
        code.clone_into(&mut report.ended);
        report.error = error.map(|error| error.message.clone());
        report.raw_text = budget.text(&text);
        report.question = budget.text(&question);
        match &mut report.trace {
            None => report.messages = words_of(history, budget),
            Some(trace) => {
                trace.usage = usage.into();
                report.messages = sent_of(messages, budget);
                let left_out = messages.len() - report.messages.len();
                trace.turns.iter_mut().for_each(|turn| turn.sent = turn.sent.saturating_sub(left_out));
            }
        }
        report.notes = notes.iter().map(|note| budget.text(note)).collect();
        if budget.is_cut {
            report.notes.push("some texts here were cut".to_owned());
        }
        report.outcome = match code {
            _ if error.is_some_and(|error| error.code.is_of_turns()) || *limit_reached => "max_turns",
            code if code == RunState::Completed.name() => "complete",
            code if code == RunState::AwaitingApproval.name() => "awaiting_approval",
            code if code == RunState::Cancelled.name() || code == RunState::Interrupted.name() => "cancelled",
            _ => "error",
        };
        // What has texts for keys alone is always JSON.
        without(serde_json::to_value(&self.report).unwrap_or_default(), &self.bearer)
    }
}

/// The texts of `history`, the newest first as far as they fit, in their order.
fn words_of(history: &[Message], budget: &mut ByteBudget) -> Vec<Fitted<SentMessage>> {
    let mut kept = Vec::new();
    for (role, words) in history.iter().rev().filter_map(SentMessage::words) {
        if !budget.entry() {
            break;
        }
        kept.push(Fitted::Whole(SentMessage { role, content: Content::Text(budget.text(&words)) }));
    }
    kept.reverse();
    kept
}

/// All messages as they were sent to the model, the newest first as far as they fit, in their order.
fn sent_of(messages: &[Message], budget: &mut ByteBudget) -> Vec<Fitted<SentMessage>> {
    let newest = messages.iter().rev();
    let mut kept: Vec<_> =
        newest.map_while(|message| budget.entry().then(|| budget.fit(SentMessage::new(message)))).collect();
    kept.reverse();
    kept
}
