//! Files in requests: which models can see what, and what stands for a file that is sent, or cannot be.
//!
//! **Invariant:** no file is left out silently: where its bytes are not sent, its model reads a sentence instead.

use std::borrow::Cow;
use std::fmt;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};

use crate::agent::ports::llm::{SentFiles, Takes};
use crate::chat::file::{FileKind, FileRef};

/// What a model can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    /// Text, which all can.
    Text,
    /// Pictures.
    Image,
    /// PDF documents.
    Pdf,
}

/// A row of a vendor's table of models: what those can be given.
#[derive(Debug)]
pub(super) struct Known {
    /// A part of the model's name, in lower case; the first row that fits counts.
    pub(super) name: &'static str,
    /// What it can be given.
    pub(super) input: &'static [Input],
}

/// Text, pictures and PDF documents.
pub(super) const ALL: &[Input] = &[Input::Text, Input::Image, Input::Pdf];
/// Text and pictures.
pub(super) const SEES: &[Input] = &[Input::Text, Input::Image];
/// Text alone.
pub(super) const READS: &[Input] = &[Input::Text];

/// The kinds of pictures that most vendors take.
pub(super) const IMAGES: &[FileKind] = &[FileKind::Png, FileKind::Jpeg, FileKind::Webp, FileKind::Gif];

/// The largest picture, in bytes of its file, where a vendor says nothing else: what a request of 50 MB holds in base64 beside a
/// history.
pub(super) const IMAGE_BYTES: u64 = 20 << 20;

/// The same of a PDF document.
pub(super) const PDF_BYTES: u64 = 20 << 20;

/// What a vendor's models can be given.
#[derive(Debug)]
pub(super) struct Sight {
    /// What is known of models by their names.
    pub(super) models: &'static [Known],
    /// The pictures that those take which take some.
    pub(super) images: &'static [FileKind],
    /// The largest of them, in bytes.
    pub(super) image_bytes: u64,
    /// Their longest side, in pixels.
    pub(super) image_side: u32,
    /// The largest PDF document, in bytes.
    pub(super) pdf_bytes: u64,
}

impl Sight {
    /// What the model called `name` can be given, where its provider's settings do not say otherwise.
    pub(super) fn takes(&self, name: &str, set: &[Input]) -> Takes {
        let name = name.to_ascii_lowercase();
        let row = self.models.iter().find(|row| name.contains(row.name));
        let input = match set {
            [] => row.map_or(READS, |row| row.input),
            set => set,
        };
        Takes {
            images: if input.contains(&Input::Image) { self.images } else { &[] },
            pdf: input.contains(&Input::Pdf),
            image_bytes: self.image_bytes,
            image_side: self.image_side,
            pdf_bytes: self.pdf_bytes,
        }
    }
}

/// What stands for a file.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// A picture.
    Image(Data<'a>),
    /// A PDF document with its name.
    Pdf(&'a str, Data<'a>),
    /// The text in it, or a sentence about it.
    Text(Cow<'a, str>),
}

/// Bytes, written as base64.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data<'a> {
    /// What is inside.
    pub(super) kind: FileKind,
    bytes: &'a [u8],
}

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Base64Display::new(self.bytes, &STANDARD).fmt(f)
    }
}

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The same as a `data:` URL (RFC 2397).
#[derive(Debug, Clone, Copy)]
pub(super) struct DataUrl<'a>(pub(super) Data<'a>);

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("data:{};base64,{}", self.0.kind.media_type(), self.0))
    }
}

/// What stands for `files`, in order.
pub(super) fn pieces<'a>(files: impl IntoIterator<Item = &'a FileRef>, sent: SentFiles<'a>) -> Vec<Piece<'a>> {
    files.into_iter().map(|file| piece(file, sent)).collect()
}

fn piece<'a>(file: &'a FileRef, sent: SentFiles<'a>) -> Piece<'a> {
    if let Some(why) = sent.left_out(file) {
        return left_out(file, why);
    }
    let FileRef { id, kind, name, .. } = file;
    // What is not left out has bytes.
    let bytes = sent.of(*id).unwrap_or_default();
    let data = Data { kind: *kind, bytes };
    match kind {
        FileKind::Png | FileKind::Jpeg | FileKind::Webp | FileKind::Gif => Piece::Image(data),
        FileKind::Pdf => Piece::Pdf(name, data),
        FileKind::Text | FileKind::Markdown | FileKind::Csv | FileKind::Json => {
            let text = String::from_utf8_lossy(bytes);
            Piece::Text(format!("[file {name}]\n{text}\n[end of file {name}]").into())
        }
    }
}

/// What a model reads instead of a file.
fn left_out<'a>(file: &FileRef, why: &str) -> Piece<'a> {
    Piece::Text(format!("[{}: not shown, {why}]", file.described()).into())
}

/// Announces files of a tool for vendors whose results of tools are text alone.
pub(super) fn returned_by(tool: &str, call: &str) -> String {
    format!("[Returned by {tool}, call {call}:]")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use bytes::Bytes;

    use super::*;
    use crate::chat::ids::FileId;

    #[test]
    fn a_file_is_sent_or_a_sentence_stands_for_it() {
        let file = |kind, bytes| FileRef { id: FileId::fresh(), kind, name: "a.x".to_owned(), bytes, side: 9 };
        let all = Takes { images: &[FileKind::Png], pdf: true, image_bytes: 1000, image_side: 9, pdf_bytes: 1000 };
        let small = Takes { image_side: 8, ..all };
        let nothing = Takes { image_side: 9, ..Takes::default() };
        let rows = [
            (file(FileKind::Png, 3), Some("abc"), all, "image image/png YWJj"),
            (file(FileKind::Pdf, 3), Some("abc"), all, "pdf a.x YWJj"),
            (file(FileKind::Csv, 3), Some("a,b"), nothing, "[file a.x]\na,b\n[end of file a.x]"),
            (
                file(FileKind::Png, 1234),
                Some("abc"),
                nothing,
                "[image a.x, 1 kB: not shown, this model takes no images]",
            ),
            (
                file(FileKind::Pdf, 3),
                Some("abc"),
                nothing,
                "[file a.x, 3 bytes: not shown, this model takes no PDF documents]",
            ),
            (
                file(FileKind::Png, 2_345_678),
                Some("abc"),
                all,
                "[image a.x, 2.3 MB: not shown, it is too large for this model]",
            ),
            (
                file(FileKind::Text, 300_000),
                Some("abc"),
                all,
                "[file a.x, 300 kB: not shown, it is too long to be read]",
            ),
            (
                file(FileKind::Gif, 3),
                Some("abc"),
                all,
                "[image a.x, 3 bytes: not shown, this model takes no images of this kind]",
            ),
            (
                file(FileKind::Png, 3),
                Some("abc"),
                small,
                "[image a.x, 3 bytes: not shown, it has too many pixels for this model]",
            ),
            (
                file(FileKind::Pdf, 1001),
                Some("abc"),
                all,
                "[file a.x, 1 kB: not shown, it is too large for this model]",
            ),
            (file(FileKind::Png, 3), None, all, "[image a.x, 3 bytes: not shown, it is not kept any more]"),
        ];
        for (file, content, takes, expected) in rows {
            let content = content.map(|text| Bytes::from_static(text.as_bytes()));
            let bytes = HashMap::from([(file.id, content)]);
            let said = match piece(&file, SentFiles { bytes: Some(&bytes), takes }) {
                Piece::Image(data) => format!("image {} {data}", data.kind.media_type()),
                Piece::Pdf(name, data) => format!("pdf {name} {data}"),
                Piece::Text(text) => text.into_owned(),
            };
            assert_eq!(said, expected);
        }
        let old = file(FileKind::Png, 3);
        let Piece::Text(said) = piece(&old, SentFiles { bytes: None, takes: all }) else { panic!("not loaded") };
        assert_eq!(said, "[image a.x, 3 bytes: not shown, only the newest files are sent, as far as they fit]");
    }

    #[test]
    fn what_a_model_takes_is_known_by_its_name_and_settings_say_otherwise() {
        let models = &[Known { name: "blind", input: READS }, Known { name: "", input: ALL }];
        let sight = Sight { models, images: IMAGES, image_bytes: IMAGE_BYTES, image_side: 9, pdf_bytes: PDF_BYTES };
        let rows = [
            ("Some-Blind-8B", &[][..], (false, false)),
            ("some", &[], (true, true)),
            ("some-blind", SEES, (true, false)),
            ("some", READS, (false, false)),
        ];
        for (name, set, expected) in rows {
            let Takes { images, pdf, .. } = sight.takes(name, set);
            assert_eq!((!images.is_empty(), pdf), expected, "{name}");
        }
        assert!(Sight { models: &[], ..sight }.takes("unknown", &[]).images.is_empty());
    }
}
