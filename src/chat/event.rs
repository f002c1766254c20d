//! The events of the loop. Dialects turn these into frames; nothing here names an SSE event.

use super::failure::Failure;
use std::sync::Arc;

use serde_json::Value;

use super::answer::Suggestions;
use super::artifact::Artifact;
use super::cost::Cost;
use super::directive::DirectiveNotice;
use super::fate::{CallError, CallFate};
use super::ids::{ApprovalId, ToolCallId};
use super::message::ModelOrigin;
use super::notice::Notice;
use super::observation::Observation;
use super::operation::Operation;
use super::origin::CallOrigin;
use super::payload::Payload;
use super::place::{Mover, Place};
use super::plan::PlanEvent;
use super::run::{RunRecord, RunState};
use super::state::StateEvent;
use super::stream::Usage;
use super::tool::{Progress, ToolCall, ToolInput};

/// One step of a run. The last of a run is always [`Self::Finished`], [`Self::AwaitingApproval`],
/// [`Self::AwaitingClient`], [`Self::Failed`], [`Self::Cancelled`] or [`Self::Interrupted`], and only the last.
///
/// Every piece of text is one, and is kept for a while: events that are rare and large are in a box.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The conversation is somewhere else; stored already. By a request it comes first, by a tool after its round.
    PlaceChanged {
        /// Who moved it.
        by: Mover,
        /// Where it is now.
        place: Box<Place>,
        /// Whether the focus is another one.
        is_refocused: bool,
    },
    /// The state of the conversation, where its profile has it told.
    State(Box<StateEvent>),
    /// Not all that was said before fits, and a summary stands for the rest, as far as one can be had; it may be waited for.
    /// Comes before all turns of a run, if at all.
    Summarising,
    /// The waiting is over, with a summary or without; follows [`Self::Summarising`].
    Summarised,
    /// A model call begins; counted from 0.
    TurnStarted {
        /// The turn's number.
        turn: u32,
    },
    /// A model call has come to its end; its tools have not run yet.
    TurnEnded {
        /// The model that answered.
        model: Arc<ModelOrigin>,
        /// Its tokens, as far as the model tells.
        usage: Usage,
        /// Its cost, where its model has a price.
        cost: Option<Cost>,
    },
    /// Files that the model which answers is not shown; before its text, each file once in a run.
    Notice(Box<Notice>),
    /// Text for the user.
    TextDelta {
        /// A piece of it.
        text: String,
    },
    /// Reasoning; dialects decide whether clients may see it.
    ThinkingDelta {
        /// A piece of it.
        text: String,
    },
    /// The model named a tool; its arguments are still coming.
    ToolCallStarted {
        /// The call's id, unique in its turn.
        id: ToolCallId,
        /// The tool.
        name: String,
    },
    /// A call's arguments are complete, and its turn has come.
    ToolCallReady {
        /// The call's id.
        id: ToolCallId,
        /// The tool.
        name: String,
        /// Its arguments; none where no reader may see them.
        input: Box<ToolInput>,
    },
    /// A tool tells how far it has come.
    ToolProgress {
        /// The call's id.
        id: ToolCallId,
        /// The tool.
        name: String,
        /// How far.
        progress: Box<Progress>,
    },
    /// A call waits for a person: the result that follows says only that.
    ToolCallHeld {
        /// The call's id.
        id: ToolCallId,
        /// The tool.
        name: String,
        /// The approval to be decided.
        approval: ApprovalId,
    },
    /// A call of an earlier run that waited for a person has been decided; comes before everything else of the run that
    /// goes on with it.
    CallDecided {
        /// The call's id in the run that requested it.
        requested_as: ToolCallId,
        /// The tool.
        name: String,
        /// The id under which it is made now; `None` when it was turned down.
        runs_as: Option<ToolCallId>,
    },
    /// A tool has run, or was refused.
    ToolCallFinished {
        /// The call's id.
        id: ToolCallId,
        /// The tool.
        name: String,
        /// Its fate.
        fate: CallFate,
        /// Why the model reads an error, where it does.
        error: Option<CallError>,
        /// The text for the model; empty where no reader may see it.
        result: Arc<str>,
    },
    /// A directive that a call has requested is in another state; comes while that call is made.
    Directive(Box<DirectiveNotice>),
    /// What a call is about to do to a thing that its user knows, or has done; follows its readiness, or its result.
    Operation(Box<Operation>),
    /// Something for the client's screen; follows its call's result.
    Artifact(Box<Artifact>),
    /// A payload that was kept; follows its call's result, or the text in which the model wrote it.
    Payload(Arc<Payload>),
    /// A plan or a sub-agent goes on, while the call that has begun it is made.
    Plan(Box<PlanEvent>),
    /// A call that a step of a plan or a sub-agent makes.
    Within(Box<Within>),
    /// All calls of a turn have their results.
    RoundEnded,
    /// A limit of turns or calls is reached: the model is asked once more, to answer with what it has.
    LimitReached,
    /// The model's suggestions; after all text, once.
    Suggested(Suggestions),
    /// How the run was carried out, a JSON object; only where its profile lets its caller see that, after all text.
    Diagnosed(Arc<Value>),
    /// How it is being carried out; only there, too.
    Observed(Box<Observation>),
    /// The final answer is complete.
    Finished {
        /// All turns together.
        usage: Usage,
    },
    /// The run ended with calls that need an approval; artifacts have presented them.
    AwaitingApproval {
        /// All turns together.
        usage: Usage,
    },
    /// The run ended with calls of tools that its client runs; their results come with another request.
    AwaitingClient {
        /// All turns together.
        usage: Usage,
        /// The calls, in order.
        calls: Vec<ToolCall>,
    },
    /// The run ended early.
    Failed(Failure),
    /// Its client went away, or requested the stop.
    Cancelled,
    /// The server that ran it stopped; the text until then is kept.
    Interrupted,
}

/// An event of a call that the model which answers has not made itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Within {
    /// Who has.
    pub origin: CallOrigin,
    /// The event: of a call, and never another one.
    pub event: AgentEvent,
}

impl AgentEvent {
    /// Whether nothing follows.
    pub fn is_terminal(&self) -> bool {
        self.ends_as().is_some()
    }

    /// Why the run failed, where it ends so.
    pub fn failure(&self) -> Option<&Failure> {
        let Self::Failed(failure) = self else { return None };
        Some(failure)
    }

    /// How a run ends with this event; `None` where it goes on.
    pub fn ends_as(&self) -> Option<RunState> {
        match self {
            Self::Finished { .. } | Self::AwaitingClient { .. } => Some(RunState::Completed),
            Self::AwaitingApproval { .. } => Some(RunState::AwaitingApproval),
            Self::Failed(_) => Some(RunState::Failed),
            Self::Cancelled => Some(RunState::Cancelled),
            Self::Interrupted => Some(RunState::Interrupted),
            Self::PlaceChanged { .. }
            | Self::State(_)
            | Self::Summarising
            | Self::Summarised
            | Self::TurnStarted { .. }
            | Self::TurnEnded { .. }
            | Self::Notice(_)
            | Self::TextDelta { .. }
            | Self::ThinkingDelta { .. }
            | Self::ToolCallStarted { .. }
            | Self::ToolCallReady { .. }
            | Self::ToolProgress { .. }
            | Self::ToolCallHeld { .. }
            | Self::CallDecided { .. }
            | Self::ToolCallFinished { .. }
            | Self::Directive(_)
            | Self::Operation(_)
            | Self::Artifact(_)
            | Self::Payload(_)
            | Self::Plan(_)
            | Self::Within(_)
            | Self::RoundEnded
            | Self::LimitReached
            | Self::Suggested(_)
            | Self::Diagnosed(_)
            | Self::Observed(_) => None,
        }
    }
}

impl RunRecord {
    /// The terminal event of a run that has ended; `None` while it has not.
    pub fn end(&self) -> Option<AgentEvent> {
        match self.state {
            RunState::Queued | RunState::Running => None,
            RunState::Completed if !self.left.is_empty() => {
                Some(AgentEvent::AwaitingClient { usage: self.usage, calls: self.left.clone() })
            }
            RunState::Completed => Some(AgentEvent::Finished { usage: self.usage }),
            RunState::AwaitingApproval => Some(AgentEvent::AwaitingApproval { usage: self.usage }),
            RunState::Failed => Some(AgentEvent::Failed(self.error.clone().unwrap_or_else(Failure::internal))),
            RunState::Cancelled => Some(AgentEvent::Cancelled),
            RunState::Interrupted => Some(AgentEvent::Interrupted),
        }
    }
}
