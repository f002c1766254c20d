//! Reading a backend's objects, whose keys are `snake_case` in one endpoint and `camelCase` in the next.

use serde_json::Value;

/// The non-null value at `snake`, or at the same key in camel case.
pub fn field<'a>(object: &'a Value, snake: &str) -> Option<&'a Value> {
    let found = object.get(snake).filter(|value| !value.is_null());
    found.or_else(|| object.get(camel(snake)).filter(|value| !value.is_null()))
}

/// The first of `names` that [`field`] finds.
pub fn first_field<'a>(object: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| field(object, name))
}

/// The non-blank text at `snake` in either style.
pub fn text<'a>(object: &'a Value, snake: &str) -> Option<&'a str> {
    field(object, snake)?.as_str().filter(|text| !text.trim().is_empty())
}

/// `entity_name` as `entityName`.
fn camel(snake: &str) -> String {
    let mut words = snake.split('_');
    let mut key = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        key.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        key.push_str(letters.as_str());
    }
    key
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_found_in_either_key_style_and_null_is_absent() {
        let rows = [
            (json!({"first_name": "Ada"}), Some("Ada"), "exact"),
            (json!({"firstName": "Ada"}), Some("Ada"), "the other style"),
            (json!({"first_name": null, "firstName": "Ada"}), Some("Ada"), "null does not hide the other style"),
            (json!({"firstname": "Ada"}), None, "a third style is another key"),
            (json!("Ada"), None, "not an object"),
        ];
        for (object, expected, reason) in rows {
            assert_eq!(text(&object, "first_name"), expected, "{reason}");
        }
    }
}
