//! Single messages and the calls they lead to.

use serde_json::json;

use super::{Dialogue, TABLES, WORKFLOW};

const ALERT: &str = "0d4f7f7e-2f5c-4b8e-9a55-3f1f0b1c2d3e";
const RULE: &str = "550e8400-e29b-41d4-a716-446655440000";

#[test]
fn a_message_on_the_workflow_screen_leads_to_these_calls() {
    let this_rule = format!("get_workflow_rule {{\"workflow_id\":\"{RULE}\"}}");
    let this_rules_alerts = format!("list_alerts_for_rule {{\"workflow_id\":\"{RULE}\"}}");
    let node = |name: &str| format!("explain_workflow_node {{\"workflow_id\":\"{RULE}\",\"node_name\":\"{name}\"}}");
    let cases: &[(&str, &[&str], &str)] = &[
        ("What does this workflow do?", &[&this_rule], "the open workflow"),
        ("explain this workflow", &[&this_rule], "an imperative"),
        ("Can you walk me through this rule, please?", &[&this_rule], "polite"),
        ("What actions does this workflow have?", &[&this_rule], "its own actions, not the catalogue"),
        ("when does this run?", &[&this_rule], "the word workflow is not needed"),
        (
            "explain the workflow \"Low Stock Alert\"",
            &["get_workflow_rule {\"workflow_id\":\"Low Stock Alert\"}"],
            "a quoted name",
        ),
        (
            "What does the Simple Test Workflow workflow do?",
            &["get_workflow_rule {\"workflow_id\":\"Simple Test Workflow\"}"],
            "a name before the noun",
        ),
        ("describe Order Followup", &["get_workflow_rule {\"workflow_id\":\"Order Followup\"}"], "only a name"),
        (
            "what does Check Stock Level do?",
            &["get_workflow_rule {\"workflow_id\":\"Check Stock Level\"}"],
            "a rule's or a step's name",
        ),
        ("delete the workflow Low Stock Alert", &[], "a change of a saved rule, not a question about its alerts"),
        ("deactivate this workflow", &[], "likewise"),
        ("list rules", &["list_workflow_rules {}"], "short"),
        ("Which workflows are there?", &["list_workflow_rules {}"], "a question"),
        ("show me all automations", &["list_workflow_rules {}"], "another word"),
        ("list my alerts", &["list_my_alerts {}"], "short"),
        ("do I have any alerts?", &["list_my_alerts {}"], "a question"),
        (
            "show my active critical alerts",
            &["list_my_alerts {\"status\":\"active\",\"severity\":\"critical\"}"],
            "with filters",
        ),
        ("list the rules and my alerts", &["list_workflow_rules {}", "list_my_alerts {}"], "two at once"),
        (
            "Show my alerts, list the triggers and explain this workflow",
            &["list_my_alerts {}", "discover_trigger_types {}", &this_rule],
            "three at once",
        ),
        ("What alerts has this rule raised?", &[&this_rules_alerts], "alerts of the open rule"),
        ("alerts for this rule", &[&this_rules_alerts], "short"),
        (
            "show resolved alerts for the rule \"Low Stock\"",
            &["list_alerts_for_rule {\"workflow_id\":\"Low Stock\",\"status\":\"resolved\"}"],
            "by name, with status",
        ),
        (&format!("show alert {ALERT}"), &[&format!("get_alert_detail {{\"alert_id\":\"{ALERT}\"}}")], "one alert"),
        ("explain the node Check Quantity", &[&node("Check Quantity")], "the name after the noun"),
        ("what does the Raise Alert step do?", &[&node("Raise Alert")], "the name before the noun"),
        ("tell me about raise alert", &[&node("Raise Alert")], "a step on the screen, whatever the case"),
        ("who gets the alert?", &[&node("create_alert")], "recipients are a step's"),
        ("what actions are there?", &["discover_action_types {}"], "the catalogue"),
        ("list the action types", &["discover_action_types {}"], "by its name"),
        ("which triggers can I use?", &["discover_trigger_types {}"], "triggers"),
        ("show entities", &["discover_entities {}"], "entities"),
        (
            "create a workflow that alerts when stock is low",
            &["discover_action_types {}"],
            "one sentence, one workflow",
        ),
        (
            "Create a workflow called \"Stock Watch\" for inventory.inventory_items on update",
            &[
                "start_draft {\"name\":\"Stock Watch\",\"entity\":\"inventory.inventory_items\",\"trigger_type\":\"on_update\"}",
            ],
            "a name and a subject start a draft",
        ),
        (
            "build a rule named Welcome for sales.customers when created",
            &["start_draft {\"name\":\"Welcome\",\"entity\":\"sales.customers\",\"trigger_type\":\"on_create\"}"],
            "an unquoted name and another trigger",
        ),
        (
            "create a workflow called Low Stock for inventory.inventory_items on update",
            &[
                "start_draft {\"name\":\"Low Stock\",\"entity\":\"inventory.inventory_items\",\"trigger_type\":\"on_update\"}",
            ],
            "a name that sounds like a condition is a name",
        ),
        ("alert me about low stock", &["discover_action_types {}"], "a condition without a verb"),
        ("start a workflow for widgets", &["discover_entities {}"], "an unknown word is looked up"),
        (
            "create a workflow that emails ops@x.org when an order is created",
            &["discover_action_types {}"],
            "a trigger and no condition",
        ),
        ("set up a rule to notify me when quantity is low", &[], "a notification needs a recipient"),
        ("alert me when quantity drops below 5", &["discover_action_types {}"], "without the word workflow"),
        ("what is in the draft?", &[], "there is none"),
        ("hello", &[], "small talk"),
        ("what is the capital of France", &[], "not its business"),
        ("", &[], "nothing at all"),
    ];
    let screen = json!({ "workflow_id": RULE, "rule_name": "Low Stock", "nodes": [{ "name": "Raise Alert" }, { "data": { "label": "x" } }] });
    for (text, expected, why) in cases {
        let turn = Dialogue::on(WORKFLOW, Some(screen.clone())).user(text);
        assert_eq!(&turn.calls, expected, "{text:?}: {why}; said {}", turn.text);
    }
}

#[test]
fn a_message_on_the_tables_screen_leads_to_these_calls() {
    let get = "get_table_config {\"id\":\"c1\"}";
    let cases: &[(&str, &[&str], &str)] = &[
        ("show the configs", &["list_table_configs {}"], "all of them"),
        ("which table configurations are there?", &["list_table_configs {}"], "a question"),
        ("show this table", &[get], "the open one"),
        ("what columns does this table have?", &[get], "its columns"),
        ("show the config \"Orders\"", &["get_table_config {\"name\":\"Orders\"}"], "by name"),
        ("show the orders table", &["list_table_configs {}"], "by a spoken name"),
        ("explain inventory_table", &["list_table_configs {}"], "by a name without quotes"),
        ("hide column sku", &[get], "changes begin with the configuration"),
        ("sort by quantity descending", &[get], "sorting"),
        ("filter status = open", &[get], "filtering"),
        ("only show rows where quantity < 5", &[get], "filtering in words"),
        ("validate the config", &[get], "validation"),
        ("what column types are there?", &["discover_table_reference {\"topic\":\"column_types\"}"], "reference data"),
        ("show the reference", &["discover_table_reference {}"], "all of it"),
        ("make the sku column hidden", &[get], "hiding in other words"),
        (
            "what columns does sales.orders have?",
            &["search_database_schema {\"schema\":\"sales\",\"table\":\"orders\"}"],
            "the database",
        ),
        ("list the database schemas", &["search_database_schema {}"], "schemas"),
        (
            "which tables are in the schema sales?",
            &["search_database_schema {\"schema\":\"sales\"}"],
            "a schema's tables",
        ),
        ("what does this workflow do?", &[get], "'this' is the table here"),
        ("good morning", &[], "small talk"),
    ];
    for (text, expected, why) in cases {
        let turn = Dialogue::on(TABLES, Some(json!({ "config_id": "c1" }))).user(text);
        assert_eq!(&turn.calls, expected, "{text:?}: {why}; said {}", turn.text);
    }
}
