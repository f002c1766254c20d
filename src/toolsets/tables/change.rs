//! The frame around every edit: read the document, edit it, and judge the result by what the edit itself brought in. What
//! was wrong before is a warning, so that a document can be built or repaired step by step; what is newly wrong refuses
//! the edit.

use serde_json::{Map, Value, json};

use super::config::TableConfig;
use super::problem::{Problem, to_values};
use super::validate::problems;

/// What an edit tells about itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The edits that were made.
    pub applied: Vec<String>,
    /// The edits that were not made, and notes.
    pub warnings: Vec<String>,
}

/// The outcome of `edit` on `config`: `{valid, warnings, applied, config, errors?}`. `config` is the edited document, or
/// null when the edit was refused; `errors` is there then.
pub fn outcome(config: &Value, edit: impl FnOnce(&mut TableConfig, &mut Notes) -> Result<(), Problem>) -> Value {
    let before = match TableConfig::parse(config) {
        Ok(before) => before,
        Err(problem) => return refused(Notes::default(), &[problem]),
    };
    let mut notes = Notes::default();
    let mut after = before.clone();
    if let Err(problem) = edit(&mut after, &mut notes) {
        return refused(notes, &[problem]);
    }
    if before.source_count() > 1 {
        let count = before.source_count();
        notes.warnings.push(format!("the configuration has {count} data sources; only the first one was considered"));
    }

    let (old, new) = old_and_new(problems(&before), problems(&after));
    if !new.is_empty() {
        return refused(notes, &new);
    }
    let still_wrong = old.iter().map(|problem| format!("still to be fixed: {}", problem.sentence()));
    notes.warnings.extend(still_wrong);
    let mut answer = report(true, notes);
    answer.insert("config".to_owned(), after.into_value());
    Value::Object(answer)
}

fn refused(notes: Notes, errors: &[Problem]) -> Value {
    let notes = Notes { applied: Vec::new(), ..notes };
    let mut answer = report(false, notes);
    answer.insert("config".to_owned(), Value::Null);
    answer.insert("errors".to_owned(), to_values(errors));
    Value::Object(answer)
}

fn report(valid: bool, notes: Notes) -> Map<String, Value> {
    Map::from_iter([
        ("valid".to_owned(), json!(valid)),
        ("warnings".to_owned(), json!(notes.warnings)),
        ("applied".to_owned(), json!(notes.applied)),
    ])
}

/// The problems in `after`, those that `before` had already and those it had not. Paths are not compared, since
/// entries move.
fn old_and_new(mut before: Vec<Problem>, after: Vec<Problem>) -> (Vec<Problem>, Vec<Problem>) {
    after.into_iter().partition(|problem| {
        let same = before.iter().position(|old| old.code == problem.code && old.message == problem.message);
        same.map(|index| before.swap_remove(index)).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_wrong_before_is_a_warning_and_what_is_newly_wrong_an_error() {
        let config = json!({ "title": "", "data_source": [{ "source": "orders" }, { "source": "users" }] });
        let renamed = outcome(&config, |config, notes| {
            config.source_mut()?.insert("source".to_owned(), json!("sales"));
            notes.applied.push("renamed".to_owned());
            Ok(())
        });
        assert_eq!(
            renamed,
            json!({
                "valid": true,
                "warnings": [
                    "the configuration has 2 data sources; only the first one was considered",
                    "still to be fixed: title: a title is required (REQUIRED)",
                ],
                "applied": ["renamed"],
                "config": { "title": "", "data_source": [{ "source": "sales" }, { "source": "users" }] },
            })
        );

        let broken = outcome(&config, |config, notes| {
            config.source_mut()?.insert("source".to_owned(), json!(""));
            notes.applied.push("emptied".to_owned());
            Ok(())
        });
        assert_eq!(
            broken,
            json!({
                "valid": false,
                "warnings": ["the configuration has 2 data sources; only the first one was considered"],
                "applied": [],
                "config": null,
                "errors": [{ "Field": "data_source[0].source", "Message": "source is required", "Code": "REQUIRED" }],
            })
        );
    }

    #[test]
    fn a_document_that_is_none_is_refused() {
        assert_eq!(
            outcome(&json!([]), |_, _| Ok(())),
            json!({
                "valid": false,
                "warnings": [],
                "applied": [],
                "config": null,
                "errors": [{ "Field": "config", "Message": "must be a JSON object", "Code": "INVALID_CONFIG" }],
            })
        );
    }
}
