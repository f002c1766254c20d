//! The chain of credentials: a key of the variables, else a role by a web identity's token, else that of the container, else that
//! of the machine. What ends is fetched anew before it does.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::{BackoffConfig, CredentialProvider, Error, Result, RetryConfig};
use tokio::time::timeout;

use super::Variables;
use super::clients::Connector;

/// A request that fails is made so often again: a user waits for it.
const REPETITIONS: usize = 2;

/// The variables that tell where credentials come from, as the library names them.
const KEYS: [(&str, AmazonS3ConfigKey); 9] = [
    ("AWS_ACCESS_KEY_ID", AmazonS3ConfigKey::AccessKeyId),
    ("AWS_SECRET_ACCESS_KEY", AmazonS3ConfigKey::SecretAccessKey),
    ("AWS_SESSION_TOKEN", AmazonS3ConfigKey::Token),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
    ("AWS_ROLE_SESSION_NAME", AmazonS3ConfigKey::RoleSessionName),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", AmazonS3ConfigKey::ContainerCredentialsRelativeUri),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", AmazonS3ConfigKey::ContainerCredentialsFullUri),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", AmazonS3ConfigKey::ContainerAuthorizationTokenFile),
];

/// What is the same for every use: the clients, how often is tried, and for how long one request may take.
pub fn builder(timeout: Duration) -> AmazonS3Builder {
    let retry = RetryConfig { backoff: BackoffConfig::default(), max_retries: REPETITIONS, retry_timeout: timeout };
    AmazonS3Builder::new().with_http_connector(Connector { timeout, is_for_credentials: false }).with_retry(retry)
}

/// The credentials that `variables` lead to, for requests to `region`. Nothing is fetched before the first one. They are waited for
/// no longer than `timeout`.
///
/// # Errors
/// When the variables contradict each other.
pub fn credentials(variables: &Variables, region: &str, timeout: Duration) -> Result<AwsCredentialProvider> {
    // The chain is made by the builder of a store alone; no bucket is asked for it.
    let mut builder = builder(timeout).with_region(region).with_bucket_name("none");
    builder = builder.with_http_connector(Connector { timeout, is_for_credentials: true });
    for (name, key) in KEYS {
        if let Some(value) = variables.get(name) {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(Checked { credentials: Arc::clone(builder.build()?.credentials()), limit: timeout }))
}

/// Credentials that can be signed with: the library takes for granted that headers can carry them, and what is asked for them.
#[derive(Debug)]
struct Checked {
    credentials: AwsCredentialProvider,
    limit: Duration,
}

#[async_trait]
impl CredentialProvider for Checked {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>> {
        let wrong = |source: Box<dyn std::error::Error + Send + Sync>| Error::Generic { store: "AWS", source };
        // It panics where a header or an address is none, such as a token with a line end.
        let fetched = AssertUnwindSafe(self.credentials.get_credential()).catch_unwind();
        let credential = match timeout(self.limit, fetched).await {
            Ok(Ok(fetched)) => fetched?,
            Ok(Err(_)) => return Err(wrong("a variable or a file of AWS cannot be sent as it is".into())),
            Err(_) => {
                let late = format!("no credentials of AWS within {} s", self.limit.as_secs());
                return Err(wrong(HttpError::new_boxed(HttpErrorKind::Timeout, late.into()).into()));
            }
        };
        let fits = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
        match fits(&credential.key_id) && credential.token.as_deref().is_none_or(fits) {
            true => Ok(credential),
            false => Err(wrong("the credentials have characters that no http header can carry".into())),
        }
    }
}
