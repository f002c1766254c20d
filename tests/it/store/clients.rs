//! What every store promises to clients that make calls themselves, or keep their conversations to themselves.

use switchboard::agent::ports::chats::Chats;
use switchboard::agent::ports::clock::Clock;
use switchboard::agent::ports::conversations::{Listed, Page};
use switchboard::agent::ports::leases::Old;
use switchboard::agent::ports::store::{BeginError, CLIENT_RESULTS, Commit, NewRun, Question, RunEnd, RunStart};
use switchboard::agent::ports::summaries::HistoryBound;
use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::{MessageId, RunId, ToolCallId};
use switchboard::chat::input::{Ask, ClientMessage, ClientResult, Parent};
use switchboard::chat::message::{Author, Message, UserMessage};
use switchboard::chat::run::RunState;
use switchboard::chat::tool::{ToolCall, ToolInput};
use switchboard::store::Store;

use super::contract::{
    Database, ManualClock, Room, answer, append, assert_same, complete, ended, running, said, tool_turn,
};
use crate::support::whole::{exported, seen};

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
        files: Vec::new(),
        is_error: false,
        said: None,
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
    assert_eq!(start.message, UserMessage::by(Author::ClientResults, CLIENT_RESULTS));
    assert_eq!(start.past.history.len(), 3, "the calls with what stood for their results come before");
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
    let [.., question, calls, answers, words] = &start.past.history[..] else { panic!("{start:#?}") };
    assert_same(question, &Message::User(UserMessage::by(Author::ClientResults, CLIENT_RESULTS)));
    assert_same(&[calls, answers], &[&Message::Assistant(message), &Message::ToolResults(told)]);
    assert_same(words, &answer("In Berlin."));
    let view = seen(&*store, &room.owner, &room.conversation).await.unwrap();
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
        assert_eq!(seen(&*store, &stranger.owner, &stranger.conversation).await, None, "and nothing began");
    }
    let (run, start) = told(&*store, &room, &results(&left[..1])).await.unwrap();
    assert!(start.answered.unwrap().1[1].fate.is_error(), "one that is missing is told to have none");
    for of in [&left[..], &left[..1]] {
        let again = told(&*store, &room, &results(of)).await;
        assert!(matches!(again, Err(BeginError::Busy { running }) if running == run), "while it runs: {again:?}");
    }
    assert_no_such_call(told(&*store, &room, &results(&[])).await, "nothing, while it runs");
    complete(&*store, run).await;
    assert_no_such_call(told(&*store, &room, &results(&left)).await, "once");

    let room = Room::at("acme/ann/c3");
    let (_, left) = asked(&*store, &room).await;
    let (run, start) = room.say(&*store, "Never mind").await;
    assert!(start.answered.is_none() && start.past.history.len() == 3);
    complete(&*store, run).await;
    assert_no_such_call(told(&*store, &room, &results(&left)).await, "something else was said");
}

pub async fn results_may_come_again_where_their_run_did_not_end_well(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (asking, left) = asked(&*store, &room).await;
    for state in [RunState::Failed, RunState::Cancelled, RunState::Interrupted] {
        let (run, start) = told(&*store, &room, &results(&left)).await.unwrap();
        assert_eq!((start.past.history.len(), start.answered.is_some()), (3, true), "{state:?}: beside the one before");
        assert_eq!(store.find_run(&room.owner, run).await.unwrap().unwrap().continues, Some(asking));
        store.finish_run(run, said(3, &[answer("Half")]), ended(state)).await.unwrap();
    }
    let (again, start) = room.ask(&*store, &Ask::Again, None).await.unwrap();
    assert_eq!((start.message, start.past.history.len()), (UserMessage::by(Author::ClientResults, CLIENT_RESULTS), 3));
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

pub async fn what_a_client_told_of_before_begins_every_branch(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let earlier =
        [ClientMessage::User("One?\u{0}".to_owned(), Vec::new()), ClientMessage::Assistant("Two.".to_owned())];
    let begin = async |ask: &Ask, parent, bytes| {
        let store = database.open(ManualClock::new()).await;
        let new = NewRun {
            history: HistoryBound { bytes, by_summary: false },
            earlier: &earlier,
            ..room.new_run(Question::Ask { ask, parent })
        };
        (new.id, running(store.begin_run(new).await.unwrap()))
    };
    let words = |start: &RunStart| {
        let text = |message: &Message| match message {
            Message::User(user) => user.text.clone(),
            Message::Assistant(assistant) => assistant.text(),
            Message::ToolResults(_) => "results".to_owned(),
        };
        start.past.history.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    let (first, start) = begin(&Ask::message("And?"), None, 0).await;
    assert_eq!(words(&start), "One?\u{0} Two.");
    let turn = tool_turn();
    let left = calls_of(&turn);
    let end = RunEnd { left: &left, ..ended(RunState::Completed) };
    store.finish_run(first, said(1, &turn), end).await.unwrap();
    let rows = [
        (results(&left), None, 0, "One?\u{0} Two. And? I look \u{2028} it up results", "results"),
        (Ask::Again, None, 0, "One?\u{0} Two. And? I look \u{2028} it up results", "the answer to the results again"),
        (
            Ask::Again,
            Some(Parent::Message(MessageId { run: first, seq: 0 })),
            0,
            "One?\u{0} Two.",
            "the first answer again",
        ),
        (Ask::message("Anew"), Some(Parent::Root), 0, "One?\u{0} Two.", "a branch from the root"),
        (Ask::message("More"), Some(Parent::Message(MessageId { run: first, seq: 0 })), 0, "One?\u{0} Two. And?", "on"),
        (Ask::message("Root"), Some(Parent::Root), 8, "", "what does not fit"),
    ];
    for (ask, parent, bytes, expected, reason) in rows {
        let (run, start) = begin(&ask, parent, bytes).await;
        assert_eq!(words(&start), expected, "{reason}");
        store
            .finish_run(run, said(if start.answered.is_some() { 3 } else { 1 }, &[]), ended(RunState::Failed))
            .await
            .unwrap();
    }
    let view = seen(&*store, &room.owner, &room.conversation).await.unwrap();
    assert!(view.messages.iter().all(|message| message.text != "Two."), "it is no message of the conversation");
    store.delete(&room.owner, &room.conversation).await.unwrap().unwrap();
    assert_eq!(database.ask("SELECT run_id FROM run_details").await, [""; 0]);
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
        store.number(&room.owner, None, &room.conversation, "kh").await.unwrap();
    }
    let page = Page { limit: 9, cursor: None };
    let heads = store.conversations(&room.owner, Listed::default(), page).await.unwrap();
    assert_eq!(heads.items.iter().map(|head| head.id.as_str()).collect::<Vec<_>>(), ["c1"], "the first request counts");
    let (chats, count) = store.chats(own, 9, 0).await.unwrap();
    assert_eq!((chats.len(), count), (1, 1));
    let view = seen(&*store, &room.owner, &room.conversation).await.unwrap();
    assert_eq!(view.messages.len(), 2);
    assert_eq!(exported(&*store, &room.owner, &room.conversation).await.unwrap().runs.len(), 2);
    assert_eq!(store.delete(&room.owner, &room.conversation).await.unwrap().unwrap().len(), 2);
}

pub async fn an_unlisted_conversation_goes_when_it_is_old_and_nothing_of_it_lives(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let (listed, old, lives, young) =
        (Room::at("acme/ann/c1"), Room::at("acme/ann/c2"), Room::at("acme/bob/c2"), Room::at("acme/ann/c4"));
    let ask = Ask::message("Psst");
    let begin = async |room: &Room, unlisted| {
        let new = NewRun { unlisted, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
        running(store.begin_run(new).await.unwrap());
        new.id
    };
    for (room, unlisted) in [(&listed, false), (&old, true), (&young, true)] {
        complete(&*store, begin(room, unlisted).await).await;
    }
    let live = begin(&lives, true).await;
    clock.advance_ms(10);
    let border = clock.now_ms();
    complete(&*store, begin(&young, true).await).await;
    let rooms = [&listed, &old, &lives, &young];
    let there = async || {
        let mut there = Vec::new();
        for room in rooms {
            there.push(seen(&*store, &room.owner, &room.conversation).await.is_some());
        }
        there
    };
    store.tidy(Old::default()).await.unwrap();
    assert_eq!(there().await, [true; 4], "they are kept for ever");
    let unlisted = Old { unlisted_before_ms: Some(border), ..Old::default() };
    assert!(!store.tidy(unlisted).await.unwrap(), "no more is left");
    assert_eq!(there().await, [true, false, true, true], "what is listed, what lives, and what was said since stay");
    complete(&*store, live).await;
    store.tidy(unlisted).await.unwrap();
    assert_eq!(there().await, [true, false, false, true]);
    assert_eq!(database.ask("SELECT id FROM runs").await.len(), 3, "with all of theirs");
}

pub async fn a_run_that_left_calls_to_its_client_ends_with_them(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, left) = asked(&*store, &room).await;
    let record = store.find_run(&room.owner, run).await.unwrap().unwrap();
    assert_eq!(record.end(), Some(AgentEvent::AwaitingClient { usage: record.usage, calls: left }));
}
