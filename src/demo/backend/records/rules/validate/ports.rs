//! Whether each edge leaves its source by a port that the source's type has.

use super::graph::References;
use crate::demo::backend::records::action_types::ActionTypes;
use crate::demo::backend::records::rules::input::RuleInput;
use crate::demo::backend::records::rules::rule::EdgeType;

/// Nothing, when every port exists. An edge whose source is unknown is the graph's problem and passed over here.
///
/// # Errors
/// The first problem: `edge[i]: …`.
pub fn check(input: &RuleInput, types: &ActionTypes) -> Result<(), String> {
    let references = References::new(&input.actions);
    for (index, edge) in input.edges.iter().enumerate() {
        // No port named means success when the rule runs.
        let Some(port) = edge.output.as_deref() else {
            continue;
        };
        match edge.kind {
            EdgeType::Start => return Err(format!("edge[{index}]: a start edge must not have a source_output")),
            EdgeType::Always => return Err(format!("edge[{index}]: an always edge must not have a source_output")),
            EdgeType::Sequence => {}
        }
        let source = references.find(&edge.source).and_then(|place| input.actions.get(place));
        let Some(known) = source.and_then(|action| types.named(&action.action_type)) else {
            continue;
        };
        let names: Vec<&str> = known.output_ports.iter().map(|port| port.name.as_str()).collect();
        if !names.contains(&port) {
            let source_type = source.map_or("", |action| &action.action_type);
            return Err(format!(
                "edge[{index}]: {port:?} is not an output port of {source_type}; it has {}",
                names.join(", ")
            ));
        }
    }
    Ok(())
}
