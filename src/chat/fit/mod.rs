//! Cuts content that is too long for a model: JSON stays JSON. A list loses whole rows and everything else whole
//! values, and a note names them; only text is cut as text.
//!
//! **Invariant:** valid JSON comes out as valid JSON, and every value in it is one of the input's, but for cut texts,
//! counts of rows that were cut, and our own notes. It is read one level at a time, and never becomes a tree.

mod level;

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde_json::value::RawValue;

use self::level::{Level, Members, Rows};
use crate::bounded::json::parse;

/// How deep values are read; deeper ones are kept or left out whole.
const DEPTH: usize = 32;

/// How many things that were lost are named.
const NAMED: usize = 8;

/// The longest path that is named, in characters.
const PATH_CHARS: usize = 120;

/// The fewest bytes in which a part of a value is of use.
const LEAST_BYTES: usize = 48;

/// Siblings of a list that count its rows, and that say whether there are more.
const COUNTS: [&str; 3] = ["showing", "shown", "returned"];
const SAYS_MORE: [&str; 3] = ["has_more", "hasMore", "truncated"];

/// `content` in `max_bytes` and a note on the values that were lost, with `advice` for the model; `None` where it fits
/// as it is.
pub fn fit(content: &str, max_bytes: usize, advice: &str) -> Option<String> {
    if content.len() <= max_bytes {
        return None;
    }
    Some(fit_json(content, max_bytes, advice).unwrap_or_else(|| {
        let kept = &content[..content.floor_char_boundary(max_bytes)];
        format!("{kept}\n[cut: {max_bytes} of {} bytes shown; {advice}]", content.len())
    }))
}

/// The same of JSON alone; `None` where `content` is none.
pub fn fit_json(content: &str, max_bytes: usize, advice: &str) -> Option<String> {
    let content = content.trim();
    let mut lost = Lost::default();
    let Some(level) = Level::from_text(content) else {
        parse::<&RawValue>(content).ok()?;
        let kept: String = text(content, max_bytes, &mut FieldPath::root(&mut lost))
            .and_then(|kept| parse(&kept).ok())
            .unwrap_or_default();
        return Some(quoted(&format!("{kept}\n[cut: {} bytes in all; {advice}]", content.len())));
    };
    let kept = match level {
        Level::Object => object(content, max_bytes, &mut FieldPath::root(&mut lost)),
        Level::List => list(content, max_bytes, &mut FieldPath::root(&mut lost)).map(|(kept, _)| kept),
    };
    let mut kept = kept.unwrap_or_else(|| {
        lost.note("all", "left out");
        match level {
            Level::Object => "{}".to_owned(),
            Level::List => "[]".to_owned(),
        }
    });
    add(&mut kept, level, "cut", &format!("{lost}; {} bytes in all; {advice}", content.len()));
    Some(kept)
}

/// Adds a note for the model to `content`: inside of it where it is a JSON object or list, and behind it otherwise.
pub fn add_note(content: &mut String, note: &str) {
    match Level::from_text(content.trim()) {
        Some(level) => {
            let mut json = content.trim().to_owned();
            add(&mut json, level, "note", note);
            *content = json;
        }
        None => {
            // Writing to a string cannot fail.
            let _ = write!(content, "\n[{note}]");
        }
    }
}

/// Adds `note` to `json`, which is of that level, under a name that it does not have.
fn add(json: &mut String, level: Level, name: &str, note: &str) {
    let end = json.len() - 1;
    let is_empty = json[1..end].trim().is_empty();
    let (mut addition, bracket) = (String::new(), if level == Level::Object { '}' } else { ']' });
    if !is_empty {
        addition.push(',');
    }
    match level {
        Level::Object => {
            let mut name = name.to_owned();
            while Members::read(json, usize::MAX).is_some_and(|members| members.has(&name)) {
                name.push('_');
            }
            let _ = write!(addition, "{}:{}", quoted(&name), quoted(note));
        }
        Level::List => addition.push_str(&quoted(&format!("[{name}: {note}]"))),
    }
    json.truncate(end);
    json.push_str(&addition);
    json.push(bracket);
}

fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// The values that were lost.
#[derive(Default)]
struct Lost {
    named: Vec<(String, String)>,
    more: usize,
}

impl Lost {
    fn note(&mut self, path: &str, what: &str) {
        match self.named.len() < NAMED {
            true => self.named.push((path.chars().take(PATH_CHARS).collect(), what.to_owned())),
            false => self.more += 1,
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (path, what)) in self.named.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            match path.is_empty() {
                true => write!(f, "{comma}{what}")?,
                false => write!(f, "{comma}{path}: {what}")?,
            }
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// The path of a value, with the list of those that were lost.
struct FieldPath<'a> {
    path: String,
    depth: usize,
    lost: &'a mut Lost,
}

impl<'a> FieldPath<'a> {
    fn root(lost: &'a mut Lost) -> Self {
        Self { path: String::new(), depth: 0, lost }
    }

    fn member(&mut self, name: &str) -> FieldPath<'_> {
        let dot = if self.path.is_empty() { "" } else { "." };
        FieldPath { path: format!("{}{dot}{name}", self.path), depth: self.depth + 1, lost: self.lost }
    }

    fn row(&mut self, at: usize) -> FieldPath<'_> {
        FieldPath { path: format!("{}[{at}]", self.path), depth: self.depth + 1, lost: self.lost }
    }

    fn lost(&mut self, what: &str) {
        self.lost.note(&self.path, what);
    }
}

/// A value in `budget` bytes; `None` where no part of it would be of use.
fn value(raw: &str, budget: usize, path: &mut FieldPath<'_>) -> Option<String> {
    if raw.len() <= budget {
        return Some(raw.to_owned());
    }
    if budget < LEAST_BYTES || path.depth >= DEPTH {
        return None;
    }
    match Level::of_value(raw) {
        Some(Level::Object) => object(raw, budget, path),
        Some(Level::List) => list(raw, budget, path).map(|(kept, _)| kept),
        None => text(raw, budget, path),
    }
}

/// How many rows of a list are left.
#[derive(Clone, Copy)]
struct Left {
    fitted: usize,
    of: usize,
}

/// A list with its first rows, all of them whole, as many as fit; of a first row that is too long by itself a part.
fn list(raw: &str, budget: usize, path: &mut FieldPath<'_>) -> Option<(String, Left)> {
    let rows = Rows::read(raw, budget)?;
    let mut kept = String::from("[");
    for row in &rows.first {
        if kept.len() > 1 {
            kept.push(',');
        }
        kept.push_str(row.get());
    }
    let mut left = Left { fitted: rows.first.len(), of: rows.count };
    if let (0, Some(first)) = (left.fitted, rows.too_long) {
        let part = value(first.get(), budget.saturating_sub(2), &mut path.row(0));
        if let Some(part) = part {
            kept.push_str(&part);
            left.fitted = 1;
        }
    }
    kept.push(']');
    if left.fitted < left.of {
        let Left { fitted, of } = left;
        path.lost(&format!("{fitted} of {of} rows are shown"));
    }
    (kept.len() <= budget).then_some((kept, left))
}

/// An object with its short members whole, and of the long ones as much as fits, each as much as the others. One of too many
/// members has the first of them.
fn object(raw: &str, budget: usize, path: &mut FieldPath<'_>) -> Option<String> {
    let members = Members::read(raw, budget / 4 + 1)?;
    let frame: usize = 2 + members.first.iter().map(|(name, _)| quoted(name).len() + 2).sum::<usize>();
    let lengths = || members.first.iter().map(|(_, value)| value.get().len());
    let most = budget.checked_sub(frame).map_or(0, |budget| level_at(lengths(), budget));
    if members.first.len() < members.count || most < LEAST_BYTES {
        return first_members(&members, budget, path);
    }
    let mut kept: Vec<(&str, Cow<'_, str>)> = Vec::with_capacity(members.first.len());
    let mut cut = Vec::new();
    for (name, raw) in &members.first {
        let raw = raw.get();
        if raw.len() <= most {
            kept.push((name, Cow::Borrowed(raw)));
            continue;
        }
        let mut path = path.member(name);
        let part = match (Level::of_value(raw), path.depth < DEPTH) {
            (Some(Level::List), true) => list(raw, most, &mut path).map(|(part, left)| {
                cut.push(left);
                part
            }),
            (_, _) => value(raw, most, &mut path),
        };
        match part {
            Some(part) => kept.push((name, Cow::Owned(part))),
            None => path.lost(&format!("left out, {} bytes", raw.len())),
        }
    }
    for (name, value) in &mut kept {
        let of = |left: &&Left| left.fitted < left.of && **value == *left.of.to_string();
        if COUNTS.contains(name)
            && let Some(left) = cut.iter().find(of)
        {
            *value = Cow::Owned(left.fitted.to_string());
        } else if SAYS_MORE.contains(name) && **value == *"false" && cut.iter().any(|left| left.fitted < left.of) {
            *value = Cow::Borrowed("true");
        }
    }
    Some(joined(kept.iter().map(|(name, value)| (*name, &**value))))
}

/// The first members of an object that has many, as many as fit.
fn first_members(members: &Members<'_>, budget: usize, path: &mut FieldPath<'_>) -> Option<String> {
    let mut left = budget.checked_sub(2)?;
    let fits = |(name, value): &&(String, &RawValue)| {
        let bytes = quoted(name).len() + value.get().len() + 2;
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    let kept: Vec<_> = members.first.iter().take_while(fits).collect();
    path.lost(&format!("{} of {} fields are shown", kept.len(), members.count));
    Some(joined(kept.into_iter().map(|(name, value)| (name.as_str(), value.get()))))
}

fn joined<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut json = String::from("{");
    for (name, value) in members {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&quoted(name));
        json.push(':');
        json.push_str(value);
    }
    json.push('}');
    json
}

/// The most that each may have so that all together have `budget`: those that need less leave the rest to the others.
fn level_at(lengths: impl Iterator<Item = usize>, budget: usize) -> usize {
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.sort_unstable();
    let (mut budget, mut others) = (budget, lengths.len());
    for length in lengths {
        let most = budget / others;
        if length > most {
            return most;
        }
        budget -= length;
        others -= 1;
    }
    usize::MAX
}

/// A JSON text in `budget` bytes, cut as text is; `None` of what is no text.
fn text(raw: &str, budget: usize, path: &mut FieldPath<'_>) -> Option<String> {
    let whole: String = parse(raw).ok()?;
    // The quotation marks, and three bytes for the sign at its end.
    let mut left = budget.checked_sub(5)?;
    let mut end = 0;
    for (at, c) in whole.char_indices() {
        let bytes = match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if c < ' ' => 6,
            c => c.len_utf8(),
        };
        let Some(rest) = left.checked_sub(bytes) else { break };
        (left, end) = (rest, at + c.len_utf8());
    }
    path.lost(&format!("{end} of {} bytes of text", whole.len()));
    Some(quoted(&format!("{}…", &whole[..end])))
}

#[cfg(test)]
mod tests;
