//! The discovery tools and the tools that show rules, against the demo backend.

use serde_json::{Value, json};

use super::{BEN, Dialogue};
use crate::support::app::{ADA, LOW_STOCK};

const CHECK: &str = "d1000000-0000-4000-8000-000000000101";
const NOTIFY: &str = "d1000000-0000-4000-8000-000000000102";
const RECORD: &str = "d1000000-0000-4000-8000-000000000103";
const MANAGERS: &str = "a0000000-0000-4000-8000-000000000003";

#[tokio::test]
async fn discovery_lists_what_workflows_are_made_of() {
    let calls =
        [("discover_action_types", json!({})), ("discover_trigger_types", json!({})), ("discover_entities", json!({}))];
    let ran = Dialogue::demo().await.ask("c", &calls).await;

    let types = ran.ok(0).as_array().unwrap();
    assert_eq!(types.len(), 17);
    let named = |name: &str| types.iter().find(|entry| entry["type"] == name).unwrap();
    assert_eq!(
        *named("create_alert"),
        json!({
            "type": "create_alert",
            "description": "Puts an alert into the inbox of users and roles.",
            "output_ports": ["success (default)", "failure"],
            "config_fields": ["alert_type", "severity", "title", "message", "recipients", "context", "resolve_prior"],
            "required_fields": ["alert_type", "severity", "title", "message"],
        })
    );
    assert_eq!(named("evaluate_condition")["output_ports"], json!(["true (default)", "false"]));

    let triggers: Vec<&str> = ran.ok(1).as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(triggers, ["on_create", "on_update", "on_delete", "scheduled"]);
    let entities = ran.ok(2).as_array().unwrap();
    assert_eq!(entities.len(), 32);
    assert_eq!((&entities[9]["schema_name"], &entities[9]["name"]), (&json!("inventory"), &json!("inventory_items")));
}

#[tokio::test]
async fn discover_is_the_three_discovery_tools_under_one_name() {
    let categories = ["action_types", "trigger_types", "entities"];
    let mut calls: Vec<(&str, Value)> = categories.iter().map(|c| ("discover", json!({ "category": c }))).collect();
    calls.extend([
        ("discover_action_types", json!({})),
        ("discover_trigger_types", json!({})),
        ("discover_entities", json!({})),
    ]);
    calls.extend([("discover", json!({"category": "rules"})), ("discover", json!({}))]);
    let ran = Dialogue::demo().await.ask("c", &calls).await;
    for (n, category) in categories.iter().enumerate() {
        assert_eq!(ran.ok(n), ran.ok(n + 3), "{category}");
    }
    let unknown = ran.error(6);
    assert!(unknown.starts_with("bad params: category: "), "{unknown}");
    assert!(categories.iter().all(|category| unknown.contains(category)), "{unknown}");
    assert_eq!(ran.error(7), "bad params: missing field `category`");
}

#[tokio::test]
async fn the_list_of_rules_says_what_each_is_in_five_fields() {
    let d = Dialogue::demo().await;
    let ran = d.ask("c", &[("list_workflow_rules", json!({}))]).await;
    let list = ran.ok(0);
    assert_eq!((&list["total"], &list["showing"], &list["has_more"]), (&json!(14), &json!(14), &json!(false)));
    let rules = list["results"].as_array().unwrap();
    let low_stock = rules.iter().find(|rule| rule["id"] == LOW_STOCK).unwrap();
    assert_eq!(
        *low_stock,
        json!({"id": LOW_STOCK, "name": "Low Stock Alert", "entity_name": "inventory_items", "trigger_type": "on_update", "is_active": true})
    );
    let as_ben = d.s.app.token_of(BEN, None, &["USER"]);
    let his = d.ask_as(&as_ben, "c", json!({}), &[("list_workflow_rules", json!({}))]).await;
    assert_eq!(his.ok(0), list, "a plain user may read rules too");
}

#[tokio::test]
async fn a_rule_is_shown_without_its_bulk_and_with_its_flow_in_words() {
    let ran =
        Dialogue::demo().await.ask("c", &[("get_workflow_rule", json!({"workflow_id": "low-stock_ALERT"}))]).await;
    let brief =
        |id: &str, name: &str, kind: &str| json!({"id": id, "name": name, "action_type": kind, "is_active": true});
    let outline = "Check Stock Level (evaluate_condition)\n\
        \x20 [true] Notify Warehouse Team (create_alert) — alerts: Ada Adams (ada@example.com), Ben Brooks \
        (ben@example.com), WAREHOUSE_MANAGER (role)\n\
        \x20 [false] Record Stock Check (log_audit_entry)";
    let expected = json!({
        "workflow_id": LOW_STOCK,
        "rule": {
            "id": LOW_STOCK,
            "name": "Low Stock Alert",
            "description": "Warns the warehouse when an item's stock falls below its minimum",
            "entity_id": "e0000000-0000-4000-8000-000000000010",
            "entity_name": "inventory_items",
            "entity_schema_name": "inventory",
            "entity_type_id": "c0000000-0000-4000-8000-000000000001",
            "entity_type_name": "table",
            "trigger_type_id": "b0000000-0000-4000-8000-000000000002",
            "trigger_type_name": "on_update",
            "trigger_conditions": {"field_conditions": [{"field_name": "quantity", "operator": "is_not_null"}]},
            "is_active": true,
            "is_default": false,
            "created_by": ADA,
            "updated_by": ADA,
            "created_date": "2026-02-10T08:30:00Z",
            "updated_date": "2026-05-18T14:05:00Z",
            "actions": [
                brief(CHECK, "Check Stock Level", "evaluate_condition"),
                brief(NOTIFY, "Notify Warehouse Team", "create_alert"),
                brief(RECORD, "Record Stock Check", "log_audit_entry"),
            ],
        },
        "summary": {
            "node_count": 3,
            "edge_count": 3,
            "branch_count": 1,
            "action_types_used": ["create_alert", "evaluate_condition", "log_audit_entry"],
            "flow_outline": outline,
        },
    });
    assert_eq!(*ran.ok(0), expected);
}

#[tokio::test]
async fn a_node_is_explained_with_its_recipients_by_name_and_its_neighbours() {
    let explain = |name: &str| ("explain_workflow_node", json!({"workflow_id": LOW_STOCK, "node_name": name}));
    let ran = Dialogue::demo()
        .await
        .ask("c", &[explain("Notify Warehouse Team"), explain(NOTIFY), explain("create_alert")])
        .await;
    let expected = json!({
        "action": {
            "id": NOTIFY,
            "name": "Notify Warehouse Team",
            "action_type": "create_alert",
            "description": "Tells those who can restock",
            "is_active": true,
            "action_config": {
                "action_type": "create_alert",
                "alert_type": "low_stock",
                "severity": "high",
                "title": "Low stock: {{product_name}}",
                "message": "Only {{quantity}} of {{product_name}} left in {{warehouse_name}}.",
                "recipients": {
                    "users": [
                        {"id": ADA, "name": "Ada Adams", "email": "ada@example.com"},
                        {"id": BEN, "name": "Ben Brooks", "email": "ben@example.com"},
                    ],
                    "roles": [{"id": MANAGERS, "name": "WAREHOUSE_MANAGER"}],
                },
                "resolve_prior": true,
            },
        },
        "depth_from_start": 1,
        "incoming_from": [{"action_id": CHECK, "action_name": "Check Stock Level", "edge_type": "sequence", "output_port": "true"}],
        "outgoing_to": [],
    });
    assert_eq!(*ran.ok(0), expected, "by name");
    assert_eq!(*ran.ok(1), expected, "by id");
    assert_eq!(*ran.ok(2), expected, "the only one of its type");
}

#[tokio::test]
async fn a_type_that_several_nodes_have_explains_them_all() {
    let args = json!({"workflow_id": "Sequence Test Workflow", "node_name": "create_alert"});
    let ran = Dialogue::demo().await.ask("c", &[("explain_workflow_node", args)]).await;
    let result = ran.ok(0);
    assert_eq!((&result["matched_by"], &result["match_count"]), (&json!("action_type"), &json!(3)));
    let explained = result["explanations"].as_array().unwrap();
    let depths: Vec<_> =
        explained.iter().map(|e| (e["action"]["name"].as_str().unwrap(), &e["depth_from_start"])).collect();
    assert_eq!(depths, [("First Alert", &json!(0)), ("Second Alert", &json!(1)), ("Third Alert", &json!(2))]);
    assert_eq!(
        explained[0]["incoming_from"],
        json!([{"action_id": "", "action_name": "(trigger)", "edge_type": "start"}])
    );
}

#[tokio::test]
async fn the_open_workflow_is_meant_when_none_is_named_and_a_name_wins_over_it() {
    let calls = [
        ("explain_workflow_node", json!({"node_name": "Check Stock Level"})),
        ("explain_workflow_node", json!({"workflow_id": "Branching Test Workflow", "node_name": "Check Amount"})),
        ("get_workflow_rule", json!({"workflow_id": "Nobody's Rule"})),
        ("list_alerts_for_rule", json!({})),
    ];
    let d = Dialogue::demo().await;
    let ran = d.ask_as(&d.s.app.token, "c", json!({"workflow_id": LOW_STOCK}), &calls).await;
    assert_eq!(ran.ok(0)["action"]["id"], CHECK);
    assert_eq!(ran.ok(1)["action"]["name"], "Check Amount");
    assert_eq!(ran.ok(2)["workflow_id"], LOW_STOCK);
    assert_eq!(ran.ok(2)["note"], "no rule is named \"Nobody's Rule\"; this is the workflow that is open");
    assert_eq!(ran.ok(3)["total"], 4);
}
