//! Changing a rule that exists: what is not mentioned in the change stays as it is, and what an explanation shows can be sent
//! back.

use serde_json::{Value, json};

use super::{Dialogue, RULE, backend, json_answer, small};
use crate::support::app::{ADA, LOW_STOCK};

const BRANCHING: &str = "d0000000-0000-4000-8000-000000000004";
const CHECK: &str = "d1000000-0000-4000-8000-000000000401";
const HIGH: &str = "d1000000-0000-4000-8000-000000000402";
const NORMAL: &str = "d1000000-0000-4000-8000-000000000403";

fn explain(node: &str) -> (&'static str, Value) {
    ("explain_workflow_node", json!({"workflow_id": BRANCHING, "node_name": node}))
}

/// The rule with two actions as they were explained, a third left out and a fourth that is new.
fn changed(check: &Value, high: &Value) -> Value {
    let kept = |explained: &Value| {
        let action = &explained["action"];
        json!({"id": action["id"], "name": action["name"], "description": action["description"],
               "action_type": action["action_type"], "action_config": action["action_config"], "is_active": action["is_active"]})
    };
    json!({"name": "Branching Test Workflow", "is_active": true, "entity": "sales.orders", "trigger_type": "on_create", "actions": [
        kept(check),
        kept(high),
        {"name": "Pause", "action_type": "delay", "action_config": {"duration": "1h"}, "is_active": true},
    ], "edges": [
        {"target_action_id": CHECK, "edge_type": "start", "edge_order": 0},
        {"source_action_id": CHECK, "target_action_id": HIGH, "edge_type": "sequence", "source_output": "output-true", "edge_order": 1},
        {"source_action_id": CHECK, "target_action_id": "temp:2", "edge_type": "sequence", "source_output": "output-false", "edge_order": 2},
    ]})
}

#[tokio::test]
async fn an_accepted_update_keeps_the_untouched_actions_and_switches_off_those_left_out() {
    let d = Dialogue::demo().await;
    let before = d.ask("c", &[explain("Check Amount"), explain("High Value Alert")]).await;
    let workflow = changed(before.ok(0), before.ok(1));
    let args = json!({"workflow": workflow, "description": "Pauses for small orders", "workflow_id": "Branching Test Workflow"});
    let ran = d.ask("c", &[("preview_workflow", args)]).await;
    assert_eq!(ran.ok(0)["status"], "preview_sent", "what was explained can be sent back");
    let shown = ran.previews()[0];
    assert_eq!((&shown["is_update"], &shown["workflow_id"]), (&json!(true), &json!(BRANCHING)));
    let recipients = &shown["workflow"]["actions"][1]["action_config"]["recipients"];
    assert_eq!(*recipients, json!({"users": [ADA], "roles": ["a0000000-0000-4000-8000-000000000002"]}), "ids again");
    assert_eq!(shown["workflow"]["edges"][2]["source_output"], "false");

    let (status, decided) = d.decide(&d.s.app.token, &ran.preview_id(), &json!({"decision": "accept"})).await;
    assert_eq!((status, &decided["saved_id"]), (200, &json!(BRANCHING)));
    let after = d
        .ask(
            "c",
            &[
                explain("Check Amount"),
                explain("High Value Alert"),
                ("get_workflow_rule", json!({"workflow_id": BRANCHING})),
            ],
        )
        .await;
    assert_eq!(after.ok(0)["action"], before.ok(0)["action"]);
    assert_eq!(after.ok(1), before.ok(1));
    let actions: Vec<_> = after.ok(2)["rule"]["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| (action["name"].as_str().unwrap(), action["is_active"].as_bool().unwrap()))
        .collect();
    let expected = [("Check Amount", true), ("High Value Alert", true), ("Pause", true), ("Normal Alert", false)];
    assert_eq!(actions, expected);
    assert_eq!(after.ok(2)["rule"]["actions"][3]["id"], NORMAL);
}

#[tokio::test]
async fn update_workflow_says_whether_exactly_this_change_was_accepted() {
    let d = Dialogue::demo().await;
    let before = d.ask("c", &[explain("Check Amount"), explain("High Value Alert")]).await;
    let workflow = changed(before.ok(0), before.ok(1));
    let update = |id: &str, workflow: &Value| ("update_workflow", json!({"workflow_id": id, "workflow": workflow}));
    let args = json!({"workflow": workflow, "description": "d", "workflow_id": BRANCHING});
    let ran = d.ask("c", &[("preview_workflow", args), update(BRANCHING, &workflow)]).await;
    assert!(ran.error(1).starts_with("nothing was saved"), "previewed is not accepted");
    d.decide(&d.s.app.token, &ran.preview_id(), &json!({"decision": "accept"})).await;

    let mut other = workflow.clone();
    other["actions"][2]["action_config"]["duration"] = json!("2h");
    let calls = [
        update("branching test workflow", &workflow),
        update(BRANCHING, &other),
        update(LOW_STOCK, &workflow),
        ("create_workflow", json!({ "workflow": workflow })),
    ];
    let ran = d.ask("c", &calls).await;
    assert_eq!((&ran.ok(0)["status"], &ran.ok(0)["workflow_id"]), (&json!("already_saved"), &json!(BRANCHING)));
    for (call, reason) in [(1, "another change"), (2, "another rule"), (3, "no update")] {
        assert!(ran.error(call).starts_with("nothing was saved"), "{reason}");
    }
    let ran = d.ask("elsewhere", &[update(BRANCHING, &workflow)]).await;
    assert!(ran.error(0).starts_with("nothing was saved"), "another conversation");
}

#[tokio::test]
async fn a_rule_that_cannot_be_changed_says_why() {
    let d = Dialogue::demo().await;
    let mut foreign = small("W");
    foreign["actions"][0]["id"] = json!(CHECK);
    let calls = [
        ("preview_workflow", json!({"workflow": small("W"), "description": "d", "workflow_id": "Audit User Changes"})),
        ("preview_workflow", json!({"workflow": foreign, "description": "d", "workflow_id": LOW_STOCK})),
    ];
    let ran = d.ask("c", &calls).await;
    assert!(ran.error(0).contains("came with the product and cannot be changed"), "{}", ran.error(0));
    assert!(ran.error(0).contains("if it gives no other reason"), "administrators are refused too: {}", ran.error(0));
    assert!(ran.error(1).contains("does not belong to this rule"), "{}", ran.error(1));
    assert_eq!(ran.previews(), [] as [&Value; 0]);
}

#[tokio::test]
async fn the_canvas_that_the_model_never_sees_stays() {
    let mut moved = small("W");
    moved["canvas_layout"] = json!({"zoom": 1});
    let update =
        |workflow: Value| ("preview_workflow", json!({"workflow": workflow, "description": "d", "workflow_id": RULE}));
    let backend = backend(|request| {
        let is_save = request.path == format!("/v1/workflow/rules/{RULE}/full");
        is_save.then(|| json_answer(&json!({"id": RULE})))
    })
    .await;
    let d = Dialogue::over(&backend).await;
    let ran = d
        .ask(
            "c",
            &[
                update(moved),
                update(small("W")),
                ("preview_workflow", json!({"workflow": small("W"), "description": "d"})),
            ],
        )
        .await;
    let layouts: Vec<Option<&Value>> =
        ran.previews().iter().map(|preview| preview["workflow"].get("canvas_layout")).collect();
    assert_eq!(layouts, [Some(&json!({"zoom": 1})), Some(&json!({"zoom": 2})), None], "given, kept, none");

    // The newer of two takes the other one's place.
    let kept = ran.previews()[1]["preview_id"].as_str().unwrap();
    assert_eq!(d.decide(&d.s.app.token, kept, &json!({"decision": "accept"})).await.0, 200);
    assert_eq!(backend.requests().last().unwrap().json()["canvas_layout"], json!({"zoom": 2}));
    let ran = d.ask("c", &[("update_workflow", json!({"workflow_id": RULE, "workflow": small("W")}))]).await;
    assert_eq!(ran.ok(0)["status"], "already_saved", "the model need not know of the canvas");
}

#[tokio::test]
async fn an_update_keeps_what_it_does_not_mention() {
    let conditions = json!({"field_conditions": [{"field_name": "amount", "operator": "is_not_null"}]});
    let action = json!({"id": CHECK, "name": "Wait", "description": "half an hour", "action_type": "delay",
                        "action_config": {"duration": "30m"}, "is_active": true});
    let rule = json!({"id": RULE, "name": "Night Shift", "description": "at night", "trigger_conditions": conditions});
    let saved =
        [(format!("/v1/workflow/rules/{RULE}"), rule), (format!("/v1/workflow/rules/{RULE}/actions"), json!([action]))];
    let backend = backend(move |request| {
        if request.path == format!("/v1/workflow/rules/{RULE}/full") {
            return Some(json_answer(&json!({"id": RULE})));
        }
        saved.iter().find(|(path, _)| *path == request.path).map(|(_, body)| json_answer(body))
    })
    .await;
    let mut brief = small("Night Shift");
    brief["actions"] = json!([{"id": CHECK, "name": "Wait Longer", "action_type": "delay", "is_active": true}]);
    let mut clearing = brief.clone();
    clearing["description"] = json!(null);
    clearing["trigger_conditions"] = json!(null);
    clearing["actions"][0]["description"] = json!(null);
    let preview =
        |workflow: &Value| ("preview_workflow", json!({"workflow": workflow, "description": "d", "workflow_id": RULE}));
    let update = |workflow: &Value| ("update_workflow", json!({"workflow_id": RULE, "workflow": workflow}));

    let d = Dialogue::over(&backend).await;
    let ran = d.ask("c", &[preview(&clearing), preview(&brief)]).await;
    let kept = &ran.previews()[1]["workflow"];
    assert_eq!((&kept["description"], &kept["trigger_conditions"]), (&json!("at night"), &conditions));
    assert_eq!(
        kept["actions"],
        json!([{"id": CHECK, "name": "Wait Longer", "description": "half an hour", "action_type": "delay",
                "action_config": {"duration": "30m"}, "is_active": true}])
    );
    let cleared = &ran.previews()[0]["workflow"];
    assert_eq!((cleared.get("description"), cleared.get("trigger_conditions")), (None, None));
    assert_eq!(cleared["actions"][0].get("description"), None);

    let id = ran.previews()[1]["preview_id"].as_str().unwrap();
    assert_eq!(d.decide(&d.s.app.token, id, &json!({"decision": "accept"})).await.0, 200);
    let ran = d.ask("c", &[update(&brief), update(&clearing)]).await;
    assert_eq!(ran.ok(0)["status"], "already_saved", "what was kept need not be repeated");
    assert!(ran.error(1).starts_with("nothing was saved"), "clearing is another change");
}

#[tokio::test]
async fn a_rule_without_a_canvas_gets_none() {
    let backend = backend(|request| {
        let is_rule = request.path == format!("/v1/workflow/rules/{RULE}");
        is_rule.then(|| json_answer(&json!({"id": RULE, "name": "Night Shift", "canvas_layout": null})))
    })
    .await;
    let calls = [("preview_workflow", json!({"workflow": small("W"), "description": "d", "workflow_id": RULE}))];
    let ran = Dialogue::over(&backend).await.ask("c", &calls).await;
    assert_eq!(ran.previews()[0]["workflow"].get("canvas_layout"), None);
}

#[tokio::test]
async fn a_preview_that_waits_is_read_with_the_rule_as_it_is() {
    let d = Dialogue::demo().await;
    let before = d.ask("c", &[explain("Check Amount"), explain("High Value Alert")]).await;
    let workflow = changed(before.ok(0), before.ok(1));
    let args = json!({"workflow": workflow, "description": "d", "workflow_id": BRANCHING});
    let ran = d.ask("c", &[("preview_workflow", args)]).await;
    let (token, id) = (d.s.app.token.clone(), ran.preview_id());
    let body = &ran.previews()[0]["workflow"];
    let (status, waiting) = d.waiting(&token, &id).await;

    let seeds: Value = serde_json::from_str(include_str!("../../../../config/demo/rules.json")).unwrap();
    let seed = seeds.as_array().unwrap().iter().find(|rule| rule["id"] == BRANCHING).unwrap();
    // The demo backend keeps a configuration with its type in it.
    let mut actions = seed["actions"].clone();
    for action in actions.as_array_mut().unwrap() {
        action["action_config"]["action_type"] = action["action_type"].clone();
    }
    let edge = |source: &str, target: &str, output: &str, order: u32| json!({"source_action_id": source, "target_action_id": target, "edge_type": "sequence", "source_output": output, "edge_order": order});
    let current = json!({
        "name": seed["name"],
        "description": seed["description"],
        "is_active": true,
        "entity_id": body["entity_id"],
        "trigger_type_id": body["trigger_type_id"],
        "actions": actions,
        "edges": [
            {"target_action_id": CHECK, "edge_type": "start", "edge_order": 0},
            edge(CHECK, HIGH, "true", 1),
            edge(CHECK, NORMAL, "false", 2),
        ],
    });
    let expected = json!({
        "preview_id": id,
        "state": "waiting",
        "conversation_id": "c",
        "what": "workflow",
        "name": "Branching Test Workflow",
        "existing_id": BRANCHING,
        "body": body,
        "current": current,
        "created_at": waiting["created_at"],
        "expires_at": waiting["expires_at"],
    });
    assert_eq!((status, &waiting), (200, &expected));

    let ben = d.s.app.token_of(super::BEN, None, &["ADMIN"]);
    for (token, id, reason) in [(&ben, &*id, "another user"), (&token, "x", "no id"), (&token, BRANCHING, "no preview")]
    {
        let (status, problem) = d.waiting(token, id).await;
        assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "{reason}");
    }
    d.decide(&token, &id, &json!({"decision": "reject"})).await;
    assert_eq!(d.waiting(&token, &id).await.0, 404, "decided");
}

#[tokio::test]
async fn a_new_rule_and_one_whose_edges_cannot_be_read_have_nothing_to_be_compared_with() {
    let backend = backend(|request| {
        let is_edges = request.path == format!("/v1/workflow/rules/{RULE}/edges");
        is_edges.then(|| super::refusal(500, "no edges today"))
    })
    .await;
    let d = Dialogue::over(&backend).await;
    for (conversation, rule, reason) in [("new", None, "a new rule"), ("known", Some(RULE), "no edges")] {
        let mut args = json!({"workflow": small("W"), "description": "d"});
        if let Some(rule) = rule {
            args["workflow_id"] = json!(rule);
        }
        let ran = d.ask(conversation, &[("preview_workflow", args)]).await;
        let (status, waiting) = d.waiting(&d.s.app.token, &ran.preview_id()).await;
        assert_eq!((status, waiting.get("current")), (200, None), "{reason}");
    }
}
