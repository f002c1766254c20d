//! `[chat_message]`: who answers `POST /chat/message` (`docs/protocol/chat-message.md`).

use serde::Deserialize;

/// `[chat_message]`: applications whose chat keeps no conversation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChatMessageConfig {
    /// The `context_type` of the profile that answers; empty where the route is off.
    pub profile: String,
    /// The directive that `POST /marketplace/install` requests; empty where the route is off.
    pub install: String,
    /// The directive that `POST /marketplace/uninstall` requests; empty where the route is off.
    pub uninstall: String,
    /// The tool that `GET /marketplace/installations/status` calls; empty where the route is off.
    pub installations: String,
}
