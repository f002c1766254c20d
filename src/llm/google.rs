//! Google's finish reasons, <https://ai.google.dev/api/generate-content#FinishReason>, which come from its own API and from
//! what speaks another protocol in front of it, there in either case.

use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::chat::stream::FinishReason;

/// What `label` means.
///
/// # Errors
/// When it says that the answer is none.
pub(super) fn google_finish(label: &str) -> Result<FinishReason, ProviderError> {
    let fault = |kind| Err(ProviderError::new(kind, format!("finish reason {label}")));
    match label.to_ascii_uppercase().as_str() {
        "MAX_TOKENS" => Ok(FinishReason::Length),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "MODEL_ARMOR" => {
            Ok(FinishReason::ContentFilter)
        }
        "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "OTHER" | "NO_IMAGE" | "IMAGE_OTHER" => {
            fault(ProviderErrorKind::ModelFault)
        }
        malformed if malformed.starts_with("MALFORMED_") => fault(ProviderErrorKind::ModelFault),
        image if image.starts_with("IMAGE_") => Ok(FinishReason::ContentFilter),
        // Our own omission: the same request would fail again.
        "MISSING_THOUGHT_SIGNATURE" => fault(ProviderErrorKind::Rejected),
        // STOP, with or without calls, and what does not exist yet.
        _ => Ok(FinishReason::Stop),
    }
}
