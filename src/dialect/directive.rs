//! Directives as JSON, alike on all wires that tell of them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::chat::directive::{DirectiveAsks, DirectiveNotice};

/// A directive that a call has requested: when it is kept, and when it is in another state while that call waits.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = DirectiveNotice)]
pub struct DirectiveBody<'a> {
    /// The directive.
    id: String,
    /// Its name, such as `forum.thread.create`.
    name: &'a str,
    /// `pending_approval`, `requested`, `running`, `succeeded`, `failed`, `canceled` or `unknown`.
    status: &'static str,
    /// Who has to let it through, while it waits for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    approval: Option<AsksBody<'a>>,
}

/// Who has to let a directive through.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = DirectiveAsks)]
struct AsksBody<'a> {
    /// Of what would be sent: a decision counts for this alone.
    digest: &'a str,
    /// `user` or `role`.
    needs: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    role: Option<&'a str>,
    /// Whether it has to be somebody else than its requester.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    not_requester: bool,
}

impl<'a> DirectiveBody<'a> {
    /// The body of `notice`.
    pub fn from_notice(notice: &'a DirectiveNotice) -> Self {
        let approval = notice.asks.as_ref().map(|DirectiveAsks { digest, consent }| {
            let (needs, role, not_requester) = consent.wire_fields();
            AsksBody { digest, needs, role, not_requester }
        });
        Self { id: notice.id.to_string(), name: &notice.name, status: notice.status.name(), approval }
    }
}
