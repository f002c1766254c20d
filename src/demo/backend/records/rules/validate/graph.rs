//! Whether the edges make one graph of the actions: one start, known ends, no cycle, no active action out of reach.
//!
//! An inactive action may stand apart: an update leaves such ones behind, and a rule must be savable as it was read.

use std::collections::HashMap;

use uuid::Uuid;

use crate::demo::backend::records::rules::input::{ActionInput, EdgeInput};
use crate::demo::backend::records::rules::rule::EdgeType;

/// An edge's ends, as places in the list of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The action it leaves; `None` for the start.
    pub source: Option<usize>,
    /// The action it leads to.
    pub target: usize,
}

/// Finds actions by what an edge calls them.
pub struct References {
    by_id: HashMap<Uuid, usize>,
    count: usize,
}

impl References {
    /// The references that edges between `actions` may use.
    pub fn new(actions: &[ActionInput]) -> Self {
        let ids = actions.iter().enumerate().filter_map(|(index, action)| Some((action.id?, index)));
        Self { by_id: ids.collect(), count: actions.len() }
    }

    /// The place of the action that `text` means: `temp:<index>` or an id.
    pub fn find(&self, text: &str) -> Option<usize> {
        match text.strip_prefix("temp:") {
            Some(index) => index.parse().ok().filter(|index| *index < self.count),
            None => self.by_id.get(&Uuid::try_parse(text).ok()?).copied(),
        }
    }
}

/// The ends of `edges`, in their order.
///
/// # Errors
/// The first problem, in words.
pub fn check(actions: &[ActionInput], edges: &[EdgeInput]) -> Result<Vec<Link>, String> {
    if edges.is_empty() && actions.iter().any(|action| action.is_active) {
        return Err("the actions are not connected: edges are required".to_owned());
    }
    let starts = edges.iter().filter(|edge| edge.kind == EdgeType::Start).count();
    if !edges.is_empty() && starts != 1 {
        return Err(format!("exactly one start edge is required, found {starts}"));
    }
    let references = References::new(actions);
    let mut links = Vec::with_capacity(edges.len());
    for (index, edge) in edges.iter().enumerate() {
        links.push(link(edge, &references).map_err(|problem| format!("edge[{index}]: {problem}"))?);
    }
    require_acyclic(actions, &links)?;
    require_reachable(actions, &links)?;
    Ok(links)
}

fn link(edge: &EdgeInput, references: &References) -> Result<Link, String> {
    let source = match (edge.kind, edge.source.as_str()) {
        (EdgeType::Start, "") => None,
        (EdgeType::Start, _) => return Err("a start edge must not have a source_action_id".to_owned()),
        (EdgeType::Sequence | EdgeType::Always, "") => return Err("source_action_id is required".to_owned()),
        (EdgeType::Sequence | EdgeType::Always, text) => {
            let place = references.find(text);
            Some(place.ok_or_else(|| format!("source_action_id {text:?} matches no action"))?)
        }
    };
    let target = references.find(&edge.target);
    let target = target.ok_or_else(|| format!("target_action_id {:?} matches no action", edge.target))?;
    Ok(Link { source, target })
}

/// Kahn: take away, again and again, what nothing leads to; what remains lies on a cycle or behind one.
fn require_acyclic(actions: &[ActionInput], links: &[Link]) -> Result<(), String> {
    let followers = followers(actions.len(), links);
    let mut incoming = vec![0_usize; actions.len()];
    for link in links.iter().filter(|link| link.source.is_some()) {
        incoming[link.target] += 1;
    }
    let mut free: Vec<usize> = (0..actions.len()).filter(|index| incoming[*index] == 0).collect();
    while let Some(index) = free.pop() {
        for &next in &followers[index] {
            incoming[next] -= 1;
            if incoming[next] == 0 {
                free.push(next);
            }
        }
    }
    match incoming.iter().position(|count| *count > 0) {
        None => Ok(()),
        Some(index) => Err(format!("the edges form a cycle at action[{index}] ({})", actions[index].name)),
    }
}

fn require_reachable(actions: &[ActionInput], links: &[Link]) -> Result<(), String> {
    let followers = followers(actions.len(), links);
    let mut reached = vec![false; actions.len()];
    let mut open: Vec<usize> = links.iter().filter(|link| link.source.is_none()).map(|link| link.target).collect();
    while let Some(index) = open.pop() {
        if !std::mem::replace(&mut reached[index], true) {
            open.extend(&followers[index]);
        }
    }
    let mut lost = actions.iter().enumerate().filter(|(index, action)| action.is_active && !reached[*index]);
    match lost.next() {
        None => Ok(()),
        Some((index, action)) => Err(format!("action[{index}] ({}) cannot be reached from the start", action.name)),
    }
}

fn followers(count: usize, links: &[Link]) -> Vec<Vec<usize>> {
    let mut followers = vec![Vec::new(); count];
    for link in links {
        if let Some(source) = link.source {
            followers[source].push(link.target);
        }
    }
    followers
}
