//! A server's answer as text for the model. Pure.

use crate::bounded::json;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// What the model reads: texts one after the other, structured content as JSON; what is no text is named.
pub(super) fn text_of(result: &CallToolResult) -> String {
    let structured = result.structured_content.as_ref();
    let mut parts: Vec<String> = result
        .content
        .iter()
        .filter(|block| structured.is_none_or(|value| !repeats(block, value)))
        .map(part)
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
    match block {
        ContentBlock::Text(text) => json::value(&text.text).is_ok_and(|parsed| parsed == *value),
        _ => false,
    }
}

fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => left_out("an image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => left_out("audio", &audio.mime_type, audio.data.len()),
        ContentBlock::ResourceLink(link) => format!("[a link to {}: {}]", line(&link.name), line(&link.uri)),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{}]\n{text}", line(uri)),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("of an unknown type");
                left_out(&format!("the file {}", line(uri)), kind, blob.len())
            }
            _ => "[a resource of a kind that is not known here]".to_owned(),
        },
        _ => "[content of a kind that is not known here]".to_owned(),
    }
}

fn left_out(what: &str, kind: &str, base64_bytes: usize) -> String {
    format!("[{what}, {}, of about {} bytes: it cannot be shown here]", line(kind), base64_bytes / 4 * 3)
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
            assert_eq!(text_of(&result), expected, "{reason}");
        }
    }
}
