//! Dry runs: what is wrong with a rule's form is a 400, what is wrong with its meaning is the answer.

use serde_json::{Value, json};

use super::{Backend, LOW_STOCK, NOWHERE, refused};

const DRY_RUN: &str = "/v1/workflow/rules/full?dry_run=true";

/// A condition whose two ports lead to an e-mail and a log entry.
fn rule() -> Value {
    json!({
        "name": "Night Watch",
        "entity_id": NOWHERE,
        "trigger_type_id": NOWHERE,
        "actions": [
            action("Check", "evaluate_condition", json!({ "conditions": [{ "field_name": "a", "operator": "is_null" }] })),
            action("Mail", "send_email", json!({ "recipients": ["a@example.com"], "subject": "s", "body": "b" })),
            action("Log", "log_audit_entry", json!({ "entity_name": "e", "action": "a", "message": "m" })),
        ],
        "edges": [
            { "source_action_id": "", "target_action_id": "temp:0", "edge_type": "start" },
            edge("temp:0", "temp:1", "true"),
            edge("temp:0", "temp:2", "false"),
        ],
    })
}

fn action(name: &str, action_type: &str, config: Value) -> Value {
    json!({ "id": null, "name": name, "action_type": action_type, "action_config": config, "is_active": true })
}

fn edge(source: &str, target: &str, port: &str) -> Value {
    json!({
        "source_action_id": source, "target_action_id": target, "edge_type": "sequence", "source_output": port,
    })
}

/// [`rule`] with another value at a JSON pointer.
fn with(path: &str, value: Value) -> Value {
    let mut rule = rule();
    *rule.pointer_mut(path).expect("a place in the rule") = value;
    rule
}

fn without(parent: &str, key: &str) -> Value {
    let mut rule = rule();
    rule.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object").remove(key).expect("the key");
    rule
}

#[tokio::test]
async fn a_sound_rule_is_valid_for_any_user_and_nothing_is_saved() {
    let backend = Backend::start().await;
    let valid = (200, json!({ "valid": true, "action_count": 3, "edge_count": 3 }));
    assert_eq!(backend.post("newcomer", DRY_RUN, &rule()).await, valid, "existence of the entity is not asked");
    assert_eq!(backend.put("ben", &format!("/v1/workflow/rules/{LOW_STOCK}/full?dry_run=true"), &rule()).await, valid);
    let empty = json!({ "name": "Sketch", "entity_id": NOWHERE, "trigger_type_id": NOWHERE });
    let answer = backend.post("ben", DRY_RUN, &empty).await;
    assert_eq!(answer, (200, json!({ "valid": true, "action_count": 0, "edge_count": 0 })));
    assert_eq!(backend.read("/v1/workflow/rules?rows=1").await["total"], 14);
    assert_eq!(backend.read(&format!("/v1/workflow/rules/{LOW_STOCK}")).await["name"], "Low Stock Alert");
}

#[tokio::test]
async fn a_graph_that_makes_no_sense_is_explained() {
    let backend = Backend::start().await;
    let joined = |edges: Value| with("/edges", edges);
    let start = || json!({ "target_action_id": "temp:0", "edge_type": "start" });
    let cases = [
        (joined(json!([])), "graph: the actions are not connected: edges are required"),
        (joined(json!([edge("temp:0", "temp:1", "true")])), "graph: exactly one start edge is required, found 0"),
        (joined(json!([start(), start()])), "graph: exactly one start edge is required, found 2"),
        (
            with("/edges/1/target_action_id", json!("temp:3")),
            "graph: edge[1]: target_action_id \"temp:3\" matches no action",
        ),
        (
            with("/edges/2/source_action_id", json!("Check")),
            "graph: edge[2]: source_action_id \"Check\" matches no action",
        ),
        (
            with("/edges/2/source_action_id", json!(NOWHERE)),
            "graph: edge[2]: source_action_id \"99999999-9999-4999-8999-999999999999\" matches no action",
        ),
        (with("/edges/1/source_action_id", json!("")), "graph: edge[1]: source_action_id is required"),
        (
            with("/edges/0/source_action_id", json!("temp:1")),
            "graph: edge[0]: a start edge must not have a source_action_id",
        ),
        (
            joined(json!([
                start(),
                edge("temp:0", "temp:1", "true"),
                edge("temp:1", "temp:2", "success"),
                edge("temp:2", "temp:1", "success")
            ])),
            "graph: the edges form a cycle at action[1] (Mail)",
        ),
        (
            joined(json!([start(), edge("temp:0", "temp:1", "true")])),
            "graph: action[2] (Log) cannot be reached from the start",
        ),
        (
            with("/edges/1/source_output", json!("output-true")),
            "output port: edge[1]: \"output-true\" is not an output port of evaluate_condition; it has true, false",
        ),
        (
            with("/edges/1/edge_type", json!("always")),
            "output port: edge[1]: an always edge must not have a source_output",
        ),
        (
            joined(json!([
                { "target_action_id": "temp:0", "edge_type": "start", "source_output": "true" },
                edge("temp:0", "temp:1", "true"),
                edge("temp:0", "temp:2", "false"),
            ])),
            "output port: edge[0]: a start edge must not have a source_output",
        ),
    ];
    for (body, problem) in cases {
        let (actions, edges) = (body["actions"].as_array().unwrap().len(), body["edges"].as_array().unwrap().len());
        let expected = json!({ "valid": false, "errors": [problem], "action_count": actions, "edge_count": edges });
        assert_eq!(backend.post("ben", DRY_RUN, &body).await, (200, expected), "{problem}");
    }
}

#[tokio::test]
async fn a_config_that_lacks_something_is_explained() {
    let backend = Backend::start().await;
    let alert = |severity: &str| json!({ "alert_type": "t", "severity": severity, "title": "t", "message": "m" });
    let cases = [
        ("evaluate_condition", json!({ "conditions": [] }), Some("conditions must not be empty")),
        (
            "evaluate_condition",
            json!({ "conditions": [{ "field_name": "a", "operator": "like" }] }),
            Some(
                "conditions[0].operator must be one of equals, not_equals, changed_from, changed_to, greater_than, less_than, contains, in, is_null, is_not_null",
            ),
        ),
        ("create_alert", json!({}), Some("alert_type is required")),
        ("create_alert", alert("urgent"), Some("severity must be one of low, medium, high, critical")),
        ("create_alert", alert("{{severity}}"), None),
        (
            "send_email",
            json!({ "recipients": "a@example.com", "subject": "s", "body": "b" }),
            Some("recipients must be an array"),
        ),
        ("send_email", json!({ "recipients": ["a"], "subject": "", "body": "b" }), Some("subject is required")),
        ("seek_approval", json!({ "approvers": [], "approval_type": "any" }), Some("approvers must not be empty")),
        (
            "seek_approval",
            json!({ "approvers": ["a"], "approval_type": "one" }),
            Some("approval_type must be one of any, all, majority"),
        ),
        ("delay", json!({ "duration": "1h30m" }), None),
        ("delay", json!({ "duration": "a day" }), Some("duration must be a duration such as 30m or 1h30m")),
        ("delay", json!({ "duration": "721h" }), Some("duration must be more than 0 and at most 720h")),
        ("delay", json!({ "duration": "0s" }), Some("duration must be more than 0 and at most 720h")),
        (
            "allocate_inventory",
            json!({ "allocation_mode": "reserve" }),
            Some("inventory_items is required unless source_from_line_item is true"),
        ),
        ("allocate_inventory", json!({ "allocation_mode": "reserve", "source_from_line_item": true }), None),
        (
            "allocate_inventory",
            json!({ "allocation_mode": "reserve", "inventory_items": [{ "product_id": "p" }] }),
            Some("inventory_items[0].quantity is required"),
        ),
        ("reserve_inventory", json!({ "quantity": 1.5 }), Some("quantity must be a whole number")),
        ("reserve_inventory", json!({ "quantity": "{{quantity}}" }), None),
        ("update_field", json!({ "target_entity": "e", "target_field": "f", "new_value": null }), None),
        ("check_inventory", json!({ "threshold": null, "anything": [1] }), None),
    ];
    for (action_type, config, problem) in cases {
        let mut body = with("/actions", json!([action("Only", action_type, config.clone())]));
        body["edges"] = json!([{ "target_action_id": "temp:0", "edge_type": "start" }]);
        let mut expected = json!({ "valid": true, "action_count": 1, "edge_count": 1 });
        if let Some(problem) = problem {
            expected["valid"] = json!(false);
            expected["errors"] = json!([format!("action config: action[0] (Only): {problem}")]);
        }
        assert_eq!(backend.post("ben", DRY_RUN, &body).await, (200, expected), "{action_type} {config}");
    }
}

#[tokio::test]
async fn the_first_problem_of_each_kind_is_told_in_a_fixed_order() {
    let backend = Backend::start().await;
    let mut body = with("/edges/1/source_output", json!("output-true"));
    body["edges"][2]["source_output"] = json!("output-false");
    body["edges"][2]["target_action_id"] = json!("temp:7");
    body["actions"][1]["action_config"] = json!({});
    body["actions"][2]["action_config"] = json!({});
    let (status, answer) = backend.post("ben", DRY_RUN, &body).await;
    assert_eq!(status, 200);
    assert_eq!(
        answer["errors"],
        json!([
            "action config: action[1] (Mail): recipients is required",
            "graph: edge[2]: target_action_id \"temp:7\" matches no action",
            "output port: edge[1]: \"output-true\" is not an output port of evaluate_condition; it has true, false",
        ])
    );
}

#[tokio::test]
async fn a_body_of_the_wrong_form_never_reaches_the_validation() {
    let backend = Backend::start().await;
    let name = "must have 1 to 255 characters";
    let cases = [
        (without("", "name"), "name", name),
        (with("/name", json!("x".repeat(256))), "name", name),
        (without("", "entity_id"), "entity_id", "must be a UUID"),
        (with("/trigger_type_id", json!("on_update")), "trigger_type_id", "must be a UUID"),
        (with("/actions/0/name", json!("")), "actions[0].name", name),
        (
            with("/actions/0/action_type", json!("call_webhook")),
            "actions[0].action_type",
            "must be one of the action types",
        ),
        (with("/actions/1/id", json!("temp:1")), "actions[1].id", "must be a UUID"),
        (without("/actions/2", "action_config"), "actions[2].action_config", "must be an object"),
        (with("/edges/1/edge_type", json!("maybe")), "edges[1].edge_type", "must be one of start, sequence, always"),
        (without("/edges/1", "target_action_id"), "edges[1].target_action_id", "is required"),
    ];
    for (body, field, error) in cases {
        let expected = refused("invalid_argument", &json!([{ "field": field, "error": error }]).to_string());
        assert_eq!(backend.post("ben", DRY_RUN, &body).await, (400, expected), "{field}");
    }
    let (status, body) = backend.post("ben", DRY_RUN, &with("/actions", json!("none"))).await;
    assert_eq!((status, &body["code"]), (400, &json!("invalid_argument")));
    let message = body["message"].as_str().unwrap();
    assert!(message.starts_with("decode: actions: invalid type: string \"none\""), "{message}");
}

#[tokio::test]
async fn a_body_that_is_no_json_or_too_large_is_refused() {
    let backend = Backend::start().await;
    let url = format!("{}{DRY_RUN}", backend.base);
    let deep = "[".repeat(100_000);
    for body in ["{", "[]", "null", "{} {}", deep.as_str(), "\u{feff}{}"] {
        let response = backend.http.post(&url).bearer_auth("ben").body(body.to_owned()).send().await.unwrap();
        assert_eq!(response.status(), 400, "{:.20}", body);
    }
    let response = backend.http.post(&url).bearer_auth("ben").body(" ".repeat(1024 * 1024 + 1)).send().await.unwrap();
    assert_eq!(response.status(), 413);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["code"], "resource_exhausted");
}
