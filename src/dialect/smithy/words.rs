//! What the server says itself in an answer of this protocol.

/// The end of an answer that somebody stopped.
pub(super) const CANCELLED: &str = "The answer was stopped.";

/// The same of a server that was stopped.
pub(super) const INTERRUPTED: &str = "The server stopped while it answered. Please ask again.";

/// The end of a stream whose reader was too slow.
pub(super) const LOST: &str = "Part of this answer did not arrive. Please load the dialog again.";

/// What is said of a call that waits for a person: these clients have no buttons for it.
pub(super) fn waits(tool: &str) -> String {
    format!("{tool} waits until you approve it, on the chat page or by the API.")
}
