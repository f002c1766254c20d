//! What every store promises about previews and their decisions.

use futures::future::join_all;
use serde_json::json;
use switchboard::agent::ports::previews::ClaimError;
use switchboard::agent::ports::store::{Begun, StoreError};
use switchboard::chat::ids::{PreviewId, RunId};
use switchboard::chat::message::{Message, UserMessage};
use switchboard::chat::preview::{Change, Preview, Save, Verdict};

use switchboard::store::Store;

use super::contract::{Database, ManualClock, Room, assert_same, change, complete, decided};

const MINUTE_MS: i64 = 60_000;

async fn assert_not_found(store: &dyn Store, room: &Room, id: PreviewId) {
    let claim = store.claim_preview(&room.owner, id).await;
    assert!(matches!(claim, Err(ClaimError::NotFound)), "{claim:?}");
}

async fn assert_taken(store: &dyn Store, room: &Room, id: PreviewId) {
    let claim = store.claim_preview(&room.owner, id).await;
    assert!(matches!(claim, Err(ClaimError::AlreadyDecided)), "{claim:?}");
}

pub async fn a_claim_shows_the_change_as_it_was_recorded(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    let table = Change { existing_id: None, save: Save::create(["v1", "nul \u{0}"]), ..change("nul \u{0}") };
    for change in [change("a"), table] {
        let id = store.record_preview(&owner, &conversation, &change).await.unwrap();
        let claimed = store.claim_preview(&owner, id).await.unwrap();
        assert_eq!(claimed, Preview { id, conversation: conversation.clone(), change });
    }
}

pub async fn what_a_preview_changes_is_read_with_it_alone(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let rows = [
        (Some(json!({"z": "nul \u{0}", "a": null})), true, "anything that is JSON"),
        (None, true, "a new thing changes nothing"),
        (Some(json!("x".repeat(256 * 1024 - 2))), true, "as much as anybody compares"),
        (Some(json!("x".repeat(256 * 1024 - 1))), false, "more than that"),
        (Some(deep), false, "what could not be read again"),
    ];
    for (current, is_kept, reason) in rows {
        let change = Change { current: current.clone(), ..change("a") };
        let id = store.record_preview(&owner, &conversation, &change).await.unwrap();
        let expected = Change { current: current.filter(|_| is_kept), ..change.clone() };
        let one = store.waiting_previews(&owner, Some(id)).await.unwrap();
        let one: Vec<Preview> = one.into_iter().map(|waiting| waiting.preview).collect();
        assert_same(&one, &vec![Preview { id, conversation: conversation.clone(), change: expected }]);
        let all = store.waiting_previews(&owner, None).await.unwrap();
        assert!(all.iter().all(|waiting| waiting.preview.change.current.is_none()), "{reason}");
        assert!(store.claim_preview(&owner, id).await.unwrap().change.current.is_none(), "{reason}");
        store.end_claim(&owner, id, Some(&decided(id, "a", Verdict::Reject))).await.unwrap();
    }
}

pub async fn nobody_else_claims_or_releases_a_preview(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    assert_not_found(&*store, &room, PreviewId::fresh()).await;
    let strangers = ["acme/bob/c1", "other/ann/c1"].map(Room::at);
    for stranger in &strangers {
        assert_not_found(&*store, stranger, id).await;
    }
    store.claim_preview(&room.owner, id).await.unwrap();
    for stranger in &strangers {
        store.end_claim(&stranger.owner, id, None).await.unwrap();
        let settled = store.end_claim(&stranger.owner, id, Some(&decided(id, "a", Verdict::Accept))).await;
        assert!(matches!(settled, Err(StoreError::Damaged(_))), "{settled:?}");
        assert_not_found(&*store, stranger, id).await;
    }
    assert_taken(&*store, &room, id).await;
}

pub async fn of_many_claims_at_once_one_wins(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    for _ in 0..5 {
        let id = room.preview(&*store, "a").await;
        let claims = join_all((0..8).map(|_| {
            let (store, owner) = (store.clone(), room.owner.clone());
            tokio::spawn(async move { store.claim_preview(&owner, id).await })
        }));
        let claims: Vec<_> = claims.await.into_iter().map(Result::unwrap).collect();
        assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1, "{claims:?}");
        let losers = claims.iter().filter(|claim| matches!(claim, Err(ClaimError::AlreadyDecided))).count();
        assert_eq!(losers, 7, "{claims:?}");
    }
}

pub async fn a_released_preview_waits_again(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    for _ in 0..2 {
        store.claim_preview(&room.owner, id).await.unwrap();
        store.end_claim(&room.owner, id, None).await.unwrap();
        store.end_claim(&room.owner, id, None).await.unwrap();
    }
    room.decide(&*store, id, "a", Verdict::Accept).await;
}

pub async fn a_claim_ends_by_itself_after_a_minute(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    store.claim_preview(&room.owner, id).await.unwrap();
    clock.advance_ms(MINUTE_MS);
    assert_taken(&*store, &room, id).await;
    clock.advance_ms(1);
    store.claim_preview(&room.owner, id).await.unwrap();
    assert_taken(&*store, &room, id).await;
    clock.advance_ms(MINUTE_MS);
    assert_taken(&*store, &room, id).await;
    store.end_claim(&room.owner, id, Some(&decided(id, "a", Verdict::Reject))).await.unwrap();
}

pub async fn a_decided_preview_is_never_claimed_again(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    for verdict in [Verdict::Accept, Verdict::Reject] {
        let id = room.preview(&*store, "a").await;
        room.decide(&*store, id, "a", verdict).await;
        store.end_claim(&room.owner, id, None).await.unwrap();
        clock.advance_ms(10 * MINUTE_MS);
        assert_taken(&*store, &room, id).await;
    }
}

pub async fn a_decision_that_was_not_heard_of_may_be_repeated_but_not_changed(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    let accepted = room.decide(&*store, id, "a", Verdict::Accept).await;
    store.end_claim(&room.owner, id, Some(&accepted)).await.unwrap();
    let other = store.end_claim(&room.owner, id, Some(&decided(id, "a", Verdict::Reject))).await;
    assert!(matches!(other, Err(StoreError::Damaged(_))), "{other:?}");
    assert_eq!(room.told(&*store, "so?").await.decisions, [accepted]);
}

pub async fn a_decision_needs_a_claim(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    let settled = store.end_claim(&room.owner, id, Some(&decided(id, "a", Verdict::Accept))).await;
    assert!(matches!(settled, Err(StoreError::Damaged(_))), "{settled:?}");
    room.decide(&*store, id, "a", Verdict::Reject).await;
}

pub async fn the_next_run_of_the_conversation_is_told_once(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let mut ids = Vec::new();
    for name in ["a", "b", "waits"] {
        ids.push(room.preview(&*store, name).await);
    }
    let b = room.decide(&*store, ids[1], "b", Verdict::Accept).await;
    clock.advance_ms(1);
    let a = room.decide(&*store, ids[0], "a", Verdict::Reject).await;
    for stranger in Room::strangers() {
        assert_eq!(stranger.say(&*store, "hello").await.1.message, UserMessage::new("hello"));
    }
    let told = UserMessage { text: "and now?".into(), decisions: vec![b, a], note: None };
    assert_eq!(room.told(&*store, "and now?").await, told, "in the order of deciding");
    let (run, next) = room.say(&*store, "again?").await;
    complete(&*store, run).await;
    assert_eq!(next.message, UserMessage::new("again?"));
    assert_same(&next.history, &vec![Message::User(told)]);
    let waits = room.decide(&*store, ids[2], "waits", Verdict::Accept).await;
    assert_eq!(room.told(&*store, "now?").await.decisions, [waits]);
}

pub async fn of_two_runs_that_begin_at_once_one_is_told(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    let accepted = room.decide(&*store, id, "a", Verdict::Accept).await;
    let begun = join_all((0..8).map(|_| room.queue(&*store, "hello", 8))).await;
    let mut told = Vec::new();
    let mut waiting: Vec<RunId> = Vec::new();
    for begun in begun {
        match begun.unwrap() {
            (run, Begun::Running(start)) => {
                told.extend(start.message.decisions);
                complete(&*store, run).await;
            }
            (run, _) => waiting.push(run),
        }
    }
    while !waiting.is_empty() {
        let mut left = Vec::new();
        for run in waiting {
            match store.promote(run, 0).await.unwrap() {
                Some(start) => {
                    told.extend(start.message.decisions);
                    complete(&*store, run).await;
                }
                None => left.push(run),
            }
        }
        waiting = left;
    }
    assert_eq!(told, [accepted]);
}

pub async fn more_decisions_than_fit_one_run_are_told_by_the_next(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let mut expected = Vec::new();
    for n in 0..53 {
        let name = n.to_string();
        let id = room.preview(&*store, &name).await;
        expected.push(room.decide(&*store, id, &name, Verdict::Reject).await);
        clock.advance_ms(1);
    }
    assert_eq!(room.told(&*store, "first").await.decisions, expected[..50]);
    assert_eq!(room.told(&*store, "second").await.decisions, expected[50..]);
    assert_eq!(room.told(&*store, "third").await.decisions, []);
}

pub async fn accepted_changes_come_newest_first(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let mut expected = Vec::new();
    for n in 0..55 {
        let name = n.to_string();
        let id = room.preview(&*store, &name).await;
        room.preview(&*store, "undecided").await;
        let verdict = if n % 5 == 4 { Verdict::Reject } else { Verdict::Accept };
        let decided = room.decide(&*store, id, &name, verdict).await;
        if verdict == Verdict::Accept {
            expected.insert(0, (change(&name), decided));
        }
        clock.advance_ms(1);
    }
    assert_eq!(expected.len(), 44, "all fit");
    assert_eq!(store.accepted_changes(&room.owner, &room.conversation).await.unwrap(), expected);
    for n in 55..65 {
        let name = n.to_string();
        let id = room.preview(&*store, &name).await;
        expected.insert(0, (change(&name), room.decide(&*store, id, &name, Verdict::Accept).await));
        clock.advance_ms(1);
    }
    expected.truncate(50);
    assert_eq!(store.accepted_changes(&room.owner, &room.conversation).await.unwrap(), expected);
}

pub async fn nobody_else_sees_accepted_changes(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    room.decide(&*store, id, "a", Verdict::Accept).await;
    for stranger in Room::strangers() {
        assert_eq!(store.accepted_changes(&stranger.owner, &stranger.conversation).await.unwrap(), []);
    }
}

pub async fn a_restart_keeps_claims_and_untold_decisions(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let claimed = room.preview(&*store, "claimed").await;
    store.claim_preview(&room.owner, claimed).await.unwrap();
    let id = room.preview(&*store, "a").await;
    let accepted = room.decide(&*store, id, "a", Verdict::Accept).await;
    store.close().await;
    let store = database.open(clock).await;
    assert_taken(&*store, &room, claimed).await;
    let told = UserMessage { text: "back".into(), decisions: vec![accepted], note: None };
    assert_eq!(room.told(&*store, "back").await, told);
    store.close().await;
    let store = database.open(ManualClock::new()).await;
    assert_same(&room.history(&*store).await, &vec![Message::User(told)]);
    assert_eq!(room.told(&*store, "x").await, UserMessage::new("x"));
}
