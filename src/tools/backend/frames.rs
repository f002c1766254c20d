//! An answer that comes in frames while the backend works: JSON objects, one a line or one an event. `{"result": …}` is the
//! answer and the last of them, `{"error": "…"}` a failure, everything else tells how far the work has come.
//!
//! **Invariant:** bounded. A frame has a size, an answer a number of frames, and the texts of progress are cut.

use serde_json::{Map, Value};

use super::BackendError;
use crate::chat::tool::Progress;

/// 256 KiB: the data found so far, in one frame.
const MAX_FRAME_BYTES: usize = 256 << 10;

/// 10,000 frames are ten a second for a quarter of an hour.
const MAX_FRAMES: usize = 10_000;

/// How long a stage's name may be, in characters.
const STAGE_CHARS: usize = 100;

/// How long the words about a stage may be, in characters.
const MESSAGE_CHARS: usize = 1000;

/// How much of a failure's words the model reads, in characters.
const ERROR_CHARS: usize = 2000;

/// How frames stand in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Each is a line.
    Ndjson,
    /// Each is the data of an event of a `text/event-stream`.
    Sse,
}

impl Framing {
    /// The value of `Accept`.
    pub(super) fn accept(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson, application/json",
            Self::Sse => "text/event-stream, application/json",
        }
    }
}

/// What a frame says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// How far the work has come.
    Progress(Progress),
    /// The answer.
    Result(Value),
    /// The work failed.
    Failed(String),
}

/// Takes an answer apart, however its bytes are cut.
#[derive(Debug)]
pub(super) struct Splitter {
    framing: Framing,
    /// The line that is still coming.
    line: Vec<u8>,
    /// The last byte was a CR: an LF right after it belongs to the same line end.
    after_cr: bool,
    /// The data of the event that is still coming.
    data: Vec<u8>,
    seen: usize,
}

impl Splitter {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, line: Vec::new(), after_cr: false, data: Vec::new(), seen: 0 }
    }

    /// Takes the next bytes, and adds the texts of the frames that are complete to `frames`.
    pub(super) fn push(&mut self, bytes: &[u8], frames: &mut Vec<Vec<u8>>) -> Result<(), BackendError> {
        let mut rest = bytes;
        if std::mem::take(&mut self.after_cr) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|b| *b == b'\n' || (*b == b'\r' && self.framing == Framing::Sse)) {
            self.grow(&rest[..end])?;
            self.end_line(frames)?;
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.grow(rest)
    }

    /// The frames that are left when the answer ends.
    pub(super) fn finish(mut self) -> Result<Vec<Vec<u8>>, BackendError> {
        let mut frames = Vec::new();
        self.end_line(&mut frames)?;
        if self.framing == Framing::Sse {
            // An event that the end cuts short of its blank line counts.
            self.end_line(&mut frames)?;
        }
        Ok(frames)
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), BackendError> {
        if self.line.len() + self.data.len() + bytes.len() > MAX_FRAME_BYTES {
            return Err(BackendError::Frames("has a frame that is too large"));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, frames: &mut Vec<Vec<u8>>) -> Result<(), BackendError> {
        let line = std::mem::take(&mut self.line);
        match self.framing {
            Framing::Ndjson if line.trim_ascii().is_empty() => Ok(()),
            Framing::Ndjson => self.add(line, frames),
            Framing::Sse if line.is_empty() => {
                let data = std::mem::take(&mut self.data);
                if data.trim_ascii().is_empty() { Ok(()) } else { self.add(data, frames) }
            }
            Framing::Sse => {
                if let Some(value) = line.strip_prefix(b"data:") {
                    if !self.data.is_empty() {
                        self.data.push(b'\n');
                    }
                    self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
                }
                Ok(())
            }
        }
    }

    fn add(&mut self, frame: Vec<u8>, frames: &mut Vec<Vec<u8>>) -> Result<(), BackendError> {
        self.seen += 1;
        if self.seen > MAX_FRAMES {
            return Err(BackendError::Frames("has too many frames"));
        }
        frames.push(frame);
        Ok(())
    }
}

/// What the frame `value` says.
pub(super) fn read(value: Value) -> Result<Frame, BackendError> {
    let Value::Object(mut frame) = value else {
        return Err(BackendError::Frames("has a frame that is not a JSON object"));
    };
    if let Some(result) = frame.shift_remove("result") {
        return Ok(Frame::Result(result));
    }
    match frame.shift_remove("error") {
        None | Some(Value::Null) => {}
        Some(Value::String(words)) => return Ok(Frame::Failed(cut(&words, ERROR_CHARS))),
        Some(other) => return Ok(Frame::Failed(cut(&other.to_string(), ERROR_CHARS))),
    }
    Ok(Frame::Progress(progress(&mut frame)))
}

fn progress(frame: &mut Map<String, Value>) -> Progress {
    let text = |frame: &Map<String, Value>, key: &str, chars| {
        frame.get(key).and_then(Value::as_str).map(|text| cut(text, chars)).unwrap_or_default()
    };
    Progress {
        stage: text(frame, "stage", STAGE_CHARS),
        message: text(frame, "message", MESSAGE_CHARS),
        fraction: frame.get("progress").and_then(Value::as_f64).map(|fraction| fraction.clamp(0.0, 1.0)),
        data: frame.shift_remove("data").filter(|data| !data.is_null()),
    }
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn split(framing: Framing, body: &[u8], size: usize) -> Result<Vec<String>, BackendError> {
        let mut splitter = Splitter::new(framing);
        let mut frames = Vec::new();
        for piece in body.chunks(size) {
            splitter.push(piece, &mut frames)?;
        }
        frames.extend(splitter.finish()?);
        Ok(frames.into_iter().map(|frame| String::from_utf8(frame).unwrap()).collect())
    }

    #[test]
    fn frames_are_the_same_however_the_bytes_are_cut() {
        let rows: [(Framing, &str, &[&str], &str); 7] = [
            (Framing::Ndjson, "{\"a\":1}\n{\"b\":\"é\"}\n", &["{\"a\":1}", "{\"b\":\"é\"}"], "lines"),
            (Framing::Ndjson, "\n {}\r\n\n{}", &[" {}\r", "{}"], "empty lines, and an end without one"),
            (Framing::Sse, "data: {}\n\ndata:{}\n\n", &["{}", "{}"], "one optional space"),
            (Framing::Sse, "event: x\ndata: {\ndata: }\r\n\r\n", &["{\n}"], "several lines are one text"),
            (Framing::Sse, ": hi\n\ndata: {}\r\rid: 1\n\n", &["{}"], "comments and other fields"),
            (Framing::Sse, "data: {}", &["{}"], "an end without a blank line"),
            (Framing::Sse, "{}\n\n", &[], "no field"),
        ];
        for (framing, body, expected, reason) in rows {
            for size in [1, 2, 3, 100] {
                assert_eq!(split(framing, body.as_bytes(), size).unwrap(), expected, "{reason}, {size}");
            }
        }
    }

    #[test]
    fn frames_are_bounded_in_size_and_number() {
        let long = [b"\"".as_slice(), &vec![b'x'; MAX_FRAME_BYTES], b"\n"].concat();
        assert!(matches!(split(Framing::Ndjson, &long, 4096), Err(BackendError::Frames(_))));
        let lines = "{}\n".repeat(MAX_FRAMES + 1);
        assert!(matches!(split(Framing::Ndjson, lines.as_bytes(), 4096), Err(BackendError::Frames(_))));
        let event = [b"data: ".as_slice(), &vec![b'x'; MAX_FRAME_BYTES / 2], b"\n"].concat();
        assert!(matches!(split(Framing::Sse, &event.repeat(3), 4096), Err(BackendError::Frames(_))));
    }

    #[test]
    fn a_frame_says_one_of_three_things() {
        let progress = |stage: &str, message: &str, fraction, data| {
            Frame::Progress(Progress { stage: stage.to_owned(), message: message.to_owned(), fraction, data })
        };
        let rows = [
            (json!({"result": null, "stage": "x"}), Frame::Result(Value::Null), "a result is the answer, even none"),
            (json!({"error": "no"}), Frame::Failed("no".to_owned()), "a failure"),
            (json!({"error": {"code": 7}}), Frame::Failed("{\"code\":7}".to_owned()), "a failure with an object"),
            (
                json!({"stage": "search", "message": "Looking", "progress": 0.5, "data": {"n": 1}, "error": null}),
                progress("search", "Looking", Some(0.5), Some(json!({"n": 1}))),
                "progress",
            ),
            (json!({"progress": 7, "stage": 1, "data": null}), progress("", "", Some(1.0), None), "half of it is odd"),
            (json!({}), progress("", "", None, None), "nothing at all"),
        ];
        for (frame, expected, reason) in rows {
            assert_eq!(read(frame).unwrap(), expected, "{reason}");
        }
        assert!(read(json!([])).is_err());
    }
}
