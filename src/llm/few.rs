//! A list in a vendor's JSON, bounded: one line of a few bytes per item could otherwise become a hundred times its size in
//! memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// 10,000 items in one list; the longest real ones have a few dozen.
const MAX_ITEMS: usize = 10_000;

/// A list that is not too long; an object instead of it is a list of one. The first item is stored inline: nearly all
/// lists of a stream have no other, and a chunk then takes nothing from the heap for them.
#[derive(Debug)]
pub(super) struct Few<T> {
    first: Option<T>,
    others: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, others: Vec::new() }
    }
}

impl<T> Few<T> {
    /// The items, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.others)
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Items(PhantomData))
    }
}

/// Reads the items of a list one by one.
pub(super) struct Items<T>(pub(super) PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Few { first: list.next_element()?, others: Vec::new() };
        while let Some(item) = list.next_element()? {
            if items.others.len() + 1 == MAX_ITEMS {
                return Err(A::Error::custom(format_args!("a list has more than {MAX_ITEMS} items")));
            }
            items.others.push(item);
        }
        Ok(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|item| Few { first: Some(item), others: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_at_the_cap_is_read_and_one_item_more_is_an_error() {
        for (items, is_read) in [(0, true), (MAX_ITEMS, true), (MAX_ITEMS + 1, false)] {
            let json = format!("[{}]", vec!["7"; items].join(","));
            let read: Result<Few<u8>, _> = serde_json::from_str(&json);
            assert_eq!(read.map(|few| few.into_iter().count()).ok(), is_read.then_some(items));
        }
    }
}
