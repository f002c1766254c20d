//! Native frames, read as strictly as the protocol promises them: `event:` line, one `data:` line, blank line, LF only.

use std::time::Duration;

use serde_json::Value;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub event: String,
    pub data: Value,
}

/// The frames of a whole stream, comments left out. Panics at anything that is not exactly a frame or a comment block.
pub fn parse(body: &str) -> Vec<Frame> {
    assert!(!body.contains('\r'), "a carriage return in {body:?}");
    assert!(body.is_empty() || body.ends_with("\n\n"), "the stream ends inside a frame: {body:?}");
    body.split_terminator("\n\n").filter(|block| !block.starts_with(':')).map(frame).collect()
}

/// The frames of a stream that can be continued, each with its event's number; comments left out.
pub fn numbered(body: &str) -> Vec<(u64, Frame)> {
    assert!(body.is_empty() || body.ends_with("\n\n"), "the stream ends inside a frame: {body:?}");
    let blocks = body.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
    let numbered = blocks.map(|block| {
        let (id, rest) = block.split_once('\n').unwrap_or_else(|| panic!("one line: {block:?}"));
        let id = id.strip_prefix("id: ").unwrap_or_else(|| panic!("no id line: {block:?}"));
        (id.parse().unwrap(), frame(rest))
    });
    numbered.collect()
}

fn frame(block: &str) -> Frame {
    let lines: Vec<&str> = block.split('\n').collect();
    let [event, data] = lines[..] else { panic!("not two lines: {block:?}") };
    let event = event.strip_prefix("event: ").unwrap_or_else(|| panic!("no event line: {block:?}"));
    let data = data.strip_prefix("data: ").unwrap_or_else(|| panic!("no data line: {block:?}"));
    Frame { event: event.to_owned(), data: serde_json::from_str(data).unwrap() }
}

/// The names of the events, in order.
pub fn names(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

/// All text chunks, joined.
pub fn text(frames: &[Frame]) -> String {
    frames.iter().filter(|frame| frame.event == "content_chunk").filter_map(|f| f.data["chunk"].as_str()).collect()
}

/// The data of the first event of that name.
pub fn data<'a>(frames: &'a [Frame], event: &str) -> &'a Value {
    let found = frames.iter().find(|frame| frame.event == event);
    &found.unwrap_or_else(|| panic!("no {event} in {frames:#?}")).data
}

/// Reads a stream until it has said `wanted`; what it said so far.
pub async fn read_until(response: &mut reqwest::Response, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        let chunk = tokio::time::timeout(Duration::from_secs(10), response.chunk()).await;
        let chunk = chunk.unwrap_or_else(|_| panic!("no {wanted:?} within 10 s, only {seen:?}")).unwrap();
        seen.push_str(std::str::from_utf8(&chunk.unwrap_or_else(|| panic!("ended with {seen:?}"))).unwrap());
    }
    seen
}
