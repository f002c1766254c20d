//! The visitor that writes what it reads.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::reader::{Count, Name};

/// Writes one value as it reads it.
#[derive(Clone, Copy)]
pub(super) struct Compact<'a, 'c> {
    pub(super) count: &'a Count<'c>,
    pub(super) out: &'a RefCell<Vec<u8>>,
}

impl Compact<'_, '_> {
    fn mark(self, byte: u8) {
        self.out.borrow_mut().push(byte);
    }

    fn write<T: serde::Serialize, E: serde::de::Error>(self, value: T) -> Result<(), E> {
        serde_json::to_writer(&mut *self.out.borrow_mut(), &value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Compact<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Compact<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<(), E> {
        self.write(truth)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.write(number)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.write(number)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.write(number)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.write(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.count.enter::<A::Error>()?;
        self.mark(b'[');
        let mut is_first = true;
        while list.next_element_seed(Next { into: self, is_first })?.is_some() {
            is_first = false;
        }
        self.count.leave();
        self.mark(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        self.count.enter::<A::Error>()?;
        self.mark(b'{');
        let mut is_first = true;
        while let Some(Name(name)) = object.next_key::<Name<'de>>()? {
            if !std::mem::take(&mut is_first) {
                self.mark(b',');
            }
            self.write::<_, A::Error>(&*name)?;
            self.mark(b':');
            object.next_value_seed(self)?;
        }
        self.count.leave();
        self.mark(b'}');
        Ok(())
    }
}

/// An item of a list, with a comma before all but the first.
struct Next<'a, 'c> {
    into: Compact<'a, 'c>,
    is_first: bool,
}

impl<'de> DeserializeSeed<'de> for Next<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        if !self.is_first {
            self.into.mark(b',');
        }
        self.into.deserialize(json)
    }
}
