//! Signatures of requests, version 4: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>.

use std::error::Error as StdError;
use std::iter::successors;
use std::time::Duration;

use http::Uri;
use object_store::Error;
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpRequestBody};
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};

use super::Variables;

/// 5 s to fetch credentials that are not there yet, or to wait for who fetches them.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why a request is not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// There are no credentials.
    #[error("there are no credentials of AWS")]
    Credentials(#[source] Error),
    /// The address is none that can be signed.
    #[error("the request cannot be signed")]
    Request(#[source] Box<dyn StdError + Send + Sync>),
}

impl SignError {
    /// Whether the same may succeed later: the service of credentials has trouble. Where nobody takes connections there is none.
    pub fn may_pass(&self) -> bool {
        let first: &(dyn StdError + 'static) = self;
        let causes: Vec<_> = successors(Some(first), |cause| (**cause).source()).collect();
        let is_absent =
            causes.iter().filter_map(|cause| cause.downcast_ref::<reqwest::Error>()).any(reqwest::Error::is_connect);
        let mut failures = causes.iter().filter_map(|cause| cause.downcast_ref::<HttpError>());
        let passes = |kind: HttpErrorKind| {
            matches!(kind, HttpErrorKind::Timeout | HttpErrorKind::Interrupted | HttpErrorKind::Request)
        };
        !is_absent && failures.any(|failure| passes(failure.kind()))
    }
}

/// Signs the requests to one service in one region.
#[derive(Debug)]
pub struct Signer {
    credentials: AwsCredentialProvider,
    service: &'static str,
    region: String,
}

impl Signer {
    /// A signer for `service` in `region` with the credentials that `variables` lead to.
    ///
    /// # Errors
    /// When the variables contradict each other.
    pub fn new(variables: &Variables, service: &'static str, region: &str) -> Result<Self, Error> {
        let credentials = super::credentials(variables, region, TIMEOUT)?;
        Ok(Self { credentials, service, region: region.to_owned() })
    }

    /// `headers`, which are signed, and those that sign a POST to `url` whose body has the SHA-256 `digest`.
    ///
    /// # Errors
    /// See [`SignError`].
    pub async fn sign(&self, url: &Url, headers: HeaderMap, digest: &[u8]) -> Result<HeaderMap, SignError> {
        let credential = self.credentials.get_credential().await.map_err(SignError::Credentials)?;
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.as_str().parse::<Uri>().map_err(|error| SignError::Request(error.into()))?;
        *request.headers_mut() = headers;
        let authorizer = AwsAuthorizer::new(&credential, self.service, &self.region);
        authorizer.try_authorize(&mut request, Some(digest)).map_err(|error| SignError::Request(error.into()))?;
        let (parts, _) = request.into_parts();
        let mut headers = parts.headers;
        for name in ["authorization", "x-amz-security-token"] {
            if let Some(value) = headers.get_mut(name) {
                value.set_sensitive(true);
            }
        }
        Ok(headers)
    }
}
