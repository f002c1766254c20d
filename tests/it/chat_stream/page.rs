//! The reader of the original page, as it was found to behave: it splits what has come at line ends, takes lines that
//! begin with `data: ` as JSON, and when one cannot be parsed it puts it back and never gets past it.

use serde_json::Value;

/// What the page has heard.
#[derive(Default)]
pub struct Page {
    buffer: Vec<u8>,
    events: Vec<Value>,
    /// Bytes after the last whole line, or from the line on that nobody can parse.
    is_stuck: bool,
}

impl Page {
    /// One more byte has come.
    pub fn feed(&mut self, byte: u8) {
        self.buffer.push(byte);
        if byte != b'\n' || self.is_stuck {
            return;
        }
        let line = String::from_utf8(self.buffer.clone()).unwrap();
        let line = line.trim_end_matches('\n').trim_end_matches('\r');
        if let Some(json) = line.strip_prefix("data: ") {
            match serde_json::from_str(json) {
                Ok(event) => self.events.push(event),
                Err(_) => {
                    self.is_stuck = true;
                    return;
                }
            }
        }
        self.buffer.clear();
    }

    /// What it has heard, when the stream is over.
    pub fn finish(self) -> Vec<Value> {
        let rest = String::from_utf8_lossy(&self.buffer);
        assert!(!self.is_stuck, "the page would never get past {rest:?}");
        assert!(self.buffer.is_empty(), "the stream ends inside a line: {rest:?}");
        self.events
    }
}

/// The events of a whole stream, byte by byte. Each has its event line, its one data line and its blank line.
pub fn read(body: &str) -> Vec<Value> {
    for block in body.split_terminator("\n\n").filter(|block| !block.starts_with(':')) {
        let lines: Vec<&str> = block.split('\n').collect();
        assert!(matches!(lines[..], ["event: message", data] if data.starts_with("data: {")), "{block:?}");
    }
    let mut page = Page::default();
    body.bytes().for_each(|byte| page.feed(byte));
    page.finish()
}

#[test]
fn the_page_reads_both_line_ends_and_stops_at_what_it_cannot_parse() {
    let events = |body: &str| {
        let mut page = Page::default();
        body.bytes().for_each(|byte| page.feed(byte));
        (page.events.len(), page.is_stuck)
    };
    let rows = [
        ("event: message\ndata: {}\n\n: ping\n\ndata: {}\n\n", (2, false), "line feeds"),
        ("event: message\r\ndata: {}\r\n\r\n: ping\r\n\r\ndata: {}\r\n\r\n", (2, false), "carriage returns"),
        ("data: {}\n\ndata: {\n\ndata: {}\n\n", (1, true), "a line that is no JSON"),
    ];
    for (body, expected, reason) in rows {
        assert_eq!(events(body), expected, "{reason}");
    }
}
