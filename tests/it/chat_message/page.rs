//! The reader of the pages that this protocol is for, with all that it does and does not do.

use serde_json::Value;

/// A message in the page's list.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub id: String,
    pub content: String,
}

/// An open page.
#[derive(Debug, Default)]
pub struct Page {
    pub messages: Vec<Shown>,
    /// The bubble that streams.
    pub bubble: Option<String>,
    /// What it logs, and skips.
    pub skipped: Vec<String>,
}

impl Page {
    /// Reads one answer, which comes in these pieces. What comes behind `complete` in the piece with it is looked at; later
    /// pieces are not.
    pub fn read(&mut self, pieces: &[&[u8]]) {
        let mut rest: Vec<u8> = Vec::new();
        let mut is_over = false;
        for piece in pieces {
            rest.extend_from_slice(piece);
            while let Some(at) = rest.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = rest.drain(..at + 2).collect();
                is_over |= self.block(&String::from_utf8_lossy(&block[..at]));
            }
            if is_over {
                return;
            }
        }
    }

    /// Whether it says that the answer is over.
    fn block(&mut self, block: &str) -> bool {
        let data = block.split('\n').filter_map(|line| line.strip_prefix("data:")).map(str::trim_start);
        let data = data.collect::<Vec<_>>().join("\n");
        if data.is_empty() || data == "[DONE]" {
            return false;
        }
        let Ok(event) = serde_json::from_str::<Value>(&data) else {
            self.skipped.push(data);
            return false;
        };
        match (event["type"].as_str(), &event["chunk"], &event["message"]) {
            (Some("chunk"), Value::String(chunk), _) => {
                self.bubble.get_or_insert_default().push_str(chunk);
                false
            }
            (Some("complete"), _, message @ Value::Object(_)) => {
                let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
                let shown = Shown { id: text("id"), content: text("content") };
                assert!(
                    self.messages.iter().all(|known| known.id != shown.id),
                    "a list with one key twice breaks the page"
                );
                self.messages.push(shown);
                self.bubble = None;
                true
            }
            _ => false,
        }
    }
}
