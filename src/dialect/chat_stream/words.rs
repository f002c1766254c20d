//! How failures are told to users who know nothing of model services.

use std::borrow::Cow;

use crate::chat::failure::Failure;

/// What these clients show while nothing has been said yet.
pub(super) const THINKING: &str = "Thinking...";

/// The same once the loop has the run.
pub(super) const STARTING: &str = "Starting to work on it...";

/// What is said of a chat that will soon be too long for its beginning to be told to the model.
pub(super) const NEARLY_FULL: &str = "This chat is getting long. Soon only a summary of its beginning will be known to the \
                                      assistant; a new chat starts fresh.";

/// A reader who missed events.
pub(super) const LOST: &str = "Part of this answer did not arrive. Please reload the chat to see all of it.";

/// A reader whose run goes on without this server.
pub(super) const ELSEWHERE: &str = "The connection has to be made anew. Please reload the chat to see the answer.";

/// What stands behind an answer that has reached a limit.
const CUT_OFF: &str = "[The answer was cut off here: it had reached its length limit.]";

/// What stands behind calls of which the model had nothing to say.
const NOTHING_MORE: &str = "[The model had nothing more to say.]";

/// What stands in the place of an answer.
const NOTHING: &str = "[The model gave no answer. Please try again.]";

/// Whether what there is of an answer stands that failed with this code.
pub(super) fn stands(code: &str) -> bool {
    matches!(code, "max_tokens" | "run_too_long" | "empty_answer")
}

/// What stands behind an answer that ended so, where what there is of it stands: `has_said` tells whether there is any.
pub(super) fn ending(failure: &Failure, has_said: bool) -> Option<&'static str> {
    match &*failure.code {
        "max_tokens" | "run_too_long" => Some(CUT_OFF),
        "empty_answer" if has_said => Some(NOTHING_MORE),
        "empty_answer" => Some(NOTHING),
        _ => None,
    }
}

/// The sentence about `failure`. What is not listed here has words for users already.
pub fn friendly(failure: &Failure) -> Cow<'_, str> {
    let told = match &*failure.code {
        "provider_quota_exceeded" => {
            "The AI service's credit is used up, so no answer can be given. Please contact your administrator."
        }
        "provider_rate_limited" => {
            "The AI service is receiving too many requests right now (rate limit). Please try again in a moment."
        }
        "provider_unauthorized" => {
            "The AI service did not accept this server's authentication. Please contact your administrator."
        }
        "provider_timeout" | "run_timeout" => "The request took too long (timeout). Please try again.",
        "provider_unavailable" | "provider_truncated" => {
            "The connection to the AI service failed. Please try again in a moment."
        }
        _ => return Cow::Borrowed(failure.message.strip_prefix("LLM provider error: ").unwrap_or(&failure.message)),
    };
    Cow::Borrowed(told)
}
