//! The filters of templates: how a value becomes text that is safe where it stands.

use minijinja::value::{Kwargs, StringInput, ValueKind};
use minijinja::{Error, ErrorKind, State, Value as Templated, filters};

use super::FENCE;

/// Replaces the mark of its fence in a value. It is no hex, so that the text around it never makes a mark.
const MARK: &str = "(mark)";

/// JSON between fences that nothing in it can end; where there is a mark, between two lines that have it, and it is not in
/// the JSON.
pub(super) fn fenced(state: &State<'_, '_>, value: &Templated) -> Result<String, Error> {
    let json = serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?
        .replace("```", "\\u0060\\u0060\\u0060");
    let mark = state.lookup(FENCE);
    Ok(match mark.as_ref().and_then(Templated::as_str).filter(|mark| !mark.is_empty()) {
        Some(mark) => format!("[data {mark}]\n```json\n{}\n```\n[end of data {mark}]", json.replace(mark, MARK)),
        None => format!("```json\n{json}\n```"),
    })
}

/// Text on a line of a fence whose mark it does not have: backticks as quotes.
pub(super) fn unmarked(state: &State<'_, '_>, value: &Templated) -> String {
    let text = flat(value);
    match state.lookup(FENCE).as_ref().and_then(Templated::as_str).filter(|mark| !mark.is_empty()) {
        Some(mark) => text.replace(mark, MARK),
        None => text,
    }
}

/// Text that can stand in a line of Markdown: not empty, at most 200 bytes, no control characters, ends of lines or backticks;
/// nothing otherwise.
pub(super) fn one_line(value: &Templated) -> Templated {
    let ends = |c: char| c.is_control() || matches!(c, '`' | '\u{2028}' | '\u{2029}');
    let fits = |text: &&str| !text.is_empty() && text.len() <= 200 && !text.contains(ends);
    value.as_str().filter(fits).map_or(Templated::UNDEFINED, Templated::from)
}

/// Any text on one line of Markdown: blanks, line ends and control characters as one space, backticks as quotes.
pub(super) fn flat(value: &Templated) -> String {
    let text = value.as_str().unwrap_or_default().replace('`', "'");
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The first so many characters, and a sign that there are more.
pub(super) fn cut(text: &str, most: usize, kwargs: Kwargs) -> Result<String, Error> {
    kwargs.assert_all_used()?;
    Ok(match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    })
}

/// The library's `join`, with booleans as JSON, queries and headers have them.
pub(super) fn join(
    state: &mut State<'_, '_>,
    items: &Templated,
    by: Option<StringInput<'_>>,
    attribute: Option<&str>,
    kwargs: Kwargs,
) -> Result<Templated, Error> {
    let plain = |item: Templated| match item.kind() {
        ValueKind::Bool => Templated::from(if item.is_true() { "true" } else { "false" }),
        _ => item,
    };
    match items.kind() {
        ValueKind::Seq => {
            let items: Templated = items.try_iter()?.map(plain).collect();
            filters::join(state, &items, by, attribute, kwargs)
        }
        _ => filters::join(state, items, by, attribute, kwargs),
    }
}
