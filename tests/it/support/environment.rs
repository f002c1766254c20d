//! What the environment asks of the tests.

use std::io::Write;

/// How many processes are killed in a test of many kills, where nothing else is asked for.
const KILLS: usize = 20;

/// How many processes are killed in a test of many kills: `SWITCHBOARD_TEST_KILLS`.
pub fn kills() -> usize {
    std::env::var("SWITCHBOARD_TEST_KILLS").map_or(KILLS, |count| count.parse().unwrap())
}

/// Says that a test goes without what it needs; fails where `SWITCHBOARD_REQUIRE_SERVICES` is 1.
pub fn skip(reason: &str) {
    assert!(std::env::var("SWITCHBOARD_REQUIRE_SERVICES").as_deref() != Ok("1"), "{reason}");
    // Not `println!`, which a test that passes keeps to itself.
    writeln!(std::io::stderr(), "SKIPPED: {reason}").unwrap();
}
