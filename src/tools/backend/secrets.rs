//! That nothing of what a request presents comes back.

use std::borrow::Cow;

use secrecy::{ExposeSecret, SecretString};

/// The shortest secret of the settings that is looked for in answers, in bytes: a shorter one may be any word.
pub const LEAST_SECRET_BYTES: usize = 8;

/// What stands in the place of a secret that a backend repeats.
const REDACTED: &str = "[redacted]";

/// The secrets of a request, none of which may reach a model or a transcript by a backend that repeats it.
#[derive(Clone)]
pub struct Secrets(Vec<SecretString>);

impl FromIterator<SecretString> for Secrets {
    fn from_iter<I: IntoIterator<Item = SecretString>>(secrets: I) -> Self {
        Self(secrets.into_iter().collect())
    }
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
