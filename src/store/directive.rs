//! The rows of directives.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::record_error::RecordError;
use super::scope::{Scope, original};
use crate::chat::approval::Consent;
use crate::chat::caller::Owner;
use crate::chat::directive::{
    CancelReason, Directive, DirectiveApproval, DirectiveDecision, DirectiveError, DirectiveErrorCode, DirectiveStatus,
    RunsAs,
};
use crate::chat::ids::{ConversationId, DirectiveId};
use crate::chat::signal::{FactName, Subject};

/// The columns of a [`DirectiveRow`].
macro_rules! directive_columns {
    () => {
        "id, tenant, user_id, name, status, reason, runs_as, subject_type, subject_id, correlation, causation, attempt,
             max_attempts, in_doubt, token, sent_at, due_at, digest, expires_at, decided_by, decided_at, created_at,
             updated_at, started_at, completed_at, conversation, body"
    };
}
pub(in crate::store) use directive_columns;

/// A directive's row.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct DirectiveRow {
    id: String,
    tenant: String,
    user_id: String,
    name: String,
    status: String,
    reason: Option<String>,
    runs_as: String,
    subject_type: Option<String>,
    subject_id: Option<String>,
    correlation: String,
    causation: Option<String>,
    attempt: i64,
    max_attempts: i64,
    pub(super) in_doubt: i64,
    pub(super) token: i64,
    pub(super) sent_at: Option<i64>,
    due_at: i64,
    digest: Option<String>,
    expires_at: Option<i64>,
    decided_by: Option<String>,
    decided_at: Option<i64>,
    created_at: i64,
    updated_at: i64,
    started_at: Option<i64>,
    completed_at: Option<i64>,
    conversation: Option<String>,
    body: String,
}

/// What no statement looks for.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Body {
    payload: Map<String, Value>,
    roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    consent: Option<ConsentBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// A consent; without a role it is the requester's.
#[derive(Debug, Serialize, Deserialize)]
struct ConsentBody {
    role: Option<String>,
    #[serde(default)]
    not_requester: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct ErrorBody {
    code: String,
    message: String,
}

/// The column `body` of a directive.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_body(directive: &Directive) -> Result<String, RecordError> {
    let approval = directive.approval.as_ref();
    let consent = approval.map(|approval| match &approval.consent {
        Consent::Role { role, not_requester } => {
            ConsentBody { role: Some(role.clone()), not_requester: *not_requester }
        }
        Consent::User | Consent::Auto => ConsentBody { role: None, not_requester: false },
    });
    let body = Body {
        payload: directive.payload.clone(),
        roles: directive.roles.clone(),
        key: directive.idempotency_key.clone(),
        consent,
        comment: approval.and_then(|approval| approval.decided.as_ref()?.comment.clone()),
        result: directive.result.clone(),
        text: directive.text.clone(),
        error: directive
            .error
            .as_ref()
            .map(|error| ErrorBody { code: error.code.name().to_owned(), message: error.message.clone() }),
    };
    serde_json::to_string(&body).map_err(RecordError::json("directive"))
}

impl DirectiveRow {
    /// Its id, as it stands there.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Its owner, for statements.
    pub(super) fn scope(&self) -> Scope {
        Scope::of_row(self.tenant.clone(), self.user_id.clone())
    }

    /// The directive of this row.
    ///
    /// # Errors
    /// When something in it is not what we write.
    pub(super) fn into_directive(self) -> Result<Directive, RecordError> {
        let plain = |text: String| original(&text).into_owned();
        let Body { payload, roles, key, consent, comment, result, text, error } =
            serde_json::from_str(&self.body).map_err(RecordError::json("directive"))?;
        let error = match error {
            None => None,
            Some(ErrorBody { code, message }) => {
                Some(DirectiveError { code: DirectiveErrorCode::parse(&code).ok_or(RecordError::Directive)?, message })
            }
        };
        let approval = match (consent, self.digest, self.expires_at) {
            (Some(ConsentBody { role, not_requester }), Some(digest), Some(expires_at_ms)) => {
                let consent = role.map_or(Consent::User, |role| Consent::Role { role, not_requester });
                let decided = self.decided_by.zip(self.decided_at);
                let decided = decided.map(|(by, at_ms)| DirectiveDecision { by: plain(by), at_ms, comment });
                Some(DirectiveApproval { consent, digest, expires_at_ms, decided })
            }
            (_, _, _) => None,
        };
        let subject = self.subject_type.zip(self.subject_id);
        Ok(Directive {
            id: DirectiveId::parse(&self.id)?,
            owner: Owner { tenant: plain(self.tenant), user: plain(self.user_id) },
            name: FactName::parse(&self.name).map_err(|_| RecordError::Directive)?,
            status: DirectiveStatus::parse(&self.status).ok_or(RecordError::Directive)?,
            reason: self.reason.map(|name| CancelReason::parse(&name).ok_or(RecordError::Directive)).transpose()?,
            runs_as: RunsAs::parse(&self.runs_as).ok_or(RecordError::Directive)?,
            payload,
            subject: subject.map(|(kind, id)| Subject { kind: plain(kind), id: plain(id) }),
            roles,
            correlation: plain(self.correlation),
            causation: self.causation.map(plain),
            conversation: self.conversation.as_deref().map(ConversationId::parse).transpose()?,
            idempotency_key: key,
            attempt: u32::try_from(self.attempt).unwrap_or(u32::MAX),
            max_attempts: u32::try_from(self.max_attempts).unwrap_or(u32::MAX),
            created_at_ms: self.created_at,
            updated_at_ms: self.updated_at,
            due_at_ms: self.due_at,
            started_at_ms: self.started_at,
            completed_at_ms: self.completed_at,
            result,
            text,
            error,
            approval,
        })
    }
}
