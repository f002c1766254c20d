//! What users, models and backends write into single fields: ids, names, and markers in a model's text.

use std::cell::OnceCell;

use switchboard::agent::offer::profile::Profile;
use switchboard::agent::turn::markers::{Closed, Markers};
use switchboard::chat::ids::{ApprovalId, ConversationId, DraftId, MessageId, PayloadId, PreviewId, RunId};
use switchboard::config::{Sources, catalogue};
use switchboard::llm;
use switchboard::tools::BuiltIn;
use switchboard::tools::names::{Found, Named, find, near};

use super::parts;

/// What an id is written as can be read again, and is the same one.
macro_rules! read_back {
    ($text:expr, $($kind:ty),*) => {
        $(if let Ok(id) = <$kind>::parse($text) {
            assert_eq!(<$kind>::parse(&id.to_string()).as_ref(), Ok(&id));
        })*
    };
}

pub fn ids(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    read_back!(&text, RunId, PreviewId, ApprovalId, DraftId, MessageId, ConversationId, PayloadId);
    if let Ok(id) = ConversationId::parse(&text) {
        assert!(id.as_str().len() <= 128 && !id.as_str().contains(['/', '\\', '\n', '\r', '\0', '\'', '"']), "{id}");
    }
}

/// A list of names before the wanted one.
pub fn names(input: &[u8]) {
    let (list, wanted) = parts(input);
    let list: Vec<Named> = list
        .lines()
        .take(100)
        .enumerate()
        .map(|(nth, name)| Named { name: name.to_owned(), id: nth.to_string() })
        .collect();
    match find(&list, &wanted) {
        Found::One(named) => assert!(list.contains(named)),
        Found::Several(several) => assert!(several.len() > 1),
        Found::Nothing => assert!(list.iter().all(|named| named.name != wanted.trim()), "{wanted:?} is there"),
    }
    assert!(near(list.iter().map(|named| named.name.as_str()), &wanted).len() <= 10);
}

thread_local! {
    /// The profiles that are shipped as samples: those have markers.
    static PROFILES: OnceCell<Vec<Profile>> = const { OnceCell::new() };
}

/// What their file of tools declares; all else is said to be built in.
const DECLARED: [&str; 8] = [
    "search_articles",
    "get_article",
    "scan_articles",
    "list_streams",
    "list_reports",
    "get_report",
    "archive_stream",
    "delete_report",
];

fn with_profiles(look: impl Fn(&Profile)) {
    let load = || {
        let assets = Sources::default().assets().with_samples();
        let is_built_in = |name: &str| (!DECLARED.contains(&name)).then(BuiltIn::default);
        match catalogue::load(&assets, &llm::LlmConfig::default(), &catalogue::Referents::default(), is_built_in) {
            Ok(loaded) => loaded.profiles.all().filter(|profile| !profile.payload_types.is_empty()).cloned().collect(),
            Err(problems) => panic!("{problems:?}"),
        }
    };
    PROFILES.with(|profiles| profiles.get_or_init(load).iter().for_each(&look));
}

/// A model's text. However it comes in pieces, the same is shown and the same is taken out, and nothing is lost.
pub fn markers(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    with_profiles(|profile| {
        let whole = read(profile, [text.as_ref()]);
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(read(profile, letters.iter().map(String::as_str)), whole);
        assert!(whole.rest.len() <= text.len(), "more is shown than was said");
        assert!(!whole.found.is_empty() || !whole.notes.is_empty() || whole.rest == text, "a text changed");
    });
}

fn read<'a>(profile: &Profile, pieces: impl IntoIterator<Item = &'a str>) -> Closed {
    let mut markers = Markers::from_profile(profile);
    let shown: String = pieces.into_iter().map(|piece| markers.push(piece.to_owned())).collect();
    let closed = markers.close();
    Closed { rest: shown + &closed.rest, ..closed }
}
