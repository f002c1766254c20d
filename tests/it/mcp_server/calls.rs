//! Profiles that are called: their answers, conversations, progress, errors and ends.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{call, error, forms, messages, post, result, result_as, text};
use crate::openai::{playing, with};
use crate::support::model::{Script, calls, says, turn};
use crate::support::wait::eventually;

fn ask(message: &str) -> Value {
    call("ask_workflow", json!({"message": message}), forms())
}

#[tokio::test]
async fn an_answer_is_text_and_data_and_its_conversation_goes_on() {
    let s = playing([says("One."), says("Two.")]).await;
    let first = result(&s.app, &ask("First?")).await;
    let data = &first["structuredContent"];
    assert_eq!(
        (text(&first), &first["isError"], &first["resultType"]),
        ("One.".to_owned(), &json!(false), &json!("complete"))
    );
    assert_eq!((&data["answer"], &data["state"]), (&json!("One."), &json!("completed")));
    let arguments = json!({"message": "Second?", "conversation_id": data["conversation_id"]});
    let second = result(&s.app, &call("ask_workflow", arguments, forms())).await;
    assert_eq!(second["structuredContent"]["conversation_id"], data["conversation_id"]);
    let asked = json!(s.last_asked()).to_string();
    assert!(["First?", "One.", "Second?"].iter().all(|said| asked.contains(said)), "{asked}");
    // The native protocol knows the same run.
    let run = s.app.url(&format!("/v1/agent/runs/{}", data["run_id"].as_str().unwrap()));
    let run: Value = s.app.http.get(run).bearer_auth(&s.app.token).send().await.unwrap().json().await.unwrap();
    assert_eq!(run["state"], "completed");
}

#[tokio::test]
async fn another_users_conversation_is_none() {
    let s = playing([says("One.")]).await;
    let first = result(&s.app, &ask("First?")).await;
    let arguments = json!({"message": "Second?", "conversation_id": first["structuredContent"]["conversation_id"]});
    let bob = s.app.token_of("bob", None, &["USER"]);
    let theirs = result_as(&s.app, &bob, &call("ask_workflow", arguments, forms())).await;
    assert_eq!((&theirs["isError"], text(&theirs)), (&json!(true), "there is no such conversation".to_owned()));
    assert_eq!(s.model.requests().len(), 1);
}

#[tokio::test]
async fn progress_grows_and_stops_with_the_result() {
    let s = playing([calls("c1", "discover_trigger_types", &json!({})), says("Done.")]).await;
    let mut message = ask("Which?");
    message["params"]["_meta"]["progressToken"] = json!("p-1");
    let all = messages(post(&s.app, &s.app.token, "/mcp", &message).await).await;
    let (last, notices) = all.split_last().unwrap();
    assert_eq!(text(&last["result"]), "Done.");
    assert!(notices.len() >= 3, "{notices:?}");
    for (at, notice) in notices.iter().enumerate() {
        assert_eq!(notice["method"], "notifications/progress");
        assert_eq!(
            (&notice["params"]["progressToken"], &notice["params"]["progress"]),
            (&json!("p-1"), &json!(at + 1))
        );
    }
    assert!(json!(notices).to_string().contains("Calls discover_trigger_types"));
}

#[tokio::test]
async fn who_wants_no_progress_or_no_stream_gets_the_result_alone() {
    let s = playing([says("One."), says("Two.")]).await;
    assert_eq!(messages(post(&s.app, &s.app.token, "/mcp", &ask("a")).await).await.len(), 1);
    let old = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "ask_workflow", "arguments": {"message": "b"}}});
    let sent = s.app.http.post(s.app.url("/mcp")).bearer_auth(&s.app.token).header("accept", "application/json");
    let response = sent.json(&old).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    let all = messages(response).await;
    let [answer] = &all[..] else { panic!("{all:?}") };
    assert_eq!((text(&answer["result"]), &answer["result"]["resultType"]), ("Two.".to_owned(), &Value::Null));
}

#[tokio::test]
async fn a_run_that_fails_is_a_result_that_is_an_error() {
    let s = with(&[], &[], [turn().text("Half").breaks().answer()]).await;
    let failed = result(&s.app, &ask("a")).await;
    assert_eq!((&failed["isError"], &failed["structuredContent"]["state"]), (&json!(true), &json!("failed")));
    assert!(text(&failed).contains("connection to the AI service"), "{failed}");
}

#[tokio::test]
async fn wrong_arguments_are_for_the_model_and_an_unknown_tool_for_its_client() {
    let s = playing([]).await;
    let rows = [
        (json!({}), "message must be"),
        (json!({"message": "  "}), "message must be"),
        (json!({"message": 5}), "message must be"),
        (json!({"message": "a", "conversation_id": 5}), "conversation_id must be"),
        (json!({"message": "a", "conversation_id": "a b"}), "no such conversation"),
    ];
    for (arguments, expected) in rows {
        let refused = result(&s.app, &call("ask_workflow", arguments.clone(), forms())).await;
        assert_eq!(refused["isError"], true, "{arguments}");
        assert!(text(&refused).contains(expected), "{arguments}: {refused}");
    }
    for name in ["ask_chief", "ask_nobody", "close_ticket", ""] {
        let (status, error) =
            error(post(&s.app, &s.app.token, "/mcp", &call(name, json!({"message": "a"}), forms())).await).await;
        assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{name}");
    }
    assert!(s.model.requests().is_empty());
}

#[tokio::test]
async fn who_goes_away_cancels_the_run() {
    let s = playing([turn().text("Slowly").hangs()]).await;
    let response = post(&s.app, &s.app.token, "/mcp", &ask("a")).await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    drop(response);
    let url = s.app.url(&format!("/v1/agent/runs/{run}"));
    eventually("the run is cancelled", async || {
        let run: Value = s.app.http.get(&url).bearer_auth(&s.app.token).send().await.unwrap().json().await.unwrap();
        (run["state"] == "cancelled").then_some(())
    })
    .await;
}

#[tokio::test]
async fn limits_of_users_count_here_too() {
    let settings = [("LIMITS__STARTS_PER_MINUTE", "1"), ("LIMITS__STARTS_BURST", "1")];
    let s = with(&[], &settings, [says("One.")].map(Script::answer)).await;
    result(&s.app, &ask("a")).await;
    let response = post(&s.app, &s.app.token, "/mcp", &ask("b")).await;
    assert!(response.headers().contains_key("retry-after"));
    let (status, error) = error(response).await;
    assert_eq!((status, &error["data"]["code"]), (429, &json!("rate_limited")));
}

#[tokio::test]
async fn a_request_without_a_name_of_its_client_is_called_off_by_nobody() {
    let gate = Arc::new(Notify::new());
    let s = with(&[], &[], [turn().text("Half").answer().gated(&gate, says(" done.").bytes())]).await;
    let asking = post(&s.app, &s.app.token, "/mcp", &ask("a")).await;
    let off = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(post(&s.app, &s.app.token, "/mcp", &off).await.status(), 202);
    gate.notify_one();
    let all = messages(asking).await;
    assert_eq!(all.last().unwrap()["result"]["structuredContent"]["state"], "completed", "{all:?}");
}

#[tokio::test]
async fn an_answer_with_a_schema_is_data() {
    let s = playing([says(r#"{"colour": "red"}"#), says("Red.")]).await;
    let schema = json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]});
    let arguments = json!({"message": "Which?", "answer_schema": schema});
    let answer = result(&s.app, &call("ask_workflow", arguments, forms())).await;
    assert_eq!(answer["structuredContent"]["data"], json!({"colour": "red"}), "{answer}");
    let plain = result(&s.app, &ask("Which?")).await;
    assert!(plain["structuredContent"]["data"].is_null(), "{plain}");
    let wrong = json!({"message": "Which?", "answer_schema": {"type": 5}});
    let refused = result(&s.app, &call("ask_workflow", wrong, forms())).await;
    assert!(refused["isError"] == true && text(&refused).contains("answer_schema"), "{refused}");
}

#[tokio::test]
async fn a_large_message_is_read_like_any_other() {
    let s = playing([says("Long.")]).await;
    let arguments = json!({"message": "Which?", "ignored": "x".repeat(3 << 20)});
    assert_eq!(text(&result(&s.app, &call("ask_workflow", arguments, forms())).await), "Long.");
}
