//! A scripted model on the OpenAI wire: each turn is written down, each request is kept for the test to look at.
//!
//! Every request is checked on arrival: each call of the history is answered by exactly one result, in order.

use serde_json::{Value, json};

use super::upstream::{Answer, End, Upstream};

/// One turn of the model.
#[derive(Debug, Clone)]
pub struct Script {
    pieces: Vec<String>,
    calls: usize,
    end: End,
}

/// An empty turn, to be filled.
pub fn turn() -> Script {
    Script { pieces: Vec::new(), calls: 0, end: End::Clean }
}

impl Script {
    /// The model says this much, in one chunk.
    pub fn text(mut self, text: &str) -> Self {
        self.delta(json!({"content": text}));
        self
    }

    /// The model calls a tool, arguments as JSON.
    pub fn call(self, id: &str, name: &str, args: &Value) -> Self {
        self.call_raw(id, name, &args.to_string())
    }

    /// The model calls a tool, arguments as whatever text.
    pub fn call_raw(mut self, id: &str, name: &str, args: &str) -> Self {
        let index = self.calls;
        self.calls += 1;
        self.delta(json!({"tool_calls": [
            {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
        ]}));
        self.delta(json!({"tool_calls": [{"index": index, "function": {"arguments": args}}]}));
        self
    }

    /// The turn ends well.
    pub fn done(self) -> Self {
        let reason = if self.calls > 0 { "tool_calls" } else { "stop" };
        self.finish(reason)
    }

    /// The turn ends with this finish reason.
    pub fn finish(mut self, reason: &str) -> Self {
        self.chunk(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
        self.chunk(json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}));
        self.pieces.push("data: [DONE]\n\n".to_owned());
        self
    }

    /// The turn sends what it has and then stays silent.
    pub fn hangs(mut self) -> Self {
        self.end = End::Hang;
        self
    }

    /// The connection breaks after what was sent.
    pub fn breaks(mut self) -> Self {
        self.end = End::Abort;
        self
    }

    /// Bytes of any kind.
    pub fn raw(mut self, bytes: &str) -> Self {
        self.pieces.push(bytes.to_owned());
        self
    }

    fn delta(&mut self, delta: Value) {
        self.chunk(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}));
    }

    fn chunk(&mut self, mut chunk: Value) {
        chunk["object"] = json!("chat.completion.chunk");
        self.pieces.push(format!("data: {chunk}\n\n"));
    }

    fn answer(self) -> Answer {
        Answer::sse(self.pieces.into_iter().map(String::into_bytes)).ending(self.end)
    }
}
