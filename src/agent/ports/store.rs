//! The runs' port: a run's life in the store, from its question to its end. Messages are durable and scoped by owner.
//!
//! Runs of a conversation form a tree: each run goes on from a message of another one, or from the beginning. The
//! messages on the way from the root to a run are its history.

use async_trait::async_trait;

use super::quotas::{OverQuota, Quotas, Whose};
use super::store_error::StoreError;
use super::summaries::{HistoryBound, Past};
use crate::chat::approval::Decision;
use crate::chat::caller::Owner;
use crate::chat::clarification::Clarification;
use crate::chat::ids::{ApprovalId, ConversationId, PlanId, RunId};
use crate::chat::input::{Ask, ClientMessage, Parent};
use crate::chat::message::{AssistantMessage, UserMessage};
use crate::chat::origin::CallOrigin;
use crate::chat::place::{Place, PlaceUpdate};
use crate::chat::run::{CancelledBy, RunRecord, RunState};
use crate::chat::screen::ScreenState;
use crate::chat::state::Recap;
use crate::chat::tool::{ToolCall, ToolResult};
use crate::chat::unfinished::Unfinished;

pub use super::commit::{Commit, Left, RunEnd, StateLeft, Used};

/// The server's message, in the user's role, when an interrupted answer is continued.
pub const CONTINUE_REQUEST: &str = "[Your previous answer was interrupted. Go on from where it stopped, without repeating what was \
                                    said. A call whose state is unknown must not be repeated before you have checked.]";

/// The beginning of the server's message to the model about a decision on a call that waited.
pub const DECISION_ON_CALL: &str = "[Decision on a waiting call: ";

/// The server's message, in the user's role, when an answer is given again that began with an approved call: it goes on
/// behind that call, which is not made again.
pub const AFTER_APPROVED_CALL: &str = "[Decision on a waiting call: the call that the user approved stands above, made once, with its result; \
                                       where no result stands there it was not made. Answer once more, and do not make it again.]";

/// The server's message, in the user's role, when the client has answered calls that were left to it.
pub const CLIENT_RESULTS: &str = "[Results from the application: the calls that were left to it stand here again, with what it says \
                                  came of them.]";

/// Keeps runs and their messages: whoever runs them needs all of it.
///
/// Each run's messages stay together, so that the transcript is valid for a model whatever happens: an assistant
/// message with calls is only ever kept together with all its results.
///
/// **Invariant:** only a live run changes. A run that has ended, or is gone, refuses everything with
/// [`StoreError::RunEnded`]: whoever was paused beyond the lease, and comes back, can do nothing any more.
pub trait RunStore: RunStarts + RunCommits + RunRecords {}

impl<S: RunStarts + RunCommits + RunRecords + ?Sized> RunStore for S {}

/// How runs begin.
#[async_trait]
pub trait RunStarts: Send + Sync {
    /// Begins a run: makes the conversation if the owner has none of that id, and commits the user's message together
    /// with the decisions that the model has not read yet, which count as read then, and the trail of both.
    ///
    /// # Errors
    /// See [`BeginError`]; but for [`BeginError::Unconfirmed`] nothing was committed then, or the same key finds it.
    async fn begin_run(&self, run: NewRun<'_>) -> Result<Begun, BeginError>;

    /// Makes a queued run the running one, if its turn has come: none of its conversation is running, and none that was
    /// queued before it waits. `None` while it has to wait.
    ///
    /// # Errors
    /// When it has ended meanwhile, or the store failed.
    async fn promote(&self, run: RunId, history: HistoryBound) -> Result<Option<RunStart>, StoreError>;

    /// Whether a request with one of these keys has begun a run of the owner's, and would find it again.
    ///
    /// # Errors
    /// When the store failed.
    async fn knows_request(&self, owner: &Owner, keys: &[String]) -> Result<bool, StoreError>;

    /// The run that the same request of the owner's has begun, if it has. Nothing is written for it.
    ///
    /// # Errors
    /// When the key was used for another request, or the store failed.
    async fn find_request(&self, owner: &Owner, key: RequestKey<'_>) -> Result<Option<RunRecord>, BeginError>;

    /// Whether the owner may have one more run in that conversation, whose own runs do not count: they may make way;
    /// and whether its quotas are not used up. It only reads, so that requests that are refused again and again block
    /// no writer; `begin_run` counts the runs again.
    ///
    /// # Errors
    /// When there are too many, or the store failed.
    async fn check_pending_limit(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: MostRuns,
        quotas: &Quotas,
    ) -> Result<(), BeginError>;
}

/// The commits of a run that has begun: all that its loop needs.
#[async_trait]
pub trait RunCommits: Send + Sync {
    /// Notes, before it is sent, a write that a tool is about to do, with the turn as it stands: should its process
    /// die, the turn is settled from this note. A helper's call is none of that turn.
    ///
    /// # Errors
    /// When it was dispatched before, the run has ended, or it could not be committed: then it must not be sent.
    async fn dispatch(&self, run: RunId, call: &ToolCall, turn: &Unfinished) -> Result<(), StoreError>;

    /// Appends messages of a running run with their part of the trail, all or none. Both are numbered, so a commit of
    /// unknown fate can be repeated: what has its number already is kept as it is.
    ///
    /// # Errors
    /// When they could not be committed.
    async fn append(&self, run: RunId, commit: Commit<'_>) -> Result<(), StoreError>;

    /// Appends the rest and records how the run ended, in one step.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn finish_run(&self, run: RunId, commit: Commit<'_>, end: RunEnd<'_>) -> Result<(), StoreError>;
}

/// Runs as their owners see them.
#[async_trait]
pub trait RunRecords: Send + Sync {
    /// The owner's run of that id.
    ///
    /// # Errors
    /// When the store failed.
    async fn find_run(&self, owner: &Owner, run: RunId) -> Result<Option<RunRecord>, StoreError>;

    /// The owner's run of that id and those that went on behind decisions on calls of it, and of each other: the newest, oldest
    /// first. Empty where there is no such run.
    ///
    /// # Errors
    /// When the store failed.
    async fn went_on(&self, owner: &Owner, run: RunId) -> Result<Vec<RunRecord>, StoreError>;

    /// The runs of the owner's conversation that have not ended: the running one, then those that wait for their turn,
    /// in the order in which they get it.
    ///
    /// # Errors
    /// When the store failed.
    async fn live_runs(&self, owner: &Owner, conversation: &ConversationId) -> Result<Vec<RunId>, StoreError>;

    /// Requests the cancel of a run from its process, and ends one that has not begun. Returns the run as it is then;
    /// one that has ended stays as it is. The first who requests it counts.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn request_cancel(&self, owner: &Owner, run: RunId, by: CancelledBy)
    -> Result<Option<RunRecord>, StoreError>;
}

/// A run about to begin.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// Its id.
    pub id: RunId,
    /// The conversation's owner.
    pub owner: &'a Owner,
    /// The conversation to go on with or begin.
    pub conversation: &'a ConversationId,
    /// The `context_type` that selected the profile.
    pub context_type: &'a str,
    /// The screen state that the request brought; kept for whoever goes on with the run.
    pub context: Option<&'a ScreenState>,
    /// What it changes of the conversation's place.
    pub place: &'a PlaceUpdate,
    /// The question that it answers.
    pub question: Question<'a>,
    /// Earlier messages, where the conversation begins with them: kept with it, as far as it fits, and part of the
    /// history of every branch.
    pub earlier: &'a [ClientMessage],
    /// Whether a conversation that begins with it is left out of lists.
    pub unlisted: bool,
    /// The client's own id of its message, by which it may ask it again.
    pub asked_as: Option<&'a str>,
    /// Whether, begun with a decision, it waits for those on other calls of the same turn.
    pub gathers: bool,
    /// Whether it asks no model; kept, for the run that goes on behind a decision on its call.
    pub direct: bool,
    /// The form of its answer, where those that go on behind decisions on its calls have it too.
    pub form: Option<&'a str>,
    /// Makes a repeated request find this run.
    pub key: Option<RequestKey<'a>>,
    /// Whether it may wait behind a run that is there already, and how many may wait in a conversation at most; `None`:
    /// it is refused.
    pub queue: Option<u32>,
    /// Whether it goes on without readers.
    pub background: bool,
    /// The HTTP request that asks for it.
    pub request_id: &'a str,
    /// The process that runs it.
    pub replica: &'a str,
    /// How long it counts as alive without a beat, in milliseconds.
    pub lease_ms: i64,
    /// How much history to load.
    pub history: HistoryBound,
    /// How many runs may live with it.
    pub most: MostRuns,
}

/// How many live runs there may be at once, in all processes; 0 means no limit. A run whose lease is over does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MostRuns {
    /// Of its user.
    pub per_user: u32,
    /// Of its tenant. Whoever has none shares it with the whole deployment, so there it is no limit.
    pub per_tenant: u32,
}

/// The question of a run.
#[derive(Debug, Clone, Copy)]
pub enum Question<'a> {
    /// A new message or an earlier one again, after `parent`; `None` goes on from the newest run. Results of the client
    /// are those of the calls that the newest run left to it, whatever `parent` says; where a run that was begun with
    /// such results did not end well, they may come again, and go on beside it.
    Ask {
        /// The message.
        ask: &'a Ask,
        /// The message it follows. With [`Ask::Again`]: the user message to answer again, or an answer whose question
        /// is meant.
        parent: Option<Parent>,
    },
    /// An earlier run of this conversation that did not end well goes on: from its text, or, without one, by answering
    /// its question again.
    Continue(RunId),
    /// A run that ended with a call to approve goes on, now that its user, or another one with the role, has decided.
    /// The decision is taken with the beginning: once.
    Decided {
        /// The call.
        approval: ApprovalId,
        /// The user's decision; a call that was granted already may still be turned down.
        decision: &'a Decision,
    },
}

/// A client's key of a request, and the digest of that request: `Idempotency-Key`.
#[derive(Debug, Clone, Copy)]
pub struct RequestKey<'a> {
    /// The client's key, unique for its owner for a day.
    pub key: &'a str,
    /// A digest of the request.
    pub digest: &'a [u8],
    /// Whether a request of the last two minutes with the same digest is meant too, whatever its key: the newest.
    pub or_lately: bool,
}

/// How a run has begun.
#[derive(Debug, Clone)]
pub enum Begun {
    /// It is the conversation's running one.
    Running(Box<RunStart>),
    /// It waits; its message is committed.
    Queued,
    /// The same request was made before: this is its run.
    Joined(Box<RunRecord>),
}

/// The state with which a run begins.
#[derive(Debug, Clone)]
pub struct RunStart {
    /// What it reads of what was said before it.
    pub past: Past,
    /// The message that was committed.
    pub message: UserMessage,
    /// Calls of an earlier run that were left to the client, again, and what it says came of them: committed behind the
    /// message, each with an entry in the trail.
    pub answered: Option<(AssistantMessage, Vec<ToolResult>)>,
    /// A call that its user has decided.
    pub decided: Option<DecidedCall>,
    /// The screen state: the request's own, else that of the run which it goes on with.
    pub context: Option<ScreenState>,
    /// Where the conversation is, as its request changed it.
    pub place: Option<Place>,
    /// What the turn before was about.
    pub recap: Option<Recap>,
    /// What was said and asked before an answer.
    pub clarification: Option<Clarification>,
    /// Whether its request changed the place.
    pub is_moved: bool,
    /// Whether its request changed the focus.
    pub is_refocused: bool,
    /// The use of the runs before it that its message began too.
    pub used: Used,
}

impl RunStart {
    /// The beginning with nothing but a message.
    pub fn of_message(message: UserMessage) -> Self {
        Self {
            past: Past::default(),
            message,
            answered: None,
            decided: None,
            context: None,
            place: None,
            recap: None,
            clarification: None,
            is_moved: false,
            is_refocused: false,
            used: Used::default(),
        }
    }
}

/// A call with whose decision a run begins.
#[derive(Debug, Clone, PartialEq)]
pub enum DecidedCall {
    /// It was approved: it is made before the first model call.
    Approved(ApprovedCall),
    /// It was turned down: readers get an event, and the message tells the model.
    TurnedDown(TurnedDown),
}

impl DecidedCall {
    /// Who had made the call, where that was not the model that answers.
    pub fn origin(&self) -> Option<&CallOrigin> {
        match self {
            Self::Approved(call) => call.origin.as_ref(),
            Self::TurnedDown(call) => call.origin.as_ref(),
        }
    }

    /// The plan that has waited for it.
    pub fn plan(&self) -> Option<PlanId> {
        self.origin().and_then(|origin| origin.plan)
    }

    /// The id of the call in the run that requested it.
    pub fn requested_as(&self) -> Option<&str> {
        match self {
            Self::Approved(call) => call.requested_as.as_deref(),
            Self::TurnedDown(call) => call.requested_as.as_deref(),
        }
    }
}

/// A call that was let through.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovedCall {
    /// The call as the model made it, under an id of ours.
    pub call: ToolCall,
    /// Its id in the run that requested it; `None` where that was not noted.
    pub requested_as: Option<String>,
    /// Who had made it, where that was not the model that answers.
    pub origin: Option<CallOrigin>,
    /// The digest of the call that its user saw: its tool, as that was, and its completed arguments.
    pub digest: String,
    /// The screen state of the run that requested it: arguments that are filled in from it are those that its user saw.
    pub context: Option<ScreenState>,
}

/// A call that was turned down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnedDown {
    /// Its id in the run that requested it; `None` where that was not noted.
    pub requested_as: Option<String>,
    /// The tool.
    pub tool: String,
    /// Who had made it, where that was not the model that answers.
    pub origin: Option<CallOrigin>,
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The conversation has a run already.
    #[error("the conversation has a run already")]
    Busy {
        /// That run.
        running: RunId,
    },
    /// As many runs wait as may.
    #[error("too many runs wait in this conversation")]
    QueueFull,
    /// As many runs live as may.
    #[error("this {} has too many runs at once", _0.name())]
    TooMany(Whose),
    /// As much is kept as may be.
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
    /// The key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyMismatch,
    /// The message to go on from is not in this conversation.
    #[error("the conversation has no such message")]
    NoSuchMessage,
    /// The run to continue is not in this conversation any more.
    #[error("there is no such run")]
    NoSuchRun,
    /// The newest run has left no such call to its client, or its result came before.
    #[error("no call of that id waits for its result")]
    NoSuchCall,
    /// There is nothing to answer again.
    #[error("the conversation has no user message to answer again")]
    NothingToRepeat,
    /// The run to continue is still live or has its answer.
    #[error("the run is {}, and only one that failed, was cancelled or interrupted can be continued", _0.name())]
    NotContinuable(RunState),
    /// The approval to decide is none of the owner's.
    #[error("there is no such approval")]
    NoSuchApproval,
    /// It was decided before.
    #[error("the approval has been decided already")]
    AlreadyDecided,
    /// Its time is over.
    #[error("the approval has expired")]
    ApprovalExpired,
    /// The store failed at the commit, and it is unknown whether the run has begun. The same request again would begin
    /// another one, since it has no key.
    #[error("the server cannot tell whether this has begun: look at the conversation before you send it again")]
    Unconfirmed(#[source] StoreError),
    /// Its own user may not let it through, whatever their roles: another user with this role has to do it first.
    #[error("somebody else with the role {0} has to approve this call first")]
    OwnRequest(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
