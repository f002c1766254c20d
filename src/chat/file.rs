//! Files that users attach to their messages, and that tools make: pictures, documents, texts. A message holds what is known of
//! one ([`FileRef`]); the bytes are kept apart, and may be gone while the message stays.

use super::ids::FileId;

/// What is inside a file, as its first bytes say. There are no others: what is not one of these is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A PNG.
    Png,
    /// A JPEG.
    Jpeg,
    /// A WebP.
    Webp,
    /// A GIF.
    Gif,
    /// A PDF.
    Pdf,
    /// A text in UTF-8.
    Text,
    /// A text in Markdown.
    Markdown,
    /// A table, a row on each line.
    Csv,
    /// A JSON document.
    Json,
}

impl FileKind {
    /// All of them.
    pub const ALL: [Self; 9] =
        [Self::Png, Self::Jpeg, Self::Webp, Self::Gif, Self::Pdf, Self::Text, Self::Markdown, Self::Csv, Self::Json];

    /// Its media type (IANA).
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
            Self::Pdf => "application/pdf",
            Self::Text => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Csv => "text/csv",
            Self::Json => "application/json",
        }
    }

    /// The kind of that media type; parameters and case do not count.
    pub fn of_media_type(text: &str) -> Option<Self> {
        let essence = text.split(';').next().unwrap_or_default().trim();
        Self::ALL.into_iter().find(|kind| kind.media_type().eq_ignore_ascii_case(essence))
    }

    /// Whether a model has to see it.
    pub fn is_image(self) -> bool {
        matches!(self, Self::Png | Self::Jpeg | Self::Webp | Self::Gif)
    }

    /// Whether a model reads it as text.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Markdown | Self::Csv | Self::Json)
    }
}

/// What a file is for, as whoever uploads it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// Whatever its user needs it for.
    #[default]
    UserData,
    /// To be seen by a model.
    Vision,
    /// To be read by an assistant.
    Assistants,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::UserData, Self::Vision, Self::Assistants];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserData => "user_data",
            Self::Vision => "vision",
            Self::Assistants => "assistants",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.name() == name)
    }
}

/// What a message knows of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRef {
    /// The file.
    pub id: FileId,
    /// What is inside.
    pub kind: FileKind,
    /// Its name, as whoever brought it calls it: on one line, without a path.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The longer side of a picture, in pixels; 0 of everything else.
    pub side: u32,
}

impl FileRef {
    /// Whether a model may be sent it at all: a text is read as a whole, and so much of it, some 65,000 tokens.
    pub fn is_sent(&self) -> bool {
        !self.kind.is_text() || self.bytes <= TEXT_BYTES
    }

    /// What it is, in words: `image chart.png, 120 kB`.
    pub fn described(&self) -> String {
        let Self { kind, name, bytes, .. } = self;
        let what = if kind.is_image() { "image" } else { "file" };
        format!("{what} {name}, {}", size(*bytes))
    }

    /// About how many tokens it takes where a model is shown it: what nobody has told yet is estimated. That it goes as base64
    /// counts for nothing.
    pub fn tokens(&self) -> u64 {
        match self.kind {
            _ if !self.is_sent() => 0,
            FileKind::Png | FileKind::Jpeg | FileKind::Webp | FileKind::Gif => IMAGE_TOKENS,
            FileKind::Pdf => pdf_tokens(self.bytes),
            FileKind::Text | FileKind::Markdown | FileKind::Csv | FileKind::Json => self.bytes.div_ceil(4),
        }
    }
}

/// About 1,600 tokens: what a picture of a screen takes with most vendors, however many bytes it has.
const IMAGE_TOKENS: u64 = 1600;

/// A page of a PDF document is read as text and as a picture, and takes about 3,000 tokens; it has about 100 kB. More than 100
/// pages are more than most models take.
const PAGE_TOKENS: u64 = 3000;
const PAGE_BYTES: u64 = 100_000;
const PAGES: u64 = 100;

/// About how many tokens a PDF document of that size takes.
pub fn pdf_tokens(bytes: u64) -> u64 {
    PAGE_TOKENS * bytes.div_ceil(PAGE_BYTES).clamp(1, PAGES)
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

/// The longest text that is read as a whole: 256 KiB.
pub const TEXT_BYTES: u64 = 256 << 10;

/// So many are sent with each request to a model, the newest.
pub const FILES_SENT: usize = 20;

/// The longest name of a file, in characters.
const NAME_CHARS: usize = 200;

/// `name` as a file's name: its last part, on one line and of bounded length; `otherwise` where nothing is left.
pub fn file_name(name: &str, otherwise: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let line: String = last.chars().filter(|c| !c.is_control() && !is_direction(*c)).take(NAME_CHARS).collect();
    match line.trim() {
        "" | "." | ".." => otherwise.to_owned(),
        name => name.to_owned(),
    }
}

/// Whether it turns the direction of what stands behind it: `gpj.exe` would look like `exe.jpg`.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A file as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenFile {
    /// One that its user has uploaded.
    Uploaded(FileId),
    /// One that stands in the request.
    Inline(NewFile),
}

/// A file that is not kept yet.
#[derive(Clone, PartialEq, Eq)]
pub struct NewFile {
    /// What whoever brings it calls it, if anything.
    pub name: Option<String>,
    /// Its media type as they say; a hint, since the bytes decide.
    pub media_type: Option<String>,
    /// Its bytes.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for NewFile {
    /// Without the bytes, which belong into no log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewFile").field("name", &self.name).field("bytes", &self.data.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{FileKind, FileRef, file_name};
    use crate::chat::ids::FileId;

    #[test]
    fn a_name_is_its_last_part_on_one_line() {
        let rows = [
            ("chart.png", "chart.png"),
            ("C:\\Users\\ada\\chart.png", "chart.png"),
            ("../../etc/passwd", "passwd"),
            ("a\nb\u{0}.txt", "ab.txt"),
            ("exe\u{202e}gpj.exe", "exegpj.exe"),
            ("..", "file"),
            ("a/", "file"),
            ("  ", "file"),
        ];
        for (name, expected) in rows {
            assert_eq!(file_name(name, "file"), expected, "{name:?}");
        }
        assert_eq!(file_name(&"x".repeat(500), "file").len(), 200);
    }

    #[test]
    fn a_file_takes_tokens_by_its_kind_and_not_by_its_base64() {
        let rows = [
            (FileKind::Png, 5_000_000, 1600, "a picture"),
            (FileKind::Gif, 10, 1600, "a small one"),
            (FileKind::Pdf, 900, 3000, "a page at least"),
            (FileKind::Pdf, 250_000, 9000, "three pages"),
            (FileKind::Pdf, 20_000_000, 300_000, "as many as are read"),
            (FileKind::Csv, 9, 3, "a text"),
            (FileKind::Csv, 300_000, 0, "too long to be sent"),
        ];
        for (kind, bytes, expected, reason) in rows {
            let file = FileRef { id: FileId::fresh(), kind, name: "a".to_owned(), bytes, side: 0 };
            assert_eq!(file.tokens(), expected, "{reason}");
        }
    }

    #[test]
    fn media_types_name_kinds_whatever_stands_behind_them() {
        for kind in FileKind::ALL {
            assert_eq!(
                FileKind::of_media_type(&format!("{}; charset=utf-8", kind.media_type().to_uppercase())),
                Some(kind)
            );
        }
        assert_eq!(FileKind::of_media_type("image/svg+xml"), None);
    }
}
