//! `[[tool.answers]]`: what a tool answers without a call.

use super::request;
use crate::config::document::Table;
use crate::tools::rest::answer::{Answer, Content};
use crate::tools::rest::values;

/// The answer that `table` describes; what is wrong is noted.
pub(super) fn read(mut table: Table<'_>) -> Option<Answer> {
    let when = table.take("when").and_then(|entry| {
        let place = entry.location();
        request::value_template(&place, &entry.json()?, &values::NAMES)
    });
    let text = table.take("text").and_then(|entry| {
        let place = entry.location();
        request::template(&place, &entry.text()?, &values::NAMES).map(Content::Text)
    });
    let json = table.take("json").and_then(|entry| {
        let place = entry.location();
        request::value_template(&place, &entry.json()?, &values::NAMES).map(Content::Json)
    });
    let is_error = table.flag("error").unwrap_or_default();
    if text.is_some() == json.is_some() {
        table.wrong("must have one of text and json");
    }
    table.finish();
    Some(Answer { when, content: text.or(json)?, is_error })
}
