//! The AI SDK's own clients, of all versions: what their pages show after a walk.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{World, thinks};
use crate::support::model::{Script, calls, says, turn};
use crate::support::node;
use crate::support::upstream::{Answer, Upstream};

const ALL: [&str; 3] = ["5", "6", "7"];
const WITH_APPROVALS: [&str; 2] = ["6", "7"];

/// What a page shows after `walk`, where its model plays these turns.
async fn walked(major: &str, walk: &str, turns: impl IntoIterator<Item = Script>) -> Option<(World, Value)> {
    let w = World::playing(turns).await;
    let seen = node::run("ai-sdk.mjs", &[major, walk], &w.s.app).await?;
    Some((w, seen))
}

/// The parts of the newest message, without what is about its streaming.
fn parts(seen: &Value) -> Vec<Value> {
    let parts = seen["messages"].as_array().unwrap().last().unwrap()["parts"].as_array().unwrap();
    parts.clone()
}

fn step() -> Value {
    json!({"type": "step-start"})
}

fn text(said: &str) -> Value {
    json!({"type": "text", "text": said, "state": "done"})
}

/// A call that has its answer.
fn called(id: &str, input: Value, output: Value) -> Value {
    json!({
        "type": "dynamic-tool", "toolName": "get_ticket", "toolCallId": id, "state": "output-available", "input": input,
        "output": output,
    })
}

#[tokio::test]
async fn every_version_shows_thoughts_text_and_parallel_calls() {
    for major in ALL {
        let first = thinks("Let me see.")
            .text("I look.")
            .call("c1", "get_ticket", &json!({"id": 7}))
            .call("c2", "get_ticket", &json!({"id": 8}))
            .call_raw("c3", "get_ticket", "{broken")
            .done();
        let turns = [first, says("Both are there.")];
        let Some((_, seen)) = walked(major, "automatic", turns).await else { return };
        let usage = json!({"inputTokens": 20, "outputTokens": 10, "totalTokens": 30});
        let mut metadata = json!({"runId": "id-1", "provider": "openai", "model": "m", "usage": usage});
        if major == "5" {
            metadata["finishReason"] = json!("stop");
        }
        let mut reasoning = json!({"type": "reasoning", "text": "Let me see.", "state": "done"});
        if seen["messages"][1]["parts"][1].get("id").is_some() {
            reasoning["id"] = json!("id-1.1");
        }
        let broken = json!({
            "type": "dynamic-tool", "toolName": "get_ticket", "toolCallId": "c3", "state": "output-error", "input": "{broken",
            "errorText": "The arguments of this call cannot be read",
        });
        let answer = json!({"id": "id-1.1", "role": "assistant", "metadata": metadata, "parts": [
            step(),
            reasoning,
            text("I look."),
            called("c1", json!({"id": 7}), json!({"ok": true})),
            called("c2", json!({"id": 8}), json!({"ok": true})),
            broken,
            step(),
            text("Both are there."),
        ]});
        let question = json!({"id": "mine-1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]});
        assert_eq!(seen["messages"], json!([question, answer]), "{major}: {seen:#}");
        assert_eq!(seen["requests"], json!(["POST /v1/ai-sdk/chat"]), "{major}: nothing was to be sent again");
        assert_eq!(seen["status"], json!("ready"));
    }
}

#[tokio::test]
async fn every_version_shows_why_an_answer_failed() {
    for major in ALL {
        let Some((_, seen)) = walked(major, "automatic", [turn().text("Half").breaks()]).await else { return };
        assert_eq!(seen["status"], json!("error"), "{major}: {seen:#}");
        assert!(seen["error"].as_str().unwrap().contains(" (reference: "), "{major}: {seen:#}");
        assert_eq!(parts(&seen), [step(), text("Half")], "{major}");
    }
}

#[tokio::test]
async fn a_server_that_stops_an_answer_is_no_reason_to_ask_again() {
    for major in ALL {
        let turns = [calls("c1", "get_ticket", &json!({"id": 7})), turn().text("Half").hangs()];
        let Some((_, seen)) = walked(major, "stop", turns).await else { return };
        let expected = [step(), called("c1", json!({"id": 7}), json!({"ok": true})), step(), text("Half")];
        assert_eq!(parts(&seen), expected, "{major}: {seen:#}");
        assert_eq!(seen["heard"], json!([{"stopped": true}, {"stopped": false}]), "{major}");
        assert_eq!(
            (&seen["status"], &seen["requests"]),
            (&json!("ready"), &json!(["POST /v1/ai-sdk/chat"])),
            "{major}"
        );
    }
}

#[tokio::test]
async fn a_page_that_is_loaded_again_shows_the_whole_answer() {
    for major in ALL {
        let gate = Arc::new(Notify::new());
        let answer = turn().text("Half").answer().gated(&gate, says(" and half.").bytes());
        let w = World::answering(&[], [answer]).await;
        let signal = Upstream::choosing(move |_| {
            gate.notify_one();
            Some(Answer::ok("text/plain", "ok"))
        })
        .await;
        let Some(seen) = node::run("ai-sdk.mjs", &[major, "resume", &signal.url()], &w.s.app).await else { return };
        assert_eq!(parts(&seen), [step(), text("Half and half.")], "{major}: {seen:#}");
        assert_eq!(seen["messages"].as_array().unwrap().len(), 2, "{major}");
        assert_eq!(seen["heard"], json!([{"unchanged": true, "status": "ready"}]), "{major}");
        let requests = ["POST /v1/ai-sdk/chat", "GET /v1/ai-sdk/chat/c/stream", "GET /v1/ai-sdk/chat/c/stream"];
        assert_eq!(seen["requests"], json!(requests), "{major}");
    }
}

#[tokio::test]
async fn approvals_go_on_in_the_same_bubble() {
    for major in WITH_APPROVALS {
        let turns = [calls("c1", "close_ticket", &json!({"id": 7})), says("Closed.")];
        let Some((w, seen)) = walked(major, "approve", turns).await else { return };
        let shown = parts(&seen);
        assert_eq!(seen["messages"].as_array().unwrap().len(), 2, "{major}: {seen:#}");
        let kinds: Vec<_> = shown.iter().map(|part| (part["type"].as_str().unwrap(), part["state"].as_str())).collect();
        let expected = [
            ("step-start", None),
            ("dynamic-tool", Some("output-available")),
            ("data-approval", None),
            ("step-start", None),
            ("text", Some("done")),
        ];
        assert_eq!(kinds, expected, "{major}");
        assert_eq!((&shown[1]["input"], &shown[1]["output"]), (&json!({"id": 7}), &json!({"ok": true})), "{major}");
        assert_eq!(shown[4]["text"], json!("Closed."), "{major}");
        assert_eq!(seen["requests"], json!(["POST /v1/ai-sdk/chat", "POST /v1/ai-sdk/chat"]), "{major}");
        assert_eq!(w.writes(), ["POST /v1/tickets/7/close"], "{major}");
    }
}

#[tokio::test]
async fn several_approvals_are_sent_and_answered_at_once() {
    for major in WITH_APPROVALS {
        let both =
            turn().call("c1", "close_ticket", &json!({"id": 1})).call("c2", "close_ticket", &json!({"id": 2})).done();
        let Some((w, seen)) = walked(major, "approve", [both, says("First."), says("Second.")]).await else { return };
        let shown = parts(&seen);
        let states: Vec<_> =
            shown.iter().filter(|part| part["type"] == "dynamic-tool").map(|part| &part["state"]).collect();
        assert_eq!(states, ["output-available", "output-available"], "{major}: {seen:#}");
        let said: Vec<_> = shown.iter().filter(|part| part["type"] == "text").map(|part| &part["text"]).collect();
        assert_eq!(said, ["First.", "Second."], "{major}");
        assert_eq!(seen["requests"], json!(["POST /v1/ai-sdk/chat", "POST /v1/ai-sdk/chat"]), "{major}");
        assert_eq!(w.writes(), ["POST /v1/tickets/1/close", "POST /v1/tickets/2/close"], "{major}");
    }
}

#[tokio::test]
async fn a_denial_is_shown_and_nothing_is_made() {
    for major in WITH_APPROVALS {
        let turns = [calls("c1", "close_ticket", &json!({"id": 7})), says("All right.")];
        let Some((w, seen)) = walked(major, "deny", turns).await else { return };
        let shown = parts(&seen);
        assert_eq!(shown[1]["state"], json!("output-denied"), "{major}: {seen:#}");
        assert_eq!(shown.last(), Some(&text("All right.")), "{major}");
        assert_eq!(w.writes(), [""; 0], "{major}");
        let told = w.s.last_asked().last().unwrap()["content"].to_string();
        assert!(told.contains("not now"), "{major}: {told}");
    }
}

#[tokio::test]
async fn version_5_is_told_of_an_approval_and_does_not_ask_for_ever() {
    let Some((_, seen)) = walked("5", "automatic", [calls("c1", "close_ticket", &json!({"id": 7}))]).await else {
        return;
    };
    let kinds: Vec<_> = parts(&seen).iter().map(|part| part["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["step-start", "dynamic-tool", "data-approval", "step-start", "text"], "{seen:#}");
    assert_eq!(seen["requests"], json!(["POST /v1/ai-sdk/chat"]));
}

#[tokio::test]
async fn a_page_of_version_5_may_decide_with_a_key_of_the_body() {
    let turns = [calls("c1", "close_ticket", &json!({"id": 7})), says("Closed.")];
    let Some((w, seen)) = walked("5", "decideByKey", turns).await else { return };
    let shown = parts(&seen);
    assert_eq!(seen["messages"].as_array().unwrap().len(), 2, "{seen:#}");
    assert_eq!((&shown[1]["state"], &shown[1]["output"]), (&json!("output-available"), &json!({"ok": true})));
    assert_eq!(shown.last(), Some(&text("Closed.")));
    assert_eq!(w.writes(), ["POST /v1/tickets/7/close"]);
}

#[tokio::test]
async fn an_answer_is_given_again_and_a_message_edited() {
    for major in ALL {
        let turns = [says("One."), says("One again."), says("Two."), says("Two, edited.")];
        let Some((w, seen)) = walked(major, "regenerate", turns).await else { return };
        let messages = seen["messages"].as_array().unwrap();
        let said: Vec<_> = messages
            .iter()
            .map(|message| message["parts"].as_array().unwrap().last().unwrap()["text"].clone())
            .collect();
        assert_eq!(said, ["Hello", "One again.", "Second, edited", "Two, edited."], "{major}: {seen:#}");
        let heard: Vec<Value> = w.s.last_asked()[1..].iter().map(|message| message["content"].clone()).collect();
        assert_eq!(heard, ["Hello", "One again.", "Second, edited"], "{major}");
    }
}

#[tokio::test]
async fn a_page_runs_its_own_tool_and_the_answer_goes_on_by_itself() {
    for major in ALL {
        let first = turn().call("c1", "get_ticket", &json!({"id": 7})).call("c2", "locate", &json!({})).done();
        let Some((_, seen)) = walked(major, "clientTool", [first, says("In Rome.")]).await else { return };
        let own = json!({
            "type": "tool-locate", "toolCallId": "c2", "state": "output-available", "input": {}, "output": {"city": "Rome"},
        });
        let expected = [step(), called("c1", json!({"id": 7}), json!({"ok": true})), own, step(), text("In Rome.")];
        assert_eq!(parts(&seen), expected, "{major}: {seen:#}");
        assert_eq!(seen["messages"].as_array().unwrap().len(), 2, "{major}: one bubble");
        assert_eq!(seen["requests"], json!(["POST /v1/ai-sdk/chat", "POST /v1/ai-sdk/chat"]), "{major}");
    }
}

#[tokio::test]
async fn a_value_that_could_change_a_prototype_reaches_the_page_as_text() {
    for major in ALL {
        let input = r#"{"id": 7, "__proto__": {"admin": true}}"#;
        let turns = [turn().call_raw("c1", "get_ticket", input).done(), says("Done.")];
        let Some((_, seen)) = walked(major, "automatic", turns).await else { return };
        assert_eq!(seen["status"], json!("ready"), "{major}: {seen:#}");
        assert_eq!(parts(&seen)[1]["input"], json!(r#"{"id":7,"__proto__":{"admin":true}}"#), "{major}");
    }
}

#[tokio::test]
async fn a_page_made_with_the_react_hook_approves_stops_asks_again_and_is_loaded_again() {
    let turns = [
        calls("c1", "close_ticket", &json!({"id": 7})),
        says("Closed."),
        turn().text("Half").hangs(),
        says("Whole."),
        says("Still closed."),
    ];
    let w = World::playing(turns).await;
    let Some(seen) = node::run("ai-sdk-react.mjs", &[], &w.s.app).await else { return };
    let articles = ["<p>Close 7</p>", "<code>close_ticket: output-available</code><p>Closed.</p>"];
    let (much, whole) = ("<p>Tell me much</p>", "<p>Whole.</p>");
    let expected = json!({
        "asked": "Close 7Approve close_ticketAskMoreStopAgain",
        "articles": articles,
        "stopped": [much, "<p>Half</p>"],
        "again": [much, whole],
        "reloaded": [articles[0], articles[1], much, whole],
        "after": [much, "<p>Still closed.</p>"],
    });
    assert_eq!(seen, expected);
    assert_eq!(w.writes(), ["POST /v1/tickets/7/close"]);
}

#[tokio::test]
async fn a_page_of_assistant_ui_asks_approves_stops_asks_again_and_is_loaded_again() {
    let turns = [
        calls("c1", "get_ticket", &json!({"id": 7})),
        says("Open."),
        calls("c2", "close_ticket", &json!({"id": 7})),
        says("Closed."),
        turn().text("Half").hangs(),
        says("Whole."),
        says("Still closed."),
    ];
    let w = World::playing(turns).await;
    let Some(seen) = node::run("assistant-ui.mjs", &[], &w.s.app).await else { return };
    let looked = json!([["user", "Look at 7"], ["assistant", "get_ticket: done", "Open."]]);
    let whole = json!([
        ["user", "Look at 7"],
        ["assistant", "get_ticket: done", "Open."],
        ["user", "Close 7"],
        ["assistant", "close_ticket: done", "Closed."],
        ["user", "Tell me much"],
        ["assistant", "Whole."],
    ]);
    assert_eq!(seen["text"], looked);
    assert_eq!(seen["asked"], json!(["assistant", "Approve close_ticket"]));
    assert_eq!(seen["approved"], json!(["assistant", "close_ticket: done", "Closed."]));
    assert_eq!(seen["stopped"], json!(["assistant", "Half"]));
    assert_eq!(seen["again"], whole, "the answer that was asked for again takes the place of the half one");
    assert_eq!(seen["reloaded"], whole);
    assert_eq!(seen["after"], json!(["assistant", "Still closed."]));
    assert_eq!(seen["conversations"], 1);
    assert_eq!(w.writes(), ["POST /v1/tickets/7/close"], "made once");
}

#[tokio::test]
async fn a_stop_of_the_client_ends_a_run_in_the_background_at_once_or_with_the_next_message() {
    for major in ALL {
        let half = || turn().text("Half").hangs();
        let Some((w, seen)) = walked(major, "stopInBackground", [half(), half(), says("Here.")]).await else { return };
        assert_eq!(
            (&seen["status"], &seen["heard"]),
            (&json!("ready"), &json!([{"stopped": true}])),
            "{major}: {seen:#}"
        );
        assert_eq!(parts(&seen), [step(), text("Here.")], "{major}");
        w.s.model.clients_gone(2).await;
    }
}

#[tokio::test]
async fn a_page_that_is_loaded_again_decides_what_waits_and_shows_it_once() {
    for major in WITH_APPROVALS {
        let closes = calls("c1", "close_ticket", &json!({"id": 7}));
        let turns = [closes, says("Closed."), says("It is closed.")];
        let Some((w, seen)) = walked(major, "reload", turns).await else { return };
        let parts = ["step-start", "output-available", "step-start", "done"];
        let shown = json!([[true, "user", ["done"]], [true, "assistant", parts]]);
        assert_eq!(seen["heard"].as_array().unwrap().last().unwrap(), &shown, "{major}: {seen:#}");
        let last = &seen["messages"].as_array().unwrap().last().unwrap()["parts"];
        assert_eq!(last.as_array().unwrap().last().unwrap(), &text("It is closed."), "{major}");
        assert_eq!(w.writes(), ["POST /v1/tickets/7/close"], "{major}: made once");
    }
}
