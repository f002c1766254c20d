//! The sample screens, walked through as their users would: which tools and payloads each page has, and the demo's answers.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{Scripted, says};

/// A message from a page.
fn from(page: &str, tab: Option<&str>, subtab: Option<&str>, message: &str) -> Value {
    let context =
        json!({"current_page": page, "active_tab": tab, "active_subtab": subtab, "report_id": 456, "stream_id": 124});
    json!({"message": message, "context": context, "interaction_type": "text_input"})
}

/// The frames of an answer, as objects.
async fn sent(app: &TestApp, token: &str, body: &Value) -> Vec<Value> {
    let request = app.http.post(app.url("/api/chat/stream")).bearer_auth(token).json(body);
    let text = request.send().await.unwrap().text().await.unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The payload with which an answer ends.
async fn answered(app: &TestApp, token: &str, body: &Value) -> Value {
    let frames = sent(app, token, body).await;
    let last = frames.last().unwrap();
    assert_eq!(last["type"], "complete", "{frames:#?}");
    last["payload"].clone()
}

/// A button of the page pressed.
fn pressed(action: &Value, chat: &Value) -> Value {
    json!({
        "message": action["label"],
        "context": {"current_page": "edit_research_stream"},
        "interaction_type": "action_executed",
        "action_metadata": {"action_identifier": action["action"], "action_data": action["data"]},
        "conversation_id": chat,
    })
}

#[tokio::test]
async fn each_screen_has_the_tools_and_payloads_of_its_files() {
    const GLOBAL: [&str; 3] = ["search_articles", "get_article", "get_payload"];
    type Row<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a [&'a str], &'a [&'a str]);
    let rows: [Row<'_>; 9] = [
        ("nowhere", Some("articles"), None, &[], &[]),
        ("reports", None, None, &["get_report", "list_reports"], &[]),
        (
            "reports",
            Some("articles"),
            None,
            &["get_report", "list_reports", "scan_articles"],
            &["QUERY_SUGGESTION:", "FILTER_SUGGESTION:"],
        ),
        ("edit_research_stream", Some("semantic"), None, &["list_streams", "archive_stream"], &["SCHEMA_PROPOSAL:"]),
        (
            "edit_research_stream",
            Some("retrieval"),
            None,
            &["list_streams", "archive_stream"],
            &["RETRIEVAL_PROPOSAL:"],
        ),
        (
            "edit_research_stream",
            Some("execute"),
            Some("workbench"),
            &["list_streams", "archive_stream", "scan_articles"],
            &["QUERY_SUGGESTION:", "FILTER_SUGGESTION:"],
        ),
        ("edit_research_stream", Some("execute"), Some("pipeline"), &["list_streams", "archive_stream"], &[]),
        ("streams_list", None, None, &["list_streams", "list_reports", "archive_stream"], &["STREAM_SUGGESTIONS:"]),
        ("tablizer", None, None, &[], &["QUERY_SUGGESTION:", "AI_COLUMN:"]),
    ];
    const MARKERS: [&str; 7] = [
        "QUERY_SUGGESTION:",
        "FILTER_SUGGESTION:",
        "SCHEMA_PROPOSAL:",
        "RETRIEVAL_PROPOSAL:",
        "STREAM_SUGGESTIONS:",
        "AI_COLUMN:",
        "SUGGESTED_VALUES:",
    ];
    let s = Scripted::playing(rows.iter().map(|_| says("Hello."))).await;
    for (page, tab, subtab, own, markers) in rows {
        answered(&s.app, &s.app.token, &from(page, tab, subtab, "Hi")).await;
        let request = s.model.requests().pop().unwrap().json();
        let offered: Vec<&str> = request["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(offered, [&GLOBAL, own].concat(), "{page} {tab:?} {subtab:?}");
        let system = request["messages"][0]["content"].as_str().unwrap();
        let told: Vec<&str> = MARKERS.into_iter().filter(|marker| system.contains(marker)).collect();
        let expected: Vec<&str> =
            MARKERS.into_iter().filter(|marker| markers.contains(marker) || *marker == "SUGGESTED_VALUES:").collect();
        assert_eq!(told, expected, "{page} {tab:?} {subtab:?}");
        assert_eq!(system.contains("Mesothelioma, autumn 2025"), page == "reports", "the open report is loaded");
    }
}

#[tokio::test]
async fn an_approved_stream_is_archived_once_and_a_rejected_one_is_not() {
    let app = TestApp::demo().await;
    let ask = from("edit_research_stream", None, None, "Archive the stream Gene editing");
    for (button, archived) in [("reject_call", false), ("approve_call", true)] {
        let payload = answered(&app, &app.token, &ask).await;
        assert_eq!(payload["custom_payload"]["type"], "approval_request", "{payload:#}");
        let actions = payload["suggested_actions"].as_array().unwrap();
        let action = actions.iter().find(|action| action["action"] == button).unwrap();
        let decided = answered(&app, &app.token, &pressed(action, &payload["conversation_id"])).await;
        assert_eq!(decided["conversation_id"], payload["conversation_id"]);
        let streams = app.http.get(app.url("/v1/agent/approvals")).bearer_auth(&app.token);
        let waiting: Value = streams.send().await.unwrap().json().await.unwrap();
        assert_eq!(waiting, json!({"items": []}), "{button}");
        let listed = answered(&app, &app.token, &from("streams_list", None, None, "List the streams")).await;
        let output: Value = serde_json::from_str(listed["tool_history"][0]["output"].as_str().unwrap()).unwrap();
        let stream = output.as_array().unwrap().iter().find(|stream| stream["id"] == 124).unwrap();
        assert_eq!(stream["is_archived"], archived, "{button}: {decided:#}");
    }
}

#[tokio::test]
async fn a_scan_tells_its_progress_and_a_later_turn_reads_what_was_found() {
    let app = TestApp::demo().await;
    let frames = sent(&app, &app.token, &from("reports", Some("articles"), None, "Scan articles about CRISPR")).await;
    let progress: Vec<&str> = frames
        .iter()
        .filter(|frame| frame["type"] == "tool_progress")
        .map(|frame| frame["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        progress,
        [
            "Looking through recent issues",
            "Looking through reviews",
            "Looking through trials",
            "Looking through preprints"
        ]
    );
    let payload = &frames.last().unwrap()["payload"];
    let custom = &payload["custom_payload"];
    assert_eq!(
        (&custom["type"], &custom["data"]["total"]),
        (&json!("article_search_results"), &json!(3)),
        "{payload:#}"
    );
    let id = custom["payload_id"].as_str().unwrap();
    let mut next = from("reports", None, None, &format!("call get_payload {{\"payload_id\": {id:?}}}"));
    next["conversation_id"] = payload["conversation_id"].clone();
    let read = answered(&app, &app.token, &next).await;
    let output = read["tool_history"][0]["output"].as_str().unwrap();
    assert!(output.contains("CRISPR screens reveal regulators"), "{output}");
}

#[tokio::test]
async fn a_query_is_suggested_as_a_payload_and_its_marker_is_never_shown() {
    let app = TestApp::demo().await;
    let frames = sent(&app, &app.token, &from("tablizer", None, None, "Suggest a query for silica dust")).await;
    let shown: String = frames.iter().filter_map(|frame| frame["text"].as_str()).collect();
    assert!(!shown.contains("QUERY_SUGGESTION"), "{shown}");
    let custom = &frames.last().unwrap()["payload"]["custom_payload"];
    assert_eq!(
        (&custom["type"], &custom["summary"]),
        (&json!("query_suggestion"), &json!("Query suggestion: silica AND dust"))
    );
}

#[tokio::test]
async fn an_administrator_lets_somebody_elses_deletion_through() {
    let app = TestApp::demo().await;
    let (bob, root) = (app.token_of("bob", None, &["USER"]), app.token_of("root", None, &["ADMIN"]));
    let payload = answered(&app, &bob, &from("reports", Some("manage"), None, "Delete report 457")).await;
    let id = payload["custom_payload"]["data"]["approval_id"].as_str().unwrap().to_owned();
    let decide = async |token: &str| {
        let url = app.url(&format!("/v1/agent/approvals/{id}"));
        let request = app.http.post(url).bearer_auth(token).header("accept", "application/json");
        let response = request.json(&json!({"decision": "approve"})).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, problem) = decide(&bob).await;
    assert_eq!((status, &problem["code"]), (403, &json!("role_required")));
    let (status, kept) = decide(&root).await;
    assert_eq!((status, &kept["state"]), (200, &json!("granted")));
    let (status, answer) = decide(&bob).await;
    assert_eq!((status, &answer["state"]), (200, &json!("completed")), "{answer:#}");
    let found = answered(&app, &bob, &from("reports", None, None, "call get_report {\"report_id\": 457}")).await;
    assert_eq!(
        found["tool_history"][0]["output"],
        r#"{"error":"HTTP 404: {\"code\":\"not_found\",\"message\":\"report not found\"}"}"#
    );
}
