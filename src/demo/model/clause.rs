//! A clause, one request within a message, and the few questions the rules ask of it: which words it has, which name follows
//! which word. Also the cutting of a message into clauses.

use super::tokens::{Break, Token};

/// Words that can begin a request of their own after "and", "then" or a comma.
const STARTERS: &[&str] = &[
    "add",
    "append",
    "insert",
    "remove",
    "delete",
    "drop",
    "preview",
    "show",
    "list",
    "explain",
    "describe",
    "tell",
    "what",
    "which",
    "hide",
    "unhide",
    "sort",
    "order",
    "filter",
    "rename",
    "change",
    "validate",
    "check",
    "create",
    "build",
    "make",
    "start",
    "any",
    "are",
    "is",
    "join",
    "clear",
    "set",
    "otherwise",
    "else",
    "finish",
    "do",
    "give",
    "get",
    "my",
    "who",
    "how",
    "send",
    "wait",
    "search",
    "find",
    "put",
    "alerts",
    "rules",
    "workflows",
    "actions",
    "triggers",
    "entities",
    "configs",
    "columns",
    "only",
];

/// Little words that may stand before a starter or a name.
const FILLERS: &[&str] =
    &["the", "a", "an", "please", "also", "me", "all", "can", "you", "could", "now", "just", "new", "then"];

/// Words people open a request with; the verb comes after them.
const LEADS: &[&str] = &[
    "hi", "hello", "hey", "ok", "okay", "yes", "thanks", "great", "good", "so", "well", "and", "next", "first",
    "finally", "lastly", "i", "want", "would", "like", "to", "need", "us", "let", "lets", "let's", "i'd", "we", "help",
    "have",
];

/// Words that end an unquoted name.
const NAME_ENDS: &[&str] = &[
    "for",
    "on",
    "when",
    "that",
    "with",
    "and",
    "in",
    "using",
    "then",
    "to",
    "after",
    "which",
    "whenever",
    "if",
    "step",
    "node",
    "action",
    "do",
    "does",
    "is",
    "as",
    "saying",
    "workflow",
    "rule",
    "of",
    "from",
    "otherwise",
    "or",
    "work",
    "works",
    "again",
];

/// One request within a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clause<'a>(pub &'a [Token]);

impl<'a> Clause<'a> {
    /// Whether one of `words` occurs outside quotes.
    pub(super) fn has(self, words: &[&str]) -> bool {
        self.position(words).is_some()
    }

    /// Where the first of `words` stands.
    pub(super) fn position(self, words: &[&str]) -> Option<usize> {
        self.0.iter().position(|token| is_one(token, words))
    }

    /// Whether `words` occur one after another.
    pub(super) fn phrase(self, words: &[&str]) -> bool {
        self.phrase_at(words).is_some()
    }

    /// Where `words` begin, one after another.
    pub(super) fn phrase_at(self, words: &[&str]) -> Option<usize> {
        self.0
            .windows(words.len())
            .position(|window| window.iter().zip(words).all(|(token, word)| is_one(token, &[word])))
    }

    /// The first word that is more than a filler or an opening, in lower case.
    pub(super) fn verb(self) -> &'a str {
        let mut words = self.0.iter().filter(|token| !is_one(token, FILLERS) && !is_one(token, LEADS));
        words.next().map_or("", |token| token.low.as_str())
    }

    /// The clause from `start` on.
    pub(super) fn from(self, start: usize) -> Self {
        Self(self.0.get(start..).unwrap_or_default())
    }

    /// The clause before `end`.
    pub(super) fn until(self, end: usize) -> Self {
        Self(self.0.get(..end).unwrap_or_default())
    }

    /// The first quoted name.
    pub(super) fn quoted(self) -> Option<&'a str> {
        self.0.iter().find(|token| token.quoted).map(|token| token.text.as_str())
    }

    /// The name after the first of `words`: the quoted one there, else the words up to one that cannot belong to a name.
    pub(super) fn name_after(self, words: &[&str]) -> Option<String> {
        let rest = self.from(self.position(words)? + 1);
        rest.leading_name()
    }

    /// The name the clause begins with, fillers skipped.
    pub(super) fn leading_name(self) -> Option<String> {
        let start = self.0.iter().position(|token| !is_one(token, FILLERS))?;
        let rest = self.0.get(start..)?;
        if let Some(first) = rest.first().filter(|token| token.quoted) {
            return Some(first.text.clone());
        }
        let mut name: Vec<&str> = Vec::new();
        for token in rest {
            if token.quoted || is_one(token, NAME_ENDS) {
                break;
            }
            name.push(&token.text);
            if token.then != Break::None {
                break;
            }
        }
        (!name.is_empty()).then(|| name.join(" "))
    }

    /// The clause's phrases: cut at "and", "then" and commas, fillers and `noise` removed; empty ones left out.
    pub(super) fn phrases(self, noise: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let mut current: Vec<&str> = Vec::new();
        for token in self.0 {
            if is_one(token, &["and", "then"]) {
                found.push(std::mem::take(&mut current).join(" "));
                continue;
            }
            if token.quoted || !(is_one(token, noise) || is_one(token, FILLERS)) {
                current.push(&token.text);
            }
            if token.then != Break::None {
                found.push(std::mem::take(&mut current).join(" "));
            }
        }
        found.push(current.join(" "));
        found.retain(|phrase| !phrase.is_empty());
        found
    }

    /// The first UUID, as written.
    pub(super) fn uuid(self) -> Option<&'a str> {
        let mut texts = self.0.iter().map(|token| token.text.as_str());
        texts.find(|text| text.len() == 36 && uuid::Uuid::try_parse(text).is_ok())
    }

    /// The clause's text again, single-spaced.
    pub(super) fn text(self) -> String {
        let texts: Vec<&str> = self.0.iter().map(|token| token.text.as_str()).collect();
        texts.join(" ")
    }
}

/// Whether `token` is one of `words` and not a quoted name.
pub(super) fn is_one(token: &Token, words: &[&str]) -> bool {
    !token.quoted && words.contains(&token.low.as_str())
}

/// `tokens` cut into clauses: at the ends of sentences, and at "and", "then" and commas where a new request begins.
/// A piece that
/// `stands_alone` refuses belongs to the clause before it, or to the one after it when it opens the sentence.
pub(super) fn clauses(tokens: &[Token], stands_alone: impl Fn(Clause<'_>) -> bool) -> Vec<Clause<'_>> {
    let mut cuts = vec![0];
    for (i, token) in tokens.iter().enumerate() {
        let next = i + 1;
        let starts_here = |from: usize| {
            let rest = Clause(tokens.get(from..).unwrap_or_default());
            STARTERS.contains(&rest.verb())
        };
        let joins = token.then == Break::Comma || is_one(token, &["and", "then"]);
        if token.then == Break::Stop || (joins && starts_here(next)) {
            cuts.push(next);
        }
    }
    cuts.push(tokens.len());

    let mut found: Vec<Piece> = Vec::new();
    for window in cuts.windows(2) {
        let &[start, end] = window else { continue };
        let (start, end) = trimmed(tokens, start, end);
        if start >= end {
            continue;
        }
        let alone = stands_alone(Clause(tokens.get(start..end).unwrap_or_default()));
        let opens_sentence = start.checked_sub(1).and_then(|i| tokens.get(i)).is_none_or(|t| t.then == Break::Stop);
        match found.last_mut() {
            Some(last) if !alone || (!last.alone && !opens_sentence) => {
                last.end = end;
                last.alone |= alone;
            }
            Some(_) | None => found.push(Piece { start, end, alone }),
        }
    }
    found.iter().filter_map(|piece| tokens.get(piece.start..piece.end)).map(Clause).collect()
}

/// A run of tokens while clauses are being put together.
struct Piece {
    start: usize,
    end: usize,
    alone: bool,
}

/// The range without "and" and "then" at its ends.
fn trimmed(tokens: &[Token], mut start: usize, mut end: usize) -> (usize, usize) {
    let joins = |i: usize| tokens.get(i).is_some_and(|token| is_one(token, &["and", "then"]));
    while start < end && joins(start) {
        start += 1;
    }
    while start < end && joins(end - 1) {
        end -= 1;
    }
    (start, end)
}
