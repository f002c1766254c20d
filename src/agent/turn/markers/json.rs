//! Where a JSON list or object ends in a text that is still coming: byte by byte, wrong ones refused at once.

/// As deep as the parser behind it goes.
const MOST_DEEP: usize = 100;

/// Reads one list or object.
#[derive(Debug)]
pub(super) struct Scanner {
    /// The open brackets, outermost first.
    open: Vec<Bracket>,
    expect: Expect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    List,
    Object,
}

#[derive(Debug, Clone, Copy)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    /// In a text; whether it is a key.
    Text {
        key: bool,
    },
    /// Behind a backslash in a text.
    Escape {
        key: bool,
    },
    Number,
    /// The rest of `true`, `false` or `null`.
    Word(&'static [u8]),
}

/// The result of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// There is more to come.
    More,
    /// This was the last.
    Done,
    /// This can be no JSON.
    Wrong,
}

impl Scanner {
    /// Nothing read yet; the first byte has to open a list or an object.
    pub(super) fn new() -> Self {
        Self { open: Vec::new(), expect: Expect::Value }
    }

    /// Reads a byte.
    pub(super) fn push(&mut self, byte: u8) -> Step {
        match self.expect {
            Expect::Text { key } => {
                self.expect = match byte {
                    b'"' if key => Expect::Colon,
                    b'"' => Expect::CommaOrEnd,
                    b'\\' => Expect::Escape { key },
                    0..0x20 => return Step::Wrong,
                    _ => return Step::More,
                };
                return Step::More;
            }
            Expect::Escape { key } => {
                self.expect = Expect::Text { key };
                // The four digits behind a u are plain bytes of the text here; the parser looks at them.
                return if br#""\/bfnrtu"#.contains(&byte) { Step::More } else { Step::Wrong };
            }
            Expect::Word([next, rest @ ..]) => {
                self.expect = if rest.is_empty() { Expect::CommaOrEnd } else { Expect::Word(rest) };
                return if byte == *next { Step::More } else { Step::Wrong };
            }
            Expect::Number if byte.is_ascii_digit() || b"+-.eE".contains(&byte) => return Step::More,
            Expect::Number | Expect::Word([]) => self.expect = Expect::CommaOrEnd,
            Expect::Value
            | Expect::ValueOrEnd
            | Expect::Key
            | Expect::KeyOrEnd
            | Expect::Colon
            | Expect::CommaOrEnd => {}
        }
        if b" \t\r\n".contains(&byte) {
            return Step::More;
        }
        self.expect = match (self.expect, byte) {
            (Expect::Value | Expect::ValueOrEnd, b'[') => return self.opens(Bracket::List),
            (Expect::Value | Expect::ValueOrEnd, b'{') => return self.opens(Bracket::Object),
            (Expect::ValueOrEnd, b']') | (Expect::KeyOrEnd, b'}') => return self.closes(),
            (Expect::Value | Expect::ValueOrEnd, _) if self.open.is_empty() => return Step::Wrong,
            (Expect::Value | Expect::ValueOrEnd, b'"') => Expect::Text { key: false },
            (Expect::Value | Expect::ValueOrEnd, b't') => Expect::Word(b"rue"),
            (Expect::Value | Expect::ValueOrEnd, b'f') => Expect::Word(b"alse"),
            (Expect::Value | Expect::ValueOrEnd, b'n') => Expect::Word(b"ull"),
            (Expect::Value | Expect::ValueOrEnd, b'-' | b'0'..=b'9') => Expect::Number,
            (Expect::Key | Expect::KeyOrEnd, b'"') => Expect::Text { key: true },
            (Expect::Colon, b':') => Expect::Value,
            (Expect::CommaOrEnd, b',') if self.open.last() == Some(&Bracket::Object) => Expect::Key,
            (Expect::CommaOrEnd, b',') => Expect::Value,
            (Expect::CommaOrEnd, b']') if self.open.last() == Some(&Bracket::List) => return self.closes(),
            (Expect::CommaOrEnd, b'}') if self.open.last() == Some(&Bracket::Object) => return self.closes(),
            (
                Expect::Value
                | Expect::ValueOrEnd
                | Expect::Key
                | Expect::KeyOrEnd
                | Expect::Colon
                | Expect::CommaOrEnd
                | Expect::Text { .. }
                | Expect::Escape { .. }
                | Expect::Number
                | Expect::Word(_),
                _,
            ) => return Step::Wrong,
        };
        Step::More
    }

    fn opens(&mut self, bracket: Bracket) -> Step {
        if self.open.len() >= MOST_DEEP {
            return Step::Wrong;
        }
        self.open.push(bracket);
        self.expect = match bracket {
            Bracket::List => Expect::ValueOrEnd,
            Bracket::Object => Expect::KeyOrEnd,
        };
        Step::More
    }

    fn closes(&mut self) -> Step {
        self.open.pop();
        self.expect = Expect::CommaOrEnd;
        if self.open.is_empty() { Step::Done } else { Step::More }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes were read, and what came of the last one.
    fn read(text: &str) -> (usize, Step) {
        let mut scanner = Scanner::new();
        for (at, byte) in text.bytes().enumerate() {
            match scanner.push(byte) {
                Step::More => {}
                end => return (at + 1, end),
            }
        }
        (text.len(), Step::More)
    }

    #[test]
    fn the_end_is_found_and_what_is_no_json_is_refused_where_it_stops_to_be_some() {
        let rows: [(&str, (usize, Step), &str); 19] = [
            ("[] x", (2, Step::Done), "empty"),
            ("{}}", (2, Step::Done), "the same"),
            (r#"[{"a": [1, -2.5e3, true, null]}, "x"] y"#, (37, Step::Done), "nested"),
            (r#"["]\"]", "}"]"#, (13, Step::Done), "brackets and quotes in texts"),
            (r#"{"a":"\\"}"#, (10, Step::Done), "a backslash at the end of a text"),
            ("[\"grün 🎉\"]", (14, Step::Done), "more than ascii"),
            ("[ \n\t1\r\n]", (8, Step::Done), "blanks"),
            (r#"[{"a": 1"#, (8, Step::More), "not yet"),
            ("[1,]", (4, Step::Wrong), "a comma too many"),
            (r#"{"a" 1}"#, (6, Step::Wrong), "no colon"),
            (r#"{"a":1]"#, (7, Step::Wrong), "the wrong bracket"),
            ("[see below]", (2, Step::Wrong), "prose"),
            ("[nope]", (3, Step::Wrong), "nearly a word"),
            ("[\"a\nb\"]", (4, Step::Wrong), "a line end in a text"),
            (r#"["\x"]"#, (4, Step::Wrong), "an escape that does not exist"),
            ("{a: 1}", (2, Step::Wrong), "a key without quotes"),
            ("{\"a\":}", (6, Step::Wrong), "no value"),
            ("7", (1, Step::Wrong), "neither list nor object"),
            ("[1 2]", (4, Step::Wrong), "two values"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(read(text), expected, "{reason}: {text}");
        }
        assert_eq!(read(&"[".repeat(5000)), (101, Step::Wrong), "too deep");
    }
}
