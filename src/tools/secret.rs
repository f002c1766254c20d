//! Values of settings that are never printed.

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Headers that frame a message or say where it goes: no setting may set them.
const RESERVED: [&str; 10] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
];

/// A text that may be secret: it is never printed.
#[derive(Debug, Clone)]
pub struct Secret(pub SecretString);

impl Secret {
    /// The text, for whoever is meant to get it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)
            .map(|text| Self(text.into()))
            .map_err(|_| D::Error::custom("must be a string"))
    }
}

/// The header that `name` and `value` make, marked as secret.
///
/// # Errors
/// What is wrong with it, without its value.
pub fn header(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), &'static str> {
    const UNFIT: &str = "has characters that no http header can carry";
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return Err("belongs to the protocol");
    }
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| UNFIT)?;
    let mut value = HeaderValue::from_str(value.expose()).map_err(|_| UNFIT)?;
    value.set_sensitive(true);
    Ok((name, value))
}
