//! Checking and previewing new workflows: names become ids, `after` becomes edges, and the client sees what will be saved.

use serde_json::{Value, json};

use super::{BEN, Dialogue, RULE, backend, count, small};
use crate::support::frames;

const ORDERS: &str = "e0000000-0000-4000-8000-000000000025";
const ON_CREATE: &str = "b0000000-0000-4000-8000-000000000001";

fn condition() -> Value {
    json!({"conditions": [{"field_name": "amount", "operator": "greater_than", "value": 1000}]})
}

fn alert() -> Value {
    json!({"alert_type": "order_value", "severity": "high", "title": "Large order", "message": "Look at it"})
}

fn audit() -> Value {
    json!({"entity_name": "sales.orders", "action": "checked", "message": "small"})
}

/// Four actions that follow each other by name, in the ways a model may write it.
fn branching() -> Value {
    json!({"name": "Big Order Watch", "entity": "sales.orders", "trigger_type": "on_create", "actions": [
        {"name": "Check", "action_type": "evaluate_condition", "action_config": condition(), "is_active": true},
        {"name": "High", "action_type": "create_alert", "action_config": alert(), "is_active": true, "after": "Check:output-true"},
        {"name": "Log", "action_type": "log_audit_entry", "action_config": audit().to_string(), "after": " Check : output_false "},
        {"name": "Wait", "id": null, "action_type": "delay", "action_config": {"duration": "30m"}, "is_active": false, "after": "High"},
    ]})
}

/// What the backend gets for [`branching`].
fn branching_body() -> Value {
    let step = |source: &str, target: &str, port: &str, order: u32| json!({"source_action_id": source, "target_action_id": target, "edge_type": "sequence", "source_output": port, "edge_order": order});
    json!({"name": "Big Order Watch", "is_active": true, "entity_id": ORDERS, "trigger_type_id": ON_CREATE, "actions": [
        {"name": "Check", "action_type": "evaluate_condition", "action_config": condition(), "is_active": true},
        {"name": "High", "action_type": "create_alert", "action_config": alert(), "is_active": true},
        {"name": "Log", "action_type": "log_audit_entry", "action_config": audit(), "is_active": true},
        {"name": "Wait", "action_type": "delay", "action_config": {"duration": "30m"}, "is_active": false},
    ], "edges": [
        {"target_action_id": "temp:0", "edge_type": "start", "edge_order": 0},
        step("temp:0", "temp:1", "true", 1),
        step("temp:0", "temp:2", "false", 2),
        step("temp:1", "temp:3", "success", 3),
    ]})
}

#[tokio::test]
async fn a_preview_shows_the_client_exactly_what_will_be_saved() {
    let ran = Dialogue::demo()
        .await
        .ask("c", &[("preview_workflow", json!({"workflow": branching(), "description": " Watches. "}))])
        .await;
    let id = ran.preview_id();
    let expected =
        json!({"description": "Watches.", "workflow": branching_body(), "is_update": false, "preview_id": id});
    assert_eq!(ran.previews(), [&expected]);
    let names = frames::names(&ran.frames);
    assert_eq!(names[1..4], ["tool_call_start", "tool_call_result", "workflow_preview"], "the result comes first");
    let sent = ran.ok(0);
    assert_eq!((&sent["status"], &sent["preview_id"]), (&json!("preview_sent"), &json!(id)));
    assert!(sent["message"].as_str().unwrap().starts_with("Preview sent to user for approval."), "{sent}");
}

#[tokio::test]
async fn a_plain_user_may_preview() {
    let d = Dialogue::demo().await;
    let ben = d.s.app.token_of(BEN, None, &["USER"]);
    let ran = d
        .ask_as(&ben, "c", json!({}), &[("preview_workflow", json!({"workflow": small("Mine"), "description": "d"}))])
        .await;
    assert_eq!(ran.ok(0)["status"], "preview_sent");
}

#[tokio::test]
async fn each_preview_of_a_turn_follows_its_own_result() {
    let preview = |name: &str| ("preview_workflow", json!({"workflow": small(name), "description": name}));
    let ran =
        Dialogue::demo().await.ask("c", &[preview("One"), ("discover_entities", json!({})), preview("Two")]).await;
    let after_starts: Vec<&str> = frames::names(&ran.frames)[4..9].to_vec();
    assert_eq!(
        after_starts,
        ["tool_call_result", "workflow_preview", "tool_call_result", "tool_call_result", "workflow_preview"]
    );
    let shown: Vec<&Value> = ran.previews().iter().map(|preview| &preview["workflow"]["name"]).collect();
    assert_eq!(shown, ["One", "Two"]);
    assert_ne!(ran.ok(0)["preview_id"], ran.ok(2)["preview_id"]);
}

#[tokio::test]
async fn a_workflow_that_is_not_valid_gives_its_errors_and_no_preview() {
    let mut unreachable = branching();
    unreachable["edges"] = json!([{"target_action_id": "temp:0", "edge_type": "start"}]);
    let mut wrong_port = branching();
    wrong_port["actions"][1]["after"] = json!("Check:maybe");
    let mut no_title = branching();
    no_title["actions"][1]["action_config"] = json!({"alert_type": "a", "severity": "high", "message": "m"});
    let mut cycle = branching();
    cycle["edges"] = json!([
        {"target_action_id": "temp:0", "edge_type": "start"},
        {"source_action_id": "temp:0", "target_action_id": "temp:1", "edge_type": "sequence", "source_output": "output-true"},
        {"source_action_id": "temp:0", "target_action_id": "temp:2", "edge_type": "sequence", "source_output": "output-false"},
        {"source_action_id": "temp:1", "target_action_id": "temp:3", "edge_type": "sequence"},
        {"source_action_id": "temp:3", "target_action_id": "temp:1", "edge_type": "always"},
    ]);
    let rows = [
        (unreachable, "graph: ", "explicit edges win over `after`, and leave three actions out"),
        (wrong_port, "output port: edge[1]", "a port that conditions do not have"),
        (no_title, "action config: action[1] (High): title is required", "a field is missing"),
        (cycle, "graph: ", "a cycle"),
    ];
    let mut calls = Vec::new();
    for (workflow, _, _) in &rows {
        calls.push(("validate_workflow", json!({ "workflow": workflow })));
        calls.push(("preview_workflow", json!({"workflow": workflow, "description": "d"})));
    }
    let ran = Dialogue::demo().await.ask("c", &calls).await;
    for (n, (_, expected, reason)) in rows.iter().enumerate() {
        let verdict = ran.ok(2 * n);
        assert_eq!((&verdict["valid"], &verdict["action_count"]), (&json!(false), &json!(4)), "{reason}");
        assert!(verdict["errors"][0].as_str().unwrap().starts_with(expected), "{reason}: {verdict}");
        assert_eq!(ran.ok(2 * n + 1), verdict, "{reason}: a preview says the same");
    }
    assert_eq!(ran.previews(), [] as [&Value; 0]);
}

#[tokio::test]
async fn a_valid_workflow_is_found_valid_and_nothing_is_shown() {
    let ran = Dialogue::demo().await.ask("c", &[("validate_workflow", json!({"workflow": branching()}))]).await;
    assert_eq!(*ran.ok(0), json!({"valid": true, "action_count": 4, "edge_count": 4}));
    assert_eq!(ran.previews(), [] as [&Value; 0]);
}

#[tokio::test]
async fn an_after_that_cannot_be_read_says_what_to_write() {
    let after = |after: Value| {
        let mut workflow = branching();
        workflow["actions"][1]["after"] = after;
        workflow
    };
    let mut two_starts = branching();
    two_starts["actions"][3].as_object_mut().unwrap().shift_remove("after");
    let rows = [
        (
            after(json!("Chek:true")),
            "`after` of action \"High\" refers to \"Chek\", which is not an action of this workflow; its actions: \"Check\"",
        ),
        (after(json!(7)), "`after` of action \"High\" must be text"),
        (after(json!(":true")), "`after` of action \"High\" names no action"),
        (after(json!("High")), "graph: "),
        (two_starts, "only one start action is allowed: \"Check\" and \"Wait\" both have no `after`"),
    ];
    let calls: Vec<_> =
        rows.iter().map(|(w, _)| ("preview_workflow", json!({"workflow": w, "description": "d"}))).collect();
    let ran = Dialogue::demo().await.ask("c", &calls).await;
    for (n, (_, expected)) in rows.iter().enumerate() {
        assert!(ran.results[n].1.to_string().replace("\\\"", "\"").contains(expected), "{}", ran.results[n].1);
    }
    assert_eq!(ran.previews(), [] as [&Value; 0]);
}

#[tokio::test]
async fn names_are_found_as_models_write_them() {
    let rows = [
        ("sales.orders", "on_create", "as listed"),
        ("Sales.Orders", "ON_CREATE", "in another case"),
        (" sales.orders ", "on create", "with blanks"),
        ("orders", "on-create", "a table's name alone"),
        (ORDERS, ON_CREATE, "ids at the names' place"),
        ("E0000000-0000-4000-8000-000000000025", "{b0000000-0000-4000-8000-000000000001}", "ids in other spellings"),
        ("e0000000000040008000000000000025", "urn:uuid:b0000000-0000-4000-8000-000000000001", "and yet others"),
    ];
    let calls: Vec<_> = rows
        .iter()
        .map(|(entity, trigger, _)| {
            let mut workflow = small("W");
            workflow["entity"] = json!(entity);
            workflow["trigger_type"] = json!(trigger);
            ("preview_workflow", json!({"workflow": workflow, "description": "d"}))
        })
        .collect();
    let ran = Dialogue::demo().await.ask("c", &calls).await;
    for (n, (_, _, reason)) in rows.iter().enumerate() {
        assert_eq!(ran.ok(n)["status"], "preview_sent", "{reason}");
        let shown = &ran.previews()[n]["workflow"];
        assert_eq!((&shown["entity_id"], &shown["trigger_type_id"]), (&json!(ORDERS), &json!(ON_CREATE)), "{reason}");
        assert!(shown.get("entity").is_none() && shown.get("trigger_type").is_none(), "{reason}");
    }
}

#[tokio::test]
async fn a_default_port_is_the_backends_own_and_as_shipped_when_it_cannot_be_asked() {
    let mut workflow = small("W");
    workflow["actions"] = json!([
        {"name": "Ask", "action_type": "seek_approval", "action_config": {}},
        {"name": "Wait", "action_type": "delay", "action_config": {}, "after": "Ask"},
    ]);
    let calls = [("preview_workflow", json!({"workflow": workflow, "description": "d"}))];
    for (status, expected, reason) in
        [(200, "rejected", "this backend's default"), (500, "approved", "the shipped default")]
    {
        let backend = backend(move |request| match status == 500 && request.path.ends_with("/action-types") {
            true => Some(super::refusal(500, "boom")),
            false => None,
        })
        .await;
        let ran = Dialogue::over(&backend).await.ask("c", &calls).await;
        assert_eq!(ran.previews()[0]["workflow"]["edges"][1]["source_output"], expected, "{reason}");
    }
}

#[tokio::test]
async fn a_sequence_without_a_port_leaves_from_the_default_port() {
    let mut workflow = small("W");
    workflow["actions"] = json!([
        {"name": "Ask", "action_type": "seek_approval", "action_config": {}},
        {"name": "Wait", "action_type": "delay", "action_config": {}},
    ]);
    workflow["edges"] = json!([
        {"target_action_id": "temp:0", "edge_type": "start"},
        {"source_action_id": "temp:0", "target_action_id": "temp:1", "edge_type": "sequence"},
    ]);
    let backend = backend(|_| None).await;
    let calls = [("preview_workflow", json!({"workflow": workflow, "description": "d"}))];
    let ran = Dialogue::over(&backend).await.ask("c", &calls).await;
    assert_eq!(ran.previews()[0]["workflow"]["edges"][1]["source_output"], "rejected");
}

#[tokio::test]
async fn what_is_shown_is_what_was_validated() {
    let backend = backend(|_| None).await;
    let calls = [
        ("preview_workflow", json!({"workflow": small("W").to_string(), "description": "d"})),
        ("preview_workflow", json!({"workflow": small("W"), "description": "d", "workflow_id": "night shift"})),
    ];
    let ran = Dialogue::over(&backend).await.ask("c", &calls).await;
    let requests = backend.requests();
    let runs: Vec<_> = requests.iter().filter(|request| request.path.ends_with("dry_run=true")).collect();
    let lines: Vec<_> = runs.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    let update = format!("PUT /v1/workflow/rules/{RULE}/full?dry_run=true");
    assert_eq!(lines, ["POST /v1/workflow/rules/full?dry_run=true", &update], "an update is checked as an update");
    for (preview, request) in ran.previews().iter().zip(&runs) {
        assert_eq!(preview["workflow"], request.json());
    }
    assert_eq!((&ran.previews()[1]["is_update"], &ran.previews()[1]["workflow_id"]), (&json!(true), &json!(RULE)));
    assert_eq!(count(&backend, "/full"), 2, "and nothing is saved");
}
