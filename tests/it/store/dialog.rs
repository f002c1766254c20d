//! What every store promises about titles that are given in passing, and about calls that were made before.

use std::sync::Arc;

use switchboard::agent::ports::calls::{Branch, PastCall};
use switchboard::chat::fate::CallFate;
use switchboard::chat::ids::{MessageId, RunId, ToolCallId};
use switchboard::chat::input::{Ask, Parent};
use switchboard::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin};
use switchboard::chat::tool::{ToolCall, ToolInput, ToolResult};
use switchboard::store::Store;

use super::contract::{Database, ManualClock, Room, START_MS, append, complete, end, titled};

/// A turn of one call, which its tool has answered.
fn turn(id: &str, tool: &str, said: &str) -> [Message; 2] {
    let id = ToolCallId::from_model(id);
    let call = ToolCall { id: id.clone(), name: tool.to_owned(), input: ToolInput::parse(r#"{"a": 1}"#) };
    let origin = Arc::new(ModelOrigin { provider: "p".into(), model: "m".into() });
    let parts = vec![AssistantPart::ToolCall { call, replay: None }];
    let result =
        ToolResult { id, name: tool.to_owned(), content: said.to_owned(), fate: CallFate::Done, files: Vec::new() };
    [Message::Assistant(AssistantMessage { origin, parts }), Message::ToolResults(vec![result])]
}

fn branch(room: &Room, run: RunId) -> Branch<'_> {
    Branch { owner: &room.owner, conversation: &room.conversation, run }
}

async fn said(store: &dyn Store, room: &Room, run: RunId, id: &str) -> Option<String> {
    store.call(branch(room, run), id).await.unwrap().map(|found| found.result.content)
}

pub async fn a_title_is_given_where_there_is_none(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (owner, id) = (&room.owner, &room.conversation);
    assert!(!store.entitle(owner, id, "Nothing").await.unwrap(), "there is no conversation");
    let (run, _) = room.say(&*store, "hello").await;
    complete(&*store, run).await;
    assert!(!store.is_titled(owner, id).await.unwrap());
    for stranger in Room::strangers() {
        assert!(!store.entitle(&stranger.owner, &stranger.conversation, "Mine").await.unwrap());
    }
    assert!(store.entitle(owner, id, "First \u{0}").await.unwrap());
    assert!(store.is_titled(owner, id).await.unwrap());
    assert!(!store.entitle(owner, id, "Second").await.unwrap(), "it has one");
    assert_eq!(store.session(owner, id).await.unwrap().unwrap().title.as_deref(), Some("First \u{0}"));
    store.change(owner, id, &titled("Of the user")).await.unwrap();
    assert!(!store.entitle(owner, id, "Third").await.unwrap());
    assert_eq!(store.session(owner, id).await.unwrap().unwrap().title.as_deref(), Some("Of the user"));
}

pub async fn a_call_is_found_again_by_its_id(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let mut first = Vec::new();
    for nth in 0..20 {
        first.extend(turn(&format!("old_{nth}"), "look", &format!("found {nth}")));
    }
    first.extend(turn("t_1", "look", "once"));
    let one = room.exchange(&*store, "one", &first).await;
    clock.advance_ms(1000);
    let second = [turn("t_1", "look", "again"), turn("a \"% \u{e9}\\", "odd", "odd"), turn("txx1", "look", "alike")];
    let second = [second.concat(), turn("self", "get_tool_result", "itself").to_vec()].concat();
    let two = room.exchange(&*store, "two", &second).await;
    let (three, _) = room.say(&*store, "three").await;

    let [Message::Assistant(answer), Message::ToolResults(results)] = turn("t_1", "look", "again") else {
        unreachable!()
    };
    let call = answer.calls().next().unwrap().clone();
    let found = store.call(branch(&room, three), "t_1").await.unwrap();
    assert_eq!(found, Some(PastCall { call, result: results[0].clone(), at_ms: START_MS + 1000 }), "the newest");
    assert_eq!(said(&*store, &room, three, "old_0").await.as_deref(), Some("found 0"), "behind many others");
    assert_eq!(said(&*store, &room, three, "a \"% \u{e9}\\").await.as_deref(), Some("odd"));
    for unknown in ["t%1", "", "T_1", "self"] {
        assert_eq!(said(&*store, &room, three, unknown).await, None, "{unknown}");
    }
    let ids = store.call_ids(branch(&room, three), 4).await.unwrap();
    assert_eq!(ids, ["txx1", "a \"% \u{e9}\\", "t_1", "old_19"], "each once, newest first");
    assert_eq!(store.call_ids(branch(&room, three), 100).await.unwrap().len(), 23);

    append(&*store, three, 1, &turn("now", "look", "just now")).await.unwrap();
    assert_eq!(said(&*store, &room, three, "now").await.as_deref(), Some("just now"), "of the run itself, too");
    end(&*store, three, &turn("now", "look", "just now")).await;
    for stranger in Room::strangers() {
        assert_eq!(store.call(branch(&stranger, three), "t_1").await.unwrap(), None);
        assert!(store.call_ids(branch(&stranger, three), 9).await.unwrap().is_empty());
    }

    // Beside the second run: what was called there was not called here.
    let parent = Some(Parent::Message(MessageId { run: one, seq: 42 }));
    let (beside, _) = room.ask(&*store, &Ask::message("beside"), parent).await.unwrap();
    assert_eq!(said(&*store, &room, beside, "t_1").await.as_deref(), Some("once"));
    assert_eq!(said(&*store, &room, beside, "txx1").await, None);
    assert_eq!(said(&*store, &room, two, "now").await, None, "nor what came later");
}
