//! `[embeddings]`: vectors of texts from a server that speaks `POST {base_url}/embeddings`
//! (<https://platform.openai.com/docs/api-reference/embeddings>). Known vectors are cached; a server that fails gets no
//! requests for a while, so that no run waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use futures::StreamExt;
use moka::future::Cache;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use super::failure::{REDIRECTED, is_about};
use super::http::{ConnectError, Endpoint, Net, Patience, join};
use crate::agent::ports::embeddings::{EmbedError, Embedder, Vector};
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::bounded::json::parse_bytes;
use crate::chat::causes::Causes;

/// 32 MiB of an answer: 256 vectors of 4,096 numbers with all their digits.
const ANSWER_BYTES: usize = 32 << 20;

/// 256 texts in one request at first; servers that take fewer (10, 32, 100) say so.
const BATCH: usize = 256;

/// 4 texts may be refused before one is taken. Where more are, it is not they that are wrong.
const MOST_REFUSED: usize = 4;

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
    /// By the digest of the text; none of one that the server refuses.
    known: Cache<Vec<u8>, Option<Vector>>,
    /// How many texts the server takes in one request, as far as is known.
    batch: AtomicUsize,
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
    #[error("the server refuses the question")]
    Refused,
    #[error(transparent)]
    Http(#[from] ProviderError),
}

impl Failed {
    /// Whether it is the texts that the server refuses (400, 413, 422): they are too many, too long, or worse.
    fn is_of_texts(&self) -> bool {
        use ProviderErrorKind::{ContentFiltered, ContextTooLong, Rejected};
        let Self::Http(error) = self else { return false };
        matches!(error.kind, Rejected | ContextTooLong | ContentFiltered) && !is_about(error, REDIRECTED)
    }
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
        let (known, batch, alone_until) = (Cache::new(REMEMBERED), AtomicUsize::new(BATCH), Mutex::new(None));
        Ok(Self { endpoint, model: config.model.trim().to_owned(), patience, known, batch, alone_until })
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

    /// The vectors of a question and of texts that are not known yet; none of those that the server refuses.
    async fn fetch(&self, texts: &[&str]) -> Result<Vec<Option<Vector>>, Failed> {
        self.admit()?;
        let vectors = timeout(self.patience, self.ask_all(texts)).await.unwrap_or(Err(Failed::TimedOut));
        self.note(vectors.is_ok());
        if let Err(error) = &vectors {
            tracing::warn!(error = %Causes(error), "no embeddings; tools are found by their words alone for a while");
        }
        vectors
    }

    /// The same, in as many requests as the server wants; what comes is remembered at once, and so is which texts are refused where
    /// others are not.
    async fn ask_all(&self, texts: &[&str]) -> Result<Vec<Option<Vector>>, Failed> {
        let (mut size, mut refused) = (self.batch.load(Ordering::Relaxed), Vec::new());
        let mut vectors: Vec<Option<Vector>> = Vec::with_capacity(texts.len());
        while let Some(left) = texts.get(vectors.len()..).filter(|left| !left.is_empty()) {
            let batch = &left[..size.min(left.len())];
            let came = match self.ask(batch).await {
                Ok(came) => {
                    self.batch.store(size, Ordering::Relaxed);
                    came.into_iter().map(Some).collect()
                }
                Err(error) if !error.is_of_texts() => return Err(error),
                Err(_) if batch.len() > 1 => {
                    size = batch.len() / 2;
                    continue;
                }
                Err(error) => {
                    let shortened = self.ask_shortened(batch[0]).await?;
                    if shortened.is_none() && !vectors.is_empty() {
                        refused.push(batch[0]);
                        if refused.len() > MOST_REFUSED && vectors.iter().all(Option::is_none) {
                            return Err(error);
                        }
                    }
                    // It was this text, and not how many they were.
                    size = self.batch.load(Ordering::Relaxed);
                    vec![shortened]
                }
            };
            for (text, vector) in batch.iter().zip(came) {
                // The first one is the question.
                if !vectors.is_empty() && vector.is_some() {
                    self.known.insert(key(text), vector.clone()).await;
                }
                vectors.push(vector);
            }
            // Where none is taken, they may not be what is wrong.
            if vectors.iter().any(Option::is_some) {
                for text in refused.drain(..) {
                    self.known.insert(key(text), None).await;
                }
            }
        }
        Ok(vectors)
    }

    /// The vector of the first quarter of a text; none where that is refused too.
    async fn ask_shortened(&self, text: &str) -> Result<Option<Vector>, Failed> {
        match self.ask(&[cut(text, text.chars().count() / 4)]).await {
            Ok(came) => Ok(came.into_iter().next()),
            Err(error) if error.is_of_texts() => Ok(None),
            Err(error) => Err(error),
        }
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
    async fn embed(&self, question: &str, texts: &[&str]) -> Result<(Vector, Vec<Option<Vector>>), EmbedError> {
        let texts: Vec<&str> = texts.iter().map(|text| cut(text, TEXT_CHARS)).collect();
        let mut vectors: Vec<Option<Option<Vector>>> = Vec::with_capacity(texts.len());
        for text in &texts {
            vectors.push(self.known.get(&key(text)).await);
        }
        let missing: Vec<usize> = (0..texts.len()).filter(|at| vectors[*at].is_none()).collect();
        let question = cut(question, TEXT_CHARS);
        let wanted: Vec<&str> = [question].into_iter().chain(missing.iter().map(|at| texts[*at])).collect();
        let mut fetched = self.fetch(&wanted).await.map_err(|error| EmbedError(error.into()))?.into_iter();
        let question = fetched.next().flatten().ok_or_else(|| EmbedError(Failed::Refused.into()))?;
        for (at, vector) in missing.into_iter().zip(fetched) {
            vectors[at] = Some(vector);
        }
        let vectors: Vec<Option<Vector>> = vectors.into_iter().flatten().collect();
        // Another model behind the same name: the cached vectors do not fit its own.
        if vectors.len() != texts.len() || vectors.iter().flatten().any(|vector| vector.len() != question.len()) {
            self.known.invalidate_all();
            return Err(EmbedError(Failed::Shape.into()));
        }
        Ok((question, vectors))
    }
}

/// What a text is remembered by.
fn key(text: &str) -> Vec<u8> {
    digest(&SHA256, text.as_bytes()).as_ref().to_vec()
}

/// So many characters of a text at most.
fn cut(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}
