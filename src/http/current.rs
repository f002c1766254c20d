//! The conversation that messages go to which name none: the one that an editor has chosen, else the newest.

use super::Services;
use super::problem::Problem;
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;

/// Dialogs that are looked at for the newest.
const MOST: u32 = 1000;

/// That conversation of an owner; `None` where they have none.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn find(services: &Services, owner: &Owner) -> Result<Option<ConversationId>, Problem> {
    let Some(desk) = &services.workspace else { return Ok(None) };
    let unread = |error: StoreError| Problem::store_failed("dialog not read", error);
    let chosen = desk.current.current(owner).await.map_err(|failure| {
        tracing::error!(error.kind = failure.code, reason = failure.message, "the current dialog was not read");
        Problem::internal()
    })?;
    if let Some(id) = chosen
        && services.sessions.session(owner, &id).await.map_err(unread)?.is_some()
    {
        return Ok(Some(id));
    }
    let newest = services.sessions.sessions(owner, MOST).await.map_err(unread)?;
    Ok(newest.into_iter().find(|session| session.context_type == desk.profile).map(|session| session.id))
}

/// From now on messages go to that one which name none.
pub(super) async fn choose(services: &Services, owner: &Owner, id: &ConversationId) {
    let Some(desk) = &services.workspace else { return };
    if let Err(failure) = desk.current.make_current(owner, id).await {
        tracing::warn!(error.kind = failure.code, reason = failure.message, "the current dialog was not kept");
    }
}
