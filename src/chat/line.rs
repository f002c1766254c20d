//! Texts on one line.

/// `text` on one line: each run of blanks and line ends is one blank, and none is at its ends.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
