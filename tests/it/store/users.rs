//! What every store promises about users who are deleted.

use serde_json::json;
use switchboard::agent::ports::directive_queue::Due;
use switchboard::agent::ports::files::Which;
use switchboard::agent::ports::usage::Of;
use switchboard::agent::ports::users::DeletedRest;
use switchboard::chat::approval::Consent;
use switchboard::chat::caller::Owner;
use switchboard::chat::day::{Day, Days};
use switchboard::chat::feedback::{Feedback, Score};
use switchboard::chat::ids::FileId;
use switchboard::chat::input::Ask as Question;
use switchboard::store::Store;

use super::contract::{Database, ManualClock, Room, START_MS, answer, complete};
use super::directives::{Ask, ask, caller, claim, done, rule, settle, told};
use super::library::keep;
use super::limits::spent;

/// Every table with a column `user_id`: the databases' own tests hold that there is no other.
pub const OF_USERS: [&str; 25] = [
    "approvals",
    "artifacts",
    "chats",
    "conversation_names",
    "conversation_state",
    "conversations",
    "data_changes",
    "directive_keys",
    "directives",
    "drafts",
    "executions",
    "feedback",
    "file_uses",
    "files",
    "messages",
    "payloads",
    "plan_steps",
    "plans",
    "previews",
    "runs",
    "search_texts",
    "stored_usage",
    "summaries",
    "trail",
    "usage_daily",
];

/// The tables in which there is something of a user.
async fn tables_with(database: &impl Database, owner: &Owner) -> Vec<&'static str> {
    let mut found = Vec::new();
    let Owner { tenant, user } = owner;
    for table in OF_USERS {
        let any = format!("SELECT 'x' FROM {table} WHERE tenant = '{tenant}' AND user_id = '{user}' LIMIT 1");
        if !database.ask(&any).await.is_empty() {
            found.push(table);
        }
    }
    found
}

/// Something of everything that belongs to a user and is kept by them, or for them.
async fn fill(store: &dyn Store, at: &str) -> [FileId; 2] {
    let room = Room::at(at);
    let file = keep(store, &room, [1; 32]).await;
    let named = file.id;
    let question = Question::Message { text: "Look at this".into(), note: None, files: vec![file] };
    let (run, _) = room.ask(store, &question, None).await.unwrap();
    complete(store, run).await;
    store
        .give(&room.owner, run, &Feedback { score: Score::Good, comment: None, tags: Vec::new() })
        .await
        .unwrap()
        .unwrap();
    room.exchange(store, "two", &[answer("second")]).await;
    room.preview(store, "x").await;
    store.create_draft(&room.owner, &room.conversation, &json!(1)).await.unwrap();
    store.number(&room.owner, None, &room.conversation, "app").await.unwrap();
    store.data_changes(&room.owner, &["invoices".to_owned()]).await.unwrap();
    store.charge(&room.owner, &[spent(START_MS, "p:m", 10, Some(3)), spent(START_MS, "p:n", 5, None)]).await.unwrap();
    let caller = caller(at.rsplit_once('/').unwrap().0, &[]);
    ask(store, &caller, &rule(Consent::User), Ask { key: Some("k"), ..Ask::default() }).await.unwrap();
    ask(store, &caller, &rule(Consent::Auto), Ask::default()).await.unwrap();
    // One that no message has named.
    [named, keep(store, &room, [2; 32]).await.id]
}

pub async fn of_a_user_who_is_deleted_nothing_is_left(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let files = fill(&*store, "acme/ann/c1").await;
    for at in ["acme/bob/c1", "other/ann/c1"] {
        fill(&*store, at).await;
    }
    let (ann, admin) = (Room::at("acme/ann/c1"), caller("acme/admin", &["keeper"]));
    let live = Room::at("acme/ann/c2").say(&*store, "still running").await.0;
    let days = Days { from: Day::of_ms(START_MS), to: Day::of_ms(START_MS) };
    let used = store.used(Of::Tenant("acme"), days).await.unwrap();
    assert_eq!(used.input_tokens, 30);
    let before = tables_with(database, &ann.owner).await;
    assert!(before.len() >= 14, "{before:?}");

    // Of a directive that is under way nobody can say yet what became of it.
    let taken = claim(&*store, "p", Due::Now, 9).await;
    let under_way = taken.iter().find(|claimed| claimed.directive.owner == ann.owner).unwrap().fence;
    assert_eq!(store.begin_attempts(&[under_way], 60_000).await.unwrap(), [under_way]);
    for id in store.conversations_of(&ann.owner, 9).await.unwrap() {
        let runs = store.delete(&ann.owner, &id).await.unwrap().unwrap();
        assert_eq!(runs.contains(&live), id.to_string() == "c2");
    }
    let part = store.delete_rest(&admin, &ann.owner).await.unwrap();
    let rest = (part.files, part.directives, part.running_directives, part.has_more);
    assert_eq!(rest, (1, 1, 1, true), "the file of a conversation went with it");
    assert_eq!(tables_with(database, &ann.owner).await, ["directives"]);
    settle(&*store, under_way, &done()).await.unwrap();
    let part = store.delete_rest(&admin, &ann.owner).await.unwrap();
    assert_eq!(part, DeletedRest { directives: 1, ..DeletedRest::default() });
    assert_eq!(tables_with(database, &ann.owner).await, Vec::<&str>::new());

    // What is the tenant's stays, and what is anybody else's.
    assert_eq!(store.used(Of::Tenant("acme"), days).await.unwrap(), used);
    assert_eq!(store.used(Of::User(&ann.owner), days).await.unwrap().input_tokens, 0);
    let names = told(&*store, &admin).await;
    assert!(names.iter().any(|name| name.ends_with(".canceled")), "{names:?}");
    for at in ["acme/bob/c1", "other/ann/c1"] {
        let room = Room::at(at);
        assert_eq!(tables_with(database, &room.owner).await, before, "{at}");
        let part =
            switchboard::agent::ports::files::FilePart { after: None, oldest_first: false, purpose: None, most: 9 };
        assert_eq!(store.files(&room.owner, Which::Part(part)).await.unwrap().len(), 2, "{at}");
    }

    let removed = store.sweep_files(&[], 9).await.unwrap();
    assert!(files.iter().all(|file| removed.contains(file)), "their bytes are to be removed");

    // Of whom nothing is kept nothing goes; and who is there again begins anew.
    assert_eq!(store.delete_rest(&admin, &ann.owner).await.unwrap(), DeletedRest::default());
    fill(&*store, "acme/ann/c1").await;
    assert_eq!(tables_with(database, &ann.owner).await, before);
    assert_eq!(store.used(Of::Tenant("acme"), days).await.unwrap().input_tokens, 45);
    store.delete(&ann.owner, &ann.conversation).await.unwrap().unwrap();
    store.delete_rest(&admin, &ann.owner).await.unwrap();
    assert_eq!(store.used(Of::Tenant("acme"), days).await.unwrap().input_tokens, 45, "added to what was left before");
}

pub async fn all_conversations_of_a_user_are_found(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    for at in ["acme/ann/c1", "acme/ann/c2", "acme/ann/c3", "acme/bob/c1", "other/ann/c1"] {
        Room::at(at).exchange(&*store, "hi", &[answer("hello")]).await;
    }
    let owner = Room::at("acme/ann/c1").owner;
    let mut ids: Vec<String> =
        store.conversations_of(&owner, 9).await.unwrap().iter().map(ToString::to_string).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["c1", "c2", "c3"]);
    assert_eq!(store.conversations_of(&owner, 2).await.unwrap().len(), 2);
}
