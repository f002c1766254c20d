//! What a page hears of a turn: text, tools and their markers, the whole answer at the end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Kh, complete, heard, hi, kinds, text, typed, within};
use crate::support::frames::read_until;
use crate::support::model::{Script, calls, says, turn};

/// A turn that says something when the gate opens.
fn gated(gate: &Arc<Notify>) -> crate::support::upstream::Answer {
    turn().text("So").answer().gated(gate, says(" be it.").bytes())
}

#[tokio::test]
async fn a_stream_begins_with_a_status_and_is_never_silent_for_long() {
    let gate = Arc::new(Notify::new());
    let kh = Kh::with(&[], &[], [gated(&gate)]).await;
    let mut response = kh.post(&hi()).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(response.headers().contains_key("x-run-id"));
    let mut seen = read_until(&mut response, "So").await;
    seen.push_str(&read_until(&mut response, ": ping\n\n").await);
    seen.push_str(&read_until(&mut response, ": ping\n\n").await);
    gate.notify_one();
    seen.push_str(&response.text().await.unwrap());
    assert!(seen.starts_with("event: message\ndata: {\"type\":\"status\",\"message\":\"Thinking...\"}\n\n"), "{seen}");
    let events = super::page::read(&seen);
    assert_eq!(kinds(&events), ["status", "text_delta", "complete"]);
    assert_eq!(events.iter().filter(|event| event["type"] == "status").count(), 2, "{events:#?}");
}

#[tokio::test]
async fn a_plain_answer_is_its_pieces_and_the_last_event_says_everything_once_more() {
    let kh = Kh::playing([says("Grüße, \"you\"\n\nand [others] {here}.")]).await;
    let events = kh.hears(&hi()).await;
    let expected = json!({
        "message": "Grüße, \"you\"\n\nand [others] {here}.",
        "suggested_values": null,
        "suggested_actions": null,
        "custom_payload": null,
        "tool_history": null,
        "conversation_id": complete(&events)["conversation_id"],
        "warning": null,
        "diagnostics": null,
    });
    assert_eq!(complete(&events), &expected);
    assert!(complete(&events)["conversation_id"].is_i64());
    assert_eq!(text(&events), expected["message"].as_str().unwrap());
}

#[tokio::test]
async fn a_chat_that_will_soon_be_too_long_says_so() {
    // The model counts ten tokens: that is more than seven tenths of 13, and not of 200.
    for (bytes, is_warned) in [("52", true), ("800", false)] {
        let kh = Kh::with(&[], &[("LIMITS__HISTORY_BYTES", bytes)], [says("Yes.").answer()]).await;
        let events = kh.hears(&hi()).await;
        assert_eq!(complete(&events)["warning"].is_string(), is_warned, "{bytes}: {events:?}");
    }
}

#[tokio::test]
async fn each_call_is_begun_marked_and_ended_in_order_and_a_later_turn_sees_no_marker() {
    let both = turn()
        .text("Let me see.")
        .call("a", "discover_trigger_types", &json!({}))
        .call("b", "discover_entities", &json!({}))
        .done();
    let kh = Kh::playing([both, says("There."), says("Again.")]).await;
    let page = json!({"current_page": "reports"});
    let events = kh.hears(&typed("Look", &page)).await;
    let results: Vec<Value> = kh.s.last_asked()[3..5].iter().map(|result| result["content"].clone()).collect();
    // The text of a turn may come in any number of pieces.
    let at = events.iter().position(|event| event["type"] == "tool_start").unwrap();
    let until = events.iter().position(|event| event["text"] == "There.").unwrap();
    let expected = json!([
        {"type": "tool_start", "tool": "discover_trigger_types", "input": {}, "tool_use_id": "a"},
        {"type": "text_delta", "text": "[[tool:0]]"},
        {"type": "tool_complete", "tool": "discover_trigger_types", "index": 0},
        {"type": "tool_start", "tool": "discover_entities", "input": {}, "tool_use_id": "b"},
        {"type": "text_delta", "text": "[[tool:1]]"},
        {"type": "tool_complete", "tool": "discover_entities", "index": 1},
        {"type": "text_delta", "text": "\n\n"},
    ]);
    assert_eq!(json!(events[at..until]), expected);
    let payload = complete(&events);
    assert_eq!(payload["message"], "Let me see.[[tool:0]][[tool:1]]\n\nThere.");
    let history = json!([
        {"tool_name": "discover_trigger_types", "input": {}, "output": results[0]},
        {"tool_name": "discover_entities", "input": {}, "output": results[1]},
    ]);
    assert_eq!(payload["tool_history"], history);

    let chat = payload["conversation_id"].clone();
    kh.hears(&within(&chat, typed("And?", &page))).await;
    let asked = kh.s.last_asked();
    assert!(!asked.iter().any(|message| message.to_string().contains("[[tool:")), "{asked:#?}");
    let kept = kh.get(&format!("/api/chats/{chat}")).await;
    assert_eq!(kept["messages"][1]["content"], payload["message"]);
    assert_eq!(kept["messages"][1]["extras"]["tool_history"], history);
}

#[tokio::test]
async fn a_call_that_fails_is_ended_and_told_like_any_other() {
    let rows = [
        ("no_such_tool", json!({}), json!({}), "unknown tool"),
        ("get_workflow_rule", json!({"workflow_id": "none such"}), json!({"workflow_id": "none such"}), "none such"),
    ];
    for (tool, args, shown, error) in rows {
        let files = [("profiles/rules.toml", "id = \"rules\"\npage = \"rules\"\ntools = [\"get_workflow_rule\"]\n")];
        let turns = [calls("c", tool, &args), says("Sorry.")].map(Script::answer);
        let kh = Kh::with(&files, &[], turns).await;
        let events = kh.hears(&typed("Do", &json!({"current_page": "rules"}))).await;
        let expected = ["status", "tool_start", "text_delta", "tool_complete", "text_delta", "complete"];
        assert_eq!(kinds(&events), expected, "{tool}");
        let history = &complete(&events)["tool_history"];
        assert_eq!((&history[0]["tool_name"], &history[0]["input"]), (&json!(tool), &shown));
        assert!(history[0]["output"].as_str().unwrap().contains(error), "{history}");
    }
}

#[tokio::test]
async fn a_model_that_never_stops_calling_is_asked_for_an_answer_without_tools() {
    let call = |id: &str| calls(id, "discover_trigger_types", &json!({}));
    let kh = Kh::playing([call("a"), call("b"), call("c"), says("Enough.")]).await;
    let events = kh.hears(&hi()).await;
    assert_eq!(complete(&events)["message"], "[[tool:0]]\n\n[[tool:1]]\n\n[[tool:2]]\n\nEnough.");
    let requests = kh.s.model.requests();
    assert_eq!(requests.len(), 4);
    // Some vendors want the tools of the history described; none of them may be called.
    let last = requests[3].json();
    assert!(last.get("tools").is_none() || last["tool_choice"] == "none", "{last:#}");
}

#[tokio::test]
async fn a_request_that_is_sent_twice_hears_the_same_run_again() {
    let kh = Kh::playing([calls("c", "discover_trigger_types", &json!({})), says("Once.")]).await;
    let send = || async {
        let request = kh.s.app.http.post(kh.s.app.url(super::STREAM)).bearer_auth(&kh.s.app.token);
        heard(request.header("idempotency-key", "k").json(&hi()).send().await.unwrap()).await
    };
    let first = send().await;
    assert_eq!(send().await, first);
}

#[tokio::test]
async fn a_stop_of_the_server_is_told_as_a_cancelled_run() {
    let kh = Kh::with(&[], &[("SERVER__DRAIN_S", "0")], [turn().text("Half").hangs().answer()]).await;
    let mut response = kh.post(&hi()).await;
    let mut seen = read_until(&mut response, "Half").await;
    let rest = async { tokio::time::timeout(Duration::from_secs(10), response.text()).await.unwrap().unwrap() };
    let (rest, _data) = tokio::join!(rest, kh.s.app.stop());
    seen.push_str(&rest);
    let events = super::page::read(&seen);
    assert_eq!(events.last(), Some(&json!({"type": "cancelled"})));
}
