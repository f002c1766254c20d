//! Visual settings of one column: what a freshly selected column looks like on the screen.

use serde_json::{Map, Value, json};

use super::config::flag;
use super::dates;

/// The step between orders, so that a person can put a column between two of them.
const ORDER_STEP: i64 = 10;

/// A heading for the column `name`: `Unit Price` for `unit_price`, `Customer` for `customer_id`. Never one that ends in
/// "ID", which the validator refuses on a visible column.
pub fn header(name: &str) -> String {
    let mut words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    while words.len() > 1 && words.last().is_some_and(|word| word.eq_ignore_ascii_case("id")) {
        words.pop();
    }
    if let [word] = words[..]
        && word.eq_ignore_ascii_case("id")
    {
        return "Identifier".to_owned();
    }
    words.into_iter().map(capitalised).collect::<Vec<_>>().join(" ")
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The order for one more visible column: the largest plus ten when visible columns are ordered at all, else none,
/// since either all of them have an order or none has.
pub fn next_order(columns: &Map<String, Value>) -> Option<i64> {
    let visible = columns.values().filter_map(Value::as_object).filter(|column| !flag(column, "hidden"));
    let orders = visible.filter_map(|column| column.get("order")).filter_map(Value::as_f64);
    // A fractional order of a hand-written document counts as the next whole one.
    let largest = orders.map(|order| order.ceil() as i64).max()?;
    Some(largest.saturating_add(ORDER_STEP))
}

/// Visual settings for a column that has none yet.
pub fn entry(key: &str, column_type: &str, hidden: bool, order: Option<i64>) -> Value {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(key));
    entry.insert("header".to_owned(), json!(header(key)));
    entry.insert("type".to_owned(), json!(column_type));
    if column_type == "datetime" {
        entry.insert("format".to_owned(), json!({ "type": "date", "format": dates::DEFAULT }));
    }
    if hidden {
        entry.insert("hidden".to_owned(), json!(true));
    }
    if let Some(order) = order.filter(|_| !hidden) {
        entry.insert("order".to_owned(), json!(order));
    }
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_words_and_never_ids() {
        for (name, expected, reason) in [
            ("unit_price", "Unit Price", "words"),
            ("customer_id", "Customer", "an id is headed by what it identifies"),
            ("id", "Identifier", "nothing else to say"),
            ("__id__", "Identifier", "empty words do not count"),
            ("eta", "Eta", "one word"),
        ] {
            assert_eq!(header(name), expected, "{reason}");
        }
    }

    #[test]
    fn one_more_column_is_ordered_when_the_visible_ones_are() {
        for (columns, expected, reason) in [
            (json!({}), None, "no columns"),
            (json!({ "a": {}, "b": { "order": null } }), None, "no column has an order"),
            (json!({ "a": { "order": 10 }, "b": { "order": 35 } }), Some(45), "after the last"),
            (json!({ "a": {}, "b": { "order": 90, "hidden": true } }), None, "a hidden column's order does not count"),
            (json!({ "a": { "order": i64::MAX } }), Some(i64::MAX), "no overflow"),
        ] {
            let columns = columns.as_object().expect("an object");
            assert_eq!(next_order(columns), expected, "{reason}");
        }
    }
}
