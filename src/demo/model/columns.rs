//! A table configuration looked into: its columns by any name a user gives them, and the small edits that need no tool.

use serde_json::{Value, json};

use super::words;

/// A column of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    /// Its key: the alias, or the name where there is none.
    pub key: String,
    /// Its name in the query.
    pub name: String,
    /// What its heading says.
    pub header: String,
    /// Its type, where the configuration says.
    pub kind: Option<String>,
    /// Whether it is not shown.
    pub hidden: bool,
}

/// The columns of `config`: the shown and hidden ones, in the order they stand there.
pub(super) fn columns(config: &Value) -> Vec<Column> {
    let selected = selected(config);
    let settings = config.pointer("/visual_settings/columns").and_then(Value::as_object);
    let mut found: Vec<Column> = Vec::new();
    for (key, setting) in settings.into_iter().flatten() {
        let name = selected.iter().find(|(other, _)| other == key).map_or(key, |(_, name)| name);
        found.push(Column {
            key: key.clone(),
            name: name.clone(),
            header: words::str_at(setting, &["header", "name"]).map_or_else(|| words::titled(key), str::to_owned),
            kind: words::str_at(setting, &["type"]).map(str::to_owned),
            hidden: setting.get("hidden").and_then(Value::as_bool).unwrap_or(false),
        });
    }
    for (key, name) in selected {
        if !found.iter().any(|column| column.key == key) {
            found.push(Column { header: words::titled(&key), key, name, kind: None, hidden: false });
        }
    }
    found
}

/// Key and name of every column the query selects, joined tables included.
fn selected(config: &Value) -> Vec<(String, String)> {
    let Some(select) = config.pointer("/data_source/0/select") else { return Vec::new() };
    let mut lists = vec![select];
    let mut found = Vec::new();
    while let Some(table) = lists.pop() {
        for column in words::items(table, &["columns"]) {
            let name = column.as_str().or_else(|| words::str_at(column, &["name"]));
            if let Some(name) = name {
                let key = words::str_at(column, &["alias"]).unwrap_or(name);
                found.push((key.to_owned(), name.to_owned()));
            }
        }
        lists.extend(words::items(table.get("foreign_tables").unwrap_or(&Value::Null), &[]));
    }
    found
}

/// The column that `said` means.
///
/// # Errors
/// A sentence that lists the columns there are.
pub(super) fn column(config: &Value, said: &str) -> Result<Column, String> {
    let all = columns(config);
    let is_meant = |column: &&Column| {
        [&column.key, &column.name, &column.header].into_iter().any(|name| words::same_name(name, said))
    };
    all.iter().find(is_meant).cloned().ok_or_else(|| {
        let known: Vec<String> = all.iter().take(30).map(|column| words::code(&column.key)).collect();
        match known.is_empty() {
            true => format!("This table has no column {}; it shows none at all.", words::code(said)),
            false => {
                format!("This table has no column {}. Its columns are {}.", words::code(said), words::joined(&known))
            }
        }
    })
}

/// Sets `key` of a column's visual settings.
pub(super) fn set_column(config: &mut Value, column: &Column, key: &str, value: Value) {
    let Some(root) = config.as_object_mut() else { return };
    let settings = root.entry("visual_settings").or_insert_with(|| json!({}));
    let Some(settings) = settings.as_object_mut() else { return };
    let all = settings.entry("columns").or_insert_with(|| json!({}));
    let Some(all) = all.as_object_mut() else { return };
    let fresh = || json!({ "name": column.key, "header": column.header });
    if let Some(own) = all.entry(column.key.as_str()).or_insert_with(fresh).as_object_mut() {
        own.insert(key.to_owned(), value);
    }
}

/// Schema and name of the table that `config` reads.
pub(super) fn source(config: &Value) -> Option<(&str, &str)> {
    let source = config.pointer("/data_source/0")?;
    let table = words::str_at(source, &["source"])?;
    match words::str_at(source, &["schema"]) {
        Some(schema) => Some((schema, table.rsplit_once('.').map_or(table, |(_, table)| table))),
        None => table.split_once('.'),
    }
}

/// `said` as an identifier: `Unit Cost` becomes `unit_cost`.
pub(super) fn identifier(said: &str) -> String {
    let lowered = said.trim().to_lowercase();
    lowered.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_found_by_key_name_or_heading() {
        let config = json!({
            "data_source": [{ "select": {
                "columns": [{ "name": "id", "alias": "item_id" }, { "name": "quantity" }],
                "foreign_tables": [{ "columns": [{ "name": "name", "alias": "product_name" }] }],
            }}],
            "visual_settings": { "columns": { "item_id": { "header": "Item" }, "quantity": { "header": "On Hand", "hidden": true } } },
        });
        let key = |said: &str| column(&config, said).map(|column| column.key);
        assert_eq!(key("Item"), Ok("item_id".to_owned()));
        assert_eq!(key("on hand"), Ok("quantity".to_owned()));
        assert_eq!(key("Product Name"), Ok("product_name".to_owned()));
        assert_eq!(
            key("price"),
            Err("This table has no column `price`. Its columns are `item_id`, `quantity` and `product_name`."
                .to_owned())
        );
        for odd in [json!(null), json!({"data_source": {}}), json!({"visual_settings": {"columns": []}})] {
            assert_eq!(columns(&odd), Vec::new());
        }
    }
}
