//! The HTTP client of a server: what it says is looked at before values are made of it, and it gets tokens of this server's own
//! where it wants some.

use std::sync::Arc;

use reqwest::Client;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpPostResponse};
use secrecy::ExposeSecret;

use super::look::{EVENT_BYTES, Failed, Headers, looked_at, secrets};
use super::post::{NotPosted, Outgoing, Refusal, post};
use crate::bounded::intake::Intake;
use crate::tools::backend::{MachineToken, MachineTokens, NoToken};

/// A client that passes on what is bounded, and sends tokens of this server's own where a server wants some.
#[derive(Clone)]
pub(super) struct Guarded {
    http: Client,
    tokens: Option<Arc<MachineTokens>>,
    intake: Intake,
}

impl Guarded {
    pub(super) fn new(http: Client, tokens: Option<MachineTokens>, intake: Intake) -> Self {
        Self { http, tokens: tokens.map(Arc::new), intake }
    }

    /// Reads what is large aside.
    pub(super) fn intake(&self) -> &Intake {
        &self.intake
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
    Refusal::unsent(format!("there is no token for it: {reason}")).into()
}

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
        let (auth, sent) = self.presented(auth).await?;
        let mut outgoing = Outgoing {
            uri: &uri,
            message: &message,
            session: session.as_ref(),
            token: auth.as_deref(),
            headers: &headers,
        };
        let fresh = match post(&self.http, &self.intake, outgoing).await {
            Ok(answer) => return Ok(answer),
            Err(NotPosted { is_unauthorized: true, failed }) => {
                self.presented_anew(sent.as_ref()).await?.ok_or(failed)?
            }
            Err(NotPosted { failed, .. }) => return Err(failed),
        };
        outgoing.token = Some(&fresh);
        post(&self.http, &self.intake, outgoing).await.map_err(|not| not.failed)
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
        let secrets = secrets(auth.as_deref(), &headers);
        let client = &self.http;
        let events =
            client.get_stream_with_max_sse_event_size(uri, session, last_event_id, auth, headers, most).await?;
        Ok(looked_at(events, None, secrets, self.intake.clone()))
    }
}
