//! The reader of event streams: what was written as events, in any of the ways that the grammar allows, is read as it was
//! written; and any bytes at all are read the same however they are cut. With Gemini's events, whose text is never looked
//! at for reasoning.
#![no_main]

use serde_json::json;
use switchboard::chat::stream::FinishReason;
use switchboard::llm::Vendor;
use switchboard_fuzz::said::{End, Piece};
use switchboard_fuzz::{parts, said};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((cut, script)) = parts(input) else { return };
    said(Vendor::Gemini, cut, script);

    let (body, text) = written(script);
    let said = said(Vendor::Gemini, cut, &body);
    let expected = if text.is_empty() { vec![] } else { vec![Piece::Text(text)] };
    assert_eq!(said.pieces, expected);
    assert_eq!(said.end, End::Finished { reason: FinishReason::Stop, usage: None });
});

/// A stream written as `script` says, and the text in it.
fn written(script: &[u8]) -> (Vec<u8>, String) {
    let mut body = Vec::new();
    let mut text = String::new();
    let mut rest = script;
    while let Some((op, after)) = rest.split_first() {
        rest = after;
        let end = match op >> 6 {
            0 => "\n",
            1 => "\r\n",
            // A lone CR before an LF would be one line end: it is written only where none follows.
            2 => "\r",
            _ => "\n",
        };
        match op & 7 {
            0 if body.is_empty() => body.extend("\u{feff}".as_bytes()),
            0 | 1 => line(&mut body, ": a note", end),
            2 => line(&mut body, "retry: 3", end),
            3 => line(&mut body, "extension: x", end),
            4 => line(&mut body, "", end),
            _ => {
                let length = rest.first().map_or(0, |byte| usize::from(*byte));
                let (word, after) = rest.split_at(rest.len().min(length));
                rest = after;
                let word = String::from_utf8_lossy(word);
                text.push_str(&word);
                event(&mut body, &word, op & 8 == 0, op & 16 == 0, end);
            }
        }
    }
    line(&mut body, "", "\n");
    event(&mut body, "", true, true, "\n");
    body.extend(b"data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n");
    (body, text)
}

fn event(body: &mut Vec<u8>, word: &str, in_one_line: bool, is_named: bool, end: &str) {
    let chunk = json!({"candidates": [{"content": {"parts": [{"text": word}]}}]});
    let data = if in_one_line { chunk.to_string() } else { serde_json::to_string_pretty(&chunk).unwrap_or_default() };
    line(body, "", end);
    if is_named {
        line(body, "event: chunk", end);
    }
    for data in data.split('\n') {
        line(body, &format!("data: {data}"), end);
    }
    line(body, "", end);
}

fn line(body: &mut Vec<u8>, text: &str, end: &str) {
    // Behind a lone CR, an empty line that ends in LF would only complete that line end.
    let end = if text.is_empty() && body.last() == Some(&b'\r') { "\r" } else { end };
    body.extend(text.as_bytes());
    body.extend(end.as_bytes());
}
