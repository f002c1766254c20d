//! Results of any shape, tools that are not offered, screens that are no JSON: always an answer, never a crash.

use serde_json::{Value, json};

use super::{Dialogue, TABLES, WORKFLOW};
use crate::chat::message::Message;

#[test]
fn any_result_of_any_tool_leads_to_an_answer() {
    let odd = [
        Value::Null,
        json!(true),
        json!(-1.5e300),
        json!("`text` with **marks** and ünïcödé\n[cut: 3 of 9 bytes shown; ask for less]"),
        json!([]),
        json!({}),
        json!([null, 1, "x", [], {}, [[["deep"]]]]),
        json!({ "results": 7, "total": -1, "rule": [], "summary": "none", "config": [], "action": 1, "errors": {} }),
        json!({ "results": [{ "name": 1, "recipients": { "users": 1 }, "created_at": "é" }], "total": u64::MAX }),
        json!({ "rule": {}, "summary": { "node_count": -1, "flow_outline": [1, "  [x Node (", " — alerts: "] } }),
        json!({ "action": { "action_config": { "conditions": [1], "recipients": { "users": [1, {}] } } }, "incoming_from": 3 }),
        json!({ "valid": false }),
        json!({ "valid": true, "config": { "data_source": 1, "visual_settings": [] } }),
        json!({ "config": "{\"data_source\":[{\"select\":{\"columns\":[1,{}]}}]}" }),
        json!({ "draft_id": "d", "output_ports": [1, {}] }),
    ];
    let workflow = [
        "what does this workflow do, list the rules, list my alerts and show the triggers",
        "explain the step \"A\"",
        "alerts for this rule",
        "show alert 0d4f7f7e-2f5c-4b8e-9a55-3f1f0b1c2d3e",
        "what actions are there",
        "create a workflow that alerts when stock is low",
        "start a workflow for widgets, add a condition step if a < 1, add an alert and preview it",
    ];
    let tables = [
        "show this table",
        "show the configs and the column types",
        "hide column a, sort by b descending, filter c = 1, join the products table with name",
        "add column x",
        "clear the filters",
        "remove the sorting",
        "validate this table",
        "what columns does a.b have?",
    ];
    let screens = workflow.iter().map(|text| (WORKFLOW, text)).chain(tables.iter().map(|text| (TABLES, text)));
    for (tools, text) in screens {
        for result in &odd {
            let screen = json!({ "workflow_id": "w", "config_id": "c", "nodes": [1, { "data": 2 }] });
            let mut dialogue = Dialogue::on(tools, Some(screen));
            let mut turn = dialogue.user(text);
            let mut turns = 1;
            while !turn.calls.is_empty() {
                turns += 1;
                assert!(turns <= 8, "{text:?} goes on without end with {result}");
                let results: Vec<Result<Value, &str>> = turn.calls.iter().map(|_| Ok(result.clone())).collect();
                turn = dialogue.results(&results);
            }
            assert!(!turn.text.trim().is_empty(), "{text:?} has no answer to {result}");
        }
    }
}

#[test]
fn a_tool_that_is_not_offered_is_never_called() {
    Dialogue::on(&["list_workflow_rules"], None)
        .user("list my alerts")
        .says("That needs the tool `list_my_alerts`, which is not offered on this screen.");
}

#[test]
fn a_screen_that_cannot_be_read_is_no_screen() {
    let contexts =
        ["```json\n{broken\n```", "```json\n", "```json\n[1]\n```", "```json\n{\"workflow_id\": 5}\n```", "plain"];
    for context in contexts {
        let mut dialogue = Dialogue::on(WORKFLOW, None);
        dialogue.system.context = context.to_owned();
        dialogue.user("what does this workflow do?").says(
            "No workflow is open on your screen. Open one or tell me its name, for example *explain the workflow \"Low Stock \
             Alert\"*. I can also *list the workflows*.",
        );
    }
}

#[test]
fn an_empty_history_gets_an_introduction() {
    let mut dialogue = Dialogue::on(WORKFLOW, None);
    dialogue.messages.push(Message::ToolResults(Vec::new()));
    let turn = dialogue.turn();
    assert!(turn.text.starts_with("I am the built-in demo model"), "{}", turn.text);
    assert!(turn.text.contains("SWITCHBOARD__LLM__PROVIDER"), "{}", turn.text);
}

#[test]
fn a_very_long_message_is_read_in_part() {
    let text = "add an alert and ".repeat(20_000);
    let turn = Dialogue::on(WORKFLOW, None).user(&text);
    assert_eq!(turn.calls, Vec::<String>::new());
    assert!(turn.text.starts_with("There is no open draft"), "{}", turn.text);
}
