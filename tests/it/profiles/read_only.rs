//! A profile that only reads: for the model no tool that writes is there.

use serde_json::json;

use crate::support::frames;
use crate::support::model::{says, turn};
use crate::tools::rest::{Setup, answer};

const TOOLS: &str = r#"
[[tool]]
name = "read_note"
description = "Reads a note."
request = { path = "/notes/1" }

[[tool]]
name = "write_note"
description = "Writes a note."
request = { method = "POST", path = "/notes" }

[[tool]]
name = "search_notes"
description = "Searches the notes."
request = { method = "POST", path = "/search", effect = "read" }
"#;

#[tokio::test]
async fn where_nothing_may_be_written_no_tool_that_writes_is_offered_found_or_run() {
    for (profile, offered) in [
        ("read_only = true", vec!["read_note", "search_notes"]),
        ("read_only = true\n[select_tools]\ncore = [\"read_note\"]\nmost = 0", vec!["read_note", "find_tools"]),
    ] {
        let mut setup = Setup::of(TOOLS);
        setup.profile = profile;
        let calls = turn()
            .call("c1", "write_note", &json!({}))
            .call("c2", "find_tools", &json!({"query": "write a note"}))
            .call("c3", "search_notes", &json!({}));
        let again = turn().call("c4", "write_note", &json!({})).call("c5", "search_notes", &json!({}));
        let turns = [calls.done(), again.done(), says("Done.")];
        let (s, backend) = setup.start(turns, |_| answer(&json!({"text": "A note"}))).await;
        let response = s.app.post(&json!({"message": "Go", "context_type": "mine"})).await;
        let frames = frames::parse(&response.text().await.unwrap());
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");
        let first = s.model.requests()[0].json();
        let names: Vec<&str> =
            first["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, offered, "{profile}");
        for id in ["c1", "c4"] {
            assert_eq!(s.result_of(id), json!({"error": "unknown tool: write_note"}), "{profile}");
        }
        let paths: Vec<String> = backend.requests().iter().map(|request| request.path.clone()).collect();
        assert!(!paths.is_empty() && paths.iter().all(|path| path == "/api/search"), "{profile}: {paths:?}");
        assert!(!s.result_of("c2").to_string().contains("write_note"), "{profile}");
    }
}
