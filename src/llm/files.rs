//! Files in requests: which models can see what, and what stands for a file that is sent, or cannot be.
//!
//! **Invariant:** no file is left out silently: where its bytes are not sent, its model reads a sentence instead.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};

use crate::agent::ports::llm::{SentFiles, Takes};
use crate::chat::file::{FileKind, FileRef};
use crate::chat::message::ModelOrigin;
use crate::llm::http::embed;

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

/// `[models."NAME"]`: what the operator says of one model. What is not said is as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// What it can be given; empty is not said.
    pub input: Vec<Input>,
    /// The largest picture, in bytes.
    pub image_max_bytes: Option<NonZeroU64>,
    /// The longest side of a picture, in pixels.
    pub image_max_side: Option<NonZeroU32>,
    /// The most pictures of a request.
    pub images_max: Option<NonZeroUsize>,
    /// The largest PDF document, in bytes.
    pub pdf_max_bytes: Option<NonZeroU64>,
    /// The most PDF documents of a request.
    pub pdfs_max: Option<NonZeroUsize>,
}

/// What is said of models, by `provider:model`, or by the model's name alone, which counts where the first is not there.
#[derive(Debug, Clone, Default)]
pub struct ModelConfigs(HashMap<String, ModelConfig>);

impl ModelConfigs {
    /// These, by their names.
    pub fn new(said: impl IntoIterator<Item = (String, ModelConfig)>) -> Self {
        Self(said.into_iter().collect())
    }

    /// What is said of that one.
    pub(super) fn of(&self, ModelOrigin { provider, model }: &ModelOrigin) -> Option<&ModelConfig> {
        self.0.get(&format!("{provider}:{model}")).or_else(|| self.0.get(model))
    }
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
    /// The most of them in a request.
    pub(super) images_max: usize,
    /// The largest PDF document, in bytes.
    pub(super) pdf_bytes: u64,
    /// The most of them in a request.
    pub(super) pdfs_max: usize,
}

impl Sight {
    /// What the model called `name` can be given: what `said` says of it, else what its provider's settings say of all (`set`), else
    /// what is known.
    pub(super) fn takes(&self, name: &str, set: &[Input], said: Option<&ModelConfig>) -> Takes {
        let name = name.to_ascii_lowercase();
        let row = self.models.iter().find(|row| name.contains(row.name));
        let known = row.map_or(READS, |row| row.input);
        let said = said.cloned().unwrap_or_default();
        let input = [&said.input, set].into_iter().find(|input| !input.is_empty()).unwrap_or(known);
        Takes {
            images: if input.contains(&Input::Image) { self.images } else { &[] },
            pdf: input.contains(&Input::Pdf),
            image_bytes: said.image_max_bytes.map_or(self.image_bytes, NonZeroU64::get),
            image_side: said.image_max_side.map_or(self.image_side, NonZeroU32::get),
            images_max: said.images_max.map_or(self.images_max, NonZeroUsize::get),
            pdf_bytes: said.pdf_max_bytes.map_or(self.pdf_bytes, NonZeroU64::get),
            pdfs_max: said.pdfs_max.map_or(self.pdfs_max, NonZeroUsize::get),
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
    bytes: &'a Bytes,
}

impl fmt::Display for Data<'_> {
    /// Writes nothing where a request is written, whose body takes the bytes as they are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match embed(self.bytes) {
            true => Ok(()),
            false => Base64Display::new(self.bytes, &STANDARD).fmt(f),
        }
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
    let bytes = match sent.shown(file) {
        Ok(bytes) => bytes,
        Err(why) => return left_out(file, why),
    };
    let FileRef { kind, name, .. } = file;
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
    use super::*;
    use crate::agent::ports::llm::Loaded;
    use crate::chat::ids::FileId;

    #[test]
    fn a_file_is_sent_or_a_sentence_stands_for_it() {
        let file = |kind, bytes| FileRef { id: FileId::fresh(), kind, name: "a.x".to_owned(), bytes, side: 9 };
        let images = &[FileKind::Png];
        let all =
            Takes { images, pdf: true, image_bytes: 1000, image_side: 9, images_max: 1, pdf_bytes: 1000, pdfs_max: 1 };
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
            let bytes = HashMap::from([(file.id, Loaded { bytes: content.ok_or("it is not kept any more"), rank: 1 })]);
            let said = match piece(&file, SentFiles { bytes: Some(&bytes), takes }) {
                Piece::Image(data) => format!("image {} {data}", data.kind.media_type()),
                Piece::Pdf(name, data) => format!("pdf {name} {data}"),
                Piece::Text(text) => text.into_owned(),
            };
            assert_eq!(said, expected);
        }
        let bytes = Ok(Bytes::from_static(b"abc"));
        for (kind, words) in [(FileKind::Png, "images"), (FileKind::Pdf, "PDF documents")] {
            let second = file(kind, 3);
            let bytes = HashMap::from([(second.id, Loaded { bytes: bytes.clone(), rank: 2 })]);
            let sent = SentFiles { bytes: Some(&bytes), takes: all };
            let Piece::Text(said) = piece(&second, sent) else { panic!("one too many") };
            assert!(said.ends_with(&format!("not shown, this model takes fewer {words} at once]")), "{said}");
        }
        let old = file(FileKind::Png, 3);
        let Piece::Text(said) = piece(&old, SentFiles { bytes: None, takes: all }) else { panic!("not loaded") };
        assert_eq!(said, "[image a.x, 3 bytes: not shown, only the newest files are sent, as far as they fit]");
    }

    #[test]
    fn what_a_model_takes_is_known_by_its_name_and_settings_say_otherwise() {
        let models = &[Known { name: "blind", input: READS }, Known { name: "", input: ALL }];
        let (image_bytes, pdf_bytes) = (IMAGE_BYTES, PDF_BYTES);
        let sight =
            Sight { models, images: IMAGES, image_bytes, image_side: 9, images_max: 20, pdf_bytes, pdfs_max: 5 };
        let one = |input: &[Input]| Some(ModelConfig { input: input.to_vec(), ..ModelConfig::default() });
        let rows = [
            ("Some-Blind-8B", &[][..], None, (false, false)),
            ("some", &[], None, (true, true)),
            ("some-blind", SEES, None, (true, false)),
            ("some", READS, None, (false, false)),
            ("some", READS, one(SEES), (true, false)),
            ("some", READS, one(&[]), (false, false)),
        ];
        for (name, set, said, expected) in rows {
            let Takes { images, pdf, .. } = sight.takes(name, set, said.as_ref());
            assert_eq!((!images.is_empty(), pdf), expected, "{name}");
        }
        let Takes { image_bytes, image_side, images_max, pdf_bytes, pdfs_max, .. } = sight.takes("some", &[], None);
        assert_eq!((image_bytes, image_side, images_max, pdf_bytes, pdfs_max), (IMAGE_BYTES, 9, 20, PDF_BYTES, 5));
        let said = "image_max_bytes = 1\nimage_max_side = 2\nimages_max = 3\npdf_max_bytes = 4\npdfs_max = 5";
        let said: ModelConfig = toml::from_str(said).unwrap();
        let Takes { image_bytes, image_side, images_max, pdf_bytes, pdfs_max, .. } =
            sight.takes("some", &[], Some(&said));
        assert_eq!((image_bytes, image_side, images_max, pdf_bytes, pdfs_max), (1, 2, 3, 4, 5));
        assert!(Sight { models: &[], ..sight }.takes("unknown", &[], None).images.is_empty());
    }
}
