//! `/api/dialogs`, `/api/config`, `/health`: what editors ask a coding agent besides (`docs/protocol/smithy.md`). A dialog is a conversation with the
//! profile `workspace.profile`; an unknown one is 404 on every route but `DELETE`, and nothing is made by asking.

mod config;
mod dialogs;
mod health;
mod history;
mod taking_back;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::changes::WorkspaceDesk;
use super::problem::Problem;
use super::{Services, current};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::ConversationId;
use crate::chat::session::Session;
use crate::dialect::smithy::dialog_id;

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(dialogs::list, dialogs::create))
        .routes(routes!(dialogs::current, dialogs::make_current))
        .routes(routes!(dialogs::get, dialogs::rename, dialogs::delete))
        .routes(routes!(config::get, config::change))
        .routes(routes!(config::rename))
        .routes(routes!(health::health))
        .routes(routes!(history::history))
        .routes(routes!(history::results))
        .routes(routes!(history::result))
        .routes(routes!(taking_back::checkpoints))
        .routes(routes!(taking_back::session))
        .routes(routes!(taking_back::restore))
        .routes(routes!(taking_back::approve))
        .routes(routes!(taking_back::reset))
}

impl Services {
    /// Makes a dialog for the local user, where they have none: editors that start this server expect one.
    pub async fn open_first_dialog(&self) {
        let (Some(local), Some(desk)) = (&self.local_user, &self.workspace) else { return };
        let opened = async {
            let token = local.token_of_own().map_err(|_| Problem::internal())?;
            let owner = self.authenticator.authenticate(&token).await?.owner;
            if current::dialogs(self, &owner, &desk.profile).await?.is_empty() {
                let id = dialogs::open(self, &owner, None).await?;
                current::choose(self, &owner, &id).await;
            }
            Ok::<_, Problem>(())
        };
        if opened.await.is_err() {
            tracing::warn!("no first dialog made");
        }
    }
}

/// The workspace, for callers that have its role.
///
/// # Errors
/// When there is none, or the caller has not.
fn desk<'a>(services: &'a Services, caller: &Caller) -> Result<&'a WorkspaceDesk, Problem> {
    let desk = services.workspace.as_ref().ok_or_else(|| Problem::not_found("this server has no workspace"))?;
    match desk.role.is_empty() || caller.has_role(&desk.role) {
        true => Ok(desk),
        false => Err(Problem::forbidden("the role of the workspace is needed")),
    }
}

/// The dialog that a path names.
///
/// # Errors
/// When it is none of the caller's.
async fn dialog(
    services: &Services,
    caller: &Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<(ConversationId, Session), Problem> {
    desk(services, caller)?;
    let Path(id) = id.map_err(|_| no_such_dialog())?;
    let id = dialog_id(&id)?;
    let session = session(services, &caller.owner, &id).await?.ok_or_else(no_such_dialog)?;
    Ok((id, session))
}

async fn session(services: &Services, owner: &Owner, id: &ConversationId) -> Result<Option<Session>, Problem> {
    services.sessions.session(owner, id).await.map_err(unread)
}

fn no_such_dialog() -> Problem {
    Problem::not_found("there is no such dialog")
}

fn unread(error: StoreError) -> Problem {
    Problem::store_failed("dialog not read", error)
}
