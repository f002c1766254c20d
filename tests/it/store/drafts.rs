//! What every store promises about drafts.

use futures::future::join_all;
use serde_json::{Value, json};
use switchboard::agent::ports::drafts::{Draft, DraftError};
use switchboard::agent::ports::store_error::StoreError;

use super::contract::{Database, ManualClock, Room};

const MINUTE_MS: i64 = 60_000;

pub async fn a_draft_reads_back_exactly(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    let bodies = [json!(null), json!({ "z": 1, "a": ["nul \u{0}", -0.5, u64::MAX] }), json!("x".repeat(100_000))];
    for body in bodies {
        let id = store.create_draft(&owner, &conversation, &body).await.unwrap();
        let draft = store.draft(&owner, &conversation, id).await.unwrap();
        assert_eq!(draft.body.to_string(), body.to_string(), "key order counts too");
        let next = Draft { body: json!({ "was": body }), ..draft };
        store.save_draft(&owner, &conversation, id, &next).await.unwrap();
        let saved = store.draft(&owner, &conversation, id).await.unwrap();
        assert_eq!(saved.body, next.body);
        assert_ne!(saved.revision, next.revision);
    }
}

pub async fn numbers_keep_their_last_digit(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    // Square roots have no short decimal form.
    let body: Value = (1..1000).map(|n| f64::from(n).sqrt()).collect();
    let id = store.create_draft(&owner, &conversation, &body).await.unwrap();
    assert_eq!(store.draft(&owner, &conversation, id).await.unwrap().body, body);
}

pub async fn a_draft_lives_ten_minutes_after_its_last_use(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    let id = store.create_draft(&owner, &conversation, &json!(1)).await.unwrap();
    clock.advance_ms(10 * MINUTE_MS - 1);
    let draft = store.draft(&owner, &conversation, id).await.unwrap();
    clock.advance_ms(10 * MINUTE_MS - 1);
    store.save_draft(&owner, &conversation, id, &draft).await.unwrap();
    clock.advance_ms(10 * MINUTE_MS - 1);
    let draft = store.draft(&owner, &conversation, id).await.unwrap();
    clock.advance_ms(10 * MINUTE_MS);
    let read = store.draft(&owner, &conversation, id).await;
    assert!(matches!(read, Err(DraftError::NotFound)), "{read:?}");
    let saved = store.save_draft(&owner, &conversation, id, &draft).await;
    assert!(matches!(saved, Err(DraftError::NotFound)), "{saved:?}");
}

pub async fn nobody_else_and_no_other_conversation_sees_a_draft(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    let id = store.create_draft(&owner, &conversation, &json!("mine")).await.unwrap();
    let draft = store.draft(&owner, &conversation, id).await.unwrap();
    for stranger in Room::strangers() {
        let read = store.draft(&stranger.owner, &stranger.conversation, id).await;
        assert!(matches!(read, Err(DraftError::NotFound)), "{read:?}");
        let theirs = Draft { body: json!("theirs"), ..draft };
        let saved = store.save_draft(&stranger.owner, &stranger.conversation, id, &theirs).await;
        assert!(matches!(saved, Err(DraftError::NotFound)), "{saved:?}");
    }
    assert_eq!(store.draft(&owner, &conversation, id).await.unwrap(), draft);
}

pub async fn of_two_savers_the_second_is_told_that_the_draft_changed(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    let id = store.create_draft(&owner, &conversation, &json!(0)).await.unwrap();
    let read = store.draft(&owner, &conversation, id).await.unwrap();
    let drafts = [1, 2].map(|n| Draft { body: json!(n), revision: read.revision });
    let saves = join_all(drafts.iter().map(|draft| store.save_draft(&owner, &conversation, id, draft))).await;
    let winner = match &saves[..] {
        [Ok(()), Err(DraftError::Changed)] => 1,
        [Err(DraftError::Changed), Ok(())] => 2,
        other => panic!("one saver wins: {other:?}"),
    };
    assert_eq!(store.draft(&owner, &conversation, id).await.unwrap().body, json!(winner));
}

pub async fn the_twenty_first_live_draft_is_refused(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let rooms = ["acme/ann/c1", "acme/ann/c2"].map(Room::at);
    for n in 0..20 {
        let Room { owner, conversation } = &rooms[n % 2];
        store.create_draft(owner, conversation, &json!(n)).await.unwrap();
        clock.advance_ms(1000);
    }
    for Room { owner, conversation } in &rooms {
        let refused = store.create_draft(owner, conversation, &json!(20)).await;
        assert!(matches!(refused, Err(DraftError::TooMany)), "{refused:?}");
    }
    for stranger in ["acme/bob/c1", "other/ann/c1"].map(Room::at) {
        store.create_draft(&stranger.owner, &stranger.conversation, &json!(0)).await.unwrap();
    }
    clock.advance_ms(10 * MINUTE_MS - 20 * 1000);
    let Room { owner, conversation } = &rooms[0];
    store.create_draft(owner, conversation, &json!("the first one has expired")).await.unwrap();
    let refused = store.create_draft(owner, conversation, &json!("the second one has not")).await;
    assert!(matches!(refused, Err(DraftError::TooMany)), "{refused:?}");
}

pub async fn drafts_asked_for_at_once_stop_at_twenty(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    let body = json!({});
    let created = join_all((0..25).map(|_| store.create_draft(&owner, &conversation, &body))).await;
    assert_eq!(created.iter().filter(|result| result.is_ok()).count(), 20, "{created:?}");
    assert_eq!(created.iter().filter(|result| matches!(result, Err(DraftError::TooMany))).count(), 5, "{created:?}");
}

pub async fn a_body_that_could_not_be_read_again_is_refused(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    let nested = |depth| (0..depth).fold(json!(1), |inner: Value, _| json!([inner]));
    let id = store.create_draft(&owner, &conversation, &nested(100)).await.unwrap();
    let draft = store.draft(&owner, &conversation, id).await.unwrap();
    let too_deep = Draft { body: nested(1000), ..draft };
    let saved = store.save_draft(&owner, &conversation, id, &too_deep).await;
    assert!(matches!(saved, Err(DraftError::Store(StoreError::Damaged(_)))), "{saved:?}");
    let created = store.create_draft(&owner, &conversation, &too_deep.body).await;
    assert!(matches!(created, Err(DraftError::Store(StoreError::Damaged(_)))), "{created:?}");
    assert_eq!(store.draft(&owner, &conversation, id).await.unwrap(), draft, "the old body stands");
}

pub async fn a_restart_keeps_drafts(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let Room { owner, conversation } = Room::at("acme/ann/c1");
    let id = store.create_draft(&owner, &conversation, &json!("kept")).await.unwrap();
    let draft = store.draft(&owner, &conversation, id).await.unwrap();
    store.close().await;
    let store = database.open(clock).await;
    assert_eq!(store.draft(&owner, &conversation, id).await.unwrap(), draft);
}
