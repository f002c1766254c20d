//! Whether a rule of the right form makes sense. Three questions in a fixed order, each answered with its first problem:
//! do the configs fit their action types, do the edges form one graph, do they leave by ports that exist.
//!
//! **Invariant:** pure. Whether the entity, the trigger or a product named in a config exists is not asked here.

mod config;
mod duration;
mod graph;
mod ports;

use super::input::RuleInput;
use crate::demo::backend::records::action_types::ActionTypes;
pub use graph::Link;

/// The ends of `input`'s edges, in the order of the edges.
///
/// # Errors
/// The problems, in words: `action config: action[i] (name): …`, `graph: …`, `output port: edge[i]: …`, at most one of each.
pub fn check(input: &RuleInput, types: &ActionTypes) -> Result<Vec<Link>, Vec<String>> {
    let mut problems = Vec::new();
    if let Err(problem) = config::check(&input.actions, types) {
        problems.push(format!("action config: {problem}"));
    }
    let links = graph::check(&input.actions, &input.edges);
    if let Err(problem) = &links {
        problems.push(format!("graph: {problem}"));
    }
    if let Err(problem) = ports::check(input, types) {
        problems.push(format!("output port: {problem}"));
    }
    match links {
        Ok(links) if problems.is_empty() => Ok(links),
        Ok(_) | Err(_) => Err(problems),
    }
}
