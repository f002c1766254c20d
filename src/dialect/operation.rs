//! Operations as JSON, alike on all wires that tell of them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::chat::operation::Operation;
use crate::chat::origin::CallOrigin;

/// What a call is about to do to a thing that its user knows, or has done.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Operation)]
pub struct OperationBody<'a> {
    /// The call.
    tool_use_id: &'a str,
    /// `create`, `read`, `update`, `delete`, `list` or `search`.
    action: &'static str,
    /// The kind of thing, as the tool's file says.
    entity_type: &'a str,
    /// Its id, where it is about one and that is known.
    entity_id: Option<&'a str>,
    /// What users call it, or the words that are looked for; never an id. At most 120 characters.
    entity_name: &'a str,
    /// `start`, then `success` or `error`.
    status: &'static str,
    /// Who makes the call, where that is a step of a plan or a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Value>)]
    origin: Option<CallOrigin>,
}

impl<'a> OperationBody<'a> {
    /// The body of `operation`, of the model that answers unless `origin` says otherwise.
    pub fn new(operation: &'a Operation, origin: Option<CallOrigin>) -> Self {
        let Operation { call, action, kind, id, name, status } = operation;
        Self {
            tool_use_id: call.as_str(),
            action: action.name(),
            entity_type: kind,
            entity_id: id.as_deref(),
            entity_name: name,
            status: status.name(),
            origin,
        }
    }
}
