//! What clients of agent streams ask besides: their sessions (`docs/protocol/agent-stream.md`).

mod message;
mod prewarm;
mod sessions;
mod views;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::get, sessions::rename, sessions::delete))
        .routes(routes!(sessions::close))
        .routes(routes!(sessions::classify))
        .routes(routes!(prewarm::prewarm))
        .routes(routes!(message::message))
}
