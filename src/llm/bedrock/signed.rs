//! Requests signed with the credentials of AWS that this machine has.

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap};

use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::aws::{SignError, Signer, Variables};
use crate::llm::http::Sign;

/// The name of the service in signatures.
const SERVICE: &str = "bedrock";

/// Signs requests to Bedrock.
pub(super) struct Signed(Signer);

impl Signed {
    /// A signer for `region` with the credentials that `variables` lead to.
    ///
    /// # Errors
    /// When the variables contradict each other.
    pub(super) fn new(variables: &Variables, region: &str) -> Result<Self, SignError> {
        Signer::new(variables, SERVICE, region).map(Self).map_err(SignError::Credentials)
    }
}

#[async_trait]
impl Sign for Signed {
    async fn sign(&self, url: &Url, mut headers: HeaderMap, digest: &[u8]) -> Result<HeaderMap, ProviderError> {
        // A proxy may change the others.
        let content_type = headers.get(CONTENT_TYPE).map(|value| (CONTENT_TYPE, value.clone()));
        let to_sign = HeaderMap::from_iter(content_type);
        let signed = self.0.sign(url, to_sign, digest).await;
        headers.extend(signed.map_err(|error| {
            let kind = match error {
                SignError::Credentials(_) if error.may_pass() => ProviderErrorKind::Unavailable { retry_after: None },
                SignError::Credentials(_) => ProviderErrorKind::Unauthorized,
                SignError::Request(_) => ProviderErrorKind::Rejected,
            };
            ProviderError::new(kind, error)
        })?);
        Ok(headers)
    }
}
