//! The beginning of a marker: what may stand around its word, up to the JSON.

use super::judge::Marker;
use super::{is_blank, is_of_word};

/// Four signs before a marker: a code fence, bold and code in it.
const MOST_OPEN: usize = 4;

/// 80 bytes between a marker and its JSON: a few line ends, and a code fence with the name of a language.
const MOST_BETWEEN: usize = 80;

/// 20 letters in the name of a language behind a code fence.
const MOST_LANGUAGE: usize = 20;

/// Markdown around a marker or its JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoration {
    Fence,
    Bold,
    Code,
}

impl Decoration {
    /// The sign that opens and closes it.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Fence => "```",
            Self::Bold => "**",
            Self::Code => "`",
        }
    }
}

/// The beginning of a text.
#[derive(Debug)]
pub(super) enum Look {
    /// No marker.
    Nothing,
    /// Maybe one.
    Undecided,
    /// A marker's word, up to this byte, and no JSON behind it.
    Word { marker: usize, end: usize },
    /// A marker up to its JSON.
    Head(Head),
}

/// A marker up to its JSON, in bytes from its first sign.
#[derive(Debug)]
pub(super) struct Head {
    /// Which one.
    pub(super) marker: usize,
    /// Where its word begins and ends.
    pub(super) word: usize,
    pub(super) word_end: usize,
    /// Where the JSON begins.
    pub(super) json: usize,
    /// The decorations to be closed behind the JSON, outermost first; so many of them were opened before the word.
    pub(super) open: Vec<Decoration>,
    pub(super) opened_before: usize,
}

/// The beginning of `text`, which has no leading blank; `in_word` when it goes on with a word.
pub(super) fn look(text: &str, known: &[Marker], in_word: bool) -> Look {
    let mut open = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        match sign(rest) {
            Sign::Undecided => return Look::Undecided,
            Sign::None => break,
            Sign::Some(_) if open.len() == MOST_OPEN => return Look::Nothing,
            Sign::Some(Decoration::Fence) => {
                let Some(line) = fence_line(rest) else { return Look::Nothing };
                if line == rest.len() {
                    return Look::Undecided;
                }
                open.push(Decoration::Fence);
                at += line;
            }
            Sign::Some(decoration) => {
                open.push(decoration);
                at += decoration.sign().len();
            }
        }
    }
    if in_word && at == 0 {
        return Look::Nothing;
    }
    let rest = &text[at..];
    let Some(marker) = known.iter().position(|marker| rest.starts_with(&marker.word)) else {
        return match known.iter().any(|marker| marker.word.starts_with(rest)) {
            true => Look::Undecided,
            false => Look::Nothing,
        };
    };
    let (word, word_end) = (at, at + known[marker].word.len());
    let mut opened_before = open.len();
    let nothing = Look::Word { marker, end: word_end };
    at = word_end;
    while at - word_end <= MOST_BETWEEN {
        let rest = &text[at..];
        match (rest.bytes().next(), sign(rest)) {
            (None, _) | (_, Sign::Undecided) => return Look::Undecided,
            (Some(b'[' | b'{'), _) => {
                return Look::Head(Head { marker, word, word_end, json: at, open, opened_before });
            }
            (Some(byte), _) if is_blank(byte) => at += 1,
            (_, Sign::Some(decoration)) => {
                // What was opened is closed by the same sign.
                if open.last() == Some(&decoration) {
                    open.pop();
                    opened_before = opened_before.min(open.len());
                } else {
                    open.push(decoration);
                }
                at += decoration.sign().len();
                if decoration == Decoration::Fence {
                    at += language(&text[at..]);
                }
            }
            (Some(_), Sign::None) => return nothing,
        }
    }
    nothing
}

/// How many bytes of `text`, which is no marker, are text for certain: up to where one may begin.
pub(super) fn plain(text: &str, known: &[Marker]) -> usize {
    let mut before = None;
    for (at, c) in text.char_indices() {
        let begins_word = || known.iter().any(|marker| marker.word.starts_with(c));
        let may_begin = c.is_ascii() && is_blank(c as u8)
            || matches!(c, '*' | '`')
            || !before.is_some_and(is_of_word) && begins_word();
        if at > 0 && may_begin {
            return at;
        }
        before = Some(c);
    }
    text.len()
}

enum Sign {
    None,
    Some(Decoration),
    /// It ends too early.
    Undecided,
}

/// The sign that `text` begins with.
fn sign(text: &str) -> Sign {
    match text.as_bytes() {
        [] | [b'*'] | [b'`'] | [b'`', b'`'] => Sign::Undecided,
        [b'*', b'*', ..] => Sign::Some(Decoration::Bold),
        [b'`', b'`', b'`', ..] => Sign::Some(Decoration::Fence),
        [b'`', b'`', ..] => Sign::None,
        [b'`', ..] => Sign::Some(Decoration::Code),
        [_, ..] => Sign::None,
    }
}

/// How long the line of the code fence at the beginning of `text` is, with the blanks behind it, as far as the text goes;
/// `None` where it has more than the name of a language.
fn fence_line(text: &str) -> Option<usize> {
    let mut at = Decoration::Fence.sign().len();
    at += language(&text[at..]);
    let rest = &text[at..];
    let blanks = rest.bytes().take_while(|b| is_blank(*b)).take(MOST_BETWEEN).count();
    let is_line = rest[..blanks].contains('\n') || blanks == rest.len();
    is_line.then_some(at + blanks)
}

fn language(text: &str) -> usize {
    let of_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    text.bytes().take_while(of_name).take(MOST_LANGUAGE).count()
}
