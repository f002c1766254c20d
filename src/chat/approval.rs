//! Approvals: a call that a model wants to make and that only a person can let through. The model never decides one.

use serde_json::{Map, Value, json};

use super::artifact::Artifact;
use super::ids::{ApprovalId, ConversationId, RunId};
use super::origin::CallOrigin;

/// The consent that a call needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Consent {
    /// None: the call runs when the model makes it.
    #[default]
    Auto,
    /// The run's own user.
    User,
    /// That of a user of the same tenant whose token lists this role.
    Role {
        /// The role.
        role: String,
        /// Whether it has to be another one than the run's own user, whatever their token lists.
        not_requester: bool,
    },
}

impl Consent {
    /// The consent as wires write it: `user` or `role`, the role, and whether its own user may not.
    pub fn wire_fields(&self) -> (&'static str, Option<&str>, bool) {
        match self {
            Self::Auto | Self::User => ("user", None, false),
            Self::Role { role, not_requester } => ("role", Some(role), *not_requester),
        }
    }
}

/// A call that waits for a decision, complete: nothing of it comes from a later request.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The run that ended with it.
    pub run: RunId,
    /// That run's conversation.
    pub conversation: ConversationId,
    /// The call's id in that run; `None` of those that were kept before this was noted.
    pub call: Option<String>,
    /// Who has made it, where that is not the model that answers.
    pub origin: Option<CallOrigin>,
    /// The tool.
    pub tool: String,
    /// The arguments as a person sees them and as they are sent: with all that is filled in.
    pub arguments: Map<String, Value>,
    /// The arguments as the model gave them.
    pub input: Map<String, Value>,
    /// SHA-256 of the tool as it was at the request, in hex; `None` of those that were kept before this was noted.
    pub definition: Option<String>,
    /// SHA-256 of tool, `definition` and `arguments`, in hex: a decision counts for this call only.
    pub digest: String,
    /// The consent that it needs.
    pub consent: Consent,
    /// When it was requested, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// From when on it can no longer be decided.
    pub expires_at_ms: i64,
}

/// The name under which wires offer to let a call through.
pub const APPROVE_CALL: &str = "approve_call";

/// The name under which wires offer to turn a call down.
pub const REJECT_CALL: &str = "reject_call";

/// The names under which wires offer a decision. No model writes an action of these names.
pub const DECIDING_ACTIONS: [&str; 2] = [APPROVE_CALL, REJECT_CALL];

/// The artifact that shows a call to approve.
pub const APPROVAL_REQUEST: &str = "approval_request";

impl Approval {
    /// The call as an artifact, for whoever decides.
    pub fn artifact(&self) -> Artifact {
        let (needs, role, not_requester) = self.consent.wire_fields();
        let mut payload = json!({
            "approval_id": self.id.to_string(),
            "tool": self.tool,
            "arguments": self.arguments,
            "digest": self.digest,
            "needs": needs,
            "expires_at_ms": self.expires_at_ms,
        });
        if let Some(role) = role {
            payload["role"] = json!(role);
        }
        if not_requester {
            payload["not_requester"] = json!(true);
        }
        if let Some(call) = &self.call {
            payload["tool_use_id"] = json!(call);
        }
        if let Some(origin) = &self.origin {
            payload["origin"] = json!(origin);
        }
        Artifact { kind: APPROVAL_REQUEST.into(), payload }
    }
}

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// It waits.
    Pending,
    /// A user with the role has let it through; its run goes on when its own user decides so.
    Granted,
    /// It was let through, and a run has made the call.
    Approved,
    /// It was turned down.
    Rejected,
}

impl ApprovalState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Granted, Self::Approved, Self::Rejected];

    /// Its name on every wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Granted => "granted",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// Where an approval stands when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: ApprovalState,
    /// Whether its time is over, by the database's clock.
    pub is_over: bool,
}

impl Standing {
    /// Whether it is not decided, and cannot be decided any more.
    pub fn has_expired(self) -> bool {
        self.is_over && matches!(self.state, ApprovalState::Pending | ApprovalState::Granted)
    }

    /// Its name on every wire.
    pub fn name(self) -> &'static str {
        if self.has_expired() { "expired" } else { self.state.name() }
    }
}

/// Which of the calls that wait a request may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionRule {
    /// Whichever its caller may decide.
    Any,
    /// Those of its conversation. A decision that comes too late is passed over while others are left, for clients that tell
    /// all that they have, of which not all is new.
    Conversation,
    /// All of those of its conversation at once, or none. Nothing else begins there before.
    All,
}

/// A decision on a call that waits, as a client tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deciding {
    /// The call.
    pub approval: ApprovalId,
    /// The decision on it.
    pub decision: Decision,
    /// Whether its user only went away, which turns down what waits and is nothing to what does not.
    pub is_farewell: bool,
    /// The call that its user saw.
    pub seen: Seen,
}

/// The call that the user saw who decides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Its protocol does not say.
    Unknown,
    /// That of this digest; `None` where it came with none.
    Digest(Option<String>),
}

/// A person's decision on an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the call may be made.
    pub approve: bool,
    /// Why, in their words; the model reads it.
    pub comment: Option<String>,
}
