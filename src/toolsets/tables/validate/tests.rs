//! The validation by example: one mistake in a valid configuration gives one problem with its path and code.

use serde_json::{Value, json};

use super::*;
use crate::toolsets::tables::fixture::{orders, orders_with};

/// A configuration, the paths and codes of its problems, and what is special about it.
type Row = (Value, Vec<(String, &'static str)>, &'static str);

fn found(config: &Value) -> Vec<(String, &'static str)> {
    let config = TableConfig::parse(config).expect("an object");
    problems(&config).into_iter().map(|problem| (problem.field, problem.code.as_str())).collect()
}

#[test]
fn valid_configurations_have_no_problems() {
    for (config, reason) in [
        (orders(), "the sample, unknown keys included"),
        (orders_with("/data_source/0/filters", json!(null)), "no filters"),
        (
            orders_with(
                "/visual_settings/columns/total/link",
                json!({ "url": "/o/{id}", "label_column": "customer_name" }),
            ),
            "a link on a readable column",
        ),
        (
            orders_with("/visual_settings/columns/total/format", json!({ "type": "currency", "format": "2" })),
            "a pattern that is no date's",
        ),
        (orders_with("/visual_settings/columns/total/hidden", json!(true)), "a hidden column"),
        (
            json!({ "title": "Sales", "widget_type": "chart", "data_source": [{ "source": "orders", "metrics": [] }], "visual_settings": { "columns": { "_chart": { "hidden": true } } } }),
            "a chart describes no columns and may keep settings of its own",
        ),
        (json!({ "title": "Open", "data_source": [{ "type": "viewcount", "source": "open_orders" }] }), "a count"),
    ] {
        assert_eq!(found(&config), [], "{reason}");
    }
}

#[test]
fn each_mistake_is_found_where_it_is() {
    let column = |entry: Value| {
        let mut config = orders_with("/data_source/0/select/columns/-", json!({ "name": "extra" }));
        config["visual_settings"]["columns"]["extra"] = entry;
        config
    };
    let source = "data_source[0]";
    let extra = "visual_settings.columns.extra";
    let rows: Vec<Row> = vec![
        (orders_with("/title", json!(" ")), vec![("title".into(), "REQUIRED")], "a blank title"),
        (orders_with("/title", json!(7)), vec![("title".into(), "INVALID_CONFIG")], "a title that is no text"),
        (
            orders_with("/widget_type", json!("grid")),
            vec![("widget_type".into(), "INVALID_VALUE")],
            "an unknown widget",
        ),
        (
            orders_with("/refresh_mode", json!("push")),
            vec![("refresh_mode".into(), "INVALID_VALUE")],
            "an unknown refresh mode",
        ),
        (orders_with("/width", json!(-1)), vec![("width".into(), "INVALID_VALUE")], "a negative width"),
        (orders_with("/width", json!("6")), vec![("width".into(), "INVALID_CONFIG")], "a width as text"),
        (json!({ "title": "T" }), vec![("data_source".into(), "REQUIRED")], "no data source"),
        (json!({ "title": "T", "data_source": [] }), vec![("data_source".into(), "REQUIRED")], "an empty list of them"),
        (json!({ "title": "T", "data_source": {} }), vec![("data_source".into(), "INVALID_CONFIG")], "not a list"),
        (json!({ "title": "T", "data_source": ["x"] }), vec![(source.into(), "INVALID_CONFIG")], "not an object"),
        (
            orders_with("/data_source/0/type", json!("sql")),
            vec![(format!("{source}.type"), "INVALID_VALUE")],
            "an unknown source type",
        ),
        (
            orders_with("/data_source/0/source", json!(null)),
            vec![(format!("{source}.source"), "REQUIRED")],
            "no source",
        ),
        (
            orders_with("/data_source/0/select/columns/1/alias", json!("Total Sum")),
            vec![
                (format!("{source}.select.columns[1].alias"), "INVALID_FORMAT"),
                (format!("{source}.select"), "MISSING_VISUAL_SETTINGS"),
                ("visual_settings.columns.total".into(), "INVALID_FIELD_REFERENCE"),
            ],
            "an alias that is no identifier, whose settings go by the name",
        ),
        (
            orders_with("/data_source/0/select/foreign_tables/0/relationship_to", json!(null)),
            vec![(format!("{source}.select.foreign_tables[0].relationship_to"), "REQUIRED")],
            "half a relationship",
        ),
        (
            orders_with("/data_source/0/select/foreign_tables/0/join_type", json!("outer")),
            vec![(format!("{source}.select.foreign_tables[0].join_type"), "INVALID_VALUE")],
            "an unknown join",
        ),
        (
            orders_with("/data_source/0/select/client_computed_columns", json!([{ "name": "total" }])),
            vec![(format!("{source}.select.client_computed_columns[0].expression"), "REQUIRED")],
            "a computed column that computes nothing",
        ),
        (
            orders_with("/data_source/0/filters/0/operator", json!(null)),
            vec![(format!("{source}.filters[0].operator"), "REQUIRED")],
            "no operator",
        ),
        (
            orders_with("/data_source/0/filters/0/operator", json!("=")),
            vec![(format!("{source}.filters[0].operator"), "INVALID_VALUE")],
            "SQL's operator",
        ),
        (
            orders_with("/data_source/0/filters/0/column", json!("total > 1 or")),
            vec![(format!("{source}.filters[0].column"), "INVALID_FORMAT")],
            "SQL as a column",
        ),
        (
            orders_with("/data_source/0/sort/0/column", json!("")),
            vec![(format!("{source}.sort[0].column"), "REQUIRED")],
            "a sort by nothing",
        ),
        (
            orders_with("/data_source/0/sort/0/direction", json!("down")),
            vec![(format!("{source}.sort[0].direction"), "INVALID_VALUE")],
            "an unknown direction",
        ),
        (
            orders_with("/visual_settings/columns/total", json!(null)),
            vec![(format!("{source}.select"), "MISSING_VISUAL_SETTINGS")],
            "a column without settings",
        ),
        (
            orders_with("/visual_settings/columns/ghost", json!({ "type": "string", "hidden": true })),
            vec![("visual_settings.columns.ghost".into(), "INVALID_FIELD_REFERENCE")],
            "settings without a column",
        ),
        (
            orders_with("/visual_settings/columns/total/order", json!(null)),
            vec![("visual_settings.columns".into(), "STRICT_ORDER")],
            "one visible column without an order",
        ),
        (
            orders_with("/visual_settings/columns/total/type", json!(null)),
            vec![("visual_settings.columns.total.type".into(), "REQUIRED")],
            "a visible column without a type",
        ),
        (
            column(json!({ "type": "text", "hidden": true })),
            vec![(format!("{extra}.type"), "INVALID_VALUE")],
            "an editor's type as a column's",
        ),
        (
            column(json!({ "type": "uuid", "header": "Order ID", "order": 40 })),
            vec![(format!("{extra}.header"), "VISIBLE_ID_HEADER")],
            "a visible id",
        ),
        (column(json!({ "type": "uuid", "header": "ID", "hidden": true })), vec![], "a hidden id may be called one"),
        (column(json!({ "type": "string", "header": "PAID", "order": 40 })), vec![], "a word that only ends in ID"),
        (
            column(json!({ "type": "uuid", "order": 40, "link": { "url": "/x" } })),
            vec![(format!("{extra}.link"), "ID_COLUMN_WITH_LINK")],
            "a link on an id",
        ),
        (
            column(json!({ "type": "string", "order": 40, "link": { "label_column": "ghost" } })),
            vec![(format!("{extra}.link.label_column"), "INVALID_FIELD_REFERENCE")],
            "a label from nowhere",
        ),
        (
            column(json!({ "type": "string", "order": 40, "link": "/x" })),
            vec![(format!("{extra}.link"), "INVALID_CONFIG")],
            "a link that is no object",
        ),
        (
            column(json!({ "type": "datetime", "order": 40, "format": { "type": "date", "format": "2006-01-02" } })),
            vec![(format!("{extra}.format.format"), "INVALID_DATE_FORMAT")],
            "a Go layout",
        ),
        (
            column(json!({ "type": "number", "order": 40, "format": { "type": "money" } })),
            vec![(format!("{extra}.format.type"), "INVALID_VALUE")],
            "an unknown format",
        ),
        (
            column(json!({ "type": "number", "order": 40, "format": {} })),
            vec![(format!("{extra}.format.type"), "REQUIRED")],
            "a format of no type",
        ),
        (
            column(json!({ "type": "number", "order": 40, "editable": { "type": "slider" } })),
            vec![(format!("{extra}.editable.type"), "INVALID_VALUE")],
            "an unknown editor",
        ),
        (
            orders_with("/visual_settings/conditional_formatting", json!([{ "column": "ghost" }])),
            vec![("visual_settings.conditional_formatting[0].column".into(), "INVALID_FIELD_REFERENCE")],
            "a conditional format of nothing",
        ),
    ];
    for (config, expected, reason) in rows {
        assert_eq!(found(&config), expected, "{reason}");
    }
}

#[test]
fn labels_have_the_backends_lengths() {
    let too_long = "d".repeat(501);
    for (name, description, expected, reason) in [
        (Some("abc"), Some("d"), vec![], "the shortest name"),
        (Some("äöü"), None, vec![], "characters count, not bytes"),
        (Some("ab"), None, vec!["name"], "too short"),
        (None, Some(too_long.as_str()), vec!["description"], "too long"),
    ] {
        let fields: Vec<String> = label_problems(name, description).into_iter().map(|problem| problem.field).collect();
        assert_eq!(fields, expected, "{reason}");
    }
}
