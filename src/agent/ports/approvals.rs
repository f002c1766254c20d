//! The approvals' port: calls that wait for a person. They are written when their run ends
//! ([`super::store::RunEnd`]) and decided when a run goes on with them ([`super::store::Question::Decided`]).

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::store_error::StoreError;
use crate::chat::approval::{Approval, Decision, Standing};
use crate::chat::caller::{Caller, Owner};
use crate::chat::digest::sha256_hex;
use crate::chat::ids::{ApprovalId, ConversationId};
use crate::chat::tool::ToolDef;

/// Reads approvals, and keeps the decision of a user with a role on another one's.
#[async_trait]
pub trait ApprovalStore: Send + Sync {
    /// The database's time in milliseconds since the Unix epoch. A call that is held begins to wait at this time: replicas
    /// need not agree about the clock, and whether its time is over is decided there.
    ///
    /// # Errors
    /// When the database did not tell it.
    async fn time(&self) -> Result<i64, StoreError>;

    /// The calls that wait for `caller`: their own, and those of their tenant that ask for one of their roles. Newest
    /// first, 100 at most; none that has expired.
    ///
    /// # Errors
    /// When they could not be read.
    async fn waiting(&self, caller: &Caller) -> Result<Vec<ApprovalView>, StoreError>;

    /// The owner's own calls in that conversation that wait, in the order in which they were requested, 100 at most;
    /// none that has expired.
    ///
    /// # Errors
    /// When they could not be read.
    async fn waiting_in(&self, owner: &Owner, conversation: &ConversationId) -> Result<Vec<ApprovalView>, StoreError>;

    /// The approval of that id, whatever its state, if `caller` is its owner or has the role it asks for.
    ///
    /// # Errors
    /// When it could not be read.
    async fn approval(&self, caller: &Caller, id: ApprovalId) -> Result<Option<ApprovalView>, StoreError>;

    /// Keeps the decision of a user who has the role and is not its owner: a grant lets the owner go on with it, a
    /// refusal ends it.
    ///
    /// # Errors
    /// See [`GrantError`].
    async fn grant(&self, caller: &Caller, id: ApprovalId, decision: &Decision) -> Result<ApprovalView, GrantError>;
}

/// Says what a call that waits is about.
#[async_trait]
pub trait ApprovalTitles: Send + Sync {
    /// The title of the call for `caller`, with whose token it is looked up; `None` where its tool has none, or it cannot be
    /// made. At most 200 characters, on one line.
    async fn title(&self, caller: &Caller, approval: &Approval) -> Option<String>;
}

/// An approval as those see it who may decide it.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalView {
    /// The owner of its run.
    pub owner: Owner,
    /// The approval.
    pub approval: Approval,
    /// Where it stands.
    pub standing: Standing,
}

/// Why another user's approval could not be decided.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// No such approval that the caller may decide.
    #[error("no such approval")]
    NotFound,
    /// It is decided.
    #[error("the approval has been decided already")]
    AlreadyDecided,
    /// Its time is over.
    #[error("the approval has expired")]
    Expired,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// SHA-256, in hex, of a call as a person lets it through: the tool's name, its definition ([`definition_digest`]), and
/// the arguments as compact JSON in their order.
pub fn call_digest(tool: &str, definition: &str, arguments: &Map<String, Value>) -> String {
    sha256_hex(json!([tool, definition, arguments]).to_string().as_bytes())
}

/// SHA-256, in hex, of a tool: its definition as listed for the model, and its `source`
/// ([`super::tools::ToolExecutor::source`]).
pub fn definition_digest(def: Option<&ToolDef>, source: &str) -> String {
    let listed = def.map(|ToolDef { name, description, input_schema }| json!([name, description, input_schema]));
    sha256_hex(json!([listed, source]).to_string().as_bytes())
}
