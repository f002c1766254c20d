//! Names of tools, made of whatever a document calls them.

use std::collections::BTreeSet;

use crate::chat::names::unique;

/// Hands out names of tools.
#[derive(Debug)]
pub struct Names {
    prefix: String,
    taken: BTreeSet<String>,
}

impl Names {
    /// Names that begin with `prefix`.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), taken: BTreeSet::new() }
    }

    /// A name for what a document calls `wanted`.
    pub fn tool(&mut self, wanted: &str) -> String {
        let plain = plain(&format!("{}{wanted}", self.prefix), |c| c.is_ascii_alphanumeric() || c == '-');
        unique(&plain, &mut self.taken)
    }
}

/// `wanted` with one `_` for every run of other characters, and none at its ends.
fn plain(wanted: &str, is_plain: impl Fn(char) -> bool) -> String {
    let words: Vec<&str> = wanted.split(|c| !is_plain(c)).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "tool".to_owned() } else { words.join("_") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_short_and_each_once() {
        let mut names = Names::new("pets_");
        let rows = [
            ("listPets", "pets_listPets"),
            ("listPets", "pets_listPets_2"),
            ("pets/{id}: show__it", "pets_pets_id_show_it"),
            ("ü", "pets"),
        ];
        for (wanted, expected) in rows {
            assert_eq!(names.tool(wanted), expected);
        }
        let long = "x".repeat(100);
        assert_eq!([names.tool(&long).len(), names.tool(&long).len()], [64, 64]);
    }
}
