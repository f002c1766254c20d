//! A server's answer as text for the model. Pure.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::agent::ports::tools::ToolContext;
use crate::bounded::{base64, json};
use crate::chat::file::{FileRef, NewFile};
use crate::chat::tool::ToolOutput;
use crate::tools::made::{FILE_BYTES, artifact};

/// The most files of one answer that are kept.
const FILES: usize = 5;

/// What the model reads, and the files that it sees besides: they are kept first.
pub(super) async fn output_of(result: CallToolResult, cx: &ToolContext<'_>) -> ToolOutput {
    let mut kept = Vec::new();
    for (at, file) in files(&result).into_iter().enumerate() {
        kept.push(match file {
            Ok(_) if at >= FILES => Err("an answer has too many files".to_owned()),
            Ok(file) => cx.files.keep(&cx.caller.owner, file).await.map_err(|error| error.to_string()),
            Err(reason) => Err(reason.to_owned()),
        });
    }
    let mut next = kept.iter();
    let content = text_of(&result, &mut |what| {
        Some(match next.next()? {
            Ok(file) => format!("[{what}, {}: as follows]", file.name),
            Err(reason) => format!("[{what}: it cannot be shown here, {reason}]"),
        })
    });
    let files: Vec<FileRef> = kept.into_iter().flatten().collect();
    let artifacts = files.iter().map(artifact).collect();
    ToolOutput { files, artifacts, ..ToolOutput::ok(content) }
}

/// The files in an answer, in order, or why one is none.
fn files(result: &CallToolResult) -> Vec<Result<NewFile, &'static str>> {
    let file = |data: &str, media_type: Option<&str>, name: Option<&str>| {
        if data.len() / 4 * 3 > FILE_BYTES {
            return Err("it is larger than 5 MiB");
        }
        let data = base64::decoded(data).ok_or("it is no base64")?;
        Ok(NewFile { name: name.map(line), media_type: media_type.map(str::to_owned), data })
    };
    let blocks = result.content.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(file(&image.data, Some(&image.mime_type), None)),
        ContentBlock::Audio(_) => Some(Err("sound is not taken")),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                Some(file(blob, mime_type.as_deref(), uri.rsplit('/').next()))
            }
            _ => None,
        },
        _ => None,
    });
    blocks.collect()
}

/// What the model reads: texts one after the other, structured content as JSON. `shown` says what stands for the next thing that
/// is no text; where it says nothing, that is named.
pub(super) fn text_of(result: &CallToolResult, shown: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let structured = result.structured_content.as_ref().filter(|value| !value.is_null());
    // Of several texts each may be an item of a list, which FastMCP wraps too.
    let texts: Option<Vec<&str>> = result.content.iter().map(text_in).collect();
    let is_list = structured.and_then(wrapped).and_then(Value::as_array).is_some_and(|items| {
        texts.is_some_and(|texts| {
            texts.len() == items.len() && texts.iter().zip(items).all(|(text, item)| says(text, item))
        })
    });
    let structured = structured.filter(|_| !is_list);
    let mut parts: Vec<String> = result
        .content
        .iter()
        .filter(|block| structured.is_none_or(|value| !repeats(block, value)))
        .map(|block| part(block, shown))
        .filter(|part| !part.is_empty())
        .collect();
    parts.extend(structured.map(Value::to_string));
    match parts.is_empty() {
        true => "[the tool answered with nothing]".to_owned(),
        false => parts.join("\n"),
    }
}

/// Whether a text says the same as the structured content, as it does for clients that do not know the latter.
fn repeats(block: &ContentBlock, value: &Value) -> bool {
    text_in(block).is_some_and(|text| says(text, value) || wrapped(value).is_some_and(|value| says(text, value)))
}

/// The value in which FastMCP puts what is no object, for structured content has to be one: `{"result": …}`.
fn wrapped(value: &Value) -> Option<&Value> {
    value.as_object().filter(|fields| fields.len() == 1)?.get("result")
}

fn text_in(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}

/// Whether `text` is that value, or its JSON.
fn says(text: &str, value: &Value) -> bool {
    value.as_str() == Some(text) || json::value(text).is_ok_and(|parsed| parsed == *value)
}

fn part(block: &ContentBlock, shown: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut other = |what: String, base64_bytes: usize| {
        let said = shown(&what);
        said.unwrap_or_else(|| format!("[{what}, of about {} bytes: it cannot be shown here]", base64_bytes / 4 * 3))
    };
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => other(format!("an image, {}", line(&image.mime_type)), image.data.len()),
        ContentBlock::Audio(audio) => other(format!("audio, {}", line(&audio.mime_type)), audio.data.len()),
        ContentBlock::ResourceLink(link) => format!("[a link to {}: {}]", line(&link.name), line(&link.uri)),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{}]\n{text}", line(uri)),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("of an unknown type");
                other(format!("the file {}, {}", line(uri), line(kind)), blob.len())
            }
            _ => "[a resource of a kind that is not known here]".to_owned(),
        },
        _ => "[content of a kind that is not known here]".to_owned(),
    }
}

/// A name of the server's on one line and of bounded length.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_its_texts_and_what_else_there_is_by_name() {
        let rows = [
            (
                json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
                "a\nb",
                "texts are joined",
            ),
            (
                json!({"content": [{"type": "text", "text": "{\"n\": 1}"}], "structuredContent": {"n": 1}}),
                "{\"n\":1}",
                "a repeated content is in the result once",
            ),
            (
                json!({"content": [{"type": "text", "text": "one"}], "structuredContent": {"n": 1}}),
                "one\n{\"n\":1}",
                "both, where they differ",
            ),
            (
                json!({"content": [{"type": "text", "text": "one"}], "structuredContent": {"result": "one"}}),
                "{\"result\":\"one\"}",
                "a text that is wrapped",
            ),
            (
                json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "{\"n\": 1}"}],
                       "structuredContent": {"result": ["a", {"n": 1}]}}),
                "a\n{\"n\": 1}",
                "a list that is wrapped",
            ),
            (json!({"content": [{"type": "text", "text": "a"}], "structuredContent": null}), "a", "none"),
            (
                json!({"content": [{"type": "image", "data": "AAAABBBB", "mimeType": "image/png"}]}),
                "[an image, image/png, of about 6 bytes: it cannot be shown here]",
                "an image is named",
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "x://1", "text": "hello"}}]}),
                "[x://1]\nhello",
                "an embedded text is a text",
            ),
            (
                json!({"content": [{"type": "resource_link", "name": "a\nb", "uri": "x://1"}]}),
                "[a link to a b: x://1]",
                "a link is named on one line",
            ),
            (json!({"content": []}), "[the tool answered with nothing]", "nothing"),
        ];
        for (result, expected, reason) in rows {
            let result: CallToolResult = serde_json::from_value(result).unwrap();
            assert_eq!(text_of(&result, &mut |_| None), expected, "{reason}");
        }
    }
}
