//! The owner whose rows a statement may touch, and text as every database takes it.

use std::borrow::Cow;

use crate::chat::caller::{ISSUER_SEPARATOR, Owner};
use crate::chat::digest::sha256_hex;

/// 4 hexadecimal digits: few bytes before each word, and rarely the same.
const MARK_CHARS: usize = 4;

/// An owner as the columns `tenant` and `user_id` hold it. **Invariant:** no statement about a user's data goes without
/// one: an owner is bound as a `Scope` alone, and a test searches the texts of all statements for those without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    /// See [`storable`].
    tenant: String,
    /// See [`storable`].
    user: String,
}

impl Scope {
    /// The owner of a row, as its columns say it.
    pub(super) fn of_row(tenant: String, user: String) -> Self {
        Self { tenant, user }
    }

    /// Whether its token names a tenant, beside its issuer. Limits of a tenant are none for those who name none: they share that
    /// one, and any of them could shut out all others.
    pub(super) fn names_tenant(&self) -> bool {
        !self.tenant.is_empty() && !self.tenant.ends_with(ISSUER_SEPARATOR)
    }

    /// What all users of its tenant take turns by: the tenant without a user. Itself, where it names no tenant.
    pub(super) fn of_all(&self) -> Self {
        match self.names_tenant() {
            true => Self::of_row(self.tenant.clone(), String::new()),
            false => self.clone(),
        }
    }

    /// The tenant, for the few statements that reach beyond a user: an administrator's, and those of calls that a role
    /// of the tenant may approve.
    pub(super) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The user, for the same.
    pub(super) fn user(&self) -> &str {
        &self.user
    }

    /// A mark of the owner before words in the index of what was said, by which those of one owner stand together there. Two
    /// owners may have the same one: it is no name.
    pub(super) fn mark(&self) -> String {
        sha256_hex(format!("{}\n{}", self.tenant, self.user).as_bytes()).chars().take(MARK_CHARS).collect()
    }

    /// The owner, as a token names them.
    pub(super) fn owner(&self) -> Owner {
        Owner { tenant: original(&self.tenant).into_owned(), user: original(&self.user).into_owned() }
    }
}

/// The owner whose rows a transaction may touch. Where the database checks that too (row-level security in PostgreSQL),
/// a statement that forgets to name its owner finds no rows of others.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reach<'a> {
    /// Those of one user.
    User(&'a Scope),
    /// Those of all users of a tenant, for its administrators and for calls that a role may approve.
    Tenant(&'a Scope),
    /// Everybody's: for what looks at nothing but times and processes, and for runs of this process, which are named by their
    /// ids alone.
    All,
    /// Everybody's too, for the leases of runs, which have connections of their own where there are many.
    Leases,
}

impl Reach<'_> {
    /// The values of `app.tenant` and `app.user`: a name behind `=`, or `*` for all. The sign in front tells the tenant and
    /// the user without a name from a session that has set nothing.
    pub(super) fn settings(&self) -> [String; 2] {
        let (tenant, user) = match self {
            Self::User(scope) => (Some(&scope.tenant), Some(&scope.user)),
            Self::Tenant(scope) => (Some(&scope.tenant), None),
            Self::All | Self::Leases => (None, None),
        };
        [tenant, user].map(|name| name.map_or_else(|| "*".to_owned(), |name| format!("={name}")))
    }
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
