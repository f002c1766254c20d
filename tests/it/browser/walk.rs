//! The page as a newcomer walks through it: the product with the demo model and the demo backend, in a browser. The pictures of the
//! main states are in `target/page-screenshots`, and in `docs/page` too where `SWITCHBOARD_UPDATE_SCREENSHOTS=1`; those of
//! plans and changed files are made by `tests/peers/frontends/page/pictures.mjs`.

use std::path::Path;

use serde_json::json;

use super::see;

#[tokio::test]
async fn a_newcomer_walks_through_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("target/page-screenshots").display().to_string()];
    if std::env::var("SWITCHBOARD_UPDATE_SCREENSHOTS").is_ok_and(|value| value == "1") {
        folders.push(root.join("docs/page").display().to_string());
    }
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let Some(seen) = see("walk.mjs", &folders).await else { return };
    for (state, expected) in [
        (
            "workflow",
            json!({
                "starters": [
                    "Which rules do we have?",
                    "What does this workflow do?",
                    "Add an email to ben@example.com after Notify Warehouse Team",
                    "Create a workflow that alerts when quantity of inventory.inventory_items is less than 10"
                ],
                "explained": {
                    "calls": [
                        "get_workflow_rule: done"
                    ],
                    "says": true
                },
                "preview": {
                    "calls": [
                        "get_workflow_rule: done",
                        "preview_workflow: done"
                    ],
                    "title": "Change to the workflow: Low Stock Alert",
                    "steps": [
                        "Check Stock Level, evaluate_condition",
                        "Notify Warehouse Team, create_alert",
                        "Record Stock Check, log_audit_entry",
                        "Send Email, send_email, added"
                    ],
                    "changes": [
                        "+ Step “Send Email” (send_email) is added",
                        "+ The connection from “Notify Warehouse Team” on “success” to “Send Email” is added"
                    ],
                    "isCompared": true,
                    "waiting": "1 waiting for a decision"
                },
                "tooWide": [],
                "accepted": {
                    "said": "You accepted this; it is saved.",
                    "after": "It has 4 steps and 1 branch point.",
                    "hasStep": true
                }
            }),
        ),
        (
            "reload",
            json!({
                "state": "live",
                "goesOn": true,
                "question": "Explain this workflow, list my alerts and list the rules",
                "parts": [
                    1,
                    1,
                    1,
                    1
                ]
            }),
        ),
        (
            "stop",
            json!({
                "isWhole": false,
                "end": "Stopped. Continue Retry",
                "button": "Send"
            }),
        ),
        (
            "approval",
            json!({
                "calls": [
                    "archive_stream: waiting"
                ],
                "title": "Archive Gene editing?",
                "arguments": "stream_id 124",
                "said": "Approved.",
                "done": [
                    "archive_stream: done"
                ],
                "answer": "Gene editing id: 124 is archived: yes"
            }),
        ),
        (
            "table",
            json!({
                "title": "Change to the table: inventory_table",
                "columns": [
                    "Id",
                    "On hand ↑",
                    "Reserved",
                    "Reorder point",
                    "Last change",
                    "Product",
                    "SKU",
                    "Available"
                ],
                "changes": [
                    "~ Column “On hand”: header: “In stock” → “On hand”",
                    "~ Column “Reserved”: hidden: true added"
                ],
                "said": "You rejected this; nothing was saved.",
                "isTold": true,
                "isKept": true
            }),
        ),
        ("search", json!({"title": "What does this workflow do?", "note": "1 conversation"})),
        (
            "diagram",
            json!({
                "alt": "Diagram: yes, no, Order placed, In stock?, Reserve items, Order from supplier, Tell the customer, Warehouse, Shipped",
                "isCode": true
            }),
        ),
        ("wrong", json!([])),
    ] {
        assert_eq!(seen[state], expected, "{state}");
    }
}
