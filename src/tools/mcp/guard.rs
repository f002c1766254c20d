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
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::bounded::json::{self, JsonError, NodeBudget, Wanted};
use crate::tools::backend::{MachineToken, MachineTokens, NoToken};

/// 4 MiB for one event of a server; results are cut far below that.
pub(super) const EVENT_BYTES: usize = 4 << 20;

/// Three copies of a message are in memory at once while the library parses it.
const COPIES: usize = 3;

/// A client that passes on what is bounded, and sends tokens of this server's own where a server wants some.
#[derive(Clone)]
pub(super) struct Guarded {
    http: Client,
    tokens: Option<Arc<MachineTokens>>,
}

impl Guarded {
    pub(super) fn new(http: Client, tokens: Option<MachineTokens>) -> Self {
        Self { http, tokens: tokens.map(Arc::new) }
    }

    /// What a message is sent with: the token of now, where there are some.
    async fn presented(&self, auth: Option<String>) -> Result<(Option<String>, Option<MachineToken>), Failed> {
        let Some(tokens) = &self.tokens else { return Ok((auth, None)) };
        let token = tokens.token().await.map_err(none)?;
        Ok((Some(token.text().expose_secret().to_owned()), Some(token)))
    }

    /// The same in the place of a token that was refused; `None` where there is no other so soon.
    async fn presented_anew(&self, refused: Option<&MachineToken>) -> Result<Option<String>, Failed> {
        let Some((tokens, refused)) = self.tokens.as_ref().zip(refused) else { return Ok(None) };
        let fresh = tokens.fresh(refused).await.map_err(none)?;
        Ok(fresh.map(|fresh| fresh.text().expose_secret().to_owned()))
    }
}

/// That there is no token to send a message with.
fn none(reason: NoToken) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(format!("there is no token for it: {reason}").into())
}

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
        let (auth, sent) = self.presented(auth).await?;
        let http = &self.http;
        let (to, again) = (uri.clone(), message.clone());
        let first = http.post_message_with_max_sse_event_size(to, again, session.clone(), auth, headers.clone(), most);
        let posted = match first.await {
            Err(refused @ StreamableHttpError::AuthRequired(_)) => match self.presented_anew(sent.as_ref()).await? {
                Some(auth) => {
                    let auth = Some(auth);
                    http.post_message_with_max_sse_event_size(uri, message, session, auth, headers, most).await?
                }
                None => return Err(refused),
            },
            posted => posted?,
        };
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
        let (auth, _) = self.presented(auth).await?;
        self.http.delete_session(uri, session, auth, headers).await
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
        let (auth, _) = self.presented(auth).await?;
        let client = &self.http;
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
