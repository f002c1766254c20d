//! Bodies of `application/vnd.amazon.eventstream` as a script says, with the lengths and checksums that no fuzzer guesses.

/// What frames may be: the type of their message, and their name.
const KINDS: [(&str, &str); 8] = [
    ("event", "messageStart"),
    ("event", "contentBlockStart"),
    ("event", "contentBlockDelta"),
    ("event", "contentBlockStop"),
    ("event", "messageStop"),
    ("event", "metadata"),
    ("exception", "throttlingException"),
    ("error", "InternalError"),
];

/// A body with a frame for each line of `script`: its first byte is the frame's kind, a digit from 0 to 7 or any other byte, and the
/// rest its payload. Where that byte is no ASCII the line is all of the frame's headers, and the next one its payload.
pub fn written(script: &[u8]) -> Vec<u8> {
    let mut lines = script.split(|byte| *byte == b'\n');
    let mut body = Vec::new();
    while let Some(line) = lines.next() {
        let Some((kind, rest)) = line.split_first() else { continue };
        match kind.is_ascii() {
            true => frame(&mut body, &headers(KINDS[usize::from(kind & 7)]), rest),
            false => frame(&mut body, rest, lines.next().unwrap_or_default()),
        }
    }
    body
}

fn headers((kind, name): (&str, &str)) -> Vec<u8> {
    let of_name = if kind == "error" { ":error-code".to_owned() } else { format!(":{kind}-type") };
    let mut headers = Vec::new();
    for (header, value) in [(of_name.as_str(), name), (":content-type", "application/json"), (":message-type", kind)] {
        headers.push(u8::try_from(header.len()).unwrap_or(u8::MAX));
        headers.extend(header.as_bytes());
        // A text.
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        headers.extend(value.as_bytes());
    }
    headers
}

fn frame(body: &mut Vec<u8>, headers: &[u8], payload: &[u8]) {
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = [length(16 + headers.len() + payload.len()), length(headers.len())].concat();
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend([headers, payload].concat());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    body.extend(frame);
}
