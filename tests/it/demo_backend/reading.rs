//! What can be read: rules with their filters and pages, reference data, people, schemas.

use serde_json::json;

use super::{ADA, Backend, LOW_STOCK, NOWHERE, pluck, refused};

#[tokio::test]
async fn the_list_of_rules_is_paged_and_newest_first() {
    let backend = Backend::start().await;
    let page = backend.read("/v1/workflow/rules").await;
    assert_eq!((&page["total"], &page["page"], &page["rows_per_page"]), (&json!(14), &json!(1), &json!(10)));
    assert_eq!(page["items"].as_array().unwrap().len(), 10);
    assert_eq!(page["items"][0]["name"], "Allocate Paid Order");

    let page = backend.read("/v1/workflow/rules?page=2&rows=12&orderBy=name,ASC").await;
    assert_eq!(pluck(&page["items"], "name"), ["Supplier Removed", "Welcome New Customer"]);
    let page = backend.read("/v1/workflow/rules?page=9223372036854775807&rows=1000").await;
    assert_eq!((&page["total"], &page["items"]), (&json!(14), &json!([])), "a page behind the last is empty");
}

#[tokio::test]
async fn rules_are_found_by_every_filter() {
    let backend = Backend::start().await;
    let items = backend.id_of("/v1/workflow/entities", "name", "inventory_items").await;
    let scheduled = backend.id_of("/v1/workflow/trigger-types", "name", "scheduled").await;
    let view = backend.id_of("/v1/workflow/entity-types", "name", "view").await;
    let cases: [(String, &[&str]); 8] = [
        (format!("id={LOW_STOCK}"), &["Low Stock Alert"]),
        ("name=tEsT".to_owned(), &["Branching Test Workflow", "Sequence Test Workflow", "Simple Test Workflow"]),
        ("is_active=false".to_owned(), &["Supplier Removed"]),
        (format!("entity_id={items}"), &["Low Stock Alert", "Purchase Reorder"]),
        (format!("trigger_type_id={scheduled}"), &["Overdue Purchase Orders"]),
        (format!("entity_type_id={view}"), &[]),
        ("created_by=44444444-4444-4444-8444-444444444444".to_owned(), &["Welcome New Customer"]),
        (format!("name=&created_by={ADA}&is_active=true&name=Order Approval"), &["Order Approval"]),
    ];
    for (filter, names) in cases {
        let page = backend.read(&format!("/v1/workflow/rules?orderBy=name,ASC&{filter}")).await;
        assert_eq!(pluck(&page["items"], "name"), names, "{filter}");
    }
    for query in
        ["rows=0", "rows=1001", "page=0", "page=x", "is_active=maybe", "id=7", "orderBy=mood", "orderBy=name,UP"]
    {
        let (status, body) = backend.get("ada", &format!("/v1/workflow/rules?{query}")).await;
        assert_eq!((status, &body["code"]), (400, &json!("invalid_argument")), "{query}");
    }
}

#[tokio::test]
async fn a_rule_is_read_with_its_actions_and_edges() {
    let backend = Backend::start().await;
    let mut rule = backend.read(&format!("/v1/workflow/rules/{LOW_STOCK}")).await;
    let actions = backend.read(&format!("/v1/workflow/rules/{LOW_STOCK}/actions")).await;
    let edges = backend.read(&format!("/v1/workflow/rules/{LOW_STOCK}/edges")).await;
    assert_eq!(rule["actions"], actions);
    assert_eq!(pluck(&actions, "name"), ["Check Stock Level", "Notify Warehouse Team", "Record Stock Check"]);
    assert_eq!(pluck(&actions, "action_type"), ["evaluate_condition", "create_alert", "log_audit_entry"]);
    assert_eq!(pluck(&actions, "rule_id"), [LOW_STOCK; 3]);
    assert_eq!(actions[1]["action_config"]["action_type"], "create_alert", "the type is injected");

    let [first, second, third] = [0, 1, 2].map(|index| actions[index]["id"].clone());
    let ends: Vec<_> = edges
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| {
            json!([
                edge.get("source_action_id"),
                edge["target_action_id"],
                edge["edge_type"],
                edge.get("source_output")
            ])
        })
        .collect();
    assert_eq!(
        ends,
        [
            json!([null, first, "start", null]),
            json!([first, second, "sequence", "true"]),
            json!([first, third, "sequence", "false"]),
        ]
    );

    let rule = rule.as_object_mut().unwrap();
    for key in ["actions", "canvas_layout", "description", "trigger_type_id", "entity_id", "entity_type_id"] {
        assert!(rule.remove(key).is_some(), "{key}");
    }
    assert_eq!(
        json!(rule),
        json!({
            "id": LOW_STOCK,
            "name": "Low Stock Alert",
            "entity_name": "inventory_items",
            "entity_schema_name": "inventory",
            "entity_type_name": "table",
            "trigger_type_name": "on_update",
            "trigger_conditions": { "field_conditions": [{ "field_name": "quantity", "operator": "is_not_null" }] },
            "is_active": true,
            "is_default": false,
            "created_by": ADA,
            "updated_by": ADA,
            "created_date": "2026-02-10T08:30:00Z",
            "updated_date": "2026-05-18T14:05:00Z",
        })
    );
}

#[tokio::test]
async fn an_inactive_rule_is_still_found_and_an_unknown_one_is_not() {
    let backend = Backend::start().await;
    let page = backend.read("/v1/workflow/rules?is_active=false").await;
    let id = pluck(&page["items"], "id")[0].to_owned();
    assert_eq!(backend.read(&format!("/v1/workflow/rules/{id}")).await["is_active"], false);
    for part in ["", "/actions", "/edges"] {
        let answer = backend.get("ben", &format!("/v1/workflow/rules/{NOWHERE}{part}")).await;
        assert_eq!(answer, (404, refused("not_found", "rule not found")), "{part}");
        let (status, body) = backend.get("ben", &format!("/v1/workflow/rules/Low%20Stock{part}")).await;
        assert_eq!((status, &body["code"]), (400, &json!("invalid_argument")), "{part}");
    }
}

#[tokio::test]
async fn triggers_and_entities_are_bare_lists() {
    let backend = Backend::start().await;
    let triggers = backend.read("/v1/workflow/trigger-types").await;
    assert_eq!(pluck(&triggers, "name"), ["on_create", "on_update", "on_delete", "scheduled"]);
    let kinds = backend.read("/v1/workflow/entity-types").await;
    assert_eq!(pluck(&kinds, "name"), ["table", "view"]);
    let all = backend.read("/v1/workflow/entities").await;
    assert_eq!(all.as_array().unwrap().len(), 32);
    let view = kinds[1]["id"].as_str().unwrap();
    let views = backend.read(&format!("/v1/workflow/entities?entity_type_id={view}")).await;
    assert_eq!(pluck(&views, "name"), ["orders_view", "stock_levels_view"]);
    assert_eq!(backend.get("ben", "/v1/workflow/entities?entity_type_id=view").await.0, 400);
}

#[tokio::test]
async fn action_types_are_sorted_and_name_their_ports() {
    let backend = Backend::start().await;
    let types = backend.read("/v1/workflow/action-types").await;
    let ports: Vec<String> = types
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            assert_eq!(entry["config_schema"]["type"], "object", "{entry}");
            assert_eq!(entry["output_ports"][0]["is_default"], true, "{entry}");
            format!("{}: {}", entry["type"].as_str().unwrap(), pluck(&entry["output_ports"], "name").join(" "))
        })
        .collect();
    assert_eq!(
        ports,
        [
            "allocate_inventory: success partial insufficient_stock failure",
            "check_inventory: sufficient insufficient",
            "check_reorder_point: ok needs_reorder",
            "commit_allocation: success failure",
            "create_alert: success failure",
            "create_entity: success failure",
            "delay: success",
            "evaluate_condition: true false",
            "log_audit_entry: success failure",
            "lookup_entity: found not_found failure",
            "release_reservation: success failure",
            "reserve_inventory: success partial insufficient_stock failure",
            "seek_approval: approved rejected timed_out",
            "send_email: success failure",
            "send_notification: success failure",
            "transition_status: success invalid_transition failure",
            "update_field: success failure",
        ]
    );
}

#[tokio::test]
async fn people_and_roles_are_found_by_id() {
    let backend = Backend::start().await;
    let (status, user) = backend.get("newcomer", &format!("/v1/core/users/{ADA}")).await;
    assert_eq!(
        (status, user),
        (
            200,
            json!({
                "id": ADA,
                "username": "ada",
                "first_name": "Ada",
                "last_name": "Adams",
                "email": "ada@example.com",
                "title": "Operations lead",
                "roles": ["USER", "ADMIN"],
                "is_enabled": true,
            })
        )
    );
    let role = backend.read("/v1/core/roles/a0000000-0000-4000-8000-000000000003").await;
    assert_eq!(role["name"], "WAREHOUSE_MANAGER");
    let answer = backend.get("ada", &format!("/v1/core/users/{NOWHERE}")).await;
    assert_eq!(answer, (404, refused("not_found", "user not found")));
    let answer = backend.get("ada", &format!("/v1/core/roles/{NOWHERE}")).await;
    assert_eq!(answer, (404, refused("not_found", "role not found")));
}

#[tokio::test]
async fn schemas_can_be_explored_down_to_the_columns() {
    let backend = Backend::start().await;
    let schemas = backend.read("/v1/introspection/schemas").await;
    assert_eq!(pluck(&schemas, "name"), ["core", "hr", "inventory", "products", "procurement", "sales"]);
    let tables = backend.read("/v1/introspection/schemas/sales/tables").await;
    assert_eq!(tables[1], json!({ "schema": "sales", "name": "orders", "row_count_estimate": 1890 }));
    let columns = backend.read("/v1/introspection/tables/sales/orders/columns").await;
    assert_eq!(
        columns[0],
        json!({
            "name": "id", "data_type": "uuid", "is_nullable": false, "is_primary_key": true,
            "default_value": "gen_random_uuid()", "is_foreign_key": false,
        })
    );
    assert_eq!(
        columns[2],
        json!({
            "name": "customer_id", "data_type": "uuid", "is_nullable": false, "is_primary_key": false,
            "default_value": null, "is_foreign_key": true,
            "referenced_schema": "sales", "referenced_table": "customers", "referenced_column": "id",
        })
    );
    let relationships = backend.read("/v1/introspection/tables/sales/orders/relationships").await;
    assert_eq!(
        relationships[0],
        json!({
            "foreign_key_name": "fk_orders_customer_id", "column_name": "customer_id",
            "referenced_schema": "sales", "referenced_table": "customers", "referenced_column": "id",
            "relationship_type": "many-to-one",
        })
    );
    for path in
        ["schemas/x/tables", "tables/x/orders/columns", "tables/sales/x/columns", "tables/sales/x/relationships"]
    {
        assert_eq!(backend.get("ada", &format!("/v1/introspection/{path}")).await.0, 404, "{path}");
    }
}
