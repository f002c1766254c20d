//! Tools by meaning: how near their vectors are to the question's.

use std::sync::Arc;

use super::texts::Text;
use crate::agent::ports::embeddings::{EmbedError, Embedder};

/// The indices of those that have a vector, nearest first.
pub(super) async fn ranked(
    question: &str,
    tools: &[Arc<Text>],
    embedder: &dyn Embedder,
) -> Result<Vec<usize>, EmbedError> {
    let texts: Vec<&str> = tools.iter().map(|tool| tool.meant.as_str()).collect();
    let (question, tools) = embedder.embed(question, &texts).await?;
    let near = tools.iter().enumerate().filter_map(|(at, tool)| Some((at, cosine(&question, tool.as_ref()?))));
    let mut near: Vec<(usize, f64)> = near.collect();
    near.sort_by(|(a, near_a), (b, near_b)| near_b.total_cmp(near_a).then(a.cmp(b)));
    Ok(near.into_iter().map(|(at, _)| at).collect())
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
