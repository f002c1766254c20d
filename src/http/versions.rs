//! The versions of a question and of its answers: a message that was edited and an answer that was given again begin
//! branches of their own, and whoever reads one branch learns where the others are.

use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::agent::ports::conversations::RunNode;
use crate::chat::ids::RunId;

/// The versions of something, oldest first.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Versions)]
pub(super) struct VersionsBody {
    /// Which of them this is, counted from 0.
    at: usize,
    /// What `branch` takes to read each: the newest run behind it.
    branches: Vec<String>,
}

/// The runs of a conversation as a tree.
pub(super) struct Tree {
    nodes: HashMap<RunId, RunNode>,
    /// The runs that begin with a question, by the run and the message of it that they go on from, oldest first.
    asking: HashMap<(Option<RunId>, Option<i64>), Vec<RunId>>,
    /// The newest run behind each run, itself included, and its place in time.
    newest: HashMap<RunId, (usize, RunId)>,
}

impl Tree {
    /// The tree of these runs, oldest first.
    pub(super) fn of(nodes: Vec<RunNode>) -> Self {
        let mut tree = Self { nodes: HashMap::new(), asking: HashMap::new(), newest: HashMap::new() };
        for (at, node) in nodes.iter().enumerate() {
            tree.newest.insert(node.run, (at, node.run));
            if node.asked.is_some() {
                tree.asking.entry((node.parent, node.message)).or_default().push(node.run);
            }
        }
        // A run begins after the one that it goes on from: from the newest back, what is behind a run is known before it.
        for node in nodes.iter().rev() {
            let tip = tree.newest.get(&node.run).copied();
            let behind = node.parent.and_then(|parent| tree.newest.get_mut(&parent));
            if let (Some(tip), Some(known)) = (tip, behind) {
                *known = tip.max_by_time(*known);
            }
        }
        tree.nodes = nodes.into_iter().map(|node| (node.run, node)).collect();
        tree
    }

    /// The texts of the question that begins `run`; `None` where it has one.
    pub(super) fn questions(&self, run: RunId) -> Option<VersionsBody> {
        let mut texts: Vec<(&str, (usize, RunId))> = Vec::new();
        for (sibling, asked) in self.siblings(run) {
            let Some(tip) = self.newest.get(&sibling).copied() else { continue };
            match texts.iter_mut().find(|(known, _)| *known == asked) {
                Some((_, newest)) => *newest = tip.max_by_time(*newest),
                None => texts.push((asked, tip)),
            }
        }
        let own = self.nodes.get(&run)?.asked.as_deref()?;
        let at = texts.iter().position(|(asked, _)| *asked == own)?;
        versions(at, texts.into_iter().map(|(_, tip)| tip))
    }

    /// The answers to the question that begins `run`, which are given by runs that begin with the same one; `None` where
    /// there is one.
    pub(super) fn answers(&self, run: RunId) -> Option<VersionsBody> {
        let own = self.nodes.get(&run)?.asked.as_deref()?;
        let same: Vec<RunId> =
            self.siblings(run).filter(|(_, asked)| *asked == own).map(|(sibling, _)| sibling).collect();
        let at = same.iter().position(|sibling| *sibling == run)?;
        versions(at, same.iter().filter_map(|sibling| self.newest.get(sibling).copied()))
    }

    /// The runs that begin with a question at the place of `run`, itself included, with what they ask.
    fn siblings(&self, run: RunId) -> impl Iterator<Item = (RunId, &str)> {
        let siblings = self.nodes.get(&run).and_then(|node| self.asking.get(&(node.parent, node.message)));
        let asked = |run: &RunId| Some((*run, self.nodes.get(run)?.asked.as_deref()?));
        siblings.into_iter().flatten().filter_map(asked)
    }
}

/// The later one.
trait ByTime {
    fn max_by_time(self, other: Self) -> Self;
}

impl ByTime for (usize, RunId) {
    fn max_by_time(self, other: Self) -> Self {
        if self.0 >= other.0 { self } else { other }
    }
}

fn versions(at: usize, tips: impl Iterator<Item = (usize, RunId)>) -> Option<VersionsBody> {
    let branches: Vec<String> = tips.map(|(_, run)| run.to_string()).collect();
    (branches.len() > 1).then_some(VersionsBody { at, branches })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_leads_to_the_newest_run_behind_it() {
        let runs: [RunId; 8] = std::array::from_fn(|_| RunId::fresh());
        let [a, behind_a, again, edited, behind_again, within, b, went_on] = runs;
        let node =
            |run, parent, asked: Option<&str>| RunNode { run, parent, message: None, asked: asked.map(str::to_owned) };
        let tree = Tree::of(vec![
            node(a, None, Some("A")),
            node(behind_a, Some(a), Some("B")),
            node(again, None, Some("A")),
            node(edited, None, Some("A!")),
            node(behind_again, Some(again), Some("B")),
            RunNode { message: Some(1), ..node(within, Some(edited), Some("C")) },
            node(b, Some(edited), Some("B")),
            node(went_on, Some(b), None),
        ]);
        let versions =
            |at, runs: &[RunId]| Some(VersionsBody { at, branches: runs.iter().map(RunId::to_string).collect() });
        assert_eq!(tree.questions(a), versions(0, &[behind_again, went_on]), "the first text");
        assert_eq!(tree.questions(again), versions(0, &[behind_again, went_on]), "asked again, it is the same text");
        assert_eq!(tree.questions(edited), versions(1, &[behind_again, went_on]), "the edited one");
        assert_eq!(tree.answers(a), versions(0, &[behind_a, behind_again]), "the first answer");
        assert_eq!(tree.answers(again), versions(1, &[behind_a, behind_again]), "the second");
        assert_eq!(tree.answers(edited), None, "one answer");
        assert_eq!(tree.questions(within), None, "what goes on from within an answer is no version of what follows it");
        assert_eq!(tree.questions(b), None, "one text; the same one elsewhere is another question");
        assert_eq!(tree.answers(went_on), None, "no question");
        assert_eq!(tree.questions(RunId::fresh()), None, "an unknown run");
    }
}
