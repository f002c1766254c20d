//! Arguments as models write them, where every tool reads them alike: blank text is like an absent argument.

use serde::{Deserialize, Deserializer};

/// Text without the blanks around it; `null` and blank text are `None`.
///
/// # Errors
/// When the value is neither text nor null.
pub fn optional_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}
