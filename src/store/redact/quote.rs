//! Quotes in a text, also where the text around was quoted itself, so that backslashes stand before each: `\"` in JSON
//! in a string.

/// A quote that begins something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    /// `"` or `'`.
    pub mark: u8,
    /// Backslashes before it: 0, 1, 3, 7 …, as each quoting doubles them and adds one.
    pub slashes: usize,
}

impl Quote {
    /// The quote that stands at `at`.
    pub fn at(text: &str, at: usize) -> Option<Self> {
        let rest = text.as_bytes().get(at..)?;
        let slashes = rest.iter().take_while(|byte| **byte == b'\\').count();
        let mark = *rest.get(slashes).filter(|mark| matches!(mark, b'"' | b'\''))?;
        (slashes + 1).is_power_of_two().then_some(Self { mark, slashes })
    }

    /// How many bytes it has.
    pub fn len(self) -> usize {
        self.slashes + 1
    }

    /// Where what began behind such a quote ends, and where the text goes on behind that; `None` when it does not end.
    ///
    /// A quote with fewer backslashes belongs to something around it, which has ended too.
    pub fn close(self, text: &str, from: usize) -> Option<(usize, usize)> {
        let mut slashes = 0;
        for (at, byte) in text.bytes().enumerate().skip(from) {
            if byte == b'\\' {
                slashes += 1;
                continue;
            }
            if byte == self.mark {
                if slashes < self.slashes {
                    return Some((at - slashes, at - slashes));
                }
                // Each backslash of the content is written as many times as there are backslashes and the quote, twice.
                if slashes % (2 * self.len()) == self.slashes {
                    return Some((at - self.slashes, at + 1));
                }
            }
            slashes = 0;
        }
        None
    }

    /// `what` between two such quotes.
    pub fn around(self, what: &str) -> String {
        let quote = format!("{}{}", "\\".repeat(self.slashes), char::from(self.mark));
        format!("{quote}{what}{quote}")
    }
}
