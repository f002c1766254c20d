//! Names that every vendor takes, made of whatever others call things: valid, and each once.

use std::collections::BTreeSet;

/// The longest name that every vendor takes, of a tool as of an argument.
pub const MAX_BYTES: usize = 64;

/// Whether an argument may have this name (`^[a-zA-Z0-9_.-]{1,64}$`, Anthropic's rule for the properties of a schema).
pub fn is_argument(name: &str) -> bool {
    (1..=MAX_BYTES).contains(&name.len()) && name.chars().all(is_of_argument)
}

fn is_of_argument(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// A name for an argument that others call `wanted`, none of `taken`.
pub fn argument(wanted: &str, taken: &mut BTreeSet<String>) -> String {
    let plain: String = wanted.chars().map(|c| if is_of_argument(c) { c } else { '_' }).collect();
    unique(if plain.is_empty() { "_" } else { &plain }, taken)
}

/// `wanted`, cut where it is too long, and with a number where it is one of `taken`, which it is from now on. Of ASCII alone.
/// The number makes no two `_` in a row, which tools of servers alone have.
pub fn unique(wanted: &str, taken: &mut BTreeSet<String>) -> String {
    let cut = |max: usize| wanted.get(..max).unwrap_or(wanted).to_owned();
    let mut name = cut(MAX_BYTES);
    let mut number = 1;
    while !taken.insert(name.clone()) {
        number += 1;
        let suffix = format!("_{number}");
        name = cut(MAX_BYTES - suffix.len()).trim_end_matches('_').to_owned() + &suffix;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_names_that_every_vendor_takes() {
        let mut taken = BTreeSet::new();
        let arguments = ["filter[name]", "filter{name}", "X-Y.z", ""].map(|name| argument(name, &mut taken));
        assert_eq!(arguments, ["filter_name_", "filter_name_2", "X-Y.z", "_"]);
        for (name, fits) in [("a", true), ("X-Y.z_1", true), ("", false), ("$top", false), (&"x".repeat(65), false)] {
            assert_eq!(is_argument(name), fits, "{name}");
        }
    }

    #[test]
    fn a_number_makes_no_two_underscores_in_a_row() {
        let mut taken = BTreeSet::new();
        // The cut for the number is behind the `_`.
        let long = format!("{}_{}", "x".repeat(61), "y".repeat(20));
        let names = [0; 3].map(|_| unique(&long, &mut taken));
        assert_eq!(names, [long[..64].to_owned(), format!("{}_2", "x".repeat(61)), format!("{}_3", "x".repeat(61))]);
        assert_eq!([unique("_", &mut taken), unique("_", &mut taken)], ["_", "_2"]);
    }
}
