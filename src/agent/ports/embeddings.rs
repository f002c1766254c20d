//! The embeddings' port: meanings of texts as vectors, by which tools are found among many.

use async_trait::async_trait;

/// Embeds texts.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// One vector per text, in order, all of the same length.
    ///
    /// # Errors
    /// When the service failed; whoever asks does without.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// A service that gave no vectors.
#[derive(Debug, thiserror::Error)]
#[error("the embeddings service failed")]
pub struct EmbedError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
