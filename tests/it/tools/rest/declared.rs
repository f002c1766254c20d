//! What a file says of arguments and answers besides the call: values in one form, defaults of a whole file, answers that
//! need no call.

use serde_json::{Value, json};

use super::{Setup, answer};
use crate::support::upstream::{Answer, Request};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

const TOOLS: &str = r#"
[defaults]
headers = { "X-Source" = "chat", "X-Chat" = "{{ conversation_id }}" }
timeout_s = 20
inject = { project_id = "{{ context.project_id }}" }
[defaults.values]
"*_id" = { trim = true }
project_id = { trim = true, uuid = true }

[[tool]]
name = "update_task"
description = "Changes a task."
input_schema = '''
{"type": "object", "required": ["task_id"], "properties": {
  "project_id": {"type": "string"}, "task_id": {"type": "string"}, "plan_id": {"type": "string"},
  "state": {"enum": ["todo", "done"]}, "start": {"type": "string"}, "end": {"type": "string"},
  "tags": {"type": "array"}}}'''
request = { method = "PATCH", path = "/tasks/{task_id}", headers = { "x-source" = "task" } }
[tool.values.state]
map = { todo = ["pending", "not started"], done = ["complete", "finished"] }
[tool.values.start]
date = "start"
[tool.values.end]
date = "end"
[tool.values.tags]
json = true

[[tool]]
name = "list_tasks"
description = "Lists tasks."
input_schema = { type = "object", properties = { limit = { type = "integer" } } }
request = { path = "/tasks" }

[[tool]]
name = "fields"
description = "Tells the fields of a kind of thing."
input_schema = { type = "object", required = ["kind"], properties = { kind = { type = "string" } } }
[[tool.answers]]
when = "{{ args.kind == 'task' }}"
json = { fields = ["title", "state"], kind = "{{ args.kind }}" }
[[tool.answers]]
text = "There is no {{ args.kind|one_line }}; there are: task."
error = true

[[tool]]
name = "create"
description = "Makes a project."
input_schema = { type = "object", properties = { questions = { type = "array" }, name = { type = "string" } } }
request = { method = "POST", path = "/projects" }
[[tool.answers]]
when = "{{ args.questions }}"
json = { questions = "{{ args.questions }}", made = false }

[[tool]]
name = "events"
description = "Lists events."
input_schema = { type = "object", properties = { project = { type = "string" }, n = { type = "integer" } } }
request = { method = "POST", path = "/calendar", effect = "read", body = { at_most = "{{ args.n }}" } }
[[tool.instead]]
when = "{{ args.project }}"
path = "/projects/{project}/events"
query = { limit = "{{ args.n }}" }

[[tool]]
name = "note"
description = "Changes a note."
[tool.input_schema]
type = "object"
required = ["id", "text"]
properties = { id = { type = "string" }, text = { type = "string" }, add = { type = "boolean" }, due = { type = "object" } }
[tool.values]
"due.on" = { date = "end" }
[tool.before]
when = "{{ args.add }}"
path = "/notes/{id}"
[tool.request]
method = "PATCH"
path = "/notes/{id}"
body = { text = "{{ before.text ~ ' ' ~ args.text if before else args.text }}", due = "{{ args.due }}" }
"#;

fn echo(request: &Request) -> Option<Answer> {
    answer(&json!({"path": request.path}))
}

fn setup(context: Value) -> Setup<'static> {
    Setup { context, ..Setup::of(TOOLS) }
}

#[tokio::test]
async fn values_take_one_form_before_they_are_held_to_the_schema() {
    let args = json!({
        "task_id": format!(" {ID} "), "project_id": "the big one", "plan_id": " ", "state": "Not-started",
        "start": "March 2026", "end": "2026", "tags": "[\"a\", \"b\"]",
    });
    let odd = json!({"task_id": ID, "state": "sometime", "start": "soon"});
    let calls = [("c1", "update_task", args), ("c2", "update_task", odd)];
    let ran = setup(json!({"project_id": "p-1"})).calling(&calls, echo).await;
    let bodies: Vec<Value> = ran.requests.iter().map(Request::json).collect();
    let expected = [
        json!({
            "project_id": "p-1", "state": "todo", "start": "2026-03-01T00:00:00Z", "end": "2026-12-31T23:59:59Z",
            "tags": ["a", "b"],
        }),
        json!({"project_id": "p-1"}),
    ];
    assert_eq!(bodies, expected, "{:?}", ran.read);
    assert_eq!(ran.lines(), [format!("PATCH /api/tasks/{ID}"), format!("PATCH /api/tasks/{ID}")]);
}

#[tokio::test]
async fn defaults_of_a_file_count_where_a_tool_says_nothing() {
    let calls = [("c1", "update_task", json!({"task_id": ID})), ("c2", "list_tasks", json!({"limit": 5}))];
    let ran = setup(json!({"project_id": "p-1"})).calling(&calls, echo).await;
    let sources: Vec<_> = ran.requests.iter().map(|request| request.header("x-source")).collect();
    assert_eq!(sources, [Some("task"), Some("chat")], "a tool's own header counts");
    assert!(ran.requests.iter().all(|request| request.header("x-chat").is_some()));
    assert_eq!(ran.lines()[1], "GET /api/tasks?limit=5", "an argument that the schema does not have is not filled in");
}

#[tokio::test]
async fn an_answer_without_a_call_sends_nothing() {
    let calls = [
        ("c1", "fields", json!({"kind": "task"})),
        ("c2", "fields", json!({"kind": "goal"})),
        ("c3", "create", json!({"questions": ["When?"], "name": "A"})),
        ("c4", "create", json!({"questions": [], "name": "A"})),
    ];
    let ran = setup(json!({})).calling(&calls, echo).await;
    let read = [
        Ok(json!({"fields": ["title", "state"], "kind": "task"})),
        Err("There is no goal; there are: task.".to_owned()),
        Ok(json!({"questions": ["When?"], "made": false})),
        Ok(json!({"path": "/api/projects"})),
    ];
    assert_eq!(ran.read, read);
    assert_eq!(ran.lines(), ["POST /api/projects"]);
}

#[tokio::test]
async fn another_request_is_made_where_its_condition_is_true() {
    let calls = [("c1", "events", json!({"n": 3})), ("c2", "events", json!({"n": 3, "project": "a/b"}))];
    let ran = setup(json!({})).calling(&calls, echo).await;
    assert_eq!(ran.lines(), ["POST /api/calendar", "GET /api/projects/a%2Fb/events?limit=3"]);
    assert_eq!(ran.requests[0].json(), json!({"at_most": 3}));
    assert!(ran.requests[1].body.is_empty());
}

#[tokio::test]
async fn what_is_there_is_read_before_it_is_changed_and_a_failure_changes_nothing() {
    let old = |request: &Request| match request.path.as_str() {
        "/api/notes/gone" => Some(Answer::status(404, "application/json", "{}")),
        _ => answer(&json!({"text": "Old."})),
    };
    let calls = [
        ("c1", "note", json!({"id": "n", "text": "New.", "due": {"on": "2026"}})),
        ("c2", "note", json!({"id": "n", "text": "New.", "add": true})),
        ("c3", "note", json!({"id": "gone", "text": "New.", "add": true})),
    ];
    let ran = setup(json!({})).calling(&calls, old).await;
    let lines = ["PATCH /api/notes/n", "GET /api/notes/n", "PATCH /api/notes/n", "GET /api/notes/gone"];
    assert_eq!(ran.lines(), lines, "{:?}", ran.read);
    assert_eq!(ran.requests[0].json(), json!({"text": "New.", "due": {"on": "2026-12-31T23:59:59Z"}}));
    assert_eq!(ran.requests[2].json(), json!({"text": "Old. New."}));
    assert!(ran.requests[1].header("idempotency-key").is_none() && ran.requests[2].header("idempotency-key").is_some());
    assert!(ran.read[2].is_err(), "{:?}", ran.read);
}
