//! Dialogues on the tables screen.

use serde_json::{Value, json};

use super::{Dialogue, TABLES, Turn};
use crate::chat::ids::PreviewId;
use crate::chat::message::UserMessage;
use crate::chat::preview::{Decided, Verdict};

fn config() -> Value {
    json!({
        "title": "Stock",
        "data_source": [{
            "type": "query", "source": "inventory_items", "schema": "inventory",
            "select": { "columns": [{ "name": "sku" }, { "name": "quantity" }, { "name": "status" }] },
            "filters": [{ "column": "status", "operator": "neq", "value": "gone" }],
        }],
        "visual_settings": { "columns": {
            "sku": { "header": "SKU", "type": "string" },
            "quantity": { "header": "On Hand", "type": "number" },
            "status": { "header": "Status", "type": "status", "hidden": true },
        }},
    })
}

fn screen() -> Dialogue {
    Dialogue::on(TABLES, Some(json!({ "config_id": "c1", "name": "Stock" })))
}

fn stored() -> Value {
    json!({ "id": "c1", "name": "Stock", "description": "", "config": config() })
}

fn sent() -> Value {
    json!({ "status": "preview_sent", "message": "…" })
}

#[track_caller]
fn calls(turn: &Turn, tool: &str, input: &Value) {
    let [call] = turn.calls.as_slice() else { panic!("one call expected: {turn:?}") };
    let (name, json) = call.split_once(' ').expect("a tool and its arguments");
    assert_eq!((name, &serde_json::from_str::<Value>(json).expect("JSON")), (tool, input));
}

#[test]
fn a_table_is_told_in_words() {
    let mut dialogue = screen();
    dialogue.user("show this table").calls(&["get_table_config {\"id\":\"c1\"}"]);
    dialogue.results(&[Ok(stored())]).says(
        "**Stock** shows records of `inventory.inventory_items`. It has 3 columns:\n\n\
         - **SKU** (`sku`, string)\n- **On Hand** (`quantity`, number)\n- **Status** (`status`, status, hidden)\n\n\
         It is filtered: `status` is not `gone`.",
    );
}

#[test]
fn changes_go_through_the_tools_one_after_another_and_end_in_one_preview() {
    let mut dialogue = screen();
    dialogue.user("remove the sku column, sort by on hand descending and only show rows where status = open");
    let removed = dialogue.results(&[Ok(stored())]);
    let input = json!({ "config": config(), "operation": "remove", "columns": [{ "name": "sku" }] });
    calls(&removed, "apply_column_change", &input);

    let mut without_sku = config();
    without_sku["visual_settings"]["columns"].as_object_mut().expect("columns").remove("sku");
    let applied = |config: &Value, warnings: Value| json!({ "valid": true, "warnings": warnings, "applied": ["x"], "config": config });
    let sorted = dialogue.results(&[Ok(applied(&without_sku, json!(["sku was the first column"])))]);
    let sort = json!([{ "column": "quantity", "direction": "desc", "priority": 1 }]);
    calls(&sorted, "apply_sort_change", &json!({ "config": without_sku, "operation": "set", "sort": sort }));

    let filtered = dialogue.results(&[Ok(applied(&without_sku, json!([])))]);
    let filter = json!({ "column": "status", "operator": "eq", "label": "Status", "value": "open" });
    calls(&filtered, "apply_filter_change", &json!({ "config": without_sku, "operation": "add", "filter": filter }));

    let preview = dialogue.results(&[Ok(applied(&without_sku, json!([])))]);
    let description = "removed the column `sku`; sorted by `quantity` descending; filtered where status is open";
    calls(
        &preview,
        "preview_table_config",
        &json!({ "id": "c1", "name": "Stock", "config": without_sku, "description_of_changes": description }),
    );
    dialogue.results(&[Ok(sent())]).says(
        "I've sent a preview of **Stock** for your review; nothing is saved yet.\n\n\
         - removed the column `sku`\n- sorted by `quantity` descending\n- filtered where status is open\n\n\
         Please note:\n\n- sku was the first column\n\nAccept the preview to save it, or tell me what to change.",
    );
}

#[test]
fn hiding_and_renaming_need_no_tool_but_the_preview() {
    let mut dialogue = screen();
    dialogue.user("hide the columns sku and On Hand, and change the header of status to \"State\"");
    let preview = dialogue.results(&[Ok(stored())]);
    let mut changed = config();
    changed["visual_settings"]["columns"]["sku"]["hidden"] = json!(true);
    changed["visual_settings"]["columns"]["quantity"]["hidden"] = json!(true);
    changed["visual_settings"]["columns"]["status"]["header"] = json!("State");
    let description = "hid the column `sku`; hid the column `quantity`; changed the header of `status` to **State**";
    calls(
        &preview,
        "preview_table_config",
        &json!({ "id": "c1", "name": "Stock", "config": changed, "description_of_changes": description }),
    );
}

#[test]
fn an_undecided_preview_is_built_upon_until_it_is_decided() {
    let mut dialogue = screen();
    dialogue.user("hide sku");
    dialogue.results(&[Ok(stored())]);
    dialogue.results(&[Ok(sent())]);
    let mut changed = config();
    changed["visual_settings"]["columns"]["sku"]["hidden"] = json!(true);
    changed["title"] = json!("Shelf");
    let turn = dialogue.user("change the title to Shelf");
    let description = "changed the title to **Shelf**";
    calls(
        &turn,
        "preview_table_config",
        &json!({ "id": "c1", "name": "Stock", "config": changed, "description_of_changes": description }),
    );
    dialogue.results(&[Ok(sent())]);
    let decided = Decided {
        preview: PreviewId::fresh(),
        what: "table configuration".into(),
        name: "Stock".to_owned(),
        verdict: Verdict::Reject,
        comment: None,
        saved_id: None,
        may_be_saved: false,
    };
    let turn = dialogue.message(UserMessage { decisions: vec![decided], ..UserMessage::new("unhide status") });
    assert_eq!(turn.calls, ["get_table_config {\"id\":\"c1\"}"]);
}

#[test]
fn a_column_is_added_with_the_type_the_database_has() {
    let mut dialogue = screen();
    dialogue.user("add column Unit Cost");
    dialogue
        .results(&[Ok(stored())])
        .calls(&["search_database_schema {\"schema\":\"inventory\",\"table\":\"inventory_items\"}"]);
    let schema = json!({ "columns": [{ "name": "unit_cost", "data_type": "numeric" }], "relationships": [] });
    let turn = dialogue.results(&[Ok(schema)]);
    let columns = json!([{ "name": "unit_cost", "pg_type": "numeric" }]);
    calls(&turn, "apply_column_change", &json!({ "config": config(), "operation": "add", "columns": columns }));
    let refused = json!({
        "valid": false, "warnings": [], "applied": [], "config": null,
        "errors": [{ "Field": "columns[0]", "Message": "is not a column", "Code": "INVALID_FIELD_REFERENCE" }],
    });
    dialogue.results(&[Ok(refused)]).says(
        "The validation refused this, so I sent no preview:\n\n- `columns[0]`: is not a column\n\n\
         Tell me what to change and I will try again.",
    );
}

#[test]
fn a_column_is_added_untyped_for_those_who_may_not_read_the_schema() {
    let mut dialogue = screen();
    dialogue.user("add column note");
    dialogue.results(&[Ok(stored())]);
    let turn = dialogue.results(&[Err("HTTP 403: admin only")]);
    calls(
        &turn,
        "apply_column_change",
        &json!({ "config": config(), "operation": "add", "columns": [{ "name": "note" }] }),
    );
}

#[test]
fn a_join_follows_the_foreign_key() {
    let mut dialogue = screen();
    dialogue.user("join the products table and add name and price");
    dialogue.results(&[Ok(stored())]);
    let schema = json!({ "columns": [], "relationships": [{
        "foreign_key_name": "fk", "column_name": "product_id", "referenced_schema": "products",
        "referenced_table": "products", "referenced_column": "id", "relationship_type": "many-to-one",
    }]});
    let turn = dialogue.results(&[Ok(schema)]);
    let join = json!({
        "table": "products", "schema": "products", "join_type": "left",
        "relationship_from": "inventory_items.product_id", "relationship_to": "products.id",
        "columns_to_add": ["name", "price"],
    });
    calls(&turn, "apply_join_change", &json!({ "config": config(), "operation": "add", "join": join }));
}

#[test]
fn an_unknown_column_is_named_with_those_there_are() {
    let mut dialogue = screen();
    dialogue.user("hide the column colour");
    dialogue
        .results(&[Ok(stored())])
        .says("This table has no column `colour`. Its columns are `sku`, `quantity` and `status`.");
}

#[test]
fn another_table_is_found_by_its_spoken_name() {
    let mut dialogue = screen();
    dialogue.user("show the stock table").calls(&["list_table_configs {}"]);
    let listed = json!([{ "id": "7", "name": "orders_table" }, { "id": "8", "name": "stock_table" }]);
    dialogue.results(&[Ok(listed.clone())]).calls(&["get_table_config {\"id\":\"8\"}"]);
    let found = json!({ "note": "this is an old one", "id": "8", "config": { "title": "Old", "data_source": [] } });
    dialogue
        .results(&[Ok(found)])
        .says("Please note: this is an old one.\n\n**Old** is a table configuration. It has no columns.");
    dialogue.user("show the staff table");
    dialogue.results(&[Ok(listed)]).says(
        "I know no table called **staff**. There are 2 table configurations:\n\n- **orders_table**\n- **stock_table**",
    );
}

#[test]
fn without_an_open_table_the_configurations_are_listed() {
    let mut dialogue = Dialogue::on(TABLES, None);
    dialogue.user("hide sku").calls(&["list_table_configs {}"]);
    dialogue.results(&[Ok(json!([{ "id": "1", "name": "Stock", "description": "What is in stock." }]))]).says(
        "No table is open on your screen. Open one, or ask me to show one, for example *show the orders table*. There is 1 table configuration:\n\n- **Stock**: What is in stock",
    );
}
