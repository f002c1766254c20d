//! What every store promises to clients that make calls themselves, or keep their conversations to themselves.

use switchboard::agent::ports::chats::Chats;
use switchboard::agent::ports::conversations::Page;
use switchboard::agent::ports::store::{BeginError, CLIENT_RESULTS, Commit, NewRun, Question, RunEnd, RunStart};
use switchboard::chat::ids::{RunId, ToolCallId};
use switchboard::chat::input::{Ask, ClientResult, Parent};
use switchboard::chat::message::{Message, UserMessage};
use switchboard::chat::run::RunState;
use switchboard::chat::tool::{ToolCall, ToolInput};
use switchboard::store::Store;

use super::contract::{
    Database, ManualClock, Room, answer, append, assert_same, complete, ended, running, said, tool_turn,
};

/// The calls of [`tool_turn`].
fn calls_of(turn: &[Message; 2]) -> Vec<ToolCall> {
    let Message::Assistant(asking) = &turn[0] else { unreachable!() };
    asking.calls().cloned().collect()
}

/// A run that ends with calls left to its client.
async fn asked(store: &dyn Store, room: &Room) -> (RunId, Vec<ToolCall>) {
    let (run, _) = room.say(store, "Where am I?").await;
    let turn = tool_turn();
    let left = calls_of(&turn);
    let end = RunEnd { left: &left, ..ended(RunState::Completed) };
    store.finish_run(run, said(1, &turn), end).await.unwrap();
    (run, left)
}

fn results(of: &[ToolCall]) -> Ask {
    let result = |call: &ToolCall| ClientResult {
        call: call.id.as_str().to_owned(),
        content: "here \u{0}".to_owned(),
        is_error: false,
    };
    Ask::Results(of.iter().map(result).collect())
}

async fn told(store: &dyn Store, room: &Room, ask: &Ask) -> Result<(RunId, RunStart), BeginError> {
    room.ask(store, ask, None).await
}

#[track_caller]
fn assert_no_such_call(begun: Result<(RunId, RunStart), BeginError>, reason: &str) {
    assert!(matches!(begun, Err(BeginError::NoSuchCall)), "{reason}: {begun:?}");
}

pub async fn results_of_a_client_stand_behind_the_calls_again(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (asking, left) = asked(&*store, &room).await;
    let store = database.open(ManualClock::new()).await;
    let (run, start) = told(&*store, &room, &results(&left)).await.unwrap();
    assert_eq!((&start.message, start.begins), (&UserMessage::new(CLIENT_RESULTS), false));
    assert_eq!(start.history.len(), 3, "the calls with what stood for their results come before");
    let (message, told) = start.answered.unwrap();
    let again: Vec<ToolCall> = message.calls().cloned().collect();
    let of = |calls: &[ToolCall]| calls.iter().map(|c| (c.name.clone(), c.input.clone())).collect::<Vec<_>>();
    assert_eq!(of(&again), of(&left));
    assert!(again.iter().all(|call| call.id.is_minted() && left.iter().all(|asked| asked.id != call.id)));
    let words: Vec<_> = told.iter().map(|result| result.content.as_str()).collect();
    assert_eq!(words, [r#"{"told_by":"client","result":"here \u0000"}"#; 2]);
    assert_eq!(store.find_run(&room.owner, run).await.unwrap().unwrap().continues, Some(asking));

    // What the run says goes on behind them, in messages and trail.
    append(&*store, run, 3, &[answer("In Berlin.")]).await.unwrap();
    let rest = Commit { first_entry: 3, ..said(4, &[]) };
    store.finish_run(run, rest, ended(RunState::Completed)).await.unwrap();
    let (_, start) = room.say(&*store, "Thanks").await;
    let [.., question, calls, answers, words] = &start.history[..] else { panic!("{start:#?}") };
    assert_same(question, &Message::User(UserMessage::new(CLIENT_RESULTS)));
    assert_same(&[calls, answers], &[&Message::Assistant(message), &Message::ToolResults(told)]);
    assert_same(words, &answer("In Berlin."));
    let view = store.conversation(&room.owner, &room.conversation).await.unwrap().unwrap();
    let seen: Vec<_> = view.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(seen, ["Where am I?", "I look \u{2028} it up", "", "In Berlin.", "Thanks"], "what we say is not seen");
    assert_eq!(view.head.message_count, 5);
    let trail = store.trail(&room.owner, &room.conversation, Page { limit: 100, cursor: None }).await.unwrap().unwrap();
    let of_run = trail.items.iter().filter(|item| item.run == Some(run));
    assert_eq!(of_run.map(|item| item.kind.as_str()).collect::<Vec<_>>(), ["user_message", "tool_call", "tool_call"]);
}

pub async fn results_are_taken_once_and_only_of_the_newest_run(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    assert_no_such_call(told(&*store, &room, &results(&[])).await, "nothing was said");
    let (_, left) = asked(&*store, &room).await;
    let other =
        ToolCall { id: ToolCallId::from_model("t9"), name: "x".into(), input: ToolInput::Invalid(String::new()) };
    assert_no_such_call(told(&*store, &room, &results(&[])).await, "no result");
    assert_no_such_call(told(&*store, &room, &results(&[left[0].clone(), other])).await, "another call");
    assert_no_such_call(told(&*store, &room, &results(&[left[0].clone(), left[0].clone()])).await, "one twice");
    for stranger in Room::strangers() {
        assert_no_such_call(told(&*store, &stranger, &results(&left)).await, "somebody else's");
        assert_eq!(
            store.conversation(&stranger.owner, &stranger.conversation).await.unwrap(),
            None,
            "and nothing began"
        );
    }
    let (run, start) = told(&*store, &room, &results(&left[..1])).await.unwrap();
    assert!(start.answered.unwrap().1[1].is_error, "one that is missing is told to have none");
    assert_no_such_call(told(&*store, &room, &results(&left)).await, "while it runs");
    complete(&*store, run).await;
    assert_no_such_call(told(&*store, &room, &results(&left)).await, "once");

    let room = Room::at("acme/ann/c3");
    let (_, left) = asked(&*store, &room).await;
    let (run, start) = room.say(&*store, "Never mind").await;
    assert!(start.answered.is_none() && start.history.len() == 3);
    complete(&*store, run).await;
    assert_no_such_call(told(&*store, &room, &results(&left)).await, "something else was said");
}

pub async fn results_may_come_again_where_their_run_did_not_end_well(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (asking, left) = asked(&*store, &room).await;
    for state in [RunState::Failed, RunState::Cancelled, RunState::Interrupted] {
        let (run, start) = told(&*store, &room, &results(&left)).await.unwrap();
        assert_eq!((start.history.len(), start.answered.is_some()), (3, true), "{state:?}: beside the one before");
        assert_eq!(store.find_run(&room.owner, run).await.unwrap().unwrap().continues, Some(asking));
        store.finish_run(run, said(3, &[answer("Half")]), ended(state)).await.unwrap();
    }
    let (again, start) = room.ask(&*store, &Ask::Again, None).await.unwrap();
    assert_eq!((start.message, start.history.len()), (UserMessage::new(CLIENT_RESULTS), 3));
    assert_eq!(start.answered.unwrap().1.len(), 2, "what the client said is there when it is answered again");
    complete(&*store, again).await;
}

pub async fn our_words_from_a_user_are_a_message_like_any_other(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, CLIENT_RESULTS).await;
    append(&*store, run, 1, &tool_turn()).await.unwrap();
    store.finish_run(run, said(3, &[answer("What?")]), ended(RunState::Failed)).await.unwrap();
    assert_no_such_call(told(&*store, &room, &results(&calls_of(&tool_turn()))).await, "nothing was left");
    let (_, start) = room.ask(&*store, &Ask::Again, None).await.unwrap();
    assert!(start.answered.is_none());
}

pub async fn a_run_knows_whether_its_conversation_begins_with_it(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (first, start) = room.say(&*store, "one").await;
    assert!(start.begins);
    complete(&*store, first).await;
    let (second, start) = room.say(&*store, "two").await;
    assert!(!start.begins);
    complete(&*store, second).await;
    let (_, start) = room.ask(&*store, &Ask::message("anew"), Some(Parent::Root)).await.unwrap();
    assert!(start.history.is_empty() && !start.begins, "a branch from the root begins no conversation");
}

pub async fn an_unlisted_conversation_is_read_by_its_id_alone(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (listed, room) = (Room::at("acme/ann/c1"), Room::at("acme/ann/c2"));
    let ask = Ask::message("Psst");
    for (room, unlisted) in [(&listed, false), (&room, true), (&listed, true), (&room, false)] {
        let new = NewRun { unlisted, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
        running(store.begin_run(new).await.unwrap());
        complete(&*store, new.id).await;
    }
    let own = Chats::Own { owner: &room.owner, app: None };
    for room in [&listed, &room] {
        store.number(&room.owner, &room.conversation, "kh").await.unwrap();
    }
    let page = Page { limit: 9, cursor: None };
    let heads = store.conversations(&room.owner, page).await.unwrap();
    assert_eq!(heads.items.iter().map(|head| head.id.as_str()).collect::<Vec<_>>(), ["c1"], "the first request counts");
    let (chats, count) = store.chats(own, 9, 0).await.unwrap();
    assert_eq!((chats.len(), count), (1, 1));
    let view = store.conversation(&room.owner, &room.conversation).await.unwrap().unwrap();
    assert_eq!(view.messages.len(), 2);
    assert_eq!(store.export(&room.owner, &room.conversation).await.unwrap().unwrap().runs.len(), 2);
    assert_eq!(store.delete(&room.owner, &room.conversation).await.unwrap().unwrap().len(), 2);
}
