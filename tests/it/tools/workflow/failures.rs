//! What goes wrong with each tool, and what the model reads then: arguments, names that lead nowhere, a backend that refuses,
//! fails or answers something else.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Dialogue, RULE, backend, json_answer, refusal, small};
use crate::support::app::LOW_STOCK;
use crate::support::upstream::{Answer, End};

fn without(mut workflow: Value, key: &str) -> Value {
    workflow.as_object_mut().unwrap().shift_remove(key);
    workflow
}

fn with(mut workflow: Value, key: &str, value: Value) -> Value {
    workflow[key] = value;
    workflow
}

#[tokio::test]
async fn arguments_that_cannot_be_used_are_told_by_name() {
    let w = || small("W");
    let of = |workflow: Value| json!({"workflow": workflow, "description": "d"});
    let draft = "dddddddd-0000-4000-8000-000000000001";
    let long = "x".repeat(300);
    let rows: Vec<(&str, Value, &str)> = vec![
        ("get_workflow_rule", json!({}), "workflow_id is required: pass a rule's id or name; no workflow is open"),
        ("get_workflow_rule", json!({"workflow_id": 7}), "workflow_id 7 is neither a rule's id nor its name"),
        (
            "get_workflow_rule",
            json!({"workflow_id": "Simple Test"}),
            "workflow rule \"Simple Test\" not found; the nearest are: \"Simple Test Workflow\"",
        ),
        ("get_workflow_rule", json!({"workflow_id": "../alerts"}), "workflow rule \"../alerts\" not found"),
        (
            "get_workflow_rule",
            json!({"workflow_id": RULE}),
            "HTTP 404: {\"code\":\"not_found\",\"message\":\"rule not found\"}",
        ),
        ("explain_workflow_node", json!({"workflow_id": LOW_STOCK}), "bad params: node_name is required"),
        ("explain_workflow_node", json!({"node_name": "Check"}), "workflow_id is required"),
        (
            "explain_workflow_node",
            json!({"workflow_id": LOW_STOCK, "node_name": ["Check"]}),
            "bad params: node_name: invalid type",
        ),
        (
            "explain_workflow_node",
            json!({"workflow_id": LOW_STOCK, "node_name": "Notify"}),
            "no action \"Notify\" in this workflow; its actions: \"Notify Warehouse Team\"",
        ),
        (
            "list_my_alerts",
            json!({"status": "open"}),
            "bad params: status must be one of active, acknowledged, dismissed, resolved",
        ),
        (
            "list_my_alerts",
            json!({"severity": "high,worse"}),
            "bad params: severity must be one of low, medium, high, critical",
        ),
        ("list_my_alerts", json!({"rows": 1001}), "bad params: rows must be a whole number from 1 to 1000"),
        ("list_my_alerts", json!({"page": "first"}), "bad params: page must be a whole number from 1 to 1000000"),
        ("get_alert_detail", json!({}), "bad params: alert_id is required"),
        (
            "get_alert_detail",
            json!({"alert_id": "Low stock"}),
            "alert_id \"Low stock\" (9 characters) is not a UUID; copy the whole id",
        ),
        ("get_alert_detail", json!({ "alert_id": long }), "(300 characters) is not a UUID"),
        ("list_alerts_for_rule", json!({}), "workflow_id is required"),
        ("list_alerts_for_rule", json!({"workflow_id": "Nobody's"}), "workflow rule \"Nobody's\" not found"),
        ("create_workflow", json!({}), "bad params: missing field `workflow`"),
        ("create_workflow", of(json!("text")), "bad params: workflow must be a JSON object"),
        ("create_workflow", of(w()), "nothing was saved: a workflow is saved when the user accepts its preview"),
        ("update_workflow", of(w()), "bad params: workflow_id is required"),
        (
            "update_workflow",
            json!({"workflow_id": "Nobody's", "workflow": w()}),
            "workflow rule \"Nobody's\" not found",
        ),
        ("update_workflow", json!({"workflow_id": LOW_STOCK, "workflow": w()}), "nothing was saved"),
        ("validate_workflow", of(without(w(), "name")), "bad params: workflow.name is required"),
        ("validate_workflow", of(without(w(), "actions")), "bad params: workflow.actions must be a list of actions"),
        (
            "validate_workflow",
            of(without(w(), "entity")),
            "bad params: workflow.entity is required (\"schema.table\"), or workflow.entity_id",
        ),
        (
            "validate_workflow",
            of(with(w(), "entity", json!("sales.order"))),
            "entity \"sales.order\" not found; write it as \"schema.table\"; the nearest are: \"sales.orders\"",
        ),
        (
            "validate_workflow",
            of(with(w(), "trigger_type", json!("manual"))),
            "trigger type \"manual\" not found; the available ones are: ",
        ),
        (
            "validate_workflow",
            of(with(w(), "name", json!(long))),
            "bad params: workflow.name is longer than 100 characters; shorten it",
        ),
        (
            "preview_workflow",
            of(with(w(), "actions", json!([{"name": long, "action_type": "delay"}]))),
            "bad params: workflow.actions[0].name is longer than 100 characters",
        ),
        (
            "validate_workflow",
            of(with(w(), "description", json!("x".repeat(1001)))),
            "HTTP 400: {\"code\":\"invalid_argument\"",
        ),
        (
            "start_draft",
            json!({"name": long, "entity": "sales.orders", "trigger_type": "on_create"}),
            "bad params: name is longer than 100 characters",
        ),
        (
            "add_draft_action",
            json!({"draft_id": draft, "name": long, "action_type": "delay", "action_config": {}}),
            "bad params: name is longer than 100 characters",
        ),
        ("preview_workflow", json!({"workflow": w()}), "bad params: description is required"),
        (
            "preview_workflow",
            json!({"workflow": w(), "description": "d", "workflow_id": "Nobody's"}),
            "workflow rule \"Nobody's\" not found",
        ),
        ("preview_workflow", json!({"workflow": w(), "description": "d", "workflow_id": RULE}), "HTTP 404: "),
        ("start_draft", json!({"entity": "sales.orders", "trigger_type": "on_create"}), "bad params: name is required"),
        (
            "start_draft",
            json!({"name": "W", "entity": " ", "trigger_type": "on_create"}),
            "bad params: entity is required",
        ),
        (
            "start_draft",
            json!({"name": "W", "entity": "sales.nothing", "trigger_type": "on_create"}),
            "entity \"sales.nothing\" not found",
        ),
        (
            "start_draft",
            json!({"name": "W", "entity": "sales.orders", "trigger_type": "sometimes"}),
            "trigger type \"sometimes\" not found",
        ),
        (
            "start_draft",
            json!({"name": "W", "entity": "sales.orders", "trigger_type": "on_create", "trigger_conditions": []}),
            "bad params: trigger_conditions must be a JSON object",
        ),
        (
            "add_draft_action",
            json!({"name": "A", "action_type": "delay", "action_config": {}}),
            "bad params: draft_id is required",
        ),
        (
            "add_draft_action",
            json!({"draft_id": draft, "name": "A", "action_type": "delay"}),
            "bad params: action_config is required",
        ),
        (
            "add_draft_action",
            json!({"draft_id": draft, "name": "A", "action_type": "delay", "action_config": {}}),
            "not found or expired; begin a new one with start_draft",
        ),
        ("remove_draft_action", json!({"draft_id": draft}), "bad params: action_name is required"),
        ("remove_draft_action", json!({"draft_id": "../x", "action_name": "A"}), "draft \"../x\" not found or expired"),
        ("preview_draft", json!({"draft_id": draft}), "bad params: description is required"),
        ("preview_draft", json!({"draft_id": 7, "description": "d"}), "bad params: draft_id: invalid type"),
        ("preview_draft", json!({"draft_id": draft, "description": "d"}), "not found or expired"),
    ];
    let calls: Vec<(&str, Value)> = rows.iter().map(|(tool, args, _)| (*tool, args.clone())).collect();
    let ran = Dialogue::demo().await.ask("c", &calls).await;
    for (n, (tool, args, expected)) in rows.iter().enumerate() {
        assert!(ran.error(n).contains(expected), "{tool} {args}: {}", ran.error(n));
    }
    assert_eq!(ran.previews(), [] as [&Value; 0]);
}

/// A call of each tool that asks the backend, with ids, so that the tool's own request is the first one.
fn one_of_each() -> Vec<(&'static str, Value)> {
    let mut ids = without(without(small("W"), "entity"), "trigger_type");
    ids["entity_id"] = json!("bbbbbbbb-0000-4000-8000-000000000001");
    ids["trigger_type_id"] = json!("cccccccc-0000-4000-8000-000000000001");
    vec![
        ("discover_action_types", json!({})),
        ("discover_trigger_types", json!({})),
        ("discover_entities", json!({})),
        ("list_workflow_rules", json!({})),
        ("get_workflow_rule", json!({"workflow_id": RULE})),
        ("explain_workflow_node", json!({"workflow_id": RULE, "node_name": "A"})),
        ("list_my_alerts", json!({})),
        ("get_alert_detail", json!({"alert_id": RULE})),
        ("list_alerts_for_rule", json!({"workflow_id": RULE})),
        ("validate_workflow", json!({"workflow": ids})),
        ("preview_workflow", json!({"workflow": ids, "description": "d"})),
        ("preview_workflow", json!({"workflow": ids, "description": "d", "workflow_id": RULE})),
    ]
}

#[tokio::test]
async fn a_backend_that_refuses_or_fails_is_an_error_in_its_own_words() {
    let rows = [
        (refusal(401, "expired"), "HTTP 401: {\"code\":\"scripted\",\"message\":\"expired\"}", "not its user"),
        (refusal(403, "not you"), "HTTP 403: {\"code\":\"scripted\",\"message\":\"not you\"}", "the role is missing"),
        (refusal(404, "gone"), "HTTP 404: {\"code\":\"scripted\",\"message\":\"gone\"}", "no such thing"),
        (refusal(500, "boom"), "HTTP 500: {\"code\":\"scripted\",\"message\":\"boom\"}", "a fault"),
        (Answer::status(502, "text/html; charset=utf-8", "<html>proxy"), "HTTP 502: (an HTML page)", "a proxy's page"),
        (Answer::status(503, "text/plain", "z".repeat(5000)), &format!("HTTP 503: {}", "z".repeat(2048)), "cut"),
        (Answer::ok("text/html", "<html>login"), "the backend's answer is not JSON", "a login page with a 200"),
        (Answer::ok("application/json", "[1,").ending(End::Abort), "the backend's answer broke off", "broken off"),
    ];
    for (answer, expected, reason) in rows {
        let backend = backend(move |_| Some(answer.clone())).await;
        let calls = one_of_each();
        let ran = Dialogue::over(&backend).await.ask("c", &calls).await;
        for (n, (tool, _)) in calls.iter().enumerate() {
            assert!(ran.error(n).starts_with(expected), "{reason}: {tool}: {}", ran.error(n));
        }
        assert_eq!(ran.previews(), [] as [&Value; 0], "{reason}");
    }
}

#[tokio::test]
async fn names_that_cannot_be_looked_up_say_so() {
    let backend = backend(|request| (request.method == "GET").then(|| refusal(500, "boom"))).await;
    let calls = [
        ("get_workflow_rule", json!({"workflow_id": "Night Shift"})),
        ("update_workflow", json!({"workflow_id": "Night Shift", "workflow": small("W")})),
        ("create_workflow", json!({"workflow": small("W")})),
        ("start_draft", json!({"name": "W", "entity": "sales.orders", "trigger_type": RULE})),
        ("start_draft", json!({"name": "W", "entity": RULE, "trigger_type": "on_create"})),
    ];
    let ran = Dialogue::over(&backend).await.ask("c", &calls).await;
    let lists = ["workflow rules", "workflow rules", "entities", "entities", "trigger types"];
    for (n, list) in lists.iter().enumerate() {
        let expected = format!("could not look up {list}: HTTP 500: {{\"code\":\"scripted\",\"message\":\"boom\"}}");
        assert_eq!(ran.error(n), expected);
    }
}

#[tokio::test]
async fn answers_of_another_shape_are_errors_and_never_passed_on_as_results() {
    let shape = "the backend's answer has an unexpected shape";
    // Any object may be a rule or an alert.
    let rows: [(Value, &[&str], &str); 2] = [
        (json!("odd"), &[], "a text"),
        (json!({"odd": true}), &["get_workflow_rule", "get_alert_detail"], "an object without what was asked for"),
    ];
    for (body, fine, reason) in rows {
        let backend = backend(move |_| Some(json_answer(&body))).await;
        let calls = one_of_each();
        let ran = Dialogue::over(&backend).await.ask("c", &calls).await;
        for (n, (tool, _)) in calls.iter().enumerate() {
            match fine.contains(tool) {
                true => assert!(ran.ok(n).to_string().contains(r#"{"odd":true"#), "{reason}: {tool}: {}", ran.ok(n)),
                false => assert!(ran.error(n).starts_with(shape), "{reason}: {tool}: {}", ran.error(n)),
            }
        }
        assert_eq!(ran.previews(), [] as [&Value; 0], "{reason}");
    }
}

#[tokio::test]
async fn rows_that_are_no_objects_are_left_out_of_discovery() {
    let backend = backend(|_| Some(json_answer(&json!(["odd", null, {"type": "delay", "name": "N"}, 7])))).await;
    let calls = &one_of_each()[..3];
    let ran = Dialogue::over(&backend).await.ask("c", calls).await;
    assert_eq!(*ran.ok(0), json!([{"type": "delay", "description": "", "output_ports": []}]));
    for call in [1, 2] {
        assert_eq!(*ran.ok(call), json!([{"type": "delay", "name": "N"}]));
    }
}

#[tokio::test]
async fn answers_without_a_body_are_empty_lists_or_errors() {
    let backend = backend(|_| Some(Answer::status(200, "application/json", ""))).await;
    let calls = one_of_each();
    let ran = Dialogue::over(&backend).await.ask("c", &calls).await;
    for (n, (tool, _)) in calls.iter().enumerate() {
        match tool.starts_with("discover_") {
            true => assert_eq!(*ran.ok(n), json!([]), "{tool}"),
            false => assert!(ran.results[n].0, "{tool}: {}", ran.results[n].1),
        }
    }
}

#[tokio::test]
async fn a_backend_that_does_not_answer_in_time_is_given_up() {
    let backend = backend(|_| Some(Answer::ok("application/json", "[").ending(End::Hang))).await;
    let url = backend.url();
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &url), ("BACKEND__TIMEOUT_S", "1")];
    let d = Dialogue::with(&settings).await;
    let started = std::time::Instant::now();
    let ran = d.ask("c", &[("discover_entities", json!({}))]).await;
    assert_eq!(ran.error(0), "the backend did not answer in time");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn results_and_answers_are_bounded() {
    let long = json!([{"name": "ü".repeat(3000)}]).to_string();
    let backend = backend(move |_| Some(Answer::ok("application/json", long.clone()))).await;
    let url = backend.url();
    let http = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", url.as_str())];
    let rows = [
        ("LIMITS__BACKEND_ANSWER_BYTES", true, "the backend's answer is larger than 1000 bytes"),
        ("LIMITS__TOOL_RESULT_BYTES", false, "of 6000 bytes of text; 6013 bytes in all; ask for less]"),
    ];
    for (limit, is_error, expected) in rows {
        let d = Dialogue::with(&[http[0], http[1], (limit, "1000")]).await;
        let ran = d.ask("c", &[("discover_entities", json!({}))]).await;
        assert_eq!(ran.results[0].0, is_error, "{limit}");
        assert!(ran.results[0].1.to_string().contains(expected), "{limit}: {}", ran.results[0].1);
    }
}
