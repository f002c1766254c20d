//! Directives as JSON.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::chat::day::rfc3339 as time;
use crate::chat::directive::{Directive, DirectiveApproval, DirectiveError};
use crate::chat::signal::Subject;

/// A directive as it is kept; what is not there is null.
#[derive(Serialize, ToSchema)]
#[schema(as = Directive)]
pub(in crate::http) struct DirectiveBody {
    id: String,
    name: String,
    /// `pending_approval`, `requested`, `running`, `succeeded`, `canceled`, `failed` or `unknown`.
    status: &'static str,
    /// Of one that is canceled: `canceled`, `rejected`, `expired` or `caller_gone`.
    reason: Option<&'static str>,
    created_at: String,
    updated_at: String,
    /// Not before.
    scheduled_at: String,
    started_at: Option<String>,
    completed_at: Option<String>,
    /// Attempts that have begun.
    attempt: u32,
    max_attempts: u32,
    subject: Option<SubjectBody>,
    /// The completed arguments.
    payload: Map<String, Value>,
    /// What its tool's file takes of the backend's answer.
    result: Option<Value>,
    error: Option<ErrorBody>,
    requested_by: ActorBody,
    requested_roles: Vec<String>,
    approval: Option<ApprovalBody>,
    correlation_id: String,
    causation_id: Option<String>,
    /// `caller` or `service`.
    runs_as: &'static str,
    idempotency_key: Option<String>,
}

/// What a directive or a signal is about.
#[derive(Serialize, ToSchema)]
#[schema(as = Subject)]
pub(in crate::http) struct SubjectBody {
    r#type: String,
    id: String,
}

/// Who did it.
#[derive(Serialize, ToSchema)]
#[schema(as = Actor)]
pub(in crate::http) struct ActorBody {
    /// `user`.
    r#type: &'static str,
    /// The `sub` of their token.
    id: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DirectiveError)]
struct ErrorBody {
    /// `backend_refused`, `backend_unavailable`, `backend_timeout`, `outcome_unknown` or `not_sendable`.
    code: &'static str,
    message: String,
}

/// Who has to let it through, and what they said.
#[derive(Serialize, ToSchema)]
#[schema(as = DirectiveApproval)]
pub(in crate::http) struct ApprovalBody {
    /// `user` or `role`.
    needs: &'static str,
    role: Option<String>,
    /// Whether it has to be somebody else than its requester.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_requester: bool,
    /// Of what would be sent.
    digest: String,
    expires_at: String,
    decided_by: Option<String>,
    decided_at: Option<String>,
    comment: Option<String>,
}

impl SubjectBody {
    pub(in crate::http) fn from_subject(Subject { kind, id }: Subject) -> Self {
        Self { r#type: kind, id }
    }
}

impl ActorBody {
    pub(in crate::http) fn user(id: String) -> Self {
        Self { r#type: "user", id }
    }
}

impl ApprovalBody {
    fn from_approval(approval: DirectiveApproval) -> Self {
        let (needs, role, not_requester) = approval.consent.wire_fields();
        let role = role.map(str::to_owned);
        let decided = approval.decided;
        Self {
            needs,
            role,
            not_requester,
            digest: approval.digest,
            expires_at: time(approval.expires_at_ms),
            decided_at: decided.as_ref().map(|decided| time(decided.at_ms)),
            comment: decided.as_ref().and_then(|decided| decided.comment.clone()),
            decided_by: decided.map(|decided| decided.by),
        }
    }
}

impl DirectiveBody {
    /// The body of a directive.
    pub(in crate::http) fn from_directive(directive: Directive) -> Self {
        Self {
            id: directive.id.to_string(),
            name: directive.name.as_str().to_owned(),
            status: directive.status.name(),
            reason: directive.reason.map(|reason| reason.name()),
            created_at: time(directive.created_at_ms),
            updated_at: time(directive.updated_at_ms),
            scheduled_at: time(directive.due_at_ms),
            started_at: directive.started_at_ms.map(time),
            completed_at: directive.completed_at_ms.map(time),
            attempt: directive.attempt,
            max_attempts: directive.max_attempts,
            subject: directive.subject.map(SubjectBody::from_subject),
            payload: directive.payload,
            result: directive.result,
            error: directive.error.map(|DirectiveError { code, message }| ErrorBody { code: code.name(), message }),
            requested_by: ActorBody::user(directive.owner.user),
            requested_roles: directive.roles,
            approval: directive.approval.map(ApprovalBody::from_approval),
            correlation_id: directive.correlation,
            causation_id: directive.causation,
            runs_as: directive.runs_as.name(),
            idempotency_key: directive.idempotency_key,
        }
    }
}
