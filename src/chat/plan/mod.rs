//! Plans: graphs of steps, which tools and sub-agents carry out.

mod value;

use serde_json::{Map, Value};

use super::fate::CallFate;
use super::fit::fit;
use super::ids::{ExecutionId, PlanId, ToolCallId};
use super::stream::Usage;
use super::tool::{ToolCall, ToolInput};

/// A plan, as far as it has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its id.
    pub id: PlanId,
    /// The call that has made it, or that carries it out.
    pub call: ToolCallId,
    /// What it is for, in the model's words.
    pub objective: String,
    /// What happens when it is made.
    pub mode: PlanMode,
    /// How far it has come.
    pub status: PlanStatus,
    /// Its steps, by their numbers.
    pub steps: Vec<Step>,
    /// What it is to bring about, in the model's words.
    pub requested_outputs: Vec<String>,
    /// What it is about above all, in the model's words.
    pub priority_entities: Vec<String>,
    /// What its review says; `None` before one.
    pub review: Option<Review>,
    /// When it was made; in milliseconds.
    pub created_ms: i64,
    /// When it ended; in milliseconds.
    pub completed_ms: Option<i64>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its number, unique in its plan.
    pub number: u32,
    /// Its kind.
    pub kind: StepKind,
    /// What it does, in the model's words.
    pub description: String,
    /// Whether a sub-agent carries it out, and not its tools alone.
    pub by_agent: bool,
    /// Its tools.
    pub tools: Vec<String>,
    /// The steps whose results it needs, all with smaller numbers.
    pub needs: Vec<u32>,
    /// Arguments for its tools, and what else the model says of it.
    pub metadata: Map<String, Value>,
    /// How far it has come.
    pub status: StepStatus,
    /// How many of its tools were called; none of a sub-agent's.
    pub calls: u32,
    /// The calls of its tools, in their order, while one of them waits for a person.
    pub so_far: Vec<StepCall>,
    /// What came of it.
    pub result: Option<Value>,
    /// Why it has failed, or was skipped.
    pub error: Option<String>,
}

/// A call of a step that waits, or that was made before it has waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepCall {
    /// Its id; of one that waits, that of its approval's call.
    pub id: String,
    /// What became of it.
    pub fate: CallFate,
    /// What it has said.
    pub content: String,
}

/// What happens with a plan when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanMode {
    /// It is carried out.
    Execute,
    /// It is kept, and carried out when somebody asks for it.
    Draft,
    /// A model looks at it first.
    Review,
}

/// How far a plan has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStatus {
    /// Nothing of it has begun; it may be carried out later.
    Draft,
    /// The same, since its review has not let it through.
    Held,
    /// It is carried out.
    Executing,
    /// It goes on when a call of it is decided that waits for a person.
    Paused,
    /// All of it is done.
    Completed,
    /// It is done, but for steps on which nothing depends.
    CompletedWithErrors,
    /// It has failed, or its process died.
    Failed,
    /// Its run was cancelled.
    Cancelled,
}

/// How far a step has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    /// It has not begun.
    Pending,
    /// It is carried out.
    Executing,
    /// A call of it waits for a person.
    AwaitingApproval,
    /// It is done.
    Completed,
    /// It has failed.
    Failed,
    /// It never began, since another one has failed.
    Skipped,
    /// Its run was cancelled.
    Cancelled,
}

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// It finds out: where it fails, so does its plan.
    Research,
    /// It changes something.
    Action,
    /// It makes sense of what others have found.
    Analysis,
    /// It puts together what others have made.
    Synthesis,
}

/// A review of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// What it comes to.
    pub verdict: Verdict,
    /// Its reasons, for people.
    pub notes: String,
}

/// What a review comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The plan is carried out.
    Approved,
    /// It waits: it should be another one.
    ChangesRequested,
    /// It waits: it should not be carried out.
    Rejected,
}

/// What happens to a plan and its sub-agents; stored already.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanEvent {
    /// There is a plan.
    Created(Plan),
    /// A review has come to a verdict.
    Reviewed(Plan),
    /// A plan waits for its user.
    Held(Plan),
    /// A step begins.
    StepStarted {
        /// Its plan.
        plan: PlanId,
        /// The step.
        step: Step,
    },
    /// A call of a step waits for a person, and the step with it.
    StepPaused {
        /// Its plan.
        plan: PlanId,
        /// The step.
        step: Step,
    },
    /// A step has ended, or was skipped.
    StepFinished {
        /// Its plan.
        plan: PlanId,
        /// The step.
        step: Step,
    },
    /// A sub-agent begins.
    AgentStarted(Execution),
    /// A call of a sub-agent waits for a person, and the sub-agent with it.
    AgentPaused(Execution),
    /// A sub-agent has ended.
    AgentFinished(Execution),
    /// A plan waits for a person to decide calls of it.
    Paused(Plan),
    /// It goes on.
    Resumed(Plan),
    /// A plan has come to its end; its steps stand there without their results, which they have told.
    Ended(Plan),
}

/// The work of one sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// The plan and the step that it is for; none where a model has asked it directly.
    pub step: Option<(PlanId, u32)>,
    /// Its name: the assistant that was asked, or the kind of its step.
    pub name: String,
    /// What it is asked.
    pub task: String,
    /// Its tools.
    pub tools: Vec<String>,
    /// Whether one of them may change something.
    pub writes: bool,
    /// How far it has come; never skipped.
    pub status: StepStatus,
    /// What came of it.
    pub result: Option<Value>,
    /// Why it has failed.
    pub error: Option<String>,
    /// The calls that it has made, in order.
    pub calls: Vec<AgentCall>,
    /// The ids of those that wait for a person.
    pub waits_for: Vec<String>,
    /// What it has used.
    pub usage: Usage,
    /// When it began; in milliseconds.
    pub started_ms: i64,
    /// How long it took; in milliseconds.
    pub duration_ms: u64,
}

/// A call of a sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What the sub-agent has read.
    pub result: Value,
    /// What became of it.
    pub fate: CallFate,
}

/// 4 KiB of what a sub-agent has given a call, and as much of what it has read, are kept.
const CALL_BYTES: usize = 4 << 10;

/// Whether a value can stand in a plan: one with too many lists and objects in each other would not be read again.
pub fn fits(value: &Value) -> bool {
    value::is_flat(value, value::DEPTH)
}

/// A text of a tool as what it means: JSON where it is some, else itself.
pub fn data(content: &str) -> Value {
    value::read(content)
}

impl AgentCall {
    /// The call, and what was read of it, as far as it is kept.
    pub fn new(call: &ToolCall, content: &str, fate: CallFate) -> Self {
        let kept = |text: &str| data(fit(text, CALL_BYTES, "the rest was left out").as_deref().unwrap_or(text));
        let arguments = match &call.input {
            ToolInput::Object(fields) => kept(&Value::Object(fields.clone()).to_string()),
            ToolInput::Invalid(text) => kept(text),
        };
        let (id, tool) = (call.id.as_str().to_owned(), call.name.clone());
        Self { id, tool, arguments, result: kept(content), fate }
    }
}

impl Plan {
    /// The step of that number.
    pub fn step(&self, number: u32) -> Option<&Step> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// How many of its steps are so.
    pub fn count(&self, status: StepStatus) -> usize {
        self.steps.iter().filter(|step| step.status == status).count()
    }
}

impl Step {
    /// The id of the call of its tool in that place, counted from 1: no other call of the conversation has it, and every
    /// vendor takes it.
    pub fn call_id(&self, plan: PlanId, place: u32) -> ToolCallId {
        ToolCallId::from_minted(format!("plan_{}_{}_{place}", plan.to_string().replace('-', ""), self.number))
    }
}

impl StepCall {
    /// Whether no further call comes behind it, for now.
    pub fn is_in_the_way(&self) -> bool {
        self.fate.is_error() || self.fate == CallFate::AwaitsApproval
    }
}

impl PlanStatus {
    /// Whether it waits to be carried out.
    pub fn waits(self) -> bool {
        matches!(self, Self::Draft | Self::Held)
    }
}

impl StepStatus {
    /// Whether it has come to its end.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Executing | Self::AwaitingApproval)
    }
}

/// Names, both ways. One that is not known is `None`.
macro_rules! names {
    ($($kind:ident { $($variant:ident = $name:literal,)+ })+) => {$(
        impl $kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The one of that name.
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    )+};
}

names! {
    PlanMode {
        Execute = "auto_execute",
        Draft = "draft_only",
        Review = "agent_review",
    }
    PlanStatus {
        Draft = "draft",
        Held = "held",
        Executing = "executing",
        Paused = "paused",
        Completed = "completed",
        CompletedWithErrors = "completed_with_errors",
        Failed = "failed",
        Cancelled = "cancelled",
    }
    StepStatus {
        Pending = "pending",
        Executing = "executing",
        AwaitingApproval = "awaiting_approval",
        Completed = "completed",
        Failed = "failed",
        Skipped = "skipped",
        Cancelled = "cancelled",
    }
    StepKind {
        Research = "research",
        Action = "action",
        Analysis = "analysis",
        Synthesis = "synthesis",
    }
    Verdict {
        Approved = "approved",
        ChangesRequested = "changes_requested",
        Rejected = "rejected",
    }
}
