//! What the model is offered of a client's tools, and how a turn ends that calls them.

use serde_json::json;
use switchboard::agent::ports::conversations::Page;
use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::{ConversationId, ToolCallId};
use switchboard::chat::run::RunState;
use switchboard::chat::tool::{ToolCall, ToolInput};

use super::{Desk, USAGE, ada, calls, says, told, tool};
use crate::support::whole::seen;

#[tokio::test]
async fn tools_of_the_client_come_behind_those_of_the_profile() {
    let d = Desk::playing([says("Hi.")]).await;
    // `close_ticket` is the profile's, whatever the client calls so.
    let tools = [tool("locate"), tool("close_ticket"), tool("print"), tool("locate")];
    assert_eq!(told(&d.say("Hello", &tools).await), ["end"]);
    let (_, offered) = d.last_asked();
    assert_eq!(offered, ["close_ticket", "refund", "get_ticket", "note", "locate", "print"]);
}

#[tokio::test]
async fn a_turn_that_calls_them_ends_the_run() {
    let city = json!({"city": "Berlin"});
    let turn = calls(&[
        ("t1", "locate", city.clone()),
        ("t2", "get_ticket", json!({"id": 7})),
        ("t3", "print", json!({"city": "Bonn"})),
    ]);
    let d = Desk::playing([turn]).await;
    let events = d.say("Where?", &[tool("locate"), tool("print")]).await;
    let expected = [
        "started t1",
        "started t2",
        "started t3",
        r#"ready t1 {"city":"Berlin"}"#,
        "ready t2 {}",
        "finished t2",
        r#"ready t3 {"city":"Bonn"}"#,
        "awaiting client: t1 t3",
    ];
    assert_eq!(told(&events), expected, "the server's own is made, and shown without its arguments");
    let call = |id: &str, name: &str, city: &str| ToolCall {
        id: ToolCallId::from_model(id),
        name: name.to_owned(),
        input: ToolInput::parse(&json!({"city": city}).to_string()),
    };
    let left = vec![call("t1", "locate", "Berlin"), call("t3", "print", "Bonn")];
    assert_eq!(events.last(), Some(&AgentEvent::AwaitingClient { usage: USAGE, calls: left }));

    let (owner, id) = (ada().owner, ConversationId::parse("c").unwrap());
    let view = seen(&*d.store, &owner, &id).await.unwrap();
    let fates: Vec<_> = view.messages[1].calls.iter().map(|call| call.fate.name()).collect();
    assert_eq!(fates, ["not_run", "done", "not_run"]);
    let run = d.store.find_run(&owner, view.messages[0].id.run).await.unwrap().unwrap();
    assert_eq!((run.state, run.turns), (RunState::Completed, 1));
    let trail = d.store.trail(&owner, &view.head.id, Page { limit: 9, cursor: None }).await.unwrap().unwrap();
    let kinds: Vec<_> = trail.items.iter().map(|item| item.kind.as_str()).collect();
    assert_eq!(kinds, ["user_message", "model_turn", "tool_call", "tool_call", "tool_call", "run_ended"]);
}

#[tokio::test]
async fn a_call_with_wrong_arguments_is_answered_at_once() {
    let wrong = calls(&[("t1", "locate", json!({"city": 7}))]);
    let d = Desk::playing([wrong, calls(&[("t2", "locate", json!({"city": "Ulm"}))])]).await;
    let events = d.say("Where?", &[tool("locate")]).await;
    let expected =
        ["started t1", "ready t1 {}", "failed t1", "started t2", r#"ready t2 {"city":"Ulm"}"#, "awaiting client: t2"];
    assert_eq!(told(&events), expected);
    assert_eq!(d.last_results(), [r#"{"error":"bad params: city: 7 is not of type \"string\""}"#]);
}

#[tokio::test]
async fn a_call_that_waits_for_a_person_goes_first() {
    for order in [["locate", "close_ticket"], ["close_ticket", "locate"]] {
        let input = |name: &str| if name == "locate" { json!({"city": "Ulm"}) } else { json!({"id": 7}) };
        let turn = calls(&order.map(|name| (name, name, input(name))));
        let d = Desk::playing([turn, says("Well.")]).await;
        let events = d.say("Both", &[tool("locate")]).await;
        let lines = told(&events);
        assert!(lines.contains(&"failed locate".to_owned()), "{lines:?}");
        assert!(lines.contains(&"held close_ticket".to_owned()), "{lines:?}");
        assert_eq!(lines.last().unwrap(), "awaiting approval");
        d.say("And now?", &[]).await;
        let mut results = d.last_results();
        results.sort();
        assert!(results[0].starts_with(r#"{"error":"this call was not made, since another one"#), "{results:?}");
        assert!(results[1].starts_with(r#"{"status":"awaiting_approval""#), "{results:?}");
    }
}

#[tokio::test]
async fn calls_over_the_limit_are_left_to_nobody() {
    let many: Vec<_> = ["t1", "t2", "t3", "t4"].into_iter().map(|id| (id, "locate", json!({"city": "Ulm"}))).collect();
    let d = Desk::playing([calls(&many), says("Well.")]).await;
    let events = d.say("Where?", &[tool("locate")]).await;
    let lines = told(&events);
    assert_eq!(lines.last().unwrap(), "awaiting client: t1 t2 t3");
    assert!(lines.contains(&"failed t4".to_owned()), "{lines:?}");
    assert_eq!(told(&d.say("And now?", &[]).await), ["end"]);
}
