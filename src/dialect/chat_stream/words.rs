//! Messages on failures for users who know nothing of model services.

use crate::chat::failure::{Failure, FailureCode};

/// The text of these clients before the first delta.
pub(super) const THINKING: &str = "Thinking...";

/// The same once the loop has the run.
pub(super) const STARTING: &str = "Starting to work on it...";

/// The warning of a chat that will soon be too long for the model to read its beginning.
pub(super) const NEARLY_FULL: &str = "This chat is getting long. Soon only a summary of its beginning will be known to the \
                                      assistant; a new chat starts fresh.";

/// A reader who missed events.
pub(super) const LOST: &str = "Part of this answer did not arrive. Please reload the chat to see all of it.";

/// A reader whose run goes on without this server.
pub(super) const ELSEWHERE: &str = "The connection has to be made anew. Please reload the chat to see the answer.";

/// The end of an answer that has reached a limit.
const CUT_OFF: &str = "[The answer was cut off here: it had reached its length limit.]";

/// The end of an answer without text behind its calls.
const NOTHING_MORE: &str = "[The model had nothing more to say.]";

/// The text of an empty answer.
const NOTHING: &str = "[The model gave no answer. Please try again.]";

/// Whether what there is of an answer stands that failed with this code.
pub(super) fn stands(code: &str) -> bool {
    let standing = [FailureCode::MaxTokens, FailureCode::RunTooLong, FailureCode::EmptyAnswer];
    standing.iter().any(|known| known.name() == code)
}

/// The last sentence of an answer that ended so, where its text stands; `has_text` tells whether there is any.
pub(super) fn ending(failure: &Failure, has_text: bool) -> Option<&'static str> {
    match failure.code {
        FailureCode::MaxTokens | FailureCode::RunTooLong => Some(CUT_OFF),
        FailureCode::EmptyAnswer if has_text => Some(NOTHING_MORE),
        FailureCode::EmptyAnswer => Some(NOTHING),
        _ => None,
    }
}
