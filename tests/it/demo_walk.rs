//! The built-in defaults as a newcomer walks through them: the demo model, the demo backend, one message after another.

use serde_json::{Value, json};

use crate::support::app::{LOW_STOCK, TestApp};
use crate::support::frames::{self, Frame};

/// `inventory_table` of the demo backend.
const INVENTORY: &str = "99000000-0000-4000-8000-000000000002";

/// One conversation with the demo model on one screen.
struct Walk<'a> {
    app: &'a TestApp,
    conversation: &'a str,
    context_type: &'a str,
    context: Value,
}

/// What a message came to.
struct Heard {
    frames: Vec<Frame>,
    text: String,
}

impl<'a> Walk<'a> {
    fn on(app: &'a TestApp, conversation: &'a str, context_type: &'a str, context: Value) -> Self {
        Self { app, conversation, context_type, context }
    }

    /// Says `message`. Every answer ends well, has words, and its tools all succeed.
    async fn say(&self, message: &str) -> Heard {
        let body = json!({
            "message": message, "context_type": self.context_type, "context": self.context,
            "conversation_id": self.conversation
        });
        let frames = self.app.chat(&body).await;
        let names = frames::names(&frames);
        assert_eq!((names.first(), names.last()), (Some(&"message_start"), Some(&"message_complete")), "{message}");
        let failed = frames.iter().find(|f| f.event == "tool_call_result" && f.data["is_error"] != false);
        assert_eq!(failed, None, "{message}");
        let text = frames::text(&frames);
        assert!(!text.trim().is_empty() && !text.contains("That did not work"), "{message}: {text}");
        Heard { frames, text }
    }
}

impl Heard {
    /// The tools that ran.
    fn tools(&self) -> Vec<&str> {
        let results = self.frames.iter().filter(|frame| frame.event == "tool_call_result");
        results.map(|frame| frame.data["name"].as_str().unwrap()).collect()
    }

    #[track_caller]
    fn ran(&self, tools: &[&str]) -> &Self {
        assert_eq!(self.tools(), tools, "{}", self.text);
        self
    }

    #[track_caller]
    fn says(&self, words: &[&str]) -> &Self {
        for words in words {
            assert!(self.text.contains(words), "{words:?} is not in: {}", self.text);
        }
        self
    }
}

/// Decides the preview in `heard`; the decision's answer.
async fn decide(app: &TestApp, heard: &Heard, event: &str, decision: &Value) -> Value {
    let id = frames::data(&heard.frames, event)["preview_id"].as_str().unwrap();
    let url = app.url(&format!("/v1/agent/previews/{id}/decision"));
    let response = app.http.post(url).bearer_auth(&app.token).json(decision).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_newcomer_looks_around() {
    let app = TestApp::demo().await;
    let context = json!({"workflow_id": LOW_STOCK, "rule_name": "Low Stock Alert"});
    let walk = Walk::on(&app, "looking", "workflow", context);

    let heard = walk.say("What does this workflow do?").await;
    heard.ran(&["get_workflow_rule"]).says(&[
        "**Low Stock Alert** runs when a record of `inventory.inventory_items` is updated.",
        "It has 3 steps and 1 branch point.",
        "- **Check Stock Level** checks a condition\n  - on `true`: **Notify Warehouse Team** raises an alert, for Ada",
        "  - on `false`: **Record Stock Check** writes to the audit log",
    ]);
    let expected =
        ["message_start", "content_chunk", "tool_call_start", "tool_call_result", "message_start", "content_chunk"];
    let mut names = frames::names(&heard.frames);
    names.dedup();
    assert_eq!(names[..6], expected, "a word first, then the tool, then the answer");

    let rules = walk.say("List the rules").await;
    rules
        .ran(&["list_workflow_rules"])
        .says(&["There are 14 workflows:", "- **Low Stock Alert** on `inventory_items`"]);
    let alerts = walk.say("List my alerts").await;
    alerts.ran(&["list_my_alerts"]).says(&["There are 9 alerts for you:", "Only 4 of Blue Widget left"]);
    for question in ["Explain the node Check Stock Level", "What does Check Stock Level do?"] {
        let step = walk.say(question).await;
        assert_eq!(step.tools().last(), Some(&"explain_workflow_node"), "{question}");
        step.says(&["Is there less than the minimum left? It comes", "- Condition: `quantity` less than `10`"]);
    }
    let who = walk.say("Who gets alerted?").await;
    who.ran(&["explain_workflow_node"]).says(&["Ada Adams (ada@example.com)", "the role WAREHOUSE_MANAGER"]);

    let both = walk.say("Explain this workflow and list my critical alerts").await;
    both.ran(&["get_workflow_rule", "list_my_alerts"]);
    both.says(&["**Low Stock Alert** runs", "There is 1 critical alert for you:", "Order SO-1042 waits"]);
    let starts = both.frames.iter().filter(|frame| frame.event == "message_start").count();
    assert_eq!(starts, 2, "both calls are made in one turn");
}

#[tokio::test]
async fn a_newcomer_builds_a_workflow_and_saves_it() {
    let app = TestApp::demo().await;
    let walk = Walk::on(&app, "building", "workflow", Value::Null);
    let heard = walk.say("Create a workflow called Big Orders that logs when an order is created").await;
    heard.says(&["I've sent a preview of **Big Orders**", "nothing is saved yet", "`sales.orders` is created"]);
    let preview = frames::data(&heard.frames, "workflow_preview");
    assert_eq!(preview["workflow"]["actions"][0]["name"], "Log Audit Entry");

    let decided = decide(&app, &heard, "workflow_preview", &json!({"decision": "accept"})).await;
    let told = walk.say("Thanks").await;
    let saved = decided["saved_id"].as_str().unwrap();
    told.ran(&[]).says(&[&format!("the workflow **Big Orders** is saved (id `{saved}`)")]);
    let heard = walk.say("Explain Big Orders").await;
    heard.ran(&["get_workflow_rule"]).says(&["**Big Orders** runs when a record of `sales.orders` is created."]);
    walk.say("List the rules").await.says(&["There are 15 workflows:"]);
}

#[tokio::test]
async fn a_newcomer_gets_a_workflow_from_one_sentence_and_does_not_like_it() {
    let app = TestApp::demo().await;
    let walk = Walk::on(&app, "one-sentence", "workflow", Value::Null);
    let heard = walk.say("Create a workflow that alerts when stock is low").await;
    heard.ran(&["preview_workflow"]).says(&["only where quantity is less than 10"]);
    let preview = frames::data(&heard.frames, "workflow_preview");
    assert_eq!(preview["workflow"]["name"], "Low Stock Alert");
    let rejected = json!({"decision": "reject", "comment": "too noisy"});
    decide(&app, &heard, "workflow_preview", &rejected).await;
    let told = walk.say("List the rules").await;
    told.says(&["You rejected the preview", "You said: \"too noisy\"", "There are 14 workflows:"]);

    let heard = walk.say("Create a workflow that emails ops@example.com when an order is created").await;
    heard.says(&["**Email for Orders**", "has 1 step: **Send Email**"]);
    let config = |heard: &Heard| {
        frames::data(&heard.frames, "workflow_preview")["workflow"]["actions"][0]["action_config"].clone()
    };
    assert_eq!(config(&heard)["recipients"], json!(["ops@example.com"]));

    let heard = walk.say("Create a workflow that alerts me when an order is over 5000").await;
    let worth = json!({"field_name": "amount", "operator": "greater_than", "value": 5000});
    assert_eq!(config(&heard)["conditions"], json!([worth]));
    let heard = walk.say("Alert me about low stock").await;
    decide(&app, &heard, "workflow_preview", &json!({"decision": "reject"})).await;
    let told = walk.say("Please write me a poem about it").await;
    told.ran(&[]).says(&["You rejected the preview", "I am the built-in demo model"]);
}

#[tokio::test]
async fn a_newcomer_changes_a_table() {
    let app = TestApp::demo().await;
    let walk = Walk::on(&app, "table", "tables", json!({"config_id": INVENTORY}));
    let heard = walk.say("Show this table").await;
    heard.ran(&["get_table_config"]).says(&["**inventory_table** shows", "- **In stock** (`quantity`, number)"]);
    let heard =
        walk.say("Change the header of quantity to \"On hand\" and make the reserved quantity column hidden").await;
    heard.ran(&["get_table_config", "preview_table_config"]);
    heard.says(&["- changed the header of `quantity` to **On hand**", "- hid the column `reserved_quantity`"]);
    decide(&app, &heard, "table_config_preview", &json!({"decision": "accept"})).await;
    let heard = walk.say("Show this table").await;
    heard.says(&[
        "the table configuration **inventory_table** is saved",
        "- **On hand** (`quantity`, number)",
        "(`reserved_quantity`, number, hidden)",
    ]);

    let heard = walk.say("Remove the product sku column").await;
    heard.ran(&["get_table_config", "apply_column_change", "preview_table_config"]);
    let shown = frames::data(&heard.frames, "table_config_preview");
    assert_eq!(shown["config"]["visual_settings"]["columns"].get("product_sku"), None);
}

#[tokio::test]
async fn a_newcomer_without_a_screen_finds_a_table_by_its_name() {
    let app = TestApp::demo().await;
    let walk = Walk::on(&app, "no-screen", "tables", Value::Null);
    let heard = walk.say("Hide the amount column").await;
    heard.ran(&["list_table_configs"]).says(&["No table is open on your screen.", "- **orders_table**: All orders"]);
    let heard = walk.say("Show the orders table").await;
    heard.ran(&["list_table_configs", "get_table_config"]).says(&["**orders_table** shows records of `sales.orders`"]);
    let heard = walk.say("Hide the amount column").await;
    assert_eq!(frames::data(&heard.frames, "table_config_preview")["name"], "orders_table");
    let heard = walk.say("Remove the status column").await;
    heard.says(&["It also holds the changes", "- a filter still uses column \"fulfillment_status\"\n"]);
}

#[tokio::test]
async fn what_the_demo_model_does_not_understand_it_says_and_helps() {
    let app = TestApp::demo().await;
    for context_type in ["workflow", "tables"] {
        let walk = Walk::on(&app, context_type, context_type, Value::Null);
        let heard = walk.say("Please write me a poem about the sea").await;
        heard.ran(&[]).says(&["I am the built-in demo model", "SWITCHBOARD__LLM__PROVIDER", "`ANTHROPIC_API_KEY`"]);
    }
    let walk = Walk::on(&app, "c", "workflow", Value::Null);
    let heard = walk.say("Delete the workflow Low Stock Alert").await;
    heard.ran(&[]).says(&["other changes need a real model"]);
    let heard = walk.say("What does this workflow do?").await;
    heard.ran(&[]).says(&["No workflow is open on your screen."]);
}
