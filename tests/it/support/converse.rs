//! Frames of Amazon's event streams, as Bedrock sends them.

/// The frame of the event called `name`, with `payload`.
pub fn event(name: &str, payload: &str) -> Vec<u8> {
    let header = |name: &str, value: &str| {
        let length = u16::try_from(value.len()).unwrap().to_be_bytes();
        [&[u8::try_from(name.len()).unwrap()][..], name.as_bytes(), &[7], &length, value.as_bytes()].concat()
    };
    let headers = [header(":event-type", name), header(":message-type", "event")].concat();
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut frame = [total.to_be_bytes(), u32::try_from(headers.len()).unwrap().to_be_bytes()].concat();
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend([&headers[..], payload.as_bytes()].concat());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame
}

/// The frame of a piece of text.
pub fn text(text: &str) -> Vec<u8> {
    event("contentBlockDelta", &serde_json::json!({"contentBlockIndex": 0, "delta": {"text": text}}).to_string())
}

/// The frames that end an answer well.
pub fn end() -> Vec<u8> {
    let stop = event("messageStop", r#"{"stopReason":"end_turn"}"#);
    let metadata = event("metadata", r#"{"usage":{"inputTokens":1,"outputTokens":3,"totalTokens":4}}"#);
    [stop, metadata].concat()
}
