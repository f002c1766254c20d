//! `/v1/agent/previews/{preview_id}`: a change that waits for its user, whole, and `…/decision`: the user lets it through, or not.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::code::Code;
use super::problem::Problem;
use crate::agent::ports::previews::{ClaimError, DecisionError, WaitingPreview};
use crate::bounded::json;
use crate::chat::day::rfc3339 as time;
use crate::chat::ids::PreviewId;
use crate::chat::preview::{Change, Decided, Preview, Verdict};

/// The longest comment, in bytes.
pub(super) const COMMENT_BYTES: usize = 4096;

/// A preview that waits, with what it changes as that was when the preview was made.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingPreview)]
pub(super) struct WaitingBody {
    preview_id: String,
    state: &'static str,
    conversation_id: String,
    what: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_id: Option<String>,
    body: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<Value>,
    /// Whether a save was sent whose answer did not come: it may be done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    may_be_saved: bool,
    created_at: String,
    expires_at: String,
}

/// 200 with a preview that waits; 404 for another's, for one that is decided, superseded or expired, and for one of a profile that
/// the caller's roles do not let them use.
#[utoipa::path(
    get,
    path = "/v1/agent/previews/{preview_id}",
    operation_id = "getPreview",
    tag = "Previews",
    summary = "Look at a preview",
    description = "A change that waits for its user, whole.",
    params(
        ("preview_id" = String, Path, description = "The preview."),
    ),
    responses(
        (status = 200, description = "The preview.", body = WaitingBody),
        (status = 404, description = "`not_found`: there is no such preview, or it is another's."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    preview_id: Result<Path<String>, PathRejection>,
) -> Result<Json<WaitingBody>, Problem> {
    let Path(preview_id) = preview_id.map_err(|_| no_such_preview())?;
    let id = PreviewId::parse(&preview_id).map_err(|_| no_such_preview())?;
    let waiting = services.previews.waiting(&caller, Some(id)).await?;
    let waiting = waiting.into_iter().next().ok_or_else(no_such_preview)?;
    Ok(Json(WaitingBody::from_waiting(waiting)))
}

impl WaitingBody {
    fn from_waiting(waiting: WaitingPreview) -> Self {
        let WaitingPreview { preview, origin: _, may_be_saved, created_at_ms, expires_at_ms } = waiting;
        let Preview { id, conversation, change } = preview;
        let Change { what, existing_id, name, save: _, body, current } = change;
        Self {
            preview_id: id.to_string(),
            state: "waiting",
            conversation_id: conversation.to_string(),
            what,
            name,
            existing_id,
            body,
            current,
            may_be_saved,
            created_at: time(created_at_ms),
            expires_at: time(expires_at_ms),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[schema(as = PreviewDecision)]
pub(super) struct Decision {
    decision: Word,
    comment: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = PreviewWord)]
pub(super) enum Word {
    Accept,
    Reject,
}

/// What has been decided, for the client.
#[derive(Serialize, ToSchema)]
#[schema(as = PreviewDecided)]
pub(super) struct DecidedBody {
    preview_id: String,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_id: Option<String>,
}

/// 200 when done; 403 without the profile's role, 404 for another's preview, 409 when it is decided or superseded or what it changes
/// has changed, 410 when its time is over, 422 for a bad body, 502 when the backend refused.
#[utoipa::path(
    post,
    path = "/v1/agent/previews/{preview_id}/decision",
    operation_id = "decidePreview",
    tag = "Previews",
    summary = "Decide a preview",
    description = "An accepted change is saved through the backend with this request's token, if what it changes is still as it was when the preview was made.",
    params(
        ("preview_id" = String, Path, description = "The preview."),
    ),
    request_body = Decision,
    responses(
        (status = 200, description = "Done.", body = DecidedBody),
        (status = 403, description = "`forbidden`: the token does not list a role that making such a preview asks for."),
        (status = 404, description = "`not_found`: there is no such preview, or it is another's."),
        (status = 409, description = "`already_decided`, `preview_superseded`, `preview_stale`: a decision is taken once; a newer preview has taken its place; what it changes has changed since, and `current` is what is there now."),
        (status = 410, description = "`preview_expired`: nobody decided in time."),
        (status = 422, description = "`invalid_request`: the body is no decision."),
        (status = 502, description = "`backend_refused`, `save_unconfirmed`: it was not saved, or nobody knows."),
        (status = 503, description = "`draining`: not now."),
    ),
)]
pub(super) async fn decide(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    preview_id: Result<Path<String>, PathRejection>,
    body: Taken,
) -> Result<Json<DecidedBody>, Problem> {
    if services.runs.draining().is_cancelled() {
        // A save may take longer than there is time.
        return Err(Problem::unavailable(Code::Draining, "the server is shutting down"));
    }
    let Path(preview_id) = preview_id.map_err(|_| no_such_preview())?;
    let id = PreviewId::parse(&preview_id).map_err(|_| no_such_preview())?;
    let Decision { decision, comment } = json::parse_bytes(&body).map_err(|error| {
        Problem::unprocessable(format!(
            r#"the body must be {{"decision": "accept" or "reject", "comment": optional text}}: {error}"#
        ))
    })?;
    if comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES) {
        return Err(Problem::unprocessable(format!("comment is longer than {COMMENT_BYTES} bytes")));
    }
    let verdict = match decision {
        Word::Accept => Verdict::Accept,
        Word::Reject => Verdict::Reject,
    };
    let decided = services.previews.decide(&caller, id, verdict, comment).await?;
    Ok(Json(DecidedBody::from_decided(&decided)))
}

impl DecidedBody {
    /// The body for a decision.
    pub(super) fn from_decided(decided: &Decided) -> Self {
        let decision = match decided.verdict {
            Verdict::Accept => "accept",
            Verdict::Reject => "reject",
        };
        Self { preview_id: decided.preview.to_string(), decision, saved_id: decided.saved_id.clone() }
    }
}

fn no_such_preview() -> Problem {
    Problem::not_found("there is no such preview")
}

impl From<DecisionError> for Problem {
    fn from(mut error: DecisionError) -> Self {
        match error {
            DecisionError::Claim(ClaimError::NotFound) => no_such_preview(),
            DecisionError::Claim(ClaimError::AlreadyDecided | ClaimError::Lost) => {
                Self::conflict(Code::AlreadyDecided, error.to_string())
            }
            DecisionError::Claim(ClaimError::Superseded) => Self::conflict(Code::PreviewSuperseded, error.to_string()),
            DecisionError::Claim(ClaimError::Expired) => Self::preview_expired(error.to_string()),
            DecisionError::Forbidden => Self::forbidden(error.to_string()),
            DecisionError::Stale { ref mut current } => {
                let current = current.take();
                Self::preview_stale(error.to_string(), current)
            }
            DecisionError::BackendRefused(_) => Self::backend_refused(error.to_string()),
            DecisionError::Unconfirmed => Self::save_unconfirmed(error.to_string()),
            DecisionError::Claim(ClaimError::Store(cause)) | DecisionError::Store(cause) => {
                Self::store_failed("decision not recorded", cause)
            }
        }
    }
}
