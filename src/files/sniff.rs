//! What a file is, by its bytes, looked at as they come.

use super::jpeg::Jpeg;
use crate::agent::ports::files::{FileError, text_kind};
use crate::chat::file::FileKind;

/// So much of a file is kept for the last look at it, but of a JPEG, whose size may stand behind more.
const HEAD: usize = 256 << 10;

/// The most pixels of an image: 50 million.
const MAX_PIXELS: usize = 50_000_000;

/// Texts that a browser would run, or draw, by how they begin.
const MARKUP: [&str; 4] = ["<?xml", "<svg", "<!doctype", "<html"];

/// What is known of the bytes so far.
#[derive(Default)]
pub(super) struct Look {
    head: Vec<u8>,
    jpeg: Jpeg,
    /// The beginning of a character whose end has not come.
    part: Vec<u8>,
    /// Whether all of it can be text.
    is_no_text: bool,
}

impl Look {
    /// Looks at the next bytes.
    ///
    /// # Errors
    /// As soon as it is certain that it is none of the kinds.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        if let Some(missing) = HEAD.checked_sub(self.head.len()) {
            self.head.extend_from_slice(bytes.get(..missing).unwrap_or(bytes));
        }
        self.jpeg.take(bytes);
        if !self.is_no_text {
            self.is_no_text = !self.goes_on_as_text(bytes);
        }
        match self.is_no_text && self.head.len() >= 16 && self.signed().is_none() {
            true => Err(FileError::Kind),
            false => Ok(()),
        }
    }

    /// Whether the bytes go on as a text in UTF-8.
    fn goes_on_as_text(&mut self, bytes: &[u8]) -> bool {
        if bytes.contains(&0) {
            return false;
        }
        self.part.extend_from_slice(bytes);
        let rest = match std::str::from_utf8(&self.part) {
            Ok(_) => Vec::new(),
            // Its last character is not whole yet.
            Err(error) if error.error_len().is_none() => self.part.split_off(error.valid_up_to()),
            Err(_) => return false,
        };
        self.part = rest;
        true
    }

    /// The kind that the first bytes name.
    fn signed(&self) -> Option<FileKind> {
        let head = self.head.as_slice();
        match head {
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(FileKind::Png),
            [0xff, 0xd8, 0xff, ..] => Some(FileKind::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(FileKind::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(FileKind::Webp),
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(FileKind::Pdf),
            _ => None,
        }
    }

    /// What it is, now that all of it has come, and the longer side of a picture in pixels.
    ///
    /// # Errors
    /// When it is none of the kinds, or an image that cannot be read or is too large.
    pub(super) fn kind(&self, name: Option<&str>, media_type: Option<&str>) -> Result<(FileKind, u32), FileError> {
        match self.signed() {
            Some(kind) if kind.is_image() => {
                let size = match kind == FileKind::Jpeg {
                    true => self.jpeg.size(),
                    false => imagesize::blob_size(&self.head).ok().map(|size| (size.width, size.height)),
                };
                let (width, height) = size.ok_or(FileError::Image)?;
                let pixels = width.saturating_mul(height);
                if pixels == 0 || pixels > MAX_PIXELS {
                    return Err(FileError::Image);
                }
                Ok((kind, u32::try_from(width.max(height)).unwrap_or(u32::MAX)))
            }
            Some(kind) => Ok((kind, 0)),
            None if self.is_no_text || !self.part.is_empty() || self.is_markup() => Err(FileError::Kind),
            None => Ok((text_kind(name, media_type), 0)),
        }
    }

    fn is_markup(&self) -> bool {
        let text = self.head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.head).trim_ascii_start();
        MARKUP
            .iter()
            .any(|begin| text.get(..begin.len()).is_some_and(|text| text.eq_ignore_ascii_case(begin.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
        bytes
    }

    fn looked(bytes: &[u8], at_once: usize) -> Result<(FileKind, u32), FileError> {
        let mut look = Look::default();
        bytes.chunks(at_once).try_for_each(|piece| look.take(piece))?;
        look.kind(Some("a.md"), None)
    }

    /// Bytes, what they are, and why.
    type Row<'a> = (&'a [u8], Option<(FileKind, u32)>, &'a str);

    #[test]
    fn the_bytes_say_what_a_file_is() {
        let rows: [Row<'_>; 15] = [
            (&png(10, 12), Some((FileKind::Png, 12)), "a picture"),
            (&png(10_000, 10_000), None, "a picture of 100 million pixels"),
            (&png(0, 10), None, "a picture without any"),
            (b"\x89PNG\r\n\x1a\n", None, "a picture that is cut off"),
            (b"GIF89a\x0a\0\x0a\0\0\0\0;<html>", Some((FileKind::Gif, 10)), "whatever stands behind it"),
            (b"%PDF-1.7\n\xff\xfe", Some((FileKind::Pdf, 0)), "a document"),
            ("# Größe\n".as_bytes(), Some((FileKind::Markdown, 0)), "a text"),
            (b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0", None, "a program"),
            (b" \n<svg xmlns='x'>", None, "a picture that runs scripts"),
            (b"\xef\xbb\xbf<!DocType html>", None, "a page"),
            (b"<!-- badges -->\n# A", Some((FileKind::Markdown, 0)), "a text with a comment"),
            (b"a < b and <b>", Some((FileKind::Markdown, 0)), "a text with signs in it"),
            (b"abc\xc3", None, "a text that ends within a character"),
            (b"abc\xff", None, "a text in another encoding"),
            (b"abc\0def", None, "a text with a NUL"),
        ];
        for (bytes, expected, reason) in rows {
            for at_once in [1, 3, 1000] {
                assert_eq!(looked(bytes, at_once).ok(), expected, "{reason}, {at_once} at once");
            }
        }
    }
}
