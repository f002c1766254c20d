//! Which lines of a text an expression matches.
//!
//! Most expressions need no look-around: they run over whole texts in time that grows with the text only, after all that
//! could match an end of line was taken out of them, so that each match is within one line. The others run by
//! backtracking, line by line, with a bound for each.

use std::ops::Range;
use std::time::Instant;

use regex_automata::Input;
use regex_automata::meta::{self, Config};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassBytesRange, ClassUnicodeRange, Hir, HirKind, Look};

use super::lines::{line_at, lines};
use crate::workspace::files::FileError;

/// More than this nobody writes by hand, in bytes.
const MOST_BYTES: usize = 4_000;

/// Memory of a compiled expression.
const MOST_COMPILED_BYTES: usize = 1 << 20;

/// Groups in groups.
const MOST_DEPTH: u32 = 100;

/// Steps back in one line: some milliseconds.
const MOST_STEPS_BACK: usize = 50_000;

/// Longer lines are left out by an expression that runs by backtracking: what it does not count may take the third power.
const MOST_LINE_BYTES: usize = 4 * 1024;

/// How much is searched between two looks at the clock, in bytes.
const PIECE_BYTES: usize = 128 * 1024;

/// An expression that was understood.
#[derive(Clone)]
pub(super) enum Expression {
    /// In linear time.
    Linear(meta::Regex),
    /// With look-around or back-references.
    Backtracking(fancy_regex::Regex),
}

/// What was found in one text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Matches {
    /// Of each line that matches its bytes, without the end of line, and where in it the match begins.
    pub(super) lines: Vec<(Range<usize>, usize)>,
    /// Whether some lines were not searched to the end.
    pub(super) gave_up: bool,
    /// Whether lines were left out because they are too long.
    pub(super) left_out: bool,
}

impl Expression {
    /// # Errors
    /// `regex_error` with the place in the expression.
    pub(super) fn parse(expression: &str) -> Result<Self, FileError> {
        let bad = |reason: String| FileError::Regex { reason };
        if expression.len() > MOST_BYTES {
            return Err(bad(format!("the expression is longer than {MOST_BYTES} bytes")));
        }
        let mut parser = ParserBuilder::new();
        let parsed = parser.multi_line(true).crlf(true).nest_limit(MOST_DEPTH).build().parse(expression);
        match parsed {
            Ok(parsed) => {
                let config =
                    Config::new().nfa_size_limit(Some(MOST_COMPILED_BYTES)).which_captures(WhichCaptures::Implicit);
                let built = meta::Regex::builder().configure(config).build_from_hir(&within_lines(&parsed));
                built.map(Self::Linear).map_err(|_| bad("the expression is too large when compiled".to_owned()))
            }
            Err(not_plain) => {
                let mut builder = fancy_regex::RegexBuilder::new(expression);
                builder.backtrack_limit(MOST_STEPS_BACK).delegate_size_limit(MOST_COMPILED_BYTES);
                builder.build().map(Self::Backtracking).map_err(|error| {
                    let words = match not_plain {
                        regex_syntax::Error::Parse(ref plain) if !is_beyond(plain.kind()) => not_plain.to_string(),
                        _ => error.to_string(),
                    };
                    bad(format!("the expression cannot be understood: {words}"))
                })
            }
        }
    }

    /// The first `most` lines of `text` that match, as far as there is time.
    pub(super) fn matches(&self, text: &str, most: usize, until: Instant) -> Matches {
        match self {
            Self::Linear(regex) => linear(regex, text, most, until),
            Self::Backtracking(regex) => backtracking(regex, text, most, until),
        }
    }
}

fn linear(regex: &meta::Regex, text: &str, most: usize, until: Instant) -> Matches {
    let mut found = Matches::default();
    let mut at = 0;
    while at < text.len() {
        // Pieces end where lines do, so that no match is torn.
        let end = line_at(text, (at + PIECE_BYTES).min(text.len() - 1)).1;
        while at < end {
            let Some(matched) = regex.find(Input::new(text).range(at..end)).map(|found| found.start()) else { break };
            if matched >= end {
                break;
            }
            let (line, next) = line_at(text, matched);
            found.lines.push((line, matched));
            at = next;
            if found.lines.len() == most {
                return found;
            }
        }
        at = end;
        if Instant::now() > until {
            found.gave_up = at < text.len();
            return found;
        }
    }
    found
}

fn backtracking(regex: &fancy_regex::Regex, text: &str, most: usize, until: Instant) -> Matches {
    let mut found = Matches::default();
    for line in lines(text) {
        if Instant::now() > until {
            found.gave_up = true;
            return found;
        }
        if line.len() > MOST_LINE_BYTES {
            found.left_out = true;
            continue;
        }
        match regex.find(&text[line.clone()]) {
            Ok(None) => {}
            Ok(Some(matched)) => found.lines.push((line.clone(), line.start + matched.start())),
            Err(_) => found.gave_up = true,
        }
        if found.lines.len() == most {
            return found;
        }
    }
    found
}

/// Whether an expression is refused for what only backtracking can do.
fn is_beyond(kind: &regex_syntax::ast::ErrorKind) -> bool {
    use regex_syntax::ast::ErrorKind;
    matches!(kind, ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference)
}

/// `hir` without what could match across lines: LF is taken out of classes, where it stands alone it means the end of a
/// line, and so do the ends of the text.
fn within_lines(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => {
            let parts = literal.0.split(|byte| *byte == b'\n').map(Hir::literal);
            Hir::concat(join(parts, || Hir::look(Look::EndCRLF)))
        }
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&regex_syntax::hir::ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut class = class.clone();
            class.difference(&regex_syntax::hir::ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(Look::Start | Look::StartLF | Look::StartCRLF) => Hir::look(Look::StartCRLF),
        HirKind::Look(Look::End | Look::EndLF | Look::EndCRLF) => Hir::look(Look::EndCRLF),
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(repetition) => Hir::repetition(repetition.with(within_lines(&repetition.sub))),
        // What a group holds is not asked for.
        HirKind::Capture(capture) => within_lines(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(within_lines).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(within_lines).collect()),
    }
}

fn join(parts: impl Iterator<Item = Hir>, between: impl Fn() -> Hir) -> Vec<Hir> {
    let mut joined = Vec::new();
    for part in parts {
        if !joined.is_empty() {
            joined.push(between());
        }
        joined.push(part);
    }
    joined
}
