//! What every store promises about a user's library: what is found by its words, pinned and archived conversations, and
//! feedback on answers.

use switchboard::agent::ports::conversations::{ExportAt, ExportItem, Listed, Page, PageError};
use switchboard::agent::ports::files::{KeptFile, NewFileRow, Terms, Which};
use switchboard::agent::ports::places::Changes;
use switchboard::agent::ports::search::{Found, Hit, Piece};
use switchboard::agent::ports::usage::Of;
use switchboard::bounded::memory::{Kind, Memory};
use switchboard::chat::day::{Day, Days};
use switchboard::chat::feedback::{Feedback, Score};
use switchboard::chat::file::{FileKind, FileRef};
use switchboard::chat::ids::{FileId, RunId};
use switchboard::chat::input::Ask;
use switchboard::chat::message::Message;
use switchboard::chat::stream::{Spent, Usage};
use switchboard::store::Store;

use super::contract::{Database, ManualClock, Room, answer, begin, complete, ended, said, titled};
use crate::support::whole::seen;

async fn find_part(store: &dyn Store, room: &Room, query: &str, limit: u32, cursor: Option<String>) -> Found {
    let mut held = Memory::new(0).reserve(Kind::Export, 0).unwrap();
    store.search(&room.owner, query, Page { limit, cursor }, &mut held).await.unwrap()
}

async fn find(store: &dyn Store, room: &Room, query: &str) -> Vec<Hit> {
    let found = find_part(store, room, query, 50, None).await;
    assert!(found.is_complete, "{query}");
    assert_eq!(found.page.next, None, "{query}");
    found.page.items
}

fn marked(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| if piece.is_hit { format!("[{}]", piece.text) } else { piece.text.clone() }).collect()
}

/// The conversations that are found, each with its title and the part of its message.
async fn lines(store: &dyn Store, room: &Room, query: &str) -> Vec<String> {
    let line = |hit: &Hit| {
        let said = hit.message.as_ref().map_or_else(String::new, |message| marked(&message.snippet));
        format!("{} {}: {} {}", hit.conversation.id, hit.matches, marked(&hit.title), said).trim_end().to_owned()
    };
    find(store, room, query).await.iter().map(line).collect()
}

async fn speak(store: &dyn Store, at: &str, text: &str, reply: &str) -> RunId {
    Room::at(at).exchange(store, text, &[answer(reply)]).await
}

pub async fn what_was_said_is_found_by_its_words(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    speak(&*store, "acme/ann/c1", "Where is the invoice of March?", "In the folder \"Rechnungen\".").await;
    clock.advance_ms(1000);
    speak(&*store, "acme/ann/c2", "東京都の住所は？", "Müller wohnt dort. 😀").await;
    clock.advance_ms(1000);
    speak(&*store, "acme/ann/c3", "שלום, the invoices again", "مرحبا").await;
    let room = Room::at("acme/ann/c1");
    store.change(&room.owner, &room.conversation, &titled("Taxes & invoices")).await.unwrap();
    let rows: [(&str, &[&str], &str); 12] = [
        (
            "INVOICE",
            &[
                "c3 1: שלום, the [invoices] again שלום, the [invoices] again",
                "c1 2: Taxes & [invoices] Where is the [invoice] of March?",
            ],
            "the newest first, and the beginning of a word",
        ),
        ("taxes", &["c1 1: [Taxes] & invoices"], "a title alone"),
        ("march invoice", &["c1 1: Taxes & [invoices] Where is the [invoice] of [March]?"], "all words"),
        ("march rechnungen", &[], "but of one message"),
        ("rechnung", &["c1 1: Taxes & invoices In the folder \"[Rechnungen]\"."], "an answer"),
        ("東京", &["c2 1: [東京]都の住所は？ [東京]都の住所は？"], "two characters of many"),
        ("住", &["c2 1: 東京都の[住所]は？ 東京都の[住所]は？"], "one"),
        ("京東", &[], "in their order"),
        ("muller", &["c2 1: 東京都の住所は？ [Müller] wohnt dort. 😀"], "without its accent"),
        ("😀", &["c2 1: 東京都の住所は？ Müller wohnt dort. [😀]"], "a pictogram"),
        ("שלום", &["c3 1: [שלום], the invoices again [שלום], the invoices again"], "from right to left"),
        ("nothing", &[], "nothing"),
    ];
    for (query, expected, reason) in rows {
        assert_eq!(lines(&*store, &room, query).await, expected, "{reason}");
    }
    for stranger in ["acme/bob/c1", "other/ann/c1", "/ann/c1"] {
        assert_eq!(find(&*store, &Room::at(stranger), "invoice").await, [], "{stranger}");
    }
    store.change(&room.owner, &room.conversation, &titled("Money")).await.unwrap();
    assert_eq!(find(&*store, &room, "taxes").await, [], "a title that it has no more");
    assert_eq!(lines(&*store, &room, "money").await, ["c1 1: [Money]"]);
}

pub async fn any_text_is_a_query(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    speak(&*store, "acme/ann/c1", "a plain text AND more OR less NOT NEAR words", "yes").await;
    let hostile = [
        "\"",
        "'",
        "*",
        "a*",
        "\"a",
        "a\" OR \"b",
        "AND",
        "NOT",
        "NEAR(a b)",
        "words:a",
        "{words}: a",
        "^a",
        "-a",
        "+a",
        "a + b",
        "(",
        "a)",
        ":*",
        "a:*b",
        "'a':*",
        "a & b | !c",
        "<->",
        "a <2> b",
        "\\",
        "a\\",
        "\0",
        "a\0b",
        "\u{1}",
        "%",
        "_",
        "$1",
        "@found(x)",
        "?",
        ";",
        "--",
        "/*",
        "\u{202E}abc",
        "\u{feff}",
        "a\u{300}\u{301}",
        "👩‍👩‍👧‍👦",
        "ﷺ",
        "½",
        "\u{10FFFF}",
        "q0z1*",
        "*:A",
        "''",
    ];
    for query in hostile {
        find(&*store, &room, query).await;
    }
    for long in ["x".repeat(100_000), "ab ".repeat(33_000), "\"* ".repeat(33_000), "東".repeat(33_000)] {
        assert_eq!(find(&*store, &room, &long).await, [], "{}", &long[..6]);
    }
    let quoted = lines(&*store, &room, "NOT \"near*").await;
    assert_eq!(
        quoted,
        ["c1 1: a plain text AND more OR less [NOT] [NEAR] words a plain text AND more OR less [NOT] [NEAR] words"]
    );
    assert_eq!(find(&*store, &room, "\0 * \"").await, [], "one without a word finds nothing");
}

pub async fn what_was_found_comes_in_parts(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c");
    for at in 0..7 {
        speak(&*store, &format!("acme/ann/c{at}"), "find me", "found you, find").await;
        // Some of them at the same time.
        clock.advance_ms(at % 2);
    }
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let part = find_part(&*store, &room, "find", 3, cursor).await.page;
        assert!(part.items.len() <= 3);
        assert!(part.items.iter().all(|hit| hit.matches == 2));
        found.extend(part.items.into_iter().map(|hit| hit.conversation.id.to_string()));
        cursor = part.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, ["c6", "c5", "c4", "c3", "c2", "c1", "c0"]);
    for cursor in ["", "x", "1", "1.", "-1.c", "1.a b"] {
        let mut held = Memory::new(0).reserve(Kind::Export, 0).unwrap();
        let page = Page { limit: 1, cursor: Some(cursor.to_owned()) };
        let refused = store.search(&room.owner, "find", page, &mut held).await;
        assert!(matches!(refused, Err(PageError::BadCursor)), "{cursor}");
    }
}

pub async fn what_is_gone_is_not_found(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    speak(&*store, "acme/ann/c1", "a zebra", "a zebra").await;
    speak(&*store, "acme/ann/c2", "one more zebra", "yes").await;
    speak(&*store, "acme/bob/c1", "my zebra", "yes").await;
    let run = begin(&*store, &Room::at("acme/ann/c3")).await;
    assert_eq!(find(&*store, &room, "zebra").await.len(), 2);
    assert_eq!(find(&*store, &room, "hello").await, [], "a run that lives is not in the index");
    complete(&*store, run).await;
    store.delete(&room.owner, &room.conversation).await.unwrap().unwrap();
    assert_eq!(lines(&*store, &room, "zebra").await, ["c2 1: one more [zebra] one more [zebra]"]);
    speak(&*store, "acme/ann/c1", "another animal", "yes").await;
    assert_eq!(lines(&*store, &room, "zebra").await.len(), 1, "a conversation of the same name is a new one");
    assert_eq!(find(&*store, &Room::at("acme/bob/c1"), "zebra").await.len(), 1, "another's stays");
}

pub async fn what_was_indexed_by_other_rules_is_indexed_anew(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    speak(&*store, "acme/ann/c1", "Wesołych Świąt", "dziękuję").await;
    let expected = ["c1 1: [Wesołych] Świąt [Wesołych] Świąt"];
    assert_eq!(lines(&*store, &room, "wesolych").await, expected);
    let rows = || database.ask("SELECT CAST(COUNT(*) AS TEXT) FROM search_texts");
    let before = rows().await;
    let old = ["UPDATE runs SET indexed = 1 RETURNING id", "UPDATE conversations SET title_indexed = 1 RETURNING id"];
    // As a replica of the version before leaves it: the same words, and others, here none.
    for words in ["SELECT 'the same'", "DELETE FROM search_texts RETURNING conversation"] {
        for sql in [words].iter().chain(&old) {
            database.ask(sql).await;
        }
        assert_eq!(lines(&*store, &room, "wesolych").await, expected, "by the next search: {words}");
        assert_eq!(rows().await, before, "and once: {words}");
    }
    database.ask("DELETE FROM search_texts RETURNING conversation").await;
    assert_eq!(lines(&*store, &room, "wesolych").await, [""; 0], "what these rules have indexed is not again");
}

pub async fn searches_at_once_index_everything_once(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c");
    for at in 0..60 {
        speak(&*store, &format!("acme/ann/c{at}"), "a needle", "hay").await;
    }
    let searches = (0..8).map(|_| find_part(&*store, &room, "needle", 50, None));
    futures::future::join_all(searches).await;
    let mut found = 0;
    for hit in find_part(&*store, &room, "needle", 50, None).await.page.items {
        assert_eq!(hit.matches, 1, "{}", hit.conversation.id);
        found += 1;
    }
    assert_eq!(found, 50);
}

async fn listed(store: &dyn Store, room: &Room, listed: Listed) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let part = store.conversations(&room.owner, listed, Page { limit: 2, cursor }).await.unwrap();
        ids.extend(part.items.into_iter().map(|head| head.id.to_string()));
        cursor = part.next;
        if cursor.is_none() {
            return ids;
        }
    }
}

pub async fn pinned_conversations_come_first_and_archived_ones_apart(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    for at in 0..6 {
        speak(&*store, &format!("acme/ann/c{at}"), "hello", "yes").await;
        clock.advance_ms(1000);
    }
    let room = Room::at("acme/ann/c");
    let change = async |at: &str, pinned: Option<bool>, archived: Option<bool>| {
        let at = Room::at(&format!("acme/ann/{at}"));
        let changes = Changes { pinned, archived, ..Changes::default() };
        let head = store.change(&at.owner, &at.conversation, &changes).await.unwrap().unwrap();
        (head.pinned, head.archived, head.updated_at_ms)
    };
    let before = seen(&*store, &room.owner, &Room::at("acme/ann/c0").conversation).await.unwrap().head.updated_at_ms;
    assert_eq!(change("c0", Some(true), None).await, (true, false, before), "no change of what was said");
    change("c2", Some(true), None).await;
    change("c3", None, Some(true)).await;
    assert_eq!(change("c4", Some(true), Some(true)).await, (true, true, before + 4000));
    let rows: [(Listed, &[&str], &str); 5] = [
        (Listed::default(), &["c2", "c0", "c5", "c1"], "pinned ones first"),
        (Listed { pinned: Some(true), ..Listed::default() }, &["c2", "c0"], "only those"),
        (Listed { pinned: Some(false), ..Listed::default() }, &["c5", "c1"], "only the others"),
        (Listed { archived: true, pinned: None }, &["c4", "c3"], "the archived ones"),
        (Listed { archived: true, pinned: Some(false) }, &["c3"], "of them those that are not pinned"),
    ];
    for (which, expected, reason) in rows {
        assert_eq!(listed(&*store, &room, which).await, expected, "{reason}");
    }
    change("c0", Some(false), None).await;
    change("c3", None, Some(false)).await;
    assert_eq!(listed(&*store, &room, Listed::default()).await, ["c2", "c5", "c3", "c1", "c0"]);
    assert_eq!(lines(&*store, &room, "hello").await.len(), 6, "a search finds archived ones too");
    let stranger = Room::at("acme/bob/c2");
    let changes = Changes { pinned: Some(false), ..Changes::default() };
    assert_eq!(store.change(&stranger.owner, &stranger.conversation, &changes).await.unwrap(), None);
}

pub async fn feedback_is_one_for_each_run_and_goes_with_its_conversation(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let first = speak(&*store, "acme/ann/c1", "hello", "yes").await;
    let second = speak(&*store, "acme/ann/c1", "again", "no").await;
    let good = Feedback { score: Score::Good, comment: None, tags: Vec::new() };
    let bad = Feedback {
        score: Score::Bad,
        comment: Some("it\0 <b>lies</b> \u{202E}".to_owned()),
        tags: vec!["wrong".to_owned()],
    };
    for stranger in ["acme/bob/c1", "other/ann/c1"] {
        let owner = Room::at(stranger).owner;
        assert_eq!(store.give(&owner, first, &good).await.unwrap(), None, "{stranger}");
        assert!(!store.take_back(&owner, first).await.unwrap(), "{stranger}");
    }
    assert_eq!(store.give(&room.owner, RunId::fresh(), &good).await.unwrap(), None);
    store.give(&room.owner, second, &good).await.unwrap().unwrap();
    store.give(&room.owner, first, &good).await.unwrap().unwrap();
    clock.advance_ms(1000);
    let kept = store.give(&room.owner, first, &bad).await.unwrap().unwrap();
    assert_eq!((kept.run, &kept.feedback), (first, &bad));
    let view = seen(&*store, &room.owner, &room.conversation).await.unwrap();
    let said: Vec<_> = view.feedback.iter().map(|kept| (kept.run, kept.feedback.clone())).collect();
    assert_eq!(said, [(first, bad.clone()), (second, good.clone())], "the second one counts");
    assert_eq!(view.feedback[0], kept);
    assert!(store.take_back(&room.owner, second).await.unwrap());
    assert!(store.take_back(&room.owner, second).await.unwrap(), "it is as good as taken back");
    let view = seen(&*store, &room.owner, &room.conversation).await.unwrap();
    assert_eq!(view.feedback, [kept]);
    store.delete(&room.owner, &room.conversation).await.unwrap().unwrap();
    assert!(!store.take_back(&room.owner, first).await.unwrap(), "it is gone");
}

pub async fn what_was_used_is_told_by_month_and_conversation(database: &impl Database) {
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let day = Day::of_ms(super::contract::START_MS);
    let usage = |tokens| Usage { input_tokens: tokens, output_tokens: 1, ..Usage::default() };
    for (at, tokens) in [("acme/ann/c1", 10), ("acme/ann/c2", 30), ("acme/ann/c1", 5), ("acme/bob/c1", 7)] {
        let run = begin(&*store, &Room::at(at)).await;
        let Message::Assistant(by) = answer("x") else { panic!("an answer") };
        let spent = |at_ms| Spent { at_ms, origin: by.origin.clone(), usage: usage(tokens), cost: None };
        // Half of it a month before, as the clock of a replica may say.
        let spent = [spent(day.begins_ms()), spent(day.plus(-31).begins_ms())];
        let commit =
            switchboard::agent::ports::store::Commit { spent: &spent, usage: usage(tokens), turns: 2, ..said(1, &[]) };
        store.finish_run(run, commit, ended(switchboard::chat::run::RunState::Completed)).await.unwrap();
    }
    let ann = Room::at("acme/ann/c1").owner;
    let days = Days { from: day.plus(-100), to: day };
    let months = store.used_by_month(Of::User(&ann), days, 9).await.unwrap();
    let told: Vec<_> = months.iter().map(|month| (month.month.as_str(), month.used.input_tokens)).collect();
    assert_eq!(told, [("2023-11", 45), ("2023-10", 45)]);
    let months = store.used_by_month(Of::Tenant("acme"), days, 1).await.unwrap();
    assert_eq!((months.len(), months[0].used.input_tokens), (1, 52), "the tenant's, no more than were asked for");
    let told = async |days| {
        let used = store.used_by_conversation(&ann, days, 9).await.unwrap();
        let line = |used: &switchboard::agent::ports::usage::UsedInConversation| {
            (used.conversation.to_string(), used.used.runs, used.used.turns, used.used.input_tokens)
        };
        used.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(told(days).await, [("c2".to_owned(), 1, 2, 30), ("c1".to_owned(), 2, 4, 15)], "the most first");
    assert_eq!(told(Days { from: day.plus(-100), to: day.plus(-1) }).await, [], "by the days of their runs");
    let view = seen(&*store, &ann, &Room::at("acme/ann/c1").conversation).await.unwrap();
    assert_eq!((view.used.runs, view.used.turns, view.used.input_tokens, view.used.output_tokens), (2, 4, 15, 2));
}

/// Keeps a file, whose bytes are these 32 as far as anybody here can tell.
pub async fn keep(store: &dyn Store, room: &Room, sha256: [u8; 32]) -> FileRef {
    let file = FileRef { id: FileId::fresh(), kind: FileKind::Png, name: "a.png".into(), bytes: 9, side: 1 };
    store.announce_file(file.id).await.unwrap();
    let kept = store
        .keep_file(&room.owner, NewFileRow { file: &file, sha256, terms: Terms::default(), most: (0, 0) })
        .await
        .unwrap();
    assert!(matches!(kept, KeptFile::New(_)), "{kept:?}");
    file
}

pub async fn files_go_with_the_last_conversation_that_needs_them(database: &impl Database) {
    let store = database.open(ManualClock::new()).await;
    let (first, second) = (Room::at("acme/ann/c1"), Room::at("acme/ann/c2"));
    let [other_tenant, other_user, _] = Room::strangers();
    let file = keep(&*store, &first, [1; 32]).await;
    let theirs = [keep(&*store, &other_tenant, [1; 32]).await, keep(&*store, &other_user, [1; 32]).await];
    for (room, file) in [(&first, &file), (&second, &file), (&other_tenant, &theirs[0]), (&other_user, &theirs[1])] {
        let ask = Ask::Message { text: "Look".into(), note: None, files: vec![file.clone()] };
        let (run, _) = room.ask(&*store, &ask, None).await.unwrap();
        complete(&*store, run).await;
    }
    let kept = async |room: &Room, file: &FileRef| {
        store.files(&room.owner, Which::These(&[file.id])).await.unwrap().len() == 1
    };
    store.delete(&first.owner, &first.conversation).await.unwrap().unwrap();
    assert!(kept(&second, &file).await, "another conversation needs it");
    assert_eq!(store.sweep_files(&[], 9).await.unwrap(), []);

    store.delete(&second.owner, &second.conversation).await.unwrap().unwrap();
    assert!(!kept(&second, &file).await);
    assert_eq!(store.sweep_files(&[], 9).await.unwrap(), [file.id], "its bytes are to be removed");
    assert_eq!(store.sweep_files(&[file.id], 9).await.unwrap(), [], "they are");
    for (room, file) in [(&other_tenant, &theirs[0]), (&other_user, &theirs[1])] {
        assert!(kept(room, file).await, "the same bytes of others stay");
    }

    // What was said goes on naming a file that its owner has deleted.
    let [_, gone] = theirs;
    assert!(store.delete_file(&other_user.owner, gone.id).await.unwrap());
    assert_eq!(store.sweep_files(&[], 9).await.unwrap(), [gone.id]);
    let mut held = Memory::new(0).reserve(Kind::Export, 0).unwrap();
    let (owner, conversation) = (&other_user.owner, &other_user.conversation);
    let mut next = Some(ExportAt::Start);
    let mut named = Vec::new();
    while let Some(at) = next.take() {
        let part = store.export(owner, conversation, at, &mut held).await.unwrap().unwrap();
        let messages = part.items.into_iter().filter_map(|item| match item {
            ExportItem::Message(message) => Some(message.files),
            _ => None,
        });
        named.extend(messages.flatten());
        next = part.next;
    }
    assert_eq!(named, [gone]);
}
