//! Questions whose files are as their client gave them: named by id, or in the request itself. `http/` makes kept ones of them
//! before a run begins; and the data of files in requests.

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json;
use crate::bounded::base64;
use crate::bounded::json::parse;
use crate::chat::file::{GivenFile, NewFile};
use crate::chat::ids::FileId;
use crate::chat::input;

/// A question.
pub(super) type Ask = input::Ask<GivenFile>;
/// A message that a client tells of.
pub(super) type ClientMessage = input::ClientMessage<GivenFile>;
/// A call that a client tells of.
pub(super) type ToldCall = input::ToldCall<GivenFile>;
/// A client's result of a call.
pub(super) type ClientResult = input::ClientResult<GivenFile>;
/// A chat turn.
pub(super) type RunInput = input::RunInput<GivenFile>;

/// What is wrong with a file that a request has.
pub(super) const NO_DATA: &str = "must have its data in base64";
/// The same of one that is named by an address.
pub(super) const ELSEWHERE: &str =
    "must have the file itself, as data or by the id of an upload: addresses are not fetched";

/// The file of this data.
///
/// # Errors
/// When it is no base64, or empty.
pub(super) fn inline(data: &str, name: Option<String>, media_type: Option<String>) -> Result<GivenFile, &'static str> {
    let data = base64::decoded(data).filter(|data| !data.is_empty()).ok_or(NO_DATA)?;
    Ok(GivenFile::Inline(NewFile { name, media_type, data }))
}

/// The file in a `data:` URL (RFC 2397), which must be in base64.
///
/// # Errors
/// When it is another URL, or no base64.
pub(super) fn of_url(url: &str, name: Option<String>) -> Result<GivenFile, &'static str> {
    let Some(rest) = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:")).and_then(|_| url.get(5..))
    else {
        return Err(ELSEWHERE);
    };
    let (head, data) = rest.split_once(',').ok_or(NO_DATA)?;
    let (media_type, is_base64) = match head.rsplit_once(';') {
        Some((media_type, end)) => (media_type, end.trim().eq_ignore_ascii_case("base64")),
        None => (head, false),
    };
    match is_base64 {
        true => {
            let data = percent_decode_str(data).decode_utf8_lossy();
            inline(&data, name, Some(media_type.to_owned()).filter(|text| !text.is_empty()))
        }
        false => Err(NO_DATA),
    }
}

/// The file that was uploaded under this id: our own, or with what OpenAI's or Anthropic's clients know it by in front.
pub fn file_id(id: &str) -> Option<FileId> {
    let own = id.strip_prefix("file-").or_else(|| id.strip_prefix("file_")).unwrap_or(id);
    FileId::parse(own).ok()
}

/// The same, of a message.
///
/// # Errors
/// When it is no id.
pub(super) fn uploaded(id: &str) -> Result<GivenFile, &'static str> {
    file_id(id).map(GivenFile::Uploaded).ok_or("must be the id of an upload")
}

/// Adds what the user says beside results to the last of them: one turn of the model's answers both.
pub(super) fn say_beside(results: &mut [ClientResult], said: Option<Content>) {
    let (Some(last), Some(Content { text, files })) = (results.last_mut(), said) else { return };
    last.files.extend(files);
    last.said = Some(text).filter(|text| !text.is_empty());
}

/// A part of a content, in whichever of the protocols' shapes.
#[derive(Deserialize)]
struct Part<'a> {
    r#type: String,
    text: Option<String>,
    /// An address, or an object with one.
    #[serde(borrow)]
    image_url: Option<&'a RawValue>,
    #[serde(borrow)]
    file: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    file_id: Option<String>,
    file_data: Option<String>,
    filename: Option<String>,
    title: Option<String>,
    url: Option<String>,
    data: Option<String>,
    id: Option<String>,
    #[serde(rename = "mimeType")]
    mime_type: Option<String>,
}

#[derive(Deserialize)]
struct Address {
    url: String,
}

/// A file of OpenAI's Chat Completions.
#[derive(Deserialize)]
struct ChatFile {
    file_id: Option<String>,
    file_data: Option<String>,
    filename: Option<String>,
}

/// Where a picture or a document is, in Anthropic's protocol and in AG-UI.
#[derive(Deserialize)]
struct Source {
    r#type: String,
    media_type: Option<String>,
    #[serde(rename = "mimeType")]
    mime_type: Option<String>,
    data: Option<String>,
    value: Option<String>,
    file_id: Option<String>,
}

/// What a content says: its text, and the files in it, in order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Content {
    /// The text parts, a line break between them.
    pub(super) text: String,
    /// The others.
    pub(super) files: Vec<GivenFile>,
}

impl Content {
    /// All of them as one, a blank line between their texts.
    pub(super) fn of_all(all: Vec<Self>) -> Self {
        let (texts, files): (Vec<String>, Vec<Vec<GivenFile>>) =
            all.into_iter().map(|Self { text, files }| (text, files)).unzip();
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        Self { text: texts.join("\n\n"), files: files.into_iter().flatten().collect() }
    }

    /// A message of the user's, if something is said.
    pub(super) fn of_user(self) -> Option<ClientMessage> {
        let Self { text, files } = self;
        (!text.trim().is_empty() || !files.is_empty()).then_some(ClientMessage::User(text, files))
    }
}

/// The content in `raw`: a text, or parts, of which those of these kinds are text. `null` is an empty one.
///
/// # Errors
/// What is wrong with a part, or that it is of a kind that is not read.
pub(super) fn content(raw: Option<&RawValue>, text_kinds: &[&str]) -> Result<Content, &'static str> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(Content::default()) };
    if let Ok(text) = parse::<String>(raw.get()) {
        return Ok(Content { text, files: Vec::new() });
    }
    let parts: Vec<&RawValue> =
        parse(raw.get()).map_err(|_| "must have a content that is a text or a list of parts")?;
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for raw in parts {
        let part: Part<'_> = json::fields(raw).ok_or("must have parts with a type")?;
        match (&part.r#type, part.text) {
            (kind, Some(text)) if text_kinds.contains(&kind.as_str()) => texts.push(text),
            (_, text) => files.push(file(Part { text, ..part })?),
        }
    }
    Ok(Content { text: texts.join("\n"), files })
}

/// The file in a part.
///
/// # Errors
/// What is wrong with it, or that it is of a kind that is not read.
pub(super) fn of_part(raw: &RawValue) -> Result<GivenFile, &'static str> {
    file(json::fields(raw).ok_or("must have parts with a type")?)
}

fn file(part: Part<'_>) -> Result<GivenFile, &'static str> {
    let Part {
        r#type,
        text: _,
        image_url,
        file,
        source,
        file_id,
        file_data,
        filename,
        title,
        url,
        data,
        id,
        mime_type,
    } = part;
    match r#type.as_str() {
        "image_url" | "input_image" => match (file_id, image_url) {
            (Some(id), None) => uploaded(&id),
            (_, Some(raw)) => {
                let url = parse::<String>(raw.get()).ok().or_else(|| Some(json::fields::<Address>(raw)?.url));
                of_url(&url.ok_or(ELSEWHERE)?, filename)
            }
            (None, None) => Err(ELSEWHERE),
        },
        "file" | "input_file" => match (file.and_then(json::fields::<ChatFile>), url) {
            (Some(ChatFile { file_id, file_data, filename }), _) => data_or_id(file_data, file_id, filename),
            (None, Some(url)) => of_url(&url, filename),
            (None, None) => data_or_id(file_data, file_id, filename),
        },
        "image" | "document" => {
            let source: Source = source.and_then(json::fields).ok_or(ELSEWHERE)?;
            let Source { r#type, media_type, mime_type, data, value, file_id } = source;
            let (name, media_type) = (title.or(filename), media_type.or(mime_type));
            match (r#type.as_str(), data.or(value), file_id) {
                ("base64" | "data", Some(data), _) => inline(&data, name, media_type),
                ("text", Some(text), _) => Ok(GivenFile::Inline(NewFile { name, media_type, data: text.into_bytes() })),
                ("url", Some(url), _) => of_url(&url, name),
                ("file", Some(id), None) | ("file", _, Some(id)) => uploaded(&id),
                _ => Err(ELSEWHERE),
            }
        }
        // As AG-UI had it before `image` and `document`.
        "binary" => match (data, id, url) {
            (Some(data), _, _) => inline(&data, filename, mime_type),
            (None, Some(id), _) => uploaded(&id),
            (None, None, Some(url)) => of_url(&url, filename),
            (None, None, None) => Err(ELSEWHERE),
        },
        _ => Err("must have nothing but text, pictures and documents: other parts are not read"),
    }
}

/// A file by its data, which may be a `data:` URL, or by its id.
fn data_or_id(data: Option<String>, id: Option<String>, name: Option<String>) -> Result<GivenFile, &'static str> {
    match (data, id) {
        (Some(data), _) if data.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) => {
            of_url(&data, name)
        }
        (Some(data), _) => inline(&data, name, None),
        (None, Some(id)) => uploaded(&id),
        (None, None) => Err(ELSEWHERE),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::{Content, ELSEWHERE, FileId, GivenFile, NewFile, content, of_url, uploaded};

    #[test]
    fn each_protocol_has_its_own_shape_for_the_same_file() {
        let id = FileId::fresh();
        let inline = |name: Option<&str>, media_type: Option<&str>| {
            let (name, media_type) = (name.map(str::to_owned), media_type.map(str::to_owned));
            Ok(vec![GivenFile::Inline(NewFile { name, media_type, data: b"abc".to_vec() })])
        };
        let (png, pdf) = (Some("image/png"), Some("application/pdf"));
        let kept = || Ok(vec![GivenFile::Uploaded(id)]);
        let url = "data:image/png;base64,YWJj";
        let rows = [
            (json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}}), inline(None, png)),
            (
                json!({"type": "file", "file": {"filename": "a", "file_data": "data:application/pdf;base64,YWJj"}}),
                inline(Some("a"), pdf),
            ),
            (json!({"type": "file", "file": {"file_id": format!("file-{id}")}}), kept()),
            (json!({"type": "input_image", "image_url": url}), inline(None, png)),
            (json!({"type": "input_image", "file_id": id.to_string()}), kept()),
            (json!({"type": "input_file", "file_data": "YWJj", "filename": "a"}), inline(Some("a"), None)),
            (json!({"type": "input_file", "file_url": "https://example.com/a"}), Err(ELSEWHERE)),
            (
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "YWJj"}}),
                inline(None, png),
            ),
            (
                json!({"type": "document", "title": "a", "source": {"type": "text", "media_type": "text/plain", "data": "abc"}}),
                inline(Some("a"), Some("text/plain")),
            ),
            (json!({"type": "image", "source": {"type": "file", "file_id": format!("file_{id}")}}), kept()),
            (json!({"type": "image", "source": {"type": "url", "url": "https://example.com/a"}}), Err(ELSEWHERE)),
            (
                json!({"type": "image", "source": {"type": "data", "value": "YWJj", "mimeType": "image/png"}}),
                inline(None, png),
            ),
            (json!({"type": "file", "mediaType": "image/png", "url": url, "filename": "a"}), inline(Some("a"), png)),
            (json!({"type": "binary", "mimeType": "image/png", "data": "YWJj"}), inline(None, png)),
            (json!({"type": "binary", "mimeType": "image/png", "id": id.to_string()}), kept()),
            (json!({"type": "binary", "mimeType": "image/png", "url": "https://example.com/a"}), Err(ELSEWHERE)),
            (
                json!({"type": "video", "source": {}}),
                Err("must have nothing but text, pictures and documents: other parts are not read"),
            ),
        ];
        for (part, expected) in rows {
            let raw =
                to_raw_value(&json!([{"type": "text", "text": "a"}, part, {"type": "text", "text": "b"}])).unwrap();
            let expected = expected.map(|files| Content { text: "a\nb".to_owned(), files });
            assert_eq!(content(Some(&raw), &["text"]), expected, "{part}");
        }
    }

    #[test]
    fn a_file_is_in_the_request_or_was_uploaded() {
        let png = Some(GivenFile::Inline(NewFile {
            name: None,
            media_type: Some("image/png".into()),
            data: b"abc".to_vec(),
        }));
        let rows = [
            ("data:image/png;base64,YWJj", png.clone(), "a picture"),
            ("DATA:image/png;Base64, YWJj\n", png.clone(), "in other letters"),
            ("data:image/png;base64,YW%4Aj", png, "with escapes"),
            ("data:image/png,abc", None, "not in base64"),
            ("data:image/png;base64,@@", None, "no base64"),
            ("https://example.com/a.png", None, "an address"),
            ("http://169.254.169.254/", None, "an address that must not be fetched"),
            ("ü", None, "no URL"),
            ("", None, "nothing"),
        ];
        for (url, expected, reason) in rows {
            assert_eq!(of_url(url, None).ok(), expected, "{reason}");
        }
        let id = FileId::fresh();
        for text in [format!("{id}"), format!("file-{id}"), format!("file_{id}")] {
            assert_eq!(uploaded(&text), Ok(GivenFile::Uploaded(id)));
        }
        assert!(uploaded("file-abc123").is_err(), "another service's");
    }
}
