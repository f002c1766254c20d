//! What a server says, looked at before values are made of it: the library reads a message several times over, and what has
//! too many values becomes an error of the call that it answers.

use std::borrow::Cow;
use std::collections::HashMap;

use futures::StreamExt;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::RequestId;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use secrecy::SecretString;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::bounded::intake::Intake;
use crate::bounded::json::{self, JsonError, NodeBudget, Wanted};
use crate::bounded::lines::LINE_BYTES;
use crate::tools::backend::{LEAST_SECRET_BYTES, Secrets};

/// 4 MiB for one event of a server, as for a line of a program's; results are cut far below that.
pub(super) const EVENT_BYTES: usize = LINE_BYTES;

/// Three copies of a message are in memory at once while the library parses it.
const COPIES: usize = 3;

/// Why a message was not sent, or has no answer.
pub(super) type Failed = StreamableHttpError<reqwest::Error>;

/// What a message goes with.
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

/// What a server may repeat of a message that goes with these: the token, and the headers of the settings, also without the
/// scheme that stands before a key.
pub(super) fn secrets(token: Option<&str>, headers: &Headers) -> Secrets {
    let of_settings = headers.values().filter(|value| value.is_sensitive()).filter_map(|value| value.to_str().ok());
    let bare = of_settings.clone().filter_map(|value| value.rsplit(' ').next());
    let is_long = |secret: &&str| secret.len() >= LEAST_SECRET_BYTES;
    token.into_iter().chain(of_settings).chain(bare).filter(is_long).map(SecretString::from).collect()
}

/// The events of a server, each looked at, and without `secrets`. `request` is what they answer, if they answer one.
pub(super) fn looked_at(
    events: BoxedSseResponse,
    request: Option<RequestId>,
    secrets: Secrets,
    intake: Intake,
) -> BoxedSseResponse {
    let looked_at = events.then(move |event| {
        let (request, secrets, intake) = (request.clone(), secrets.clone(), intake.clone());
        async move {
            let mut event = event?;
            if let Some(data) = event.data.take() {
                let bytes = data.len();
                let work = move || addressed(told(&data, &secrets), request.as_ref());
                event.data = Some(intake.work(bytes, work).await);
            }
            Ok(event)
        }
    });
    looked_at.boxed()
}

/// A message as it is read: without `secrets`, or its replacement.
pub(super) fn told(message: &str, secrets: &Secrets) -> String {
    let message = instead(message).map_or(Cow::Borrowed(message), Cow::Owned);
    secrets.removed(&message).into_owned()
}

/// An error, and whether it says what it is about.
#[derive(Deserialize)]
struct AnyError<'a> {
    id: Option<IgnoredAny>,
    #[serde(borrow)]
    error: &'a RawValue,
}

/// An error about a request.
#[derive(Serialize)]
struct ErrorOf<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    error: &'a RawValue,
}

/// `message` as the answer to `request`, where it is an error without an id: who has not read a request does not know its id.
fn addressed(message: String, request: Option<&RequestId>) -> String {
    let error = request.and_then(|id| match json::parse(&message) {
        Ok(AnyError { id: None, error }) => serde_json::to_string(&ErrorOf { jsonrpc: "2.0", id, error }).ok(),
        Ok(AnyError { id: Some(_), .. }) | Err(_) => None,
    });
    error.unwrap_or(message)
}

/// The replacement of a message that has too many values, or halves of characters that nobody can read; `None` where it has not.
pub(super) fn instead(message: &str) -> Option<String> {
    let error = match json::fits(message, COPIES) {
        Ok(()) => return None,
        Err(JsonError::Syntax(_)) => match json::without_halves(message) {
            Cow::Owned(mended) => return Some(mended).filter(|mended| json::fits(mended, COPIES).is_ok()),
            Cow::Borrowed(_) => return None,
        },
        Err(error) => error,
    };
    let wanted = Wanted::field("id", Wanted::nothing());
    let read = json::read(message, &wanted, &mut NodeBudget::for_bytes(message.len(), None)).unwrap_or_default();
    match read.get("id").filter(|id| id.is_string() || id.is_number()) {
        Some(id) => Some(unreadable(id, &error)),
        // A notice: no request waits for it.
        None => Some(Value::Null.to_string()),
    }
}

/// The error of the call `id`, whose answer cannot be read.
pub(super) fn unreadable(id: &Value, reason: &dyn std::fmt::Display) -> String {
    let error = json!({"code": -32000, "message": format!("the answer cannot be read: {reason}")});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_too_many_values_becomes_an_error_of_its_call() {
        let message = |rows: usize| {
            let rows = "{\"\":0},".repeat(rows);
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[],"structuredContent":{{"rows":[{rows}0]}}}}}}"#)
        };
        assert_eq!(instead(&message(1000)), None);
        let error: Value = serde_json::from_str(&instead(&message(500_000)).unwrap()).unwrap();
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(7), &json!(-32000)));
        assert!(error["error"]["message"].as_str().unwrap().contains("too many values"), "{error}");
        assert_eq!(instead("no JSON"), None, "the library refuses it");
        let cut = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"\ud83d"}]}}"#;
        let mended = instead(cut).unwrap();
        assert_eq!(mended, cut.replace("ud83d", "ufffd"), "half a character");
    }
}
