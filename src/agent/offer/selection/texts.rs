//! The text of a tool that is searched, made once for the same definition: a run that chooses among a thousand tools
//! does not read a thousand descriptions.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use super::words::{self, Weighed};
use crate::agent::ports::tools::OfferedTool;

/// 32 MB of texts and words are kept; with more, all of them are made anew.
const MOST_KEPT: usize = 32 << 20;

/// The bytes of a word in a map, roughly.
const PER_WORD: usize = 80;

/// A tool as it is looked for.
#[derive(Debug)]
pub(super) struct Text {
    /// The text that is embedded: the same for the same definition, so that its vector is fetched once.
    pub(super) meant: String,
    /// Its words.
    pub(super) words: Weighed,
}

/// The texts of tools that were looked at lately.
#[derive(Debug, Default)]
pub(super) struct Texts {
    hasher: RandomState,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_hash: HashMap<u64, Arc<Text>>,
    bytes: usize,
}

impl Texts {
    /// The texts of `tools`, in order.
    pub(super) fn texts_for(&self, tools: &[&OfferedTool]) -> Vec<Arc<Text>> {
        tools.iter().map(|tool| self.text(tool)).collect()
    }

    fn text(&self, tool: &OfferedTool) -> Arc<Text> {
        let key = self.hasher.hash_one((&tool.def.name, &tool.def.description, &tool.samples));
        let known = self.kept.lock().unwrap_or_else(PoisonError::into_inner).by_hash.get(&key).map(Arc::clone);
        if let Some(known) = known.filter(|known| known.is_of(tool)) {
            return known;
        }
        // Made without the lock: another run may make it too, which costs nothing but time.
        let text = Arc::new(Text::from_tool(tool));
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).put(key, &text);
        text
    }
}

impl Kept {
    fn put(&mut self, key: u64, text: &Arc<Text>) {
        if self.bytes + text.bytes() > MOST_KEPT {
            *self = Self::default();
        }
        self.bytes += text.bytes();
        if let Some(before) = self.by_hash.insert(key, Arc::clone(text)) {
            self.bytes = self.bytes.saturating_sub(before.bytes());
        }
    }
}

impl Text {
    fn from_tool(tool: &OfferedTool) -> Self {
        let mut meant = format!("{}: {}", tool.def.name, tool.def.description);
        for sample in &tool.samples {
            meant.push('\n');
            meant.push_str(sample);
        }
        Self { meant, words: words::weighed(tool) }
    }

    /// Whether it is of `tool`, since two definitions may have one hash.
    fn is_of(&self, tool: &OfferedTool) -> bool {
        let mut left = self.meant.strip_prefix(tool.def.name.as_str()).and_then(|left| left.strip_prefix(": "));
        left = left.and_then(|left| left.strip_prefix(tool.def.description.as_str()));
        for sample in &tool.samples {
            left = left.and_then(|left| left.strip_prefix('\n')?.strip_prefix(sample.as_str()));
        }
        left.is_some_and(str::is_empty)
    }

    fn bytes(&self) -> usize {
        self.meant.len() + self.words.weights.len() * PER_WORD
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::tool::{Effect, Policy, ToolDef};

    fn tool(name: &str, description: &str, samples: &[&str]) -> OfferedTool {
        let (name, description) = (name.to_owned(), description.to_owned());
        OfferedTool {
            def: Arc::new(ToolDef { name, description, input_schema: json!({"type": "object"}) }),
            policy: Policy::default(),
            effect: Effect::Read,
            moves_to: None,
            operation: None,
            samples: samples.iter().map(|sample| (*sample).to_owned()).collect(),
            only_if: None,
            bare_text: None,
        }
    }

    #[test]
    fn the_text_of_a_definition_is_made_once() {
        let texts = Texts::default();
        let one = |tool: &OfferedTool| texts.texts_for(&[tool]).remove(0);
        let first = one(&tool("a", "b", &["c", "d"]));
        assert_eq!(first.meant, "a: b\nc\nd");
        assert!(Arc::ptr_eq(&first, &one(&tool("a", "b", &["c", "d"]))), "the same definition in another value");
        for other in [tool("a", "b", &["c"]), tool("a", "b", &["c", "d", "e"]), tool("a", "b\nc", &["d"])] {
            assert!(!Arc::ptr_eq(&first, &one(&other)), "{other:?}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut kept = Kept::default();
        let large = "x".repeat(MOST_KEPT / 3);
        for key in 0..10 {
            kept.put(key, &Arc::new(Text::from_tool(&tool("a", &large, &[]))));
            assert!(kept.bytes <= MOST_KEPT);
        }
        let bytes = kept.bytes;
        kept.put(9, &Arc::new(Text::from_tool(&tool("a", "b", &[]))));
        assert!(kept.bytes < bytes, "what is replaced counts no more");
    }
}
