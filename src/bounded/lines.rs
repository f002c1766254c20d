//! Lines as they come, each bounded: one that is too long is skipped, and only its id is kept of it, for the answer.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use super::json::check;

/// 4 MiB of a message, as many as a request to `/mcp` may have and an event of another server.
pub const LINE_BYTES: usize = 4 << 20;

/// 256 bytes of an id, as many as `/mcp` takes.
const ID_BYTES: usize = 256;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// It, with its end.
    Whole(Vec<u8>),
    /// One of more than 4 MiB, and the id in it.
    TooLong(Option<String>),
}

/// The next line; `None` at the end of `input`.
///
/// # Errors
/// When it cannot be read.
pub async fn next(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<Line>> {
    let (mut line, mut skipped) = (Vec::new(), None::<IdFinder>);
    loop {
        let buffer = input.fill_buf().await?;
        let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let read = part.len();
        match &mut skipped {
            Some(finder) => finder.read(part),
            None if line.len() + read > LINE_BYTES => {
                let finder = skipped.insert(IdFinder::default());
                finder.read(&std::mem::take(&mut line));
                finder.read(part);
            }
            None => line.extend_from_slice(part),
        }
        input.consume(read);
        if end.is_some() || read == 0 {
            return Ok(match skipped {
                Some(finder) => Some(Line::TooLong(finder.id())),
                None if line.is_empty() => None,
                None => Some(Line::Whole(line)),
            });
        }
    }
}

/// Looks for the `id` of a message that goes by, and keeps nothing else of it.
#[derive(Default)]
struct IdFinder {
    /// How many objects and lists are open.
    depth: usize,
    /// Whether it is within a text, and behind a `\` there.
    is_text: bool,
    is_escaped: bool,
    /// What stands in the outermost object since the last `:` or `,`, as far as an id may be long.
    token: Vec<u8>,
    /// Whether that is the value of `id`.
    is_of_id: bool,
    id: Option<Vec<u8>>,
}

impl IdFinder {
    fn read(&mut self, part: &[u8]) {
        part.iter().for_each(|byte| self.take(*byte));
    }

    fn take(&mut self, byte: u8) {
        if self.is_text {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.is_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                // What is no plain value is no id.
                self.keep(byte);
                self.depth += 1;
            }
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.is_of_id = self.token == b"\"id\"";
                self.token.clear();
            }
            b',' => self.end_value(),
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= ID_BYTES {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth == 1 {
            let token = std::mem::take(&mut self.token);
            if std::mem::take(&mut self.is_of_id) {
                self.id = Some(token);
            }
        }
    }

    /// The id, where it is one: a text or a whole number.
    fn id(self) -> Option<String> {
        let id = String::from_utf8(self.id?).ok()?;
        let is_plain = id.starts_with(['"', '-']) || id.starts_with(|c: char| c.is_ascii_digit());
        (id.len() <= ID_BYTES && is_plain && check(&id).is_ok()).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        let mut finder = IdFinder::default();
        finder.read(text.as_bytes());
        finder.id()
    }

    #[test]
    fn the_id_of_a_message_is_found_wherever_it_stands() {
        let rows = [
            (r#"{"id": 7, "params": {"id": 8}}"#, Some("7"), "first"),
            (r#"{"params": {"id": 8, "b": ["id", {"id": 9}]}, "id": "x-1"}"#, Some(r#""x-1""#), "last"),
            (r#"{"a": "\"id\": 5, \\", "id" : -3}"#, Some("-3"), "behind what only looks like one"),
            (r#"{"a": "id", "id": null}"#, None, "none"),
            (r#"{"id": {"id": 5}}"#, None, "no plain value"),
            (r#"{"id": [5]}"#, None, "a list"),
            (r#"[{"id": 5}]"#, None, "a batch"),
            ("}}]],,::\"", None, "nonsense"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(found(text).as_deref(), expected, "{reason}: {text}");
        }
        assert_eq!(found(&format!(r#"{{"id": "{}"}}"#, "x".repeat(300))), None, "too long");
    }

    #[tokio::test]
    async fn lines_end_where_they_end_and_long_ones_are_skipped() {
        let long = format!("{{\"a\": \"{}\", \"id\": 4}}\n", "x".repeat(LINE_BYTES));
        let text = format!("one\n{long}\ntwo");
        let mut input = tokio::io::BufReader::new(text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = next(&mut input).await.unwrap() {
            lines.push(line);
        }
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(lines, [whole("one\n"), Line::TooLong(Some("4".to_owned())), whole("\n"), whole("two")]);
    }
}
