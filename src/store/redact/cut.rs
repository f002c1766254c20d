//! The pieces that are cut out of a text; all else of it stays byte by byte.

use std::borrow::Cow;

/// Replaces a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// A piece of a text, and its replacement.
struct Cut {
    from: usize,
    to: usize,
    put: Cow<'static, str>,
}

/// Pieces in the order in which they stand in the text. None costs nothing.
#[derive(Default)]
pub(super) struct Cuts(Vec<Cut>);

impl Cuts {
    /// Cuts `from..to` out, with whatever was cut behind `from` before.
    pub fn add(&mut self, from: usize, to: usize, put: impl Into<Cow<'static, str>>) {
        while self.0.last().is_some_and(|cut| cut.from >= from) {
            self.0.pop();
        }
        self.0.push(Cut { from, to, put: put.into() });
    }

    /// Takes the cuts from `from` on away.
    pub fn split_off(&mut self, from: usize) -> Self {
        let at = self.0.partition_point(|cut| cut.from < from);
        Self(self.0.split_off(at))
    }

    /// Adds cuts of a piece of the text that begins at `base`.
    pub fn append(&mut self, cuts: Self, base: usize) {
        self.0.extend(cuts.0.into_iter().map(|cut| Cut { from: base + cut.from, to: base + cut.to, ..cut }));
    }

    /// The text without them.
    pub fn apply(self, text: &str) -> Cow<'_, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut cleaned = String::with_capacity(text.len());
        let mut kept = 0;
        for cut in self.0 {
            cleaned.push_str(&text[kept..cut.from]);
            cleaned.push_str(&cut.put);
            kept = cut.to;
        }
        cleaned.push_str(&text[kept..]);
        Cow::Owned(cleaned)
    }
}
