//! Dialogues on the workflow screen.

use serde_json::{Value, json};

use super::{Dialogue, Turn, WORKFLOW};
use crate::chat::ids::PreviewId;
use crate::chat::message::UserMessage;
use crate::chat::preview::{Decided, Verdict};

fn sent() -> Value {
    json!({ "status": "preview_sent", "message": "Preview sent to user for approval." })
}

#[test]
fn a_workflow_is_explained_in_words() {
    let mut dialogue = Dialogue::on(WORKFLOW, Some(json!({ "workflow_id": "w1" })));
    let turn = dialogue.user("What does this workflow do?");
    assert_eq!(
        turn,
        Turn {
            text: "Let me look up that workflow.\n\n".to_owned(),
            calls: vec!["get_workflow_rule {\"workflow_id\":\"w1\"}".to_owned()],
        }
    );
    let rule = json!({
        "workflow_id": "w1",
        "rule": {
            "name": "Low Stock Alert",
            "description": "Tells purchasing in time",
            "entity_schema_name": "inventory",
            "entity_name": "inventory_items",
            "trigger_type_name": "on_update",
            "is_active": true,
        },
        "summary": {
            "node_count": 3,
            "edge_count": 3,
            "branch_count": 1,
            "action_types_used": ["create_alert", "evaluate_condition", "log_audit_entry"],
            "flow_outline": "Check Stock (evaluate_condition)\n  [true] Raise Alert (create_alert) — alerts: Ann (ann@x.org), buyers (role)\n  [false] Note It (log_audit_entry)",
        },
    });
    dialogue.results(&[Ok(rule)]).says(
        "**Low Stock Alert** runs when a record of `inventory.inventory_items` is updated. Tells purchasing in time. \
         It has 3 steps and 1 branch point.\n\n\
         - **Check Stock** checks a condition\n  \
         - on `true`: **Raise Alert** raises an alert, for Ann (ann@x.org), buyers (role)\n  \
         - on `false`: **Note It** writes to the audit log",
    );
}

#[test]
fn a_step_is_explained_with_its_recipients_by_name() {
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    dialogue.user("explain the step \"Raise Alert\"").calls(&["explain_workflow_node {\"node_name\":\"Raise Alert\"}"]);
    let found = json!({
        "action": {
            "name": "Raise Alert",
            "action_type": "create_alert",
            "is_active": true,
            "action_config": {
                "alert_type": "low_stock",
                "severity": "high",
                "recipients": { "users": [{ "id": "u1", "name": "Ann", "email": "ann@x.org" }], "roles": [{ "id": "r1", "name": "buyers" }] },
                "context": {},
            },
        },
        "depth_from_start": 1,
        "incoming_from": [{ "action_id": "a", "action_name": "Check Stock", "edge_type": "sequence", "output_port": "true" }],
        "outgoing_to": null,
    });
    dialogue.results(&[Ok(found)]).says(
        "**Raise Alert** raises an alert. It comes after **Check Stock** (its branch `true`) and the flow ends there.\n\n\
         - Alert type: low_stock\n- Severity: high\n\
         - Recipients: Ann (ann@x.org) and everyone with the role buyers\n- Context: ",
    );
}

#[test]
fn two_questions_are_answered_together() {
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    dialogue.user("list the rules and my alerts").calls(&["list_workflow_rules {}", "list_my_alerts {}"]);
    let rules = json!({
        "results": [
            { "id": "1", "name": "A", "entity_name": "orders", "trigger_type": "on_create", "is_active": true },
            { "id": "2", "name": "B", "entity_name": "orders", "trigger_type": "on_update", "is_active": false },
        ],
        "total": 2, "showing": 2, "has_more": false,
    });
    let alerts = json!({
        "results": [{
            "id": "x", "severity": "high", "status": "active", "title": "Low", "message": "Only 2 left.",
            "created_at": "2026-02-16T08:00:00Z", "recipients": ["Ann", "role:buyers"],
        }],
        "total": 7, "showing": 1, "has_more": true,
    });
    dialogue.results(&[Ok(rules), Ok(alerts)]).says(
        "There are 2 workflows:\n\n- **A** on `orders`, `on_create`\n- **B** on `orders`, `on_update` (inactive)\n\n\
         There are 7 alerts for you:\n\n\
         - **Low** (high, active): Only 2 left; to Ann and everyone with the role buyers; 2026-02-16\n- … and 6 more",
    );
}

#[test]
fn a_workflow_of_one_sentence_takes_two_calls_and_a_preview() {
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    dialogue.user("Create a workflow that alerts when stock is low").calls(&["discover_action_types {}"]);
    let types = json!([{ "type": "create_alert" }, { "type": "evaluate_condition" }, { "type": "log_audit_entry" }]);
    let turn = dialogue.results(&[Ok(types)]);
    assert_eq!(turn.text, "I'll build that workflow and send you a preview.\n\n");
    let input = json!({
        "workflow": {
            "name": "Low Stock Alert",
            "is_active": true,
            "entity": "inventory.inventory_items",
            "trigger_type": "on_update",
            "actions": [
                {
                    "name": "Check Quantity",
                    "action_type": "evaluate_condition",
                    "action_config": {
                        "conditions": [{ "field_name": "quantity", "operator": "less_than", "value": 10 }],
                        "logic_type": "and",
                    },
                    "is_active": true,
                },
                {
                    "name": "Raise Alert",
                    "action_type": "create_alert",
                    "action_config": {
                        "alert_type": "workflow_alert",
                        "severity": "medium",
                        "title": "Low Stock Alert",
                        "message": "Low Stock Alert: a record of inventory.inventory_items needs attention.",
                    },
                    "is_active": true,
                    "after": "Check Quantity:true",
                },
                {
                    "name": "Log Audit Entry",
                    "action_type": "log_audit_entry",
                    "action_config": {
                        "entity_name": "inventory.inventory_items",
                        "action": "workflow_run",
                        "message": "Low Stock Alert: nothing to do",
                    },
                    "is_active": true,
                    "after": "Check Quantity:false",
                },
            ],
        },
        "description": "Low Stock Alert: when a record of `inventory.inventory_items` is updated, check whether quantity is less than 10.",
    });
    turn_calls(&turn.calls, "preview_workflow", &input);
    dialogue.results(&[Ok(sent())]).says(
        "I've sent a preview of **Low Stock Alert** for your review; nothing is saved yet. It runs when a record of \
         `inventory.inventory_items` is updated and has 3 steps: **Check Quantity**, **Raise Alert** and **Log Audit Entry**. \
         It goes on only where quantity is less than 10; all other changes are written to the audit log.\n\n\
         Accept the preview to save it, or tell me what should be different.",
    );
}

#[test]
fn a_draft_is_built_over_several_messages() {
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    dialogue
        .user("create a workflow called Stock Watch for inventory.inventory_items on update")
        .calls(&["start_draft {\"name\":\"Stock Watch\",\"entity\":\"inventory.inventory_items\",\"trigger_type\":\"on_update\"}"]);
    dialogue.results(&[Ok(json!({ "draft_id": "d1", "status": "draft_created", "message": "…" }))]).says(
        "I've started a draft of **Stock Watch**. It will run when a record of `inventory.inventory_items` is updated. \
         What should happen first? For example: *add a condition step if quantity < 10*, or *add a high severity alert*.",
    );

    let turn = dialogue.user("add a condition step if quantity < 10");
    let config = json!({
        "conditions": [{ "field_name": "quantity", "operator": "less_than", "value": 10 }],
        "logic_type": "and",
    });
    let input = json!({ "draft_id": "d1", "name": "Check Quantity", "action_type": "evaluate_condition", "action_config": config });
    turn_calls(&turn.calls, "add_draft_action", &input);
    let added = json!({ "status": "action_added", "action_name": "Check Quantity", "output_ports": ["true", "false"] });
    dialogue.results(&[Ok(added)]).says(
        "I added the step **Check Quantity** as the first step. The next steps can follow its branches `true` and `false`.\n\n\
         The draft has 1 step so far: **Check Quantity**. Shall I preview it?",
    );

    let turn = dialogue.user("add a critical alert called Raise Alarm, and otherwise send an email");
    let alert = json!({
        "draft_id": "d1", "name": "Raise Alarm", "action_type": "create_alert",
        "action_config": {
            "alert_type": "workflow_alert", "severity": "critical", "title": "Stock Watch",
            "message": "Stock Watch: a record of inventory.inventory_items needs attention.",
        },
        "after": "Check Quantity",
    });
    turn_calls(&turn.calls, "add_draft_action", &alert);
    dialogue.results(&[Ok(json!({ "status": "action_added", "output_ports": ["success", "failure"] }))]).says(
        "I added the step **Raise Alarm** after **Check Quantity**. The alert names no recipients yet.\n\n\
         Who should get the e-mail? Tell me an address, such as `ops@example.com`.",
    );

    let turn = dialogue.user("ops@example.com");
    let email = json!({
        "draft_id": "d1", "name": "Send Email", "action_type": "send_email",
        "action_config": {
            "recipients": ["ops@example.com"], "subject": "Stock Watch",
            "body": "A record of inventory.inventory_items needs attention.",
        },
        "after": "Check Quantity:false",
    });
    turn_calls(&turn.calls, "add_draft_action", &email);
    dialogue.results(&[Ok(json!({ "status": "action_added" }))]).says(
        "I added the step **Send Email** on the `false` branch of **Check Quantity**.\n\n\
         The draft has 3 steps so far: **Check Quantity**, **Raise Alarm** and **Send Email**. Shall I preview it?",
    );

    dialogue
        .user("remove the step send email")
        .calls(&["remove_draft_action {\"draft_id\":\"d1\",\"action_name\":\"Send Email\"}"]);
    dialogue.results(&[Ok(json!({ "status": "action_removed" }))]).says(
        "I removed the step **Send Email**. Steps that followed it no longer follow anything.\n\n\
         The draft has 2 steps so far: **Check Quantity** and **Raise Alarm**. Shall I preview it?",
    );

    dialogue.user("Yes, please").calls(&[
        "preview_draft {\"draft_id\":\"d1\",\"description\":\"Create Stock Watch with 2 steps: Check Quantity, Raise Alarm\"}",
    ]);
    dialogue.results(&[Ok(sent())]).says(
        "I've sent a preview of **Stock Watch** for your review; nothing is saved yet. Accept it to save it, or tell me what to change.",
    );
}

#[test]
fn a_draft_of_one_message_takes_its_steps_one_after_another() {
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    dialogue
        .user("Start a workflow called Welcome for sales.customers on create, then wait 2 days, add an audit entry and preview it.")
        .calls(&["start_draft {\"name\":\"Welcome\",\"entity\":\"sales.customers\",\"trigger_type\":\"on_create\"}"]);
    dialogue.results(&[Ok(json!({ "draft_id": "d2" }))]).calls(&[
        "add_draft_action {\"draft_id\":\"d2\",\"name\":\"Wait\",\"action_type\":\"delay\",\"action_config\":{\"duration\":\"48h\"}}",
    ]);
    dialogue.results(&[Ok(json!({}))]).calls(&[
        "add_draft_action {\"draft_id\":\"d2\",\"name\":\"Log Audit Entry\",\"action_type\":\"log_audit_entry\",\"action_config\":\
         {\"entity_name\":\"sales.customers\",\"action\":\"workflow_run\",\"message\":\"Welcome ran\"},\"after\":\"Wait\"}",
    ]);
    dialogue.results(&[Ok(json!({}))]).calls(&[
        "preview_draft {\"draft_id\":\"d2\",\"description\":\"Create Welcome with 2 steps: Wait, Log Audit Entry\"}",
    ]);
    let turn =
        dialogue.results(&[Ok(json!({ "valid": false, "errors": ["graph: no start action"], "action_count": 2 }))]);
    assert!(turn.text.ends_with(
        "The validation refused this, so I sent no preview:\n\n- graph: no start action\n\nTell me what to change and I will try again."
    ));
}

#[test]
fn a_missing_subject_is_asked_for_and_the_answer_completes_the_message() {
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    dialogue
        .user("create a workflow called Watcher")
        .says("Which entity should it watch? Name a table, for example `inventory.inventory_items` or `sales.orders`.");
    dialogue
        .user("sales.orders, on delete")
        .calls(&["start_draft {\"name\":\"Watcher\",\"entity\":\"sales.orders\",\"trigger_type\":\"on_delete\"}"]);
}

#[test]
fn failures_are_told_in_plain_words() {
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    dialogue
        .user("alerts for the rule \"Low Stock\" and list the triggers")
        .calls(&["list_alerts_for_rule {\"workflow_id\":\"Low Stock\"}", "discover_trigger_types {}"]);
    let forbidden = "HTTP 403: {\"code\":\"permission_denied\",\"message\":\"admin only\"}";
    let triggers = json!([{ "name": "on_create", "description": "A record is created" }]);
    dialogue.results(&[Err(forbidden), Ok(triggers)]).says(
        "That did not work. `list_alerts_for_rule` reported: admin only. Your account may not do this. It needs an \
         administrator's rights; please ask one, or sign in with such an account.\n\n\
         There is 1 trigger type:\n\n- `on_create`: A record is created",
    );
}

#[test]
fn an_expired_draft_is_forgotten() {
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    dialogue.user("create a workflow called X for sales.orders on create");
    dialogue.results(&[Ok(json!({ "draft_id": "d3" }))]);
    dialogue.user("preview it").calls(&["preview_draft {\"draft_id\":\"d3\",\"description\":\"Create X\"}"]);
    dialogue.results(&[Err("draft not found or expired")]).says(
        "That did not work. `preview_draft` reported: draft not found or expired. Drafts live for ten minutes after \
         their last use. Start it again with *create a workflow called …*.",
    );
    let turn = dialogue.user("preview it");
    assert!(turn.text.starts_with("There is no open draft"), "{}", turn.text);
}

#[test]
fn decisions_are_acknowledged_before_anything_else() {
    let decided = |verdict, comment: Option<&str>, saved_id: Option<&str>| Decided {
        preview: PreviewId::fresh(),
        what: "workflow".into(),
        name: "Low Stock".to_owned(),
        verdict,
        comment: comment.map(str::to_owned),
        saved_id: saved_id.map(str::to_owned),
        may_be_saved: false,
    };
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    let accepted = decided(Verdict::Accept, None, Some("w9"));
    let turn = dialogue.message(UserMessage { decisions: vec![accepted], ..UserMessage::new("list rules") });
    assert_eq!(
        turn,
        Turn {
            text: "You accepted the preview: the workflow **Low Stock** is saved (id `w9`).\n\nLet me list the workflows.\n\n".to_owned(),
            calls: vec!["list_workflow_rules {}".to_owned()],
        }
    );
    dialogue
        .results(&[Ok(json!([]))])
        .says("There are no workflows yet. Try *create a workflow that alerts when stock is low*.");
    let rejected = decided(Verdict::Reject, Some("too loud"), None);
    dialogue.message(UserMessage { decisions: vec![rejected], ..UserMessage::new("hm") }).says(
        "You rejected the preview of the workflow **Low Stock**, so nothing was saved. You said: \"too loud\". Tell me what \
         should be different.",
    );
}

#[track_caller]
fn turn_calls(calls: &[String], tool: &str, input: &Value) {
    let [call] = calls else { panic!("one call expected: {calls:?}") };
    let (name, json) = call.split_once(' ').expect("a tool and its arguments");
    assert_eq!((name, &serde_json::from_str::<Value>(json).expect("JSON")), (tool, input));
}
