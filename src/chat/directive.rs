//! Directives: durable commands. A write that becomes one outlives its request; it is approved where it must be, run
//! now or at its time, tried again or not, and its row says what became of it.

use serde_json::{Map, Value};

use super::approval::Consent;
use super::caller::Owner;
use super::ids::{ConversationId, DirectiveId};
use super::signal::{FactName, Subject};

/// A directive, as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Directive {
    /// Its id, which is also the key by which a backend knows its attempts as one.
    pub id: DirectiveId,
    /// Who requested it.
    pub owner: Owner,
    /// Which command.
    pub name: FactName,
    /// Where it stands.
    pub status: DirectiveStatus,
    /// Why it was canceled, where it was.
    pub reason: Option<CancelReason>,
    /// Whose credential sends it.
    pub runs_as: RunsAs,
    /// The completed arguments of its tool.
    pub payload: Map<String, Value>,
    /// What it is about.
    pub subject: Option<Subject>,
    /// The roles of whoever requested it, then.
    pub roles: Vec<String>,
    /// What it belongs to: the run or the request.
    pub correlation: String,
    /// The call that made it.
    pub causation: Option<String>,
    /// The conversation of that call; it may be gone.
    pub conversation: Option<ConversationId>,
    /// The client's own key of its request.
    pub idempotency_key: Option<String>,
    /// Attempts that have begun.
    pub attempt: u32,
    /// How many there may be.
    pub max_attempts: u32,
    /// All times are in milliseconds since the Unix epoch, by the database's clock.
    pub created_at_ms: i64,
    /// When it changed last.
    pub updated_at_ms: i64,
    /// Not before; after a failed attempt, when the next one is due.
    pub due_at_ms: i64,
    /// When its first attempt began.
    pub started_at_ms: Option<i64>,
    /// When it was over.
    pub completed_at_ms: Option<i64>,
    /// The projection of the backend's answer.
    pub result: Option<Value>,
    /// The same in words, where its tool has some.
    pub text: Option<String>,
    /// Why it failed, or failed the last time.
    pub error: Option<DirectiveError>,
    /// Who has to let it through, and what they said.
    pub approval: Option<DirectiveApproval>,
}

/// Where a directive stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectiveStatus {
    /// Somebody has to let it through.
    PendingApproval,
    /// It waits for its turn, its time or its next attempt.
    Requested,
    /// An attempt is under way.
    Running,
    /// It is done.
    Succeeded,
    /// It will not be done.
    Canceled,
    /// It was not done; somebody may run it again.
    Failed,
    /// It was sent and nobody knows what became of it.
    Unknown,
}

impl DirectiveStatus {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::PendingApproval,
        Self::Requested,
        Self::Running,
        Self::Succeeded,
        Self::Canceled,
        Self::Failed,
        Self::Unknown,
    ];

    /// Its name on every wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::PendingApproval => "pending_approval",
            Self::Requested => "requested",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing more happens by itself.
    pub fn is_over(self) -> bool {
        match self {
            Self::PendingApproval | Self::Requested | Self::Running => false,
            Self::Succeeded | Self::Canceled | Self::Failed | Self::Unknown => true,
        }
    }
}

/// Why a directive will not be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// Its user or an operator canceled it.
    Canceled,
    /// It was turned down.
    Rejected,
    /// Nobody decided it in time.
    Expired,
    /// It needs the caller's token, and they are gone.
    CallerGone,
}

impl CancelReason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Canceled, Self::Rejected, Self::Expired, Self::CallerGone];

    /// Its name on every wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::CallerGone => "caller_gone",
        }
    }

    /// The reason of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// Whose credential sends a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsAs {
    /// The caller's token, while they are there.
    Caller,
    /// A service's own, whenever it is.
    Service,
}

impl RunsAs {
    /// Its name on every wire, in files and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Service => "service",
        }
    }

    /// The one of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Caller, Self::Service].into_iter().find(|runs_as| runs_as.name() == name)
    }
}

/// Why an attempt failed, or the directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectiveError {
    /// What kind of error.
    pub code: DirectiveErrorCode,
    /// The words that the model would read.
    pub message: String,
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectiveErrorCode {
    /// The backend refused it.
    BackendRefused,
    /// The backend could not be reached, or said that it cannot now.
    BackendUnavailable,
    /// No whole answer that can be read came in time.
    BackendTimeout,
    /// It was sent, and what became of it is unknown.
    OutcomeUnknown,
    /// It cannot be sent.
    NotSendable,
}

impl DirectiveErrorCode {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::BackendRefused, Self::BackendUnavailable, Self::BackendTimeout, Self::OutcomeUnknown, Self::NotSendable];

    /// Its name on every wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::BackendRefused => "backend_refused",
            Self::BackendUnavailable => "backend_unavailable",
            Self::BackendTimeout => "backend_timeout",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::NotSendable => "not_sendable",
        }
    }

    /// The code of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }
}

/// Who has to let a directive through, and what they said.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectiveApproval {
    /// The consent that it needs: never [`Consent::Auto`].
    pub consent: Consent,
    /// SHA-256, in hex, of what would be sent: a decision counts for this alone.
    pub digest: String,
    /// From when on it can no longer be decided, in milliseconds since the Unix epoch.
    pub expires_at_ms: i64,
    /// The decision.
    pub decided: Option<DirectiveDecision>,
}

/// A decision on a directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectiveDecision {
    /// The `sub` of who decided.
    pub by: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Their words.
    pub comment: Option<String>,
}

/// A directive as events tell of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectiveNotice {
    /// Which one.
    pub id: DirectiveId,
    /// Its command.
    pub name: String,
    /// Where it stands.
    pub status: DirectiveStatus,
    /// Who has to let it through, while it waits for that.
    pub asks: Option<DirectiveAsks>,
}

/// Who has to let a directive through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectiveAsks {
    /// See [`DirectiveApproval::digest`].
    pub digest: String,
    /// See [`DirectiveApproval::consent`].
    pub consent: Consent,
}

impl Directive {
    /// What events tell of it.
    pub fn notice(&self) -> DirectiveNotice {
        let waits = self.approval.as_ref().filter(|_| self.status == DirectiveStatus::PendingApproval);
        let asks =
            waits.map(|approval| DirectiveAsks { digest: approval.digest.clone(), consent: approval.consent.clone() });
        DirectiveNotice { id: self.id, name: self.name.as_str().to_owned(), status: self.status, asks }
    }
}
