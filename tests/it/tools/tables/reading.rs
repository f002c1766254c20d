//! Looking: the database schema, the reference, stored configurations, the validation.

use serde_json::{Value, json};

use super::{Asking, NOBODY, ORDERS, assert_refused, config, result, results, seeded};
use crate::support::frames;

#[tokio::test]
async fn the_database_is_read_level_by_level() {
    let read = results(&[
        ("search_database_schema", json!({})),
        ("search_database_schema", json!({"schema": "inventory", "table": ""})),
        ("search_database_schema", json!({"schema": "hr", "table": "titles"})),
        ("search_database_schema", json!({"table": "sales.orders"})),
    ])
    .await;
    let names = ["core", "hr", "inventory", "products", "procurement", "sales"].map(|name| json!({"name": name}));
    assert_eq!(read[0], Ok(json!(names)));
    let table = |name: &str, rows: u64| json!({"schema": "inventory", "name": name, "row_count_estimate": rows});
    let tables = [table("warehouses", 2), table("inventory_locations", 260), table("inventory_items", 1240)];
    assert_eq!(read[1], Ok(json!(tables)));
    let column = |name: &str, data_type: &str, is_key: bool, default: Option<&str>| {
        json!({
            "name": name, "data_type": data_type, "is_nullable": false, "is_primary_key": is_key,
            "default_value": default, "is_foreign_key": false
        })
    };
    let columns = [column("id", "uuid", true, Some("gen_random_uuid()")), column("name", "varchar(100)", false, None)];
    assert_eq!(read[2], Ok(json!({"columns": columns, "relationships": []})));
    let key = |column: &str, schema: &str, table: &str| {
        json!({
            "foreign_key_name": format!("fk_orders_{column}"), "column_name": column, "referenced_schema": schema,
            "referenced_table": table, "referenced_column": "id", "relationship_type": "many-to-one"
        })
    };
    let relationships = [key("customer_id", "sales", "customers"), key("created_by", "core", "users")];
    assert_eq!(read[3].as_ref().unwrap()["relationships"], json!(relationships));
}

#[tokio::test]
async fn a_schema_question_without_an_answer_says_why() {
    let read = results(&[
        ("search_database_schema", json!({"table": "orders"})),
        ("search_database_schema", json!({"schema": 7})),
        ("search_database_schema", json!({"schema": "nowhere"})),
        ("search_database_schema", json!({"schema": "sales", "table": "nothing"})),
        ("search_database_schema", json!({"schema": ".."})),
        ("search_database_schema", json!({"schema": "sales/tables?x=1#y"})),
    ])
    .await;
    let expected = [
        ("bad params: schema: name the table's schema too", "which schema's table?"),
        ("bad params: schema: invalid type: integer `7`", "not text"),
        (r#"HTTP 404: {"code":"not_found","message":"schema \"nowhere\" not found"}"#, "an unknown schema"),
        (r#"HTTP 404: {"code":"not_found","message":"table \"sales\".\"nothing\" not found"}"#, "an unknown table"),
        (r#"".." cannot be part of a path"#, "a way out of the path"),
        (r#"HTTP 404: {"code":"not_found","message":"schema \"sales/tables?x=1#y\" not found"}"#, "signs stay a name"),
    ];
    assert_refused(&read, &expected);
}

#[tokio::test]
async fn only_administrators_look_into_the_database() {
    let user = Asking { roles: Some(&["USER"]), ..Asking::default() };
    let levels = [json!({}), json!({"schema": "sales"}), json!({"schema": "sales", "table": "orders"})];
    let read = user.results(&levels.map(|args| ("search_database_schema", args))).await;
    let words = "only administrators may look at the database schema, and this user is not one; work with";
    assert_refused(&read, &[(words, "schemas"), (words, "tables"), (words, "columns")]);
}

#[tokio::test]
async fn the_reference_is_whole_or_one_topic() {
    let read = results(&[
        ("discover_table_reference", json!({})),
        ("discover_table_reference", json!({"topic": "join_types"})),
        ("discover_table_reference", json!({"topic": " "})),
        ("discover_table_reference", json!({"topic": "colours"})),
        ("discover_table_reference", json!({"topic": ["rules"]})),
    ])
    .await;
    let whole = read[0].as_ref().unwrap();
    assert_eq!(whole.as_object().unwrap().len(), 12);
    assert_eq!(whole["sort_directions"], json!({"all": ["asc", "desc"], "default": "asc"}));
    assert_eq!(read[1], Ok(json!({"join_types": {"all": ["inner", "left", "right", "full"], "default": "left"}})));
    assert_eq!(read[2].as_ref(), Ok(whole), "a blank topic is none");
    let expected = [
        ("bad params: topic: use one of widget_types, refresh_modes, ", "an unknown topic"),
        ("bad params: topic: invalid type: sequence", "not text"),
    ];
    assert_refused(&read[3..], &expected);
}

#[tokio::test]
async fn a_stored_configuration_is_found_by_id_by_name_and_on_the_screen() {
    let on_orders = Asking { context: Some(json!({"config_id": ORDERS})), ..Asking::default() };
    let (read, frames) = on_orders
        .run(&[
            ("get_table_config", json!({"id": ORDERS})),
            ("get_table_config", json!({"name": "orders_table"})),
            ("get_table_config", json!({})),
            ("get_table_config", json!({"id": "null", "name": ""})),
            ("get_table_config", json!({"id": "inventory_table"})),
        ])
        .await;
    let stored = seeded(ORDERS);
    assert_eq!(read[0], Ok(stored.clone()));
    assert_eq!(read[1], Ok(stored.clone()), "by name");
    assert_eq!(read[2], Ok(stored.clone()), "the one on the screen");
    let mut noted = stored;
    noted["note"] = json!("no configuration is named \"null\"; this is the one on the user's screen");
    assert_eq!(read[3], Ok(noted), "what names nothing gives way to the screen, and says so");
    assert_eq!(read[4].as_ref().unwrap()["name"], "inventory_table", "a name where the id belongs");
    let expected = [vec!["message_start"], vec!["tool_call_start"; 5], vec!["tool_call_result"; 5]].concat();
    assert_eq!(frames::names(&frames)[..11], expected);
}

#[tokio::test]
async fn a_configuration_that_is_not_there_is_an_error() {
    let read = results(&[
        ("get_table_config", json!({})),
        ("get_table_config", json!({"id": NOBODY})),
        ("get_table_config", json!({"name": "no such/table?id=1"})),
        ("get_table_config", json!({"name": ".."})),
        ("get_table_config", json!({"name": ["orders_table"]})),
    ])
    .await;
    let missing = r#"HTTP 404: {"code":"not_found","message":"table config not found"}"#;
    let expected = [
        ("bad params: give the configuration's id or name", "neither, and no screen"),
        (missing, "an unknown id"),
        (missing, "an unknown name, its signs no part of the path"),
        (r#"".." cannot be part of a path"#, "a way out of the path"),
        ("bad params: name: invalid type: sequence", "not text"),
    ];
    assert_refused(&read, &expected);
}

#[tokio::test]
async fn a_screen_whose_id_is_no_uuid_is_no_screen() {
    let odd = Asking { context: Some(json!({"config_id": "../workflow/rules"})), ..Asking::default() };
    let read = odd.results(&[("get_table_config", json!({}))]).await;
    assert_refused(&read, &[("bad params: give the configuration's id or name", "nothing is meant")]);
}

#[tokio::test]
async fn the_list_has_everything_but_the_documents() {
    let listed = result("list_table_configs", json!({"page": 2})).await.unwrap();
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["orders_table", "inventory_table", "customers_table", "suppliers_table"]);
    let mut first = seeded(ORDERS);
    first.as_object_mut().unwrap().shift_remove("config");
    assert_eq!(listed[0].to_string(), first.to_string());
}

#[tokio::test]
async fn a_validation_tells_the_backends_verdict_and_then_ours() {
    let mut undescribed = config(ORDERS);
    undescribed["visual_settings"]["columns"].as_object_mut().unwrap().shift_remove("amount");
    let mut no_title = config(ORDERS);
    no_title["title"] = json!("");
    let read = results(&[
        ("validate_table_config", json!({"config": config(ORDERS)})),
        ("validate_table_config", json!({"config": config(ORDERS).to_string(), "name": "as_text"})),
        ("validate_table_config", json!({"config": undescribed})),
        ("validate_table_config", json!({"config": seeded(ORDERS)})),
        ("validate_table_config", json!({"config": [1]})),
    ])
    .await;
    let problem = |code: &str, field: &str, message: &str| {
        let error = json!({"Field": field, "Message": message, "Code": code});
        Ok(json!({"valid": false, "errors": [error]}))
    };
    assert_eq!(read[0], Ok(json!({"valid": true})));
    assert_eq!(read[1], Ok(json!({"valid": true})), "a document as text");
    let message = r#"column "amount" is selected but has no entry in visual_settings.columns"#;
    assert_eq!(read[2], problem("MISSING_VISUAL_SETTINGS", "data_source[0].select", message));
    let message = "this is the stored object around a configuration; pass its config member";
    assert_eq!(read[3], problem("INVALID_CONFIG", "config", message));
    assert_eq!(read[4], problem("INVALID_CONFIG", "config", "must be a JSON object"));

    let read = results(&[
        ("validate_table_config", json!({"config": no_title})),
        ("validate_table_config", json!({"config": config(ORDERS), "name": "x"})),
        ("validate_table_config", json!({})),
    ])
    .await;
    let expected = [
        (r#"HTTP 400: {"code":"invalid_argument","message":"#, "the backend says no"),
        (r#"HTTP 400: {"code":"invalid_argument","message":"#, "a name that cannot be stored"),
        ("bad params: missing field `config`", "nothing to validate"),
    ];
    assert_refused(&read, &expected);
    assert!(read[0].as_ref().unwrap_err().contains("config.title"), "{read:?}");
}
