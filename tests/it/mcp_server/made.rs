//! Files that a run has made before its user was asked: the result behind the decision has them too.

use serde_json::{Value, json};

use super::approvals::{again, approves};
use super::tasks::{about, until};
use super::{call, forms, result, tasks};
use crate::files::PIXEL;
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::upstream::Answer;
use crate::tools::mcp::{Fake, product_with, text as says_text, tool};

const PROFILE: &str = r#"
id = "desk"
context_type = "desk"
instructions = ["workflow/role.md"]
tools = ["discover_entities"]
sources = ["peer"]
"#;

/// A server that draws without being asked twice, and sends only what somebody has let through.
pub async fn drawing(turns: impl IntoIterator<Item = Script>) -> (Fake, Scripted) {
    let tools = json!([tool("draw", "Draws.", true), tool("send", "Sends.", false)]);
    let fake = Fake::new(tools, |id, params| match params["name"] == "draw" {
        true => {
            let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"content": [image]}});
            Answer::ok("application/json", answer.to_string())
        }
        false => says_text(id, "sent"),
    })
    .await;
    let settings = [("RUNS__DECISIONS_S", "0")];
    let s = product_with(&fake.section(""), PROFILE, &settings, turns).await;
    (fake, s)
}

/// A turn that draws, and wants to send.
fn draws_and_sends() -> Script {
    turn().call("c1", "peer__draw", &json!({})).call("c2", "peer__send", &json!({"n": 1})).done()
}

fn ask(capabilities: Value) -> Value {
    call("ask_desk", json!({"message": "Draw and send"}), capabilities)
}

/// The media types of the files that a result links to.
fn links(result: &Value) -> Vec<&str> {
    let items = result["content"].as_array().unwrap_or_else(|| panic!("{result}")).iter();
    items.filter(|item| item["type"] == "resource_link").map(|item| item["mimeType"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_call_that_goes_on_behind_decisions_has_all_of_its_files_once() {
    let (_fake, s) = drawing([draws_and_sends(), calls("c3", "peer__send", &json!({"n": 2})), says("Sent.")]).await;
    let first = result(&s.app, &ask(forms())).await;
    assert_eq!(first["resultType"], "input_required", "{first}");
    let second = result(&s.app, &again(ask(forms()), &first, approves())).await;
    assert_eq!(second["resultType"], "input_required", "{second}");
    let done = result(&s.app, &again(ask(forms()), &second, approves())).await;
    assert_eq!((&done["structuredContent"]["answer"], links(&done)), (&json!("Sent."), vec!["image/png"]), "{done}");
}

#[tokio::test]
async fn a_task_that_goes_on_behind_a_decision_has_all_of_its_files() {
    let (_fake, s) = drawing([draws_and_sends(), says("Sent.")]).await;
    let task = result(&s.app, &ask(tasks())).await;
    let waits = until(&s.app, &task, "input_required").await;
    let key = waits["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let mut update = about("tasks/update", &task);
    update["params"]["inputResponses"] = json!({key: approves()});
    result(&s.app, &update).await;
    let done = until(&s.app, &task, "completed").await;
    assert_eq!(links(&done["result"]), ["image/png"], "{done}");
}
