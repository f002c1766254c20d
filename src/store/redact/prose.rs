//! Secrets in prose, commands and code: pieces that are announced by a name, `password=…`, or have the look of one.

use super::cut::REDACTED;
use super::json;
use super::name::{self, Kind};
use super::quote::Quote;
use super::shape::{NAME_BYTES, is_words, private_key, run, scheme, service_key, url, web_token};

/// Bytes of `user:password` behind `-u` that are looked at.
const USER_BYTES: usize = 512;

/// A piece of the text, and whether it must be quoted when it is cut out, as a number in JSON must.
pub(super) struct Piece {
    pub from: usize,
    pub to: usize,
    pub quote: Option<Quote>,
}

impl Piece {
    fn plain((from, to): (usize, usize)) -> Self {
        Self { from, to, quote: None }
    }
}

/// The distance to the next position where a match may begin: a word matches at its first byte.
pub(super) fn passed(bytes: &[u8], at: usize) -> usize {
    let is_escape = matches!(bytes[at], b'n' | b'r' | b't') && at.checked_sub(1).is_some_and(|at| bytes[at] == b'\\');
    match is_escape {
        true => 1,
        false => bytes[at..].iter().take_while(|byte| is_of_word(**byte)).count().max(1),
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The secret that is announced or begins at `at`.
pub(super) fn secret_at(text: &str, at: usize, byte: u8) -> Option<Piece> {
    let shift = |(from, to): (usize, usize)| Piece::plain((at + from, at + to));
    match byte {
        b':' if text[at..].starts_with("://") => url(text, at).map(Piece::plain),
        b'-' if text[at..].starts_with("-----") => private_key(&text[at..]).map(shift),
        b'-' if is_boundary(text, at) => option(text, at).map(Piece::plain),
        b'<' => element(&text[at..]).map(shift),
        _ if is_of_word(byte) && is_boundary(text, at) => {
            let rest = &text[at..];
            let looks = || web_token(rest).or_else(|| service_key(rest)).map(shift);
            scheme(text, at).map(Piece::plain).or_else(looks).or_else(|| named(text, at))
        }
        _ => None,
    }
}

/// Whether a word begins at `at`, also behind the end of a line that was written out as `\n`.
fn is_boundary(text: &str, at: usize) -> bool {
    match text.as_bytes()[..at] {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., last] => !(last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-')),
        [] => true,
    }
}

/// The value in `--password …`, and the password in `-u user:…`.
fn option(text: &str, at: usize) -> Option<(usize, usize)> {
    let length = run(&text[at..], |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let flag = &text[at..at + length];
    let is_user = matches!(flag, "-u" | "--user" | "--proxy-user" | "-U");
    let is_secret = flag.starts_with("--") && name::kind(flag).is_some();
    if !is_user && !is_secret {
        return None;
    }
    let sign = at + length;
    let space = match text.as_bytes().get(sign)? {
        b'=' => 1,
        _ => run(&text[sign..], |c| matches!(c, ' ' | '\t')),
    };
    let from = sign + space;
    if text[from..].starts_with('-') {
        return None;
    }
    // A user without a password is found to be none without a look at all that follows.
    let text = if is_user { &text[..text.floor_char_boundary(from + USER_BYTES)] } else { text };
    let (from, to, is_quoted) = match Quote::at(text, from) {
        Some(quote) => {
            let from = from + quote.len();
            (from, quote.close(text, from).map_or(text.len(), |(to, _)| to), true)
        }
        None => (from, from + run(&text[from..], |c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '`')), false),
    };
    let value = &text[from..to];
    if space == 0 || value.is_empty() || is_placeholder(value) {
        return None;
    }
    if is_user {
        let (user, password) = value.split_once(':')?;
        let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        return (!password.is_empty() && !is_number(&[user, password].concat())).then_some((from + user.len() + 1, to));
    }
    // A sentence may say `--password is …`.
    let is_sentence = !is_quoted && space == 1 && value.len() <= 4 && value.bytes().all(|b| b.is_ascii_lowercase());
    (!is_sentence || text.as_bytes()[sign] == b'=').then_some((from, to))
}

/// The content of `<password>…</password>`.
fn element(rest: &str) -> Option<(usize, usize)> {
    let length = run(&rest[1..], |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'));
    let from = length + 2;
    if rest.as_bytes().get(length + 1) != Some(&b'>') || name::kind(&rest[1..=length]).is_none() {
        return None;
    }
    let inner = &rest[from..];
    let to = if inner.starts_with("<![CDATA[") { inner.find("]]>")? + 3 } else { inner.find('<')? };
    (to > 0 && inner[to..].starts_with("</")).then_some((from, from + to))
}

/// The value in `password=…`, `"password": "…"`, `password: …` and `Authorization: …`.
fn named(text: &str, at: usize) -> Option<Piece> {
    let length = text.as_bytes()[at..].iter().take_while(|byte| is_of_word(**byte) || **byte == b'-').count();
    let mut sign = at + length;
    // Nothing is announced by most words, which is plain by what follows them.
    if !matches!(text.as_bytes().get(sign)?, b'=' | b':' | b' ' | b']' | b'"' | b'\'' | b'\\') {
        return None;
    }
    let name = &text[at..sign];
    let quote = Quote::at(text, sign);
    sign += quote.map_or(0, Quote::len);
    sign += usize::from(text[sign..].starts_with(']'));
    sign += text.as_bytes()[sign..].iter().take_while(|byte| **byte == b' ').count();
    let rest = &text[sign..];
    let is_equals = rest.starts_with(['=']) || rest.starts_with(":=");
    if !is_equals && !rest.starts_with(':') || ["==", "::", "=~", "://"].iter().any(|no| rest.starts_with(no)) {
        return None;
    }
    let kind = name::kind(name)?;
    let from = sign + if rest.starts_with("=>") || rest.starts_with(":=") { 2 } else { 1 };
    let from = from + run(&text[from..], |c| matches!(c, ' ' | '\t'));
    let value = &text[from..];
    if !is_equals && quote.is_none() && name::is_header(name) {
        let around = text[..at].bytes().next_back().filter(|b| matches!(b, b'"' | b'\''));
        return line(text, from, around.map(|mark| before(text, at, mark))).map(Piece::plain);
    }
    if let Some(open) = Quote::at(text, from) {
        let from = from + open.len();
        let to = open.close(text, from).map_or(text.len(), |(to, _)| to);
        return (to > from).then_some(Piece::plain((from, to)));
    }
    if value.starts_with(REDACTED) {
        return None;
    }
    let is_list = value.starts_with('[') && Quote::at(value, 1 + run(&value[1..], char::is_whitespace)).is_some();
    if is_list || quote.is_some() && value.starts_with(['{', '[']) {
        return Some(Piece { from, to: json::skip(text, from), quote: quote.or(Some(json::PLAIN)) });
    }
    let ends = |c: char| matches!(c, '&' | ';' | ',' | '"' | '\'' | '<' | '>' | ')' | '\\' | '`');
    let closes = |c: char| quote.is_some() && matches!(c, '}' | ']');
    let length = run(value, |c| !c.is_whitespace() && !ends(c) && !closes(c));
    let value = value[..length].trim_end_matches('.');
    let is_sure = text[..at].ends_with(['?', '&']) || name.len() > 1 && !name.bytes().any(|b| b.is_ascii_lowercase());
    let is_found = is_value(value, kind, is_equals, is_sure || quote.is_some());
    is_found.then_some(Piece { from, to: from + value.len(), quote: quote.filter(|_| json::is_number(value)) })
}

/// Whether a value that stands behind such a name without quotes is a secret; `is_sure` where no sentence can stand.
fn is_value(value: &str, kind: Kind, is_equals: bool, is_sure: bool) -> bool {
    if value.is_empty() || is_placeholder(value) {
        return false;
    }
    if is_sure {
        return true;
    }
    let has_digit = value.bytes().any(|b| b.is_ascii_digit());
    match (kind, is_equals) {
        (Kind::Strong, true) => true,
        (Kind::Plain | Kind::Loose, true) => !is_words(value, 0),
        (Kind::Strong | Kind::Plain, false) => has_digit || value.len() >= 8,
        (Kind::Loose, false) => value.len() >= 4 && !is_words(value, 0),
    }
}

/// Whether it says that there is no value, or where the value comes from, as code does.
fn is_placeholder(value: &str) -> bool {
    if value.len() > NAME_BYTES {
        return false;
    }
    let none = ["null", "none", "nil", "true", "false", "undefined", "required", "optional"];
    if none.iter().any(|word| word.eq_ignore_ascii_case(value)) {
        return true;
    }
    if let Some(variable) = value.strip_prefix('$') {
        let variable = variable.trim_start_matches(['{', '(']);
        return variable.bytes().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'}' | b')' | b'.'));
    }
    if value.starts_with("{{") || value.starts_with("***") {
        return true;
    }
    // `self.password`, `AccessToken`, `read_password(`: a name of the secret, or a call.
    let path = run(value, |c| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | ':'));
    let rest = &value[path..];
    // `user:password[` is none; `module::password[` may be.
    let is_path = path > 0 && !value[..path].replace("::", "").contains(':');
    is_path
        && (rest.starts_with(['(', '[']) && !rest.starts_with(REDACTED)
            || rest.is_empty() && name::kind(value).is_some())
}

/// The quote that stands right before `at`, with its backslashes.
fn before(text: &str, at: usize, mark: u8) -> Quote {
    let slashes = text.as_bytes()[..at - 1].iter().rev().take_while(|byte| **byte == b'\\').count();
    Quote { mark, slashes }
}

/// A header's value: to the end of the line, or of what the header stands in quotes of.
fn line(text: &str, from: usize, around: Option<Quote>) -> Option<(usize, usize)> {
    let quoted = around.and_then(|quote| quote.close(text, from)).map(|(to, _)| to);
    let to = quoted
        .filter(|to| !text[from..*to].contains(['\r', '\n']))
        .unwrap_or_else(|| from + run(&text[from..], |c| !matches!(c, '\r' | '\n')));
    (to > from && !text[from..to].trim().is_empty()).then_some((from, to))
}
