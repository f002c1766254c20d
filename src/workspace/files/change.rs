//! What an edit changed: the file before and after it, and the difference.

use crate::workspace::diff::{Diff, unified_diff};

/// 1 MiB: larger files are compared by nobody who reads.
pub(super) const MOST_IMAGE_BYTES: u64 = 1 << 20;

/// Where a NUL tells that a file is no text, in bytes.
pub(super) const BINARY_BYTES: usize = 8 * 1024;

/// What was, or is, in the place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// Nothing.
    Absent,
    /// A link, which was deleted itself.
    Link,
    /// More than 1 MiB.
    TooLarge,
    /// All of a file's bytes.
    Bytes(Vec<u8>),
}

/// One file that was written, or is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Absolute: the file that changed, so for a link that was written through, its target.
    pub path: String,
    /// The same, from the root on.
    pub relative: String,
    /// Before the edit.
    pub before: Image,
    /// After the edit.
    pub after: Image,
}

impl Image {
    pub(super) fn of(bytes: &[u8]) -> Self {
        if bytes.len() as u64 > MOST_IMAGE_BYTES { Self::TooLarge } else { Self::Bytes(bytes.to_vec()) }
    }

    /// The text, `""` for nothing, `None` for what has no text that is shown.
    fn text(&self) -> Option<&str> {
        match self {
            Self::Absent => Some(""),
            Self::Link | Self::TooLarge => None,
            Self::Bytes(bytes) => text_of(bytes),
        }
    }
}

impl FileChange {
    /// The unified difference, whose headers are `a` and `b` with the absolute path, or `/dev/null`. Its text is empty
    /// when no line differs. `None` for links, for what is not text (a NUL in its first 8 KiB, or not UTF-8), and for
    /// more than 1 MiB on either side.
    pub fn diff(&self) -> Option<Diff> {
        let name = |side: &str, image: &Image| match image {
            Image::Absent => "/dev/null".to_owned(),
            Image::Link | Image::TooLarge | Image::Bytes(_) => format!("{side}{}", self.path),
        };
        let (before, after) = (self.before.text()?, self.after.text()?);
        Some(unified_diff(before, after, &name("a", &self.before), &name("b", &self.after)))
    }
}

/// `bytes` as text, unless they are none.
pub(super) fn text_of(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(BINARY_BYTES)];
    if memchr::memchr(0, head).is_some() {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}
