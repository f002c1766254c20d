//! The ids of calls as a server takes them. Mistral takes nine letters and digits and nothing else, so ids of other
//! models, and our own, are mapped: the same id always to the same nine, within a request no two ids to one.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

const LENGTH: usize = 9;
const ALPHABET: [char; 62] = [
    'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W',
    'X', 'Y', 'Z', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't',
    'u', 'v', 'w', 'x', 'y', 'z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
];

/// The ids of one request.
#[derive(Debug, Default)]
pub(super) struct CallIds<'a> {
    /// Only the ids that are not sent as they are.
    mapped: HashMap<&'a str, String>,
}

impl<'a> CallIds<'a> {
    /// The ids for a server that takes only Mistral's; `ids` are all of the request's, in its order.
    pub(super) fn mistral(ids: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut taken: HashSet<Cow<'a, str>> = ids.clone().filter(|id| is_mistral(id)).map(Cow::Borrowed).collect();
        let mut mapped = HashMap::new();
        for id in ids.filter(|id| !is_mistral(id)) {
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
    pub(super) fn of(&self, id: &'a str) -> Cow<'a, str> {
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

    #[test]
    fn foreign_ids_become_nine_letters_and_digits_and_mistral_s_own_stay() {
        let ids = ["toolu_1", "abcDEF123", "call_0123", "functions.find:0", "toolu_1", "", "abcDEF12é", "abcDEF1234"];
        let mapped = CallIds::mistral(ids.into_iter());
        let names: Vec<_> = ids.iter().map(|id| mapped.of(id)).collect();
        assert!(names.iter().all(|name| is_mistral(name)), "{names:?}");
        assert_eq!(names[1], "abcDEF123");
        assert_eq!(names[0], names[4], "the same id has the same name");
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 7, "and no other has it: {names:?}");
        assert_eq!(CallIds::mistral(["toolu_1"].into_iter()).of("toolu_1"), names[0], "in every request");
    }

    #[test]
    fn a_name_that_is_taken_is_given_to_nobody_else() {
        let taken = nine_of(fnv1a("toolu_1"));
        let mapped = CallIds::mistral(["toolu_1", &taken].into_iter());
        assert_eq!(mapped.of(&taken), taken);
        assert_eq!(mapped.of("toolu_1"), nine_of(fnv1a("toolu_1") + 1));
    }

    #[test]
    fn a_server_that_takes_any_id_gets_it_as_it_is() {
        assert!(matches!(CallIds::default().of("toolu_1"), Cow::Borrowed("toolu_1")));
    }
}
