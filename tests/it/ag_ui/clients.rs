//! The official clients against the running product: what their subscribers and their threads have seen. Both versions of
//! AG-UI's client are asked, and CopilotKit's browser core, without a runtime between.

use serde_json::{Value, json};

use super::{World, thinks, usage};
use crate::support::model::{Script, calls, says as answers, turn};
use crate::support::node;

const VERSIONS: [&str; 2] = ["1.0.0", "0.0.59"];

const RESULT: &str = r#"{"ok":true}"#;

/// What the model reads of a result of the page.
const TOLD: &str = r#"{"told_by":"client","result":"painted"}"#;

/// What a client of that version has seen of a case.
async fn seen(world: &World, version: &str, case: &str) -> Option<Value> {
    let seen = node::run("ag-ui.mjs", &[version, case], &world.s.app).await?;
    assert_eq!(seen["complaints"], json!([]), "{version} {case}");
    Some(seen)
}

/// A run that ended well, after `turns` turns of the model.
fn ran(events: Value, outcome: Value, turns: u64) -> Value {
    json!({"events": events, "end": {"outcome": outcome, "usage": usage(turns)}, "failed": null})
}

fn closes() -> Script {
    calls("c", "close_ticket", &json!({"id": 7}))
}

#[tokio::test]
async fn text_reasoning_and_parallel_calls_make_the_thread_that_was_meant() {
    for version in VERSIONS {
        let both = turn()
            .text("Looking.")
            .call("a", "get_ticket", &json!({"id": 7}))
            .call("b", "get_ticket", &json!({"id": 8}))
            .done();
        let world = World::playing([thinks("Hm", "Hello!"), both, answers("Fine.")]).await;
        let Some(seen) = seen(&world, version, "talk").await else { return };
        let first = json!([
            "RUN_STARTED",
            "STEP_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]);
        let second = json!([
            "RUN_STARTED",
            "STEP_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TOOL_CALL_START",
            "TOOL_CALL_START",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "STEP_FINISHED",
            "STEP_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]);
        let call = |id: &str, ticket: u32| {
            let arguments = format!("{{\"id\":{ticket}}}");
            json!({"id": id, "type": "function", "function": {"name": "get_ticket", "arguments": arguments}})
        };
        let expected = json!({
            "runs": [ran(first, Value::Null, 1), ran(second, Value::Null, 2)],
            "messages": [
                {"id": "u1", "role": "user", "content": "Hi"},
                {"id": "R1.t1", "role": "reasoning", "content": "Hm"},
                {"id": "R1.m2", "role": "assistant", "content": "Hello!"},
                {"id": "u2", "role": "user", "content": "And?"},
                {"id": "R2.m1", "role": "assistant", "content": "Looking.", "toolCalls": [call("a", 7), call("b", 8)]},
                {"id": "R2.r2", "role": "tool", "toolCallId": "a", "content": RESULT},
                {"id": "R2.r3", "role": "tool", "toolCallId": "b", "content": RESULT},
                {"id": "R2.m4", "role": "assistant", "content": "Fine."},
            ],
            "complaints": [],
        });
        assert_eq!(seen, expected, "{version}");
    }
}

#[tokio::test]
async fn a_run_that_fails_and_one_that_its_client_leaves() {
    for version in VERSIONS {
        let world = World::playing([turn().text("I").breaks(), answers("Fine.")]).await;
        let Some(told) = seen(&world, version, "talk").await else { return };
        let message = "LLM provider error: the answer broke off before it was complete; please try again";
        let failed = json!({"message": message, "code": "provider_truncated"});
        assert_eq!(told["runs"][0]["end"], failed, "{version}");
        assert_eq!(told["runs"][1]["end"], json!({"outcome": null, "usage": usage(1)}), "{version}");

        let world = World::playing([turn().text("On my way").hangs()]).await;
        let Some(told) = seen(&world, version, "abort").await else { return };
        let left = json!({"message": "This operation was aborted", "code": "abort"});
        assert_eq!(told["runs"][0]["end"], left, "{version}: what the client itself says");
        world.s.model.clients_gone(1).await;
    }
}

#[tokio::test]
async fn an_interrupt_is_approved_or_denied() {
    let made = json!({"error": "this call was turned down, it was not made"}).to_string();
    for version in VERSIONS {
        for (case, result, writes) in
            [("approve", RESULT, vec!["POST /v1/tickets/7/close {}"]), ("deny", made.as_str(), Vec::new())]
        {
            let world = World::playing([closes(), answers("Done.")]).await;
            let Some(told) = seen(&world, version, case).await else { return };
            assert_eq!(told["runs"][0]["end"], json!("interrupt"), "{version} {case}");
            let waiting = json!([{"reason": "tool_call", "toolCallId": "c", "tool": "close_ticket",
                "message": "close_ticket waits for your approval", "arguments": {"id": 7}}]);
            assert_eq!(told["runs"][1], json!({"waiting": waiting}), "{version} {case}");
            assert_eq!(told["runs"][2]["end"], json!({"outcome": null, "usage": usage(1)}), "{version} {case}");
            let call = json!({"id": "c", "type": "function",
                "function": {"name": "close_ticket", "arguments": "{\"id\":7}"}});
            let messages = json!([
                {"id": "u1", "role": "user", "content": "Close 7"},
                {"id": "R1.m1", "role": "assistant", "toolCalls": [call]},
                {"id": "R2.r1", "role": "tool", "toolCallId": "c", "content": result},
                {"id": "R2.m2", "role": "assistant", "content": "Done."},
            ]);
            assert_eq!(told["messages"], messages, "{version} {case}");
            assert_eq!(world.writes(), writes, "{version} {case}");
        }
    }
}

#[tokio::test]
async fn a_tool_of_the_page_is_run_by_the_page() {
    for version in VERSIONS {
        let world = World::playing([calls("p", "paint", &json!({"color": "red"})), answers("It is red.")]).await;
        let Some(told) = seen(&world, version, "paint").await else { return };
        let outcome = match version {
            "1.0.0" => json!({"type": "success", "pendingToolCallIds": ["p"]}),
            _ => Value::Null,
        };
        assert_eq!(told["runs"][0]["end"], json!({"outcome": outcome, "usage": usage(1)}), "{version}");
        assert_eq!(told["runs"][1], json!({"open": ["paint"]}), "{version}");
        assert_eq!(told["runs"][2]["end"], json!({"outcome": null, "usage": usage(1)}), "{version}");
        assert_eq!(world.s.last_asked().pop().unwrap()["content"], json!(TOLD), "{version}");
    }
}

/// What CopilotKit's core has seen of a case.
async fn copilot(world: &World, case: &str) -> Option<Value> {
    let seen = node::run("copilotkit.mjs", &[case], &world.s.app).await?;
    assert_eq!(seen["complaints"], json!([]), "{case}");
    Some(seen)
}

#[tokio::test]
async fn copilotkit_finds_its_agents_runs_one_and_loads_its_thread_again() {
    let world = World::playing([answers("Hello!")]).await;
    let Some(told) = copilot(&world, "talk").await else { return };
    let thread = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]);
    assert_eq!((&told["ran"], &told["again"]), (&thread, &thread));
    assert_eq!(told["description"], json!("Answers what tickets say."));
    assert_eq!(told["version"], json!(env!("CARGO_PKG_VERSION")));
    let agents = told["name"].as_array().unwrap();
    assert!(agents.contains(&json!("tickets")) && !agents.contains(&json!("chiefs")), "{agents:?}");
}

#[tokio::test]
async fn copilotkit_sees_a_live_run_from_another_page_and_stops_it() {
    let world = World::playing([turn().text("On my way").hangs()]).await;
    let Some(told) = copilot(&world, "stop").await else { return };
    let thread = json!([{"role": "user", "content": "Go"}, {"role": "assistant", "content": "On my way"}]);
    assert_eq!((&told["ran"], &told["other"]), (&thread, &thread));
    world.s.model.clients_gone(1).await;
}

#[tokio::test]
async fn copilotkit_runs_a_tool_of_the_page_and_goes_on_by_itself() {
    let world = World::playing([calls("p", "paint", &json!({"color": "red"})), answers("It is red.")]).await;
    let Some(told) = copilot(&world, "paint").await else { return };
    assert_eq!(told["painted"], json!([{"color": "red"}]));
    assert_eq!(told["ran"].as_array().unwrap().last().unwrap(), &json!({"role": "assistant", "content": "It is red."}));
    assert_eq!(world.s.last_asked().pop().unwrap()["content"], json!(TOLD));
}

#[tokio::test]
async fn copilotkit_finds_what_waits_after_a_reload_and_approves_it() {
    let world = World::playing([closes(), answers("Closed.")]).await;
    let Some(told) = copilot(&world, "approve").await else { return };
    assert_eq!((&told["waiting"], &told["left"]), (&json!(["close_ticket waits for your approval"]), &json!([])));
    let last = told["again"].as_array().unwrap().last().unwrap();
    assert_eq!(last, &json!({"role": "assistant", "content": "Closed."}));
    let call = json!({"id": "c", "type": "function", "function": {"name": "close_ticket", "arguments": "{}"}});
    let later = json!([
        {"role": "user", "content": "Close 7"},
        {"role": "assistant", "toolCalls": [call]},
        {"role": "tool", "toolCallId": "c", "content": "{\"status\":\"done\"}"},
        {"role": "assistant", "content": "Closed."},
    ]);
    assert_eq!(told["later"], later, "a page that is loaded later shows it once");
    assert_eq!(world.writes(), ["POST /v1/tickets/7/close {}"]);
}

#[tokio::test]
async fn copilotkit_asks_a_question_again_and_does_not_repeat_it() {
    let world = World::playing([answers("Hello."), answers("Hello again.")]).await;
    let Some(told) = copilot(&world, "regenerate").await else { return };
    let thread = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello again."}]);
    assert_eq!((&told["ran"], &told["again"]), (&thread, &thread));
}
