//! What becomes of what a model gives for an argument before it is held to the schema: models write dates, states and ids in
//! many ways, and an API takes one.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::bounded::json;
use crate::tools::names::as_uuid;

/// One rule. A value of another type than it is for stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// A text without blanks around it; an empty one is left out.
    Trim,
    /// A text that is a JSON object or list is that object or list.
    Json,
    /// A text that is no UUID is left out.
    Uuid,
    /// A text is replaced by what stands for it; one that is not there is left out. The keys are as [`key`] makes them.
    Map(BTreeMap<String, String>),
    /// A date is an RFC 3339 time in UTC; what is none is left out.
    Date(Edge),
}

/// Which end of a day, month or year a date means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Its first second.
    Start,
    /// Its last one.
    End,
}

/// The rules of a tool's arguments, by their names. One with dots leads into objects, and into each of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<(String, Vec<Rule>)>);

impl Rules {
    /// The arguments as the rules make them.
    pub fn apply(&self, args: &mut Map<String, Value>) {
        for (name, rules) in &self.0 {
            apply(name, rules, args);
        }
    }
}

/// Applies `rules` to what `name` leads to in `fields`.
fn apply(name: &str, rules: &[Rule], fields: &mut Map<String, Value>) {
    if let Some((outer, inner)) = name.split_once('.') {
        let objects = match fields.get_mut(outer) {
            Some(Value::Array(items)) => items.as_mut_slice(),
            Some(value) => std::slice::from_mut(value),
            None => &mut [],
        };
        objects.iter_mut().filter_map(Value::as_object_mut).for_each(|fields| apply(inner, rules, fields));
        return;
    }
    let Some(value) = fields.shift_remove(name) else { return };
    if let Some(value) = rules.iter().try_fold(value, |value, rule| rule.apply(value)) {
        fields.insert(name.to_owned(), value);
    }
}

impl Rule {
    /// The value as the rule makes it; `None` leaves it out.
    fn apply(&self, value: Value) -> Option<Value> {
        let Value::String(text) = value else { return Some(value) };
        match self {
            Self::Trim => {
                let text = text.trim();
                (!text.is_empty()).then(|| Value::from(text))
            }
            Self::Json => {
                let is_json = text.trim_start().starts_with(['{', '[']);
                let read = Some(&text).filter(|_| is_json).and_then(|text| json::value(text).ok());
                Some(read.unwrap_or(Value::String(text)))
            }
            Self::Uuid => as_uuid(text.trim()).is_some().then(|| Value::from(text.trim())),
            Self::Map(values) => values.get(&key(&text)).map(|value| Value::from(value.as_str())),
            Self::Date(edge) => time(&text, *edge).map(Value::from),
        }
    }
}

/// A text as the keys of a map are compared: in small letters, with one `_` for blanks and hyphens.
pub fn key(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '-' | '_')).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// The RFC 3339 time that `text` means, in UTC: a time, a day, a month by number or English name, or a year.
pub fn time(text: &str, edge: Edge) -> Option<String> {
    let text = text.trim();
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(format!("{time:.0}"));
    }
    let (first, last) = days(text)?;
    Some(match edge {
        Edge::Start => format!("{first}T00:00:00Z"),
        Edge::End => format!("{last}T23:59:59Z"),
    })
}

/// The first and the last day that `text` means.
fn days(text: &str) -> Option<(Date, Date)> {
    if let Ok(day) = text.parse::<Date>() {
        return Some((day, day));
    }
    // A civil time without an offset: its day is what is known of it.
    if let Ok(time) = text.parse::<jiff::civil::DateTime>() {
        return Some((time.date(), time.date()));
    }
    let number = |text: &str, digits: usize| {
        (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<i16>().ok()).flatten()
    };
    if let Some(year) = number(text, 4) {
        return Some((Date::new(year, 1, 1).ok()?, Date::new(year, 12, 31).ok()?));
    }
    if let Some((year, month)) = text.split_once('-')
        && let (Some(year), Some(month)) = (number(year, 4), number(month, 2))
    {
        let first = Date::new(year, i8::try_from(month).ok()?, 1).ok()?;
        return Some((first, first.last_of_month()));
    }
    named(text)
}

/// The same of `March 2026`, `5 March 2026` and `March 5, 2026`.
fn named(text: &str) -> Option<(Date, Date)> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '.'))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let month_of =
        |word: &str| MONTHS.iter().position(|month| word.starts_with(month)).and_then(|at| i8::try_from(at + 1).ok());
    let year_of = |word: &str| word.parse::<i16>().ok().filter(|year| (1000..=9999).contains(year));
    let day_of = |word: &str| {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        digits.parse::<i8>().ok()
    };
    let (day, month, year) = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [month, year] => (None, month_of(month)?, year_of(year)?),
        [first, second, year] => match month_of(first) {
            Some(month) => (Some(day_of(second)?), month, year_of(year)?),
            None => (Some(day_of(first)?), month_of(second)?, year_of(year)?),
        },
        _ => return None,
    };
    let first = Date::new(year, month, day.unwrap_or(1)).ok()?;
    Some((first, if day.is_some() { first } else { first.last_of_month() }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_time_is_read_as_people_write_it() {
        let rows = [
            ("2026", "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z"),
            ("2026-02", "2026-02-01T00:00:00Z", "2026-02-28T23:59:59Z"),
            (" 2026-02-03 ", "2026-02-03T00:00:00Z", "2026-02-03T23:59:59Z"),
            ("March 2026", "2026-03-01T00:00:00Z", "2026-03-31T23:59:59Z"),
            ("sept. 5th, 2026", "2026-09-05T00:00:00Z", "2026-09-05T23:59:59Z"),
            ("5 March 2026", "2026-03-05T00:00:00Z", "2026-03-05T23:59:59Z"),
            ("2026-02-03T10:00:00+02:00", "2026-02-03T08:00:00Z", "2026-02-03T08:00:00Z"),
            ("2026-02-03T10:00:00", "2026-02-03T00:00:00Z", "2026-02-03T23:59:59Z"),
        ];
        for (text, start, end) in rows {
            assert_eq!(time(text, Edge::Start).as_deref(), Some(start), "{text}");
            assert_eq!(time(text, Edge::End).as_deref(), Some(end), "{text}");
        }
        for text in ["", "soon", "2026-13", "2026-02-30", "31 February 2026", "next week", "99999", "-1 March 2026"] {
            assert_eq!(time(text, Edge::Start), None, "{text}");
        }
    }

    #[test]
    fn a_name_with_dots_leads_into_objects_and_each_of_a_list() {
        let mut args = json!({
            "project": {"name": "A", "end": "2026"}, "items": [{"end": "soon", "n": 1}, {"end": "2026-02"}, 7], "end": "x",
        });
        let rules = |name: &str| (name.to_owned(), vec![Rule::Date(Edge::End)]);
        let rules = Rules(["project.end", "items.end", "none.end", "end.end"].map(rules).into());
        rules.apply(args.as_object_mut().unwrap());
        let expected = json!({
            "project": {"name": "A", "end": "2026-12-31T23:59:59Z"},
            "items": [{"n": 1}, {"end": "2026-02-28T23:59:59Z"}, 7], "end": "x",
        });
        assert_eq!(args, expected);
    }

    #[test]
    fn rules_make_one_form_of_many_and_leave_out_what_is_none() {
        let map = BTreeMap::from([("in_progress".to_owned(), "active".to_owned())]);
        let id = "550e8400-e29b-41d4-a716-446655440000";
        let rows = [
            (vec![Rule::Trim], json!("  a "), Some(json!("a")), "blanks go"),
            (vec![Rule::Trim], json!(" \t"), None, "and with them an empty text"),
            (vec![Rule::Trim], json!(7), Some(json!(7)), "a number is none"),
            (vec![Rule::Map(map.clone())], json!("In  Progress"), Some(json!("active")), "case and blanks"),
            (vec![Rule::Map(map.clone())], json!("in-progress"), Some(json!("active")), "hyphens"),
            (vec![Rule::Map(map)], json!("late"), None, "not there"),
            (vec![Rule::Uuid], json!(format!(" {id} ")), Some(json!(id)), "an id"),
            (vec![Rule::Uuid], json!("my project"), None, "a name"),
            (vec![Rule::Json], json!("[{\"a\": 1}]"), Some(json!([{"a": 1}])), "a list in a text"),
            (vec![Rule::Json], json!("{not json"), Some(json!("{not json")), "a text that only begins so"),
            (vec![Rule::Json], json!("12"), Some(json!("12")), "a number in a text stays a text"),
            (vec![Rule::Trim, Rule::Date(Edge::End)], json!(" 2026 "), Some(json!("2026-12-31T23:59:59Z")), "in order"),
        ];
        for (rules, value, expected, reason) in rows {
            let mut args = Map::from_iter([("x".to_owned(), value), ("y".to_owned(), json!(" "))]);
            Rules(vec![("x".to_owned(), rules)]).apply(&mut args);
            assert_eq!(args.get("x"), expected.as_ref(), "{reason}");
            assert_eq!(args["y"], " ", "another argument stays");
        }
    }
}
