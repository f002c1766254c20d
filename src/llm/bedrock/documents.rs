//! The documents of a request, as Converse wants them: with names of certain characters, no two alike, five at most, and a text
//! beside each. <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html>.

use std::collections::HashSet;

use super::block::{Block, Document, Message};

/// Five in one request; more are refused.
const MAX_DOCUMENTS: usize = 5;

/// 200 characters for a name; 180 leave space for a number.
const MAX_NAME_CHARS: usize = 180;

/// Gives each document its name, has a sentence stand for all but the newest, and puts a text beside those that have none.
pub(super) fn settle(messages: &mut [Message<'_>]) {
    let mut all: Vec<&mut Vec<Block<'_>>> = Vec::new();
    for message in messages {
        let mut has_document = false;
        let mut has_text = false;
        for block in &message.content {
            has_document |= matches!(block, Block::Document(_));
            has_text |= matches!(block, Block::Text(_));
        }
        if has_document && !has_text {
            message.content.push(Block::Text("The attached document.".into()));
        }
        all.push(&mut message.content);
    }
    let count = all.iter().flat_map(|blocks| blocks.iter()).map(documents_in).sum::<usize>();
    let mut names = Names { taken: HashSet::new(), too_many: count.saturating_sub(MAX_DOCUMENTS) };
    for block in all.into_iter().flatten() {
        match block {
            Block::ToolResult { content, .. } => {
                content.iter_mut().for_each(|block| names.settle(block));
                let has_text = content.iter().any(|block| matches!(block, Block::Text(_)));
                if !has_text && content.iter().any(|block| matches!(block, Block::Document(_))) {
                    content.push(Block::Text("The document.".into()));
                }
            }
            block => names.settle(block),
        }
    }
}

fn documents_in(block: &Block<'_>) -> usize {
    match block {
        Block::Document(_) => 1,
        Block::ToolResult { content, .. } => content.iter().filter(|block| matches!(block, Block::Document(_))).count(),
        _ => 0,
    }
}

/// The names so far.
struct Names {
    taken: HashSet<String>,
    /// How many of the next documents are more than may be sent.
    too_many: usize,
}

impl Names {
    fn settle(&mut self, block: &mut Block<'_>) {
        let Block::Document(Document { name, .. }) = block else { return };
        let plain = plain_name(name);
        // The names of those that are left out stay taken: what comes after them keeps its own.
        let mut unique = plain.clone();
        let mut number = 1;
        while !self.taken.insert(unique.clone()) {
            number += 1;
            unique = format!("{plain} ({number})");
        }
        match self.too_many.checked_sub(1) {
            Some(left) => {
                self.too_many = left;
                let said = format!("[file {name}: not shown, only the {MAX_DOCUMENTS} newest documents are sent]");
                *block = Block::Text(said.into());
            }
            None => *name = unique.into(),
        }
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
