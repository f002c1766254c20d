//! That nothing of what a request presents comes back.

use std::borrow::Cow;

use secrecy::{ExposeSecret, SecretString};

/// The shortest secret of the settings that is looked for in answers, in bytes: a shorter one may be any word.
pub const LEAST_SECRET_BYTES: usize = 8;

/// What stands in the place of a secret that a backend repeats.
const REDACTED: &str = "[redacted]";

/// The secrets of a request, none of which may reach a model or a transcript by a backend that repeats it; each in all the ways
/// that it is written in JSON.
#[derive(Clone)]
pub struct Secrets(Vec<SecretString>);

impl FromIterator<SecretString> for Secrets {
    fn from_iter<I: IntoIterator<Item = SecretString>>(secrets: I) -> Self {
        let all = secrets.into_iter().flat_map(|secret| {
            let escaped = ESCAPES.map(|escape| escaped(secret.expose_secret(), escape));
            let escaped = escaped.into_iter().flatten().map(SecretString::from);
            escaped.chain([secret]).collect::<Vec<_>>()
        });
        Self(all.collect())
    }
}

/// What libraries spell out of the signs that secrets have, which JSON lets them: PHP; .NET; Gson, and Go's `&`.
const ESCAPES: [fn(char) -> Option<String>; 3] = [
    |sign| (sign == '/').then(|| "\\/".to_owned()),
    |sign| matches!(sign, '+' | '&' | '<' | '>' | '\'' | '`').then(|| format!("\\u{:04X}", u32::from(sign))),
    |sign| matches!(sign, '=' | '&' | '<' | '>' | '\'').then(|| format!("\\u{:04x}", u32::from(sign))),
];

/// `secret` as one of them writes it, if that is another way.
fn escaped(secret: &str, escape: fn(char) -> Option<String>) -> Option<String> {
    // Tokens, which are the longest, have none of these signs.
    secret.chars().find_map(escape)?;
    Some(secret.chars().map(|sign| escape(sign).unwrap_or_else(|| sign.to_string())).collect())
}

impl Secrets {
    /// `text` without them.
    pub fn removed<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.iter().map(ExposeSecret::expose_secret).fold(Cow::Borrowed(text), |text, secret| {
            match text.contains(secret) {
                true => Cow::Owned(text.replace(secret, REDACTED)),
                false => text,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_whatever_way_it_is_written() {
        let secrets: Secrets = ["mH7/abcd+EFGH==".into()].into_iter().collect();
        for (text, written) in [
            ("mH7/abcd+EFGH==", "as it is"),
            (r"mH7\/abcd+EFGH==", "by PHP"),
            (r"mH7/abcd\u002BEFGH==", "by .NET"),
            (r"mH7/abcd+EFGH\u003d\u003d", "by Gson"),
        ] {
            assert_eq!(secrets.removed(&format!("Bearer {text}.")), "Bearer [redacted].", "{written}");
        }
        assert_eq!(secrets.removed("mH7/abcd EFGH=="), "mH7/abcd EFGH==", "another one");
    }
}
