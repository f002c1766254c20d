//! Filter changes by example, each against the whole resulting document.

use serde_json::{Value, json};

use super::*;
use crate::toolsets::tables::fixture::{orders, orders_with};

fn changed(config: &Value, operation: Operation, filter: Value) -> Value {
    let filter: FilterSpec = serde_json::from_value(filter).expect("a filter");
    outcome(config, |config, notes| match operation {
        Operation::Add => add(config, &filter, notes),
        Operation::Remove => remove(config, &filter, notes),
    })
}

fn with_filter(filter: Value) -> Value {
    orders_with("/data_source/0/filters/-", filter)
}

fn done(config: Value, applied: &[&str], warnings: &[&str]) -> Value {
    json!({ "valid": true, "warnings": warnings, "applied": applied, "config": config })
}

fn refused(field: &str, code: &str, message: &str) -> Value {
    let error = json!({ "Field": field, "Message": message, "Code": code });
    json!({ "valid": false, "warnings": [], "applied": [], "config": null, "errors": [error] })
}

#[test]
fn filters_are_added_beside_others() {
    let mut on_status = with_filter(json!({ "column": "status", "operator": "in", "value": ["open", "paid"] }));
    on_status["data_source"][0]["select"]["columns"].as_array_mut().expect("columns").push(json!({ "name": "status" }));
    on_status["visual_settings"]["columns"]["status"] =
        json!({ "name": "status", "header": "Status", "type": "string", "hidden": true });
    let mut on_customer = with_filter(json!({ "column": "customers.number", "operator": "eq", "value": "7" }));
    on_customer["data_source"][0]["select"]["foreign_tables"][0]["columns"]
        .as_array_mut()
        .expect("columns")
        .push(json!({ "name": "number", "alias": "customers_number" }));
    on_customer["visual_settings"]["columns"]["customers_number"] =
        json!({ "name": "customers_number", "header": "Customers Number", "type": "string", "hidden": true });

    for (filter, expected, reason) in [
        (
            json!({ "column": "total", "operator": "gt", "value": "10", "label": "Over" }),
            done(
                with_filter(json!({ "column": "total", "operator": "gt", "value": 10, "label": "Over" })),
                &["added filter: total gt 10"],
                &[],
            ),
            "one more on the same column; a number column is compared with a number",
        ),
        (
            json!({ "column": "number", "operator": "eq", "value": "10" }),
            done(
                with_filter(json!({ "column": "number", "operator": "eq", "value": "10" })),
                &["added filter: number eq \"10\""],
                &[],
            ),
            "a text column with text",
        ),
        (
            json!({ "column": "status", "operator": "in", "value": "open, paid" }),
            done(
                on_status,
                &["added column \"status\" of orders (hidden)", "added filter: status in [\"open\",\"paid\"]"],
                &[],
            ),
            "a column that is not selected is, hidden; in compares with a list",
        ),
        (
            json!({ "column": "customers.number", "operator": "eq", "value": "7" }),
            done(
                on_customer,
                &["added column \"customers_number\" of customers (hidden)", "added filter: customers.number eq \"7\""],
                &[],
            ),
            "a joined table's column whose name is taken",
        ),
        (
            json!({ "column": "total", "operator": "is_null", "value": "x" }),
            done(
                with_filter(json!({ "column": "total", "operator": "is_null" })),
                &["added filter: total is_null"],
                &["the operator is_null takes no value; it was left out"],
            ),
            "an operator without a value",
        ),
        (
            json!({ "column": "total", "operator": "gte", "control_type": "number" }),
            done(
                with_filter(json!({ "column": "total", "operator": "gte", "dynamic": true, "control_type": "number" })),
                &["added filter: total gte"],
                &[],
            ),
            "a control that users fill in",
        ),
        (
            json!({ "column": "total", "operator": "eq" }),
            done(
                with_filter(json!({ "column": "total", "operator": "eq" })),
                &["added filter: total eq"],
                &["the filter compares \"total\" with nothing; give a value"],
            ),
            "neither value nor control",
        ),
    ] {
        assert_eq!(changed(&orders(), Operation::Add, filter), expected, "{reason}");
    }
}

#[test]
fn filters_that_cannot_be_added_are_refused() {
    for (filter, expected, reason) in [
        (
            json!({ "column": "total", "operator": " " }),
            refused(
                "filter.operator",
                "REQUIRED",
                "an operator is required: eq, neq, gt, gte, lt, lte, in, like, ilike, is_null, is_not_null",
            ),
            "no operator",
        ),
        (
            json!({ "column": "total", "operator": "equals" }),
            refused(
                "filter.operator",
                "INVALID_VALUE",
                "\"equals\" is not allowed; use one of eq, neq, gt, gte, lt, lte, in, like, ilike, is_null, is_not_null",
            ),
            "a workflow's operator",
        ),
        (
            json!({ "column": "lower(number)", "operator": "eq" }),
            refused(
                "filter.column",
                "INVALID_FORMAT",
                "\"lower(number)\" is not a column; write column or table.column",
            ),
            "an expression",
        ),
        (
            json!({ "column": "users.name", "operator": "eq" }),
            refused(
                "filter.column",
                "INVALID_FIELD_REFERENCE",
                "table \"users\" is not part of this configuration (it has orders, customers)",
            ),
            "a table that is not joined",
        ),
    ] {
        assert_eq!(changed(&orders(), Operation::Add, filter), expected, "{reason}");
    }
}

#[test]
fn the_first_matching_filter_is_removed() {
    let two = with_filter(json!({ "column": "total", "operator": "lt", "value": 99 }));
    let first_gone =
        orders_with("/data_source/0/filters", json!([{ "column": "total", "operator": "lt", "value": 99 }]));
    for (filter, expected, reason) in [
        (json!({ "column": "total" }), done(first_gone, &["removed filter: total gt 10"], &[]), "by its column"),
        (
            json!({ "column": "total", "operator": "lt", "value": "99" }),
            done(orders(), &["removed filter: total lt 99"], &[]),
            "by operator and value, however that is written",
        ),
        (
            json!({ "column": "total", "value": 5 }),
            refused(
                "filter",
                "INVALID_FIELD_REFERENCE",
                "no filter on \"total\" matches; there are: total gt 10; total lt 99",
            ),
            "none matches",
        ),
    ] {
        assert_eq!(changed(&two, Operation::Remove, filter), expected, "{reason}");
    }
}
