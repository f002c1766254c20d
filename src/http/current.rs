//! The conversation that messages go to which name none: the one that an editor has chosen, else the newest.

use super::Services;
use super::problem::Problem;
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::workspace::Choice;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::chat::session::Session;

/// Dialogs that are looked at for the newest.
const MOST: u32 = 1000;

/// That conversation of an owner; `None` where they have none.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn find(services: &Services, owner: &Owner) -> Result<Option<ConversationId>, Problem> {
    let Some(desk) = &services.workspace else { return Ok(None) };
    let unread = |error: StoreError| Problem::store_failed("dialog not read", error);
    let chosen = desk.choices.chosen(owner, Choice::Conversation).await.map_err(|failure| {
        tracing::error!(error.kind = failure.code, reason = failure.message, "the current dialog was not read");
        Problem::internal()
    })?;
    if let Some(id) = chosen.and_then(|id| ConversationId::parse(&id).ok())
        && services.sessions.session(owner, &id).await.map_err(unread)?.is_some()
    {
        return Ok(Some(id));
    }
    let newest = dialogs(services, owner, &desk.profile).await?.into_iter().max_by_key(|session| session.updated_at_ms);
    Ok(newest.map(|session| session.id))
}

/// The conversations of an owner with a profile, also those that wait for their first message.
///
/// # Errors
/// When they cannot be read.
pub(super) async fn dialogs(services: &Services, owner: &Owner, profile: &str) -> Result<Vec<Session>, Problem> {
    let unread = |error: StoreError| Problem::store_failed("dialogs not read", error);
    let mut found = services.sessions.unused(owner).await.map_err(unread)?;
    found.extend(services.sessions.sessions(owner, MOST).await.map_err(unread)?);
    found.retain(|session| session.context_type == profile);
    Ok(found)
}

/// From now on messages go to that one which name none.
pub(super) async fn choose(services: &Services, owner: &Owner, id: &ConversationId) {
    let Some(desk) = &services.workspace else { return };
    if let Err(failure) = desk.choices.choose(owner, Choice::Conversation, Some(id.as_str())).await {
        tracing::warn!(error.kind = failure.code, reason = failure.message, "the current dialog was not kept");
    }
}
