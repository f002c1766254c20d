//! Fields that are not what they should be.

use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;

use serde::Serialize;

/// What is wrong with single fields; its words are JSON text, as upstream has it.
#[derive(Debug, Default)]
pub struct FieldErrors(Vec<FieldError>);

#[derive(Debug, Serialize)]
struct FieldError {
    field: String,
    error: String,
}

impl FieldErrors {
    /// Notes what is wrong with `field`.
    pub fn push(&mut self, field: impl Into<String>, error: impl Into<String>) {
        self.0.push(FieldError { field: field.into(), error: error.into() });
    }

    /// Notes a text whose length in characters is none of `allowed`.
    pub fn check_length(&mut self, field: &str, text: &str, allowed: RangeInclusive<usize>) {
        if !allowed.contains(&text.chars().count()) {
            self.push(field, format!("must have {} to {} characters", allowed.start(), allowed.end()));
        }
    }

    /// Nothing, when nothing was noted.
    ///
    /// # Errors
    /// Everything that was noted.
    pub fn finish(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl Display for FieldErrors {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).unwrap_or_else(|_| "invalid fields".to_owned()))
    }
}
