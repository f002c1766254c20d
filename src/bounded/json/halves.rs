//! Halves of characters: JSON may have a character in two halves (`\ud83d\ude00`), and a program that cuts a text between them
//! writes one alone. Nobody can read that; what stands around it is still worth reading.

use std::borrow::Cow;

use super::{JsonError, NodeBudget};

/// What `read` makes of `text`, in memory of `budget`; where it fails for the syntax, and for halves of characters, of the text
/// with U+FFFD for them.
///
/// # Errors
/// Those of `read`.
pub fn mended<T>(
    text: &str,
    budget: &mut NodeBudget,
    read: impl Fn(&str, &mut NodeBudget) -> Result<T, JsonError>,
) -> Result<T, JsonError> {
    let left = budget.left();
    let error = match read(text, budget) {
        Err(error @ JsonError::Syntax(_)) => error,
        read => return read,
    };
    // Nothing that was read is there any more. A mended text is as long as it was.
    budget.give_back(left - budget.left());
    budget.hold(text.len())?;
    match without_halves(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(mended) => read(&mended, budget),
    }
}

/// `text` with U+FFFD for each half of a character that stands alone.
pub fn without_halves(text: &str) -> Cow<'_, str> {
    let half = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
    };
    let (mut mended, mut rest, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        let whole = match (half(at), half(at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..)) => 12,
            (Some(_), _) => {
                if rest == 0 {
                    mended.reserve_exact(text.len());
                }
                mended.push_str(&text[rest..at]);
                mended.push_str("\\ufffd");
                rest = at + 6;
                6
            }
            // The character that is escaped is no beginning of another escape.
            (None, _) => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
        at += whole;
    }
    if rest == 0 {
        return Cow::Borrowed(text);
    }
    mended.push_str(&text[rest..]);
    Cow::Owned(mended)
}
