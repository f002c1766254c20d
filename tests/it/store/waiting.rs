//! What every store promises about runs that meet: one runs, others wait or are refused, and a request that is repeated
//! finds its run.

use futures::future::join_all;
use switchboard::agent::ports::store::{BeginError, Begun, NewRun, Question, RequestKey, RunEnd};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::agent::ports::summaries::HistoryBound;
use switchboard::chat::ids::RunId;
use switchboard::chat::input::Ask;
use switchboard::chat::message::UserMessage;
use switchboard::chat::preview::Verdict;
use switchboard::chat::run::{CancelledBy, RunState};
use switchboard::store::Store;

use super::contract::{Database, ManualClock, Room, answer, append, assert_same, complete, end, ended, said, user};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

async fn state(store: &dyn Store, room: &Room, run: RunId) -> RunState {
    store.find_run(&room.owner, run).await.unwrap().unwrap().state
}

#[track_caller]
fn assert_queued(begun: &Begun) {
    assert!(matches!(begun, Begun::Queued), "{begun:?}");
}

#[track_caller]
fn assert_ended<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::RunEnded)), "{result:?}");
}

pub async fn a_conversation_has_one_running_run(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (first, _) = room.say(&*store, "one").await;
    let refused = room.try_say(&*store, RunId::fresh(), "two", 0).await;
    assert!(matches!(refused, Err(BeginError::Busy { running }) if running == first), "{refused:?}");
    Room::at("acme/ann/c2").say(&*store, "elsewhere").await;
    let full = room.queue(&*store, "nobody may wait", 0).await;
    assert!(matches!(full, Err(BeginError::QueueFull)), "{full:?}");
    let (second, _) = room.queue(&*store, "two", 1).await.unwrap();
    let full = room.queue(&*store, "three", 1).await;
    assert!(matches!(full, Err(BeginError::QueueFull)), "{full:?}");
    complete(&*store, first).await;
    let refused = room.try_say(&*store, RunId::fresh(), "not before two", 0).await;
    assert!(matches!(refused, Err(BeginError::Busy { running }) if running == second), "{refused:?}");
    let promoted = store.promote(second, HistoryBound::ALL).await.unwrap().unwrap();
    assert_same(&promoted.past.history, &vec![user("one")]);
    complete(&*store, second).await;
    room.say(&*store, "three").await;
}

pub async fn runs_wait_in_their_order(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (mut before, _) = room.say(&*store, "0").await;
    let mut waiting = Vec::new();
    for n in 1..4 {
        let (run, begun) = room.queue(&*store, &n.to_string(), 5).await.unwrap();
        assert_queued(&begun);
        waiting.push(run);
    }
    for n in 0..3 {
        for run in &waiting[n..] {
            assert!(store.promote(*run, HistoryBound::ALL).await.unwrap().is_none());
        }
        end(&*store, before, &[answer("ok")]).await;
        for run in waiting[n + 1..].iter().rev() {
            assert!(store.promote(*run, HistoryBound::ALL).await.unwrap().is_none(), "an earlier one waits");
        }
        let start = store.promote(waiting[n], HistoryBound::ALL).await.unwrap().unwrap();
        assert_eq!(start.past.history.len(), 2 * (n + 1));
        assert_eq!(start.message, UserMessage::new((n + 1).to_string()));
        assert_eq!(state(&*store, &room, waiting[n]).await, RunState::Running);
        before = waiting[n];
    }
}

pub async fn a_queued_run_sees_the_answer_it_waited_for(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (first, _) = room.say(&*store, "one").await;
    append(&*store, first, 1, &[answer("begun")]).await.unwrap();
    let preview = room.preview(&*store, "a").await;
    let told = room.decide(&*store, preview, "a", Verdict::Accept).await;
    let (second, _) = room.queue(&*store, "two", 1).await.unwrap();
    let late = room.preview(&*store, "b").await;
    let later = room.decide(&*store, late, "b", Verdict::Accept).await;
    store.finish_run(first, said(2, &[answer("done")]), ended(RunState::Completed)).await.unwrap();
    let start = store.promote(second, HistoryBound::ALL).await.unwrap().unwrap();
    assert_same(&start.past.history, &vec![user("one"), answer("begun"), answer("done")]);
    assert_eq!(start.message, UserMessage { decisions: vec![told], ..UserMessage::new("two") });
    complete(&*store, second).await;
    assert_eq!(room.told(&*store, "three").await.decisions, [later]);
}

pub async fn a_promotion_that_was_not_heard_of_is_repeated(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (first, _) = room.say(&*store, "one").await;
    let (second, _) = room.queue(&*store, "two", 1).await.unwrap();
    complete(&*store, first).await;
    let heard = store.promote(second, HistoryBound::ALL).await.unwrap().unwrap();
    let again = store.promote(second, HistoryBound::ALL).await.unwrap().unwrap();
    assert_same(&again, &heard);
    complete(&*store, second).await;
    assert_ended(&store.promote(second, HistoryBound::ALL).await);
}

pub async fn a_queued_run_that_is_cancelled_never_runs(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let (first, _) = room.say(&*store, "one").await;
    let (second, _) = room.queue(&*store, "two", 2).await.unwrap();
    let (third, _) = room.queue(&*store, "three", 2).await.unwrap();
    clock.advance_ms(7);
    let record = store.request_cancel(&room.owner, second, CancelledBy::User).await.unwrap().unwrap();
    assert_eq!((record.state, record.finished_at_ms), (RunState::Cancelled, Some(1_700_000_000_007)));
    assert_eq!(
        store.request_cancel(&room.owner, second, CancelledBy::User).await.unwrap().unwrap(),
        record,
        "it stays as it is"
    );
    assert_eq!(record.last_event_id, Some(0), "it had said nothing");
    let own = |state| RunEnd { last_event_id: 0, ..ended(state) };
    let same = store.finish_run(second, said(1, &[]), own(RunState::Cancelled)).await;
    same.expect("its owner has heard of the request as well");
    assert_ended(&store.finish_run(second, said(1, &[]), own(RunState::Interrupted)).await);
    complete(&*store, first).await;
    assert_ended(&store.promote(second, HistoryBound::ALL).await);
    let start = store.promote(third, HistoryBound::ALL).await.unwrap().unwrap();
    assert_same(&start.past.history, &vec![user("one"), user("two")]);
    // One that waits is also ended by whoever asked for it.
    let (fourth, _) = room.queue(&*store, "four", 2).await.unwrap();
    store.finish_run(fourth, said(1, &[]), ended(RunState::Interrupted)).await.unwrap();
    assert_eq!(state(&*store, &room, fourth).await, RunState::Interrupted);
}

pub async fn of_many_that_want_their_turn_at_once_one_gets_it(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (first, _) = room.say(&*store, "one").await;
    let mut waiting = Vec::new();
    for n in 0..8 {
        waiting.push(room.queue(&*store, &n.to_string(), 8).await.unwrap().0);
    }
    complete(&*store, first).await;
    let turns = join_all(waiting.iter().map(|run| {
        let (store, run) = (store.clone(), *run);
        tokio::spawn(async move { store.promote(run, HistoryBound::ALL).await })
    }));
    let turns: Vec<_> = turns.await.into_iter().map(|turn| turn.unwrap().unwrap().is_some()).collect();
    assert_eq!(turns, [true, false, false, false, false, false, false, false]);
}

pub async fn a_request_that_is_repeated_finds_its_run(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (room, elsewhere) = (Room::at("acme/ann/c1"), Room::at("acme/ann/c2"));
    let key = RequestKey { key: "key", digest: b"\0digest\xff", or_lately: false };
    let (run, _) = room.ask_by_key(&*store, "hello", key).await.unwrap();
    for room in [&room, &elsewhere] {
        let (_, again) = room.ask_by_key(&*store, "hello", key).await.unwrap();
        let expected = store.find_run(&room.owner, run).await.unwrap().unwrap();
        assert!(matches!(&again, Begun::Joined(found) if **found == expected), "{again:?}");
        let other = room.ask_by_key(&*store, "hello", RequestKey { digest: b"other", ..key }).await;
        assert!(matches!(other, Err(BeginError::KeyMismatch)), "{other:?}");
    }
    complete(&*store, run).await;
    let (_, again) = room.ask_by_key(&*store, "hello", key).await.unwrap();
    assert!(matches!(&again, Begun::Joined(found) if found.state == RunState::Completed), "{again:?}");
    assert_eq!(database.ask("SELECT id FROM conversations").await, ["c1"]);
    let (_, theirs) = Room::at("acme/bob/c1").ask_by_key(&*store, "hello", key).await.unwrap();
    assert!(matches!(theirs, Begun::Running(_)), "the key of somebody else is another: {theirs:?}");
}

pub async fn requests_with_one_key_at_once_begin_one_run(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let begun = join_all((0..8).map(|n| {
        let (store, room) = (store.clone(), Room::at(&format!("acme/ann/c{n}")));
        tokio::spawn(async move {
            room.ask_by_key(&*store, "hello", RequestKey { key: "key", digest: b"same", or_lately: false })
                .await
                .unwrap()
                .1
        })
    }));
    let begun: Vec<Begun> = begun.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(begun.iter().filter(|begun| matches!(begun, Begun::Running(_))).count(), 1, "{begun:?}");
    assert_eq!(begun.iter().filter(|begun| matches!(begun, Begun::Joined(_))).count(), 7, "{begun:?}");
    assert_eq!(database.ask("SELECT id FROM conversations").await.len(), 1);
}

pub async fn a_key_is_free_after_a_day(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let key = RequestKey { key: "key", digest: b"one", or_lately: false };
    let (first, _) = room.ask_by_key(&*store, "hello", key).await.unwrap();
    complete(&*store, first).await;
    clock.advance_ms(DAY_MS - 1);
    let (_, again) = room.ask_by_key(&*store, "hello", key).await.unwrap();
    assert!(matches!(again, Begun::Joined(_)), "{again:?}");
    clock.advance_ms(1);
    let other = RequestKey { digest: b"two", ..key };
    let (second, begun) = room.ask_by_key(&*store, "something else", other).await.unwrap();
    assert!(matches!(begun, Begun::Running(_)), "{begun:?}");
    let (_, again) = room.ask_by_key(&*store, "something else", other).await.unwrap();
    assert!(matches!(again, Begun::Joined(found) if found.id == second));
}

pub async fn cancelling_is_asked_of_whoever_runs_it(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "go").await;
    let record = store.request_cancel(&room.owner, run, CancelledBy::User).await.unwrap().unwrap();
    assert_eq!(record.state, RunState::Running, "its owner ends it");
    append(&*store, run, 1, &[answer("meanwhile")]).await.unwrap();
    store.finish_run(run, said(2, &[]), ended(RunState::Cancelled)).await.unwrap();
    assert_eq!(
        store.request_cancel(&room.owner, run, CancelledBy::User).await.unwrap().unwrap().state,
        RunState::Cancelled
    );
    assert_eq!(store.request_cancel(&room.owner, RunId::fresh(), CancelledBy::User).await.unwrap(), None);
    let ask = Ask::message("x");
    let busy = NewRun { queue: None, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    assert!(matches!(store.begin_run(busy).await.unwrap(), Begun::Running(_)), "the place is free again");
}

pub async fn the_runs_that_live_are_found_in_their_order(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let live = async || store.live_runs(&room.owner, &room.conversation).await.unwrap();
    assert_eq!(live().await, [], "nothing was said");
    let (first, _) = room.say(&*store, "one").await;
    assert_eq!(live().await, [first], "it runs");
    let (second, _) = room.queue(&*store, "two", 2).await.unwrap();
    let (third, _) = room.queue(&*store, "three", 2).await.unwrap();
    assert_eq!(live().await, [first, second, third], "what waits comes behind what runs");
    for stranger in Room::strangers() {
        assert_eq!(store.live_runs(&stranger.owner, &stranger.conversation).await.unwrap(), []);
    }
    complete(&*store, first).await;
    assert_eq!(live().await, [second, third], "both wait for their turn");
    store.promote(second, HistoryBound::ALL).await.unwrap().unwrap();
    store.request_cancel(&room.owner, third, CancelledBy::User).await.unwrap().unwrap();
    complete(&*store, second).await;
    assert_eq!(live().await, [], "all have ended");
}
