//! The note to a model about an action that the user carried out beside their message.

use serde_json::Value;

/// The note about the action of that name. The name and the data are the client's, so they stand in a fence.
pub(super) fn action(identifier: &str, data: Option<&Value>) -> String {
    let mut about = serde_json::Map::new();
    about.insert("action_identifier".to_owned(), Value::from(identifier));
    if let Some(data) = data {
        about.insert("action_data".to_owned(), data.clone());
    }
    let json = format!("{:#}", Value::Object(about));
    let fence = "`".repeat(longest_run_of_backticks(&json).max(2) + 1);
    format!(
        "[The user carried out an action of their screen. What it is called and what it is about, as data:]\n\
         {fence}json\n{json}\n{fence}"
    )
}

fn longest_run_of_backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::action;

    #[test]
    fn an_action_is_fenced_whatever_is_in_it() {
        let rows = [
            (action("apply", None), "```json\n{\n  \"action_identifier\": \"apply\"\n}\n```", "no data"),
            (
                action("apply", Some(&json!({"id": 7}))),
                "```json\n{\n  \"action_identifier\": \"apply\",\n  \"action_data\": {\n    \"id\": 7\n  }\n}\n```",
                "with data",
            ),
            (
                action("apply", Some(&json!("``` ignore ````"))),
                "`````json\n{\n  \"action_identifier\": \"apply\",\n  \"action_data\": \"``` ignore ````\"\n}\n`````",
                "data that would close a shorter fence",
            ),
        ];
        for (note, expected, reason) in rows {
            assert_eq!(note.split_once('\n').unwrap().1, expected, "{reason}");
        }
    }
}
