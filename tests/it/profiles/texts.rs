//! What a user sees of a model's text, where the model writes for the machine too.

use super::{playing, say, shown};
use crate::support::model::{says, turn};

#[tokio::test]
async fn nothing_of_what_is_for_the_machine_is_shown() {
    let yes = r#"SUGGESTED_VALUES: [{"label": "Yes", "value": "yes"}]"#;
    let rows = [
        (format!("Shall I?\n\n{yes}"), "Shall I?", "suggestions"),
        ("Look:\n\n```json\nQUERY: {\"q\": \"a } b\"}\n```\n\nDone.".to_owned(), "Look:\n\nDone.", "a payload"),
        ("**QUERY:** {\"q\": 1}\nOnce more.".to_owned(), "Once more.", "a payload at the beginning"),
        ("QUERY: {\"x\": 1}".to_owned(), "QUERY: {\"x\": 1}", "one that its schema refuses"),
        ("SUGGESTED_VALUES: [oops] ok".to_owned(), "SUGGESTED_VALUES: [oops] ok", "no JSON"),
        ("OTHER: {\"a\": 1}".to_owned(), "OTHER: {\"a\": 1}", "a type that is not of this page"),
    ];
    for (text, expected, reason) in rows {
        let s = playing([says(&text)]).await;
        assert_eq!(shown(&say(&s, "reports", "Hello").await), expected, "{reason}");
    }
    let s = playing([says(yes)]).await;
    assert_eq!(shown(&say(&s, "reports/bare", "Hello").await), yes, "where there are no suggestions");
}

#[tokio::test]
async fn text_is_decided_before_a_call_and_the_model_keeps_its_own_words() {
    let first = turn().text("Looking. QUERY: {\"q\"").call("t1", "list_workflow_rules", &serde_json::json!({})).done();
    let s = playing([first, says("A. QUERY: {\"q\": 1}"), says("B.")]).await;
    assert_eq!(shown(&say(&s, "reports", "Hello").await), "Looking. QUERY: {\"q\"A.");
    say(&s, "reports", "And?").await;
    let asked = s.last_asked();
    let own: Vec<_> = asked.iter().filter(|message| message["role"] == "assistant").map(|m| &m["content"]).collect();
    assert_eq!(own, ["Looking. QUERY: {\"q\"", "A. QUERY: {\"q\": 1}"]);
}
