//! What every store promises about previews and their decisions.

use futures::future::join_all;
use serde_json::json;
use switchboard::agent::ports::leases::Old;
use switchboard::agent::ports::previews::{ClaimError, ClaimToken, Claimed, NewPreview, RecordError};
use switchboard::agent::ports::store::Begun;
use switchboard::agent::ports::summaries::HistoryBound;
use switchboard::chat::ids::{PreviewId, RunId};
use switchboard::chat::message::{Message, UserMessage};
use switchboard::chat::preview::{Base, Change, Origin, Preview, Save, Verdict};
use switchboard::store::Store;

use super::contract::{Database, ManualClock, Room, assert_same, base, change, complete, decided};

const MINUTE_MS: i64 = 60_000;

async fn assert_not_found(store: &dyn Store, room: &Room, id: PreviewId) {
    let claim = store.claim_preview(&room.owner, id).await;
    assert!(matches!(claim, Err(ClaimError::NotFound)), "{claim:?}");
}

async fn assert_taken(store: &dyn Store, room: &Room, id: PreviewId) {
    let claim = store.claim_preview(&room.owner, id).await;
    assert!(matches!(claim, Err(ClaimError::AlreadyDecided)), "{claim:?}");
}

async fn claim(store: &dyn Store, room: &Room, id: PreviewId) -> ClaimToken {
    store.claim_preview(&room.owner, id).await.unwrap().token
}

/// Nothing that whoever holds this token does has an effect.
async fn assert_lost(store: &dyn Store, room: &Room, id: PreviewId, token: ClaimToken) {
    let begun = store.begin_save(&room.owner, id, token).await;
    assert!(matches!(begun, Err(ClaimError::Lost)), "{begun:?}");
    let settled = store.settle_preview(&room.owner, id, token, &decided(id, "a", Verdict::Accept)).await;
    assert!(matches!(settled, Err(ClaimError::Lost)), "{settled:?}");
    store.release_preview(&room.owner, id, token).await.unwrap();
}

/// Changes rows beside the store.
async fn set(database: &impl Database, id: PreviewId, what: &str) {
    let rows = database.ask(&format!("UPDATE previews SET {what} WHERE id = '{id}' RETURNING id")).await;
    assert_eq!(rows.len(), 1);
}

/// Lets that time pass for a claim: no test moves the database's own clock.
async fn age(database: &impl Database, id: PreviewId, ms: i64) {
    set(database, id, &format!("claimed_at = claimed_at - {ms}")).await;
}

async fn waiting(store: &dyn Store, room: &Room) -> Vec<PreviewId> {
    let mut ids: Vec<PreviewId> = store
        .waiting_previews(&room.owner, None)
        .await
        .unwrap()
        .into_iter()
        .map(|waiting| waiting.preview.id)
        .collect();
    ids.sort_unstable_by_key(PreviewId::to_string);
    ids
}

pub async fn a_claim_shows_the_change_as_it_was_recorded(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let table = Change { existing_id: None, save: Save::create(["v1", "nul \u{0}"]), ..change("nul \u{0}") };
    let unread = Base { reader: "nul \u{0}".into(), digest: None };
    for (change, base) in [(change("a"), base()), (table, unread)] {
        let id = store.record_preview(room.new_preview(&change, &base)).await.unwrap();
        let claimed = store.claim_preview(&room.owner, id).await.unwrap();
        let expected = Claimed {
            preview: Preview { id, conversation: room.conversation.clone(), change },
            token: ClaimToken(1),
            base: Some(base),
            origin: Origin { context_type: None, tool: Some("preview".into()) },
            may_be_saved: false,
        };
        assert_eq!(claimed, expected);
    }
}

pub async fn a_preview_knows_the_profile_of_its_run(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "hello").await;
    let (change, base) = (change("a"), base());
    let id = store.record_preview(NewPreview { run, ..room.new_preview(&change, &base) }).await.unwrap();
    let expected = store.find_run(&room.owner, run).await.unwrap().unwrap().context_type;
    let waiting = store.waiting_previews(&room.owner, Some(id)).await.unwrap();
    assert_eq!(waiting[0].origin.context_type.as_ref(), Some(&expected));
    let claimed = store.claim_preview(&room.owner, id).await.unwrap();
    assert_eq!(claimed.origin.context_type, Some(expected));
    // Another one's run tells nothing of this one's previews.
    let stranger = Room::at("acme/bob/c1");
    let id = store.record_preview(NewPreview { run, ..stranger.new_preview(&change, &base) }).await.unwrap();
    assert_eq!(store.claim_preview(&stranger.owner, id).await.unwrap().origin.context_type, None);
}

pub async fn what_a_preview_changes_is_read_with_it_alone(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let Room { owner, conversation } = &room;
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
        let id = room.record(&*store, &change).await;
        let expected = Change { current: current.filter(|_| is_kept), ..change.clone() };
        let one = store.waiting_previews(owner, Some(id)).await.unwrap();
        let one: Vec<Preview> = one.into_iter().map(|waiting| waiting.preview).collect();
        assert_same(&one, &vec![Preview { id, conversation: conversation.clone(), change: expected }]);
        let all = store.waiting_previews(owner, None).await.unwrap();
        assert!(all.iter().all(|waiting| waiting.preview.change.current.is_none()), "{reason}");
        let claimed = store.claim_preview(owner, id).await.unwrap();
        assert!(claimed.preview.change.current.is_none(), "{reason}");
        store.settle_preview(owner, id, claimed.token, &decided(id, "a", Verdict::Reject)).await.unwrap();
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
    let token = claim(&*store, &room, id).await;
    for stranger in &strangers {
        assert_lost(&*store, stranger, id, token).await;
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
        let token = claim(&*store, &room, id).await;
        store.release_preview(&room.owner, id, token).await.unwrap();
        store.release_preview(&room.owner, id, token).await.unwrap();
    }
    room.decide(&*store, id, "a", Verdict::Accept).await;
}

pub async fn a_claim_ends_by_itself_after_a_minute(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    claim(&*store, &room, id).await;
    // Whatever the clock of the process says, before or after.
    for jump in [10 * MINUTE_MS, -20 * MINUTE_MS] {
        clock.advance_ms(jump);
        assert_taken(&*store, &room, id).await;
    }
    age(database, id, MINUTE_MS / 2).await;
    assert_taken(&*store, &room, id).await;
    age(database, id, MINUTE_MS / 2).await;
    let token = claim(&*store, &room, id).await;
    assert_taken(&*store, &room, id).await;
    store.settle_preview(&room.owner, id, token, &decided(id, "a", Verdict::Reject)).await.unwrap();
}

pub async fn whoever_has_lost_a_claim_can_do_nothing(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    let first = claim(&*store, &room, id).await;
    age(database, id, MINUTE_MS + 1).await;
    let begun = store.begin_save(&room.owner, id, first).await;
    assert!(matches!(begun, Err(ClaimError::Lost)), "its time is over, though nobody else has come: {begun:?}");
    let second = claim(&*store, &room, id).await;
    assert!(second > first);
    assert_lost(&*store, &room, id, first).await;
    store.begin_save(&room.owner, id, second).await.unwrap();
    assert_lost(&*store, &room, id, first).await;
    assert_taken(&*store, &room, id).await;
    let accepted = decided(id, "a", Verdict::Accept);
    store.settle_preview(&room.owner, id, second, &accepted).await.unwrap();
    assert_lost(&*store, &room, id, first).await;
    assert_eq!(room.told(&*store, "so?").await.decisions, [accepted]);
}

pub async fn a_save_is_begun_once_by_a_claim(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    let token = claim(&*store, &room, id).await;
    let begun = join_all((0..8).map(|_| store.begin_save(&room.owner, id, token))).await;
    assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 1, "{begun:?}");
}

pub async fn a_save_whose_answer_did_not_come_is_known(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    let known = async || {
        let waiting = store.waiting_previews(&room.owner, Some(id)).await.unwrap();
        waiting[0].may_be_saved
    };
    // Refused: nothing was done.
    let token = claim(&*store, &room, id).await;
    store.begin_save(&room.owner, id, token).await.unwrap();
    assert!(known().await, "while it is under way");
    store.release_preview(&room.owner, id, token).await.unwrap();
    assert!(!known().await);
    // No answer: it may be done, whatever comes of the next try.
    let token = claim(&*store, &room, id).await;
    age(database, id, MINUTE_MS / 2).await;
    store.begin_save(&room.owner, id, token).await.unwrap();
    age(database, id, MINUTE_MS / 2).await;
    assert_taken(&*store, &room, id).await;
    age(database, id, MINUTE_MS / 2 + 1).await;
    let claimed = store.claim_preview(&room.owner, id).await.unwrap();
    assert!(claimed.may_be_saved);
    store.begin_save(&room.owner, id, claimed.token).await.unwrap();
    store.release_preview(&room.owner, id, claimed.token).await.unwrap();
    assert!(known().await);
    assert!(store.claim_preview(&room.owner, id).await.unwrap().may_be_saved);
}

pub async fn a_newer_preview_of_the_same_thing_takes_the_older_ones_place(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let new = |name: &str| Change { existing_id: None, save: Save::create(["v1"]), ..change(name) };
    let elsewhere = Room::at("acme/ann/c2").preview(&*store, "a").await;
    let others = [
        room.preview(&*store, "b").await,
        room.record(&*store, &new("a")).await,
        room.record(&*store, &Change { what: "table".into(), ..change("a") }).await,
    ];
    let rejected = room.preview(&*store, "a").await;
    room.decide(&*store, rejected, "a", Verdict::Reject).await;
    let older = room.preview(&*store, "a").await;
    let older_new = room.record(&*store, &new("c")).await;
    // Under another name it is still the same thing; of a new one the name is all there is.
    let newer = room.record(&*store, &Change { name: "renamed".into(), ..change("a") }).await;
    let newer_new = room.record(&*store, &new("c")).await;
    for id in [older, older_new] {
        let claim = store.claim_preview(&room.owner, id).await;
        assert!(matches!(claim, Err(ClaimError::Superseded)), "{claim:?}");
        assert_eq!(store.waiting_previews(&room.owner, Some(id)).await.unwrap(), []);
    }
    assert_taken(&*store, &room, rejected).await;
    let mut expected = vec![elsewhere, newer, newer_new];
    expected.extend(others);
    expected.sort_unstable_by_key(PreviewId::to_string);
    assert_eq!(waiting(&*store, &room).await, expected);
    // What is just being decided is decided.
    let token = claim(&*store, &room, newer).await;
    room.preview(&*store, "a").await;
    store.begin_save(&room.owner, newer, token).await.unwrap();
    store.settle_preview(&room.owner, newer, token, &decided(newer, "renamed", Verdict::Accept)).await.unwrap();
}

pub async fn as_many_previews_wait_as_may(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let base = base();
    let record = async |name: &str| {
        let change = change(name);
        store.record_preview(NewPreview { most: 2, ..room.new_preview(&change, &base) }).await
    };
    let first = record("a").await.unwrap();
    let second = record("b").await.unwrap();
    let third = record("c").await;
    assert!(matches!(third, Err(RecordError::Full)), "{third:?}");
    record("a").await.expect("it takes the older one's place");
    Room::at("acme/ann/c2").preview(&*store, "c").await;
    room.decide(&*store, second, "b", Verdict::Reject).await;
    record("c").await.expect("one is decided");
    let (one, other) = (change("d"), change("e"));
    let at_once = [&one, &other].map(|change| NewPreview { most: 3, ..room.new_preview(change, &base) });
    let recorded = join_all(at_once.map(|new| store.record_preview(new))).await;
    assert_eq!(recorded.iter().filter(|id| id.is_ok()).count(), 1, "{recorded:?}");
    assert!(matches!(store.claim_preview(&room.owner, first).await, Err(ClaimError::Superseded)));
}

pub async fn a_preview_expires(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let base = base();
    let (ids, names) = (["a", "b", "c", "d"].map(change), ["a", "b", "c", "d"]);
    let mut previews = Vec::new();
    for change in &ids {
        let new = NewPreview { life_ms: 60 * MINUTE_MS, most: 4, ..room.new_preview(change, &base) };
        previews.push(store.record_preview(new).await.unwrap());
    }
    clock.advance_ms(1000 * MINUTE_MS);
    assert_eq!(waiting(&*store, &room).await.len(), 4, "by the database's time no minute has passed");
    let [accepted, expired, claimed, unsent] = previews[..] else { unreachable!() };
    room.decide(&*store, accepted, names[0], Verdict::Accept).await;
    let token = claim(&*store, &room, claimed).await;
    for id in [accepted, expired, claimed, unsent] {
        set(database, id, &format!("expires_at = expires_at - {}", 60 * MINUTE_MS)).await;
    }
    assert_eq!(waiting(&*store, &room).await, []);
    for id in [expired, unsent] {
        let claim = store.claim_preview(&room.owner, id).await;
        assert!(matches!(claim, Err(ClaimError::Expired)), "{claim:?}");
    }
    assert_taken(&*store, &room, accepted).await;
    // It has been taken in time.
    store.begin_save(&room.owner, claimed, token).await.unwrap();
    store.settle_preview(&room.owner, claimed, token, &decided(claimed, "c", Verdict::Accept)).await.unwrap();
    let old = Old { trail_before_ms: None, unlisted_before_ms: None };
    store.tidy(old).await.unwrap();
    assert!(matches!(store.claim_preview(&room.owner, expired).await, Err(ClaimError::Expired)), "told for a day");
    for id in [accepted, expired, claimed] {
        set(database, id, &format!("expires_at = expires_at - {}", 24 * 60 * MINUTE_MS)).await;
    }
    assert!(!store.tidy(old).await.unwrap());
    assert_not_found(&*store, &room, expired).await;
    assert!(matches!(store.claim_preview(&room.owner, unsent).await, Err(ClaimError::Expired)));
    assert_eq!(store.accepted_changes(&room.owner, &room.conversation).await.unwrap().len(), 2, "decisions stay");
}

pub async fn previews_of_the_version_before_are_decided(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    // As that version writes them; its clock is nobody's concern.
    let now = "(SELECT MAX(expires_at) - 3600000 FROM previews)";
    set(database, id, "context_type = NULL, tool = NULL, subject = NULL, reader = NULL, base_digest = NULL").await;
    set(database, id, &format!("created_at = {now}")).await;
    set(database, id, "expires_at = NULL").await;
    let waits = store.waiting_previews(&room.owner, Some(id)).await.unwrap();
    assert_eq!(waits[0].expires_at_ms - waits[0].created_at_ms, 24 * 60 * MINUTE_MS);
    assert_eq!(waits[0].origin, Origin::default());
    room.preview(&*store, "a").await;
    // It claims without a token.
    let other = store.claim_preview(&room.owner, id).await.unwrap();
    assert_eq!((other.base, other.origin), (None, Origin::default()));
    age(database, id, MINUTE_MS + 1).await;
    let ours = claim(&*store, &room, id).await;
    age(database, id, MINUTE_MS + 1).await;
    set(database, id, "claimed_at = claimed_at + 60001").await;
    assert_taken(&*store, &room, id).await;
    store.begin_save(&room.owner, id, ours).await.unwrap();
    store.settle_preview(&room.owner, id, ours, &decided(id, "a", Verdict::Accept)).await.unwrap();
    let long_ago = room.preview(&*store, "b").await;
    set(database, long_ago, "created_at = created_at - 1000, expires_at = NULL").await;
    let claim = store.claim_preview(&room.owner, long_ago).await;
    assert!(matches!(claim, Err(ClaimError::Expired)), "its day was over years ago: {claim:?}");
}

pub async fn a_decided_preview_is_never_claimed_again(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    for verdict in [Verdict::Accept, Verdict::Reject] {
        let id = room.preview(&*store, "a").await;
        room.decide(&*store, id, "a", verdict).await;
        store.release_preview(&room.owner, id, ClaimToken(1)).await.unwrap();
        set(database, id, "claimed_at = 0").await;
        assert_taken(&*store, &room, id).await;
    }
}

pub async fn a_decision_that_was_not_heard_of_may_be_repeated_but_not_changed(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    let accepted = room.decide(&*store, id, "a", Verdict::Accept).await;
    store.settle_preview(&room.owner, id, ClaimToken(1), &accepted).await.unwrap();
    for (token, verdict) in [(1, Verdict::Reject), (2, Verdict::Accept)] {
        let other = store.settle_preview(&room.owner, id, ClaimToken(token), &decided(id, "a", verdict)).await;
        assert!(matches!(other, Err(ClaimError::Lost)), "{other:?}");
    }
    assert_eq!(room.told(&*store, "so?").await.decisions, [accepted]);
}

pub async fn a_decision_needs_a_claim(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let id = room.preview(&*store, "a").await;
    for token in [0, 1] {
        assert_lost(&*store, &room, id, ClaimToken(token)).await;
    }
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
    let told = UserMessage { decisions: vec![b, a], ..UserMessage::new("and now?") };
    assert_eq!(room.told(&*store, "and now?").await, told, "in the order of deciding");
    let (run, next) = room.say(&*store, "again?").await;
    complete(&*store, run).await;
    assert_eq!(next.message, UserMessage::new("again?"));
    assert_same(&next.past.history, &vec![Message::User(told)]);
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
            match store.promote(run, HistoryBound::ALL).await.unwrap() {
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
    let told = UserMessage { decisions: vec![accepted], ..UserMessage::new("back") };
    assert_eq!(room.told(&*store, "back").await, told);
    store.close().await;
    let store = database.open(ManualClock::new()).await;
    assert_same(&room.history(&*store).await, &vec![Message::User(told)]);
    assert_eq!(room.told(&*store, "x").await, UserMessage::new("x"));
}
