//! How a run was carried out, as the panels of the two kinds of pages read it.

use serde_json::{Value, json};

use super::{Kh, typed, within};
use crate::support::model::{Script, calls, says};

/// A page whose profile shows `shape`, to `roles`.
fn lab(shape: &str, roles: &str) -> String {
    format!(
        "id = \"lab\"\npage = \"lab\"\nidentity = \"kh/identity.md\"\n[diagnostics]\nshape = \"{shape}\"\nroles = {roles}\n\
         [model]\ntemperature = 0.0\nmax_tokens = 2000\n"
    )
}

async fn playing(shape: &str, roles: &str, turns: impl IntoIterator<Item = Script>) -> Kh {
    let profile = lab(shape, roles);
    let files = [("profiles/lab.toml", profile.as_str())];
    Kh::with(&files, &[], turns.into_iter().map(Script::answer)).await
}

fn sent_with(iteration: &Value) -> usize {
    iteration["messages_to_model"].as_array().unwrap().len()
}

fn lab_page() -> Value {
    json!({"current_page": "lab", "report_id": 7})
}

#[tokio::test]
async fn the_basic_panel_sees_what_was_asked_and_the_raw_answer() {
    let raw = "Pick.\n\nSUGGESTED_VALUES: [{\"label\": \"A\", \"value\": \"a\"}]";
    let kh = playing("basic", "[]", [says("Hello."), says(raw)]).await;
    let chat = kh.answer(&typed("Hi", &lab_page())).await["conversation_id"].clone();
    let payload = kh.answer(&within(&chat, typed("And?", &lab_page()))).await;
    let shown = &payload["diagnostics"];
    assert!(!shown["model"].as_str().unwrap().contains(':'), "{shown}");
    let expected = json!({
        "model": shown["model"],
        "max_tokens": 2000,
        "max_iterations": 3,
        "temperature": 0.0,
        "tools": ["discover_trigger_types"],
        "system_prompt": kh.last_system(),
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
        "context": lab_page(),
        "raw_llm_response": raw,
    });
    assert_eq!(shown, &expected);
    let kept = kh.get(&format!("/api/chats/{chat}")).await;
    assert_eq!(kept["messages"][3]["extras"]["diagnostics"], expected);
    assert!(!kept.to_string().contains(&kh.s.app.token), "the token is nowhere");
}

#[tokio::test]
async fn the_trace_has_each_call_and_tells_of_a_run_that_came_to_its_limit() {
    let call = |id: &str| calls(id, "discover_trigger_types", &json!({}));
    let kh = playing("trace", "[]", [call("a"), call("b"), call("c"), says("Enough.")]).await;
    let payload = kh.answer(&typed("Hi", &lab_page())).await;
    let shown = &payload["diagnostics"];
    assert_eq!((&shown["outcome"], &shown["total_iterations"]), (&json!("max_iterations"), &json!(4)));
    let output = &payload["tool_history"][0]["output"];
    let first = &shown["iterations"][0];
    let expected = json!([{
        "tool_use_id": "a", "tool_name": "discover_trigger_types", "tool_input": {}, "output_from_executor": output,
        "output_type": "text", "output_to_model": output, "payload": null,
        "execution_ms": first["tool_calls"][0]["execution_ms"],
    }]);
    assert_eq!((&first["iteration"], &first["tool_calls"]), (&json!(1), &expected));
    let sent: Vec<usize> = shown["iterations"].as_array().unwrap().iter().map(sent_with).collect();
    assert_eq!(sent, [1, 3, 5, 8], "the question; then each call and its result; at last a word of the server");
    let second = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "discover_trigger_types", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": output, "is_error": false}]},
    ]);
    assert_eq!(shown["iterations"][1]["messages_to_model"], second);
    assert_eq!(shown["initial_messages"], json!([{"role": "user", "content": "Hi"}]));
    let reasons: Vec<&Value> = shown["iterations"].as_array().unwrap().iter().map(|it| &it["stop_reason"]).collect();
    assert_eq!(reasons, ["tool_use", "tool_use", "tool_use", "end_turn"]);
    let of_answer = &shown["final_response"];
    assert_eq!(
        (&of_answer["conversation_id"], &of_answer["tool_history"]),
        (&payload["conversation_id"], &payload["tool_history"])
    );
    let kept = kh.get(&format!("/api/chats/{}", payload["conversation_id"])).await;
    assert_eq!(&kept["messages"][1]["extras"]["diagnostics"], shown, "the same when it is read again, its id too");
    assert_eq!(shown["iterations"][3]["response_content"], json!([{"type": "text", "text": "Enough."}]));
    assert_eq!((&shown["final_text"], &shown["final_response"]["message"]), (&json!("Enough."), &payload["message"]));
    assert_eq!((&shown["total_input_tokens"], &shown["total_output_tokens"]), (&json!(40), &json!(20)));
    assert_eq!(
        (&shown["peak_input_tokens"], &shown["tools"][0]["name"]),
        (&json!(10), &json!("discover_trigger_types"))
    );
}

#[tokio::test]
async fn nobody_else_sees_how_it_was_done() {
    let rows = [("off", "[]", false), ("basic", "[\"AUDITOR\"]", false), ("basic", "[\"ADMIN\", \"AUDITOR\"]", true)];
    for (shape, roles, seen) in rows {
        let kh = playing(shape, roles, [says("Hello.")]).await;
        let payload = kh.answer(&typed("Hi", &lab_page())).await;
        assert_eq!(payload["diagnostics"].is_object(), seen, "{shape} {roles}");
        let kept = kh.get(&format!("/api/chats/{}", payload["conversation_id"])).await;
        assert_eq!(kept["messages"][1]["extras"].is_object(), seen, "{shape} {roles}");
    }
}
