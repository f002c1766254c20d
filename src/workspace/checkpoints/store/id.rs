//! Names of objects, and the two kinds of entries a tree has.

use std::fmt;

/// The SHA-1 of an object as git computes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(pub(super) [u8; 20]);

impl Id {
    /// The id that is written as 40 lower case hexadecimal digits, or `None`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 20];
        if digits.len() != 40 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// The id of 20 bytes, as they are in trees and in the file of the last look.
    pub(crate) fn of_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// Its 20 bytes.
    pub(crate) fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// The id of an object, or `None` for content that was forged to have the id of another one.
    pub(super) fn of(kind: Kind, content: &[u8]) -> Option<Self> {
        let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
        hasher.update(kind.header(content.len()).as_bytes());
        hasher.update(content);
        hasher.try_finalize().ok()?.as_slice().try_into().ok().map(Self)
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Blob,
    Tree,
    Commit,
}

impl Kind {
    /// What stands in front of an object's content.
    pub(super) fn header(self, len: usize) -> String {
        let name = match self {
            Self::Blob => "blob",
            Self::Tree => "tree",
            Self::Commit => "commit",
        };
        format!("{name} {len}\0")
    }

    /// The kind and the length that a header (without its NUL) tells.
    pub(super) fn of_header(header: &[u8]) -> Option<(Self, usize)> {
        let (name, len) = std::str::from_utf8(header).ok()?.split_once(' ')?;
        let kind = match name {
            "blob" => Self::Blob,
            "tree" => Self::Tree,
            "commit" => Self::Commit,
            _ => return None,
        };
        Some((kind, len.parse().ok()?))
    }
}

/// How a file is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A regular file.
    File,
    /// A regular file that its owner may execute.
    Executable,
    /// A symbolic link; its content is where it leads to.
    Link,
}

/// A file of a snapshot: what it is and where its content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) mode: Mode,
    pub(crate) id: Id,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        let id = Id::of(Kind::Blob, b"hello\n").unwrap();
        assert_eq!(id.to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(Id::parse(&id.to_string()), Some(id));
    }

    #[test]
    fn only_whole_lower_case_ids_are_ids() {
        for text in ["", "HEAD", "ce013625", "CE013625030BA8DBA906F756967F9E9CA394464A", "../../../../etc/passwd"] {
            assert_eq!(Id::parse(text), None, "{text}");
        }
        assert_eq!(Id::parse(&"g".repeat(40)), None);
        assert_eq!(Id::parse(&"é".repeat(20)), None);
    }
}
