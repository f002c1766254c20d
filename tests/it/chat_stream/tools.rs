//! Tools that are declared as data, as a page sees them: progress, payloads, roles.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Kh, complete, heard, tools, typed};
use crate::support::frames::read_until;
use crate::support::model::{Script, calls, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "search_articles"
description = "Finds articles."
input_schema = { type = "object", required = ["q"], properties = { q = { type = "string" } } }
[tool.request]
path = "/v1/articles"
query = { q = "{{ args.q }}" }
[tool.result]
text = "Found {{ result.total }} articles."
payload = "article_results"
[[tool]]
name = "index_articles"
description = "Reads all articles."
[tool.request]
path = "/v1/index"
progress = "ndjson"
[[tool]]
name = "read_secrets"
description = "Reads what analysts may read."
roles = ["analyst"]
[tool.request]
path = "/v1/secrets"
"#;

const LAB: &str = r#"
id = "lab"
page = "lab"
tools = ["search_articles", "index_articles", "read_secrets"]
payload_types = ["article_results", "query_suggestion"]
"#;

async fn playing(backend: &Upstream, turns: impl IntoIterator<Item = Script>) -> Kh {
    let url = backend.url();
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", url.as_str())];
    let files = [("tools/kh.toml", TOOLS), ("profiles/lab.toml", LAB)];
    Kh::with(&files, &settings, turns.into_iter().map(Script::answer)).await
}

fn lab() -> Value {
    typed("Go", &json!({"current_page": "lab"}))
}

fn articles(_: &Request) -> Option<Answer> {
    Some(Answer::ok("application/json", json!({"total": 2, "items": ["hidden-from-the-model"]}).to_string()))
}

#[tokio::test]
async fn the_model_reads_a_line_and_the_page_gets_the_payload() {
    let backend = Upstream::choosing(articles).await;
    let kh = playing(&backend, [calls("c", "search_articles", &json!({"q": "x"})), says("Two.")]).await;
    let payload = kh.answer(&lab()).await;
    assert_eq!(kh.s.last_asked().last().unwrap()["content"], "Found 2 articles.");
    let custom = &payload["custom_payload"];
    let expected = json!({
        "payload_id": custom["payload_id"], "type": "article_results",
        "data": {"total": 2, "items": ["hidden-from-the-model"]}, "summary": "2 articles",
    });
    assert_eq!(custom, &expected);
    let history = json!([{"tool_name": "search_articles", "input": {"q": "x"}, "output": "Found 2 articles."}]);
    assert_eq!(payload["tool_history"], history);
    let kept = kh.get(&format!("/api/chats/{}", payload["conversation_id"])).await;
    let extras = json!({"tool_history": history, "custom_payload": expected, "payloads": [expected]});
    assert_eq!(kept["messages"][1]["extras"], extras);
}

#[tokio::test]
async fn what_the_model_wrote_goes_before_what_a_tool_made_and_both_are_kept() {
    let backend = Upstream::choosing(articles).await;
    let wrote = turn()
        .text("First.\n\nQUERY_SUGGESTION: {\"query\": \"q\"}\n\n")
        .call("c", "search_articles", &json!({"q": "x"}))
        .done();
    let kh = playing(&backend, [wrote, says("Two.")]).await;
    let payload = kh.answer(&lab()).await;
    assert_eq!(payload["custom_payload"]["type"], "query_suggestion");
    let kept = kh.get(&format!("/api/chats/{}", payload["conversation_id"])).await;
    let extras = &kept["messages"][1]["extras"];
    assert_eq!(extras["custom_payload"], payload["custom_payload"]);
    let kinds: Vec<_> = extras["payloads"].as_array().unwrap().iter().map(|p| p["type"].clone()).collect();
    assert_eq!(kinds, ["query_suggestion", "article_results"]);
}

#[tokio::test]
async fn progress_is_heard_while_the_tool_still_works() {
    let gate = Arc::new(Notify::new());
    let first =
        "{\"stage\":\"read\",\"message\":\"Half of it\",\"progress\":0.5,\"data\":{\"n\":1}}\n{\"stage\":\"sort\"}\n";
    let answer = Answer::ok("application/x-ndjson", first).gated(&gate, "{\"result\":{\"done\":true}}\n");
    let backend = Upstream::script([answer]).await;
    let kh = playing(&backend, [calls("c", "index_articles", &json!({})), says("Done.")]).await;
    let mut response = kh.post(&lab()).await;
    let mut seen = read_until(&mut response, "\"sort\"").await;
    assert!(!seen.contains("tool_complete"), "{seen}");
    gate.notify_one();
    seen.push_str(&response.text().await.unwrap());
    let events = super::page::read(&seen);
    let progress: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool_progress").collect();
    let expected = [
        json!({"type": "tool_progress", "tool": "index_articles", "stage": "read", "message": "Half of it",
               "progress": 0.5, "data": {"n": 1}}),
        json!({"type": "tool_progress", "tool": "index_articles", "stage": "sort", "message": "", "progress": 0.5,
               "data": null}),
    ];
    assert_eq!(progress, expected.iter().collect::<Vec<_>>());
    assert_eq!(complete(&events)["message"], "[[tool:0]]\n\nDone.");
}

#[tokio::test]
async fn a_tool_for_a_role_is_for_tokens_with_it_alone() {
    let backend = Upstream::script([]).await;
    let kh = playing(&backend, [says("No."), says("Yes.")]).await;
    let mut body = lab();
    body["user_role"] = json!("analyst");
    body["context"]["user_role"] = json!("analyst");
    let rows = [(&["member"][..], false), (&["analyst"], true)];
    for (at, (roles, offered)) in rows.into_iter().enumerate() {
        heard(kh.post_as(&kh.s.app.token_of("ann", None, roles), &body).await).await;
        let names = tools(&kh.s.model.requests()[at]);
        assert_eq!(names.iter().any(|name| name == "read_secrets"), offered, "{roles:?}");
    }
}

#[tokio::test]
async fn tools_and_data_know_a_chat_by_its_number() {
    let tool = r#"
[[tool]]
name = "remember"
description = "Remembers."
[tool.request]
path = "/v1/notes"
query = { chat = "{{ conversation_id }}" }
"#;
    let page = r#"
id = "lab"
page = "lab"
tools = ["remember"]
"#;
    let backend = Upstream::choosing(|_| Some(Answer::ok("application/json", "{}"))).await;
    let url = backend.url();
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", url.as_str())];
    let files = [("tools/kh.toml", tool), ("profiles/lab.toml", page)];
    let turns = [calls("c", "remember", &json!({})), says("Done.")];
    let kh = Kh::with(&files, &settings, turns.into_iter().map(Script::answer)).await;
    let chat = kh.answer(&lab()).await["conversation_id"].as_i64().unwrap();
    assert_eq!(backend.requests()[0].path, format!("/v1/notes?chat={chat}"));
}

#[tokio::test]
async fn a_page_may_read_the_same_again_and_again() {
    let backend = Upstream::choosing(articles).await;
    let call = |id: &str| calls(id, "search_articles", &json!({"q": "x"}));
    let kh = playing(&backend, [call("a"), call("b"), call("c"), says("Two.")]).await;
    let payload = kh.answer(&lab()).await;
    let outputs: Vec<_> = payload["tool_history"].as_array().unwrap().iter().map(|used| &used["output"]).collect();
    assert_eq!(outputs, ["Found 2 articles."; 3]);
}

#[tokio::test]
async fn a_trace_shows_what_a_call_has_made() {
    let backend = Upstream::choosing(articles).await;
    let url = backend.url();
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", url.as_str())];
    let page = format!("{LAB}[diagnostics]\nshape = \"trace\"\n");
    let files = [("tools/kh.toml", TOOLS), ("profiles/lab.toml", page.as_str())];
    let turns = [calls("c", "search_articles", &json!({"q": "x"})), says("Two.")];
    let kh = Kh::with(&files, &settings, turns.into_iter().map(Script::answer)).await;
    let payload = kh.answer(&lab()).await;
    let call = &payload["diagnostics"]["iterations"][0]["tool_calls"][0];
    assert_eq!(call["payload"], payload["custom_payload"]);
}
