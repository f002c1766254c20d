//! The world of several stories: tools for tickets, some of which need somebody's approval, with a model and a backend that the
//! test plays.

use tempfile::TempDir;

use super::app::TestApp;
use super::upstream::Upstream;

/// An assistant that may use all of the tools.
pub const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["close_ticket", "refund", "get_ticket", "note"]
"#;

/// Tools that a person lets through, that one with a role does, that read, and that write at once.
pub const TOOLS: &str = r#"
[[tool]]
name = "close_ticket"
description = "Closes a ticket."
approval = "user"
input_schema = { type = "object", properties = { id = { type = "integer" }, reason = { type = "string" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/close"

[[tool]]
name = "refund"
description = "Pays money back."
approval = "role:chief"
input_schema = { type = "object", properties = { amount = { type = "number" } }, required = ["amount"] }
[tool.request]
method = "POST"
path = "/v1/refunds"

[[tool]]
name = "get_ticket"
description = "Reads a ticket."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
path = "/v1/tickets/{id}"

[[tool]]
name = "note"
description = "Notes something."
input_schema = { type = "object", properties = { text = { type = "string" } } }
[tool.request]
method = "POST"
path = "/v1/notes"
"#;

/// The product with the files in `data`, a model on the OpenAI wire, a backend at that address, and more settings.
pub async fn started(data: TempDir, (model, backend): (&Upstream, &str), more: &[(&str, &str)]) -> TestApp {
    let model = format!("{}/v1", model.url());
    let settings = [
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", model.as_str()),
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", backend),
        // Stories of one decision need not wait for another.
        ("RUNS__DECISIONS_S", "0"),
    ];
    TestApp::start_in(data, &[&settings, more].concat()).await
}

/// Writes a file of the configuration.
pub fn write(data: &TempDir, path: &str, text: &str) {
    let path = data.path().join("config").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The writes that the backend got, as lines with their bodies.
pub fn writes(backend: &Upstream) -> Vec<String> {
    let requests = backend.requests().into_iter().filter(|request| request.method != "GET");
    requests.map(|request| format!("{} {} {}", request.method, request.path, request.json())).collect()
}
