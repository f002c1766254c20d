//! The folder of each owner: `workspace.root`, with `{tenant}` and `{user}` filled in.

use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::chat::caller::Owner;
use crate::chat::digest::sha256_hex;

/// Longer names of folders are none that every file system takes; what is too long is told apart by its digest.
const NAME_BYTES: usize = 200;

/// What stands for itself in the name of a folder. No dot is among it: `.git` and `..` are nobody's names.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-');

/// `workspace.root`, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootTemplate {
    base: String,
    /// The folders below it.
    below: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Name(String),
    Tenant,
    User,
}

/// Why a text is no root.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRoot {
    /// It is relative, or the root of all.
    #[error("must be the absolute path of a folder, and not /")]
    NotAbsolute,
    /// It has something else in braces, or a name beside them.
    #[error("may have {{tenant}} and {{user}}, each as the whole name of a folder")]
    Unknown,
    /// It goes up.
    #[error("must not have . or .. in it")]
    Dots,
}

impl RootTemplate {
    /// The template in `text`.
    ///
    /// # Errors
    /// When it is no absolute path, or has anything but `{tenant}` and `{user}` in braces.
    pub fn parse(text: &str) -> Result<Self, BadRoot> {
        let path = text.strip_prefix('/').ok_or(BadRoot::NotAbsolute)?;
        let (mut base, mut below) = (String::new(), Vec::new());
        for name in path.split('/').filter(|name| !name.is_empty()) {
            match name {
                "." | ".." => return Err(BadRoot::Dots),
                "{tenant}" => below.push(Part::Tenant),
                "{user}" => below.push(Part::User),
                name if name.contains(['{', '}', '\0']) => return Err(BadRoot::Unknown),
                name if below.is_empty() => {
                    base.push('/');
                    base.push_str(name);
                }
                name => below.push(Part::Name(name.to_owned())),
            }
        }
        if base.is_empty() { Err(BadRoot::NotAbsolute) } else { Ok(Self { base, below }) }
    }

    /// The folder that has to exist.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether all owners share one folder.
    pub fn is_shared(&self) -> bool {
        self.below.is_empty()
    }

    /// The folders of `owner` below [`Self::base`], from above.
    pub fn below(&self, owner: &Owner) -> Vec<PathBuf> {
        let mut path = PathBuf::from(&self.base);
        let name = |part: &Part| match part {
            Part::Name(name) => name.clone(),
            Part::Tenant => folder_name(&owner.tenant),
            Part::User => folder_name(&owner.user),
        };
        let push = |part| {
            path.push(name(part));
            path.clone()
        };
        self.below.iter().map(push).collect()
    }
}

/// A name of a folder that no other text has. What a text of ours never is: a sign alone, a sign before a digest.
fn folder_name(text: &str) -> String {
    if text.is_empty() {
        return "%".to_owned();
    }
    let name = utf8_percent_encode(text, PLAIN).to_string();
    if name.len() <= NAME_BYTES {
        return name;
    }
    format!("%-{}", sha256_hex(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_has_a_folder_of_their_own() {
        let template = RootTemplate::parse("/srv//work/{tenant}/people/{user}").unwrap();
        assert_eq!((template.base(), template.is_shared()), ("/srv/work", false));
        let long = "x".repeat(300);
        for (tenant, user, expected) in [
            ("acme", "ann", "/srv/work/acme/people/ann"),
            ("", "..", "/srv/work/%/people/%2E%2E"),
            ("a/b", ".git", "/srv/work/a%2Fb/people/%2Egit"),
            ("%", "a@b.example", "/srv/work/%25/people/a%40b%2Eexample"),
        ] {
            let owner = Owner { tenant: tenant.to_owned(), user: user.to_owned() };
            assert_eq!(template.below(&owner).last().unwrap().to_str().unwrap(), expected);
        }
        let of = |user: &str| template.below(&Owner { tenant: "t".to_owned(), user: user.to_owned() }).pop().unwrap();
        assert_ne!(of(&long), of(&format!("{long}y")));
        assert!(of(&long).file_name().unwrap().len() <= NAME_BYTES);
        let anybody = Owner { tenant: String::new(), user: "u".to_owned() };
        assert!(RootTemplate::parse("/srv").unwrap().below(&anybody).is_empty());
    }

    #[test]
    fn what_is_no_root_is_refused() {
        for (text, expected) in [
            ("", BadRoot::NotAbsolute),
            ("/", BadRoot::NotAbsolute),
            ("/{user}", BadRoot::NotAbsolute),
            ("srv", BadRoot::NotAbsolute),
            ("/srv/../x", BadRoot::Dots),
            ("/srv/{role}", BadRoot::Unknown),
            ("/srv/u-{user}", BadRoot::Unknown),
        ] {
            assert_eq!(RootTemplate::parse(text), Err(expected), "{text}");
        }
    }
}
