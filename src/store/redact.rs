//! Takes secrets out of what is written to the trail: values of fields that are named like secrets, and pieces of text that look like
//! them, also in JSON that stands inside a text, as results of tools do.
//!
//! It knows forms, not secrets: what has neither the name nor the look of one stays.

use std::borrow::Cow;

use serde_json::Value;

/// What stands in a secret's place.
const REDACTED: &str = "[redacted]";

/// JSON in a text in JSON in a text: whatever is deeper is looked at as text alone.
const TEXTS_WITHIN: u32 = 4;

/// How the names of secret fields end, in small letters and digits alone: `apiKey`, `x-api-key` and `API_KEY` are one name.
const SECRET_NAMES: [&str; 21] = [
    "password",
    "passwords",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "passwordhash",
    "secret",
    "secrets",
    "token",
    "jwt",
    "bearer",
    "apikey",
    "privatekey",
    "secretkey",
    "accesskey",
    "authorization",
    "cookie",
    "cookies",
    "credential",
    "credentials",
];

/// Names that end like a secret's and tell only where a list goes on.
const HARMLESS_NAMES: [&str; 3] = ["pagetoken", "nexttoken", "continuationtoken"];

/// How keys of well-known services begin, and how many characters follow at least.
const KEY_PREFIXES: [(&str, usize); 17] = [
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
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
];

/// Bytes in which the label of a key in PEM form and its dashes end: more than any has.
const LABEL_BYTES: usize = 60;

/// Takes secrets out of `value`.
pub(super) fn redact(value: &mut Value) {
    within(value, TEXTS_WITHIN);
}

fn within(value: &mut Value, texts: u32) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if let Cow::Owned(cleaned) = clean(text, texts) {
                *text = cleaned;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| within(item, texts)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if is_secret(name) && has_content(field) {
                    *field = Value::String(REDACTED.to_owned());
                } else {
                    within(field, texts);
                }
            }
        }
    }
}

/// Whether a field of that name holds a secret.
fn is_secret(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let letters = letters.trim_end_matches(|c: char| c.is_ascii_digit());
    let ends = |names: &[&str]| names.iter().any(|name| letters.ends_with(name));
    ends(&SECRET_NAMES) && !ends(&HARMLESS_NAMES)
}

/// Whether there is anything to hide: whether a password is set is no secret.
fn has_content(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => true,
    }
}

/// A text without secrets.
fn clean(text: &str, texts: u32) -> Cow<'_, str> {
    if let Some(texts) = texts.checked_sub(1).filter(|_| text.trim_start().starts_with(['{', '[', '"']))
        && let Ok(json) = serde_json::from_str::<Value>(text)
    {
        let mut cleaned = json.clone();
        within(&mut cleaned, texts);
        return if cleaned == json { Cow::Borrowed(text) } else { Cow::Owned(cleaned.to_string()) };
    }
    let mut cleaned = String::new();
    let mut kept = 0;
    let mut at = 0;
    while at < text.len() {
        if is_boundary(text, at)
            && let Some((from, to)) = secret_at(text, at)
        {
            cleaned.push_str(&text[kept..from]);
            cleaned.push_str(REDACTED);
            kept = to;
            at = to;
            continue;
        }
        at += text[at..].chars().next().map_or(1, char::len_utf8);
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    cleaned.push_str(&text[kept..]);
    Cow::Owned(cleaned)
}

/// Whether a secret may be announced or begin at `at`: where a word begins, or at a sign that stands behind words.
fn is_boundary(text: &str, at: usize) -> bool {
    let rest = &text[at..];
    let is_within_word = text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    !is_within_word || rest.starts_with("://") || rest.starts_with("-----")
}

/// Where in the text the secret stands that is announced or begins at `at`.
fn secret_at(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &text[at..];
    let found = match rest.as_bytes().first()? {
        b'-' => private_key(rest),
        b':' => url_password(rest),
        first if first.is_ascii_alphabetic() || *first == b'_' => {
            scheme(rest).or_else(|| web_token(rest)).or_else(|| service_key(rest)).or_else(|| named(rest))
        }
        _ => None,
    };
    found.map(|(from, to)| (at + from, at + to))
}

/// `-----BEGIN … PRIVATE KEY-----` and all that follows up to its end, or of the text where that is missing.
fn private_key(rest: &str) -> Option<(usize, usize)> {
    let label = rest.strip_prefix("-----BEGIN ")?;
    let label = &label[..label.floor_char_boundary(LABEL_BYTES)];
    let label = &label[..label.find("-----")?];
    if !label.ends_with("PRIVATE KEY") {
        return None;
    }
    let end = format!("-----END {label}-----");
    Some((0, rest.find(&end).map_or(rest.len(), |at| at + end.len())))
}

/// The password in `://user:password@`.
fn url_password(rest: &str) -> Option<(usize, usize)> {
    let after = rest.strip_prefix("://")?;
    let authority = run(after, |c| !c.is_whitespace() && !matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>'));
    let userinfo = &after[..after[..authority].rfind('@')?];
    let from = userinfo.find(':')? + 1;
    (from < userinfo.len()).then_some((3 + from, 3 + userinfo.len()))
}

/// The credentials in `Bearer …` and `Basic …`. Words of a sentence that begins so have small letters alone.
fn scheme(rest: &str) -> Option<(usize, usize)> {
    let name = ["bearer ", "basic "]
        .into_iter()
        .find(|name| rest.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name)))?;
    let from = name.len() + run(&rest[name.len()..], |c| c == ' ');
    let length =
        run(&rest[from..], |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~' | '+' | '/' | '='));
    let credentials = &rest[from..from + length];
    let looks_random =
        length >= 32 || credentials.bytes().skip(1).any(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    (length >= 8 && looks_random).then_some((from, from + length))
}

/// Three parts of base64 with dots between, the first a JSON object.
fn web_token(rest: &str) -> Option<(usize, usize)> {
    if !rest.starts_with("eyJ") {
        return None;
    }
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

/// A key as well-known services give them. One without any digit is a word.
fn service_key(rest: &str) -> Option<(usize, usize)> {
    let (prefix, least) = KEY_PREFIXES.into_iter().find(|(prefix, _)| rest.starts_with(prefix))?;
    let length = run(&rest[prefix.len()..], |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let key = &rest[..prefix.len() + length];
    (length >= least && key.bytes().any(|b| b.is_ascii_digit())).then_some((0, key.len()))
}

/// The value in `password=…`, `"password": "…"` and `Authorization: …`.
fn named(rest: &str) -> Option<(usize, usize)> {
    let length = run(rest, |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let name = &rest[..length];
    if length > 64 || !is_secret(name) {
        return None;
    }
    let after = &rest[length..];
    let is_quoted = after.starts_with(['"', '\'']);
    let sign = length + usize::from(is_quoted);
    let sign = sign + run(&rest[sign..], |c| c == ' ');
    let is_equals = rest[sign..].starts_with('=');
    if !is_equals && !rest[sign..].starts_with(':') {
        return None;
    }
    let from = sign + 1 + run(&rest[sign + 1..], |c| c == ' ');
    let value = &rest[from..];
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let end = value[1..].find(quote).map_or(value.len(), |at| at + 1);
        return (end > 1).then_some((from + 1, from + end));
    }
    // A sentence may say `password:`; a header's whole line is one.
    let lower = name.to_ascii_lowercase();
    let is_header = !is_equals && (lower.ends_with("authorization") || lower.ends_with("cookie"));
    let length = if is_header {
        run(value, |c| !matches!(c, '\r' | '\n' | '"'))
    } else if is_equals {
        run(value, |c| !c.is_whitespace() && !matches!(c, '&' | ';' | ',' | '"' | '\'' | '<' | '>' | ')'))
    } else {
        0
    };
    (length > 0).then_some((from, from + length))
}

/// How many bytes of `text` from its beginning are of characters that `fits`.
fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::redact;

    fn redacted(mut value: Value) -> Value {
        redact(&mut value);
        value
    }

    #[test]
    fn values_of_secret_fields_are_taken_out() {
        let gone = ["password", "Password", "user_password", "newPassword2", "pwd", "apiKey", "x-api-key", "API_KEY"];
        let gone = gone.into_iter().chain(["client_secret", "access_token", "refreshToken", "token", "Authorization"]);
        for name in
            gone.chain(["Set-Cookie", "private_key", "privatekey", "credentials", "aws_secret_access_key", "jwt"])
        {
            for value in [json!("x"), json!(1234), json!(["x"]), json!({ "x": 1 })] {
                assert_eq!(
                    redacted(json!({ "a": [{ name: value }] })),
                    json!({ "a": [{ name: "[redacted]" }] }),
                    "{name}"
                );
            }
        }
        let stays = ["input_tokens", "max_tokens", "tokenizer", "secretary", "passwordless", "key", "next_page_token"];
        for name in stays.into_iter().chain(["author", "cookie_banner", "token_count", "nextToken"]) {
            let value = json!({ name: 7, "b": { name: "seven" } });
            assert_eq!(redacted(value.clone()), value, "{name}");
        }
        let nothing = json!({ "password": null, "has_password": true, "token": "" });
        assert_eq!(redacted(nothing.clone()), nothing, "there is nothing to hide");
    }

    #[test]
    fn pieces_of_text_that_look_like_secrets_are_taken_out() {
        // Written in parts, so that nobody who looks for secrets finds any here.
        let jwt = ["eyJhbGciOiJub25lIn0", "eyJzdWIiOiJhbm4ifQ", "c2ln"].join(".");
        let key = ["sk", "ant", "api03", "abcdefghijkl"].join("-");
        let hub = ["ghp", "0123456789abcdefABCD"].join("_");
        let cloud = ["AKIA", "ABCDEFGHIJKLMNO7"].concat();
        let pem = |kind: &str| format!("-----BEGIN {kind}-----\nMII\n-----END {kind}-----");
        let rows = [
            (
                "curl -H 'Authorization: Bearer abc.def-123'".to_owned(),
                "curl -H 'Authorization: [redacted]",
                "a header's line",
            ),
            (
                "it said Bearer abcDEF123 twice".to_owned(),
                "it said Bearer [redacted] twice",
                "a scheme with its credentials",
            ),
            ("BASIC dXNlcjpwYXNz".to_owned(), "BASIC [redacted]", "in any letters"),
            (format!("<{jwt}>"), "<[redacted]>", "a web token"),
            (format!("key {key}, and"), "key [redacted], and", "a model service's key"),
            (hub, "[redacted]", "nothing but a key"),
            (format!("id={cloud}"), "id=[redacted]", "a cloud's key"),
            (format!("a {} b", pem("RSA PRIVATE KEY")), "a [redacted] b", "a private key"),
            ("x -----BEGIN PRIVATE KEY-----\nMII".to_owned(), "x [redacted]", "that was cut off"),
            (
                "postgres://ann:hun:ter@2@db/x?a=b".to_owned(),
                "postgres://ann:[redacted]@db/x?a=b",
                "a password in an address",
            ),
            ("?page=2&access_token=abc&x=1".to_owned(), "?page=2&access_token=[redacted]&x=1", "a parameter"),
            (
                "{\"password\": \"hunter2\", \"cut".to_owned(),
                "{\"password\": \"[redacted]\", \"cut",
                "json that was cut off",
            ),
            ("password='hunter 2' x".to_owned(), "password='[redacted]' x", "quoted"),
            ("Cookie: a=b; c=d\nnext".to_owned(), "Cookie: [redacted]\nnext", "all of a header"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(redacted(json!(text)), json!(expected), "{reason}");
        }
    }

    #[test]
    fn what_only_sounds_like_a_secret_stays() {
        let rows = [
            ("", "nothing"),
            ("The password must have 8 characters; password: see below", "a sentence about passwords"),
            ("Bearer authentication is required", "a sentence about a scheme"),
            ("the bearer of good news, basic understanding", "words"),
            ("max_tokens=5 input_tokens: 12", "counts"),
            ("sk-learn-is-a-library-for-python", "a word with hyphens"),
            ("task-1234567890123456789", "the end of a word"),
            ("ann@example.com https://example.com/a:b@c ftp://ann@host/", "addresses without a password"),
            ("-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----", "a certificate is public"),
            ("eyJ is how they begin. eyJhbGciOiJub25lIn0.x", "half a web token"),
            ("Züge \u{1F600} -----", "other characters"),
            ("{ \"b\" : 1.0, \"a\" : \"x\" }", "json without secrets keeps its look"),
            ("password=", "no value"),
        ];
        for (text, reason) in rows {
            assert_eq!(redacted(json!(text)), json!(text), "{reason}");
        }
    }

    #[test]
    fn secrets_in_json_inside_texts_are_taken_out() {
        let inner = json!({ "ok": true, "token": "abc", "note": "Bearer abc12345" }).to_string();
        let outer = json!({ "result": inner }).to_string();
        let expected = json!({ "ok": true, "token": "[redacted]", "note": "Bearer [redacted]" }).to_string();
        assert_eq!(redacted(json!(inner)), json!(expected));
        assert_eq!(redacted(json!(outer)), json!(json!({ "result": expected }).to_string()), "and in texts in those");
    }
}
