//! The log of a server that stands alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use switchboard::runs::log::EventLog;
use switchboard::runs::log::local::LocalLog;
use switchboard::runs::log::ring::{Next, Reader, Sees};

use super::contract::{LONG, Logs, all, contract, finished, numbered, rest, text, turns, written};

contract!(Local);

struct Local(Arc<LocalLog>);

#[async_trait]
impl Logs for Local {
    async fn start(run_bytes: usize, retention: Duration) -> Option<Self> {
        Some(Self(LocalLog::new(run_bytes, 0, retention)))
    }

    fn owner(&self) -> Arc<dyn EventLog> {
        self.0.clone()
    }

    fn other(&self) -> Arc<dyn EventLog> {
        self.0.clone()
    }
}

#[tokio::test]
async fn both_kinds_of_readers_see_an_event_at_once() {
    let log = LocalLog::new(0, 0, LONG);
    let (_, writer) = written(&*log, turns(0..1)).await;
    for sees in [Sees::Everything, Sees::Kept] {
        let mut reader = Reader::new(writer.ring().clone(), 0, sees);
        assert!(matches!(reader.try_next(), Some(Next::Event { id: 0, .. })), "{sees:?}");
        assert_eq!(reader.try_next(), None, "{sees:?}");
    }
}

#[tokio::test]
async fn a_run_that_has_ended_is_kept_exactly_as_long_as_was_asked_for() {
    let log = LocalLog::new(0, 0, Duration::from_secs(60));
    let before = Instant::now();
    let (run, _writer) = written(&*log, [finished()]).await;
    let after = Instant::now();
    log.sweep(before + Duration::from_secs(60) - Duration::from_millis(1));
    assert!(log.find(run).await.unwrap().is_some());
    log.sweep(after + Duration::from_secs(60));
    assert!(log.find(run).await.unwrap().is_none());
}

#[tokio::test]
async fn without_retention_only_those_who_read_already_see_the_end() {
    let log = LocalLog::new(0, 0, Duration::ZERO);
    let (run, writer) = written(&*log, turns(0..1)).await;
    let ring = log.find(run).await.unwrap().unwrap();
    writer.emit(finished());
    assert!(log.find(run).await.unwrap().is_none());
    assert_eq!(all(&ring).await, numbered(0, [turns(0..1), vec![finished()]].concat()));
}

#[tokio::test]
async fn ended_runs_make_room_oldest_end_first_and_live_ones_stay() {
    let log = LocalLog::new(0, 30_000, LONG);
    let (live, _writer) = written(&*log, [text("x".repeat(10_000))]).await;
    let mut ended = Vec::new();
    for _ in 0..4 {
        ended.push(written(&*log, [text("x".repeat(8_000)), finished()]).await.0);
    }
    log.sweep(Instant::now());
    let mut kept = Vec::new();
    for run in [live].into_iter().chain(ended) {
        kept.push(log.find(run).await.unwrap().is_some());
    }
    assert_eq!(kept, [true, false, false, true, true]);
    assert!(log.bytes() <= 30_000, "{}", log.bytes());
}

#[tokio::test]
async fn forgotten_rings_give_their_memory_back() {
    let log = LocalLog::new(0, 0, LONG);
    let (run, writer) = written(&*log, [text("x".repeat(10_000))]).await;
    assert!(log.bytes() >= 10_000);
    log.forget(&[run]).await;
    drop(writer);
    assert_eq!(log.bytes(), 0);
}

#[tokio::test]
async fn a_ring_holds_its_bound_and_always_the_newest_event() {
    let log = LocalLog::new(10_000, 0, LONG);
    let (_, writer) = written(&*log, (0..1_000).map(|n| text(format!("{n:100}")))).await;
    let ring = writer.ring();
    assert_eq!(ring.next_id(), 1_000);
    assert!((1..=10_000).contains(&ring.bytes()), "{}", ring.bytes());
    writer.emit(text("y".repeat(50_000)));
    assert_eq!((ring.first_kept(), ring.next_id()), (1_000, 1_001));
    assert_eq!(log.bytes(), ring.bytes());
}

#[tokio::test]
async fn a_writer_dropped_without_an_end_leaves_its_run_open() {
    let log = LocalLog::new(0, 0, LONG);
    let (run, writer) = written(&*log, turns(0..1)).await;
    drop(writer);
    let ring = log.find(run).await.unwrap().unwrap();
    let mut reader = Reader::new(ring.clone(), 0, Sees::Everything);
    assert!(matches!(reader.try_next(), Some(Next::Event { id: 0, .. })));
    assert_eq!(reader.try_next(), None);
    log.seal(run, finished(), None).await.unwrap();
    assert_eq!(rest(&mut reader).await, (numbered(1, [finished()]), Next::Ended));
}
