//! The same answer in the words of each vendor.

use serde_json::{Value, json};
use switchboard::llm::Vendor;

use crate::support::converse;
use crate::support::model::turn;
use crate::support::upstream::Answer;

/// The settings by which `vendor` at `url` is asked, and by nobody else.
pub fn settings(vendor: Vendor, url: &str) -> Vec<(String, String)> {
    let section = format!("LLM__{}", vendor.name().to_uppercase());
    let version = if vendor == Vendor::OpenAi { "/v1" } else { "" };
    let mut settings = vec![
        ("LLM__PROVIDER".to_owned(), vendor.name().to_owned()),
        (format!("{section}__BASE_URL"), format!("{url}{version}")),
        (format!("{section}__API_KEY"), "key-of-the-tests".to_owned()),
    ];
    if vendor == Vendor::Vertex {
        settings.push((format!("{section}__PROJECT"), "acme-1".to_owned()));
    }
    settings
}

/// An answer of these words, an event for each. The connection is not used again, so that its bytes are this answer's.
pub fn answer(vendor: Vendor, words: &[&str]) -> Answer {
    let kind = match vendor {
        Vendor::Ollama => "application/x-ndjson",
        Vendor::Bedrock => "application/vnd.amazon.eventstream",
        Vendor::Claude | Vendor::Gemini | Vendor::OpenAi | Vendor::Vertex => "text/event-stream",
    };
    if vendor == Vendor::Bedrock {
        let frames: Vec<u8> = words.iter().flat_map(|word| converse::text(word)).chain(converse::end()).collect();
        return Answer::ok(kind, frames).header("connection", "close");
    }
    Answer::ok(kind, body(vendor, words)).header("connection", "close")
}

fn body(vendor: Vendor, words: &[&str]) -> String {
    match vendor {
        Vendor::Claude => {
            let usage = json!({"input_tokens": 1, "output_tokens": 1});
            let mut events = vec![
                json!({"type": "message_start", "message": {"id": "m", "usage": usage}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ];
            let delta = |word: &&str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}});
            events.extend(words.iter().map(delta));
            events.extend([
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
                json!({"type": "message_stop"}),
            ]);
            let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
            events.iter().map(frame).collect()
        }
        Vendor::Gemini | Vendor::Vertex => {
            let part = |word: &str| json!({"role": "model", "parts": [{"text": word}]});
            let chunk = |word: &&str| format!("data: {}\r\n\r\n", json!({"candidates": [{"content": part(word)}]}));
            let last = json!({"candidates": [{"content": part(""), "finishReason": "STOP"}]});
            words.iter().map(chunk).chain([format!("data: {last}\r\n\r\n")]).collect()
        }
        Vendor::Ollama => {
            let line = |word: &&str| {
                format!("{}\n", json!({"message": {"role": "assistant", "content": word}, "done": false}))
            };
            let last = json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"});
            words.iter().map(line).chain([format!("{last}\n")]).collect()
        }
        Vendor::Bedrock => unreachable!("its frames are no text"),
        Vendor::OpenAi => words.iter().fold(turn(), |turn, word| turn.text(word)).done().bytes(),
    }
}
