//! `/api/chats`: what page assistants ask besides (`docs/protocol/chat-stream.md`).

mod chats;
mod views;

use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;

/// `[chat_stream]`: pages of this protocol.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChatStreamConfig {
    /// The claim with the number that pages know a user by; empty where that is `sub`.
    pub user_claim: String,
}

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(chats::list))
        .routes(routes!(chats::get))
        .routes(routes!(chats::all))
        .routes(routes!(chats::of_any))
}
