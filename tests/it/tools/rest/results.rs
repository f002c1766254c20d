//! Results: what the model reads of an answer, and what stays out of it.

use serde_json::{Value, json};

use super::{Setup, answer};
use crate::support::frames;
use crate::support::model::{calls, says};
use crate::support::upstream::Answer;

const TOOLS: &str = r#"
[[tool]]
name = "projected"
description = "A list, cut to what is needed."
request = { path = "/v1/list" }
result = { projection = "items[].{id: id, title: title}" }

[[tool]]
name = "told"
description = "The same in words."
request = { path = "/v1/list" }
[tool.result]
projection = "items[0]"
text = "Found {{ result.total }} articles, the first is {{ projected.title|cut(4) }}."

[[tool]]
name = "kept"
description = "The same for the client."
request = { path = "/v1/list" }
[tool.result]
text = "Found {{ result.total }}."
payload = "articles"

[[tool]]
name = "counted"
description = "Expects another form."
request = { path = "/v1/list" }
result = { projection = "length(total)" }

[[tool]]
name = "save"
description = "Saves, and expects another form."
request = { method = "POST", path = "/v1/list" }
result = { projection = "length(total)" }

[[tool]]
name = "slow"
description = "Does not take long."
request = { path = "/v1/slow", timeout_s = 1 }
"#;

const TYPES: &str = r#"
[[payload_type]]
name = "articles"
description = "Articles"
"#;

fn list() -> Value {
    json!({"total": 2, "items": [{"id": 1, "title": "Grün ist", "body": "x"}, {"id": 2, "title": null}]})
}

#[tokio::test]
async fn the_model_reads_what_the_file_says() {
    let mut setup = Setup::of(TOOLS);
    setup.files.push(("payloads/mine.toml", TYPES));
    setup.profile = "payload_types = [\"articles\"]";
    setup.tools.retain(|name| *name != "articles");
    let calls = ["projected", "told", "kept", "counted", "save"].map(|tool| (tool, tool, json!({})));
    let ran = setup.calling(&calls, |_| answer(&list())).await;
    let shape = "the backend's answer has an unexpected shape: ";
    assert_eq!(ran.read[0], Ok(json!([{"id": 1, "title": "Grün ist"}, {"id": 2, "title": null}])));
    assert_eq!(ran.read[1], Ok(json!("Found 2 articles, the first is Grün….")));
    assert!(ran.read[2].as_ref().unwrap().as_str().unwrap().starts_with("Found 2."));
    assert!(ran.read[3].as_ref().unwrap_err().starts_with(shape), "{:?}", ran.read[3]);
    let saved = ran.read[4].as_ref().unwrap();
    assert_eq!(saved["done"], json!(true), "what is done is done, whatever its answer looks like");
    assert!(saved["note"].as_str().unwrap().starts_with(shape));
}

#[tokio::test]
async fn a_payload_that_is_too_large_is_not_kept_and_the_model_is_told() {
    let bytes = list().to_string().len();
    let note = |max: usize| {
        format!(
            "\n[the data of this result was not kept, and the user does not see it: {bytes} bytes, and at most {max} are kept]"
        )
    };
    let (exact, one_less) = (bytes.to_string(), (bytes - 1).to_string());
    let rows = [
        (exact.as_str(), true, String::new(), "as large as it may be"),
        (one_less.as_str(), false, note(bytes - 1), "one byte more"),
        ("0", true, String::new(), "no bound"),
    ];
    for (max, is_kept, told, reason) in rows {
        let mut setup = Setup::of(TOOLS);
        setup.files.push(("payloads/mine.toml", TYPES));
        setup.profile = "payload_types = [\"articles\"]";
        setup.tools = vec!["kept"];
        setup.settings.push(("LIMITS__PAYLOAD_BYTES", max));
        let turns = [calls("c1", "kept", &json!({})), says("Done.")];
        let (s, _backend) = setup.start(turns, |_| answer(&list())).await;
        let frames = s.app.chat(&json!({"message": "Go", "context_type": "mine"})).await;
        let is_shown = frames.iter().any(|frame| frame.event == "payload");
        let read = s.result_of("c1");
        let read = read.as_str().unwrap();
        assert_eq!((is_shown, read.ends_with(&note(bytes - 1))), (is_kept, !told.is_empty()), "{reason}: {read}");
        assert!(read.starts_with("Found 2."), "{reason}: {read}");
    }
}

#[tokio::test]
async fn a_tool_has_its_own_patience() {
    let setup = Setup::of(TOOLS);
    let setup = Setup { files: vec![("tools/more.toml", TOOLS), ("payloads/mine.toml", TYPES)], ..setup };
    let ran = setup
        .calling(&[("c1", "slow", json!({}))], |_| {
            Some(Answer::ok("application/json", "{").ending(crate::support::upstream::End::Hang))
        })
        .await;
    assert_eq!(ran.read, [Err("the backend did not answer in time".to_owned())]);
}

#[tokio::test]
async fn a_tool_for_a_role_does_not_exist_for_others_and_one_that_needs_approval_is_not_made() {
    let tools = r#"
[[tool]]
name = "count"
description = "Counts."
roles = ["auditor"]
request = { path = "/v1/count" }

[[tool]]
name = "wipe"
description = "Wipes."
approval = "user"
request = { method = "DELETE", path = "/v1/all" }
"#;
    let setup = Setup::of(tools);
    let turns = [calls("c1", "count", &json!({})), says("No."), calls("c2", "wipe", &json!({})), says("Waiting.")];
    let (s, backend) = setup.start(turns, |_| None).await;
    let say = async |message: &str| s.app.chat(&json!({"message": message, "context_type": "mine"})).await;
    let frames = say("Count").await;
    assert_eq!(frames::data(&frames, "tool_call_result")["is_error"], json!(true));
    let offered: Vec<Value> = s.model.requests()[0].json()["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = offered.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["wipe"]);
    assert_eq!(s.result_of("c1"), json!({"error": "unknown tool: count"}));
    say("Wipe").await;
    assert_eq!(backend.requests().len(), 0, "nobody has let it through");
}
