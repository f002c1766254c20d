//! The four `apply_*` tools refuse: bad arguments are errors, impossible edits are answers that say why and change nothing.

use serde_json::{Value, json};

use super::{Call, ORDERS, assert_refused, config, results};

/// Asserts that each call answers `valid: false` with this one error and no document.
async fn assert_invalid(rows: Vec<(Call<'_>, &str, &str, &str)>) {
    let calls: Vec<_> = rows.iter().map(|(call, ..)| call.clone()).collect();
    for (read, (_, code, field, message)) in results(&calls).await.into_iter().zip(rows) {
        let expected = json!({
            "valid": false, "warnings": [], "applied": [], "config": null,
            "errors": [{"Field": field, "Message": message, "Code": code}]
        });
        assert_eq!(read, Ok(expected));
    }
}

#[tokio::test]
async fn arguments_of_the_wrong_shape_are_errors() {
    let config = config(ORDERS);
    let read = results(&[
        ("apply_column_change", json!({"config": config, "operation": "hide", "columns": ["id"]})),
        ("apply_column_change", json!({"config": config, "operation": "add", "columns": []})),
        ("apply_column_change", json!({"operation": "add", "columns": ["id"]})),
        ("apply_column_change", json!({"config": config, "operation": "add", "columns": [{"alias": "x"}]})),
        (
            "apply_column_change",
            json!({"config": config, "operation": "add", "columns": ["id", {"name": "x", "alias": 7}]}),
        ),
        ("apply_column_change", json!({"config": config, "operation": "add", "columns": ["id", 7]})),
        ("apply_column_change", json!({"config": config, "operation": {}, "columns": ["id"]})),
        ("apply_filter_change", json!({"config": config, "operation": "add"})),
        ("apply_filter_change", json!({"config": config, "operation": "add", "filter": "amount > 1"})),
        ("apply_join_change", json!({"config": config, "operation": "add", "join": {"schema": "core"}})),
        ("apply_join_change", json!({"config": config, "operation": "set", "join": {"table": "users"}})),
        (
            "apply_join_change",
            json!({"config": config, "operation": "add", "join": {"table": "users", "columns_to_add": [{"name": {}}]}}),
        ),
        ("apply_sort_change", json!({"config": config, "operation": "add", "sort": []})),
        ("apply_sort_change", json!({"config": config, "operation": "set"})),
    ])
    .await;
    let expected = [
        ("bad params: operation: unknown variant `hide`, expected `add` or `remove`", "no such operation"),
        ("bad params: columns: name at least one column", "no columns"),
        ("bad params: missing field `config`", "no document"),
        ("bad params: columns[0]: missing field `name`", "a column without a name"),
        ("bad params: columns[1].alias: invalid type: integer `7`, expected a string", "an alias that is no text"),
        (
            "bad params: columns[1]: invalid type: integer `7`, expected a column's name or an object with it",
            "a column that is neither",
        ),
        ("bad params: operation: invalid type: map, expected a string", "an operation that is no word"),
        ("bad params: missing field `filter`", "no filter"),
        ("bad params: filter: invalid type: string", "a filter in words"),
        ("bad params: join: missing field `table`", "a join of nothing"),
        ("bad params: operation: unknown variant `set`", "an operation of another tool"),
        ("bad params: join.columns_to_add[0].name: invalid type: map, expected a string", "a name that is no text"),
        ("bad params: sort: name at least one column", "nothing to add"),
        ("bad params: missing field `sort`", "an order must be said, even an empty one"),
    ];
    assert_refused(&read, &expected);
}

#[tokio::test]
async fn impossible_edits_of_columns_change_nothing() {
    let edit = |operation: &str, columns: Value| {
        ("apply_column_change", json!({"config": config(ORDERS), "operation": operation, "columns": columns}))
    };
    assert_invalid(vec![
        (
            edit("add", json!([{"name": "email", "source_table": "users"}])),
            "INVALID_FIELD_REFERENCE",
            "columns[0].source_table",
            "table \"users\" is not part of this configuration (it has orders, customers); join it first with \
             apply_join_change and name the column in columns_to_add",
        ),
        (
            edit("add", json!([{"name": "shipped_date"}, {"name": "id", "source_table": "customers"}])),
            "INVALID_VALUE",
            "columns[1].alias",
            "another column is called \"id\" already; give this one an alias, for example \"customers_id\"",
        ),
        (
            edit("add", json!(["amount; drop table orders"])),
            "INVALID_FORMAT",
            "columns[0].name",
            "\"amount; drop table orders\" is not a column name; give the bare name and put the table into source_table",
        ),
    ])
    .await;
    let read = results(&[edit("remove", json!(["colour"]))]).await.remove(0).unwrap();
    assert_eq!(read["config"], Value::Null);
    assert_eq!(read["errors"][0]["Message"], r#"nothing was removed: column "colour" is not selected"#);
}

#[tokio::test]
async fn impossible_filters_joins_and_sorts_change_nothing() {
    let config = || config(ORDERS);
    let filter = |operation: &str, filter: Value| {
        ("apply_filter_change", json!({"config": config(), "operation": operation, "filter": filter}))
    };
    let join = |operation: &str, join: Value| {
        ("apply_join_change", json!({"config": config(), "operation": operation, "join": join}))
    };
    let sort = |operation: &str, sort: Value| {
        ("apply_sort_change", json!({"config": config(), "operation": operation, "sort": sort}))
    };
    assert_invalid(vec![
        (
            filter("add", json!({"column": "amount", "operator": "above", "value": 1})),
            "INVALID_VALUE",
            "filter.operator",
            "\"above\" is not allowed; use one of eq, neq, gt, gte, lt, lte, in, like, ilike, is_null, is_not_null",
        ),
        (
            filter("remove", json!({"column": "amount"})),
            "INVALID_FIELD_REFERENCE",
            "filter",
            "no filter on \"amount\" matches; there are: fulfillment_status neq \"cancelled\"",
        ),
        (
            join("add", json!({"table": "users", "relationship_from": "orders.created_by"})),
            "REQUIRED",
            "join.relationship_to",
            "relationship_to is required, as table.column",
        ),
        (
            join("remove", json!({"table": "users"})),
            "INVALID_FIELD_REFERENCE",
            "join.table",
            "table \"users\" is not joined; joined are: customers",
        ),
        (
            sort("add", json!([{"column": "amount", "direction": "up"}])),
            "INVALID_VALUE",
            "sort[0].direction",
            "\"up\" is not allowed; use one of asc, desc",
        ),
        (
            ("apply_sort_change", json!({"config": {"title": "Empty"}, "operation": "set", "sort": []})),
            "REQUIRED",
            "data_source",
            "the configuration needs a data source: {\"type\", \"source\", \"select\"}",
        ),
    ])
    .await;
    let read = results(&[sort("remove", json!([{"column": "amount"}]))]).await.remove(0).unwrap();
    assert_eq!((&read["config"], &read["applied"]), (&Value::Null, &json!([])));
    assert_eq!(read["errors"][0]["Message"], "nothing was removed: the rows are sorted by created_date");
}
