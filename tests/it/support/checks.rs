//! The numbered checks of a contract, each with the tests that hold it.

use std::fs;
use std::path::Path;

/// Asserts that every check from `letter` 01 to `letter` `last` is held by a test that is there, or is one of `elsewhere`. A line of
/// `tested` is the checks, the file and the test: `B01 B02 it/a.rs::name`; files are below `tests/` where they begin with `it/`.
pub fn all_are_held(tested: &str, elsewhere: &[(&str, &str)], letter: char, last: u32) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut gone, mut checks) = (Vec::new(), elsewhere.iter().map(|(check, _)| *check).collect::<Vec<_>>());
    for line in tested.lines().filter(|line| !line.is_empty()) {
        let (held, (file, name)) =
            line.rsplit_once(' ').and_then(|(held, test)| Some((held, test.split_once("::")?))).unwrap();
        checks.extend(held.split(' '));
        let path = if file.starts_with("it/") { root.join("tests").join(file) } else { root.join(file) };
        let source = fs::read_to_string(&path).unwrap_or_default();
        let begin = format!("fn {name}(");
        let mut found = source.match_indices(&begin);
        if !found.any(|(at, _)| source[..at].trim_end_matches("async ").trim_end().ends_with(']')) {
            gone.push(line);
        }
    }
    assert!(gone.is_empty(), "these are no tests:\n{}", gone.join("\n"));
    checks.sort_unstable();
    checks.dedup();
    let all: Vec<String> = (1..=last).map(|number| format!("{letter}{number:02}")).collect();
    assert_eq!(checks, all);
}
