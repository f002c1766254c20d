//! The protocol's conformance suite and its inspector, which we did not write, as clients of this server.

use serde_json::{Value, json};

use super::text;
use crate::support::app::TestApp;
use crate::support::conformance::{REVISIONS, is_as_expected, is_installed, run};
use crate::support::tickets::{started, write};
use crate::support::upstream::{Answer, Upstream};

/// Those of the suite's tools that a file can declare; it calls them by these names. Those that ask their user back are approvals here.
const TOOLS: &str = r##"
[[tool]]
name = "test_simple_text"
description = "Says a text."
[[tool.answers]]
text = "This is a simple text response for testing."

[[tool]]
name = "test_error_handling"
description = "Fails."
[[tool.answers]]
text = "This tool intentionally returns an error for testing"
error = true

[[tool]]
name = "test_logging_tool"
description = "Logs nothing."
[[tool.answers]]
text = "Done."

[[tool]]
name = "test_tool_with_progress"
description = "Tells how far it is."
request = { path = "/v1/work", progress = "ndjson" }

[[tool]]
name = "json_schema_2020_12_tool"
description = "Has arguments of many words."
input_schema = '''
{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
 "$defs": {"address": {"$anchor": "addressDef", "type": "object",
  "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
 "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "phone": {"type": "string"},
  "email": {"type": "string"}, "contactMethod": {"type": "string", "enum": ["phone", "email"]}},
 "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
 "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
 "then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": false}'''
[[tool.answers]]
text = "{{ args.name }}"

[[tool]]
name = "test_streaming_elicitation"
description = "Waits for its user."
approval = "user"
request = { method = "POST", path = "/v1/done" }

[[tool]]
name = "test_input_required_result_elicitation"
description = "Waits for its user."
approval = "user"
request = { method = "POST", path = "/v1/done" }

[[tool]]
name = "test_input_required_result_request_state"
description = "Waits for its user."
approval = "user"
request = { method = "POST", path = "/v1/done" }

[[tool]]
name = "test_input_required_result_tampered_state"
description = "Waits for its user."
approval = "user"
request = { method = "POST", path = "/v1/done" }
"##;

/// An assistant that exposes all of them.
const PROFILE: &str = r#"
id = "suite"
context_type = "suite"
instructions = ["workflow/role.md"]
tools = [TOOLS]
[mcp]
expose = [TOOLS]
"#;

/// The product with these tools, and what has to live as long.
async fn product() -> (TestApp, [Upstream; 2]) {
    let names = TOOLS.lines().filter_map(|line| line.strip_prefix("name = ")).collect::<Vec<_>>().join(", ");
    let data = tempfile::tempdir().unwrap();
    write(&data, "tools/suite.toml", TOOLS);
    write(&data, "profiles/suite.toml", &PROFILE.replace("TOOLS", &names));
    let model = Upstream::script([]).await;
    let backend = Upstream::choosing(|request| {
        let steps = "{\"progress\":0}\n{\"progress\":0.5}\n{\"progress\":1}\n{\"result\":{\"done\":true}}\n";
        Some(match request.path.as_str() {
            "/v1/work" => Answer::ok("application/x-ndjson", steps),
            _ => Answer::ok("application/json", "{}"),
        })
    })
    .await;
    let app = started(data, (&model, &backend.url()), &[]).await;
    (app, [model, backend])
}

#[tokio::test]
async fn the_conformance_suite_finds_what_is_expected_in_each_revision() {
    if !is_installed() {
        return;
    }
    let (app, _others) = product().await;
    let passed = [
        &["tools-list", "tools-call-simple-text", "server-initialize"][..],
        &["tools-list", "json-schema-2020-12", "http-header-validation"],
    ];
    for (revision, passed) in REVISIONS.into_iter().zip(passed) {
        is_as_expected(&run(&["server", revision], &app.url(""), &app.token).await, passed);
    }
}

/// The result that the inspector prints.
async fn inspected(app: &TestApp, args: &[&str]) -> Value {
    let args = [&["inspect", "--format", "json"], args].concat();
    let ended = run(&args, &app.url(""), &app.token).await;
    let (said, errors) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{args:?}: {}\n{said}\n{errors}", ended.status);
    serde_json::from_str::<Value>(&said).unwrap()["result"].clone()
}

#[tokio::test]
async fn the_inspector_lists_tools_and_calls_one_in_both_eras() {
    if !is_installed() {
        return;
    }
    let (app, _others) = product().await;
    for era in ["legacy", "modern"] {
        // Strictly: a schema that some client cannot read would be an error.
        let listed = inspected(&app, &["--protocol-era", era, "--method", "tools/list", "--strict"]).await;
        let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert!(names.contains(&&json!("ask_workflow")) && names.contains(&&json!("test_simple_text")), "{names:?}");
        let called = ["--protocol-era", era, "--method", "tools/call", "--tool-name", "json_schema_2020_12_tool"];
        let args = [&called[..], &["--tool-arg", "name=Ada", "contactMethod=email", "email=ada@example.com"]].concat();
        let result = inspected(&app, &args).await;
        assert_eq!((text(&result).as_str(), &result["isError"]), ("Ada", &json!(false)), "{era}: {result}");
    }
}

#[tokio::test]
async fn the_inspector_learns_that_a_token_is_wanted() {
    if !is_installed() {
        return;
    }
    let (app, _others) = product().await;
    let args = ["inspect", "--format", "json", "--stored-auth-only", "--method", "tools/list"];
    let ended = run(&args, &app.url(""), "not.a.token").await;
    let told = String::from_utf8_lossy(&ended.stderr);
    let told: Value = serde_json::from_str(told.trim()).unwrap_or_else(|_| panic!("{told}"));
    assert_eq!((ended.status.code(), &told["error"]["code"]), (Some(3), &json!("auth_required")), "{told}");
}
