//! A value where it stands in its file, taken as what it has to be.

use std::fmt::Display;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::DeValue;

use super::{File, Location, Table};

/// A value where it stands.
pub struct Entry<'a> {
    /// The file.
    pub file: File<'a>,
    /// Its key from the file's top.
    pub key: String,
    pub(super) at: Range<usize>,
    pub(super) value: DeValue<'a>,
}

impl<'a> Entry<'a> {
    /// Its location.
    pub fn location(&self) -> Location<'a> {
        Location { file: self.file, key: self.key.clone(), at: self.at.start }
    }

    /// Notes what is wrong with it.
    pub fn wrong(&self, reason: impl Display) {
        self.file.wrong(self.at.start, &self.key, reason);
    }

    fn expected<T>(&self, found: Option<T>, what: &str) -> Option<T> {
        if found.is_none() {
            self.wrong(format_args!("must be {what}"));
        }
        found
    }

    /// The text.
    pub fn text(self) -> Option<String> {
        let text = match &self.value {
            DeValue::String(text) => Some(text.clone().into_owned()),
            _ => None,
        };
        self.expected(text, "text")
    }

    /// The texts of a list.
    pub fn texts(self) -> Vec<String> {
        let texts = match &self.value {
            DeValue::Array(items) => items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        self.expected(texts, "a list of texts").unwrap_or_default()
    }

    /// The values of a list, each where it stands.
    pub fn items(self) -> Vec<Entry<'a>> {
        let DeValue::Array(items) = self.value else {
            return self.expected(None, "a list of texts").unwrap_or_default();
        };
        let item = |item: Spanned<DeValue<'a>>| {
            let at = item.span();
            Entry { file: self.file, key: self.key.clone(), at, value: item.into_inner() }
        };
        items.into_iter().map(item).collect()
    }

    /// The truth.
    pub fn flag(self) -> Option<bool> {
        self.expected(self.value.as_bool(), "true or false")
    }

    /// The whole number, from 0.
    pub fn count(self) -> Option<u64> {
        let count = match &self.value {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        self.expected(count, "a whole number, from 0")
    }

    /// The number.
    pub fn number(self) -> Option<f64> {
        let number = match &self.value {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        self.expected(number, "a number")
    }

    /// The table.
    pub fn table(self) -> Option<Table<'a>> {
        match self.value {
            DeValue::Table(table) => Some(Table::new(self.file, format!("{}.", self.key), self.at, table)),
            _ => self.expected(None, "a table"),
        }
    }

    /// The tables of a list.
    pub fn tables(self) -> Vec<Table<'a>> {
        let DeValue::Array(items) = self.value else {
            return self.expected(None, "a list of tables").unwrap_or_default();
        };
        let mut tables = Vec::new();
        for (number, item) in items.into_iter().enumerate() {
            let at = item.span();
            match item.into_inner() {
                DeValue::Table(table) => {
                    let prefix = format!("{}[{number}].", self.key);
                    tables.push(Table::new(self.file, prefix, at, table));
                }
                _ => self.file.wrong(at.start, &self.key, "must be a list of tables"),
            }
        }
        tables
    }

    /// Whether it is text.
    pub fn is_text(&self) -> bool {
        matches!(self.value, DeValue::String(_))
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// The value as JSON; a date is its text.
    pub fn json(self) -> Option<Value> {
        let value = json(&self.value);
        self.expected(value, "a value that JSON can say")
    }
}

fn json(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(Value::String(text.to_string())),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok().map(Value::from),
        DeValue::Float(number) => {
            number.as_str().parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number)
        }
        DeValue::Boolean(truth) => Some(Value::Bool(*truth)),
        DeValue::Datetime(time) => Some(Value::String(time.to_string())),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect::<Option<_>>().map(Value::Array),
        DeValue::Table(table) => {
            let mut fields: Vec<_> = table.iter().collect();
            // As they stand in the file.
            fields.sort_by_key(|(key, _)| key.span().start);
            let fields =
                fields.into_iter().map(|(key, value)| Some((key.get_ref().to_string(), json(value.get_ref())?)));
            fields.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
    }
}
