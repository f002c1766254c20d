//! One level of JSON, read without copies: the rows of a list, the members of an object. Those that do not fit are
//! counted and not kept.

use std::fmt;

use crate::bounded::json::parse;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A value that holds others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Object,
    List,
}

impl Level {
    /// The level of `text`, if it is all valid JSON.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let level = Self::of_value(text)?;
        parse::<&RawValue>(text).ok().map(|_| level)
    }

    /// The level of `json`, which is known to be valid.
    pub(super) fn of_value(json: &str) -> Option<Self> {
        match json.as_bytes().first() {
            Some(b'{') => Some(Self::Object),
            Some(b'[') => Some(Self::List),
            Some(_) | None => None,
        }
    }
}

/// The rows of a list.
pub(super) struct Rows<'a> {
    /// The first ones, which fit.
    pub(super) first: Vec<&'a RawValue>,
    /// The first one that does not.
    pub(super) too_long: Option<&'a RawValue>,
    /// How many there are.
    pub(super) count: usize,
}

impl<'a> Rows<'a> {
    /// The rows of `json` that fit into a list of `budget` bytes.
    pub(super) fn read(json: &'a str, budget: usize) -> Option<Self> {
        serde_json::Deserializer::from_str(json).deserialize_seq(RowsVisitor { budget }).ok()
    }
}

struct RowsVisitor {
    budget: usize,
}

impl<'de> Visitor<'de> for RowsVisitor {
    type Value = Rows<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Rows<'de>, A::Error> {
        let mut read = Rows { first: Vec::new(), too_long: None, count: 0 };
        // The brackets; each row has its comma, the first one too many.
        let mut left = (self.budget + 1).saturating_sub(2);
        while let Some(row) = rows.next_element::<&'de RawValue>()? {
            read.count += 1;
            if read.too_long.is_some() {
                continue;
            }
            match left.checked_sub(row.get().len() + 1) {
                Some(rest) => {
                    left = rest;
                    read.first.push(row);
                }
                None => read.too_long = Some(row),
            }
        }
        Ok(read)
    }
}

/// The members of an object.
pub(super) struct Members<'a> {
    /// The first ones, by name.
    pub(super) first: Vec<(String, &'a RawValue)>,
    /// How many there are.
    pub(super) count: usize,
}

impl<'a> Members<'a> {
    /// The first members of `json`, at most so many.
    pub(super) fn read(json: &'a str, most: usize) -> Option<Self> {
        serde_json::Deserializer::from_str(json).deserialize_map(MembersVisitor { most }).ok()
    }

    /// Whether one of them has this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.first.iter().any(|(known, _)| known == name)
    }
}

struct MembersVisitor {
    most: usize,
}

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Members<'de>, A::Error> {
        let mut read = Members { first: Vec::new(), count: 0 };
        while let Some((name, value)) = members.next_entry::<String, &'de RawValue>()? {
            read.count += 1;
            if read.first.len() < self.most {
                read.first.push((name, value));
            }
        }
        Ok(read)
    }
}
