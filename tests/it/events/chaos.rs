//! Faults one after the other, while a run writes and readers follow it: whatever they are given is right, and they are
//! given it without a gap, or they are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::RunId;
use switchboard::runs::log::EventLog;
use switchboard::runs::log::redis::RedisLog;
use switchboard::runs::log::ring::{Next, Reader, Sees};

use super::contract::{ANY_BYTES, LONG, Logs, found_with, turns, within, written};
use super::redis::Replicas;
use crate::support::wait::eventually;

/// Faults, one after the other, unless `SWITCHBOARD_TEST_FAULTS` says how many.
const FAULTS: u32 = 10;

/// Follows `run` until it is told to stop, and begins anew wherever it is lost; every event has its own number in it.
/// Counts what it was given.
async fn follow(log: Arc<RedisLog>, run: RunId, stop: Arc<AtomicBool>, given: Arc<AtomicU64>) {
    while !stop.load(Ordering::Relaxed) {
        let Ok(Some(ring)) = log.find(run).await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let mut expected = ring.first_kept();
        let mut reader = Reader::new(ring, expected, Sees::Kept);
        loop {
            match tokio::time::timeout(Duration::from_millis(100), reader.next()).await {
                Ok(Next::Event { id, event }) => {
                    assert_eq!((id, turn(&event)), (expected, expected), "a gap that nobody was told of");
                    expected += 1;
                    given.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Next::Lost | Next::Ended) => break,
                Err(_) if stop.load(Ordering::Relaxed) => return,
                Err(_) => {}
            }
        }
    }
}

fn turn(event: &AgentEvent) -> u64 {
    match event {
        AgentEvent::TurnStarted { turn } => u64::from(*turn),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_gap_goes_untold_whatever_happens_to_redis() {
    let Some(mut logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let faults = std::env::var("SWITCHBOARD_TEST_FAULTS").map_or(FAULTS, |faults| faults.parse().unwrap());
    let (run, writer) = written(&*logs.owner, turns(0..1)).await;
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(1)));
    let (far, kept) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut near = Reader::new(writer.ring().clone(), 0, Sees::Everything);
    let mut tasks = vec![
        tokio::spawn(follow(logs.other.clone(), run, stop.clone(), far.clone())),
        tokio::spawn(follow(logs.owner.clone(), run, stop.clone(), kept.clone())),
    ];
    tasks.push(tokio::spawn({
        let (writer, stop, written) = (writer.clone(), stop.clone(), written.clone());
        async move {
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..fastrand::u32(1..20) {
                    let turn = written.fetch_add(1, Ordering::Relaxed);
                    writer.emit(AgentEvent::TurnStarted { turn: u32::try_from(turn).unwrap() });
                }
                tokio::time::sleep(Duration::from_millis(fastrand::u64(0..8))).await;
            }
        }
    }));
    for fault in 0..faults {
        // Longer and shorter than anybody waits for Redis.
        let a_while = Duration::from_millis(fastrand::u64(0..1_500));
        match fault % 5 {
            0 => {
                logs.redis.pause();
                tokio::time::sleep(a_while).await;
                logs.redis.resume();
            }
            1 => {
                logs.redis.kill();
                tokio::time::sleep(a_while).await;
                logs.redis.restart_empty();
            }
            2 => drop(logs.redis.ask("FLUSHALL")),
            3 => drop(logs.redis.ask("CLIENT KILL TYPE normal SKIPME yes")),
            _ => {
                logs.redis.ask("CONFIG SET maxmemory 1");
                tokio::time::sleep(a_while).await;
                logs.redis.ask("CONFIG SET maxmemory 0");
            }
        }
        // Each time everything works again by itself.
        let seen = far.load(Ordering::Relaxed);
        eventually("events come through again", async || (far.load(Ordering::Relaxed) > seen + 20).then_some(())).await;
    }
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        within(task).await.unwrap();
    }
    let end = written.load(Ordering::Relaxed);
    writer.emit(AgentEvent::Cancelled);
    for expected in 0..end {
        let Some(Next::Event { id, event }) = near.try_next() else { panic!("lost at {expected}") };
        assert_eq!((id, turn(&event)), (expected, expected));
    }
    let ring = found_with(&*logs.other, run, end + 1).await;
    assert_eq!(ring.end().as_deref(), Some(&AgentEvent::Cancelled));
}
