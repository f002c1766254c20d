//! What the server says itself in an answer of this protocol.

/// The answer of a model that said nothing.
pub(super) const NOTHING: &str = "The model gave no answer. Please try again.";

/// The end of an answer that reached a bound of its profile.
pub(super) const MAX_ROUNDS: &str = "This needed more steps than one answer may have, so it stops here.";

/// The end of an answer that somebody stopped.
pub(super) const CANCELLED: &str = "The answer was stopped.";

/// The same of a server that was stopped.
pub(super) const INTERRUPTED: &str = "The server stopped while it answered. Please ask again.";

/// The end of a stream that goes on without this server.
pub(super) const ELSEWHERE: &str = "The connection has to be made anew. Please ask again.";

/// The end of a stream whose reader was too slow.
pub(super) const LOST: &str = "Part of this answer did not arrive. Please ask again.";

/// The end of an answer whose application has to go on itself.
pub(super) const LEFT: &str = "This waits for the application.";

/// The end of an answer with calls that wait for a person.
pub(super) const WAITS: &str = "This waits for an approval.";

/// The same of one call; `role` is what somebody must have who approves it, unless its reader may.
pub(super) fn waits(tool: &str, role: Option<&str>, is_for_another: bool) -> String {
    match (role, is_for_another) {
        (None, _) => format!("{tool} waits until you approve it."),
        (Some(role), false) => format!("{tool} waits until somebody with the role {role} approves it."),
        (Some(role), true) => format!("{tool} waits until somebody else, with the role {role}, approves it."),
    }
}
