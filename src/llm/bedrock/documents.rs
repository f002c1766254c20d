//! The documents of a request, as Converse wants them: with names of certain characters, no two alike, and a text beside each.
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html>.

use std::collections::HashSet;

use super::block::{Block, Document, LeftOut, Message};

/// 200 characters for a name; 180 leave space for a number.
const MAX_NAME_CHARS: usize = 180;

/// Gives each document its name, and puts a text beside those that have none.
pub(super) fn settle(messages: &mut [Message<'_>]) {
    let mut names = Names::default();
    for message in messages {
        put_text(&mut message.content, "The attached document.");
        for block in &mut message.content {
            match block {
                Block::ToolResult { content, .. } => {
                    content.iter_mut().for_each(|block| names.settle(block));
                    put_text(content, "The document.");
                }
                block => names.settle(block),
            }
        }
    }
}

/// Puts `text` behind documents that stand there without any.
fn put_text<'a>(blocks: &mut Vec<Block<'a>>, text: &'static str) {
    let is_text = |block: &Block<'_>| matches!(block, Block::Text(_) | Block::LeftOut(_));
    if blocks.iter().any(|block| matches!(block, Block::Document(_))) && !blocks.iter().any(is_text) {
        blocks.push(Block::Text(text.into()));
    }
}

/// The names so far.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
}

impl Names {
    fn settle(&mut self, block: &mut Block<'_>) {
        match block {
            Block::Document(Document { name, .. }) => *name = self.take(name).into(),
            Block::LeftOut(LeftOut { name, .. }) => {
                self.take(name);
            }
            _ => {}
        }
    }

    /// A name for a document that its user calls `name`.
    fn take(&mut self, name: &str) -> String {
        let plain = plain_name(name);
        let mut unique = plain.clone();
        let mut number = 1;
        while !self.taken.insert(unique.clone()) {
            number += 1;
            unique = format!("{plain} ({number})");
        }
        unique
    }
}

/// `name` in the characters that are allowed: letters and digits of ASCII, single spaces, hyphens, brackets. Others are a hyphen, as
/// many as stand together; a name in another script, of which nothing is left, is that of any document. Without its ending, which
/// the format says.
fn plain_name(name: &str) -> String {
    let name = name.strip_suffix(".pdf").or_else(|| name.strip_suffix(".PDF")).unwrap_or(name);
    let mut plain = String::new();
    for c in name.chars() {
        let c = match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '(' | ')' | '[' | ']') => c,
            c if c.is_whitespace() => ' ',
            _ => '-',
        };
        if matches!(c, ' ' | '-') && plain.ends_with(c) {
            continue;
        }
        if plain.len() == MAX_NAME_CHARS {
            break;
        }
        plain.push(c);
    }
    match plain.trim_matches([' ', '-']) {
        plain if plain.contains(|c: char| c.is_ascii_alphanumeric()) => plain.to_owned(),
        _ => "document".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_characters_that_are_allowed() {
        for (name, expected) in [
            ("report.pdf", "report"),
            ("Q3  report_final (2) [x].PDF", "Q3 report-final (2) [x]"),
            ("Übersicht.pdf", "bersicht"),
            ("Überblick für\u{a0}\tJuli.pdf", "berblick f-r Juli"),
            ("../../etc/passwd", "etc-passwd"),
            ("2026年 報告書.pdf", "2026"),
            ("отчёт.pdf", "document"),
            ("報告書 (最終).pdf", "document"),
            ("a -- b", "a - b"),
            (" .pdf", "document"),
            ("()", "document"),
            ("", "document"),
        ] {
            assert_eq!(plain_name(name), expected);
        }
        assert_eq!(plain_name(&"x".repeat(1000)).len(), MAX_NAME_CHARS);
    }
}
