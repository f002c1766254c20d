//! The same answer in the words of each vendor.

use serde_json::{Value, json};

use crate::support::model::turn;
use crate::support::upstream::Answer;

/// A vendor, by its name in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Claude,
    Gemini,
    Ollama,
    OpenAi,
}

pub const VENDORS: [Vendor; 4] = [Vendor::Claude, Vendor::Gemini, Vendor::Ollama, Vendor::OpenAi];

impl Vendor {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::OpenAi => "openai",
        }
    }

    /// The settings by which this vendor at `url` is asked, and by nobody else.
    pub fn settings(self, url: &str) -> Vec<(String, String)> {
        let section = format!("LLM__{}", self.name().to_uppercase());
        let version = if self == Self::OpenAi { "/v1" } else { "" };
        vec![
            ("LLM__PROVIDER".to_owned(), self.name().to_owned()),
            (format!("{section}__BASE_URL"), format!("{url}{version}")),
            (format!("{section}__API_KEY"), "key-of-the-tests".to_owned()),
        ]
    }

    /// An answer of these words, an event for each. The connection is not used again, so that its bytes are this answer's.
    pub fn answer(self, words: &[&str]) -> Answer {
        let kind = if self == Self::Ollama { "application/x-ndjson" } else { "text/event-stream" };
        Answer::ok(kind, self.body(words)).header("connection", "close")
    }

    fn body(self, words: &[&str]) -> String {
        match self {
            Self::Claude => {
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
            Self::Gemini => {
                let part = |word: &str| json!({"role": "model", "parts": [{"text": word}]});
                let chunk = |word: &&str| format!("data: {}\r\n\r\n", json!({"candidates": [{"content": part(word)}]}));
                let last = json!({"candidates": [{"content": part(""), "finishReason": "STOP"}]});
                words.iter().map(chunk).chain([format!("data: {last}\r\n\r\n")]).collect()
            }
            Self::Ollama => {
                let line = |word: &&str| {
                    format!("{}\n", json!({"message": {"role": "assistant", "content": word}, "done": false}))
                };
                let last =
                    json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"});
                words.iter().map(line).chain([format!("{last}\n")]).collect()
            }
            Self::OpenAi => words.iter().fold(turn(), |turn, word| turn.text(word)).done().bytes(),
        }
    }
}
