//! Events as chunks. A message has a step per model call, and in it text, reasoning and calls.
//!
//! **Invariant:** a run's last step never holds nothing but answered calls of the server's: pages that go on by themselves
//! once all calls have results (`sendAutomaticallyWhen`) would go on for ever.

use bytes::{Bytes, BytesMut};
use serde::Serialize;

use super::chunks::{Chunk, DataChunk, Metadata, ProgressBody, UsageBody, write, write_done, write_part};
use super::plain::{Plain, part_name};
use super::tools::{Calls, Held};
use super::{Answer, Version};
use crate::chat::approval::APPROVAL_REQUEST;
use crate::chat::artifact::Artifact;
use crate::chat::cost::Cost;
use crate::chat::event::{AgentEvent, Within};
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::fate::CallFate;
use crate::chat::ids::{ApprovalId, ToolCallId};
use crate::chat::message::ModelOrigin;
use crate::chat::stream::Usage;
use crate::chat::tool::Progress;
use crate::dialect::bodies::{NoticeBody, PlaceChangeBody, SuggestionsBody};
use crate::dialect::directive::DirectiveBody;
use crate::dialect::operation::OperationBody;
use crate::dialect::plans::{Plans, Standing};
use crate::dialect::state::StateBody;
use crate::dialect::{Encoder, RunIds, frame};

const INTERRUPTED: &str = "The server stopped while answering; please ask again";
const LOST: &str = "Part of this answer is not kept any more; please reload the conversation";
const ELSEWHERE: &str = "This server is about to stop; please reload the conversation";

pub(super) struct AiSdkEncoder {
    of: RunIds,
    run: String,
    /// The message's id.
    message: String,
    version: Version,
    continues: bool,
    more_follows: bool,
    step: Step,
    segment: Option<Segment>,
    /// How many segments and parts there were: their ids are numbers, the same for whoever reads the run again.
    numbered: u32,
    calls: Calls,
    plans: Plans,
    /// The usage of the runs before.
    earlier: Usage,
    usage: Option<Usage>,
    /// Of those and this one.
    cost: Option<Cost>,
    model: Option<ModelOrigin>,
}

/// The newest step.
struct Step {
    is_open: bool,
    /// Whether it shows calls.
    has_calls: bool,
}

/// Text or reasoning that goes on.
struct Segment {
    id: String,
    is_reasoning: bool,
}

impl AiSdkEncoder {
    pub(super) fn new(answer: Answer) -> Self {
        let calls = Calls::new(&answer);
        let Answer { of, version, continues, client_tools: _, more_follows, spent } = answer;
        let run = of.run.to_string();
        Self {
            message: continues.clone().unwrap_or_else(|| format!("{run}.1")),
            // What goes on comes after a step that ended with calls.
            step: Step { is_open: false, has_calls: continues.is_some() },
            continues: continues.is_some(),
            of,
            run,
            version,
            more_follows,
            segment: None,
            numbered: 0,
            calls,
            plans: Plans::default(),
            earlier: spent.usage,
            usage: None,
            cost: spent.cost,
            model: None,
        }
    }

    /// The next id, short since it stands in each piece of text: the end of a run's id is random.
    fn next_id(&mut self) -> String {
        self.numbered += 1;
        let tail = self.run.get(24..).unwrap_or_default();
        format!("{tail}.{}", self.numbered)
    }

    fn open_step(&mut self, out: &mut BytesMut) {
        if !self.step.is_open {
            write(out, &Chunk::StartStep);
            self.step = Step { is_open: true, has_calls: false };
        }
    }

    fn close_step(&mut self, out: &mut BytesMut) {
        self.close_segment(out);
        if std::mem::take(&mut self.step.is_open) {
            write(out, &Chunk::FinishStep);
        }
    }

    fn close_segment(&mut self, out: &mut BytesMut) {
        if let Some(Segment { id, is_reasoning }) = self.segment.take() {
            let id = &*id;
            write(out, &if is_reasoning { Chunk::ReasoningEnd { id } } else { Chunk::TextEnd { id } });
        }
    }

    fn say(&mut self, delta: &str, is_reasoning: bool, out: &mut BytesMut) {
        if delta.is_empty() {
            return;
        }
        self.open_step(out);
        let goes_on = self.segment.as_ref().is_some_and(|segment| segment.is_reasoning == is_reasoning);
        if !goes_on {
            self.close_segment(out);
            let id = self.next_id();
            write(out, &if is_reasoning { Chunk::ReasoningStart { id: &id } } else { Chunk::TextStart { id: &id } });
            self.segment = Some(Segment { id, is_reasoning });
        }
        let Some(Segment { id, .. }) = &self.segment else { return };
        write(out, &if is_reasoning { Chunk::ReasoningDelta { id, delta } } else { Chunk::TextDelta { id, delta } });
    }

    /// Ends the open text before chunks of a call.
    fn at_call(&mut self, id: &str, out: &mut BytesMut) {
        self.close_segment(out);
        if !self.calls.is_of_earlier_run(id) {
            self.open_step(out);
            self.step.has_calls = true;
        }
    }

    /// A call of a plan. One that waits for a person, or has waited, is shown as one of the run's, since that is where clients ask.
    fn within(&mut self, within: &Within, out: &mut BytesMut) {
        match &within.event {
            AgentEvent::ToolCallReady { id, name, input } if self.calls.is_of_earlier_run(id.as_str()) => {
                self.at_call(id.as_str(), out);
                self.calls.ready(id.as_str(), name, input, out);
            }
            AgentEvent::ToolCallHeld { id, name, approval } => {
                if let Some(input) = self.plans.input(id.as_str()).cloned() {
                    self.at_call(id.as_str(), out);
                    self.calls.ready(id.as_str(), name, &input, out);
                    self.calls.held_back(id.as_str(), name, *approval, out);
                }
            }
            AgentEvent::ToolCallFinished { id, fate, result, .. } if self.calls.is_open(id.as_str()) => {
                if *fate != CallFate::AwaitsApproval {
                    self.calls.take_back(id.as_str());
                }
                self.calls.finished(id.as_str(), *fate, result, out);
            }
            _ => {}
        }
    }

    fn part(&mut self, name: &str, id: Option<&str>, data: &impl Serialize, out: &mut BytesMut) {
        self.close_segment(out);
        let own = match id {
            Some(id) => id.to_owned(),
            None => self.next_id(),
        };
        write_part(out, &DataChunk { r#type: name, id: Some(&own), data, transient: false });
    }

    /// A plan or a sub-agent as it stands: a part that the next one of its id replaces.
    fn standing(&mut self, Standing { kind, id, content }: &Standing, out: &mut BytesMut) {
        self.part(&format!("data-{kind}"), Some(id), &Plain::from_value(content), out);
    }

    fn artifact(&mut self, Artifact { kind, payload }: &Artifact, out: &mut BytesMut) {
        let data = Plain::from_value(payload);
        if kind == APPROVAL_REQUEST {
            let id = payload.get("approval_id").and_then(serde_json::Value::as_str);
            return self.part("data-approval", id, &data, out);
        }
        self.part(&part_name(kind), None, &data, out);
    }

    fn progress(&mut self, id: &str, name: &str, progress: &Progress, out: &mut BytesMut) {
        self.calls.reveal(id, out);
        let Progress { stage, message, fraction, data } = progress;
        let body = ProgressBody {
            tool_call_id: self.calls.known_as(id),
            tool_name: name,
            stage,
            message,
            fraction: *fraction,
            data: data.as_ref().map(Plain::from_value),
        };
        write_part(out, &DataChunk { r#type: "data-progress", id: None, data: &body, transient: true });
    }

    fn metadata(&self, finish_reason: Option<&'static str>) -> Metadata<'_> {
        let usage = self.usage.map(|mut usage| {
            usage += self.earlier;
            UsageBody::from_usage(usage)
        });
        Metadata {
            run_id: &self.run,
            finish_reason,
            provider: self.model.as_ref().map(|model| &*model.provider),
            model: self.model.as_ref().map(|model| &*model.model),
            usage,
            cost_usd: self.cost.map(Cost::usd),
        }
    }

    /// The end of a run that came to one.
    fn finish(&mut self, reason: &'static str, out: &mut BytesMut) {
        self.close_step(out);
        // The first releases of version 5 refuse the key, so it is among what they take as it comes.
        let (known, otherwise) = if self.version >= Version::V6 { (Some(reason), None) } else { (None, Some(reason)) };
        write(out, &Chunk::Finish { finish_reason: known, message_metadata: self.metadata(otherwise) });
    }

    /// Leaves nothing open, and no step that would be taken for one that is to go on.
    fn settle(&mut self, out: &mut BytesMut) {
        self.close_segment(out);
        self.calls.cut_off(out);
        self.close_step(out);
        if self.step.has_calls {
            self.open_step(out);
            self.close_step(out);
        }
    }

    /// The end of a run that broke off.
    fn break_off(&mut self, last: &Chunk<'_>, out: &mut BytesMut) {
        self.settle(out);
        if self.usage.is_some() {
            write(out, &Chunk::MessageMetadata { message_metadata: self.metadata(None) });
        }
        write(out, last);
        write_done(out);
    }

    /// The end of a run whose answer the model cut off: its text stays an answer, and the reason of its end names the
    /// limit.
    fn cut_short(&mut self, reason: &'static str, out: &mut BytesMut) {
        self.settle(out);
        self.finish(reason, out);
        write_done(out);
    }

    fn fail(&mut self, message: &str, out: &mut BytesMut) {
        let error_text = with_reference(message, &self.of.request);
        self.break_off(&Chunk::Error { error_text: &error_text }, out);
    }

    /// Says where to decide what waits, to clients that cannot ask for it.
    fn tell_where_to_decide(&mut self, out: &mut BytesMut) {
        self.close_step(out);
        let lines = self.calls.held().iter().map(|Held { approval, name, .. }| decide_at(name, *approval));
        let text = lines.collect::<Vec<_>>().join("\n");
        self.say(&text, false, out);
    }

    fn ended(&mut self, usage: Usage, reason: &'static str, out: &mut BytesMut) {
        self.usage = Some(usage);
        self.finish(reason, out);
        if !self.more_follows {
            write_done(out);
        }
    }
}

impl Encoder for AiSdkEncoder {
    fn opened(&mut self, out: &mut BytesMut) {
        let message_metadata = Metadata { run_id: &self.run, ..Metadata::default() };
        write(out, &Chunk::Start { message_id: &self.message, message_metadata });
    }

    fn encode(&mut self, _id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        match event {
            // The next one is opened by what is in it.
            AgentEvent::TurnStarted { .. } => self.close_step(out),
            AgentEvent::TurnEnded { model, usage, cost } => {
                *self.usage.get_or_insert_default() += *usage;
                if let Some(cost) = cost {
                    *self.cost.get_or_insert_default() += *cost;
                }
                self.model = Some(ModelOrigin::clone(model));
            }
            AgentEvent::TextDelta { text } => self.say(text, false, out),
            AgentEvent::ThinkingDelta { text } => self.say(text, true, out),
            AgentEvent::CallDecided { requested_as, name: _, runs_as } => {
                // Who reads the run alone has no message with that call: the call is then one of this run.
                if self.continues {
                    self.calls.decided(requested_as.as_str(), runs_as.as_ref().map(ToolCallId::as_str), out);
                }
            }
            AgentEvent::ToolCallStarted { id, name } => {
                self.at_call(id.as_str(), out);
                self.calls.started(id.as_str(), name, out);
            }
            AgentEvent::ToolCallReady { id, name, input } => {
                self.at_call(id.as_str(), out);
                self.calls.ready(id.as_str(), name, input, out);
            }
            AgentEvent::ToolProgress { id, name, progress } => self.progress(id.as_str(), name, progress, out),
            AgentEvent::ToolCallHeld { id, name, approval } => self.calls.held_back(id.as_str(), name, *approval, out),
            AgentEvent::ToolCallFinished { id, name: _, fate, error: _, result } => {
                self.calls.finished(id.as_str(), *fate, result, out);
            }
            AgentEvent::Artifact(artifact) => self.artifact(artifact, out),
            AgentEvent::Payload(payload) => {
                let id = payload.id.as_str();
                self.part(&part_name(&payload.kind), Some(id), &Plain::from_value(&payload.data), out);
            }
            AgentEvent::Suggested(suggestions) => {
                let body = Plain::from_value(&SuggestionsBody::from_suggestions(suggestions));
                self.part("data-suggestions", Some("suggestions"), &body, out);
            }
            AgentEvent::PlaceChanged { by, place, is_refocused: _ } => {
                let body = Plain::from_value(&PlaceChangeBody::new(*by, place));
                self.part("data-place", Some("place"), &body, out);
            }
            AgentEvent::Operation(operation) => {
                let body = Plain::from_value(&OperationBody::new(operation, None));
                self.part("data-operation", Some(operation.call.as_str()), &body, out);
            }
            AgentEvent::Notice(notice) => {
                let body = Plain::from_value(&NoticeBody::of(notice));
                self.part("data-notice", None, &body, out);
            }
            AgentEvent::Directive(notice) => {
                let body = Plain::from_value(&DirectiveBody::from_notice(notice));
                self.part("data-directive", Some(&notice.id.to_string()), &body, out);
            }
            AgentEvent::State(event) => {
                if let Some(body) = StateBody::of_event(event) {
                    let name = event.name().replace('_', "-");
                    self.part(&format!("data-{name}"), Some(&name), &Plain::from_value(&body), out);
                }
            }
            AgentEvent::Plan(event) => {
                if let Some(standing) = self.plans.apply(event) {
                    self.standing(&standing, out);
                }
            }
            AgentEvent::Within(within) => {
                self.within(within, out);
                if let Some(standing) = self.plans.apply_call(within) {
                    self.standing(&standing, out);
                }
            }
            AgentEvent::Summarising
            | AgentEvent::Summarised
            | AgentEvent::RoundEnded
            | AgentEvent::LimitReached
            | AgentEvent::Diagnosed(_)
            | AgentEvent::Observed(_) => {}
            AgentEvent::Finished { usage } => {
                self.settle(out);
                self.ended(*usage, "stop", out);
            }
            AgentEvent::AwaitingApproval { usage } => {
                if self.version >= Version::V6 {
                    self.calls.ask(out);
                } else {
                    self.tell_where_to_decide(out);
                }
                self.ended(*usage, "tool-calls", out);
            }
            AgentEvent::AwaitingClient { usage, calls } => {
                self.close_segment(out);
                self.calls.left_to_client(calls, out);
                self.usage = Some(*usage);
                self.finish("tool-calls", out);
                write_done(out);
            }
            AgentEvent::Failed(Failure { code, message, .. }) => match code {
                FailureCode::MaxTokens => self.cut_short("length", out),
                FailureCode::ContentFiltered => self.cut_short("content-filter", out),
                _ => self.fail(message, out),
            },
            AgentEvent::Cancelled => self.break_off(&Chunk::Abort, out),
            AgentEvent::Interrupted => self.fail(INTERRUPTED, out),
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        self.fail(LOST, out);
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        frame::write_comment(out, "keep-alive");
    }

    /// These clients do not come back by themselves, and take a stream without an end for a whole answer.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        frame::write_comment(out, "draining");
        if come_back_ms.is_some() {
            self.fail(ELSEWHERE, out);
        }
    }
}

/// The end of a stream whose last run has said all.
pub(super) fn finished() -> Bytes {
    let mut out = BytesMut::new();
    write_done(&mut out);
    out.freeze()
}

/// The end of a stream that goes on with nothing more, and why.
pub(super) fn broken_off(message: &str, request: &str) -> Bytes {
    let mut out = BytesMut::new();
    write(&mut out, &Chunk::Error { error_text: &with_reference(message, request) });
    write_done(&mut out);
    out.freeze()
}

/// Where a call is decided, for the users of clients that cannot ask.
pub(super) fn decide_at(tool: &str, approval: ApprovalId) -> String {
    format!("The call of {tool} waits for approval: it is decided at /v1/agent/approvals/{approval}.")
}

/// A message for the user, with the reference that finds it in the log.
fn with_reference(message: &str, request: &str) -> String {
    format!("{message} (reference: {request})")
}
