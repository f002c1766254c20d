//! What a conversation may collect: calls that wait, and payloads. At the bound, and one over it.

use serde_json::{Value, json};

use super::{Who, World};
use crate::support::frames::{self, Frame};
use crate::support::model::{Script, calls, says, turn};

fn body(conversation: &str) -> Value {
    json!({"message": "Go", "context_type": "tickets", "conversation_id": conversation})
}

fn shown<'a>(frames: &'a [Frame], event: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame.event == event).map(|frame| &frame.data).collect()
}

/// What the model read of a call.
fn read(world: &World, call: &str) -> String {
    let asked = world.model.requests().pop().unwrap().json();
    let messages = asked["messages"].as_array().unwrap();
    let found = messages.iter().find(|message| message["tool_call_id"] == call).unwrap();
    found["content"].as_str().unwrap().to_owned()
}

fn closes(ids: std::ops::Range<u32>) -> Script {
    ids.fold(turn(), |turn, id| turn.call(&format!("c{id}"), "close_ticket", &json!({"id": id}))).done()
}

#[tokio::test]
async fn so_many_calls_wait_in_a_conversation_and_no_more() {
    let world = World::with(&[("LIMITS__APPROVALS", "2")]).await;
    world.plan(&[closes(0..3)]);
    let frames = world.say(Who::Ada, &body("c")).await;
    let waiting = shown(&frames, "approval_request");
    assert_eq!(waiting.len(), 2, "at the bound: {frames:#?}");
    let first = waiting[0]["approval_id"].as_str().unwrap().to_owned();

    world.plan(&[closes(3..4), says("Full.")]);
    let frames = world.say(Who::Ada, &body("c")).await;
    assert_eq!(shown(&frames, "approval_request").len(), 0, "over it, a run later: {frames:#?}");
    let words = "this call was not made: 2 calls of this conversation wait for approval already, and no more may. Tell the user to \
                 decide those first";
    assert_eq!(serde_json::from_str::<Value>(&read(&world, "c3")).unwrap(), json!({"error": words}));

    world.plan(&[closes(4..5)]);
    assert_eq!(shown(&world.say(Who::Ada, &body("d")).await, "approval_request").len(), 1, "another conversation");

    world.plan(&[says("Closed."), closes(5..6)]);
    assert_eq!(world.decide(Who::Ada, &first, &json!({"decision": "approve"})).await.0, 200);
    let frames = world.say(Who::Ada, &body("c")).await;
    assert_eq!(shown(&frames, "approval_request").len(), 1, "one was decided: {frames:#?}");
    assert_eq!(world.writes(0), ["POST /api/v1/tickets/0/close"]);
}

#[tokio::test]
async fn so_many_payloads_are_kept_of_a_conversation_and_no_more() {
    let world = World::with(&[("LIMITS__PAYLOADS", "2")]).await;
    world.plan(&[
        says("QUERY: {\"n\": 1}"),
        calls("s1", "show", &json!({"n": 1})),
        says("Done."),
        says("QUERY: {\"n\": 3}"),
    ]);
    let one = world.say(Who::Ada, &body("c")).await;
    let two = world.say(Who::Ada, &body("c")).await;
    assert_eq!([shown(&one, "payload").len(), shown(&two, "payload").len()], [1, 1], "at the bound: {two:#?}");
    let three = world.say(Who::Ada, &body("c")).await;
    assert_eq!(frames::names(&three).last(), Some(&"message_complete"));
    assert_eq!(shown(&three, "payload").len(), 0, "over it, of the model: {three:#?}");

    world.plan(&[calls("s2", "show", &json!({"n": 2})), says("Done.")]);
    assert_eq!(shown(&world.say(Who::Ada, &body("c")).await, "payload").len(), 0, "over it, of a tool");
    let words = "the data of this result was not kept, and the user does not see it: this conversation keeps 2 pieces of data at \
                 most; a new conversation has room";
    assert!(read(&world, "s2").contains(words), "{}", read(&world, "s2"));

    world.plan(&[says("QUERY: {\"n\": 1} QUERY: {\"n\": 2}")]);
    assert_eq!(shown(&world.say(Who::Ada, &body("d")).await, "payload").len(), 2, "another conversation has room");
}

#[tokio::test]
async fn without_bounds_there_are_none() {
    let world =
        World::with(&[("LIMITS__APPROVALS", "0"), ("LIMITS__PAYLOADS", "0"), ("RUNS__REPEATED_CALLS", "0")]).await;
    world.plan(&[closes(0..30)]);
    assert_eq!(shown(&world.say(Who::Ada, &body("c")).await, "approval_request").len(), 30);
    world.plan(&[
        calls("a", "show", &json!({})),
        calls("b", "show", &json!({})),
        calls("d", "show", &json!({})),
        says("Done."),
    ]);
    assert_eq!(shown(&world.say(Who::Ada, &body("d")).await, "payload").len(), 3);
}
