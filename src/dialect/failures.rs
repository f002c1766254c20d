//! Failures that no run has told of, and failures in the words of an assistant, for protocols whose clients show them to
//! their users as they are.

use std::borrow::Cow;

use crate::chat::failure::{Failure, FailureCode, OF_PROVIDER};

/// The sentence about `failure`. What is not listed here has words for users already.
pub(super) fn friendly(failure: &Failure) -> Cow<'_, str> {
    let message = match failure.code {
        FailureCode::ProviderQuotaExceeded => {
            "The AI service's credit is used up, so no answer can be given. Please contact your administrator."
        }
        FailureCode::ProviderRateLimited => {
            "The AI service is receiving too many requests right now (rate limit). Please try again in a moment."
        }
        FailureCode::ProviderUnauthorized => {
            "The AI service did not accept this server's authentication. Please contact your administrator."
        }
        FailureCode::ProviderTimeout | FailureCode::RunTimeout => {
            "The request took too long (timeout). Please try again."
        }
        FailureCode::ProviderUnavailable | FailureCode::ProviderTruncated => {
            "The connection to the AI service failed. Please try again in a moment."
        }
        _ => return Cow::Borrowed(failure.message.strip_prefix(OF_PROVIDER).unwrap_or(&failure.message)),
    };
    Cow::Borrowed(message)
}

/// The failure of a run whose server stopped.
pub(super) fn interrupted() -> Failure {
    let message = "The server stopped while answering; please ask again".to_owned();
    Failure { code: FailureCode::Interrupted, message, retryable: true }
}

/// The failure where events are missing.
pub(super) fn lost() -> Failure {
    let message = "Part of this answer is missing here; please ask again".to_owned();
    Failure { code: FailureCode::Resync, message, retryable: true }
}
