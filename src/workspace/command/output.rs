//! Reading a pipe to its end: the head is kept, the rest is counted while it comes.

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc::Sender;

use super::request::{Line, Stream};

/// Bytes read at a time: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// Bytes of a line that are told while the command runs.
const LINE: usize = 4_096;

/// What is kept of an output.
#[derive(Debug)]
pub(super) struct Head {
    kept: Vec<u8>,
    limit: usize,
    lost: u64,
}

impl Head {
    /// Keeps at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: Vec::new(), limit, lost: 0 }
    }

    /// Takes what fits, counts what does not.
    fn push(&mut self, chunk: &[u8]) {
        let fits = chunk.len().min(self.limit - self.kept.len());
        self.kept.extend_from_slice(&chunk[..fits]);
        self.lost += (chunk.len() - fits) as u64;
    }

    /// The text, and how many bytes of the output are not in it. A character that was cut in half is left out.
    pub(super) fn into_text(mut self) -> (String, u64) {
        if self.lost > 0 {
            let whole = self.kept.utf8_chunks().last().map_or(0, |last| {
                // Only the beginning of a character is incomplete; anything else is just not UTF-8.
                let broken = last.invalid();
                if is_beginning(broken) { broken.len() } else { 0 }
            });
            self.kept.truncate(self.kept.len() - whole);
            self.lost += whole as u64;
        }
        (String::from_utf8_lossy(&self.kept).into_owned(), self.lost)
    }
}

/// Whether bytes at the end could be the beginning of a longer character.
fn is_beginning(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Reads `pipe` to its end or first error. Lines go to `lines` as they come; one that nobody takes at once is lost.
pub(super) async fn read(
    mut pipe: impl AsyncRead + Unpin,
    head: &mut Head,
    stream: Stream,
    lines: Option<Sender<Line>>,
) {
    let mut told = lines.map(|lines| Lines { stream, lines, begun: Vec::new() });
    let mut chunk = vec![0; CHUNK];
    while let Ok(count) = pipe.read(&mut chunk).await {
        if count == 0 {
            break;
        }
        head.push(&chunk[..count]);
        if let Some(told) = &mut told {
            told.push(&chunk[..count]);
        }
    }
    if let Some(told) = told {
        told.end();
    }
}

/// Lines in the making.
struct Lines {
    stream: Stream,
    lines: Sender<Line>,
    begun: Vec<u8>,
}

impl Lines {
    fn push(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let fits = text.len().min(LINE - self.begun.len());
            self.begun.extend_from_slice(&text[..fits]);
            if ended {
                self.tell();
            }
        }
    }

    fn tell(&mut self) {
        let text = String::from_utf8_lossy(&self.begun).into_owned();
        // A slow reader loses lines: the command never waits for it.
        let _ = self.lines.try_send(Line { stream: self.stream, text });
        self.begun.clear();
    }

    fn end(mut self) {
        if !self.begun.is_empty() {
            self.tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    fn text(limit: usize, chunks: &[&[u8]]) -> (String, u64) {
        let mut head = Head::new(limit);
        for chunk in chunks {
            head.push(chunk);
        }
        head.into_text()
    }

    #[test]
    fn the_head_is_kept_and_the_rest_counted() {
        type Row<'a> = (&'a str, usize, &'a [&'a [u8]], &'a str, u64);
        let table: [Row<'_>; 7] = [
            ("all of it", 5, &[b"ab", b"cde"], "abcde", 0),
            ("cut in a chunk", 3, &[b"ab", b"cde", b"f"], "abc", 3),
            ("nothing kept", 0, &[b"ab"], "", 2),
            ("a character cut in half", 3, &["aé€".as_bytes()], "aé", 3),
            ("half a character cut", 4, &["aé€".as_bytes()], "aé", 3),
            ("not UTF-8 at the end", 2, &[b"a\xff", b"b"], "a\u{fffd}", 1),
            ("half a character, uncut", 9, &[b"a\xc3"], "a\u{fffd}", 0),
        ];
        for (reason, limit, chunks, expected, lost) in table {
            assert_eq!(text(limit, chunks), (expected.to_owned(), lost), "{reason}");
        }
    }

    #[tokio::test]
    async fn lines_are_told_without_waiting() {
        let (sender, mut receiver) = mpsc::channel(3);
        let mut head = Head::new(4);
        let long = "x".repeat(5_000);
        let bytes = format!("one\n{long}\nlast\nlost\nlost too");
        read(bytes.as_bytes(), &mut head, Stream::Stderr, Some(sender)).await;
        let mut texts = Vec::new();
        while let Some(Line { stream: Stream::Stderr, text }) = receiver.recv().await {
            texts.push(text);
        }
        assert_eq!(texts, ["one".to_owned(), "x".repeat(4_096), "last".to_owned()]);
        assert_eq!(head.into_text(), ("one\n".to_owned(), bytes.len() as u64 - 4));
    }
}
