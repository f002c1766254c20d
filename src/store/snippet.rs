//! Texts with what was looked for in them. Pure.

use std::ops::Range;

use super::words::{INDEXED_BYTES, Wanted, words};
use crate::agent::ports::search::Piece;

/// 60 characters before the first word that was found, and 240 in all.
const BEFORE: usize = 60;
const CHARS: usize = 240;

/// All of a title.
pub(super) fn whole(title: &str, wanted: &Wanted) -> Vec<Piece> {
    pieces(title, 0..title.len(), &hits(title, wanted))
}

/// The part of a message around the first word that was found, on one line, with an ellipsis where it is cut.
pub(super) fn around(text: &str, wanted: &Wanted) -> Vec<Piece> {
    let mut end = text.len().min(INDEXED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let hits = hits(&text[..end], wanted);
    let first = hits.first().map_or(0, |hit| hit.start);
    let from = text[..first].char_indices().rev().take(BEFORE).last().map_or(first, |(at, _)| at);
    // Not in the middle of a word, where there is a blank before long.
    let from = match text[from..first].find(char::is_whitespace) {
        Some(blank) if from > 0 => from + blank,
        _ => from,
    };
    let to = text[from..].char_indices().nth(CHARS).map_or(text.len(), |(at, _)| from + at);
    let mut pieces = pieces(text, from..to, &hits);
    if !text[..from].trim().is_empty() {
        pieces.insert(0, Piece { text: "… ".to_owned(), is_hit: false });
    }
    if !text[to..].trim().is_empty() {
        pieces.push(Piece { text: " …".to_owned(), is_hit: false });
    }
    pieces
}

/// Where words stand that are looked for. Pairs that overlap are one.
fn hits(text: &str, wanted: &Wanted) -> Vec<Range<usize>> {
    let mut hits: Vec<Range<usize>> = Vec::new();
    for word in words(text).into_iter().filter(|word| wanted.has(&word.text)) {
        match hits.last_mut() {
            Some(last) if word.at.start < last.end => last.end = last.end.max(word.at.end),
            _ => hits.push(word.at),
        }
    }
    hits
}

/// The part of a text in pieces.
fn pieces(text: &str, part: Range<usize>, hits: &[Range<usize>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut add = |text: &str, is_hit: bool| {
        let text = one_line(text);
        if !text.is_empty() {
            pieces.push(Piece { text, is_hit });
        }
    };
    let mut at = part.start;
    for hit in hits.iter().filter(|hit| hit.start >= part.start && hit.end <= part.end) {
        add(&text[at..hit.start], false);
        add(&text[hit.clone()], true);
        at = hit.end;
    }
    add(&text[at..part.end], false);
    pieces
}

/// A text on one line: blanks in a row are one, and control characters none.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        let c = if c.is_whitespace() { ' ' } else { c };
        if !(c.is_control() || c == ' ' && line.ends_with(' ')) {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(pieces: &[Piece]) -> String {
        pieces.iter().map(|piece| if piece.is_hit { format!("[{}]", piece.text) } else { piece.text.clone() }).collect()
    }

    #[test]
    fn what_was_looked_for_is_marked_where_it_stands() {
        let long = format!("{}the needle{}", "hay ".repeat(100), " hay".repeat(100));
        let rows = [
            ("The invoice of March", "INV", "The [invoice] of March".to_owned(), "the whole word"),
            ("Er heißt Müller.", "muller", "Er heißt [Müller].".to_owned(), "as it is written"),
            ("住所は東京都庁です", "東京都", "住所は[東京都]庁です".to_owned(), "pairs are one"),
            ("a\n\n\tb\u{7}  c", "b", "a [b] c".to_owned(), "one line"),
            ("nothing", "x", "nothing".to_owned(), "no hit"),
        ];
        for (text, query, expected, reason) in rows {
            assert_eq!(marked(&around(text, &Wanted::of_query(query))), expected, "{reason}");
        }
        let cut = marked(&around(&long, &Wanted::of_query("needle")));
        assert!(cut.starts_with("…  hay") && cut.contains("the [needle] hay") && cut.ends_with(" …"), "{cut}");
        assert!(cut.chars().count() < CHARS + 10, "{cut}");
        let emoji = format!("{}x", "👍🏽".repeat(300));
        assert!(!around(&emoji, &Wanted::of_query("x")).is_empty(), "no cut inside a character");
    }
}
