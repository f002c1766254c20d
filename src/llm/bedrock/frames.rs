//! `application/vnd.amazon.eventstream` out of bytes: frames with a length, headers, a payload and two checksums.
//! <https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html>.
//!
//! ```text
//! u32 total length | u32 headers' length | u32 CRC-32 of these 8 bytes | headers | payload | u32 CRC-32 of all before
//! header: u8 length, name, u8 type, value
//! ```
//!
//! A frame is handed over as text: a line with its message type and its name (`event contentBlockDelta`), then its payload.

use crate::llm::answer::{Ending, Frames, Unreadable};

/// 16 MiB for one frame: whole tool arguments may come in one. It is the most that the format's own libraries read.
const MAX_FRAME_BYTES: usize = 16 << 20;

/// Two lengths and their checksum.
const PRELUDE_BYTES: usize = 12;

/// The bytes around headers and payload.
const LEAST_BYTES: usize = PRELUDE_BYTES + 4;

/// 64 KiB of a body that has no frames: it is an error, or a page.
const MAX_OTHER_BYTES: usize = 64 << 10;

/// Longer names of events and exceptions do not exist; what is longer has none.
const MAX_NAME_BYTES: usize = 64;

/// Reads frames piece by piece.
#[derive(Debug, Default)]
pub(super) struct EventStream {
    /// The frame that is still coming. Grows with what is there, not with what its length promises.
    frame: Vec<u8>,
    /// The text of the frame that is handed over.
    text: String,
    /// What the body is.
    body: Body,
}

/// What a body is, as its first byte says.
#[derive(Debug, Default)]
enum Body {
    /// Nothing of it is there yet.
    #[default]
    Unknown,
    Frames,
    /// JSON, as a gateway answers in a stream's place; its beginning.
    Json(Vec<u8>),
}

impl Body {
    /// The body that begins with `first`: of a length that can be the highest byte is next to nothing.
    fn beginning_with(first: u8) -> Result<Self, Unreadable> {
        match first {
            0 | 1 => Ok(Self::Frames),
            b'{' | b'[' => Ok(Self::Json(Vec::new())),
            _ => Err(Unreadable::NoFrames),
        }
    }
}

/// What the headers of a frame say.
#[derive(Debug, Default)]
struct Headers<'a> {
    message_type: &'a str,
    event_type: &'a str,
    exception_type: &'a str,
    error_code: &'a str,
    error_message: &'a str,
}

impl Frames for EventStream {
    fn push(&mut self, mut bytes: &[u8], hand_over: &mut impl FnMut(&str)) -> Result<(), Unreadable> {
        if matches!(self.body, Body::Unknown)
            && let Some(first) = bytes.first()
        {
            self.body = Body::beginning_with(*first)?;
        }
        if let Body::Json(json) = &mut self.body {
            let fits = MAX_OTHER_BYTES.saturating_sub(json.len()).min(bytes.len());
            json.extend_from_slice(&bytes[..fits]);
            return Ok(());
        }
        while !bytes.is_empty() {
            if self.frame.is_empty()
                && let Some(length) = total_length(bytes)?
                && let Some((frame, rest)) = bytes.split_at_checked(length)
            {
                // A frame that came whole is read where it is.
                write_text(frame, &mut self.text)?;
                hand_over(&self.text);
                bytes = rest;
                continue;
            }
            let wanted = total_length(&self.frame)?.unwrap_or(PRELUDE_BYTES).saturating_sub(self.frame.len());
            let (now, later) = bytes.split_at(wanted.min(bytes.len()));
            self.frame.extend_from_slice(now);
            bytes = later;
            if total_length(&self.frame)?.is_some_and(|length| self.frame.len() >= length) {
                write_text(&self.frame, &mut self.text)?;
                hand_over(&self.text);
                // Its capacity is used for the next one.
                self.frame.clear();
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Ending, Unreadable> {
        match self.body {
            Body::Json(json) => Ok(Ending { frames: Vec::new(), tail: String::from_utf8_lossy(&json).into_owned() }),
            Body::Unknown | Body::Frames if self.frame.is_empty() => Ok(Ending::default()),
            Body::Unknown | Body::Frames => Err(broken("is cut off")),
        }
    }
}

/// The length of the frame that `bytes` begin with; `None` where its prelude is not all there.
fn total_length(bytes: &[u8]) -> Result<Option<usize>, Unreadable> {
    let Some((prelude, _)) = bytes.split_at_checked(PRELUDE_BYTES) else { return Ok(None) };
    let (lengths, mut checksum) = prelude.split_at(8);
    let mut read = lengths;
    let (total, headers) = (number(&mut read)?, number(&mut read)?);
    if crc32fast::hash(lengths) != number(&mut checksum)? {
        return Err(broken("has a wrong checksum of its lengths"));
    }
    let (total, headers) = (size(total), size(headers));
    if total > MAX_FRAME_BYTES {
        return Err(Unreadable::TooLong { limit: MAX_FRAME_BYTES });
    }
    if total.checked_sub(LEAST_BYTES).is_none_or(|space| headers > space) {
        return Err(broken("has lengths that do not fit each other"));
    }
    Ok(Some(total))
}

/// Writes the text of a whole `frame` over `text`.
fn write_text(frame: &[u8], text: &mut String) -> Result<(), Unreadable> {
    let cut_off = || broken("is cut off");
    let (checked, mut checksum) = frame.split_at_checked(frame.len().saturating_sub(4)).ok_or_else(cut_off)?;
    if crc32fast::hash(checked) != number(&mut checksum)? {
        return Err(broken("has a wrong checksum"));
    }
    let (mut prelude, rest) = checked.split_at_checked(PRELUDE_BYTES).ok_or_else(cut_off)?;
    let (_, headers_length) = (number(&mut prelude)?, number(&mut prelude)?);
    let (headers, payload) = rest.split_at_checked(size(headers_length)).ok_or_else(cut_off)?;
    let headers = Headers::read(headers)?;
    text.clear();
    let (kind, name) = match headers.message_type {
        "exception" => ("exception", headers.exception_type),
        "error" => ("error", headers.error_code),
        "event" => ("event", headers.event_type),
        // Of a type that does not exist yet.
        _ => ("unknown", ""),
    };
    text.push_str(kind);
    text.push(' ');
    if is_name(name) {
        text.push_str(name);
    }
    text.push('\n');
    if kind == "error" {
        // Its message is a header, it has no payload.
        text.push_str(&serde_json::json!({ "message": headers.error_message }).to_string());
    } else {
        text.push_str(std::str::from_utf8(payload).map_err(|_| broken("is not valid utf-8"))?);
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

impl<'a> Headers<'a> {
    /// Those that are known; all others, of whatever type, are read past.
    fn read(mut bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let mut headers = Self::default();
        while !bytes.is_empty() {
            let name_length = usize::from(byte(&mut bytes)?);
            let name = take(&mut bytes, name_length)?;
            let kind = byte(&mut bytes)?;
            let value_length = match kind {
                // True and false.
                0 | 1 => 0,
                2 => 1,
                3 => 2,
                4 => 4,
                // Numbers and times.
                5 | 8 => 8,
                // Bytes and texts.
                6 | 7 => usize::from(u16::from_be_bytes([byte(&mut bytes)?, byte(&mut bytes)?])),
                // An id.
                9 => 16,
                _ => return Err(broken("has a header of an unknown type")),
            };
            let value = take(&mut bytes, value_length)?;
            let field = match name {
                b":message-type" => &mut headers.message_type,
                b":event-type" => &mut headers.event_type,
                b":exception-type" => &mut headers.exception_type,
                b":error-code" => &mut headers.error_code,
                b":error-message" => &mut headers.error_message,
                _ => continue,
            };
            if kind == 7 {
                *field = std::str::from_utf8(value).map_err(|_| broken("is not valid utf-8"))?;
            }
        }
        Ok(headers)
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], Unreadable> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or_else(|| broken("has headers that are cut off"))?;
    *bytes = rest;
    Ok(taken)
}

fn byte(bytes: &mut &[u8]) -> Result<u8, Unreadable> {
    let (first, rest) = bytes.split_first().ok_or_else(|| broken("has headers that are cut off"))?;
    *bytes = rest;
    Ok(*first)
}

fn number(bytes: &mut &[u8]) -> Result<u32, Unreadable> {
    let (first, rest) = bytes.split_first_chunk().ok_or_else(|| broken("is cut off"))?;
    *bytes = rest;
    Ok(u32::from_be_bytes(*first))
}

/// A length that no memory holds is as much too long as any other.
fn size(length: u32) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

fn broken(what: &'static str) -> Unreadable {
    Unreadable::Frame { what }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const TEXT: u8 = 7;

    fn header(name: &str, kind: u8, value: &[u8]) -> Vec<u8> {
        let length = u8::try_from(name.len()).unwrap();
        let mut bytes = [&[length], name.as_bytes(), &[kind]].concat();
        if matches!(kind, 6 | 7) {
            bytes.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        }
        bytes.extend(value);
        bytes
    }

    fn frame_of(headers: &[u8], payload: &[u8]) -> Vec<u8> {
        let total = u32::try_from(LEAST_BYTES + headers.len() + payload.len()).unwrap();
        let mut frame = [total.to_be_bytes(), u32::try_from(headers.len()).unwrap().to_be_bytes()].concat();
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame.extend([headers, payload].concat());
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame
    }

    /// A frame as the service writes it.
    pub(in crate::llm::bedrock) fn frame(message_type: &str, name: &str, payload: &str) -> Vec<u8> {
        let name = header(&format!(":{message_type}-type"), TEXT, name.as_bytes());
        let content_type = header(":content-type", TEXT, b"application/json");
        let message_type = header(":message-type", TEXT, message_type.as_bytes());
        frame_of(&[name, content_type, message_type].concat(), payload.as_bytes())
    }

    /// The texts of the frames in `body`, cut into pieces of `size` bytes, and what went wrong.
    fn read(body: &[u8], size: usize) -> (Vec<String>, Option<String>) {
        let mut reader = EventStream::default();
        let mut frames = Vec::new();
        for piece in body.chunks(size) {
            if let Err(error) = reader.push(piece, &mut |frame| frames.push(frame.to_owned())) {
                return (frames, Some(error.to_string()));
            }
        }
        let end = reader.finish();
        (frames, end.err().map(|error| error.to_string()))
    }

    #[test]
    fn frames_are_read_the_same_however_the_bytes_are_cut() {
        let odd = [
            header("a", 0, b""),
            header("b", 1, b""),
            header("c", 2, b"1"),
            header("d", 3, b"12"),
            header("e", 4, b"1234"),
            header("f", 5, b"12345678"),
            header("g", 6, b"\xff\n"),
            header("h", 8, b"12345678"),
            header("i", 9, b"1234567890123456"),
            header(":message-type", TEXT, b"event"),
            header(":event-type", TEXT, "né\nw".as_bytes()),
        ];
        let failed = [
            header(":message-type", TEXT, b"error"),
            header(":error-code", TEXT, b"InternalError"),
            header(":error-message", TEXT, b"it \"broke\""),
        ];
        let all = [
            frame("event", "messageStart", r#"{"role":"assistant"}"#),
            frame("event", "contentBlockDelta", "{\"é\":1}"),
            frame_of(&odd.concat(), b"{}"),
            frame_of(b"", b""),
            frame_of(&failed.concat(), b""),
            frame("exception", "throttlingException", r#"{"message":"slow"}"#),
        ];
        let body = all.concat();
        let ends: Vec<usize> = (1..=all.len()).map(|frames| all[..frames].concat().len()).collect();
        let expected = [
            "event messageStart\n{\"role\":\"assistant\"}",
            "event contentBlockDelta\n{\"é\":1}",
            "event \n{}",
            "unknown \n",
            "error InternalError\n{\"message\":\"it \\\"broke\\\"\"}",
            "exception throttlingException\n{\"message\":\"slow\"}",
        ]
        .map(str::to_owned);
        for size in 1..=body.len() {
            let (frames, error) = read(&body, size);
            assert_eq!((frames.as_slice(), error), (&expected[..], None), "{size}");
        }
        for end in 0..body.len() {
            // Whole frames are there, and a part of one more is an error wherever it ends.
            let whole = ends.iter().take_while(|whole| **whole <= end).count();
            let is_between = end == 0 || ends.contains(&end);
            let expected_error = (!is_between).then(|| "a frame of the answer is cut off".to_owned());
            for size in [1, 7, 100_000] {
                let (frames, error) = read(&body[..end], size);
                assert_eq!((frames.as_slice(), &error), (&expected[..whole], &expected_error), "{end}");
            }
        }
    }

    #[test]
    fn any_wrong_byte_is_an_error() {
        let body = frame("event", "messageStop", r#"{"stopReason":"end_turn"}"#);
        for at in 0..body.len() {
            let mut body = body.clone();
            body[at] ^= 0x10;
            for size in [1, 5, 1000] {
                let (frames, error) = read(&body, size);
                // The first byte says whether there are frames at all.
                let expected = if at == 0 { "not an event stream" } else { "checksum" };
                assert!(frames.is_empty() && error.is_some_and(|error| error.contains(expected)), "{at}");
            }
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_as_soon_as_they_are_there() {
        let prelude = |total: u32, headers: u32| {
            let lengths = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            [&lengths[..], &crc32fast::hash(&lengths).to_be_bytes()].concat()
        };
        let most = u32::try_from(MAX_FRAME_BYTES).unwrap();
        for (bytes, expected, why) in [
            (prelude(most, 0), "is cut off", "at the cap"),
            (prelude(most + 1, 0), "is longer than", "over it"),
            (prelude(u32::MAX, u32::MAX), "not an event stream", "as long as can be"),
            (prelude(0, 0), "do not fit", "less than nothing"),
            (prelude(15, 0), "do not fit", "one byte too short"),
            (prelude(16, 1), "do not fit", "headers over the end"),
            (prelude(100, u32::MAX), "do not fit", "headers without end"),
            (b"<html><body>no".to_vec(), "not an event stream", "a page"),
        ] {
            let (frames, error) = read(&bytes, 5);
            assert!(frames.is_empty() && error.as_deref().is_some_and(|e| e.contains(expected)), "{why}: {error:?}");
        }
    }

    #[test]
    fn headers_that_cannot_be_read_are_an_error() {
        for (headers, expected) in [
            (vec![9, b'a'], "cut off"),
            (vec![1, b'a'], "cut off"),
            (vec![1, b'a', 7, 0, 9, b'x'], "cut off"),
            (vec![1, b'a', 10], "unknown type"),
            (header(":message-type", TEXT, b"\xff"), "utf-8"),
        ] {
            let (_, error) = read(&frame_of(&headers, b"{}"), 1000);
            assert!(error.as_deref().is_some_and(|error| error.contains(expected)), "{headers:?}: {error:?}");
        }
        let (_, error) = read(&frame_of(b"", b"\xff"), 1000);
        assert_eq!(error.as_deref(), Some("a frame of the answer is not valid utf-8"));
    }
}
