//! Which tool a message wants, by the words that both have.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::chat::tool::ToolDef;

/// Words that say nothing about what is wanted.
const STOP: &[&str] = &[
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "has", "have", "i", "in", "is",
    "it", "its", "me", "my", "of", "on", "or", "please", "tell", "that", "the", "there", "this", "to", "use", "user",
    "want", "what", "when", "which", "with", "you",
];

/// A word of the tool's name counts as much as three of its description.
const NAME_WEIGHT: usize = 3;

/// The tool of `tools` that `text` wants: the one it names, or the one that shares most words with it.
pub(super) fn tool<'a>(text: &str, tools: &'a [Arc<ToolDef>]) -> Option<&'a ToolDef> {
    let named = tools.iter().find(|tool| text.split(|c: char| !is_name(c)).any(|word| word == tool.name));
    if let Some(tool) = named {
        return Some(tool);
    }
    let wanted = stems(text);
    let score = |tool: &ToolDef| {
        let name = stems(&tool.name.replace(['_', '-'], " "));
        let description = stems(&tool.description);
        let in_name = wanted.intersection(&name).count();
        (in_name > 0).then(|| in_name * NAME_WEIGHT + wanted.intersection(&description).count())
    };
    let mut best: Option<(usize, &ToolDef)> = None;
    for tool in tools {
        if let Some(score) = score(tool)
            && best.is_none_or(|(most, _)| score > most)
        {
            best = Some((score, tool));
        }
    }
    best.map(|(_, tool)| tool)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// The words of `text` that mean something, without the endings of plurals.
fn stems(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let words = words.filter(|word| word.len() > 1 && !STOP.contains(&word.as_str()));
    words
        .map(|word| {
            word.strip_suffix("es").or(word.strip_suffix('s')).unwrap_or(&word).trim_end_matches('e').to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_finds_the_tool_that_it_names_or_whose_words_it_has() {
        let def = |name: &str, description: &str| {
            Arc::new(ToolDef { name: name.to_owned(), description: description.to_owned(), input_schema: json!({}) })
        };
        let tools = [
            def("search_articles", "Searches the article database."),
            def("list_streams", "Lists the research streams."),
            def("archive_stream", "Archives a research stream for good."),
        ];
        let rows = [
            ("please call list_streams", Some("list_streams"), "by its name"),
            ("search articles about CRISPR", Some("search_articles"), "by its words"),
            ("archive the stream 124", Some("archive_stream"), "both words of the name"),
            ("which streams are there?", Some("list_streams"), "plural or not, the first of equals"),
            ("good morning", None, "a word of a description alone is not enough"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(tool(text, &tools).map(|tool| tool.name.as_str()), expected, "{reason}");
        }
    }
}
