//! Secrets that are known by their own look, whatever stands around them: keys of services, web tokens, credentials
//! behind a scheme.

/// How keys of well-known services begin, and how many characters follow at least.
const KEY_PREFIXES: [(&str, usize); 25] = [
    ("sk-", 16),
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxe-", 10),
    ("xapp-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("whsec_", 10),
    ("npm_", 10),
    ("hf_", 10),
    ("gsk_", 10),
    ("dop_v1_", 10),
    ("SG.", 10),
];

/// Whether a key begins with this byte: most words begin with another one.
const BEGINS_KEY: [bool; 256] = {
    let mut begins = [false; 256];
    let mut rest = KEY_PREFIXES.as_slice();
    while let [(prefix, _), others @ ..] = rest {
        if let [first, ..] = prefix.as_bytes() {
            begins[*first as usize] = true;
        }
        rest = others;
    }
    begins
};

/// Letters that no word has in a row.
const WORD: usize = 16;

/// Bytes of words that are joined: more is no name, and not looked through again and again.
pub(super) const NAME_BYTES: usize = 64;

/// Bytes in which the label of a key in PEM and its dashes end: more than any has.
const LABEL_BYTES: usize = 60;

/// Bytes of a password in an address with a `/` in it that are looked through for the `@` behind it.
const PASSWORD_BYTES: usize = 256;

/// `-----BEGIN … PRIVATE KEY-----` and all that follows up to its end, or of the text where that is missing.
pub(super) fn private_key(rest: &str) -> Option<(usize, usize)> {
    let label = rest.strip_prefix("-----BEGIN ")?;
    let label = &label[..label.floor_char_boundary(LABEL_BYTES)];
    let label = &label[..label.find("-----")?];
    if !label.ends_with("PRIVATE KEY") {
        return None;
    }
    let end = format!("-----END {label}-----");
    Some((0, rest.find(&end).map_or(rest.len(), |at| at + end.len())))
}

/// The credentials in the address around `://` at `at`: `user:password@`, a token as user, a hook's path.
pub(super) fn url(text: &str, at: usize) -> Option<(usize, usize)> {
    let is_scheme = |name: &str| {
        at.checked_sub(name.len()).and_then(|from| text.get(from..at)).is_some_and(|s| s.eq_ignore_ascii_case(name))
    };
    let is_web = is_scheme("http") || is_scheme("https");
    let base = at + 3;
    let after = text.get(base..)?;
    if let Some(path) = after.strip_prefix("hooks.slack.com/") {
        let path_at = base + after.len() - path.len();
        let kind = ["services/", "workflows/", "triggers/"].into_iter().find(|kind| path.starts_with(kind))?;
        let from = path_at + kind.len();
        let length = run(&text[from..], |c| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_'));
        return (length > 0).then_some((from, from + length));
    }
    let fits = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | '<' | '>' | '`' | '\\');
    let authority = run(after, |c| fits(c) && !matches!(c, '/' | '?' | '#'));
    let userinfo = match after[..authority].rfind('@') {
        Some(end) => &after[..end],
        None => {
            let (_, port) = after[..authority].split_once(':').filter(|_| !after.starts_with('['))?;
            let is_port = port.bytes().all(|b| b.is_ascii_digit()) || port.starts_with(['$', '{', '*']);
            if is_port && (is_web || port.is_empty() || port.len() > 3) {
                return None;
            }
            let near = &after[..after.floor_char_boundary(PASSWORD_BYTES)];
            let near = &near[..run(near, fits)];
            &near[..near.rfind('@')?]
        }
    };
    let from = match userinfo.find(':') {
        Some(colon) if !is_web => colon + 1,
        Some(_) => 0,
        None if is_web => 0,
        None => return None,
    };
    (from < userinfo.len()).then_some((base + from, base + userinfo.len()))
}

/// The credentials in `Bearer …` and `Basic …` at `at`. Words of a sentence that begins so look like words.
pub(super) fn scheme(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &text[at..];
    let [b'b' | b'B', ..] = rest.as_bytes() else { return None };
    let name = ["bearer", "basic"]
        .into_iter()
        .find(|name| rest.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name)))?;
    let space = run(&rest[name.len()..], char::is_whitespace);
    let from = name.len() + space;
    let length = run(&rest[from..], |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~' | '+' | '/'));
    let length = length + run(&rest[from + length..], |c| c == '=');
    let credentials = rest[from..from + length].trim_end_matches('.');
    if space == 0 || credentials.is_empty() {
        return None;
    }
    // In the middle of a sentence even a word with a number behind it is one: `of bearer Bonds1234`.
    let is_sentence =
        rest.starts_with('b') && text[..at].ends_with(' ') && !text[..at].trim_end().ends_with([':', '=']);
    let digits = if is_sentence { 4 } else { 0 };
    (!is_words(credentials.trim_end_matches('='), digits)).then_some((at + from, at + from + credentials.len()))
}

/// Three parts of base64 with dots between, the first a JSON object.
pub(super) fn web_token(rest: &str) -> Option<(usize, usize)> {
    let [b'e', b'y', b'J', ..] = rest.as_bytes() else { return None };
    let part = |from: usize| run(&rest[from..], |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let header = part(0);
    let claims = header + 1;
    if header < 10 || rest.as_bytes().get(header) != Some(&b'.') {
        return None;
    }
    let signature = claims + part(claims) + 1;
    if signature < claims + 5 || rest.as_bytes().get(signature - 1) != Some(&b'.') {
        return None;
    }
    Some((0, signature + part(signature)))
}

/// A key as well-known services give them. One of words is a name: `npm_config_registry`.
pub(super) fn service_key(rest: &str) -> Option<(usize, usize)> {
    let first = rest.as_bytes().first()?;
    if !BEGINS_KEY[usize::from(*first)] {
        return None;
    }
    let begins = |prefix: &str| prefix.as_bytes().first() == Some(first) && rest.starts_with(prefix);
    let (prefix, least) = KEY_PREFIXES.iter().find(|(prefix, _)| begins(prefix))?;
    let has_dots = prefix.ends_with('.');
    let length = run(&rest[prefix.len()..], |c| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '=') || has_dots && c == '.'
    });
    let key = rest[prefix.len()..prefix.len() + length].trim_end_matches('.');
    (key.len() >= *least && !is_words(key, 0)).then_some((0, prefix.len() + key.len()))
}

/// Whether it may be words of a sentence or names in code, joined by signs, the last with `digits` behind it at most.
pub(super) fn is_words(text: &str, digits: usize) -> bool {
    let letters = text.trim_end_matches(|c: char| c.is_ascii_digit());
    text.len() <= NAME_BYTES
        && text.len() - letters.len() <= digits
        && letters.split(['-', '_', '.', '/', ':']).all(|part| part.len() < 2 * WORD && is_word(part))
}

fn is_word(part: &str) -> bool {
    let bytes = part.as_bytes();
    if !bytes.iter().all(u8::is_ascii_alphabetic) {
        return false;
    }
    if bytes.iter().all(u8::is_ascii_uppercase) {
        return bytes.len() < WORD;
    }
    let mut hump = 0;
    bytes.iter().enumerate().all(|(at, byte)| {
        if at > 0 && byte.is_ascii_uppercase() {
            let is_hump = at - hump > 2 && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            hump = at;
            return is_hump;
        }
        at - hump < WORD - 1
    })
}

/// How many bytes of `text` from its beginning are of characters that `fits`.
pub(super) fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}
