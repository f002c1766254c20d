//! The fuzz targets without a fuzzer: every seed of `tests/fuzz/corpus`, and some thousand inputs that are made of them by
//! small changes, the same ones for the same `SWITCHBOARD_TEST_SEED`. `SWITCHBOARD_TEST_LONG=1` takes a minute for each target.

mod headers;
mod mutation;
#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use self::mutation::Mutator;
use self::targets::{TARGETS, run};
use crate::support::environment::{is_long, seed};

/// How long each target gets, one thread each, by default and in the long form.
const SHORT: Duration = Duration::from_millis(700);
const LONG: Duration = Duration::from_secs(60);

/// The seeds of a target.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/tests/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with("seed-"));
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Gives `input` to the target; fails the test with the input as it can be written into a seed.
fn give(name: &str, input: &[u8]) {
    let read = catch_unwind(AssertUnwindSafe(|| run(name, input)));
    assert!(read.is_ok(), "{name} fails at {:?} ({input:?})", String::from_utf8_lossy(input));
}

#[test]
fn every_target_reads_its_seeds() {
    for (name, _) in TARGETS {
        let seeds = seeds(name);
        assert!(seeds.len() >= 3, "{name} has {} seeds", seeds.len());
        seeds.iter().for_each(|seed| give(name, seed));
    }
}

#[test]
fn no_small_change_of_a_seed_makes_a_target_fail() {
    let (seed, time) = (seed(), if is_long() { LONG } else { SHORT });
    println!("SWITCHBOARD_TEST_SEED={seed}");
    // Two at a time: they all only compute.
    let (odd, even) = TARGETS.iter().enumerate().partition::<Vec<_>, _>(|(nth, _)| nth % 2 == 1);
    std::thread::scope(|scope| {
        for half in [odd, even] {
            scope.spawn(move || half.into_iter().for_each(|(_, (name, _))| mutate(name, seed, time)));
        }
    });
}

fn mutate(name: &str, seed: u64, time: Duration) {
    let mut mutator = Mutator::new(seed, seeds(name));
    let began = Instant::now();
    let mut inputs = 0_u64;
    while began.elapsed() < time {
        give(name, &mutator.input());
        inputs += 1;
    }
    println!("{name}: {inputs} inputs");
    assert!(inputs > 0, "{name} got nothing to read");
}
