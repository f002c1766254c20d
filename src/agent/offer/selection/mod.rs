//! Ranks tools for a user's question: by their words, and by their meaning where there is a service for it.
//!
//! **Invariant:** a service that fails loses no tool: words alone decide then.

mod meaning;
mod texts;
mod words;

use std::sync::Arc;

use self::texts::Texts;
use crate::agent::ports::embeddings::Embedder;
use crate::agent::ports::tools::OfferedTool;
use crate::chat::causes::Causes;

/// 4,000 characters of a message say what is wanted.
const QUESTION_CHARS: usize = 4000;

/// The usual constant of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): the first of a list is worth little more
/// than the tenth, so that none of two lists rules alone.
const FUSION: f64 = 60.0;

/// A search.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// In the words of the user or the model.
    pub question: &'a str,
    /// The names of tools that the last answer has used: "and the next one?" is about them.
    pub recent: &'a [&'a str],
}

/// Finds tools.
#[derive(Default)]
pub struct Finder {
    embedder: Option<Arc<dyn Embedder>>,
    texts: Texts,
}

impl Finder {
    /// Finds tools by their words, and by their meaning where there is an embedder.
    pub fn new(embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { embedder, texts: Texts::default() }
    }

    /// The indices of the tools that fit, best first; those that do not fit at all are left out.
    pub async fn ranked(&self, wanted: Wanted<'_>, tools: &[&OfferedTool]) -> Vec<usize> {
        let question: String = wanted.question.chars().take(QUESTION_CHARS).collect();
        let tools = self.texts.texts_for(tools);
        let by_words =
            words::ranked(&question, wanted.recent, &tools.iter().map(|tool| &tool.words).collect::<Vec<_>>());
        let embedder = self.embedder.as_deref().filter(|_| !question.trim().is_empty() && !tools.is_empty());
        let Some(embedder) = embedder else { return by_words };
        match meaning::ranked(&question, &tools, embedder).await {
            Ok(by_meaning) => fused(&[by_words, by_meaning], tools.len()),
            Err(error) => {
                // The service logs the details, once.
                tracing::debug!(error = %Causes(&error), "tools are found by their words alone");
                by_words
            }
        }
    }
}

/// One ranking of several: what stands high in more of them stands higher. Ties keep the order of the catalogue.
fn fused(rankings: &[Vec<usize>], count: usize) -> Vec<usize> {
    let mut scores = vec![0.0; count];
    for ranking in rankings {
        for (rank, at) in ranking.iter().enumerate() {
            if let Some(score) = scores.get_mut(*at) {
                *score += 1.0 / (FUSION + rank as f64 + 1.0);
            }
        }
    }
    by_score(&scores)
}

/// The indices of the scores above nothing, highest first; equal ones in order.
fn by_score(scores: &[f64]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
    indices.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rankings_are_fused_by_rank() {
        let rows = [
            ([vec![2, 0, 1], vec![]], vec![2, 0, 1], "an empty one says nothing"),
            ([vec![0, 1], vec![1, 0]], vec![0, 1], "a tie keeps the order of the catalogue"),
            ([vec![0, 1, 2], vec![2, 1]], vec![2, 1, 0], "what both know goes before what one knows"),
            ([vec![7], vec![]], vec![], "an index out of range is no tool's"),
        ];
        for (rankings, expected, reason) in rows {
            assert_eq!(fused(&rankings, 3), expected, "{reason}");
        }
    }
}
