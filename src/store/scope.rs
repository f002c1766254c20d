//! Whose rows a statement may touch, and text as every database takes it.

use std::borrow::Cow;

use crate::chat::caller::Owner;

/// An owner as the columns `tenant` and `user_id` hold it; no statement about somebody's data goes without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    /// The tenant, see [`storable`].
    pub(super) tenant: String,
    /// The user, see [`storable`].
    pub(super) user: String,
}

impl From<&Owner> for Scope {
    fn from(owner: &Owner) -> Self {
        Self { tenant: storable(&owner.tenant).into_owned(), user: storable(&owner.user).into_owned() }
    }
}

/// `text` for a column that holds neither JSON nor an id of ours. PostgreSQL takes no NUL in a text, and tokens may
/// name a user with one: NUL becomes U+0001 `0`, and U+0001 becomes U+0001 `1`, so that two names never become one.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', '\u{1}']) {
        Cow::Owned(text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text that [`storable`] made `stored` of.
pub(super) fn original(stored: &str) -> Cow<'_, str> {
    if stored.contains('\u{1}') {
        Cow::Owned(stored.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}"))
    } else {
        Cow::Borrowed(stored)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{original, storable};

    #[test]
    fn no_text_keeps_its_nul_and_no_two_become_one() {
        let letters = ["", "\0", "\u{1}", "0", "1", "\u{fffd}"];
        let mut given = HashSet::new();
        for first in letters {
            for second in letters {
                for third in letters {
                    given.insert([first, second, third].concat());
                }
            }
        }
        let stored: HashSet<_> = given.iter().map(|text| storable(text)).collect();
        assert_eq!(stored.len(), given.len());
        assert!(stored.iter().all(|text| !text.contains('\0')));
        assert!(given.iter().all(|text| original(&storable(text)) == **text), "all of them come back");
        assert_eq!(storable("ann"), "ann");
    }
}
