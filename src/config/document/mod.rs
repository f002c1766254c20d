//! A TOML file read by hand, so that every mistake in it is found at once and has its file, line and key.

mod entry;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use entry::Entry;

use super::Problem;

/// The mistakes in the files read so far.
#[derive(Debug, Default)]
pub struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    /// Notes a problem.
    pub fn push(&self, problem: Problem) {
        self.0.borrow_mut().push(problem);
    }

    /// Notes several.
    pub fn extend(&self, problems: impl IntoIterator<Item = Problem>) {
        self.0.borrow_mut().extend(problems);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// All of them.
    pub fn into_inner(self) -> Vec<Problem> {
        self.0.into_inner()
    }
}

/// A file and where its mistakes go.
#[derive(Clone, Copy)]
pub struct File<'a> {
    /// Its path below `config/`.
    pub path: &'a str,
    text: &'a str,
    problems: &'a Problems,
}

/// A table of a file. A key that is never taken is a mistake: [`Table::finish`] notes it.
pub struct Table<'a> {
    file: File<'a>,
    /// Its key from the file's top, with a dot behind; empty at the top.
    prefix: String,
    at: Range<usize>,
    entries: BTreeMap<String, (Range<usize>, Spanned<DeValue<'a>>)>,
}

impl<'a> File<'a> {
    /// The file at `path`; a text that is no TOML is noted.
    pub fn read(path: &'a str, text: &'a str, problems: &'a Problems) -> Option<Table<'a>> {
        let file = Self { path, text, problems };
        match DeTable::parse(text) {
            Ok(table) => Some(Table::new(file, String::new(), 0..0, table.into_inner())),
            Err(error) => {
                let at = error.span().unwrap_or(0..0);
                let reason = error.message().to_owned();
                problems.push(Problem::new(format!("{path}:{}", file.line(at.start)), reason));
                None
            }
        }
    }

    fn line(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or(self.text);
        before.bytes().filter(|b| *b == b'\n').count() + 1
    }

    fn wrong(&self, at: usize, key: &str, reason: impl Display) {
        let line = format!("{}:{}", self.path, self.line(at));
        let reason = if key.is_empty() { reason.to_string() } else { format!("{key} {reason}") };
        self.problems.push(Problem::new(line, reason));
    }
}

impl<'a> Table<'a> {
    fn new(file: File<'a>, prefix: String, at: Range<usize>, table: DeTable<'a>) -> Self {
        let entries = table.into_iter().map(|(key, value)| {
            let at = key.span();
            (key.into_inner().into_owned(), (at, value))
        });
        Self { file, prefix, at, entries: entries.collect() }
    }

    /// The location of its beginning.
    pub fn location(&self) -> Location<'a> {
        Location { file: self.file, key: self.prefix.trim_end_matches('.').to_owned(), at: self.at.start }
    }

    /// The keys that are left, sorted.
    pub fn keys(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// The file that it is in.
    pub fn file(&self) -> File<'a> {
        self.file
    }

    /// Notes that something is wrong with the table itself.
    pub fn wrong(&self, reason: impl Display) {
        self.file.wrong(self.at.start, self.prefix.trim_end_matches('.'), reason);
    }

    /// Takes the value of `key`.
    pub fn take(&mut self, key: &str) -> Option<Entry<'a>> {
        let (at, value) = self.entries.remove(key)?;
        let key = format!("{}{key}", self.prefix);
        Some(Entry { file: self.file, key, at, value: value.into_inner() })
    }

    /// The value of `key`, which has to be there.
    pub fn required(&mut self, key: &str) -> Option<Entry<'a>> {
        let entry = self.take(key);
        if entry.is_none() {
            self.file.wrong(self.at.start, &format!("{}{key}", self.prefix), "is missing");
        }
        entry
    }

    /// The text at `key`.
    pub fn text(&mut self, key: &str) -> Option<String> {
        self.take(key)?.text()
    }

    /// The text at `key`, which has to be there and to say something.
    pub fn required_text(&mut self, key: &str) -> Option<String> {
        let entry = self.required(key)?;
        let location = entry.location();
        let text = entry.text()?;
        if text.trim().is_empty() {
            location.wrong("must not be empty");
            return None;
        }
        Some(text)
    }

    /// The texts in the list at `key`; none where there is none.
    pub fn texts(&mut self, key: &str) -> Vec<String> {
        self.take(key).map(Entry::texts).unwrap_or_default()
    }

    /// The texts in the list at `key`, each with its location; one that is there twice is noted.
    pub fn names(&mut self, key: &str) -> Vec<(Location<'a>, String)> {
        let Some(entry) = self.take(key) else { return Vec::new() };
        let mut names: Vec<(Location<'a>, String)> = Vec::new();
        for item in entry.items() {
            let location = item.location();
            let Some(name) = item.text() else { continue };
            match names.iter().any(|(_, known)| *known == name) {
                true => location.wrong(format_args!("{name:?} is listed twice")),
                false => names.push((location, name)),
            }
        }
        names
    }

    /// The truth at `key`.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        self.take(key)?.flag()
    }

    /// The whole number at `key`, at most [`u32::MAX`].
    pub fn whole(&mut self, key: &str) -> Option<u32> {
        let entry = self.take(key)?;
        let location = entry.location();
        let count = u32::try_from(entry.count()?).ok();
        if count.is_none() {
            location.wrong(format_args!("must be at most {}", u32::MAX));
        }
        count
    }

    /// The table at `key`.
    pub fn table(&mut self, key: &str) -> Option<Table<'a>> {
        self.take(key)?.table()
    }

    /// The tables in the list at `key` (`[[key]]`); none where there is none.
    pub fn tables(&mut self, key: &str) -> Vec<Table<'a>> {
        self.take(key).map(Entry::tables).unwrap_or_default()
    }

    /// One of `choices` by its name at `key`.
    pub fn one_of<T: Clone>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let entry = self.take(key)?;
        let location = entry.location();
        let text = entry.text()?;
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| choice.clone());
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            location.wrong(format_args!("must be one of: {}", names.join(", ")));
        }
        found
    }

    /// Notes every key that was never taken.
    pub fn finish(self) {
        for (key, (at, _)) in &self.entries {
            self.file.wrong(at.start, &format!("{}{key}", self.prefix), "is not a known key");
        }
    }
}

/// The file and line of a value, for notes about it after it was taken.
#[derive(Clone)]
pub struct Location<'a> {
    file: File<'a>,
    key: String,
    at: usize,
}

impl<'a> Location<'a> {
    /// The file's path below `config/`.
    pub fn path(&self) -> &'a str {
        self.file.path
    }

    /// Its file and line, for a mistake that is found when the file is no longer there.
    pub fn at(&self) -> String {
        format!("{}:{}", self.file.path, self.file.line(self.at))
    }

    /// Notes what is wrong there.
    pub fn wrong(&self, reason: impl Display) {
        self.file.wrong(self.at, &self.key, reason);
    }

    /// Notes what is wrong so many lines below, in a text that begins there; the first line is 1.
    pub fn wrong_below(&self, line: usize, reason: impl Display) {
        let opens_before = self.file.text.get(self.at..).is_some_and(|rest| {
            let first = rest.lines().next().unwrap_or_default();
            first.trim_end().ends_with("\"\"\"") || first.trim_end().ends_with("'''")
        });
        let line = self.file.line(self.at) + line.saturating_sub(1) + usize::from(opens_before);
        let reason = format!("{} {reason}", self.key);
        self.file.problems.push(Problem::new(format!("{}:{line}", self.file.path), reason));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_mistake_has_its_file_line_and_key() {
        let text = "id = 7\nname = \"\"\nlevel = \"x\"\n[part]\nyes = 1\nodd = true\n[[list]]\nn = -1\n[[list]]\n";
        let problems = Problems::default();
        let mut top = File::read("a.toml", text, &problems).unwrap();
        assert_eq!(top.text("id"), None);
        assert_eq!(top.required_text("name"), None);
        assert_eq!(top.one_of("level", &[("low", 1), ("high", 2)]), None);
        let mut part = top.table("part").unwrap();
        assert_eq!(part.flag("yes"), None);
        part.finish();
        for mut item in top.tables("list") {
            item.take("n").and_then(Entry::count);
            item.required("m");
            item.finish();
        }
        top.finish();
        let lines: Vec<String> = problems.into_inner().iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "a.toml:1: id must be text",
                "a.toml:2: name must not be empty",
                "a.toml:3: level must be one of: low, high",
                "a.toml:5: part.yes must be true or false",
                "a.toml:6: part.odd is not a known key",
                "a.toml:8: list[0].n must be a whole number, from 0",
                "a.toml:7: list[0].m is missing",
                "a.toml:9: list[1].m is missing",
            ]
        );
    }

    #[test]
    fn a_text_that_is_no_toml_has_its_line_too() {
        let problems = Problems::default();
        assert!(File::read("a.toml", "a = 1\nb = \n", &problems).is_none());
        let lines: Vec<String> = problems.into_inner().iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["a.toml:2: string values must be quoted, expected literal string"]);
    }

    #[test]
    fn values_become_json_in_the_order_of_the_file() {
        let problems = Problems::default();
        let mut top = File::read("a.toml", "v = {z = [1, 2.5, true], a = \"x\", d = 1979-05-27}", &problems).unwrap();
        let value = top.take("v").unwrap().json().unwrap();
        assert_eq!(value.to_string(), json!({"z": [1, 2.5, true], "a": "x", "d": "1979-05-27"}).to_string());
    }
}
