//! `/v1/agent/previews/{preview_id}`: a change that waits for its user, whole, and `…/decision`: the user lets it through, or not.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Services;
use super::auth::Authenticated;
use super::chat::readable;
use super::problem::Problem;
use super::views::time;
use crate::agent::ports::previews::{ClaimError, DecisionError, WaitingPreview};
use crate::chat::causes::Causes;
use crate::chat::ids::PreviewId;
use crate::chat::preview::{Change, Decided, Preview, Verdict};

/// The longest comment, in bytes.
pub(super) const COMMENT_BYTES: usize = 4096;

/// A preview that waits, with what it changes as that was when the preview was made.
#[derive(Serialize)]
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
    created_at: String,
}

/// 200 with a preview that waits; 404 for another's, and for one that is decided.
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    preview_id: Result<Path<String>, PathRejection>,
) -> Result<Json<WaitingBody>, Problem> {
    let Path(preview_id) = preview_id.map_err(|_| no_such_preview())?;
    let id = PreviewId::parse(&preview_id).map_err(|_| no_such_preview())?;
    let waiting = services.waiting_previews.waiting_previews(&caller.owner, Some(id)).await?;
    let waiting = waiting.into_iter().next().ok_or_else(no_such_preview)?;
    Ok(Json(WaitingBody::of(waiting)))
}

impl WaitingBody {
    fn of(waiting: WaitingPreview) -> Self {
        let WaitingPreview { preview: Preview { id, conversation, change }, created_at_ms } = waiting;
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
            created_at: time(created_at_ms),
        }
    }
}

#[derive(Deserialize)]
struct Decision {
    decision: Word,
    comment: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Accept,
    Reject,
}

/// What has been decided, for the client.
#[derive(Serialize)]
pub(super) struct DecidedBody {
    preview_id: String,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_id: Option<String>,
}

/// 200 when done; 404 for another's preview, 409 when decided already, 422 for a bad body, 502 when the backend
/// refused.
pub(super) async fn decide(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    preview_id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<DecidedBody>, Problem> {
    if services.runs.draining().is_cancelled() {
        // What it does may take longer than there is time.
        return Err(Problem::unavailable("draining", "the server is shutting down"));
    }
    let body = readable(&headers, body)?;
    let Path(preview_id) = preview_id.map_err(|_| no_such_preview())?;
    let id = PreviewId::parse(&preview_id).map_err(|_| no_such_preview())?;
    let Decision { decision, comment } = serde_json::from_slice(&body).map_err(|error| {
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
    Ok(Json(DecidedBody::of(&decided)))
}

impl DecidedBody {
    /// What was decided.
    pub(super) fn of(decided: &Decided) -> Self {
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
    fn from(error: DecisionError) -> Self {
        match error {
            DecisionError::Claim(ClaimError::NotFound) => no_such_preview(),
            DecisionError::Claim(ClaimError::AlreadyDecided) => Self::conflict("already_decided", error.to_string()),
            DecisionError::BackendRefused(_) => Self::backend_refused(error.to_string()),
            DecisionError::Unconfirmed => Self::save_unconfirmed(error.to_string()),
            DecisionError::Claim(ClaimError::Store(cause)) | DecisionError::Store(cause) => {
                tracing::error!(error = %Causes(&cause), "decision not recorded");
                cause.into()
            }
        }
    }
}
