//! JSON and YAML of others, read once: its depth, repeated names and the memory of its values are counted while it is read, and
//! it is refused before that memory is allocated. `{"":0},` has seven bytes and takes two hundred and fifty as a value,
//! so a bound of bytes alone is none.
//!
//! **Invariant:** the values of a text never take more than [`budget_for()`] allows for its bytes.
//! **Invariant:** only this module makes a [`Value`] of JSON or YAML of others (`tests/it/tidy.rs`).

mod budget;
mod compact;
mod halves;
mod reader;
#[cfg(test)]
mod tests;
mod text;
mod yaml;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::str::Utf8Error;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use self::budget::{NodeBudget, budget_for, memory};
use self::compact::Compact;
pub use self::halves::{mended, without_halves};
use self::reader::Count;
pub use self::text::JsonText;
pub use self::yaml::yaml;
use super::memory::Exhausted;

/// How many lists and objects may stand in each other.
pub const MAX_DEPTH: usize = 64;

/// Why a text was not read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is no JSON, or no YAML.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// It nests too deep.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// An object has a name twice, so that another reader could take the other value.
    #[error("an object has the same name twice")]
    Twice,
    /// Its values would take more memory than its bytes allow.
    #[error("it has too many values: they would take more than {} MiB of memory", .0 >> 20)]
    TooMany(usize),
    /// The process has no memory left for it now.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

impl From<Utf8Error> for JsonError {
    fn from(error: Utf8Error) -> Self {
        let at = error.valid_up_to();
        Self::Syntax(serde_json::Error::custom(format!("invalid UTF-8 at byte {at}")))
    }
}

/// The parts of a text that are read into values; the rest is checked and left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    All,
    /// These fields of an object, or of each object in a list. What is neither is wanted whole.
    Fields(BTreeMap<String, Wanted>),
}

impl Wanted {
    /// One field.
    pub fn field(name: &str, of_it: Self) -> Self {
        Self::Fields([(name.to_owned(), of_it)].into())
    }

    /// Nothing: only the syntax is checked.
    pub fn nothing() -> Self {
        Self::Fields(BTreeMap::new())
    }

    /// The union of both.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::Fields(mut fields), Self::Fields(more)) => {
                for (name, wanted) in more {
                    let both = match fields.remove(&name) {
                        Some(before) => before.and(wanted),
                        None => wanted,
                    };
                    fields.insert(name, both);
                }
                Self::Fields(fields)
            }
        }
    }
}

/// Looks at all of `text` and allocates nothing of it: that it is JSON, no deeper than may be, and without a name twice. What
/// is passed on as it is may have any number of values.
///
/// # Errors
/// See [`JsonError`].
pub fn check(text: &str) -> Result<(), JsonError> {
    Count::new(&mut NodeBudget::endless(), true).run(text, None).map(drop)
}

/// Checks all of `text` too: whether so many `copies` of its values would fit, for JSON that another program reads or
/// that is read later.
///
/// # Errors
/// See [`JsonError`].
pub fn fits(text: &str, copies: usize) -> Result<(), JsonError> {
    Count::new(&mut NodeBudget::for_bytes(text.len(), None).for_each_of(copies), false).run(text, None).map(drop)
}

/// The value of `text`, as far as it is `wanted`; it takes its memory from `budget`. Where a name comes twice the last
/// one counts, as everywhere.
///
/// # Errors
/// See [`JsonError`].
pub fn read(text: &str, wanted: &Wanted, budget: &mut NodeBudget) -> Result<Value, JsonError> {
    let read = Count::new(budget, false).run(text, Some(wanted));
    budget.settle();
    read
}

/// `text` without blanks, its texts spelled out: a reader of it needs no values. Its memory is taken from `budget`.
///
/// # Errors
/// See [`JsonError`].
pub fn compact(text: &str, budget: &mut NodeBudget) -> Result<String, JsonError> {
    budget.take(text.len())?;
    let out = RefCell::new(Vec::with_capacity(text.len()));
    let count = Count::new(budget, false);
    let mut json = serde_json::Deserializer::from_str(text);
    let read = Compact { count: &count, out: &out }.deserialize(&mut json).and_then(|()| json.end());
    read.map_err(|error| count.why(error))?;
    let compact = out.into_inner();
    String::from_utf8(compact).map_err(|error| JsonError::Syntax(serde_json::Error::custom(error)))
}

/// All of the value of `text`.
///
/// # Errors
/// See [`JsonError`].
pub fn value(text: &str) -> Result<Value, JsonError> {
    read(text, &Wanted::All, &mut NodeBudget::for_bytes(text.len(), None))
}

/// [`value`] of bytes.
///
/// # Errors
/// See [`JsonError`]; of what is no UTF-8 too.
pub fn value_of(bytes: &[u8]) -> Result<Value, JsonError> {
    value(utf8(bytes)?)
}

/// The fields of the object in `text`; `None` of anything else.
pub fn object(text: &str) -> Option<Map<String, Value>> {
    match value(text) {
        Ok(Value::Object(fields)) => Some(fields),
        Ok(_) | Err(_) => None,
    }
}

/// JSON of a type that this program knows: its memory is bounded by that type, and by the bytes of `text`.
///
/// # Errors
/// When it is not of that type.
pub fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text)
}

/// [`parse`] of bytes.
///
/// # Errors
/// When it is not of that type, or is no UTF-8.
pub fn parse_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes)
}

/// Any value in a type of ours, read like all others.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree(pub Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(json)?;
        value(raw.get()).map(Self).map_err(D::Error::custom)
    }
}

/// The text in `bytes`, which is JSON only as UTF-8.
///
/// # Errors
/// When it is not.
pub fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    Ok(std::str::from_utf8(bytes)?)
}
