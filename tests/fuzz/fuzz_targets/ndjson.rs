//! The reader of JSON lines: what was written as lines, with whatever stands between them, is read as it was written; and
//! any bytes at all are read the same however they are cut.
#![no_main]

use serde_json::json;
use switchboard::chat::stream::FinishReason;
use switchboard::llm::Vendor;
use switchboard_fuzz::said::{End, Piece};
use switchboard_fuzz::{parts, said};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((cut, script)) = parts(input) else { return };
    said(Vendor::Ollama, cut, script);

    let (body, text) = written(script);
    let said = said(Vendor::Ollama, cut, &body);
    assert_eq!(said.pieces, [Piece::Text(text)]);
    assert_eq!(said.end, End::Finished { reason: FinishReason::Stop, usage: None });
});

/// Lines written as `script` says, and the text in them.
fn written(script: &[u8]) -> (Vec<u8>, String) {
    // A text that begins so has no reasoning in it, whatever follows.
    let mut text = ".".to_owned();
    let mut body = format!("{}\n", json!({"message": {"content": text}})).into_bytes();
    let mut rest = script;
    while let Some((op, after)) = rest.split_first() {
        rest = after;
        let end = if op & 8 == 0 { "\n" } else { "\r\n" };
        match op & 7 {
            0 => body.extend(end.as_bytes()),
            1 => body.extend(format!(" \t{end}").as_bytes()),
            2 => body.extend(format!("{{}}{end}").as_bytes()),
            _ => {
                let length = rest.first().map_or(0, |byte| usize::from(*byte));
                let (word, after) = rest.split_at(rest.len().min(length));
                rest = after;
                let word = String::from_utf8_lossy(word);
                text.push_str(&word);
                let line = json!({"message": {"content": word}});
                body.extend(format!("{line}{end}").as_bytes());
            }
        }
    }
    // The last line may do without its end.
    body.extend(json!({"done": true}).to_string().as_bytes());
    (body, text)
}
