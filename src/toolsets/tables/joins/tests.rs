//! Join changes by example, each against the whole resulting document.

use serde_json::{Value, json};

use super::*;
use crate::toolsets::tables::fixture::{orders, orders_with};

const JOINS: &str = "/data_source/0/select/foreign_tables";

fn changed(config: &Value, operation: Operation, join: Value) -> Value {
    let join: JoinSpec = serde_json::from_value(join).expect("a join");
    outcome(config, |config, notes| match operation {
        Operation::Add => add(config, &join, notes),
        Operation::Remove => remove(config, &join, notes),
    })
}

fn with_join(join: Value) -> Value {
    orders_with(&format!("{JOINS}/-"), join)
}

fn done(config: Value, applied: &[&str], warnings: &[&str]) -> Value {
    json!({ "valid": true, "warnings": warnings, "applied": applied, "config": config })
}

fn refused(field: &str, code: &str, message: &str) -> Value {
    let error = json!({ "Field": field, "Message": message, "Code": code });
    json!({ "valid": false, "warnings": [], "applied": [], "config": null, "errors": [error] })
}

#[test]
fn a_joined_table_brings_its_columns() {
    let mut expected = with_join(json!({
        "table": "users", "schema": "core",
        "relationship_from": "orders.created_by", "relationship_to": "users.id",
        "join_type": "left", "columns": [{ "name": "name" }],
    }));
    expected["visual_settings"]["columns"]["name"] =
        json!({ "name": "name", "header": "Name", "type": "string", "order": 40 });
    let join = json!({
        "table": "users", "schema": "core", "relationship_from": "created_by", "relationship_to": "id", "columns_to_add": ["name"],
    });
    assert_eq!(
        changed(&orders(), Operation::Add, join),
        done(expected, &["joined users (left) on orders.created_by = users.id", "added column \"name\" of users"], &[])
    );
}

#[test]
fn a_table_joined_again_gets_an_alias() {
    let mut expected = with_join(json!({
        "table": "customers", "alias": "customers_2",
        "relationship_from": "orders.payer_id", "relationship_to": "customers_2.id",
        "join_type": "inner", "columns": [{ "name": "name", "alias": "payer" }],
    }));
    expected["visual_settings"]["columns"]["payer"] =
        json!({ "name": "payer", "header": "Payer", "type": "string", "order": 40 });
    let join = json!({
        "table": "customers", "join_type": "inner", "relationship_from": "orders.payer_id", "relationship_to": "customers.id",
        "columns_to_add": [{ "name": "name", "alias": "payer" }],
    });
    assert_eq!(
        changed(&orders(), Operation::Add, join),
        done(
            expected,
            &[
                "joined customers_2 (inner) on orders.payer_id = customers_2.id",
                "added column \"payer\" of customers_2"
            ],
            &[
                "table \"customers\" is there already, so this join is called \"customers_2\"; qualify its columns with that"
            ],
        )
    );
}

#[test]
fn joins_that_cannot_be_made_are_refused() {
    for (join, expected, reason) in [
        (
            json!({ "table": "users", "relationship_to": "users.id" }),
            refused("join.relationship_from", "REQUIRED", "relationship_from is required, as table.column"),
            "half a relationship",
        ),
        (
            json!({ "table": "users", "relationship_from": "users.id", "relationship_to": "orders.user_id" }),
            refused(
                "join.relationship_from",
                "INVALID_FIELD_REFERENCE",
                "\"users.id\" is not a column of a table that is there (orders, customers); relationship_from is the side \
                 that is already part of the configuration, relationship_to the joined table's",
            ),
            "the sides the wrong way round",
        ),
        (
            json!({ "table": "users", "relationship_from": "orders.user_id", "relationship_to": "people.id" }),
            refused(
                "join.relationship_to",
                "INVALID_FIELD_REFERENCE",
                "\"people.id\" is not a column of the joined table \"users\"",
            ),
            "another table's column",
        ),
        (
            json!({ "table": "users", "join_type": "cross", "relationship_from": "a", "relationship_to": "b" }),
            refused("join.join_type", "INVALID_VALUE", "\"cross\" is not allowed; use one of inner, left, right, full"),
            "an unknown join",
        ),
        (
            json!({ "table": "core.users", "relationship_from": "a", "relationship_to": "b" }),
            refused(
                "join.table",
                "INVALID_FORMAT",
                "\"core.users\" is not a table name; give the bare name and put its schema into schema",
            ),
            "a qualified name",
        ),
        (
            json!({ "table": "users", "relationship_from": "user_id", "relationship_to": "id", "columns_to_add": ["total"] }),
            refused(
                "join.columns_to_add[0].alias",
                "INVALID_VALUE",
                "another column is called \"total\" already; give this one an alias, for example \"users_total\"",
            ),
            "a key that is taken",
        ),
    ] {
        assert_eq!(changed(&orders(), Operation::Add, join), expected, "{reason}");
    }
}

#[test]
fn a_removed_join_takes_its_columns_along() {
    let mut gone = orders_with(JOINS, json!([]));
    gone["visual_settings"]["columns"].as_object_mut().expect("settings").shift_remove("customer_name");
    let mut sorted = orders_with("/data_source/0/sort/0/column", json!("customers.name"));
    let nested = json!({ "table": "cities", "relationship_from": "customers.city_id", "relationship_to": "cities.id", "columns": [{ "name": "city" }] });
    sorted["data_source"][0]["select"]["foreign_tables"][0]["foreign_tables"] = json!([nested]);
    sorted["visual_settings"]["columns"]["city"] = json!({ "type": "string", "order": 40 });
    let mut sorted_gone = gone.clone();
    sorted_gone["data_source"][0]["sort"][0]["column"] = json!("customers.name");

    for (config, join, expected, reason) in [
        (
            orders(),
            json!({ "table": "customers" }),
            done(gone, &["removed the join of customers and 1 of its columns"], &[]),
            "by its table",
        ),
        (
            sorted,
            json!({ "table": "customers", "schema": "sales" }),
            done(
                sorted_gone,
                &["removed the join of customers and 2 of its columns"],
                &["a sort still uses \"customers.name\"; remove it with apply_sort_change"],
            ),
            "tables joined to it go too; a warning names what still uses it",
        ),
        (
            orders(),
            json!({ "table": "orders" }),
            refused("join.table", "INVALID_FIELD_REFERENCE", "table \"orders\" is not joined; joined are: customers"),
            "the main table is no join",
        ),
    ] {
        assert_eq!(changed(&config, Operation::Remove, join), expected, "{reason}");
    }
}
