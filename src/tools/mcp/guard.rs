//! What a server says over HTTP, looked at before values are made of it: the library reads a message several times
//! over, and what has too many values becomes an error of the call that it answers.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use serde_json::{Value, json};

use crate::bounded::json::{self, JsonError, NodeBudget, Wanted};

/// 4 MiB for one event of a server; results are cut far below that.
pub(super) const EVENT_BYTES: usize = 4 << 20;

/// Three copies of a message are in memory at once while the library parses it.
const COPIES: usize = 3;

/// A client that passes on what is bounded.
#[derive(Clone)]
pub(super) struct Guarded(pub(super) Client);

type Failed = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for Guarded {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, EVENT_BYTES).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let posted = self.0.post_message_with_max_sse_event_size(uri, message, session, auth, headers, most).await?;
        Ok(match posted {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(looked_at(events), session)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.0.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Failed> {
        let most = EVENT_BYTES;
        self.get_stream_with_max_sse_event_size(uri, session, last_event_id, auth, headers, most).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxedSseResponse, Failed> {
        let client = &self.0;
        let events =
            client.get_stream_with_max_sse_event_size(uri, session, last_event_id, auth, headers, most).await?;
        Ok(looked_at(events))
    }
}

fn looked_at(events: BoxedSseResponse) -> BoxedSseResponse {
    let looked_at = events.map(|event| {
        event.map(|mut event| {
            if let Some(instead) = event.data.as_deref().and_then(instead) {
                event.data = Some(instead);
            }
            event
        })
    });
    looked_at.boxed()
}

/// The replacement of a message that has too many values; `None` where it has not.
fn instead(message: &str) -> Option<String> {
    let error = json::fits(message, COPIES).err().filter(|error| !matches!(error, JsonError::Syntax(_)))?;
    let wanted = Wanted::field("id", Wanted::nothing());
    let read = json::read(message, &wanted, &mut NodeBudget::for_bytes(message.len(), None)).unwrap_or_default();
    match read.get("id").filter(|id| id.is_string() || id.is_number()) {
        Some(id) => {
            let error = json!({"code": -32000, "message": format!("the answer cannot be read: {error}")});
            Some(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
        }
        // A notice: no request waits for it.
        None => Some(Value::Null.to_string()),
    }
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
    }
}
