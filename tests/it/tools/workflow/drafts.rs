//! Drafts: built over several messages of one conversation, seen by nobody else, and checked at every step.

use serde_json::{Value, json};

use super::{BEN, Dialogue};
use crate::support::app::{ADA, LOW_STOCK};

const ORDERS: &str = "e0000000-0000-4000-8000-000000000025";

fn start() -> (&'static str, Value) {
    let conditions = json!({"field_conditions": [{"field_name": "amount", "operator": "is_not_null"}]});
    (
        "start_draft",
        json!({"name": "Order Watch", "entity": "sales.orders", "trigger_type": "on_create",
                           "description": "Looks at orders", "trigger_conditions": conditions}),
    )
}

fn add(draft: &str, name: &str, action_type: &str, after: Option<&str>) -> (&'static str, Value) {
    let config = match action_type {
        "evaluate_condition" => {
            json!({"conditions": [{"field_name": "amount", "operator": "greater_than", "value": 1000}]})
        }
        _ => json!({"duration": "30m"}),
    };
    let mut args = json!({"draft_id": draft, "name": name, "action_type": action_type, "action_config": config});
    if let Some(after) = after {
        args["after"] = json!(after);
    }
    ("add_draft_action", args)
}

fn remove(draft: &str, name: &str) -> (&'static str, Value) {
    ("remove_draft_action", json!({"draft_id": draft, "action_name": name}))
}

fn preview(draft: &str) -> (&'static str, Value) {
    ("preview_draft", json!({"draft_id": draft, "description": "Watches orders"}))
}

async fn started(d: &Dialogue, conversation: &str) -> String {
    let ran = d.ask(conversation, &[start()]).await;
    ran.ok(0)["draft_id"].as_str().unwrap().to_owned()
}

fn edge(source: &str, target: &str, port: &str, order: u32) -> Value {
    json!({"source_action_id": source, "target_action_id": target, "edge_type": "sequence", "source_output": port, "edge_order": order})
}

#[tokio::test]
async fn a_draft_grows_over_the_messages_of_its_conversation() {
    let d = Dialogue::demo().await;
    let ran = d.ask("c", &[start()]).await;
    let draft = ran.ok(0)["draft_id"].as_str().unwrap().to_owned();
    assert_eq!(ran.ok(0)["status"], "draft_created");

    let ran = d.ask("c", &[add(&draft, "Check", "evaluate_condition", None)]).await;
    let added = ran.ok(0);
    assert_eq!(
        (&added["status"], &added["action_name"], &added["action_index"]),
        (&json!("action_added"), &json!("Check"), &json!(0))
    );
    assert_eq!(added["output_ports"], json!(["true", "false"]));

    let two =
        [add(&draft, "Wait", "delay", Some("Check:output-true")), add(&draft, "Wait Longer", "delay", Some("Wait"))];
    let ran = d.ask("c", &two).await;
    assert_eq!((&ran.ok(0)["action_index"], &ran.ok(1)["action_index"]), (&json!(1), &json!(2)), "two in one turn");

    let ran = d.ask("c", &[preview(&draft)]).await;
    assert_eq!(ran.ok(0)["status"], "preview_sent");
    let action = |name: &str, kind: &str| {
        let (_, args) = add("", name, kind, None);
        json!({"name": name, "action_type": kind, "action_config": args["action_config"], "is_active": true})
    };
    let expected = json!({
        "description": "Watches orders",
        "workflow": {
            "name": "Order Watch",
            "description": "Looks at orders",
            "trigger_conditions": {"field_conditions": [{"field_name": "amount", "operator": "is_not_null"}]},
            "is_active": true,
            "entity_id": ORDERS,
            "trigger_type_id": "b0000000-0000-4000-8000-000000000001",
            "actions": [action("Check", "evaluate_condition"), action("Wait", "delay"), action("Wait Longer", "delay")],
            "edges": [
                {"target_action_id": "temp:0", "edge_type": "start", "edge_order": 0},
                edge("temp:0", "temp:1", "true", 1),
                edge("temp:1", "temp:2", "success", 2),
            ],
        },
        "is_update": false,
        "preview_id": ran.preview_id(),
    });
    assert_eq!(ran.previews(), [&expected]);

    let ran = d.ask("c", &[add(&draft, "Once More", "delay", Some("Check:false")), preview(&draft)]).await;
    assert_eq!(ran.previews()[0]["workflow"]["actions"].as_array().unwrap().len(), 4, "a previewed draft can go on");
}

#[tokio::test]
async fn a_draft_survives_a_restart() {
    let d = Dialogue::demo().await;
    let draft = started(&d, "c").await;
    let ran = d.ask("c", &[add(&draft, "Wait", "delay", None)]).await;
    assert_eq!(ran.ok(0)["action_index"], 0);
    let d = d.restarted().await;
    let ran = d.ask("c", &[add(&draft, "Wait Longer", "delay", Some("Wait")), preview(&draft)]).await;
    assert_eq!(ran.ok(0)["action_index"], 1);
    assert_eq!(ran.previews().len(), 1);
}

#[tokio::test]
async fn a_draft_is_seen_by_its_user_in_its_conversation_only() {
    let d = Dialogue::demo().await;
    let draft = started(&d, "c").await;
    let calls = [add(&draft, "Wait", "delay", None), remove(&draft, "Wait"), preview(&draft)];
    let app = &d.s.app;
    let rows = [
        (app.token.clone(), "another", "another conversation"),
        (app.token_of(BEN, None, &["USER", "ADMIN"]), "c", "another user in a conversation of the same name"),
        (app.token_of(ADA, Some("elsewhere"), &["USER"]), "c", "the same user id of another tenant"),
    ];
    for (token, conversation, reason) in rows {
        let ran = d.ask_as(&token, conversation, json!({}), &calls).await;
        for call in 0..3 {
            let expected = format!("draft {draft:?} not found or expired; begin a new one with start_draft");
            assert_eq!(ran.error(call), expected, "{reason}");
        }
    }
    let ran = d.ask("c", &calls[..1]).await;
    assert_eq!(ran.ok(0)["action_index"], 0, "its own user still has it, untouched");
}

#[tokio::test]
async fn the_actions_after_a_removed_one_follow_its_predecessor() {
    let d = Dialogue::demo().await;
    let draft = started(&d, "c").await;
    let calls = [
        add(&draft, "Check", "evaluate_condition", None),
        add(&draft, "Middle", "delay", Some("Check:false")),
        add(&draft, "Last", "delay", Some("Middle")),
        remove(&draft, "Middle"),
        preview(&draft),
    ];
    let ran = d.ask("c", &calls).await;
    assert_eq!(
        *ran.ok(3),
        json!({"status": "action_removed", "message": "Action \"Middle\" removed. \"Last\" is now after \"Check:false\"."})
    );
    let edges = &ran.previews()[0]["workflow"]["edges"];
    assert_eq!(edges[1], edge("temp:0", "temp:1", "false", 1));

    let ran = d.ask("c", &[remove(&draft, "Check"), preview(&draft), remove(&draft, "Last"), preview(&draft)]).await;
    assert_eq!(ran.ok(0)["message"], "Action \"Check\" removed. \"Last\" now starts the workflow.");
    assert_eq!(ran.previews()[0]["workflow"]["actions"].as_array().unwrap().len(), 1);
    assert_eq!(ran.ok(2)["message"], "Action \"Last\" removed.");
    assert_eq!(ran.error(3), "the draft has no actions; add one with add_draft_action first");
}

#[tokio::test]
async fn a_step_that_does_not_fit_is_refused_and_leaves_the_draft_as_it_was() {
    let d = Dialogue::demo().await;
    let draft = started(&d, "c").await;
    let rows: [((&str, Value), &str); 8] = [
        (add(&draft, "A", "delay", Some("B")), "`after` refers to \"B\", which is not in the draft; its actions: none"),
        (
            add(&draft, "A", "call_webhook", None),
            "unknown action_type \"call_webhook\"; the types are: \"allocate_inventory\"",
        ),
        (add(&draft, " ", "delay", None), "bad params: name is required"),
        (add(&draft, "First", "evaluate_condition", None), ""),
        (
            add(&draft, "First", "delay", Some("First")),
            "the draft already has an action \"First\"; choose another name",
        ),
        (
            add(&draft, "A", "delay", Some("First:success")),
            "action \"First\" has no port \"success\"; its ports: \"true\", \"false\"",
        ),
        (add(&draft, "A", "delay", None), "action \"A\" needs `after`: the draft already starts with \"First\""),
        (remove(&draft, "Second"), "no action \"Second\" in the draft; its actions: \"First\""),
    ];
    let calls: Vec<(&str, Value)> = rows.iter().map(|(call, _)| call.clone()).collect();
    let ran = d.ask("c", &calls).await;
    for (n, (call, expected)) in rows.iter().enumerate() {
        match expected.is_empty() {
            true => assert_eq!(ran.ok(n)["status"], "action_added"),
            false => assert!(ran.error(n).starts_with(expected), "{call:?}: {}", ran.error(n)),
        }
    }
    let ran = d.ask("c", &[preview(&draft)]).await;
    assert_eq!(ran.previews()[0]["workflow"]["actions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_later_action_takes_no_edge_by_its_name() {
    let d = Dialogue::demo().await;
    let draft = started(&d, "c").await;
    let calls = [
        add(&draft, "Check", "evaluate_condition", None),
        add(&draft, "High", "delay", Some("Check:true")),
        add(&draft, "Check:true", "delay", Some("Check:false")),
        preview(&draft),
    ];
    let ran = d.ask("c", &calls).await;
    let edges = &ran.previews()[0]["workflow"]["edges"];
    assert_eq!(edges[1], edge("temp:0", "temp:1", "true", 1));
    assert_eq!(edges[2], edge("temp:0", "temp:2", "false", 2));
}

#[tokio::test]
async fn a_draft_that_is_not_valid_comes_back_assembled_with_its_errors() {
    let d = Dialogue::demo().await;
    let draft = started(&d, "c").await;
    let (tool, mut args) = add(&draft, "Wait", "delay", None);
    args["action_config"] = json!({});
    let ran = d.ask("c", &[(tool, args), preview(&draft)]).await;
    let verdict = ran.ok(1);
    assert_eq!(
        (&verdict["valid"], &verdict["errors"]),
        (&json!(false), &json!(["action config: action[0] (Wait): duration is required"]))
    );
    assert_eq!(verdict["workflow"]["entity_id"], ORDERS);
    assert_eq!(ran.previews(), [] as [&Value; 0]);
}

#[tokio::test]
async fn a_draft_is_never_an_update_of_what_is_open() {
    let d = Dialogue::demo().await;
    let draft = started(&d, "c").await;
    let calls = [add(&draft, "Wait", "delay", None), preview(&draft)];
    let ran = d.ask_as(&d.s.app.token, "c", json!({"workflow_id": LOW_STOCK}), &calls).await;
    assert_eq!((&ran.previews()[0]["is_update"], ran.previews()[0].get("workflow_id")), (&json!(false), None));
}

#[tokio::test]
async fn a_user_has_twenty_drafts() {
    let d = Dialogue::demo().await;
    let named = |n: u32| {
        let (tool, mut args) = start();
        args["name"] = json!(format!("Draft {n}"));
        (tool, args)
    };
    let calls: Vec<_> = (0..21).map(named).collect();
    let ran = d.ask("c", &calls).await;
    assert!((0..20).all(|call| ran.ok(call)["status"] == "draft_created"));
    assert_eq!(ran.error(20), "too many drafts are open; each ends ten minutes after its last use");
}
