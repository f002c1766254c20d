//! The system prompt: a profile's blocks, rendered over what this run knows.
//!
//! Blocks that take no values are the same for every run of a profile, and vendors cache a prompt by its beginning: as
//! long as they stand first, they are joined once, when the profile is loaded.

pub mod client;
pub mod fence;
pub mod labels;
pub mod one_call;
pub mod summary;

use std::sync::Arc;

use crate::agent::ports::llm::SystemPrompt;
use crate::chat::template::{FENCE, Template, TemplateError, Values};

/// The names that prompts take values from.
pub const NAMES: [&str; 16] = [
    "context",
    "place",
    "user",
    "tenant",
    "roles",
    "conversation_id",
    "now",
    "data",
    "tools",
    "payload_types",
    "client_actions",
    "suggestions",
    "payloads",
    "plans",
    "recap",
    FENCE,
];

/// A profile's prompt. Clones share it.
#[derive(Debug, Clone)]
pub struct Prompt {
    stable: Arc<str>,
    blocks: Arc<[Template]>,
}

impl Prompt {
    /// The prompt of `blocks` in their order, joined by blank lines.
    ///
    /// # Errors
    /// When a block that takes no values cannot be rendered.
    pub fn new(blocks: impl IntoIterator<Item = Template>) -> Result<Self, TemplateError> {
        let mut blocks = blocks.into_iter().peekable();
        let mut stable = String::new();
        while let Some(block) = blocks.next_if(|block| block.names().next().is_none()) {
            join(&mut stable, &block.render(&Values::default())?);
        }
        Ok(Self { stable: stable.into(), blocks: blocks.collect() })
    }

    /// A prompt of one text, which takes no values.
    pub fn of_text(text: &str) -> Self {
        Self { stable: Arc::from(text), blocks: Arc::default() }
    }

    /// A prompt that says nothing.
    pub fn empty() -> Self {
        Self { stable: Arc::from(""), blocks: Arc::default() }
    }

    /// Whether some block takes values of that name.
    pub fn takes(&self, name: &str) -> bool {
        self.blocks.iter().any(|block| block.names().any(|known| known == name))
    }

    /// The prompt over `values`. A block that cannot be rendered is left out, which is logged.
    pub fn render(&self, values: &Values<'_>) -> SystemPrompt {
        let mut context = String::new();
        for block in &*self.blocks {
            match block.render(values) {
                Ok(text) => join(&mut context, &text),
                Err(error) => tracing::error!(%error, "a block of the prompt was left out"),
            }
        }
        SystemPrompt { instructions: self.stable.clone(), client: String::new(), context }
    }
}

fn join(prompt: &mut String, block: &str) {
    let block = block.trim();
    if block.is_empty() {
        return;
    }
    if !prompt.is_empty() {
        prompt.push_str("\n\n");
    }
    prompt.push_str(block);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn prompt(blocks: &[&str], values: Value) -> SystemPrompt {
        let prompt = Prompt::new(blocks.iter().map(|block| Template::parse(block).unwrap())).unwrap();
        prompt.render(&Values::from(values.as_object().unwrap()))
    }

    #[test]
    fn blocks_without_values_come_first_and_stay_the_same() {
        let rendered = prompt(&["You help.\n", "Be brief.", "Now: {{ now }}", "Bye."], json!({"now": "12:00"}));
        assert_eq!((&*rendered.instructions, &*rendered.context), ("You help.\n\nBe brief.", "Now: 12:00\n\nBye."));
    }

    #[test]
    fn a_block_that_says_nothing_or_fails_leaves_no_gap() {
        let blocks = ["A", "{% if context %}{{ context|fenced }}{% endif %}", "{{ now + 1 }}", "B{{ now }}"];
        assert_eq!(prompt(&blocks, json!({"now": "x"})).text(), "A\n\nBx");
        assert_eq!(prompt(&["{{ now }}"], json!({"now": "x"})).text(), "x");
    }
}
