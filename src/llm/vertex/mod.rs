//! Google Cloud's Vertex AI: <https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference>. It serves
//! models of Gemini's and of Claude's, each in the words of its maker, whose folders have them: here are its addresses and
//! its credentials.
//!
//! **Invariant:** requests have a token that ends soon, and no other secret.

mod credentials;
mod token;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::ExposeSecret;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Deserializer};

use self::credentials::{CredentialFile, Kind};
use self::token::{Source, Tokens};
use self::wire::{ANTHROPIC_VERSION, Place, Publisher};
use super::Setup;
use super::claude::{self, Version};
use super::gemini;
use super::http::{ConnectError, Endpoint};
use super::recorded;
use super::vendor::{self, Common, Facts, KindFacts, Own, Usual, UsualSetting, Wire};
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::causes::Causes;
use crate::chat::message::ModelOrigin;

/// 30 s for a token: one that has run out is renewed every 10 s until that succeeds.
const TOKEN_LIMIT: Duration = Duration::from_secs(30);

/// 2 s for one when the server starts: a metadata server is on its own machine, or there is none.
const START_LIMIT: Duration = Duration::from_secs(2);

/// The vendor as the table has it.
pub(super) const FACTS: Facts = Facts {
    name: "vertex",
    telemetry_name: "gcp.vertex_ai",
    needs_key: false,
    usual_key: None,
    usual_settings: &[
        UsualSetting { key: "project", variable: "GOOGLE_CLOUD_PROJECT", file_at_home: None },
        UsualSetting { key: "location", variable: "GOOGLE_CLOUD_LOCATION", file_at_home: None },
        UsualSetting {
            key: "credentials",
            variable: "GOOGLE_APPLICATION_CREDENTIALS",
            file_at_home: Some(".config/gcloud/application_default_credentials.json"),
        },
    ],
    is_spoken_by_others: false,
    sight: |model| Publisher::of_model(model).sight(),
    model_prefix: "",
    base_url: wire::BASE_URL,
    model: "gemini-2.5-flash",
    kinds: &[KindFacts { name: "vertex", needs_key: false, usual: Usual::Vendor }],
    defaults: vendor::defaults::<Config>,
    read: vendor::read::<Config>,
    // Answers of Claude's are read as at its own vendor's.
    wires: &[Wire { name: "vertex", recorded: |pieces| recorded::read(pieces, gemini::reader()) }],
};

/// What `[llm.vertex]` has besides.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// The project whose models are asked; empty is the one that the credentials name.
    project: String,
    /// `global`, `us`, `eu` or a region; empty is `global`.
    location: String,
    /// A file of credentials; empty is the metadata server.
    credentials: String,
    /// Whose models these are; without it told by their names.
    #[serde(deserialize_with = "publisher")]
    publisher: Option<Publisher>,
    /// Whether Claude's models that can be held to a schema are: a policy of the organisation has to allow it.
    structured_outputs: bool,
    /// The token of these credentials.
    #[serde(skip)]
    tokens: Arc<Tokens>,
}

/// A publisher; empty is none.
fn publisher<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Publisher>, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.is_empty() {
        return Ok(None);
    }
    Publisher::deserialize(StrDeserializer::new(&name)).map(Some)
}

impl Config {
    /// The file of credentials, where one is set.
    fn file(&self) -> Option<&Path> {
        Some(self.credentials.trim()).filter(|path| !path.is_empty()).map(Path::new)
    }

    /// The file, read.
    fn read_file(&self, section: &str) -> Result<Option<CredentialFile>, ConnectError> {
        let file = self.file().map(|path| CredentialFile::parse(path, std::fs::read(path))).transpose();
        file.map_err(|error| wrong(section, format!("cannot be used: {error}")))
    }

    /// Where the credentials come from, by the file's project where none is set; `None` where a token is given.
    fn source(&self, common: &Common, project: &str) -> Option<Source> {
        if has_token(common) {
            return None;
        }
        Some(match self.file() {
            Some(path) => Source::File { path: PathBuf::from(path), project: project.to_owned() },
            None => Source::Metadata,
        })
    }
}

/// Whether an access token is set itself.
fn has_token(common: &Common) -> bool {
    !common.api_key.expose_secret().trim().is_empty()
}

/// The mistake in the credentials.
fn wrong(section: &str, reason: String) -> ConnectError {
    ConnectError::Extra { section: section.to_owned(), key: "credentials".to_owned(), reason: reason.into() }
}

impl Own for Config {
    fn connect(&self, setup: Setup<'_>, common: &Common) -> Result<Arc<dyn LlmProvider>, ConnectError> {
        Ok(Arc::new(Vertex::new(setup, common, self)?))
    }

    fn has_credentials(&self) -> bool {
        self.file().is_some() || !self.project.trim().is_empty()
    }

    fn ready<'a>(&'a self, section: &'a str, common: &'a Common) -> BoxFuture<'a, Result<(), ConnectError>> {
        async move {
            if has_token(common) {
                return Ok(());
            }
            let file = self.read_file(section)?;
            // Others would have to be asked for a token, which is for the first request to do.
            if file.as_ref().is_some_and(|file| file.kind != Kind::ServiceAccount) {
                return Ok(());
            }
            let Some(source) = self.source(common, &self.project) else { return Ok(()) };
            let Err(error) = self.tokens.headers(&source, START_LIMIT).await else { return Ok(()) };
            let reason = Causes(&*error.detail);
            Err(match source {
                Source::File { .. } => wrong(section, format!("cannot be used: {reason}")),
                Source::Metadata => wrong(
                    section,
                    format!(
                        "is empty, there is no file of gcloud's, and the metadata server, which machines of Google Cloud \
                         have, gives nothing: {reason}"
                    ),
                ),
            })
        }
        .boxed()
    }
}

/// Vertex AI, or a proxy before it.
struct Vertex {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    publisher: Publisher,
    structured_outputs: bool,
    /// `None` where the endpoint has a token already.
    source: Option<Source>,
    tokens: Arc<Tokens>,
}

impl Vertex {
    /// The provider of one model.
    fn new(setup: Setup<'_>, common: &Common, own: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net, .. } = setup;
        let file = if has_token(common) { None } else { own.read_file(section)? };
        let project = match own.project.trim() {
            "" => file.as_ref().and_then(CredentialFile::project).unwrap_or_default(),
            set => set,
        };
        let publisher = own.publisher.unwrap_or_else(|| Publisher::of_model(&origin.model));
        let place = Place { base_url: &common.base_url, project, location: &own.location };
        let url = place.url(section, publisher, &origin.model)?;
        let endpoint = Endpoint::new(net, url, "text/event-stream", HeaderMap::new());
        let endpoint = endpoint.with_key(section, AUTHORIZATION, "Bearer ", &common.api_key)?;
        Ok(Self {
            endpoint,
            publisher,
            structured_outputs: own.structured_outputs,
            source: own.source(common, project),
            tokens: Arc::clone(&own.tokens),
            origin,
        })
    }

    /// The endpoint, with a token.
    async fn endpoint(&self) -> Result<Endpoint, ProviderError> {
        let endpoint = self.endpoint.clone();
        match &self.source {
            Some(source) => Ok(endpoint.with_headers(self.tokens.headers(source, TOKEN_LIMIT).await?)),
            None => Ok(endpoint),
        }
    }
}

#[async_trait]
impl LlmProvider for Vertex {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let endpoint = self.endpoint().await?;
        match self.publisher {
            Publisher::Google => gemini::ask(&endpoint, &self.origin, request).await,
            Publisher::Anthropic => {
                let version = Version::Body(ANTHROPIC_VERSION);
                claude::ask(&endpoint, &self.origin, request, version, self.structured_outputs).await
            }
        }
    }
}
