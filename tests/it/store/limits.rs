//! How many runs live, and what was used: the same on every store.

use std::sync::Arc;

use futures::future::join_all;
use switchboard::agent::ports::quotas::Quotas;
use switchboard::agent::ports::quotas::Whose;
use switchboard::agent::ports::store::{BeginError, Begun, Commit, MostRuns, NewRun, Question, RequestKey};
use switchboard::agent::ports::usage::{Of, Used, UsedOnDay};
use switchboard::chat::cost::Cost;
use switchboard::chat::day::{Day, Days};
use switchboard::chat::ids::RunId;
use switchboard::chat::input::Ask;
use switchboard::chat::message::ModelOrigin;
use switchboard::chat::run::RunState;
use switchboard::chat::stream::{Spent, Usage};
use switchboard::store::Store;

use super::contract::{Database, ManualClock, Room, complete, ended, said};

const TWO_OF_THREE: MostRuns = MostRuns { per_user: 2, per_tenant: 3 };

/// Begins a run in a room where so many may live; the first word of why not.
async fn begin(store: &dyn Store, room: &Room, most: MostRuns) -> Result<RunId, Whose> {
    let ask = Ask::message("hello");
    let new = NewRun { most, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    match store.begin_run(new).await {
        Ok(Begun::Running(_)) => Ok(new.id),
        Err(BeginError::TooMany(whose)) => Err(whose),
        other => panic!("{other:?}"),
    }
}

pub async fn as_many_runs_live_as_may_however_many_begin_at_once(database: &impl Database) {
    let stores = [database.open(ManualClock::new()).await, database.open(ManualClock::new()).await];
    let most = MostRuns { per_user: 3, per_tenant: 7 };
    let rooms: Vec<Room> = (0..40).map(|n| Room::at(&format!("acme/user{}/c{n}", n % 4))).collect();
    let tries = rooms.iter().enumerate().map(|(n, room)| begin(&*stores[n % 2], room, most));
    let begun: Vec<_> = join_all(tries).await;
    assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 7, "{begun:?}");
    for user in 0..4 {
        let of_user = begun.iter().enumerate().filter(|(n, begun)| n % 4 == user && begun.is_ok());
        assert!(of_user.count() <= 3, "user {user} of {begun:?}");
    }
    let stranger = begin(&*stores[0], &Room::at("other/user0/c1"), most).await;
    assert!(stranger.is_ok(), "another tenant has room of its own");
}

pub async fn runs_that_have_ended_or_died_make_room(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let store = &*store;
    let rooms: Vec<Room> =
        ["acme/ann/c1", "acme/ann/c2", "acme/ann/c3", "acme/bob/c1"].into_iter().map(Room::at).collect();
    let first = begin(store, &rooms[0], TWO_OF_THREE).await.unwrap();
    begin(store, &rooms[1], TWO_OF_THREE).await.unwrap();
    assert_eq!(begin(store, &rooms[2], TWO_OF_THREE).await, Err(Whose::User), "one more than may");
    begin(store, &rooms[3], TWO_OF_THREE).await.unwrap();
    assert_eq!(begin(store, &Room::at("acme/eve/c1"), TWO_OF_THREE).await, Err(Whose::Tenant), "theirs are three");
    complete(store, first).await;
    let again = begin(store, &rooms[2], TWO_OF_THREE).await.unwrap();
    store.finish_run(again, said(1, &[]), ended(RunState::Cancelled)).await.unwrap();
    // One whose process has said nothing for longer than it may.
    let ask = Ask::message("hello");
    let dead = NewRun { lease_ms: -1, ..rooms[2].new_run(Question::Ask { ask: &ask, parent: None }) };
    store.begin_run(dead).await.unwrap();
    begin(store, &Room::at("acme/ann/c4"), TWO_OF_THREE).await.unwrap();
    begin(store, &Room::at("other/ann/c4"), MostRuns::default()).await.unwrap();
}

pub async fn a_run_that_is_there_already_is_found_without_room(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let ask = Ask::message("hello");
    let key = Some(RequestKey { key: "k", digest: b"d", or_lately: false });
    let most = MostRuns { per_user: 1, per_tenant: 1 };
    let new = NewRun { key, most, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    store.begin_run(new).await.unwrap();
    let again = store.begin_run(NewRun { id: RunId::fresh(), ..new }).await.unwrap();
    assert!(matches!(&again, Begun::Joined(run) if run.id == new.id), "{again:?}");
    let elsewhere = Room::at("acme/ann/c2");
    assert_eq!(begin(&*store, &elsewhere, most).await, Err(Whose::User));
    // A second run of the conversation waits, and is one more.
    let waiting = NewRun { id: RunId::fresh(), key: None, queue: Some(3), ..new };
    let waiting = store.begin_run(waiting).await;
    assert!(matches!(waiting, Err(BeginError::TooMany(Whose::User))), "{waiting:?}");
}

pub fn spent(at_ms: i64, model: &str, tokens: u64, nano_usd: Option<u64>) -> Spent {
    let (provider, model) = model.split_once(':').unwrap();
    let origin = Arc::new(ModelOrigin { provider: provider.to_owned(), model: model.to_owned() });
    let usage = Usage { input_tokens: tokens, output_tokens: 2 * tokens, cached_input_tokens: 1, reasoning_tokens: 7 };
    Spent { at_ms, origin, usage, cost: nano_usd.map(|nano_usd| Cost { nano_usd }) }
}

fn used(runs: u64, turns: u64, tokens: u64, nano_usd: u64) -> Used {
    Used {
        runs,
        turns,
        input_tokens: tokens,
        output_tokens: 2 * tokens,
        cached_input_tokens: turns,
        cost: Cost { nano_usd },
    }
}

const ALWAYS: Days = Days { from: Day(0), to: Day(40_000) };

pub async fn what_was_used_is_added_up_once(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "hello").await;
    let turns = [spent(0, "v:m", 10, Some(5)), spent(0, "v:m", 1, None), spent(0, "v:m", 3, Some(2))];
    let first = Commit { spent: &turns[..1], ..said(1, &[]) };
    store.append(run, first).await.unwrap();
    // Its answer was lost: the same again, with one turn more.
    store.append(run, Commit { spent: &turns[..2], ..first }).await.unwrap();
    let last = Commit { first_spent: 2, spent: &turns[2..], ..first };
    store.finish_run(run, last, ended(RunState::Completed)).await.unwrap();
    store.finish_run(run, last, ended(RunState::Completed)).await.unwrap();
    assert_eq!(store.used(Of::User(&room.owner), ALWAYS).await.unwrap(), used(1, 3, 14, 7));
    store.close().await;
    let again = database.open(ManualClock::new()).await;
    assert_eq!(again.used(Of::User(&room.owner), ALWAYS).await.unwrap(), used(1, 3, 14, 7), "after a restart");
    again.charge(&room.owner, &turns[..2]).await.unwrap();
    let more = used(1, 5, 25, 12);
    assert_eq!(again.used(Of::User(&room.owner), ALWAYS).await.unwrap(), more, "and calls of no run besides");
}

pub async fn what_was_used_is_told_by_day_and_model_to_its_owner_alone(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let day_ms = 86_400_000;
    let runs = [
        ("acme/ann/c1", vec![spent(day_ms - 1, "v:a", 1, None), spent(day_ms, "v:a", 2, Some(1))]),
        ("acme/ann/c2", vec![spent(day_ms, "v:b", 4, None), spent(day_ms, "v:a", 8, None)]),
        ("acme/bob/c1", vec![spent(day_ms, "v:a", 16, Some(2))]),
        ("other/ann/c1", vec![spent(day_ms, "v:a", 32, None)]),
    ];
    for (room, spent) in &runs {
        let (run, _) = Room::at(room).say(&*store, "hello").await;
        store.finish_run(run, Commit { spent, ..said(1, &[]) }, ended(RunState::Completed)).await.unwrap();
    }
    let ann = Room::at("acme/ann/c1").owner;
    let row = |day, model: &str, used| UsedOnDay { day: Day(day), model: model.to_owned(), used };
    let own = [row(1, "v:a", used(0, 2, 10, 1)), row(1, "v:b", used(1, 1, 4, 0)), row(0, "v:a", used(1, 1, 1, 0))];
    assert_eq!(store.used_by_day(Of::User(&ann), ALWAYS, 9).await.unwrap(), own);
    assert_eq!(store.used_by_day(Of::User(&ann), ALWAYS, 2).await.unwrap(), own[..2], "no more than were asked for");
    let second = Days { from: Day(1), to: Day(1) };
    let of_tenant = [row(1, "v:a", used(1, 3, 26, 3)), row(1, "v:b", used(1, 1, 4, 0))];
    assert_eq!(store.used_by_day(Of::Tenant("acme"), second, 9).await.unwrap(), of_tenant);
    assert_eq!(store.used(Of::Tenant("acme"), second).await.unwrap(), used(2, 4, 30, 3));
    assert_eq!(store.used(Of::Tenant("nobody"), ALWAYS).await.unwrap(), Used::default());
}

pub async fn users_without_a_tenant_have_a_bound_of_their_own_alone(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    for room in ["/ann/c1", "/ann/c2", "/bob/c1", "/bob/c2", "/eve/c1"] {
        begin(&*store, &Room::at(room), TWO_OF_THREE).await.unwrap();
    }
    assert_eq!(begin(&*store, &Room::at("/ann/c3"), TWO_OF_THREE).await, Err(Whose::User));
    // So have those of an issuer with a name, whose tokens name none.
    for user in ["ann", "bob", "cy", "di"] {
        begin(&*store, &Room::at(&format!("staff\u{1f}/{user}/c1")), TWO_OF_THREE).await.unwrap();
    }
}

pub async fn what_stands_against_a_run_is_told_before_it_begins(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let ask = Ask::message("hello");
    let key = RequestKey { key: "k", digest: b"d", or_lately: false };
    assert!(store.find_request(&room.owner, key).await.unwrap().is_none(), "nobody has asked");
    let new = NewRun { key: Some(key), ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    store.begin_run(new).await.unwrap();
    let found = store.find_request(&room.owner, key).await.unwrap();
    assert_eq!(found.map(|run| run.id), Some(new.id));
    let other = store.find_request(&room.owner, RequestKey { digest: b"e", ..key }).await;
    assert!(matches!(other, Err(BeginError::KeyMismatch)), "{other:?}");
    for stranger in ["acme/bob/c1", "other/ann/c1"] {
        assert!(store.find_request(&Room::at(stranger).owner, key).await.unwrap().is_none(), "{stranger}");
    }
    let rows = [
        ("acme/ann/c2", 1, 0, Some(Whose::User), "they have one"),
        ("acme/ann/c2", 2, 0, None, "one more may be"),
        ("acme/ann/c1", 1, 1, None, "that of the conversation may make way"),
        ("acme/bob/c1", 1, 1, Some(Whose::Tenant), "their tenant has one"),
        ("acme/bob/c1", 1, 0, None, "their own are counted alone"),
        ("other/ann/c2", 1, 1, None, "another tenant"),
    ];
    for (at, per_user, per_tenant, expected, reason) in rows {
        let Room { owner, conversation } = Room::at(at);
        let whose = match store
            .check_pending_limit(&owner, &conversation, MostRuns { per_user, per_tenant }, &Quotas::default())
            .await
        {
            Ok(()) => None,
            Err(BeginError::TooMany(whose)) => Some(whose),
            Err(other) => panic!("{reason}: {other}"),
        };
        assert_eq!(whose, expected, "{reason}");
    }
    clock.advance_ms(86_400_000);
    assert!(store.find_request(&room.owner, key).await.unwrap().is_none(), "a key is kept for a day");
}

pub async fn what_was_used_can_always_be_added_up(database: &impl Database) {
    const MOST: u64 = 1_000_000_000_000_000;
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    for _ in 0..3 {
        let (run, _) = room.say(&*store, "hello").await;
        let spent = [spent(0, "v:m", u64::MAX / 2, Some(u64::MAX))];
        store.finish_run(run, Commit { spent: &spent, ..said(1, &[]) }, ended(RunState::Completed)).await.unwrap();
    }
    let cost = Cost { nano_usd: MOST };
    let expected = Used { runs: 3, turns: 3, input_tokens: MOST, output_tokens: MOST, cached_input_tokens: 3, cost };
    assert_eq!(store.used(Of::User(&room.owner), ALWAYS).await.unwrap(), expected);
}
