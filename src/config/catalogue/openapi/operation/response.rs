//! What an operation answers.

use serde_json::Value;

use super::super::super::request;
use super::super::document::Operation;
use super::super::refs;

/// The `Accept` of an operation whose good answer is a kind of JSON that is not asked for as `application/json`; nothing
/// where it need not say.
pub(super) fn accept(root: &Value, operation: &Operation<'_>) -> Option<String> {
    let responses = operation.value.get("responses")?.as_object()?;
    let mut good = responses.iter().filter(|(status, _)| status.starts_with('2'));
    let content = good.find_map(|(_, good)| refs::target(root, good).ok()?.get("content")?.as_object())?;
    let name = |kind: &str| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if content.keys().any(|kind| matches!(name(kind).as_str(), "application/json" | "*/*" | "application/*")) {
        return None;
    }
    let kind =
        content.keys().map(|kind| kind.trim()).find(|kind| request::is_accept(kind) && request::is_json(kind))?;
    Some(format!("{kind}, application/json;q=0.9"))
}
