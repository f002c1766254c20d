//! What the environment asks of the tests.

use std::io::Write;

/// How many processes are killed in a test of many kills, where nothing else is asked for.
const KILLS: usize = 20;

/// How many processes are killed in a test of many kills: `SWITCHBOARD_TEST_KILLS`.
pub fn kills() -> usize {
    std::env::var("SWITCHBOARD_TEST_KILLS").map_or(KILLS, |count| count.parse().unwrap())
}

/// How many rounds tools do while another process exchanges folders for links, where nothing else is asked for.
const RACES: usize = 150;

/// How many rounds tools do while another process exchanges folders for links: `SWITCHBOARD_TEST_RACES`.
pub fn races() -> usize {
    std::env::var("SWITCHBOARD_TEST_RACES").map_or(RACES, |count| count.parse().unwrap())
}

/// Whether tests that have a long form run that one: `SWITCHBOARD_TEST_LONG=1`.
pub fn is_long() -> bool {
    std::env::var("SWITCHBOARD_TEST_LONG").as_deref() == Ok("1")
}

/// `short`, or `long` where the long forms are asked for.
pub fn cycles(short: usize, long: usize) -> usize {
    if is_long() { long } else { short }
}

/// Where random numbers begin: `SWITCHBOARD_TEST_SEED`, or anywhere.
pub fn seed() -> u64 {
    let anywhere = || std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into();
    std::env::var("SWITCHBOARD_TEST_SEED").map_or_else(|_| anywhere(), |seed| seed.parse().unwrap())
}

/// Says that a test goes without what it needs; fails where `SWITCHBOARD_REQUIRE_SERVICES` is 1.
pub fn skip(reason: &str) {
    assert!(std::env::var("SWITCHBOARD_REQUIRE_SERVICES").as_deref() != Ok("1"), "{reason}");
    skip_here(reason);
}

/// Says that a test goes without what this machine's kernel does not do.
pub fn skip_here(reason: &str) {
    // Not `println!`, which a test that passes keeps to itself.
    writeln!(std::io::stderr(), "SKIPPED: {reason}").unwrap();
}
