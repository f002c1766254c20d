//! References within a document. Those to other documents are refused: reading one fetches nothing.

use serde_json::Value;

/// How many references may lead to each other.
const MAX_HOPS: usize = 16;

/// What `value` stands for: itself, or what its `$ref` leads to.
///
/// # Errors
/// When it leads nowhere, round in a circle, or to another document.
pub(super) fn target<'d>(root: &'d Value, value: &'d Value) -> Result<&'d Value, String> {
    let mut value = value;
    for _ in 0..MAX_HOPS {
        let Some(reference) = reference(value) else { return Ok(value) };
        value = find(root, reference)?;
    }
    Err("its references lead round in a circle".to_owned())
}

/// The reference in `value`, if it is one.
pub(super) fn reference(value: &Value) -> Option<&str> {
    value.get("$ref").and_then(Value::as_str)
}

/// What `reference` leads to.
pub(super) fn find<'d>(root: &'d Value, reference: &str) -> Result<&'d Value, String> {
    let Some(pointer) = reference.strip_prefix('#') else {
        return Err(format!("it refers to another document, {reference:?}"));
    };
    let pointer = decoded(pointer);
    root.pointer(&pointer).ok_or_else(|| format!("its reference {reference:?} leads nowhere"))
}

/// `text` with its percent signs read.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
