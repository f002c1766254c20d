//! Which names are a secret's. A name is taken as its words, so that `x-api-key`, `apiKey` and `API_KEY` are one, and
//! `pin` is not in `spin`.

/// How surely what has such a name is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing else has such a name, whatever the value looks like.
    Strong,
    /// Sentences use the word too: `token=economy`.
    Plain,
    /// A short word with other meanings: `pin`, `auth`.
    Loose,
}

/// Letters and digits of a name that are looked at, from its end.
const LETTERS: usize = 64;

/// How the joined words of names end that mean nothing else.
const STRONG: [&str; 24] = [
    "password",
    "passwords",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "passwordhash",
    "apikey",
    "apikeys",
    "privatekey",
    "privatekeys",
    "secretkey",
    "secretkeys",
    "accesskey",
    "accesskeys",
    "signingkey",
    "encryptionkey",
    "authorization",
    "credential",
    "credentials",
    "sessionid",
    "sessid",
    "cookie",
    "cookies",
];

/// How names end that are strong with a word before them, and plain alone.
const PLAIN: [&str; 5] = ["secret", "secrets", "token", "jwt", "bearer"];

/// Words before `tokens` that are no counts.
const OF_TOKENS: [&str; 10] =
    ["access", "refresh", "auth", "api", "bearer", "session", "id", "device", "csrf", "secret"];

/// Last words that are a secret's as whole words alone.
const LOOSE: [&str; 6] = ["pin", "otp", "totp", "auth", "cvv", "cvc"];

/// Words before a `signature` or a `sid` that proves something; the signature of a function does not.
const OF_PROOF: [&str; 10] =
    ["x", "hub", "webhook", "request", "hmac", "stripe", "slack", "svix", "connect", "session"];

/// Names that end like a secret's and tell only where a list goes on, or count.
const HARMLESS: [&str; 5] = ["pagetoken", "nexttoken", "continuationtoken", "maxtoken", "pertoken"];

/// Last words that leave the meaning to what stands before them.
const NEUTRAL: [&str; 15] = [
    "value",
    "values",
    "confirm",
    "confirmation",
    "confirmed",
    "again",
    "repeat",
    "base",
    "hash",
    "text",
    "string",
    "plain",
    "header",
    "raw",
    "v",
];

/// Fields of pairs that hold a name, as in `{"name": "Authorization", "value": "…"}`.
const OF_PAIR_NAMES: [&str; 8] = ["name", "key", "header", "field", "label", "type", "variable", "param"];

/// The kind of secret that a field of that name holds; `None` where it holds none.
pub(super) fn kind(name: &str) -> Option<Kind> {
    let mut words = Words::from_name(name);
    while words.count > 1 && NEUTRAL.contains(&words.last()) {
        words.pop();
    }
    let joined = words.joined();
    let newest = joined.bytes().next_back();
    // Most names differ in their last letter already.
    let ends = |names: &[&str]| names.iter().any(|name| name.bytes().next_back() == newest && joined.ends_with(name));
    if ends(&HARMLESS) {
        return None;
    }
    if ends(&STRONG) {
        return Some(Kind::Strong);
    }
    if ends(&PLAIN) {
        return Some(if PLAIN.contains(&joined) { Kind::Plain } else { Kind::Strong });
    }
    let last = words.last();
    let before = joined.strip_suffix("tokens");
    if let Some(before) = before {
        let is_of = OF_TOKENS.iter().any(|of| before.ends_with(of));
        return if before.is_empty() { Some(Kind::Plain) } else { is_of.then_some(Kind::Strong) };
    }
    if LOOSE.contains(&last) {
        return Some(Kind::Loose);
    }
    if matches!(last, "signature" | "sid") {
        let before = joined.strip_suffix(last).unwrap_or_default();
        let is_of = before.is_empty() || OF_PROOF.iter().any(|of| before.ends_with(of));
        return is_of.then_some(Kind::Loose);
    }
    None
}

/// Whether a header of that name is a secret to the end of its line.
pub(super) fn is_header(name: &str) -> bool {
    let ends = |end: &str| name.len().checked_sub(end.len()).and_then(|at| name.get(at..));
    ["authorization", "cookie"].into_iter().any(|end| ends(end).is_some_and(|tail| tail.eq_ignore_ascii_case(end)))
}

/// Whether a field of that name holds the name in a pair.
pub(super) fn is_pair_name(name: &str) -> bool {
    OF_PAIR_NAMES.iter().any(|of| of.eq_ignore_ascii_case(name))
}

/// Whether a field of that name holds the value in a pair.
pub(super) fn is_pair_value(name: &str) -> bool {
    ["value", "values", "val"].iter().any(|of| of.eq_ignore_ascii_case(name))
}

/// The words of a name in small letters, without digits at their ends.
struct Words {
    letters: [u8; LETTERS],
    /// Where each word ends.
    ends: [u8; LETTERS],
    count: usize,
}

impl Words {
    fn from_name(name: &str) -> Self {
        let bytes = name.as_bytes();
        let bytes = &bytes[bytes.len().saturating_sub(LETTERS)..];
        let mut words = Self { letters: [0; LETTERS], ends: [0; LETTERS], count: 0 };
        let mut length = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let before = at.checked_sub(1).map_or(b' ', |at| bytes[at]);
            let after = bytes.get(at + 1).copied().unwrap_or(b' ');
            let is_hump = byte.is_ascii_uppercase()
                && (before.is_ascii_lowercase() || before.is_ascii_digit() || after.is_ascii_lowercase());
            if is_hump || !byte.is_ascii_alphanumeric() {
                length = words.end(length);
            }
            if byte.is_ascii_alphanumeric() {
                words.letters[length] = byte.to_ascii_lowercase();
                length += 1;
            }
        }
        words.end(length);
        words
    }

    /// Ends a word at `length`, and tells how many letters there are then.
    fn end(&mut self, mut length: usize) -> usize {
        let from = self.end_before(1);
        while length > from && self.letters[length - 1].is_ascii_digit() {
            length -= 1;
        }
        if length > from {
            // There are no more than `LETTERS`.
            self.ends[self.count] = u8::try_from(length).unwrap_or(u8::MAX);
            self.count += 1;
        }
        length
    }

    /// Where the word ends that is so far from the end of the list; 0 where there is none.
    fn end_before(&self, back: usize) -> usize {
        self.count.checked_sub(back).map_or(0, |word| usize::from(self.ends[word]))
    }

    fn pop(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    fn between(&self, from: usize) -> &str {
        let to = self.end_before(1);
        std::str::from_utf8(&self.letters[from..to]).unwrap_or_default()
    }

    fn joined(&self) -> &str {
        self.between(0)
    }

    fn last(&self) -> &str {
        self.between(self.end_before(2))
    }
}
