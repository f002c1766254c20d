//! JSON that is kept as its text.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// JSON that is passed on, as its text: a tree of it can take a hundred times its bytes. Clones are the same text. It is boxed, since
/// an `Arc` of the text itself would be a copy of it.
#[derive(Debug, Clone)]
pub struct JsonText(Arc<Box<RawValue>>);

impl JsonText {
    /// The text of `value`.
    pub fn of(value: &Value) -> Self {
        // A value always serialises.
        to_raw_value(value).map_or_else(|_| Self::null(), Self::from)
    }

    /// `null`.
    pub fn null() -> Self {
        RawValue::NULL.to_owned().into()
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Its text as JSON, for whoever writes it into another.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// Its value, read anew; `null` where that would take too much memory.
    pub fn value(&self) -> Value {
        super::value(self.as_str()).unwrap_or_default()
    }
}

impl From<Box<RawValue>> for JsonText {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::new(raw))
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw().serialize(serializer)
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for JsonText {}
