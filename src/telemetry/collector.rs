//! The collector: takes OTLP over HTTP as protobuf, whatever is exported to it.

use std::collections::HashMap;
use std::time::Duration;

use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};

use super::TelemetryError;
use crate::bounded::client::{Reach, builder};

/// An address of a collector that takes one kind of message.
#[derive(Debug)]
pub(super) struct Collector {
    http: Client,
    url: Url,
}

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// There is no answer.
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    /// An answer that takes nothing.
    #[error("the collector answered with HTTP {0}")]
    Refused(u16),
}

impl Collector {
    /// What takes messages at `url`, with these headers, and has `patience` for each. Nothing is sent yet.
    ///
    /// # Errors
    /// See [`TelemetryError`].
    pub(super) fn new(
        with: Result<HashMap<String, String>, &'static str>,
        url: &str,
        patience: Duration,
    ) -> Result<Self, TelemetryError> {
        let mut headers = HeaderMap::new();
        let unfit = TelemetryError::Headers("has characters that no http header can carry");
        for (name, value) in with.map_err(TelemetryError::Headers)? {
            let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
                return Err(unfit);
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // A collector may be on the machine's own link.
        let http = builder(Reach::Anywhere).timeout(patience).default_headers(headers).build()?;
        Ok(Self { http, url: Url::parse(url).map_err(|_| TelemetryError::Address)? })
    }

    /// Sends a message. The answer says what of it was not taken; one that is no such answer says nothing.
    ///
    /// # Errors
    /// When nothing was taken.
    pub(super) async fn send<A: Message + Default>(&self, message: &impl Message) -> Result<A, SendError> {
        let request = self.http.post(self.url.clone()).header(CONTENT_TYPE, "application/x-protobuf");
        let answer = request.body(message.encode_to_vec()).send().await?;
        if !answer.status().is_success() {
            return Err(SendError::Refused(answer.status().as_u16()));
        }
        // Some answer with nothing, or with JSON, that they have taken all.
        Ok(A::decode(answer.bytes().await?).unwrap_or_default())
    }
}
