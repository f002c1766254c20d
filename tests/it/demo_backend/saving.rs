//! Full saves: what is asked for is what can be read afterwards.

use serde_json::{Value, json};

use super::{ADA, Backend, LOW_STOCK, NOW, NOWHERE, pluck, refused};

const FULL: &str = "/v1/workflow/rules/full";

fn alert(name: &str) -> Value {
    json!({
        "name": name,
        "description": "",
        "action_type": "create_alert",
        "action_config": { "alert_type": "t", "severity": "low", "title": "t", "message": "m" },
        "is_active": true,
    })
}

/// Two alerts in a row on customers.
async fn two_alerts(backend: &Backend) -> Value {
    let entity = backend.id_of("/v1/workflow/entities", "name", "customers").await;
    let trigger = backend.id_of("/v1/workflow/trigger-types", "name", "on_delete").await;
    json!({
        "name": "Farewell",
        "description": "Says goodbye twice",
        "is_active": true,
        "entity_id": entity,
        "trigger_type_id": trigger,
        "trigger_conditions": { "field_conditions": [] },
        "canvas_layout": { "zoom": 2 },
        "actions": [alert("First"), alert("Second")],
        "edges": [
            { "source_action_id": "", "target_action_id": "temp:0", "edge_type": "start", "edge_order": 0 },
            { "source_action_id": "temp:0", "target_action_id": "temp:1", "edge_type": "always", "edge_order": 1 },
        ],
    })
}

async fn saved(backend: &Backend) -> Value {
    let (status, rule) = backend.post("ada", FULL, &two_alerts(backend).await).await;
    assert_eq!(status, 200, "{rule}");
    rule
}

fn path(rule: &Value) -> String {
    format!("/v1/workflow/rules/{}", rule["id"].as_str().expect("an id"))
}

#[tokio::test]
async fn a_new_rule_answers_with_the_ids_it_was_given_and_can_be_read() {
    let backend = Backend::start().await;
    let asked = two_alerts(&backend).await;
    let answer = saved(&backend).await;
    for key in
        ["name", "description", "is_active", "entity_id", "trigger_type_id", "trigger_conditions", "canvas_layout"]
    {
        assert_eq!(answer[key], asked[key], "{key}");
    }
    let [first, second] = [0, 1].map(|index| answer["actions"][index]["id"].clone());
    assert_eq!(
        answer["edges"],
        json!([
            {
                "id": answer["edges"][0]["id"], "source_action_id": "", "target_action_id": first,
                "edge_type": "start", "edge_order": 0,
            },
            {
                "id": answer["edges"][1]["id"], "source_action_id": first, "target_action_id": second,
                "edge_type": "always", "edge_order": 1,
            },
        ])
    );
    assert_eq!(answer["actions"][0]["action_config"]["action_type"], "create_alert");

    let rule = backend.read(&path(&answer)).await;
    assert_eq!(rule["actions"], answer["actions"]);
    let dates = (&rule["created_by"], &rule["updated_by"], &rule["created_date"], &rule["updated_date"]);
    assert_eq!(dates, (&json!(ADA), &json!(ADA), &json!(NOW), &json!(NOW)));
    let page = backend.read("/v1/workflow/rules?rows=1").await;
    assert_eq!((&page["items"][0]["name"], &page["total"]), (&json!("Farewell"), &json!(15)));
}

#[tokio::test]
async fn an_update_matches_actions_by_id_and_deactivates_what_it_leaves_out() {
    let backend = Backend::start().await;
    let old = saved(&backend).await;
    let mut change = two_alerts(&backend).await;
    change["name"] = json!("Long Farewell");
    change["actions"] = json!([alert("Third"), alert("Second, renamed")]);
    change["actions"][1]["id"] = old["actions"][1]["id"].clone();
    change["edges"][1] = json!({
        "source_action_id": "temp:0", "target_action_id": old["actions"][1]["id"], "edge_type": "sequence",
    });
    let (status, new) = backend.put("ada", &format!("{}/full", path(&old)), &change).await;
    assert_eq!(status, 200, "{new}");

    let actions = backend.read(&format!("{}/actions", path(&old))).await;
    assert_eq!(pluck(&actions, "name"), ["Third", "Second, renamed", "First"]);
    assert_eq!((&actions[1]["id"], &actions[2]["id"]), (&old["actions"][1]["id"], &old["actions"][0]["id"]));
    let active: Vec<&Value> = actions.as_array().unwrap().iter().map(|action| &action["is_active"]).collect();
    assert_eq!(active, [true, true, false]);
    let edges = backend.read(&format!("{}/edges", path(&old))).await;
    assert_eq!(edges[1]["target_action_id"], old["actions"][1]["id"]);
    assert_eq!(edges.as_array().unwrap().len(), 2);
    assert_ne!(edges[0]["id"], old["edges"][0]["id"], "edges are made anew");

    let mut read = backend.read(&path(&old)).await;
    read["edges"] = edges;
    let (status, again) = backend.put("ada", &format!("{}/full", path(&old)), &read).await;
    assert_eq!((status, &again["actions"]), (200, &actions), "what is read can be saved, inactive actions included");
}

#[tokio::test]
async fn a_deactivated_rule_is_still_found_and_one_without_actions_cannot_run() {
    let backend = Backend::start().await;
    let rule = saved(&backend).await;
    let mut change = two_alerts(&backend).await;
    change["is_active"] = json!(false);
    assert_eq!(backend.put("ada", &format!("{}/full", path(&rule)), &change).await.0, 200);
    assert_eq!(backend.read(&path(&rule)).await["is_active"], false);
    assert_eq!(backend.read("/v1/workflow/rules?is_active=false").await["total"], 2);

    change["is_active"] = json!(true);
    change["actions"] = json!([]);
    change["edges"] = json!([]);
    let (status, empty) = backend.post("ada", FULL, &change).await;
    assert_eq!((status, &empty["is_active"]), (200, &json!(false)));
}

#[tokio::test]
async fn a_save_that_may_not_or_cannot_be_is_refused() {
    let backend = Backend::start().await;
    let good = two_alerts(&backend).await;
    let with = |key: &str, value: Value| {
        let mut body = good.clone();
        body[key] = value;
        body
    };
    let answer = backend.post("ben", FULL, &good).await;
    assert_eq!(answer, (403, refused("permission_denied", "this needs the role ADMIN")));
    let answer = backend.post("ben", &format!("{FULL}?dry_run=false"), &good).await;
    assert_eq!(answer.0, 403);
    assert_eq!(backend.post("ben", &format!("{FULL}?dry_run=please"), &good).await.0, 400);
    let answer = backend.post("ada", FULL, &with("entity_id", json!(NOWHERE))).await;
    assert_eq!(answer, (404, refused("not_found", "entity not found")));
    let answer = backend.post("ada", FULL, &with("trigger_type_id", json!(NOWHERE))).await;
    assert_eq!(answer, (404, refused("not_found", "trigger type not found")));
    let answer = backend.post("ada", FULL, &with("edges", json!([]))).await;
    let problem = "graph: the actions are not connected: edges are required";
    assert_eq!(answer, (400, refused("invalid_argument", problem)));

    let low_stock = format!("/v1/workflow/rules/{LOW_STOCK}/full");
    assert_eq!(backend.put("ben", &low_stock, &good).await.0, 403);
    let answer = backend.put("ada", &format!("/v1/workflow/rules/{NOWHERE}/full"), &good).await;
    assert_eq!(answer, (404, refused("not_found", "rule not found")));
    let mut foreign = good.clone();
    foreign["actions"][0]["id"] = json!(NOWHERE);
    for query in ["", "?dry_run=true"] {
        let answer = backend.put("ada", &format!("{low_stock}{query}"), &foreign).await;
        let problem = format!("action {NOWHERE} does not belong to this rule");
        assert_eq!(answer, (400, refused("invalid_argument", &problem)), "{query}");
    }
    assert_eq!(backend.read("/v1/workflow/rules?rows=1").await["total"], 14, "nothing was saved");
}

#[tokio::test]
async fn a_default_rule_cannot_be_changed_but_copied() {
    let backend = Backend::start().await;
    let page = backend.read("/v1/workflow/rules?name=Audit").await;
    let rule = &page["items"][0];
    assert_eq!(rule["is_default"], true);
    for query in ["", "?dry_run=true"] {
        let answer = backend.put("ada", &format!("{}/full{query}", path(rule)), &two_alerts(&backend).await).await;
        assert_eq!((answer.0, &answer.1["code"]), (403, &json!("permission_denied")), "{query}");
    }

    let duplicate = format!("{}/duplicate", path(rule));
    assert_eq!(backend.post("ben", &duplicate, &json!({})).await.0, 403);
    let (status, copy) = backend.post("ada", &duplicate, &json!({})).await;
    assert_eq!((status, &copy["name"]), (200, &json!("Audit User Changes-DUPLICATE")));
    assert_eq!((&copy["is_active"], &copy["created_date"]), (&json!(false), &json!(NOW)));
    assert_eq!(copy["edges"][0]["target_action_id"], copy["actions"][0]["id"]);
    let original = backend.read(&format!("{}/actions", path(rule))).await;
    assert_ne!(copy["actions"][0]["id"], original[0]["id"]);
    assert_eq!(backend.put("ada", &format!("{}/full", path(&copy)), &two_alerts(&backend).await).await.0, 200);
    assert_eq!(backend.post("ada", &format!("/v1/workflow/rules/{NOWHERE}/duplicate"), &json!({})).await.0, 404);
}

#[tokio::test]
async fn every_seeded_rule_can_be_saved_again_as_it_is_read() {
    let backend = Backend::start().await;
    let page = backend.read("/v1/workflow/rules?rows=100").await;
    for rule in page["items"].as_array().unwrap() {
        let mut body = backend.read(&path(rule)).await;
        let edges = backend.read(&format!("{}/edges", path(rule))).await;
        body["edges"] = edges.clone();
        if rule["is_default"] == true {
            continue;
        }
        let (status, answer) = backend.put("ada", &format!("{}/full", path(rule)), &body).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["actions"], body["actions"], "{}", rule["name"]);
        assert_eq!(pluck(&answer["edges"], "target_action_id"), pluck(&edges, "target_action_id"));
        let after = backend.read(&path(rule)).await;
        assert_eq!((&after["created_by"], &after["created_date"]), (&rule["created_by"], &rule["created_date"]));
        assert_eq!((&after["updated_by"], &after["updated_date"]), (&json!(ADA), &json!(NOW)));
    }
}

#[tokio::test]
async fn bounds_hold_for_the_number_of_rules_and_the_size_of_one() {
    let backend = Backend::start().await;
    let rule = saved(&backend).await;
    let mut large = two_alerts(&backend).await;
    large["actions"][0]["action_config"]["context"] = json!({ "text": "x".repeat(700_000) });
    let full = format!("{}/full", path(&rule));
    assert_eq!(backend.put("ada", &full, &large).await.0, 200);
    let answer = backend.put("ada", &full, &large).await;
    let problem = "the rule, deactivated actions included, has become too large";
    assert_eq!(answer, (409, refused("aborted", problem)));

    let small = two_alerts(&backend).await;
    for _ in 15..1000 {
        assert_eq!(backend.post("ada", FULL, &small).await.0, 200);
    }
    assert_eq!(backend.post("ada", FULL, &small).await, (409, refused("aborted", "there are already 1000 rules")));
    let copy = backend.post("ada", &format!("{}/duplicate", path(&rule)), &json!({})).await;
    assert_eq!(copy, (409, refused("aborted", "there are already 1000 rules")));
}
