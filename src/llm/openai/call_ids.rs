//! The ids of calls as a server takes them. Mistral takes nine letters and digits and nothing else, OpenAI forty characters
//! at most, so ids of other models, and our own, are mapped: the same id always to the same nine letters and digits, within
//! a request no two ids to one.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::chat::message::{Message, ModelOrigin};

const LENGTH: usize = 9;

/// "Expected a string with maximum length 40" is what OpenAI says to others.
const MAX_CHARS: usize = 40;

const ALPHABET: [char; 62] = [
    'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W',
    'X', 'Y', 'Z', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't',
    'u', 'v', 'w', 'x', 'y', 'z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
];

/// Which ids a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepts {
    /// Whatever a model gave, or we made up.
    Any,
    /// Up to 40 characters, and its own however long they are.
    Short,
    /// Nine letters and digits.
    Mistral,
}

/// The id of a call in the history.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) id: &'a str,
    /// Whether the same server and model gave it.
    pub(super) is_ours: bool,
}

/// The ids of all calls in `messages`, in order, for a model of `origin`.
pub(super) fn known<'a>(messages: &'a [Message], origin: &ModelOrigin) -> Vec<Known<'a>> {
    let answers = messages.iter().filter_map(|message| match message {
        Message::Assistant(answer) => Some(answer),
        Message::User(_) | Message::ToolResults(_) => None,
    });
    let known = answers.flat_map(|answer| {
        let is_ours = *answer.origin == *origin;
        answer.calls().map(move |call| Known { id: call.id.as_str(), is_ours })
    });
    known.collect()
}

/// The ids of one request.
#[derive(Debug)]
pub(super) struct CallIds<'a> {
    /// Only the ids that are not sent as they are.
    mapped: HashMap<&'a str, String>,
}

impl<'a> CallIds<'a> {
    /// The ids for a server that takes what `accepts` says; `ids` are all of the request's, in its order.
    pub(super) fn new(accepts: Accepts, ids: &[Known<'a>]) -> Self {
        let is_taken = |known: &Known<'_>| match accepts {
            Accepts::Any => true,
            Accepts::Short => known.is_ours || known.id.chars().count() <= MAX_CHARS,
            Accepts::Mistral => is_mistral(known.id),
        };
        let as_it_is = ids.iter().filter(|known| is_taken(known)).map(|known| Cow::Borrowed(known.id));
        let mut taken: HashSet<Cow<'a, str>> = as_it_is.collect();
        let mut mapped = HashMap::new();
        for &Known { id, .. } in ids.iter().filter(|known| !is_taken(known)) {
            if mapped.contains_key(id) {
                continue;
            }
            let mut hash = fnv1a(id);
            // There are 62 to the ninth of them: one is always free.
            let free = loop {
                let nine = nine_of(hash);
                if taken.insert(nine.clone().into()) {
                    break nine;
                }
                hash = hash.wrapping_add(1);
            };
            mapped.insert(id, free);
        }
        Self { mapped }
    }

    /// What `id` is called in the request.
    pub(super) fn id_for(&self, id: &'a str) -> Cow<'a, str> {
        self.mapped.get(id).map_or(Cow::Borrowed(id), |mapped| mapped.clone().into())
    }
}

fn is_mistral(id: &str) -> bool {
    id.len() == LENGTH && id.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn nine_of(mut hash: u64) -> String {
    let mut nine = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        // The remainder is less than 62.
        nine.push(ALPHABET[usize::try_from(hash % 62).unwrap_or_default()]);
        hash /= 62;
    }
    nine
}

/// FNV-1a, 64 bits: the same on every machine and in every version of this program.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped<'a>(accepts: Accepts, ids: &[&'a str]) -> CallIds<'a> {
        CallIds::new(accepts, &ids.iter().map(|id| Known { id, is_ours: false }).collect::<Vec<_>>())
    }

    #[test]
    fn foreign_ids_become_nine_letters_and_digits_and_mistral_s_own_stay() {
        let ids = ["toolu_1", "abcDEF123", "call_0123", "functions.find:0", "toolu_1", "", "abcDEF12é", "abcDEF1234"];
        let ids_of = mapped(Accepts::Mistral, &ids);
        let names: Vec<_> = ids.iter().map(|id| ids_of.id_for(id)).collect();
        assert!(names.iter().all(|name| is_mistral(name)), "{names:?}");
        assert_eq!(names[1], "abcDEF123");
        assert_eq!(names[0], names[4], "the same id has the same name");
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 7, "and no other has it: {names:?}");
        assert_eq!(mapped(Accepts::Mistral, &["toolu_1"]).id_for("toolu_1"), names[0], "in every request");
    }

    #[test]
    fn a_name_that_is_taken_is_not_given_again() {
        let taken = nine_of(fnv1a("toolu_1"));
        let ids_of = mapped(Accepts::Mistral, &["toolu_1", &taken]);
        assert_eq!(ids_of.id_for(&taken), taken);
        assert_eq!(ids_of.id_for("toolu_1"), nine_of(fnv1a("toolu_1") + 1));
    }

    #[test]
    fn a_server_that_takes_any_id_gets_it_as_it_is() {
        assert!(matches!(mapped(Accepts::Any, &["toolu_1"]).id_for("toolu_1"), Cow::Borrowed("toolu_1")));
    }

    #[test]
    fn an_id_that_is_too_long_is_mapped_unless_the_server_gave_it() {
        let (longest, too_long) = ("é".repeat(40), "x".repeat(41));
        let ids_of = mapped(Accepts::Short, &[&longest, &too_long]);
        assert_eq!(
            (ids_of.id_for(&longest), ids_of.id_for(&too_long)),
            (longest.as_str().into(), nine_of(fnv1a(&too_long)).into())
        );
        let own = CallIds::new(Accepts::Short, &[Known { id: &too_long, is_ours: true }]);
        assert_eq!(own.id_for(&too_long), too_long);
    }
}
