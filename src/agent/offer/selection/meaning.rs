//! Tools by meaning: how near their vectors are to the question's.

use std::sync::Arc;

use super::texts::Text;
use crate::agent::ports::embeddings::{EmbedError, Embedder};

/// All indices, nearest first.
pub(super) async fn ranked(
    question: &str,
    tools: &[Arc<Text>],
    embedder: &dyn Embedder,
) -> Result<Vec<usize>, EmbedError> {
    let texts: Vec<&str> = tools.iter().map(|tool| tool.meant.as_str()).collect();
    let (question, tools) = embedder.embed(question, &texts).await?;
    let near: Vec<f64> = tools.iter().map(|tool| cosine(&question, tool)).collect();
    let mut indices: Vec<usize> = (0..near.len()).collect();
    indices.sort_by(|a, b| near[*b].total_cmp(&near[*a]).then(a.cmp(b)));
    Ok(indices)
}

/// The cosine of two vectors; 0 where one of them has no direction.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { dot(a, b) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cosine_is_of_directions() {
        let rows: [(&[f32], &[f32], f64, &str); 4] = [
            (&[1.0, 0.0], &[2.0, 0.0], 1.0, "the same direction"),
            (&[1.0, 0.0], &[0.0, 3.0], 0.0, "nothing in common"),
            (&[1.0, 0.0], &[-1.0, 0.0], -1.0, "the opposite"),
            (&[0.0, 0.0], &[1.0, 1.0], 0.0, "no direction"),
        ];
        for (a, b, expected, reason) in rows {
            assert!((cosine(a, b) - expected).abs() < 1e-9, "{reason}");
        }
    }
}
