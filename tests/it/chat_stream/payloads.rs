//! What a model writes for the page in its text: suggestions and payloads, taken out of what the user reads.

use serde_json::{Value, json};

use super::{Kh, complete, hi, text, typed, within};
use crate::support::model::{Script, calls, says, turn};

const VALUES: &str = r#"SUGGESTED_VALUES: [{"label": "A ]\"", "value": "a"}]"#;

/// The payload of an answer, and the text that streamed.
async fn answered(said: &str, context: &Value) -> (Value, String) {
    let kh = Kh::playing([says(said)]).await;
    let events = kh.hears(&typed("Hi", context)).await;
    (complete(&events).clone(), text(&events))
}

#[tokio::test]
async fn suggested_values_are_taken_out_of_the_text_or_left_where_they_are_none() {
    let good = json!([{"label": "A ]\"", "value": "a"}]);
    let rows = [
        (format!("Pick.\n\n{VALUES}"), "Pick.", good.clone(), "at the end"),
        (format!("Pick.\n{}", VALUES.replace(": [", ":\n[")), "Pick.", good, "on the next line"),
        ("Pick. SUGGESTED_VALUES: [oops]".to_owned(), "Pick. SUGGESTED_VALUES: [oops]", json!(null), "no JSON"),
        ("Pick.".to_owned(), "Pick.", json!(null), "none"),
    ];
    for (said, message, values, reason) in rows {
        let (payload, streamed) = answered(&said, &json!({})).await;
        assert_eq!((&payload["message"], &payload["suggested_values"]), (&json!(message), &values), "{reason}");
        assert_eq!(streamed.trim(), message, "the raw marker is never seen: {reason}");
    }
}

#[tokio::test]
async fn suggested_actions_lose_what_the_page_cannot_do_and_what_is_malformed() {
    let actions = json!([
        {"label": "Close", "action": "close_chat", "handler": "client", "style": "primary"},
        {"label": "Fly", "action": "fly", "handler": "client"},
        {"label": "Save", "action": "save", "handler": "server", "data": {"id": 7}},
        {"label": "Nothing"},
    ]);
    let said = format!("Now?\n\nSUGGESTED_ACTIONS: {actions}");
    let (payload, _) = answered(&said, &json!({})).await;
    let expected = json!([
        {"label": "Close", "action": "close_chat", "handler": "client", "style": "primary"},
        {"label": "Save", "action": "save", "handler": "server", "data": {"id": 7}},
    ]);
    assert_eq!((&payload["message"], &payload["suggested_actions"]), (&json!("Now?"), &expected));
}

#[tokio::test]
async fn a_payload_behind_its_marker_is_shown_and_kept_with_its_chat() {
    let data = json!({"query": "CRISPR {\"a\"}", "nested": {"b": [{}]}});
    let page = json!({"current_page": "reports"});
    for said in [
        format!("Try this.\n\nQUERY_SUGGESTION: {data}"),
        format!("Try this.\n\n**QUERY_SUGGESTION:**\n```json\n{data}\n```\n"),
    ] {
        let kh = Kh::playing([says(&said)]).await;
        let events = kh.hears(&typed("Hi", &page)).await;
        let payload = complete(&events);
        let custom = &payload["custom_payload"];
        let id = custom["payload_id"].as_str().unwrap();
        assert!(id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        let expected = json!({
            "payload_id": id, "type": "query_suggestion", "data": data, "summary": "Query suggestion: CRISPR {\"a\"}",
        });
        assert_eq!((custom, &payload["message"]), (&expected, &json!("Try this.")), "{said}");
        assert_eq!(text(&events).trim(), "Try this.");
        let kept = kh.get(&format!("/api/chats/{}", payload["conversation_id"])).await;
        assert_eq!(kept["messages"][1]["content"], "Try this.");
        let extras = json!({"custom_payload": expected, "payloads": [expected]});
        assert_eq!(kept["messages"][1]["extras"], extras);
    }
}

#[tokio::test]
async fn a_page_knows_the_types_of_its_own_path_alone() {
    let filter = r#"FILTER_SUGGESTION: {"x": 1}"#;
    let query = r#"QUERY_SUGGESTION: {"query": "q"}"#;
    let rows = [
        (json!({}), [false, false], "any page"),
        (json!({"current_page": "reports"}), [true, false], "the page"),
        (json!({"current_page": "reports", "active_tab": "articles"}), [true, true], "the tab too"),
    ];
    for (context, [knows_query, knows_filter], reason) in rows {
        let kh = Kh::playing([says(query), says(filter)]).await;
        for (marker, said, knows) in
            [("QUERY_SUGGESTION:", query, knows_query), ("FILTER_SUGGESTION:", filter, knows_filter)]
        {
            // Beside the payload there have to be words.
            let answer = kh.answer(&typed("Hi", &context)).await;
            assert_eq!(kh.last_system().contains(marker), knows, "{reason}: {marker}");
            let expected = if knows { "" } else { said };
            assert_eq!(answer["message"], expected, "{reason}: {marker}");
            assert_eq!(answer["custom_payload"].is_null(), !knows, "{reason}: {marker}");
        }
    }
}

#[tokio::test]
async fn what_does_not_fit_its_schema_is_text() {
    let said = r#"So: QUERY_SUGGESTION: {"words": 1} that."#;
    let (payload, streamed) = answered(said, &json!({"current_page": "reports"})).await;
    assert_eq!((&payload["message"], &payload["custom_payload"]), (&json!(said), &json!(null)));
    assert_eq!(streamed, said);
}

#[tokio::test]
async fn two_payloads_in_an_answer_are_both_kept_and_one_is_shown() {
    let said = "One.\nQUERY_SUGGESTION: {\"query\": \"a\"}\nTwo.\nFILTER_SUGGESTION: {\"b\": 1}";
    let kh = Kh::playing([says(said)]).await;
    let context = json!({"current_page": "reports", "active_tab": "articles"});
    let payload = kh.answer(&typed("Hi", &context)).await;
    assert_eq!(payload["custom_payload"]["type"], "filter_suggestion");
    let kept = kh.get(&format!("/api/chats/{}", payload["conversation_id"])).await;
    let kinds: Vec<_> =
        kept["messages"][1]["extras"]["payloads"].as_array().unwrap().iter().map(|p| p["type"].clone()).collect();
    assert_eq!(kinds, ["query_suggestion", "filter_suggestion"]);
}

#[tokio::test]
async fn later_turns_know_of_the_payloads_and_can_read_them() {
    let lab = "id = \"lab\"\npage = \"lab\"\ntools = [\"get_payload\"]\npayload_types = [\"query_suggestion\"]\n";
    let first = says("Try.\n\nQUERY_SUGGESTION: {\"query\": \"CRISPR\", \"secret\": \"inside\"}");
    let kh = Kh::with(&[("profiles/lab.toml", lab)], &[], [first.answer()]).await;
    let page = json!({"current_page": "lab"});
    let payload = kh.answer(&typed("Hi", &page)).await;
    let (chat, id) = (payload["conversation_id"].clone(), payload["custom_payload"]["payload_id"].clone());
    // The rest of the script needs the id.
    let read = |call: &str| calls(call, "get_payload", &json!({"payload_id": id}));
    let turns = [read("c"), says("It says inside."), read("d"), says("There is none.")].map(Script::answer);
    let model = crate::support::upstream::Upstream::script(turns).await;
    let data = kh.s.app.stop().await;
    let base_url = format!("{}/v1", model.url());
    let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &*base_url)];
    let app = crate::support::app::TestApp::start_in(data, &settings).await;
    let kh = Kh { s: crate::support::model::Scripted { app, model } };

    kh.answer(&within(&chat, typed("Read it", &page))).await;
    let line = format!("- [{}] Query suggestion: CRISPR", id.as_str().unwrap());
    assert!(kh.last_system().contains(&line), "{}", kh.last_system());
    let asked = kh.s.last_asked();
    let read = asked.last().unwrap()["content"].as_str().unwrap();
    assert!(read.contains("query_suggestion") && read.contains("inside"), "{read}");

    let other = kh.answer(&typed("Read that of another chat", &page)).await;
    assert!(!other["tool_history"][0]["output"].as_str().unwrap().contains("inside"), "{other}");
}

#[tokio::test]
async fn an_answer_that_is_all_suggestions_is_still_an_answer() {
    let kh = Kh::playing([turn().text(VALUES).done()]).await;
    let payload = kh.answer(&hi()).await;
    assert_eq!((&payload["message"], payload["suggested_values"].is_array()), (&json!(""), true));
}

#[tokio::test]
async fn a_null_is_the_default_where_the_schema_has_one() {
    let payloads = r##"
[[payload_type]]
name = "filters"
description = "Filters"
marker = "FILTERS:"
instructions = "Write filters."
[payload_type.schema]
type = "object"
required = ["name"]
[payload_type.schema.properties]
name = { type = "string" }
limit = { type = "integer", default = 20 }
parts = { type = "array", items = { "$ref" = "#/$defs/part" } }
[payload_type.schema."$defs".part]
type = "object"
properties = { weight = { type = "number", default = 1.5 }, note = { type = "string" } }
"##;
    let page = "id = \"lab\"\npage = \"lab\"\npayload_types = [\"filters\"]\n";
    let files = [("payloads/lab.toml", payloads), ("profiles/lab.toml", page)];
    let wrote = json!({"name": "n", "limit": null, "parts": [{"weight": null}, {"weight": 2.0}]});
    let wrong = json!({"name": null, "limit": null});
    let turns = [&wrote, &wrong].map(|data| says(&format!("Here. FILTERS: {data}")).answer());
    let kh = Kh::with(&files, &[], turns).await;
    let ask = typed("Hi", &json!({"current_page": "lab"}));
    let payload = kh.answer(&ask).await;
    let expected = json!({"name": "n", "limit": 20, "parts": [{"weight": 1.5}, {"weight": 2.0}]});
    assert_eq!((&payload["message"], &payload["custom_payload"]["data"]), (&json!("Here."), &expected));
    let payload = kh.answer(&ask).await;
    assert_eq!(payload["custom_payload"], json!(null), "what has no default stays wrong: {payload}");
}
