//! The context of a run's turns, and the reasons why they end early.

use std::sync::Arc;

use tokio::time::Instant;

use super::speech::kept;
use super::state::Transcript;
use super::stop::StopReason;
use super::terms::Terms;
use crate::agent::offer::profile::{Profile, Profiles};
use crate::agent::offer::selection::Finder;
use crate::agent::ports::approvals::ApprovalStore;
use crate::agent::ports::chats::ChatStore;
use crate::agent::ports::checkpoints::Checkpoints;
use crate::agent::ports::clock::Clock;
use crate::agent::ports::data::DataLoader;
use crate::agent::ports::decisions::Decisions;
use crate::agent::ports::events::EventSink;
use crate::agent::ports::files::Files;
use crate::agent::ports::llm::{LlmProvider, MustCall, SystemPrompt};
use crate::agent::ports::names::NameStore;
use crate::agent::ports::payloads::PayloadStore;
use crate::agent::ports::plans::PlanCommits;
use crate::agent::ports::store::RunCommits;
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::tools::{ToolContext, ToolExecutor};
use crate::agent::prompt::fence::Fences;
use crate::agent::spend::budget::Budgets;
use crate::agent::spend::limits::RunLimits;
use crate::agent::spend::prices::Prices;
use crate::bounded::intake::Intake;
use crate::chat::answer_format::AnswerFormat;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::input::Direct;
use crate::chat::model::{Helper, ModelChoice};
use crate::chat::origin::CallOrigin;
use crate::chat::payload::{NewPayload, PayloadSource};
use crate::chat::state::Recap;
use crate::chat::tool::ToolDef;
use crate::chat::unfinished::Unfinished;

/// The services of runs; one for the whole process.
pub struct Agent {
    /// The model.
    pub llm: Arc<dyn LlmProvider>,
    /// The tools.
    pub tools: Arc<dyn ToolExecutor>,
    /// The backend's data for prompts.
    pub data: Arc<dyn DataLoader>,
    /// Finds tools among many.
    pub finder: Finder,
    /// Where the transcript is kept.
    pub store: Arc<dyn RunCommits>,
    /// Where files are kept.
    pub files: Arc<dyn Files>,
    /// What keeps the files of workspaces, where there are some, and the role of those who work on them; empty: everybody.
    pub checkpoints: Option<(Arc<dyn Checkpoints>, String)>,
    /// Where payloads are kept.
    pub payloads: Arc<dyn PayloadStore>,
    /// Calls that wait for an approval.
    pub approvals: Arc<dyn ApprovalStore>,
    /// Decisions on further calls of a turn.
    pub decisions: Arc<dyn Decisions>,
    /// Where plans are kept.
    pub plans: Arc<dyn PlanCommits>,
    /// The names of things.
    pub names: Arc<dyn NameStore>,
    /// Who does the jobs around plans.
    pub helpers: Helpers,
    /// Numbers the conversations of pages.
    pub chats: Arc<dyn ChatStore>,
    /// Marks what others say in prompts.
    pub fences: Fences,
    /// Tells the time for the trail.
    pub clock: Arc<dyn Clock>,
    /// Where tools may move a conversation.
    pub profiles: Arc<Profiles>,
    /// The prices of models.
    pub prices: Prices,
    /// The budgets of users and tenants.
    pub budgets: Budgets,
    /// The bounds.
    pub limits: RunLimits,
    /// Takes in what is large.
    pub intake: Intake,
}

/// The models of the jobs within a run and beside it.
#[derive(Debug, Clone, Default)]
pub struct Helpers {
    /// Writes the steps of a plan.
    pub plan: Helper,
    /// Reviews a plan.
    pub review: Helper,
    /// Carries out a step or a task.
    pub executor: Helper,
    /// Says whether the user is asked first.
    pub clarify: Helper,
    /// Answers beside all conversations.
    pub message: Helper,
}

/// Whose turns they are.
#[derive(Clone, Copy)]
pub(super) enum Role<'a> {
    /// The answering model's.
    Answers,
    /// Those of a helper, or of a step of a plan.
    Helps(Helping<'a>),
}

/// How a helper or a step helps.
#[derive(Clone, Copy)]
pub(super) struct Helping<'a> {
    /// The turn that has asked for it, as it is noted before a write.
    pub(super) noted: &'a Unfinished,
    /// Who makes its calls; `None` where it makes none.
    pub(super) origin: Option<CallOrigin>,
    /// Whether they wait for a person where they need one.
    pub(super) may_wait: bool,
}

/// The request of one model call.
#[derive(Clone, Copy)]
pub(super) struct TurnRequest<'a> {
    pub(super) system: &'a SystemPrompt,
    pub(super) tools: &'a [Arc<ToolDef>],
    pub(super) may_call: bool,
    pub(super) must_call: MustCall<'a>,
    pub(super) format: Option<&'a AnswerFormat>,
    /// Whether text waits as long as it may be in another language than the profile's.
    pub(super) holds_ideographs: bool,
}

/// Why a run ended without an answer.
pub(super) enum Ended {
    Failed(Failure),
    Stopped(StopReason),
}

/// What a run comes to without an error.
pub(super) enum Flow {
    /// Its end.
    Done,
    /// Another place, where another profile goes on.
    Moved,
}

/// The turns of a run at one place.
pub(super) struct Turns<'a> {
    pub(super) agent: &'a Agent,
    pub(super) profile: &'a Profile,
    pub(super) model: &'a ModelChoice,
    pub(super) deadline: Option<Instant>,
    pub(super) cx: ToolContext<'a>,
    pub(super) details: bool,
    /// Whether a plan that begins here may wait for a person in the middle.
    pub(super) may_pause: bool,
    /// What the turn before was about.
    pub(super) recap: Option<&'a Recap>,
    pub(super) client_tools: &'a [Arc<ToolDef>],
    /// What is done instead of asking a model.
    pub(super) direct: Option<&'a Direct>,
    pub(super) terms: Terms<'a>,
    pub(super) events: &'a dyn EventSink,
    pub(super) role: Role<'a>,
}

impl Turns<'_> {
    /// Keeps a payload and shows it.
    pub(super) fn keep(&self, transcript: &mut Transcript, payload: NewPayload, source: PayloadSource) {
        let payload = Arc::new(kept(payload, source, self.profile));
        transcript.payloads.push(Arc::clone(&payload));
        self.emit(AgentEvent::Payload(payload));
    }

    pub(super) fn emit_text(&self, text: String) {
        if !text.is_empty() {
            self.emit(AgentEvent::TextDelta { text });
        }
    }

    pub(super) fn emit(&self, event: AgentEvent) {
        self.events.emit(event);
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.agent.clock.now_ms()
    }

    pub(super) fn has_lease(&self) -> bool {
        self.events.has_lease()
    }
}

pub(super) fn failed(code: FailureCode, message: &str, retryable: bool) -> Ended {
    Ended::Failed(Failure { code, message: message.to_owned(), retryable })
}

pub(super) fn store_failed(error: StoreError) -> Ended {
    match error {
        // It is not ours any more.
        StoreError::RunEnded => Ended::Stopped(StopReason::Interrupted),
        StoreError::Unavailable(_) | StoreError::Damaged(_) => {
            tracing::error!(error = %Causes(&error), "transcript not committed");
            Ended::Failed(store_failure())
        }
    }
}

pub(super) fn store_failure() -> Failure {
    Failure {
        code: FailureCode::StoreUnavailable,
        message: "The conversation could not be saved; please try again".to_owned(),
        retryable: true,
    }
}
