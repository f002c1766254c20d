//! How deep the parts of an expression stand in each other, counted before the expression is handed to its compiler.
//!
//! Compilers and interpreters of small languages call themselves for each part, and end the whole process when the stack
//! is used up. A row of operators counts like brackets, since `a.b.c` is `c` of (`b` of `a`).
//!
//! **Invariant:** never less than there is: where two languages differ, the count is of the deeper reading.

pub mod schemas;
pub mod tags;

/// Quotes around a text, in which a backslash takes the next character with it.
const QUOTES: [u8; 3] = [b'"', b'\'', b'`'];

/// Words that are operators, in templates.
const OPERATORS: [&str; 7] = ["or", "and", "not", "in", "is", "if", "else"];

/// The steps that a pair of brackets adds to what follows it: `a[].b` is two steps further than `a.b`.
const BEHIND_BRACKETS: usize = 2;

/// The depth at a position of a text, and the greatest so far.
#[derive(Debug, Clone)]
pub struct Nesting {
    /// The steps that a bracket adds to its inside.
    bracket: usize,
    at: usize,
    /// Where open brackets began.
    open: Vec<usize>,
    most: usize,
}

impl Nesting {
    /// Nothing yet; each bracket counts as so many operators.
    pub fn new(bracket: usize) -> Self {
        Self { bracket, at: 0, open: Vec::new(), most: 0 }
    }

    /// The most operators that stood in each other, with brackets as many as they count.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Reads an expression that stands `at` deep already, up to `end` outside of brackets and quotes, or to its own end.
    /// Returns how many bytes that were.
    pub fn read(&mut self, text: &str, at: usize, end: Option<&str>) -> usize {
        self.open.clear();
        self.to(at);
        let bytes = text.as_bytes();
        let mut offset = 0;
        while let Some(byte) = bytes.get(offset) {
            if self.open.is_empty() && end.is_some_and(|end| bytes[offset..].starts_with(end.as_bytes())) {
                return offset;
            }
            offset += match byte {
                quote if QUOTES.contains(quote) => quoted(&bytes[offset..]),
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => self.word(&bytes[offset..]),
                other => {
                    self.sign(*other, at);
                    1
                }
            };
        }
        offset
    }

    fn word(&mut self, rest: &[u8]) -> usize {
        let ends = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'_';
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        if OPERATORS.iter().any(|operator| operator.as_bytes() == &rest[..length]) {
            self.to(self.at + 1);
        }
        length
    }

    fn sign(&mut self, sign: u8, outermost: usize) {
        match sign {
            b'(' | b'[' | b'{' => {
                self.open.push(self.at);
                self.to(self.at + self.bracket);
            }
            b')' | b']' | b'}' => {
                let before = self.open.pop().unwrap_or(self.at);
                self.to(before + BEHIND_BRACKETS);
            }
            b',' => self.at = self.open.last().map_or(outermost, |before| before + self.bracket),
            b'.' | b'|' | b'&' | b'!' | b'<' | b'>' | b'=' | b'?' | b'*' | b'+' | b'-' | b'/' | b'%' | b'~' => {
                self.to(self.at + 1);
            }
            _ => {}
        }
    }

    /// Goes to a depth.
    pub fn to(&mut self, depth: usize) {
        self.at = depth;
        self.most = self.most.max(depth);
    }
}

/// How long the text in quotes is that begins here, with its quotes.
fn quoted(rest: &[u8]) -> usize {
    let mut offset = 1;
    while let Some(byte) = rest.get(offset) {
        match byte {
            b'\\' => offset += 2,
            byte if Some(byte) == rest.first() => return offset + 1,
            _ => offset += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_each_other_are_counted_and_parts_beside_each_other_are_not() {
        let rows = [
            ("", 0, "nothing"),
            ("a_or_b", 0, "a name"),
            ("a.b.c", 2, "a row of operators"),
            ("not a or b", 2, "operators that are words"),
            ("((a))", 20, "brackets, ten each"),
            ("a[0][1][2]", 14, "brackets behind each other: two each but for the last, which is open"),
            ("f(a.b, c.d, e.f)", 11, "things beside each other"),
            ("a.b, c.d", 1, "the same outside of brackets"),
            ("f('((((', a.b)", 11, "text"),
            (r"f('\'((((', a.b)", 11, "text with a quote"),
            ("(')'(')'(')'(", 40, "brackets that text does not close"),
            ("a 'b.c.d", 0, "text without an end"),
            ("a 'b\\", 0, "text that ends in the middle of a character"),
            (")))a.b", 7, "brackets that were never open"),
        ];
        for (text, expected, reason) in rows {
            let mut nesting = Nesting::new(10);
            assert_eq!(nesting.read(text, 0, None), text.len(), "{reason}");
            assert_eq!(nesting.most(), expected, "{reason}");
        }
    }

    #[test]
    fn an_expression_ends_where_its_end_is_no_part_of_it() {
        let mut nesting = Nesting::new(8);
        assert_eq!(nesting.read(" {'a': {'b': '}}'}} }} x.y", 0, Some("}}")), 20);
        assert_eq!(nesting.most(), 16);
        assert_eq!(nesting.read("a.b", 30, Some("}}")), 3);
        assert_eq!(nesting.most(), 31);
    }
}
