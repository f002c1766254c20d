//! `[embeddings]`: vectors of texts from a server that speaks `POST {base_url}/embeddings`
//! (<https://platform.openai.com/docs/api-reference/embeddings>). Known vectors are cached; a server that fails gets no
//! requests for a while, so that no run waits for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use futures::StreamExt;
use moka::future::Cache;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use super::http::{ConnectError, Endpoint, Net, Patience, join};
use crate::agent::ports::embeddings::{EmbedError, Embedder, Vector};
use crate::bounded::json::parse_bytes;
use crate::chat::causes::Causes;

/// 32 MiB of an answer: 256 vectors of 4,096 numbers with all their digits.
const ANSWER_BYTES: usize = 32 << 20;

/// 256 texts in one request, which every server takes.
const BATCH: usize = 256;

/// 4,000 characters of a text: its meaning is clear by then.
const TEXT_CHARS: usize = 4000;

/// 8,192 numbers in a vector; no model gives more.
const DIMENSIONS: usize = 8192;

/// 4,096 vectors are remembered.
const REMEMBERED: u64 = 4096;

/// 30 s in which a server that has failed gets no requests.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// `[embeddings]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingsConfig {
    /// What stands before `/embeddings`; empty turns it off.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The key; empty is none.
    #[serde(deserialize_with = "super::config::secret")]
    pub api_key: SecretString,
    /// Seconds for all vectors that a run needs.
    pub timeout_s: u64,
}

impl EmbeddingsConfig {
    /// Whether there is a server to ask.
    pub fn is_on(&self) -> bool {
        !self.base_url.trim().is_empty()
    }
}

/// The server, and a cache of its vectors.
pub struct Embeddings {
    endpoint: Endpoint,
    model: String,
    patience: Duration,
    /// By the digest of the text.
    known: Cache<Vec<u8>, Vector>,
    /// Until when it gets no requests.
    alone_until: Mutex<Option<Instant>>,
}

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the server has just failed and is left alone for a while")]
    LeftAlone,
    #[error("the server did not answer in time")]
    TimedOut,
    #[error("the answer has more than {ANSWER_BYTES} bytes")]
    TooLong,
    #[error("the answer cannot be read")]
    Json(#[source] serde_json::Error),
    #[error("the answer has not one vector for each text, all of one length")]
    Shape,
    #[error(transparent)]
    Http(#[from] crate::agent::ports::llm::ProviderError),
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<ErrorBody>,
}

#[derive(Deserialize)]
struct ErrorBody {
    index: usize,
    embedding: Vec<f32>,
}

impl Embeddings {
    /// The server that `config` names.
    ///
    /// # Errors
    /// When the address or the key cannot be used.
    pub fn connect(config: &EmbeddingsConfig) -> Result<Self, ConnectError> {
        let patience = Duration::from_secs(config.timeout_s);
        let net = Net::new(Patience { first_byte: Some(patience), idle: Some(patience), progress: None })?;
        let url = join("embeddings", &config.base_url, &["embeddings"])?;
        let endpoint = Endpoint::new(&net, url, "application/json", HeaderMap::new());
        let endpoint = endpoint.with_key("embeddings", AUTHORIZATION, "Bearer ", &config.api_key)?;
        let known = Cache::new(REMEMBERED);
        Ok(Self { endpoint, model: config.model.trim().to_owned(), patience, known, alone_until: Mutex::new(None) })
    }

    /// Leave to ask; whoever gets it after a failure keeps all others waiting for their turn.
    fn admit(&self) -> Result<(), Failed> {
        let mut until = self.alone_until.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match *until {
            Some(at) if now < at => Err(Failed::LeftAlone),
            Some(_) => {
                *until = Some(now + LEFT_ALONE);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn note(&self, is_well: bool) {
        let until = (!is_well).then(|| Instant::now() + LEFT_ALONE);
        *self.alone_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// The vectors of texts that are not known yet.
    async fn fetch(&self, texts: &[&str]) -> Result<Vec<Vector>, Failed> {
        self.admit()?;
        let fetched = timeout(self.patience, async {
            let mut vectors = Vec::with_capacity(texts.len());
            for batch in texts.chunks(BATCH) {
                vectors.extend(self.ask(batch).await?);
            }
            Ok(vectors)
        });
        let vectors = fetched.await.unwrap_or(Err(Failed::TimedOut));
        self.note(vectors.is_ok());
        if let Err(error) = &vectors {
            tracing::warn!(error = %Causes(error), "no embeddings; tools are found by their words alone for a while");
        }
        vectors
    }

    async fn ask(&self, texts: &[&str]) -> Result<Vec<Vector>, Failed> {
        let request = Request { model: &self.model, input: texts, encoding_format: "float" };
        let mut opened = self.endpoint.post(&request).await?;
        let mut body = Vec::new();
        while let Some(piece) = opened.body.next().await {
            let piece = piece?;
            if body.len() + piece.len() > ANSWER_BYTES {
                return Err(Failed::TooLong);
            }
            body.extend_from_slice(&piece);
        }
        let Answer { mut data } = parse_bytes(&body).map_err(Failed::Json)?;
        data.sort_by_key(|vector| vector.index);
        let length = data.first().map_or(0, |vector| vector.embedding.len());
        let is_whole = data.len() == texts.len()
            && (1..=DIMENSIONS).contains(&length)
            && data.iter().enumerate().all(|(at, vector)| vector.index == at && vector.embedding.len() == length)
            && data.iter().flat_map(|vector| &vector.embedding).all(|number| number.is_finite());
        if !is_whole {
            return Err(Failed::Shape);
        }
        Ok(data.into_iter().map(|vector| vector.embedding.into()).collect())
    }
}

#[async_trait]
impl Embedder for Embeddings {
    async fn embed(&self, question: &str, texts: &[&str]) -> Result<(Vector, Vec<Vector>), EmbedError> {
        let texts: Vec<&str> = texts.iter().map(|text| cut(text)).collect();
        let mut vectors: Vec<Option<Vector>> = Vec::with_capacity(texts.len());
        for text in &texts {
            vectors.push(self.known.get(digest(&SHA256, text.as_bytes()).as_ref()).await);
        }
        let missing: Vec<usize> = (0..texts.len()).filter(|at| vectors[*at].is_none()).collect();
        let wanted: Vec<&str> = [cut(question)].into_iter().chain(missing.iter().map(|at| texts[*at])).collect();
        let mut fetched = self.fetch(&wanted).await.map_err(|error| EmbedError(error.into()))?.into_iter();
        let question = fetched.next().ok_or_else(|| EmbedError(Failed::Shape.into()))?;
        for (at, vector) in missing.into_iter().zip(fetched) {
            let key = digest(&SHA256, texts[at].as_bytes()).as_ref().to_vec();
            self.known.insert(key, Arc::clone(&vector)).await;
            vectors[at] = Some(vector);
        }
        let vectors: Vec<Vector> = vectors.into_iter().flatten().collect();
        // Another model behind the same name: the cached vectors do not fit its own.
        if vectors.len() != texts.len() || vectors.iter().any(|vector| vector.len() != question.len()) {
            self.known.invalidate_all();
            return Err(EmbedError(Failed::Shape.into()));
        }
        Ok((question, vectors))
    }
}

/// As much of a text as its meaning needs.
fn cut(text: &str) -> &str {
    text.char_indices().nth(TEXT_CHARS).map_or(text, |(at, _)| &text[..at])
}
