//! What every store promises about summaries of what no longer fits.

use switchboard::agent::ports::store_error::StoreError;
use switchboard::agent::ports::summaries::{HistoryBound, Keep};
use switchboard::chat::ids::{MessageId, RunId};
use switchboard::chat::input::{Ask, Parent};
use switchboard::chat::message::Message;

use super::contract::{
    Database, ManualClock, Room, answer, assert_same, complete, end, summary, tool_turn, user, words,
};

/// Room for two of the runs below and a half.
const BYTES: usize = 5_500;

const KEEP: Keep = Keep { bytes: BYTES, messages: None };

/// A run of a good 2000 bytes, half of them its question.
fn run(nth: usize) -> [Message; 2] {
    [user(&question(nth)), answer(&"y".repeat(1000))]
}

fn question(nth: usize) -> String {
    format!("{nth}{}", "x".repeat(1000))
}

pub async fn what_fits_needs_no_summary(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    for nth in 0..2 {
        let run = room.exchange(&*store, &question(nth), &run(nth)[1..]).await;
        assert!(store.unsummarised(run, KEEP).await.unwrap().is_none());
    }
    let large = Room::at("acme/ann/c2").exchange(&*store, &question(0), &[answer(&"y".repeat(9000))]).await;
    assert!(store.unsummarised(large, KEEP).await.unwrap().is_none(), "the newest run stays, however large");
    let unbounded = room.exchange(&*store, &question(2), &[answer(&"y".repeat(9000))]).await;
    assert!(
        store.unsummarised(unbounded, Keep { bytes: 0, messages: None }).await.unwrap().is_none(),
        "no limit, nothing left out"
    );
}

pub async fn the_older_part_is_summarised_and_the_next_run_begins_with_that(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let mut ids = Vec::new();
    for nth in 0..4 {
        ids.push(room.exchange(&*store, &question(nth), &run(nth)[1..]).await);
    }
    let what = store.unsummarised(ids[3], KEEP).await.unwrap().unwrap();
    assert_eq!((what.before, what.upto), (None, ids[1]), "no more than the room at once, oldest first");
    assert_same(&what.messages, &[run(0), run(1)].concat());
    store.keep_summary(what.upto, &summary("first \u{0}\u{2028}\"")).await.unwrap();

    let (next, start) = room.say_within(&*store, "next", BYTES).await;
    let bound = HistoryBound { bytes: BYTES, by_summary: false };
    assert_same(&store.past(next, bound).await.unwrap(), &start.past);
    assert_eq!(words(&start), Some("first \u{0}\u{2028}\""));
    assert_same(&start.past.history, &[run(2), run(3)].concat());
    complete(&*store, next).await;
    assert!(store.unsummarised(next, KEEP).await.unwrap().is_none(), "what is left fits");

    let long = room.exchange(&*store, &question(5), &run(5)[1..]).await;
    let what = store.unsummarised(long, KEEP).await.unwrap().unwrap();
    assert_eq!(what.before.as_deref(), Some("first \u{0}\u{2028}\""), "it goes on from the one before");
    assert_eq!(what.upto, ids[3]);
    assert_same(&what.messages, &[run(2), run(3)].concat());
    store.keep_summary(what.upto, &summary("second")).await.unwrap();
    store.keep_summary(what.upto, &summary("second, better")).await.unwrap();
    let (_, start) = room.say_within(&*store, "and now", BYTES).await;
    assert_eq!(words(&start), Some("second, better"));
    assert_same(&start.past.history, &[vec![user("next")], run(5).to_vec()].concat());
}

pub async fn what_is_summarised_holds_no_half_of_a_tool_pair(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let turn = tool_turn();
    let old = room.exchange(&*store, &question(0), &[&turn[..], &[answer("done")]].concat()).await;
    let newest = room.exchange(&*store, &question(1), &[answer(&"y".repeat(4000))]).await;
    let what = store.unsummarised(newest, KEEP).await.unwrap().unwrap();
    assert_eq!(what.upto, old);
    assert_same(&what.messages, &[&[user(&question(0))], &turn[..], &[answer("done")]].concat());
}

pub async fn a_summary_is_its_branchs_own(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let mut ids = Vec::new();
    for nth in 0..3 {
        ids.push(room.exchange(&*store, &question(nth), &run(nth)[1..]).await);
    }
    let what = store.unsummarised(ids[2], KEEP).await.unwrap().unwrap();
    assert_eq!(what.upto, ids[1]);
    store.keep_summary(what.upto, &summary("zero and one")).await.unwrap();

    // Goes on from the first run: the second one is on another branch.
    let parent = Some(Parent::Message(MessageId { run: ids[0], seq: 1 }));
    let (branch, _) = room.ask(&*store, &Ask::message(question(3)), parent).await.unwrap();
    end(&*store, branch, &run(3)[1..]).await;
    let newest = room.exchange(&*store, &question(4), &run(4)[1..]).await;
    let what = store.unsummarised(newest, KEEP).await.unwrap().unwrap();
    assert_eq!((what.before, what.upto), (None, branch));
    assert_same(&what.messages, &[run(0), run(3)].concat());
    let (asked, start) = room.say_within(&*store, "next", BYTES).await;
    assert_eq!(start.past.summary, None, "the other branch's is not used");
    complete(&*store, asked).await;

    // Goes on from the middle of the second run, of which the summary tells more.
    let parent = Some(Parent::Message(MessageId { run: ids[1], seq: 0 }));
    let (middle, _) = room.ask(&*store, &Ask::message(question(5)), parent).await.unwrap();
    end(&*store, middle, &run(5)[1..]).await;
    let newest = room.exchange(&*store, &question(6), &run(6)[1..]).await;
    let what = store.unsummarised(newest, KEEP).await.unwrap().unwrap();
    assert_eq!((what.before, what.upto), (None, middle));
    assert_same(&what.messages, &[&run(0)[..], &[user(&question(1))], &run(5)].concat());
}

pub async fn a_run_that_is_gone_takes_no_summary(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let unknown = RunId::fresh();
    assert!(matches!(store.unsummarised(unknown, KEEP).await, Err(StoreError::RunEnded)));
    assert!(matches!(store.past(unknown, HistoryBound::ALL).await, Err(StoreError::RunEnded)));
    assert!(matches!(store.keep_summary(unknown, &summary("late")).await, Err(StoreError::RunEnded)));
}
