//! `[[schedule]]` in `tools/*.toml`: directives that are requested again and again.

use serde_json::{Map, Value};

use crate::config::document::Table;
use crate::directives::schedule::{Schedule, Times};

/// The longest name, in bytes.
const NAME_BYTES: usize = 64;

/// A schedule with where it stands.
pub(super) struct Read {
    pub(super) schedule: Schedule,
    /// File and line.
    pub(super) at: String,
}

/// The schedule that `table` describes; what is wrong is noted.
pub(super) fn read(mut table: Table<'_>) -> Option<Read> {
    let at = table.location().at();
    let name = table.required("name").and_then(|entry| {
        let location = entry.location();
        let name = entry.text()?;
        let is_name = !name.is_empty()
            && name.len() <= NAME_BYTES
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
        if !is_name {
            location.wrong(format_args!("{name:?} must be 1 to {NAME_BYTES} of A-Z a-z 0-9 _ - ."));
        }
        is_name.then_some(name)
    });
    let time_zone = table.text("time_zone").unwrap_or_else(|| "UTC".to_owned());
    let times = table.required("cron").and_then(|entry| {
        let location = entry.location();
        Times::parse(&entry.text()?, &time_zone).map_err(|error| location.wrong(error)).ok()
    });
    let directive = table.required_text("directive");
    let payload = match table.take("payload") {
        None => Some(Map::new()),
        Some(entry) => {
            let location = entry.location();
            match entry.json() {
                Some(Value::Object(fields)) => Some(fields),
                _ => {
                    location.wrong("must be a table");
                    None
                }
            }
        }
    };
    let mut tenants = table.texts("tenants");
    if tenants.is_empty() {
        tenants.push(String::new());
    }
    let user = table.text("user");
    let roles = table.texts("roles");
    let catches_up = table.one_of("catch_up", &[("one", true), ("none", false)]).unwrap_or(true);
    table.finish();
    let (name, times, directive, payload) = (name?, times?, directive?, payload?);
    let user = user.filter(|user| !user.is_empty()).unwrap_or_else(|| format!("schedule:{name}"));
    let schedule = Schedule { name, times, directive, payload, tenants, user, roles, catches_up };
    Some(Read { schedule, at })
}
