//! The ports of directives: commands that outlive their request. Tools and clients request them
//! ([`DirectiveDesk`]), the store keeps them ([`DirectiveStore`], and [`super::directive_queue`]), and whoever knows the commands
//! prepares and sends them ([`Commands`]).
//!
//! **Invariant:** one transition is one transaction with its signal. Whoever sends holds a [`Fence`](super::directive_queue::Fence) of the store, and
//! has noted before that the bytes go out.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::directive_queue::Attempt;
use super::pages::{Cursor, Page};
use super::store_error::StoreError;
use crate::chat::approval::Consent;
use crate::chat::caller::Caller;
use crate::chat::directive::{Directive, DirectiveNotice, DirectiveStatus, RunsAs};
use crate::chat::ids::{ConversationId, DirectiveId, ToolCallId};
use crate::chat::signal::{FactName, Subject};

/// What users and models may do with directives.
#[async_trait]
pub trait DirectiveDesk: Send + Sync {
    /// Keeps a directive of a prepared command, or finds the one that this request is. What runs with its caller's
    /// token begins at once.
    ///
    /// # Errors
    /// See [`AskError`].
    async fn request(&self, wanted: Wanted<'_>, caller: &Caller) -> Result<Requested, AskError>;

    /// The directive when it is over, or waits for a person, or `patience` is; `told` hears of each change until then.
    ///
    /// # Errors
    /// When it could not be read.
    async fn outcome(
        &self,
        caller: &Caller,
        id: DirectiveId,
        patience: Duration,
        told: &(dyn Fn(DirectiveNotice) + Send + Sync),
    ) -> Result<Option<Directive>, StoreError>;

    /// Prepares a command for a client's request and keeps it.
    ///
    /// # Errors
    /// See [`AskError`].
    async fn ask(&self, asked: Asked<'_>, caller: &Caller) -> Result<Requested, AskError>;

    /// Lets a directive that waits for a person through, or turns it down.
    ///
    /// # Errors
    /// See [`ChangeError`].
    async fn decide(&self, caller: &Caller, id: DirectiveId, decision: Decided) -> Result<Directive, ChangeError>;

    /// Cancels one that waits, or has a failed one run again.
    ///
    /// # Errors
    /// See [`ChangeError`].
    async fn change(&self, caller: &Caller, id: DirectiveId, change: Change) -> Result<Directive, ChangeError>;
}

/// Reads directives.
#[async_trait]
pub trait DirectiveRecords: Send + Sync {
    /// The directive, where `caller` may see it: their own, one that asks for one of their roles, or any of their
    /// tenant with `of_tenant`.
    ///
    /// # Errors
    /// When it could not be read.
    async fn directive(
        &self,
        caller: &Caller,
        id: DirectiveId,
        of_tenant: bool,
    ) -> Result<Option<Directive>, StoreError>;

    /// A page of directives, newest first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn directives(&self, caller: &Caller, filter: &DirectiveFilter) -> Result<Page<Directive>, StoreError>;
}

/// Keeps directives.
#[async_trait]
pub trait DirectiveStore: DirectiveRecords {
    /// Keeps a new directive, or finds the one of the same key, or the live one of the same intent.
    ///
    /// # Errors
    /// See [`RequestError`].
    async fn keep_directive(&self, new: NewDirective<'_>) -> Result<Requested, RequestError>;

    /// Decides one that waits for a person.
    ///
    /// # Errors
    /// See [`ChangeError`].
    async fn decide_directive(
        &self,
        caller: &Caller,
        id: DirectiveId,
        access: Access,
        decision: &Decided,
    ) -> Result<Directive, ChangeError>;

    /// Cancels one, or has it run again.
    ///
    /// # Errors
    /// See [`ChangeError`].
    async fn change_directive(
        &self,
        caller: &Caller,
        id: DirectiveId,
        access: Access,
        change: Change,
    ) -> Result<Directive, ChangeError>;
}

/// Knows the commands.
#[async_trait]
pub trait Commands: Send + Sync {
    /// The names of all commands.
    fn names(&self) -> &[String];

    /// The command of that name.
    fn rule(&self, name: &str) -> Option<&CommandRule>;

    /// A command with a client's payload, checked and completed.
    ///
    /// # Errors
    /// The mistakes in it, in words.
    async fn prepare(&self, name: &str, payload: &Map<String, Value>, caller: &Caller) -> Result<Prepared, String>;

    /// Sends one attempt. `caller` is there where it runs with their token.
    async fn send(&self, directive: &Directive, caller: Option<&Caller>) -> Attempt;
}

/// What the operator's files say of a command, beside its tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRule {
    /// Its name.
    pub name: FactName,
    /// The tool.
    pub tool: String,
    /// One of them is needed to request it; empty lets everybody.
    pub roles: Vec<String>,
    /// Whose credential sends it.
    pub runs_as: RunsAs,
    /// The consent that it needs.
    pub consent: Consent,
    /// Whether the backend knows a repeated attempt by its key.
    pub idempotent: bool,
    /// Attempts at most.
    pub max_attempts: u32,
    /// It is not sent sooner after its request.
    pub delay: Duration,
}

/// A command that is ready to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The completed arguments.
    pub payload: Map<String, Value>,
    /// What it is about.
    pub subject: Option<Subject>,
    /// Its intent key: another request of the same one is this one, as long as it is live.
    pub intent: Option<String>,
    /// SHA-256, in hex, of what would be sent.
    pub digest: String,
}

/// A request of a directive.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The command.
    pub name: &'a str,
    /// What it is asked to do.
    pub prepared: Prepared,
    /// What it belongs to.
    pub correlation: String,
    /// The call of a model that it is, and the conversation.
    pub call: Option<(&'a ToolCallId, &'a ConversationId)>,
    /// Whether a person has let it through already.
    pub is_approved: bool,
    /// The key of the request.
    pub key: Option<RequestKey>,
    /// Not before this time, in milliseconds since the Unix epoch.
    pub scheduled_at_ms: Option<i64>,
}

/// The key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestKey {
    /// A client's own, with the digest of what it came with: another request does not have the same key.
    Client {
        /// The key.
        key: String,
        /// SHA-256, in hex, of what was asked.
        asked: String,
    },
    /// That of a model's call.
    Call(String),
}

impl RequestKey {
    /// The key by which it is found; one kind is never another.
    pub fn as_kept(&self) -> String {
        match self {
            Self::Client { key, .. } => format!("client {key}"),
            Self::Call(key) => format!("call {key}"),
        }
    }

    /// The digest of what it came with; a call is its key.
    pub fn asked(&self) -> &str {
        match self {
            Self::Client { asked, .. } => asked,
            Self::Call(_) => "",
        }
    }
}

/// A client's request of a directive.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The command.
    pub name: &'a str,
    /// The arguments of its tool.
    pub payload: &'a Map<String, Value>,
    /// What it belongs to.
    pub correlation: String,
    /// The client's key.
    pub key: Option<String>,
    /// Not before this time, in milliseconds since the Unix epoch.
    pub scheduled_at_ms: Option<i64>,
}

/// A directive that was requested.
#[derive(Debug, Clone, PartialEq)]
pub struct Requested {
    /// The directive.
    pub directive: Directive,
    /// Whether this request has made it.
    pub created: bool,
}

/// Why a directive was not kept.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The same key came with another request.
    #[error("this idempotency key was used for another request")]
    KeyMismatch,
    /// As many are live as may be.
    #[error("too many directives of this {0} are not over yet")]
    TooMany(&'static str),
    /// It is larger than may be.
    #[error("the arguments are larger than {0} bytes, which a directive may have")]
    TooLarge(usize),
    /// An argument is called like a secret.
    #[error("{0} is the name of a secret, which a directive must not keep: refer to it by an id")]
    Secret(String),
    /// Its command cannot run at another time.
    #[error("{0}")]
    BadTime(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a client's request was refused.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is no such command.
    #[error("there is no such directive")]
    NoCommand,
    /// The caller has none of its roles.
    #[error("none of your roles may request this")]
    RoleRequired,
    /// The payload does not fit.
    #[error("{0}")]
    BadPayload(String),
    /// Another user would send it with their own token.
    #[error(
        "this runs with its caller's token and needs the approval of another user: only an assistant can request it"
    )]
    ForAnother,
    /// It was not kept.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// The roles that see and do more than what is their own.
#[derive(Debug, Clone, Default)]
pub struct DirectiveRoles {
    /// They see all of their tenant.
    pub readers: Vec<String>,
    /// They do, and cancel and run again.
    pub operators: Vec<String>,
}

impl DirectiveRoles {
    /// What `caller` may see and do.
    pub fn access(&self, caller: &Caller) -> Access {
        let has = |roles: &[String]| roles.iter().any(|role| caller.has_role(role));
        let operates = has(&self.operators);
        Access { reads: operates || has(&self.readers), operates }
    }
}

/// What the caller may see and do beside what is their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// All of the tenant.
    pub reads: bool,
    /// Canceling and running again, too.
    pub operates: bool,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Whether it may be done.
    pub approve: bool,
    /// Why.
    pub comment: Option<String>,
    /// The digest of what its user saw.
    pub digest: Option<String>,
}

/// A change that somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It shall not be done.
    Cancel,
    /// It shall be tried once more.
    Rerun,
}

/// Why a directive was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is none that the caller can see.
    #[error("there is no such directive")]
    NotFound,
    /// The caller sees it and may not do this.
    #[error("this needs a role that you do not have")]
    RoleRequired,
    /// It does not wait for a decision.
    #[error("the directive does not wait for a decision")]
    AlreadyDecided,
    /// It is not what the caller saw.
    #[error("the digest is not that of the waiting directive; read it again before you decide")]
    DigestMismatch,
    /// Its time is over.
    #[error("the directive was not decided in time")]
    Expired,
    /// An attempt is under way.
    #[error("the directive is running")]
    Running,
    /// It has neither failed, nor is its outcome unknown.
    #[error("only a directive that failed, or whose outcome is unknown, can run again")]
    NotRerunnable,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A new directive for the store.
#[derive(Debug)]
pub struct NewDirective<'a> {
    /// Who requests it.
    pub caller: &'a Caller,
    /// What.
    pub wanted: Wanted<'a>,
    /// Its command.
    pub rule: &'a CommandRule,
    /// How long it may wait for a person, in milliseconds.
    pub approval_ms: i64,
    /// How many may be live.
    pub limits: LiveLimits,
}

/// How many directives may be live; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveLimits {
    /// Of a user.
    pub per_user: u32,
    /// Of a tenant.
    pub per_tenant: u32,
}

/// Which directives are listed.
#[derive(Debug, Clone, Default)]
pub struct DirectiveFilter {
    /// In this status.
    pub status: Option<DirectiveStatus>,
    /// Of this command.
    pub name: Option<String>,
    /// About a thing of this kind.
    pub subject_kind: Option<String>,
    /// About the thing of this id.
    pub subject_id: Option<String>,
    /// That belong to this.
    pub correlation: Option<String>,
    /// All of the tenant.
    pub of_tenant: bool,
    /// Oldest first.
    pub ascending: bool,
    /// At most so many.
    pub limit: u32,
    /// Behind this one.
    pub after: Option<Cursor>,
}
