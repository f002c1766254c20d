//! The four `apply_*` tools: the document changes where it should and nowhere else, keys nobody knows included.

use serde_json::{Value, json};

use super::{Asking, Call, ORDERS, config, results};

/// The orders configuration with keys at every level that nothing here knows.
fn with_unknown_keys() -> Value {
    let mut config = config(ORDERS);
    config["x_theme"] = json!({"dark": true, "z": 1, "a": [null, 1.5, "ü"]});
    config["data_source"][0]["x_hint"] = json!(7);
    config["data_source"][0]["select"]["columns"][3]["x_unit"] = json!("EUR");
    config["data_source"][0]["select"]["foreign_tables"][0]["x_lazy"] = json!(true);
    config["data_source"][0]["filters"][0]["x_pin"] = json!({"side": "left"});
    config["data_source"][0]["sort"][0]["x_nulls"] = json!("last");
    config["visual_settings"]["columns"]["amount"]["x_bold"] = json!(true);
    config["visual_settings"]["x_density"] = json!("compact");
    config
}

fn push(list: &mut Value, entry: Value) {
    list.as_array_mut().unwrap().push(entry);
}

/// Asserts that each call gives its document, to the byte, and says what it did.
async fn assert_changes(rows: Vec<(Call<'_>, &str, Value)>) {
    let (calls, expected): (Vec<_>, Vec<_>) =
        rows.into_iter().map(|(call, said, config)| (call, (said, config))).unzip();
    let read = results(&calls).await;
    for (read, (said, config)) in read.into_iter().zip(expected) {
        let read = read.unwrap();
        assert_eq!(read["applied"][0], said);
        assert_eq!(read["config"].to_string(), config.to_string(), "{said}");
        assert_eq!((&read["valid"], read.get("errors")), (&json!(true), None), "{said}");
    }
}

#[tokio::test]
async fn columns_come_and_go_with_their_settings() {
    let before = with_unknown_keys();
    let mut added = before.clone();
    push(&mut added["data_source"][0]["select"]["columns"], json!({"name": "shipped_date"}));
    added["visual_settings"]["columns"]["shipped_date"] = json!({
        "name": "shipped_date", "header": "Shipped Date", "type": "datetime",
        "format": {"type": "date", "format": "yyyy-MM-dd"}, "order": 80
    });
    let mut joined = before.clone();
    let email = json!({"name": "email", "alias": "customer_email"});
    push(&mut joined["data_source"][0]["select"]["foreign_tables"][0]["columns"], email);
    joined["visual_settings"]["columns"]["customer_email"] =
        json!({"name": "customer_email", "header": "Customer Email", "type": "string", "hidden": true});
    let mut removed = before.clone();
    removed["data_source"][0]["select"]["columns"].as_array_mut().unwrap().remove(4);
    removed["visual_settings"]["columns"].as_object_mut().unwrap().shift_remove("due_date");

    let add = |columns: Value| json!({"config": before, "operation": "add", "columns": columns});
    let hidden = json!([{"name": "email", "alias": "customer_email", "source_table": "customers", "hidden": true}]);
    let shipped = json!([{"name": "shipped_date", "pg_type": "timestamp"}]);
    let remove = json!({"config": before, "operation": "remove", "columns": ["due_date"]});
    assert_changes(vec![
        (("apply_column_change", add(shipped)), r#"added column "shipped_date" of orders"#, added),
        (("apply_column_change", add(hidden)), r#"added column "customer_email" of customers (hidden)"#, joined),
        (("apply_column_change", remove), r#"removed column "due_date""#, removed),
    ])
    .await;
}

#[tokio::test]
async fn filters_come_and_go() {
    let before = with_unknown_keys();
    let mut added = before.clone();
    let filter = json!({"column": "amount", "operator": "gte", "value": 100, "label": "From"});
    push(&mut added["data_source"][0]["filters"], filter);
    let mut removed = before.clone();
    removed["data_source"][0]["filters"] = json!([]);
    let change = |operation: &str, filter: Value| json!({"config": before, "operation": operation, "filter": filter});
    let of_amount = json!({"column": "amount", "operator": "gte", "value": "100", "label": "From"});
    let of_status = json!({"column": "fulfillment_status"});
    assert_changes(vec![
        (("apply_filter_change", change("add", of_amount)), "added filter: amount gte 100", added),
        (
            ("apply_filter_change", change("remove", of_status)),
            r#"removed filter: fulfillment_status neq "cancelled""#,
            removed,
        ),
    ])
    .await;
}

#[tokio::test]
async fn joins_come_and_go_with_their_columns() {
    let before = with_unknown_keys();
    let mut added = before.clone();
    let join = json!({
        "table": "users", "schema": "core", "relationship_from": "orders.created_by", "relationship_to": "users.id",
        "join_type": "inner", "columns": [{"name": "username"}]
    });
    push(&mut added["data_source"][0]["select"]["foreign_tables"], join);
    added["visual_settings"]["columns"]["username"] =
        json!({"name": "username", "header": "Username", "type": "string", "order": 80});
    let mut removed = before.clone();
    removed["data_source"][0]["select"]["foreign_tables"] = json!([]);
    removed["visual_settings"]["columns"].as_object_mut().unwrap().shift_remove("customer_name");
    let change = |operation: &str, join: Value| json!({"config": before, "operation": operation, "join": join});
    let users = json!({
        "table": "users", "schema": "core", "join_type": "inner", "relationship_from": "created_by",
        "relationship_to": "users.id", "columns_to_add": ["username"]
    });
    assert_changes(vec![
        (("apply_join_change", change("add", users)), "joined users (inner) on orders.created_by = users.id", added),
        (
            ("apply_join_change", change("remove", json!({"table": "customers"}))),
            "removed the join of customers and 1 of its columns",
            removed,
        ),
    ])
    .await;
}

#[tokio::test]
async fn sorts_are_added_changed_set_and_removed() {
    let before = with_unknown_keys();
    let sorted = |sort: Value| {
        let mut config = before.clone();
        config["data_source"][0]["sort"] = sort;
        config
    };
    let first = before["data_source"][0]["sort"][0].clone();
    let mut turned = first.clone();
    turned["direction"] = json!("asc");
    let change = |operation: &str, sort: Value| {
        ("apply_sort_change", json!({"config": before, "operation": operation, "sort": sort}))
    };
    assert_changes(vec![
        (
            change("add", json!([{"column": "amount", "direction": "DESC"}])),
            "added sort by amount desc",
            sorted(json!([first, {"column": "amount", "direction": "desc", "priority": 2}])),
        ),
        (
            change("add", json!([{"column": "created_date"}])),
            "changed the sort by created_date to asc",
            sorted(json!([turned])),
        ),
        (
            change("set", json!([{"column": "number"}])),
            "dropped the former sort order of 1",
            sorted(json!([{"column": "number", "direction": "asc"}])),
        ),
        (change("set", json!([])), "dropped the former sort order of 1", sorted(json!([]))),
        (change("remove", json!([{"column": "created_date"}])), "removed the sort by created_date", sorted(json!([]))),
    ])
    .await;
}

#[tokio::test]
async fn edits_need_no_administrator_and_no_backend() {
    let nowhere = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", "http://127.0.0.1:9")];
    let user = Asking { settings: &nowhere, roles: Some(&["USER"]), ..Asking::default() };
    let config = config(ORDERS);
    let read = user
        .results(&[
            ("apply_column_change", json!({"config": config, "operation": "remove", "columns": ["amount"]})),
            (
                "apply_filter_change",
                json!({"config": config, "operation": "remove", "filter": {"column": "fulfillment_status"}}),
            ),
            ("apply_join_change", json!({"config": config, "operation": "remove", "join": {"table": "customers"}})),
            ("apply_sort_change", json!({"config": config, "operation": "set", "sort": []})),
        ])
        .await;
    for read in read {
        assert_eq!(read.unwrap()["valid"], true);
    }
}
