//! Access tokens of Google Cloud. The first request fetches one, all others wait for the same; it is renewed before it
//! expires. What failed is forgotten: the next call reads the file anew and asks anew.
//!
//! **Invariant:** a token is in the headers of requests alone, marked as secret.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use google_cloud_auth::build_errors;
use google_cloud_auth::credentials::{CacheableResource, Credentials, mds};
use google_cloud_auth::errors::CredentialsError;
use http::Extensions;
use reqwest::header::HeaderMap;
use secrecy::SecretString;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::credentials::{CredentialFile, FileError, SCOPE, secrets_of_subject};
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::llm::failure;

/// Where credentials come from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A file, of a project's user or service.
    File {
        /// Its path.
        path: PathBuf,
        /// The project that a user's requests are counted for, where the file names none.
        project: String,
    },
    /// The metadata server that machines of Google Cloud have.
    Metadata,
}

/// The access token of one section of the configuration, shared by all of its models.
#[derive(Default)]
pub(super) struct Tokens(Mutex<Option<Arc<Built>>>);

/// Credentials, whose own task renews their token as long as they are held.
struct Built {
    credentials: Credentials,
    /// What must not appear in errors.
    secrets: Vec<SecretString>,
    /// The file of a word that must not either.
    subject: Option<PathBuf>,
}

/// Why there is no access token.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error("no access token of Google Cloud")]
    File(#[from] FileError),
    #[error("no access token of Google Cloud")]
    Build(#[from] build_errors::Error),
    #[error("no access token of Google Cloud")]
    Refused(#[source] CredentialsError),
    #[error("no access token of Google Cloud within {} s", .0.as_secs())]
    Late(Duration),
    /// Only who has it already is told so.
    #[error("no access token of Google Cloud: an unchanged one was not asked for")]
    Unchanged,
}

impl TokenError {
    fn kind(&self) -> ProviderErrorKind {
        match self {
            Self::Refused(error) if error.is_transient() => ProviderErrorKind::Unavailable { retry_after: None },
            // The operator must act: the same request would fail again.
            Self::File(_) | Self::Build(_) | Self::Refused(_) | Self::Unchanged => ProviderErrorKind::Unauthorized,
            Self::Late(_) => ProviderErrorKind::TimedOut,
        }
    }
}

impl Tokens {
    /// The headers that a request has by the credentials of `source`, within `limit`.
    ///
    /// # Errors
    /// When there is no token: by a file or an answer that will not change, or one that comes later.
    pub(super) async fn headers(&self, source: &Source, limit: Duration) -> Result<HeaderMap, ProviderError> {
        let built = self.built(source).await.map_err(|error| shown(error, &[]))?;
        let error = match timeout(limit, built.credentials.headers(Extensions::new())).await {
            Ok(Ok(CacheableResource::New { data, .. })) => return Ok(data),
            Ok(Ok(CacheableResource::NotModified)) => TokenError::Unchanged,
            Ok(Err(error)) => TokenError::Refused(error),
            Err(_) => TokenError::Late(limit),
        };
        self.forget(&built).await;
        Err(shown(error, &built.all_secrets().await))
    }

    /// The credentials of `source`, made once.
    async fn built(&self, source: &Source) -> Result<Arc<Built>, TokenError> {
        let mut held = self.0.lock().await;
        if let Some(built) = &*held {
            return Ok(Arc::clone(built));
        }
        let built = Arc::new(match source {
            Source::File { path, project } => Built::of_file(path, project).await?,
            Source::Metadata => Built {
                credentials: mds::Builder::default().with_scopes([SCOPE]).build()?,
                secrets: Vec::new(),
                subject: None,
            },
        });
        *held = Some(Arc::clone(&built));
        Ok(built)
    }

    /// Makes the next call begin anew, unless one has already.
    async fn forget(&self, failed: &Arc<Built>) {
        let mut held = self.0.lock().await;
        if held.as_ref().is_some_and(|built| Arc::ptr_eq(built, failed)) {
            *held = None;
        }
    }
}

impl Built {
    async fn of_file(path: &Path, project: &str) -> Result<Self, TokenError> {
        let file = CredentialFile::parse(path, tokio::fs::read(path).await)?;
        let (secrets, subject) = (file.secrets(), file.subject());
        Ok(Self { credentials: file.credentials(project)?, secrets, subject })
    }

    /// What no error may have. The word of who vouches for somebody is another one now and again.
    async fn all_secrets(&self) -> Vec<SecretString> {
        let word = match &self.subject {
            Some(path) => tokio::fs::read_to_string(path).await.unwrap_or_default(),
            None => String::new(),
        };
        self.secrets.iter().cloned().chain(secrets_of_subject(&word)).collect()
    }
}

/// The error, fit for the log.
fn shown(error: TokenError, secrets: &[SecretString]) -> ProviderError {
    failure::cleaned(ProviderError::new(error.kind(), error), secrets)
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}
