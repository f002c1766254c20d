//! `DELETE /v1/agent/users/{user_id}`: what is kept of a user goes, for whoever has the role that the settings name.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;
use super::problem::Problem;
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::users::DeletedRest;
use crate::chat::audit::{Act, Fact, chain_of};
use crate::chat::caller::Owner;

/// Conversations that a request deletes.
const AT_ONCE: u32 = 100;

/// What a request has deleted.
#[derive(Serialize, ToSchema)]
#[schema(as = DeletedUser)]
pub(super) struct DeletedBody {
    /// How many conversations.
    conversations: usize,
    /// How many files.
    files: u64,
    /// How many directives.
    directives: u64,
    /// How many directives are under way. They stay until they have ended.
    running_directives: u64,
    /// Whether nothing of the user is left. Else ask again.
    complete: bool,
}

/// 200 with what was deleted; 403 for who has not the role.
#[utoipa::path(
    delete,
    path = "/v1/agent/users/{user_id}",
    operation_id = "deleteUser",
    tag = "Users",
    summary = "Delete what is kept of a user",
    description = "Conversations with all of theirs, files, and directives, of a user of the caller's tenant; live runs and directives that wait are \
                   cancelled. What was used stays in the sums of the tenant, of no user. The audit record stays, and has a line of this; signals stay \
                   until their time. Some of it at once: ask again until it is `complete`. Needs the role of `server.deletion_role`.",
    params(
        ("user_id" = String, Path, description = "The user, as tokens name them."),
    ),
    responses(
        (status = 200, description = "So much is deleted. Of somebody of whom nothing is kept it is nothing.", body = DeletedBody),
        (status = 400, description = "`invalid_request`: a path that is no text."),
        (status = 403, description = "`forbidden`: this needs the role of `server.deletion_role`."),
    ),
)]
pub(super) async fn delete(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    user: Result<Path<String>, PathRejection>,
) -> Result<Json<DeletedBody>, Problem> {
    let role = &services.deletion_role;
    if role.is_empty() || !caller.has_role(role) {
        return Err(Problem::forbidden("users are not for this user to delete"));
    }
    let Path(user) = user.map_err(|_| Problem::bad_request("the user's name must be text"))?;
    let owner = Owner { tenant: caller.owner.tenant.clone(), user };
    let fact = Fact::new(Act::UserDeleted, &caller.owner.user, &owner.user);
    services.audit.note(&chain_of(&owner.tenant), fact).await.map_err(failed)?;
    let ids = services.users.conversations_of(&owner, AT_ONCE).await.map_err(failed)?;
    let (found, mut conversations) = (ids.len(), 0);
    for id in ids {
        // One after the other with all of it: where one fails, what was deleted before is forgotten everywhere.
        let Some(runs) = services.conversations.delete(&owner, &id).await.map_err(failed)? else { continue };
        services.deleted((&owner, &id), runs).await;
        conversations += 1;
    }
    let rest = match found < AT_ONCE as usize {
        true => services.users.delete_rest(&caller, &owner).await.map_err(failed)?,
        false => DeletedRest { has_more: true, ..DeletedRest::default() },
    };
    let DeletedRest { files, directives, running_directives, has_more } = rest;
    // What a run that was cancelled with its conversation has used is charged a moment later, and belongs to no user only then.
    let complete = !has_more && conversations == 0;
    Ok(Json(DeletedBody { conversations, files, directives, running_directives, complete }))
}

fn failed(error: StoreError) -> Problem {
    Problem::store_failed("user not deleted, or not all of them", error)
}
