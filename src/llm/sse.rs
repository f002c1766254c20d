//! Server-Sent Events out of bytes. `eventsource-stream` is the grammar; this reader stands before it, because the crate
//! has no limits, scans its buffer anew for every chunk, drops an event that the body's end cuts short of its blank line
//! and panics on a byte order mark. Here bytes become lines in linear time, and the crate gets one whole event at a time,
//! unless it is one line of data: those are read here, since the grammar costs more than everything else about a chunk.

use std::convert::Infallible;

use eventsource_stream::Eventsource;
use futures::{FutureExt, StreamExt, stream};

use super::answer::{Ending, Frames, Unreadable};

/// 16 MiB for one event: whole tool arguments may come in one line.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// 64 KiB of text that is no event: a vendor's error object is far smaller. Of more than that the beginning is kept, which
/// is no JSON any more and so never taken for nothing.
const MAX_TAIL_BYTES: usize = 64 << 10;

/// The fields that the grammar knows; any other line is no field.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// Reads an event stream piece by piece; a frame is the data of one event, or raw JSON that stands before one.
#[derive(Debug, Default)]
pub(crate) struct Sse {
    /// The line that is still coming.
    line: Vec<u8>,
    /// The last byte was a CR: an LF right after it belongs to the same line end.
    after_cr: bool,
    /// Whether a line has ended yet; a byte order mark may stand before the first.
    started: bool,
    /// The field lines of the event that is still coming, each ended by one LF.
    event: Vec<u8>,
    /// What looks like raw JSON since the newest event: some vendors report an error that way.
    tail: Vec<u8>,
}

impl Frames for Sse {
    fn push(&mut self, mut bytes: &[u8], hand_over: &mut impl FnMut(&str)) -> Result<(), Unreadable> {
        if bytes.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.after_cr) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.check_size(end)?;
            if let Some(data) = self.whole_event(bytes, end) {
                if !data.is_empty() {
                    hand_over(data);
                }
                bytes = &bytes[end + 2..];
                continue;
            }
            match self.line.is_empty() {
                // A line that came whole is read where it is.
                true => self.end_line(&bytes[..end], hand_over)?,
                false => {
                    self.line.extend_from_slice(&bytes[..end]);
                    self.end_begun_line(hand_over)?;
                }
            }
            let is_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_cr {
                self.after_cr = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.check_size(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(mut self) -> Result<Ending, Unreadable> {
        let mut frames = Vec::new();
        let mut keep = |frame: &str| frames.push(frame.to_owned());
        self.end_begun_line(&mut keep)?;
        self.dispatch(&mut keep)?;
        Ok(Ending { frames, tail: String::from_utf8_lossy(&self.tail).into_owned() })
    }
}

impl Sse {
    /// Whether so many more bytes of the event are not too many.
    fn check_size(&self, more: usize) -> Result<(), Unreadable> {
        match self.event.len() + self.line.len() + more > MAX_EVENT_BYTES {
            true => Err(Unreadable::TooLong { limit: MAX_EVENT_BYTES }),
            false => Ok(()),
        }
    }

    /// The data of the event that `bytes` begin with, where nothing came before it and it is all there: a line of data that
    /// ends at `end`, and a blank one. Nearly all are so; those are not copied.
    fn whole_event<'a>(&self, bytes: &'a [u8], end: usize) -> Option<&'a str> {
        let is_new = self.started && self.line.is_empty() && self.event.is_empty() && self.tail.is_empty();
        if !is_new || !bytes[end..].starts_with(b"\n\n") {
            return None;
        }
        let data = bytes[..end].strip_prefix(b"data:")?;
        std::str::from_utf8(data.strip_prefix(b" ").unwrap_or(data)).ok()
    }

    fn end_begun_line(&mut self, hand_over: &mut impl FnMut(&str)) -> Result<(), Unreadable> {
        let mut line = std::mem::take(&mut self.line);
        self.end_line(&line, hand_over)?;
        // Its capacity is used for the next one.
        line.clear();
        self.line = line;
        Ok(())
    }

    fn end_line(&mut self, mut line: &[u8], hand_over: &mut impl FnMut(&str)) -> Result<(), Unreadable> {
        if !self.started {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
            self.started = true;
        }
        let name = &line[..memchr::memchr(b':', line).unwrap_or(line.len())];
        if FIELDS.contains(&name) {
            self.event.extend_from_slice(line);
            self.event.push(b'\n');
        } else if line.is_empty() {
            self.dispatch(hand_over)?;
        } else if let (b"error", Some(error @ [b'{', ..])) = (name, line.get(6..).map(<[u8]>::trim_ascii)) {
            // llama.cpp's field until September 2025 (llama.cpp#16109).
            self.keep(&[br#"{"error":"#, error, b"}"].concat());
        } else if !name.is_empty() {
            // Lines before the JSON are fields of some extension and say nothing.
            let is_json = !self.tail.is_empty() || matches!(line.trim_ascii_start().first(), Some(b'{' | b'['));
            if is_json {
                self.keep(line);
            }
        }
        Ok(())
    }

    /// Keeps a line of raw JSON.
    fn keep(&mut self, line: &[u8]) {
        let space = MAX_TAIL_BYTES - self.tail.len();
        self.tail.extend(line.iter().chain(b"\n").take(space));
    }

    /// Hands the lines of one event to the grammar. They are complete, so the crate's stream never waits; one line at a
    /// time, so its buffer never holds more than that.
    fn dispatch(&mut self, hand_over: &mut impl FnMut(&str)) -> Result<(), Unreadable> {
        if self.event.is_empty() {
            return Ok(());
        }
        let mut event_lines = std::mem::take(&mut self.event);
        if let Some(data) = only_data(&event_lines) {
            self.say(data, hand_over);
            // Its capacity is used for the next one.
            event_lines.clear();
            self.event = event_lines;
            return Ok(());
        }
        let lines = event_lines.split_inclusive(|b| *b == b'\n').chain([b"\n".as_slice()]);
        let mut events = stream::iter(lines.map(Ok::<_, Infallible>)).eventsource();
        while let Some(Some(event)) = events.next().now_or_never() {
            let event = event.map_err(|source| Unreadable::NotSse { source: Box::new(source) })?;
            self.say(&event.data, hand_over);
        }
        Ok(())
    }

    fn say(&mut self, data: &str, hand_over: &mut impl FnMut(&str)) {
        if data.is_empty() {
            return;
        }
        // Raw JSON with an event behind it is no tail, and as much to be understood as the event.
        if !self.tail.is_empty() {
            hand_over(&String::from_utf8_lossy(&std::mem::take(&mut self.tail)));
        }
        hand_over(data);
    }
}

/// The data of an event as nearly all have it: one line of data, perhaps behind its name. The full parser reads any
/// other event, and one that is not UTF-8.
fn only_data(lines: &[u8]) -> Option<&str> {
    let lines = std::str::from_utf8(lines).ok()?;
    let data = match lines.strip_prefix("event:") {
        Some(named) => named.split_once('\n')?.1,
        None => lines,
    };
    let data = data.strip_prefix("data:")?.strip_suffix('\n')?;
    (!data.contains('\n')).then(|| data.strip_prefix(' ').unwrap_or(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything `body` holds, cut into pieces of `size` bytes.
    fn read(body: &[u8], size: usize) -> Result<(Vec<String>, String), Unreadable> {
        let mut reader = Sse::default();
        let mut frames = Vec::new();
        for piece in body.chunks(size) {
            reader.push(piece, &mut |frame| frames.push(frame.to_owned()))?;
        }
        let ending = reader.finish()?;
        frames.extend(ending.frames);
        Ok((frames, ending.tail))
    }

    #[test]
    fn events_are_read_the_same_however_the_bytes_are_cut() {
        let cases: [(&str, &[&str], &str, &str); 15] = [
            ("data: a\n\ndata:b\n\n", &["a", "b"], "", "one optional space"),
            ("data:  a \n\n", &[" a "], "", "only one space is taken"),
            ("data: a\ndata: b\n\n", &["a\nb"], "", "several lines are one text"),
            ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["a", "b", "c"], "", "all three line ends"),
            (": note\n\nid: 7\nretry: 1\n\nevent: ping\n\n", &[], "", "an event without data is none"),
            ("event: x\ndata: a", &["a"], "", "the body's end ends the event"),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"], "", "a byte order mark belongs at the beginning only"),
            ("data: a\u{2028}é\u{85}\n\n", &["a\u{2028}é\u{85}"], "", "other separators are text"),
            ("data\n\ndata:\n\ndata: \n\n", &[], "", "empty data"),
            ("unknown: x\nfoo\ndata: a\n\n", &["a"], "", "unknown fields"),
            ("data: a\n\n{\n \"error\": {}\n}\n", &["a"], "{\n \"error\": {}\n}\n", "raw JSON is kept"),
            ("{\n1}\n\nid: 7\n\ndata: a\n\n[2]\n", &["{\n1}\n", "a"], "[2]\n", "before an event it is a frame"),
            ("error: {\"code\":4}\n\ndata: a\n\n", &["{\"error\":{\"code\":4}}\n", "a"], "", "llama.cpp's field"),
            ("data: a\n\nerror: {}\nerror: x\n", &["a"], "{\"error\":{}}\nerror: x\n", "and at the end"),
            ("", &[], "", "nothing"),
        ];
        for (body, frames, tail, why) in cases {
            for size in [1, 2, 3, 7, 1000] {
                let (got, got_tail) = read(body.as_bytes(), size).unwrap();
                assert_eq!((got, got_tail.as_str()), (frames.iter().map(|&f| f.to_owned()).collect(), tail), "{why}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_an_error() {
        assert!(matches!(read(b"data: \xff\n\n", 3), Err(Unreadable::NotSse { .. })));
    }

    #[test]
    fn an_event_at_its_cap_is_read_and_one_byte_more_is_an_error() {
        let in_one_line = |bytes: usize| [b"data: ", "x".repeat(bytes - 7).as_bytes(), b"\n\n"].concat();
        let in_many_lines = |bytes: usize| {
            let first = format!("data: {}\n", "x".repeat(bytes % 1024 + 1024 - 7));
            (first + &format!("data: {}\n", "x".repeat(1024 - 7)).repeat(bytes / 1024 - 1) + "\n").into_bytes()
        };
        let rows: [(Vec<u8>, bool, &str); 6] = [
            (in_one_line(MAX_EVENT_BYTES), true, "one line at the cap"),
            (in_one_line(MAX_EVENT_BYTES + 1), false, "one line over it"),
            (in_many_lines(MAX_EVENT_BYTES), true, "many lines at the cap"),
            (in_many_lines(MAX_EVENT_BYTES + 1), false, "many lines over it"),
            (vec![b'x'; MAX_EVENT_BYTES], true, "a line without end at the cap, no event"),
            (vec![b'x'; MAX_EVENT_BYTES + 1], false, "a line without end over it"),
        ];
        for (body, is_read, why) in rows {
            match read(&body, 65_536) {
                Ok(_) => assert!(is_read, "{why}"),
                Err(error) => assert!(!is_read && matches!(error, Unreadable::TooLong { .. }), "{why}: {error}"),
            }
        }
    }

    #[test]
    fn json_between_the_events_is_kept_up_to_its_cap() {
        let line = |bytes: usize| format!("{{{}\n", "x".repeat(bytes - 2));
        assert_eq!(read(line(MAX_TAIL_BYTES).as_bytes(), 4096).unwrap().1.len(), MAX_TAIL_BYTES);
        assert_eq!(
            read(line(MAX_TAIL_BYTES + 1).as_bytes(), 4096).unwrap().1,
            line(MAX_TAIL_BYTES + 1)[..MAX_TAIL_BYTES]
        );
        assert_eq!(read(line(MAX_TAIL_BYTES / 4).repeat(1000).as_bytes(), 4096).unwrap().1.len(), MAX_TAIL_BYTES);
    }

    #[test]
    fn long_lines_in_single_bytes_and_many_lines_in_one_event_are_read() {
        // Quadratic work would be 10^12 byte moves here: the test would not end.
        let long = format!("data: {}\n\n", "x".repeat(2_000_000));
        assert_eq!(read(long.as_bytes(), 1).unwrap().0[0].len(), 2_000_000);
        let many = "data: x\n".repeat(200_000) + "\n";
        assert_eq!(read(many.as_bytes(), 4096).unwrap().0[0].len(), 399_999);
    }
}
