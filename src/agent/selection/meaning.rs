//! Tools by meaning: how near their vectors are to the question's.

use crate::agent::ports::embeddings::{EmbedError, Embedder};
use crate::agent::ports::tools::OfferedTool;

/// All places, nearest first.
pub(super) async fn ranked(
    question: &str,
    tools: &[&OfferedTool],
    embedder: &dyn Embedder,
) -> Result<Vec<usize>, EmbedError> {
    let texts: Vec<String> = tools.iter().map(|tool| text_of(tool)).collect();
    let asked: Vec<&str> = std::iter::once(question).chain(texts.iter().map(String::as_str)).collect();
    let vectors = embedder.embed(&asked).await?;
    let Some((question, tools)) = vectors.split_first() else { return Ok(Vec::new()) };
    let near: Vec<f64> = tools.iter().map(|tool| cosine(question, tool)).collect();
    let mut places: Vec<usize> = (0..near.len()).collect();
    places.sort_by(|a, b| near[*b].total_cmp(&near[*a]).then(a.cmp(b)));
    Ok(places)
}

/// What is embedded of a tool: the same text for the same definition, so that its vector is fetched once.
fn text_of(tool: &OfferedTool) -> String {
    let mut text = format!("{}: {}", tool.def.name, tool.def.description);
    for sample in &tool.samples {
        text.push('\n');
        text.push_str(sample);
    }
    text
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
