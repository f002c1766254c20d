//! The visitor that counts what it reads, and makes values of what is wanted.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::budget::{FIELD, NodeBudget, VALUE, block, fields_of};
use super::{JsonError, MAX_DEPTH, Wanted};

/// 16 names are compared one by one, which is quicker than hashing them.
const FEW_NAMES: usize = 16;

/// Counts the memory of what is read.
pub(super) struct Count<'a> {
    budget: RefCell<&'a mut NodeBudget>,
    depth: Cell<usize>,
    /// Whether a name may come only once.
    is_distinct: bool,
    refused: Cell<Option<JsonError>>,
    /// The items and fields of the open lists and objects, so that each list and object is made once, in its size.
    items: RefCell<Items>,
    fields: RefCell<Vec<(String, Value)>>,
}

impl<'a> Count<'a> {
    pub(super) fn new(budget: &'a mut NodeBudget, is_distinct: bool) -> Self {
        Self {
            budget: RefCell::new(budget),
            depth: Cell::new(0),
            is_distinct,
            refused: Cell::new(None),
            items: RefCell::default(),
            fields: RefCell::default(),
        }
    }

    pub(super) fn run(&self, text: &str, wanted: Option<&Wanted>) -> Result<Value, JsonError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let read = Reading { count: self, wanted }.deserialize(&mut json);
        let read = read.and_then(|value| json.end().map(|()| value));
        read.map_err(|error| self.why(error))
    }

    /// All that a deserializer of another format says.
    pub(super) fn all_of<'de, D: Deserializer<'de>>(&self, other: D) -> Result<Value, D::Error> {
        Reading { count: self, wanted: Some(&Wanted::All) }.deserialize(other)
    }

    /// Why a reading was refused that failed with `error`.
    pub(super) fn why(&self, error: serde_json::Error) -> JsonError {
        self.refused.take().unwrap_or(JsonError::Syntax(error))
    }

    fn refuse<E: serde::de::Error>(&self, why: JsonError) -> E {
        let error = E::custom(&why);
        self.refused.set(Some(why));
        error
    }

    fn take<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        self.budget.borrow_mut().take(bytes).map_err(|why| self.refuse(why))
    }

    fn give_back(&self, bytes: usize) {
        self.budget.borrow_mut().give_back(bytes);
    }

    pub(super) fn enter<E: serde::de::Error>(&self) -> Result<(), E> {
        self.depth.set(self.depth.get() + 1);
        if self.depth.get() > MAX_DEPTH { Err(self.refuse(JsonError::TooDeep)) } else { Ok(()) }
    }

    pub(super) fn leave(&self) {
        self.depth.set(self.depth.get() - 1);
    }
}

/// Reads one value, or with nothing `wanted` only counts it.
#[derive(Clone, Copy)]
struct Reading<'a, 'c> {
    count: &'a Count<'c>,
    wanted: Option<&'a Wanted>,
}

impl<'a, 'c> Reading<'a, 'c> {
    /// The parts of a field that are read. In a text that is only checked every field counts; in one that is read,
    /// fields that are left out take nothing.
    fn of_field(self, name: &str) -> Field<'a, 'c> {
        match self.wanted {
            None | Some(Wanted::All) => Field::Read(self),
            Some(Wanted::Fields(fields)) => match fields.get(name) {
                Some(wanted) => Field::Read(Self { wanted: Some(wanted), ..self }),
                None => Field::Skip,
            },
        }
    }
}

enum Field<'a, 'c> {
    Read(Reading<'a, 'c>),
    Skip,
}

impl<'de> DeserializeSeed<'de> for Reading<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.count.take(block(text.len()))?;
        Ok(if self.wanted.is_some() { Value::String(text.to_owned()) } else { Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        self.count.enter::<A::Error>()?;
        let (from, mut length) = (self.count.items.borrow().len(), 0);
        while let Some(item) = list.next_element_seed(self)? {
            // Twice: while it is open, and where it will stand. One half is given back when it is closed.
            self.count.take(2 * VALUE)?;
            length += 1;
            if self.wanted.is_some() {
                self.count.items.borrow_mut().push(item);
            }
        }
        self.count.leave();
        self.count.give_back(length * VALUE);
        Ok(Value::Array(self.count.items.borrow_mut().take_from(from)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        self.count.enter::<A::Error>()?;
        let (from, mut taken, mut length) = (self.count.fields.borrow().len(), 0, 0);
        let mut names = Names::default();
        while let Some(Name(name)) = object.next_key::<Name<'de>>()? {
            match self.of_field(&name) {
                Field::Skip => drop(object.next_value::<IgnoredAny>()?),
                Field::Read(reading) => {
                    self.count.take::<A::Error>(FIELD + block(name.len()))?;
                    (taken, length) = (taken + FIELD, length + 1);
                    let value = object.next_value_seed(reading)?;
                    if self.wanted.is_some() {
                        self.count.fields.borrow_mut().push((name.into_owned(), value));
                    } else if self.count.is_distinct && !names.add(name) {
                        return Err(self.count.refuse(JsonError::Twice));
                    }
                }
            }
        }
        self.count.leave();
        self.count.take::<A::Error>(fields_of(length))?;
        self.count.give_back(taken);
        let mut open = self.count.fields.borrow_mut();
        let mut fields = Map::with_capacity(open.len() - from);
        fields.extend(open.drain(from..));
        if self.count.is_distinct && self.wanted.is_some() && fields.len() < length {
            return Err(self.count.refuse(JsonError::Twice));
        }
        Ok(Value::Object(fields))
    }
}

/// The items of the open lists. They grow piece by piece: a list that doubles has what is in it twice meanwhile, which nobody
/// has counted.
#[derive(Default)]
struct Items(Vec<Vec<Value>>);

impl Items {
    /// 128 KiB.
    const PIECE: usize = 4096;

    fn len(&self) -> usize {
        self.0.len().saturating_sub(1) * Self::PIECE + self.0.last().map_or(0, Vec::len)
    }

    fn push(&mut self, item: Value) {
        match self.0.last_mut() {
            Some(last) if last.len() < Self::PIECE => last.push(item),
            Some(_) | None => self.0.push(vec![item]),
        }
    }

    /// Those from there on.
    fn take_from(&mut self, from: usize) -> Vec<Value> {
        let mut items = Vec::with_capacity(self.len() - from);
        let (piece, first) = (from / Self::PIECE, from % Self::PIECE);
        let later = self.0.split_off((piece + 1).min(self.0.len()));
        items.extend(self.0.get_mut(piece).into_iter().flat_map(|piece| piece.drain(first..)));
        items.extend(later.into_iter().flatten());
        items
    }
}

/// A field's name, lent by the text where nothing in it is escaped.
#[derive(Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// The names of an object so far.
#[derive(Default)]
struct Names<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Names<'a> {
    /// Whether `name` is new.
    fn add(&mut self, name: Cow<'a, str>) -> bool {
        if self.few.contains(&name) || self.many.contains(&name) {
            return false;
        }
        match self.few.len() < FEW_NAMES {
            true => self.few.push(name),
            false => drop(self.many.insert(name)),
        }
        true
    }
}
