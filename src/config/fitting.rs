//! Tables of settings as typed values, with every mistake noted.

use toml::{Table, Value};

use super::Problem;

/// How our variables begin.
pub(super) const PREFIX: &str = "SWITCHBOARD__";

/// What the names of variables below the settings file begin with.
pub(super) const DEFAULT_PREFIX: &str = "SWITCHBOARD_DEFAULT__";

/// How many values of a wrong type are reported before giving up; there are fewer settings than this.
const MAX_MISTAKES: usize = 100;

/// What `read` makes of the table at `path`; a value of a wrong type is noted, and its default taken.
pub(super) fn fit_by<T>(
    read: impl Fn(Table) -> Result<T, serde_path_to_error::Error<toml::de::Error>>,
    merged: &mut Table,
    defaults: &Table,
    path: &str,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    for _ in 0..MAX_MISTAKES {
        let error = match read(merged.clone()) {
            Ok(config) => return Some(config),
            Err(error) => error,
        };
        let key = error.path().to_string();
        let keys: Vec<&str> = key.split(['.', '[']).take_while(|key| !key.ends_with(']')).collect();
        let default = lookup(defaults, &keys);
        // The text of a serde error quotes the value, which must not be in a message where it may be a secret.
        let reason = match key.ends_with("key") || key.ends_with("secret") {
            true => "must be a string".to_owned(),
            false => error.inner().message().trim_end().to_owned(),
        };
        problems.push(Problem::new(if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, reason));
        match default {
            Some(default) => *find(merged, &keys)? = default.clone(),
            // A key of the operator's own.
            None => remove(merged, &keys)?,
        }
    }
    None
}

pub(super) fn lookup<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a Value> {
    let (last, sections) = keys.split_last()?;
    let mut table = table;
    for key in sections {
        table = table.get(*key)?.as_table()?;
    }
    table.get(*last).filter(|value| !value.is_table())
}

pub(super) fn find<'a>(table: &'a mut Table, keys: &[&str]) -> Option<&'a mut Value> {
    let (last, sections) = keys.split_last()?;
    let mut table = table;
    for key in sections {
        table = table.get_mut(*key)?.as_table_mut()?;
    }
    table.get_mut(*last)
}

fn remove(table: &mut Table, keys: &[&str]) -> Option<()> {
    let (last, sections) = keys.split_last()?;
    let sections = sections.iter().try_fold(table, |table, key| table.get_mut(*key)?.as_table_mut());
    sections?.remove(*last).map(drop)
}
