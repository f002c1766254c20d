//! Amazon Bedrock's Converse stream: <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html>,
//! its keys: <https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html>.
//!
//! **Invariant:** a key is a bearer token in a header. Where requests are signed instead, no key is sent.

mod block;
mod documents;
mod event;
mod fold;
mod frames;
mod model;
#[cfg(feature = "aws")]
mod signed;
#[cfg(test)]
mod tests;
mod wire;

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;

use self::fold::Fold;
use self::frames::EventStream as Frames;
use super::Setup;
use super::answer;
use super::anthropic;
use super::http::{self, ConnectError, Endpoint, Sign};
use super::recorded;
use super::vendor::{self, Common, Facts, KindFacts, Own, Usual, Wire};
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::aws::{Variables, is_region};
use crate::chat::message::ModelOrigin;
use crate::llm::files::{ALL, IMAGES, Known, READS, SEES, Sight};

/// What its models can be given (docs.aws.amazon.com, Supported models and model features; 24 November 2026).
const SIGHT: Sight = Sight {
    models: &[
        Known { name: "anthropic.claude-v2", input: READS },
        Known { name: "anthropic.claude-instant", input: READS },
        Known { name: "anthropic.claude-3-5-haiku", input: READS },
        Known { name: "anthropic.claude", input: ALL },
        Known { name: "amazon.nova-micro", input: READS },
        Known { name: "amazon.nova", input: ALL },
        Known { name: "llama3-2-11b", input: SEES },
        Known { name: "llama3-2-90b", input: SEES },
        Known { name: "llama4", input: SEES },
        Known { name: "pixtral", input: SEES },
    ],
    images: IMAGES,
    image_bytes: 3_750_000,
    image_side: 8000,
    images_max: 20,
    pdf_bytes: 4_500_000,
    pdfs_max: 5,
};

/// The address in the region that is asked where none is set.
const BASE_URL: &str = "https://bedrock-runtime.us-east-1.amazonaws.com";

/// Everything but the characters that no address encodes (RFC 3986, unreserved).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The vendor as the table has it.
pub(super) const FACTS: Facts = Facts {
    name: "bedrock",
    telemetry_name: "aws.bedrock",
    needs_key: true,
    usual_key: Some("AWS_BEARER_TOKEN_BEDROCK"),
    usual_settings: &[],
    is_spoken_by_others: false,
    sight: |_| &SIGHT,
    model_prefix: "",
    base_url: BASE_URL,
    model: "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
    kinds: &[KindFacts { name: "bedrock", needs_key: true, usual: Usual::Vendor }],
    defaults: vendor::defaults::<Config>,
    read: vendor::read::<Config>,
    wires: &[Wire { name: "bedrock", recorded: |pieces| recorded::read(pieces, reader()) }],
};

/// What `[llm.bedrock]` has besides.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// The region of AWS that is asked, where `base_url` is not set; empty is as `base_url` says.
    region: String,
    /// How the server knows who asks.
    auth: Auth,
}

/// How the server knows who asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Auth {
    /// By a key of Bedrock.
    #[default]
    Key,
    /// By a signature with the credentials that this machine has of AWS.
    Aws,
}

impl Own for Config {
    fn connect(&self, setup: Setup<'_>, common: &Common) -> Result<Arc<dyn LlmProvider>, ConnectError> {
        Ok(Arc::new(Bedrock::new(setup, common, self)?))
    }

    fn has_credentials(&self) -> bool {
        self.auth == Auth::Aws
    }
}

/// Bedrock, or a proxy before it.
struct Bedrock {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
}

impl Bedrock {
    /// The provider of one model.
    fn new(setup: Setup<'_>, common: &Common, own: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net, aws } = setup;
        if own.has_credentials()
            && let Some((name, reason)) = aws.mistake()
        {
            return Err(cannot_sign(section, format!("is \"aws\", and needs good variables: {name} {reason}")));
        }
        // Nothing is sent while the model thinks without telling, nor while it writes arguments of calls.
        let patience = net.patience.with_silence();
        // Whoever has credentials on this machine usually has a region there too.
        let region = match own.region.trim() {
            "" if own.has_credentials() && common.base_url.trim().trim_end_matches('/') == BASE_URL => aws.region(""),
            region => region,
        };
        let url = url(section, common, region, &origin.model)?;
        let signer = match own.auth {
            Auth::Key => None,
            Auth::Aws => {
                let region = region_of(&url).unwrap_or_else(|| aws.region(region));
                Some(net.signer(region, || signer(section, aws, region))?)
            }
        };
        let endpoint =
            Endpoint::new(net, url, "application/vnd.amazon.eventstream", HeaderMap::new()).with_patience(patience);
        let endpoint = match signer {
            Some(signer) => endpoint.with_signer(signer),
            None => endpoint.with_key(section, AUTHORIZATION, "Bearer ", &common.api_key)?,
        };
        Ok(Self { origin, endpoint })
    }
}

#[async_trait]
impl LlmProvider for Bedrock {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let body = |forgets| {
            let body = wire::Request::new(&request, &self.origin, forgets);
            if body.lacks_temperature(&request) {
                tracing::debug!(gen_ai.request.model = self.origin.model, "the model takes no temperature: left out");
            }
            body
        };
        let opened = anthropic::post(&self.endpoint, &self.origin.model, body).await?;
        Ok(answer::stream(&self.origin, opened, reader()))
    }
}

/// Where the model called `model` is asked. Its name may be an ARN, with colons and slashes: it is one segment, encoded once.
fn url(section: &str, common: &Common, region: &str, model: &str) -> Result<Url, ConnectError> {
    if !is_region(region) {
        let reason = "must be the name of a region, such as eu-central-1".into();
        return Err(ConnectError::Extra { section: section.to_owned(), key: "region".to_owned(), reason });
    }
    let of_region = format!("https://bedrock-runtime.{region}.amazonaws.com");
    let base = match common.base_url.trim().trim_end_matches('/') {
        set if region.is_empty() || set == of_region => set,
        BASE_URL => &of_region,
        _ => {
            let reason = "is another one than that of base_url: set one of them".into();
            return Err(ConnectError::Extra { section: section.to_owned(), key: "region".to_owned(), reason });
        }
    };
    let mut url = http::join(section, base, &["model"])?;
    // An encoded character is not encoded again here, as it would be as a segment.
    let path = format!("{}/{}/converse-stream", url.path(), utf8_percent_encode(model, SEGMENT));
    url.set_path(&path);
    Ok(url)
}

/// The region in an address of AWS's own: `bedrock-runtime.eu-central-1.amazonaws.com`, also with something before it.
fn region_of(url: &Url) -> Option<&str> {
    let mut labels = url.host_str().filter(|host| host.contains(".amazonaws.com"))?.split('.');
    labels.find(|label| label.starts_with("bedrock-runtime"))?;
    labels.next()
}

/// What signs the requests to Bedrock in `region`.
#[cfg(feature = "aws")]
fn signer(section: &str, aws: &Variables, region: &str) -> Result<Arc<dyn Sign>, ConnectError> {
    match signed::Signed::new(aws, region) {
        Ok(signed) => Ok(Arc::new(signed)),
        Err(_) => Err(cannot_sign(section, "is \"aws\", and needs variables of AWS that do not contradict each other")),
    }
}

#[cfg(not(feature = "aws"))]
fn signer(section: &str, _: &Variables, _: &str) -> Result<Arc<dyn Sign>, ConnectError> {
    Err(cannot_sign(section, "is \"aws\", and this server is built without the feature aws"))
}

fn cannot_sign(section: &str, reason: impl Into<Cow<'static, str>>) -> ConnectError {
    ConnectError::Extra { section: section.to_owned(), key: "auth".to_owned(), reason: reason.into() }
}

/// What reads the bytes of an answer.
fn reader() -> (Frames, impl answer::Fold) {
    (Frames::default(), Fold::default())
}
