//! A valid configuration for the tests, with keys that nothing here understands.

use serde_json::{Value, json};

/// Orders with their customers: two own columns, one joined, ordered, one filter, one sort.
pub fn orders() -> Value {
    json!({
        "title": "Orders",
        "widget_type": "table",
        "x_theme": { "dark": true },
        "data_source": [{
            "type": "query",
            "source": "orders",
            "schema": "sales",
            "x_hint": 7,
            "select": {
                "columns": [{ "name": "number" }, { "name": "total", "x_unit": "EUR" }],
                "foreign_tables": [{
                    "table": "customers",
                    "schema": "sales",
                    "relationship_from": "orders.customer_id",
                    "relationship_to": "customers.id",
                    "join_type": "left",
                    "columns": [{ "name": "name", "alias": "customer_name" }],
                }],
            },
            "filters": [{ "column": "total", "operator": "gt", "value": 10, "x_pin": true }],
            "sort": [{ "column": "number", "direction": "desc", "custom_order": ["a"] }],
        }],
        "visual_settings": {
            "columns": {
                "number": { "name": "number", "header": "Number", "type": "string", "order": 10 },
                "total": { "name": "total", "header": "Total", "type": "number", "order": 20, "x_bold": true },
                "customer_name": { "name": "customer_name", "header": "Customer", "type": "string", "order": 30 },
            },
            "pagination": { "enabled": true },
        },
        "permissions": { "roles": ["USER"] },
    })
}

/// [`orders`] with `value` put at `pointer`; the parent must be there. `null` removes.
pub fn orders_with(pointer: &str, value: Value) -> Value {
    let mut config = orders();
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
    match config.pointer_mut(parent).expect("a parent") {
        Value::Object(object) if value.is_null() => {
            object.shift_remove(last);
        }
        Value::Object(object) => {
            object.insert(last.to_owned(), value);
        }
        Value::Array(list) => match last.parse::<usize>() {
            Ok(index) if value.is_null() => {
                list.remove(index);
            }
            Ok(index) => list[index] = value,
            Err(_) => list.push(value),
        },
        other => panic!("{other} has no members"),
    }
    config
}
