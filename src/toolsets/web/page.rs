//! The body of a page becomes text, by its type and its charset.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::body::Body;
use super::html;

/// 200 KB: all that a model is told of a page.
const TEXT_BYTES: usize = 200_000;

/// Where a document says what its charset is: in its first 1024 bytes, by the HTML standard.
const HEAD_BYTES: usize = 1024;

/// Stands behind a text that was cut.
const CUT: &str = "\n\n[The text goes on; this is its beginning.]";

/// What a page says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    /// Its charset, in lower case; `None` where there is no text.
    pub(super) encoding: Option<String>,
    /// At most [`TEXT_BYTES`], and a note where there would be more.
    pub(super) text: String,
}

/// Whether a body of this type has a text at all.
pub(super) fn is_text(content_type: &str) -> bool {
    Kind::of(content_type).is_some()
}

/// The text of a body.
pub(super) fn text_of(body: &Body, content_type: &str) -> Text {
    let Some(kind) = Kind::of(content_type) else { return Text::default() };
    let named = parameter(content_type, "charset").and_then(|label| Encoding::for_label(label.as_bytes()));
    let declared = || match kind {
        Kind::Markup | Kind::Html => declared(&body.bytes),
        Kind::Plain => None,
    };
    let encoding = named.or_else(declared).unwrap_or_else(|| usual(&body.bytes));
    // A byte order mark is stronger than all of these.
    let (decoded, encoding, _) = encoding.decode(&body.bytes);
    let (text, mut is_whole) = match kind {
        Kind::Html => {
            let (text, is_whole) = html::text(&decoded, TEXT_BYTES);
            (Cow::Owned(text), is_whole)
        }
        Kind::Markup | Kind::Plain => (decoded, true),
    };
    is_whole &= body.is_whole && text.len() <= TEXT_BYTES;
    let mut text: String = text[..text.floor_char_boundary(TEXT_BYTES)].chars().filter(|c| is_readable(*c)).collect();
    if !is_whole {
        text.push_str(CUT);
    }
    Text { encoding: Some(encoding.name().to_ascii_lowercase()), text }
}

/// Control characters are no part of a text, and some stores refuse them.
pub(super) fn is_readable(character: char) -> bool {
    !character.is_control() || matches!(character, '\n' | '\r' | '\t')
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    /// Markup that is told as it is.
    Markup,
    Plain,
}

impl Kind {
    fn of(content_type: &str) -> Option<Self> {
        let name = content_type.split(';').next()?.trim().to_ascii_lowercase();
        match name.as_str() {
            "text/html" | "application/xhtml+xml" => Some(Self::Html),
            "application/json"
            | "application/x-ndjson"
            | "application/yaml"
            | "application/x-yaml"
            | "application/toml"
            | "application/markdown"
            | "application/javascript" => Some(Self::Plain),
            "text/xml" | "application/xml" => Some(Self::Markup),
            name if name.ends_with("+xml") => Some(Self::Markup),
            name if name.starts_with("text/") || name.ends_with("+json") => Some(Self::Plain),
            _ => None,
        }
    }
}

/// The value of a parameter of a content type.
fn parameter<'a>(content_type: &'a str, wanted: &str) -> Option<&'a str> {
    let pairs = content_type.split(';').skip(1).filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim());
    values.next().map(|value| value.trim_matches(['"', '\'']))
}

/// The charset that a document declares: in `<?xml encoding=…`, `<meta charset=…` or
/// `<meta http-equiv=… content="…; charset=…"`.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD_BYTES)]).to_ascii_lowercase();
    let named = |tag: &str| {
        let key = match tag {
            tag if tag.starts_with("?xml") => "encoding",
            tag if tag.starts_with("meta") => "charset",
            _ => return None,
        };
        let value = tag.split_once(key)?.1.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        Encoding::for_label(value.split(['"', '\'', ';', '>', '?', '/', ' ']).next()?.as_bytes())
    };
    // Whoever could be read this far is not UTF-16, whatever it declares.
    head.split('<').find_map(named).map(Encoding::output_encoding)
}

/// The charset of a document that names none.
fn usual(bytes: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        // The last character may be cut.
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], content_type: &str) -> (Option<String>, String) {
        let Text { encoding, text } = text_of(&Body { bytes: bytes.to_vec(), is_whole: true }, content_type);
        (encoding, text)
    }

    #[test]
    fn the_charset_is_found() {
        let rows: &[(&[u8], &str, &str, &str)] = &[
            (b"gr\xfc\xdfe", "text/plain; charset=ISO-8859-1", "windows-1252", "by the header, under its web name"),
            (b"gr\xfc\xdfe", "text/plain; Charset=\"latin1\"", "windows-1252", "in quotes"),
            ("grüße".as_bytes(), "text/plain", "utf-8", "unnamed, and it is UTF-8"),
            (b"gr\xfc\xdfe", "text/plain", "windows-1252", "unnamed, and it is not"),
            (b"gr\xfc\xdfe", "text/plain; charset=nonsense", "windows-1252", "named something unknown"),
            (b"<meta charset=windows-1252><p>gr\xfc\xdfe", "text/html", "windows-1252", "by <meta>"),
            (b"<META Charset = 'latin1'/>gr\xfc\xdfe", "text/html", "windows-1252", "by <meta>, oddly written"),
            (
                b"<meta http-equiv=Content-Type content=\"text/html; charset=iso-8859-1\">gr\xfc\xdfe",
                "text/html",
                "windows-1252",
                "by <meta> for a header",
            ),
            ("<meta charset=latin1>grüße".as_bytes(), "text/html; charset=utf-8", "utf-8", "the header is stronger"),
            ("\u{feff}grüße".as_bytes(), "text/html; charset=latin1", "utf-8", "a byte order mark is strongest"),
            (b"\xff\xfeg\0r\0\xfc\0\xdf\0e\0", "text/plain", "utf-16le", "a byte order mark of UTF-16"),
            ("<meta charset=utf-16>grüße".as_bytes(), "text/html", "utf-8", "<meta> cannot mean UTF-16"),
            ("grüße".as_bytes(), "application/xhtml+xml", "utf-8", "XHTML"),
        ];
        for (bytes, content_type, encoding, why) in rows {
            assert_eq!(read(bytes, content_type), (Some((*encoding).to_owned()), "grüße".to_owned()), "{why}");
        }
        let (encoding, text) =
            read(b"<?xml version='1.0' encoding='latin1'?><a>gr\xfc\xdfe</a>", "application/rss+xml");
        assert_eq!(encoding.as_deref(), Some("windows-1252"));
        assert!(text.ends_with("<a>grüße</a>"), "XML is told as it is: {text}");
        let (encoding, text) = read(b"\x93\xfa\x96\x7b", "text/html; charset=Shift_JIS");
        assert_eq!((encoding.as_deref(), text.as_str()), (Some("shift_jis"), "日本"));
    }

    #[test]
    fn only_texts_have_a_text() {
        let rows = [
            ("text/plain", true),
            ("TEXT/HTML; charset=utf-8", true),
            ("text/markdown", true),
            ("application/json", true),
            ("application/problem+json; a=b", true),
            ("application/xml", true),
            ("image/svg+xml", true),
            ("image/png", false),
            ("application/octet-stream", false),
            ("application/pdf", false),
            ("", false),
        ];
        for (content_type, expected) in rows {
            assert_eq!(is_text(content_type), expected, "{content_type}");
            assert_eq!(read(b"x", content_type).1.is_empty(), !expected, "{content_type}");
        }
    }

    #[test]
    fn a_text_is_bounded_and_readable() {
        let (_, text) = read("é".repeat(150_000).as_bytes(), "text/plain");
        assert_eq!(text.len(), TEXT_BYTES + CUT.len());
        assert!(text.ends_with(CUT));
        let (_, text) = read(&b"<p>word ".repeat(100_000), "text/html");
        assert!(text.len() <= TEXT_BYTES + CUT.len() && text.ends_with(CUT), "{}", text.len());
        let cut = text_of(&Body { bytes: b"<p>short".to_vec(), is_whole: false }, "text/html");
        assert_eq!(cut.text, format!("short{CUT}"), "what was not read is told of too");
        assert_eq!(read(b"a\0b\x1b[31m\r\n\tc", "text/plain").1, "ab[31m\r\n\tc");
        assert_eq!(read(b"a&#27;b&#0;c", "text/html").1, "ab\u{fffd}c");
        assert_eq!(read(br#"{"a": [1,  2]}"#, "application/json").1, r#"{"a": [1,  2]}"#, "as it is");
    }
}
