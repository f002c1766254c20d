//! The embeddings' port: meanings of texts as vectors, by which tools are found among many.

use std::sync::Arc;

use async_trait::async_trait;

/// A text's meaning.
pub type Vector = Arc<[f32]>;

/// Embeds texts.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The vector of `question`, and one per text, in order; all of the same length. A text that the service refuses has none.
    /// The texts come again and their vectors are remembered; a question does not.
    ///
    /// # Errors
    /// When the service failed; whoever asks does without.
    async fn embed(&self, question: &str, texts: &[&str]) -> Result<(Vector, Vec<Option<Vector>>), EmbedError>;
}

/// A service that gave no vectors.
#[derive(Debug, thiserror::Error)]
#[error("the embeddings service failed")]
pub struct EmbedError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
