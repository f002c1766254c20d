//! A text without its secrets: prose, and JSON in it, whose strings are texts again. JSON is looked at where it stands,
//! so that what is no secret stays byte by byte.

use std::borrow::Cow;

use super::cut::{Cuts, REDACTED};
use super::json::{self, PLAIN};
use super::name;
use super::prose::{Piece, passed, secret_at};
use super::quote::Quote;

/// A text without secrets; JSON in it is looked into down to `depth`.
pub(super) fn clean(text: &str, depth: u32) -> Cow<'_, str> {
    let mut cuts = Cuts::default();
    if !whole_string(text, depth, &mut cuts) {
        scan(text, depth, &mut cuts);
    }
    cuts.apply(text)
}

/// Finds secrets in a text. Each byte is looked at a few times at most, however the text was made.
pub(super) fn scan(text: &str, depth: u32, cuts: &mut Cuts) {
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        if matches!(byte, b'{' | b'[') && depth > 0 {
            at = walk(text, at, depth, cuts);
            continue;
        }
        match secret_at(text, at, *byte) {
            Some(Piece { from, to, quote }) => {
                match quote {
                    Some(quote) => cuts.add(from, to, quote.around(REDACTED)),
                    None => cuts.add(from, to, REDACTED),
                }
                at = to;
            }
            None => at += passed(text.as_bytes(), at),
        }
    }
}

/// Takes secrets out of the object or list that begins at `at`, and returns where it ends, or where it stops being one.
fn walk(text: &str, at: usize, depth: u32, cuts: &mut Cuts) -> usize {
    let mut walk = Walk { text, cuts, quote: None };
    match walk.value(at, depth) {
        Ok(end) | Err(end) => end.max(at + 1),
    }
}

/// Takes secrets out of a text that is one JSON string; false when it is none.
fn whole_string(text: &str, depth: u32, cuts: &mut Cuts) -> bool {
    let from = json::spaces(text, 0);
    let Some(quote) = Quote::at(text, from).filter(|quote| *quote == PLAIN && depth > 0) else { return false };
    let is_whole = quote.close(text, from + 1).is_some_and(|(_, end)| end == text.trim_end().len());
    is_whole && Walk { text, cuts, quote: Some(quote) }.string(from, depth).is_ok()
}

struct Walk<'a, 'c> {
    text: &'a str,
    cuts: &'c mut Cuts,
    /// How names and strings are quoted, once one was met.
    quote: Option<Quote>,
}

impl<'a> Walk<'a, '_> {
    /// Where the value at `at` ends; where what is none begins.
    fn value(&mut self, at: usize, depth: u32) -> Result<usize, usize> {
        let below = depth.checked_sub(1).ok_or(at)?;
        match self.text.as_bytes().get(at) {
            Some(b'{') => self.object(at + 1, below),
            Some(b'[') => self.list(at + 1, below),
            Some(b'"' | b'\'' | b'\\') => self.string(at, below),
            Some(_) => {
                let end = json::scalar(self.text, at);
                let word = &self.text[at..end];
                if matches!(word, "null" | "true" | "false") || json::is_number(word) { Ok(end) } else { Err(at) }
            }
            None => Err(at),
        }
    }

    fn list(&mut self, at: usize, depth: u32) -> Result<usize, usize> {
        let mut at = json::spaces(self.text, at);
        if self.byte(at) == Some(b']') {
            return Ok(at + 1);
        }
        loop {
            at = json::spaces(self.text, self.value(at, depth)?);
            match self.byte(at) {
                Some(b',') => at = json::spaces(self.text, at + 1),
                Some(b']') => return Ok(at + 1),
                _ => return Err(at),
            }
        }
    }

    fn object(&mut self, at: usize, depth: u32) -> Result<usize, usize> {
        let mut at = json::spaces(self.text, at);
        if self.byte(at) == Some(b'}') {
            return Ok(at + 1);
        }
        let mut has_secret_name = false;
        let mut pair_value = None;
        loop {
            let start = at;
            let (from, to, end) = self.quoted(at)?;
            let key = self.plain(from, to);
            at = json::spaces(self.text, end);
            if self.byte(at) != Some(b':') {
                return Err(start);
            }
            at = json::spaces(self.text, at + 1);
            let is_pair_value = name::is_pair_value(&key);
            let value = at;
            at = if name::kind(&key).is_some() || is_pair_value && has_secret_name {
                self.secret(at).ok_or(start)?
            } else {
                self.value(at, depth)?
            };
            if is_pair_value {
                pair_value = Some(value);
            } else if name::is_pair_name(&key)
                && let Ok((from, to, _)) = self.quoted(value)
                && name::kind(&self.plain(from, to)).is_some()
            {
                has_secret_name = true;
                if let Some(value) = pair_value.take() {
                    self.late_secret(value);
                }
            }
            at = json::spaces(self.text, at);
            match self.byte(at) {
                Some(b',') => at = json::spaces(self.text, at + 1),
                Some(b'}') => return Ok(at + 1),
                _ => return Err(at),
            }
        }
    }

    /// Cuts the value at `at` out, if there is anything to hide, and returns where it ends; `None` where none stands.
    fn secret(&mut self, at: usize) -> Option<usize> {
        match self.byte(at)? {
            b'"' | b'\'' | b'\\' => {
                let quote = Quote::at(self.text, at)?;
                let from = at + quote.len();
                let (to, end) = quote.close(self.text, from).unwrap_or((self.text.len(), self.text.len()));
                if to > from {
                    self.cuts.add(from, to, REDACTED);
                }
                Some(end)
            }
            b'[' if self.text[at..].starts_with(REDACTED) => None,
            b'{' | b'[' => {
                let end = json::skip(self.text, at);
                self.cuts.add(at, end, self.quote.unwrap_or(PLAIN).around(REDACTED));
                Some(end)
            }
            _ => {
                let end = json::scalar(self.text, at);
                let word = &self.text[at..end];
                if json::is_number(word) {
                    self.cuts.add(at, end, self.quote.unwrap_or(PLAIN).around(REDACTED));
                }
                (json::is_number(word) || matches!(word, "null" | "true" | "false")).then_some(end)
            }
        }
    }

    /// Cuts a value out whose name came behind it; what was cut since stays cut.
    fn late_secret(&mut self, at: usize) {
        let behind = self.cuts.split_off(json::skip_value(self.text, at));
        self.secret(at);
        self.cuts.append(behind, 0);
    }

    fn string(&mut self, at: usize, depth: u32) -> Result<usize, usize> {
        let (from, to, end) = self.quoted(at)?;
        let content = &self.text[from..to];
        let is_plain = self.quote == Some(PLAIN);
        if is_plain
            && content.contains('\\')
            && let Ok(decoded) = serde_json::from_str::<String>(&self.text[at..end])
        {
            if let Cow::Owned(cleaned) = clean(&decoded, depth) {
                self.cuts.add(at, end, serde_json::Value::String(cleaned).to_string());
            }
        } else {
            let mut cuts = Cuts::default();
            // What cannot be unquoted is looked at as it stands, and JSON in it by the quotes it has.
            scan(content, if is_plain { depth } else { 0 }, &mut cuts);
            self.cuts.append(cuts, from);
        }
        Ok(end)
    }

    /// Where the content of the string at `at` begins and ends, and where it goes on behind.
    fn quoted(&mut self, at: usize) -> Result<(usize, usize, usize), usize> {
        let quote =
            Quote::at(self.text, at).filter(|quote| self.quote.is_none_or(|known| known == *quote)).ok_or(at)?;
        let from = at + quote.len();
        let (to, end) = quote.close(self.text, from).filter(|(to, end)| to < end).ok_or(at)?;
        self.quote = Some(quote);
        Ok((from, to, end))
    }

    /// The name between quotes, without its escapes.
    fn plain(&self, from: usize, to: usize) -> Cow<'a, str> {
        let text = self.text;
        let content = &text[from..to];
        if self.quote == Some(PLAIN)
            && content.contains('\\')
            && let Ok(name) = serde_json::from_str(&text[from - 1..=to])
        {
            return Cow::Owned(name);
        }
        Cow::Borrowed(content)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }
}
