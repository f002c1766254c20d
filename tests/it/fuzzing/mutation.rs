//! Inputs made of seeds by small changes, in an order that a number decides.

/// Words that readers look for, and values at the edges of what they take.
const WORDS: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "true",
    "-1",
    "0",
    "1e999",
    "18446744073709551616",
    "0.1",
    "\\u0000",
    "\\ud800",
    "\\\"",
    "\u{0}",
    "\u{2028}",
    "\u{202e}",
    "\u{feff}",
    "\n",
    "\r\n",
    "\n---\n",
    "../",
    "%2f",
    "{{",
    "}}",
    "{% for x in range(9999) %}",
    "{% endfor %}",
    "[*]",
    "[?a==`1`]",
    "$ref",
    "#/",
    "messages",
    "message",
    "content",
    "QUERY_SUGGESTION:",
    "SUGGESTED_VALUES:",
    "[[tool]]\n",
];

/// Longer than anything that is understood.
const MOST_BYTES: usize = 16 << 10;

/// Makes one input after the other.
pub struct Mutator {
    state: u64,
    seeds: Vec<Vec<u8>>,
}

impl Mutator {
    /// The same inputs for the same number and the same seeds.
    pub fn new(number: u64, seeds: Vec<Vec<u8>>) -> Self {
        Self { state: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, seeds }
    }

    /// The next input.
    pub fn input(&mut self) -> Vec<u8> {
        let which = self.below(self.seeds.len());
        let mut input = self.seeds[which].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        input.truncate(MOST_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = (at + 1 + self.below(40)).min(input.len());
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 => drop(input.drain(at.min(end)..end)),
            2 => {
                let piece = input[at.min(end)..end].to_vec();
                let most = if self.below(20) == 0 { 300 } else { 3 };
                for _ in 0..=self.below(most) {
                    input.splice(at..at, piece.iter().copied());
                }
            }
            3 => {
                let which = self.below(self.seeds.len());
                let other = self.seeds[which].clone();
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend(&other[from..]);
            }
            4 => input.truncate(at),
            5 => {
                let digits = input.iter().position(u8::is_ascii_digit);
                if let Some(at) = digits {
                    let number = ["-1", "0", "4294967296", "1e400", "99999999999999999999"][self.below(5)];
                    input.splice(at..=at, number.bytes());
                }
            }
            _ => {
                let word = WORDS[self.below(WORDS.len())];
                input.splice(at..at, word.bytes());
            }
        }
    }

    /// A number below `most`; 0 where there is none.
    pub fn below(&mut self, most: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % most.max(1) as u64).unwrap()
    }
}
