//! Column changes by example, each against the whole resulting document.

use serde_json::{Value, json};

use super::*;
use crate::toolsets::tables::fixture::{orders, orders_with};

fn changed(config: &Value, operation: Operation, columns: Value) -> Value {
    let columns: Vec<ColumnSpec> = args::columns(columns).expect("columns");
    outcome(config, |config, notes| edit(config, operation, &columns, notes))
}

fn done(config: Value, applied: &[&str], warnings: &[&str]) -> Value {
    json!({ "valid": true, "warnings": warnings, "applied": applied, "config": config })
}

fn refused(field: &str, code: &str, message: &str) -> Value {
    let error = json!({ "Field": field, "Message": message, "Code": code });
    json!({ "valid": false, "warnings": [], "applied": [], "config": null, "errors": [error] })
}

#[test]
fn an_added_column_is_selected_and_gets_settings() {
    let mut expected =
        orders_with("/data_source/0/select/columns/-", json!({ "name": "created_at", "alias": "created" }));
    expected["visual_settings"]["columns"]["created"] = json!({
        "name": "created", "header": "Created", "type": "datetime",
        "format": { "type": "date", "format": "yyyy-MM-dd" }, "order": 40,
    });
    assert_eq!(
        changed(
            &orders(),
            Operation::Add,
            json!([{ "name": "created_at", "alias": "created", "pg_type": "timestamp without time zone" }])
        ),
        done(expected, &["added column \"created\" of orders"], &[])
    );
}

#[test]
fn added_columns_follow_what_is_there() {
    let customers = "/data_source/0/select/foreign_tables/0/columns/-";
    let mut of_customer = orders_with(customers, json!({ "name": "id" }));
    of_customer["visual_settings"]["columns"]["id"] =
        json!({ "name": "id", "header": "Identifier", "type": "uuid", "hidden": true });
    let hidden = orders_with("/visual_settings/columns/total/hidden", json!(true));
    let mut visible = orders();
    visible["visual_settings"]["columns"]["total"]["order"] = json!(20);
    let kept = orders_with("/data_source/0/select/columns/1", json!(null));
    let selected_anew = orders_with("/data_source/0/select/columns/1", json!({ "name": "total" }));
    let mut unordered = orders();
    for key in ["number", "total", "customer_name"] {
        unordered["visual_settings"]["columns"][key].as_object_mut().expect("settings").shift_remove("order");
    }
    let mut with_status = unordered.clone();
    with_status["data_source"][0]["select"]["columns"]
        .as_array_mut()
        .expect("columns")
        .push(json!({ "name": "status" }));
    with_status["visual_settings"]["columns"]["status"] =
        json!({ "name": "status", "header": "Status", "type": "string" });

    for (config, column, expected, reason) in [
        (
            orders(),
            json!({ "name": "id", "source_table": "customers", "source_schema": "sales", "pg_type": "uuid", "hidden": true }),
            done(of_customer, &["added column \"id\" of customers (hidden)"], &[]),
            "a joined table's column goes to the join; a hidden one has no order",
        ),
        (
            orders(),
            json!({ "name": "total" }),
            done(orders(), &[], &["column \"total\" is selected already; skipped"]),
            "a column that is there is skipped",
        ),
        (
            hidden,
            json!({ "name": "total" }),
            done(visible, &["showed column \"total\", which was selected but hidden"], &[]),
            "unless it was only hidden",
        ),
        (
            kept,
            json!({ "name": "total" }),
            done(
                selected_anew,
                &["added column \"total\" of orders"],
                &["column \"total\" had visual settings already; they were kept"],
            ),
            "settings that are there are kept; problems that end are no warnings",
        ),
        (
            unordered,
            json!("status"),
            done(with_status, &["added column \"status\" of orders"], &[]),
            "a bare name; no order where no column has one",
        ),
    ] {
        assert_eq!(changed(&config, Operation::Add, json!([column])), expected, "{reason}");
    }
}

#[test]
fn columns_that_cannot_be_added_are_refused_with_a_way_out() {
    for (column, expected, reason) in [
        (
            json!({ "name": "created_at", "alias": "Created Date" }),
            refused(
                "columns[0].alias",
                "INVALID_FORMAT",
                "alias \"Created Date\" is not an identifier (letters, digits and _, no blanks); use \"created_date\" and put \
                 the text for people into visual_settings.columns.created_date.header",
            ),
            "an alias is an identifier",
        ),
        (
            json!({ "name": "total", "source_table": "customers" }),
            refused(
                "columns[0].alias",
                "INVALID_VALUE",
                "another column is called \"total\" already; give this one an alias, for example \"customers_total\"",
            ),
            "two columns cannot have one key",
        ),
        (
            json!({ "name": "city", "source_table": "addresses" }),
            refused(
                "columns[0].source_table",
                "INVALID_FIELD_REFERENCE",
                "table \"addresses\" is not part of this configuration (it has orders, customers); join it first with \
                 apply_join_change and name the column in columns_to_add",
            ),
            "the table is not joined",
        ),
        (
            json!({ "name": "orders.total" }),
            refused(
                "columns[0].name",
                "INVALID_FORMAT",
                "\"orders.total\" is not a column name; give the bare name and put the table into source_table",
            ),
            "a qualified name",
        ),
    ] {
        assert_eq!(changed(&orders(), Operation::Add, json!([column])), expected, "{reason}");
    }
}

#[test]
fn a_removed_column_goes_with_its_settings() {
    let mut without_total = orders_with("/data_source/0/select/columns/1", json!(null));
    without_total["visual_settings"]["columns"].as_object_mut().expect("settings").shift_remove("total");
    let mut without_customer = orders_with("/data_source/0/select/foreign_tables/0/columns/0", json!(null));
    without_customer["visual_settings"]["columns"].as_object_mut().expect("settings").shift_remove("customer_name");
    let mut computed = orders_with(
        "/data_source/0/select/client_computed_columns",
        json!([{ "name": "late", "expression": "a > b" }]),
    );
    computed["visual_settings"]["columns"]["late"] = json!({ "type": "computed", "order": 40 });
    let left = orders_with("/data_source/0/select/client_computed_columns", json!([]));

    for (config, columns, expected, reason) in [
        (
            orders(),
            json!(["total", "ghost"]),
            done(
                without_total,
                &["removed column \"total\""],
                &[
                    "a filter still uses column \"total\"; remove it with apply_filter_change if it is not wanted",
                    "column \"ghost\" is not selected",
                ],
            ),
            "one that is not there is only a warning beside one that is",
        ),
        (
            orders(),
            json!([{ "name": "name", "source_table": "customers" }]),
            done(without_customer, &["removed column \"customer_name\""], &[]),
            "by its name in the database",
        ),
        (computed, json!(["late"]), done(left, &["removed computed column \"late\""], &[]), "a computed one"),
        (
            orders(),
            json!(["ghost"]),
            json!({
                "valid": false, "warnings": ["column \"ghost\" is not selected"], "applied": [], "config": null,
                "errors": [{ "Field": "columns", "Message": "nothing was removed: column \"ghost\" is not selected", "Code": "INVALID_FIELD_REFERENCE" }],
            }),
            "nothing was found",
        ),
        (
            orders_with("/data_source/0/select/columns/1", json!({ "name": "name", "alias": "order_name" })),
            json!(["name"]),
            refused(
                "columns[0].name",
                "INVALID_FIELD_REFERENCE",
                "\"name\" names several columns: \"order_name\", \"customer_name\"; use one of these keys",
            ),
            "a name that two columns have",
        ),
    ] {
        assert_eq!(changed(&config, Operation::Remove, columns), expected, "{reason}");
    }
}

#[test]
fn a_removal_that_leaves_a_reference_behind_is_refused() {
    let config =
        orders_with("/visual_settings/columns/number/link", json!({ "url": "/o", "label_column": "customer_name" }));
    assert_eq!(
        changed(&config, Operation::Remove, json!(["customer_name"])),
        refused(
            "visual_settings.columns.number.link.label_column",
            "INVALID_FIELD_REFERENCE",
            "the link of \"number\" is labelled by \"customer_name\", which is not selected",
        )
    );
}
