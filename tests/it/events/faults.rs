//! What goes on when Redis does not, and when two owners write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::RunId;
use switchboard::runs::log::redis::{MirrorBounds, RedisLog};
use switchboard::runs::log::ring::{Next, Reader, Sees};
use switchboard::runs::log::{EventLog, LogUpkeep, Writer};

use super::contract::{
    ANY_BYTES, LONG, Logs, all, finished, found, found_with, joined, numbered, rest, some, text, turns, within, written,
};
use super::redis::{Replicas, replica};
use crate::support::redis::TestRedis;
use crate::support::wait::eventually;

/// Tells whether a run can begin and be read elsewhere again, and waits until it can.
async fn works_again(logs: &Replicas) {
    let writer = eventually("runs begin again", async || logs.owner.open(RunId::fresh()).await.ok()).await;
    drop(writer);
    let (run, _writer) = written(&*logs.owner, [turns(0..2), vec![finished()]].concat()).await;
    let ring = eventually("runs are found again", async || logs.other.find(run).await.ok().flatten()).await;
    assert_eq!(all(&ring).await, numbered(0, [turns(0..2), vec![finished()]].concat()));
}

/// A run of two events that both replicas have, with a reader on each that has seen both.
async fn begun(logs: &Replicas) -> (RunId, Arc<dyn Writer>, Reader, Reader) {
    let (run, writer) = written(&*logs.owner, turns(0..2)).await;
    let ring = found_with(&*logs.other, run, 2).await;
    let mut near = Reader::new(writer.ring().clone(), 0, Sees::Everything);
    let mut far = Reader::new(ring, 0, Sees::Kept);
    for reader in [&mut near, &mut far] {
        assert_eq!(some(reader, 2).await, numbered(0, turns(0..2)));
    }
    (run, writer, near, far)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_goes_on_without_redis_and_readers_elsewhere_are_told() {
    let Some(mut logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (_, writer, mut near, mut far) = begun(&logs).await;
    logs.redis.kill();
    turns(2..500).into_iter().for_each(|event| writer.emit(event));
    assert_eq!(some(&mut near, 498).await, numbered(2, turns(2..500)));
    assert_eq!(rest(&mut far).await, (vec![], Next::Lost));
    assert!(logs.owner.open(RunId::fresh()).await.is_err());
    assert!(logs.other.find(RunId::fresh()).await.is_err());
    writer.emit(finished());
    assert_eq!(rest(&mut near).await, (numbered(500, [finished()]), Next::Ended));

    logs.redis.restart_empty();
    works_again(&logs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_comes_back_with_numbers_waits_a_second_and_then_goes_on_too() {
    let Some(mut logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (_, writer, _, _) = begun(&logs).await;
    let mut kept = Reader::new(writer.ring().clone(), 2, Sees::Kept);
    logs.redis.kill();
    [turns(2..500), vec![finished()]].concat().into_iter().for_each(|event| writer.emit(event));
    assert_eq!(rest(&mut kept).await, (numbered(2, [turns(2..500), vec![finished()]].concat()), Next::Ended));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_redis_delays_nobody_here() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer, mut near, mut far) = begun(&logs).await;
    logs.redis.pause();
    // More text than waits for Redis, so that the last of it is joined.
    let words: Vec<String> = (0..2_000).map(|n| format!("{n} ")).collect();
    words.iter().for_each(|word| writer.emit(text(word)));
    let mut seen = Vec::new();
    while joined(&seen) != words.concat() {
        seen.extend(some(&mut near, 1).await);
    }
    assert!(logs.owner.open(RunId::fresh()).await.is_err());
    assert_eq!(rest(&mut far).await, (vec![], Next::Lost));
    logs.redis.resume();
    writer.emit(finished());
    let (end, last) = rest(&mut near).await;
    assert_eq!((end, last), (numbered(2 + seen.len() as u64, [finished()]), Next::Ended));
    works_again(&logs).await;

    // What is read elsewhere now may begin later, but it is the same, and has no gap.
    let (whole, _) = rest(&mut Reader::new(writer.ring().clone(), 0, Sees::Kept)).await;
    let ring = eventually("the end is there", async || {
        logs.other.find(run).await.unwrap().filter(|ring| ring.end().is_some())
    })
    .await;
    let first = ring.first_kept();
    let (part, _) = rest(&mut Reader::new(ring, first, Sees::Kept)).await;
    assert_eq!(part, whole[usize::try_from(first).unwrap()..]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_pause_is_noticed_by_nobody() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (_, writer, mut near, mut far) = begun(&logs).await;
    logs.redis.pause();
    turns(2..300).into_iter().for_each(|event| writer.emit(event));
    logs.redis.resume();
    writer.emit(finished());
    let expected = (numbered(2, [turns(2..300), vec![finished()]].concat()), Next::Ended);
    assert_eq!(rest(&mut near).await, expected);
    assert_eq!(rest(&mut far).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_an_emptied_redis_are_told_also_when_nothing_comes() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer, mut near, mut far) = begun(&logs).await;
    logs.redis.ask("FLUSHALL");
    assert_eq!(rest(&mut far).await, (vec![], Next::Lost));
    assert!(logs.other.find(run).await.unwrap().is_none());

    // The run's later events can be had again, under their own numbers.
    turns(2..4).into_iter().for_each(|event| writer.emit(event));
    let ring = found_with(&*logs.other, run, 4).await;
    assert_eq!(ring.first_kept(), 2);
    assert_eq!(rest(&mut Reader::new(ring.clone(), 0, Sees::Kept)).await, (vec![], Next::Lost));
    assert_eq!(some(&mut Reader::new(ring, 2, Sees::Kept), 2).await, numbered(2, turns(2..4)));
    assert_eq!(some(&mut near, 2).await, numbered(2, turns(2..4)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_stops_no_run() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer, mut near, mut far) = begun(&logs).await;
    logs.redis.ask("CONFIG SET maxmemory 1");
    turns(2..5).into_iter().for_each(|event| writer.emit(event));
    assert_eq!(some(&mut near, 3).await, numbered(2, turns(2..5)));
    // Given up after a second, when those who come back with numbers see them too.
    let mut kept = Reader::new(writer.ring().clone(), 2, Sees::Kept);
    assert_eq!(some(&mut kept, 3).await, numbered(2, turns(2..5)));
    logs.redis.ask("CONFIG SET maxmemory 0");
    // The next event that Redis takes shows the gap.
    let lost = eventually("the gap is seen", async || {
        writer.emit(AgentEvent::TurnStarted { turn: 5 });
        tokio::time::sleep(Duration::from_millis(25)).await;
        far.try_next()
    })
    .await;
    assert_eq!(lost, Next::Lost);
    writer.emit(finished());
    let ring = eventually("the end is there", async || {
        logs.other.find(run).await.unwrap().filter(|ring| ring.end().is_some())
    })
    .await;
    assert_eq!(ring.next_id(), writer.ring().next_id());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_ends_while_redis_is_away_is_ended_there_later() {
    let Some(mut logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer, _, _) = begun(&logs).await;
    logs.redis.kill();
    writer.emit(finished());
    within(writer.ring().reaches(3)).await;
    let mut kept = Reader::new(writer.ring().clone(), 2, Sees::Kept);
    assert_eq!(rest(&mut kept).await, (numbered(2, [finished()]), Next::Ended));
    logs.redis.restart_empty();
    let ring = eventually("the end is there", async || logs.other.find(run).await.ok().flatten()).await;
    assert_eq!(rest(&mut Reader::new(ring, 2, Sees::Kept)).await, (numbered(2, [finished()]), Next::Ended));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_was_paused_is_refused_and_learns_the_end() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer, mut near, mut far) = begun(&logs).await;
    logs.other.seal(run, AgentEvent::Interrupted, None).await.unwrap();
    // The owner goes on as if nothing had been, a whole day's work.
    turns(2..200).into_iter().for_each(|event| writer.emit(event));
    let end = (numbered(2, [AgentEvent::Interrupted]), Next::Ended);
    assert_eq!(rest(&mut far).await, end);
    let third = replica(&logs.redis, ANY_BYTES, LONG);
    assert_eq!(rest(&mut Reader::new(found(&*third, run).await, 2, Sees::Kept)).await, end);

    let mut kept = Reader::new(writer.ring().clone(), 2, Sees::Kept);
    assert_eq!(rest(&mut kept).await, end);
    let (seen, last) = rest(&mut near).await;
    assert_eq!((seen.last().unwrap().1.clone(), last), (AgentEvent::Interrupted, Next::Ended));
    let ends = seen.iter().filter(|(_, event)| event.is_terminal()).count();
    assert_eq!(ends, 1);
    writer.emit(finished());
    assert_eq!(writer.ring().next_id(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_costs_at_most_one_command_in_25_ms() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner, turns(0..1)).await;
    found(&*logs.other, run).await;
    let (before, began) = (logs.redis.calls("evalsha"), Instant::now());
    let end = began + Duration::from_millis(500);
    let mut words = 0;
    while Instant::now() < end {
        writer.emit(text(format!("{words} ")));
        words += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    writer.emit(finished());
    let seen = all(&found(&*logs.other, run).await).await;
    assert_eq!(joined(&seen), (0..words).map(|n| format!("{n} ")).collect::<String>());
    let most = began.elapsed().as_millis() / 25 + 1;
    let calls = logs.redis.calls("evalsha") - before;
    assert!(u128::from(calls) <= most, "{calls} commands, {most} at most");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_asked_while_nobody_reads_and_nobody_writes() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer, near, far) = begun(&logs).await;
    drop((near, far));
    eventually("the follower rests", async || {
        let before = logs.redis.calls("xread");
        tokio::time::sleep(Duration::from_millis(250)).await;
        (logs.redis.calls("xread") == before).then_some(())
    })
    .await;
    writer.emit(finished());
    assert_eq!(all(&found(&*logs.other, run).await).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_who_come_at_once_read_a_stream_once() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner, [turns(0..50), vec![finished()]].concat()).await;
    assert_eq!(all(writer.ring()).await.len(), 51);
    let before = logs.redis.calls("xrange");
    let rings = futures::future::join_all((0..100).map(|_| logs.other.find(run))).await;
    let rings: Vec<_> = rings.into_iter().map(|ring| ring.unwrap().unwrap()).collect();
    assert_eq!(logs.redis.calls("xrange") - before, 1);
    assert!(rings.iter().all(|ring| Arc::ptr_eq(ring, &rings[0])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bounded_run_is_bounded_in_redis_too() {
    let Some(logs) = Replicas::start(100_000, LONG).await else { return };
    let (run, writer) = written(&*logs.owner, []).await;
    for n in 0..100 {
        writer.emit(text("x".repeat(20_000)));
        within(Reader::new(writer.ring().clone(), n, Sees::Kept).next()).await;
    }
    let memory = logs.redis.ask(&format!("MEMORY USAGE test:run:{run}"));
    let bytes: u64 = memory.trim().trim_start_matches(':').parse().unwrap();
    assert!(bytes < 300_000, "{bytes}");
    let ring = found(&*logs.other, run).await;
    assert_eq!(ring.next_id(), 100);
    assert!(ring.first_kept() >= writer.ring().first_kept().saturating_sub(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_its_retention_also_when_its_owner_is_gone() {
    let Some(logs) = Replicas::start(ANY_BYTES, Duration::from_secs(60)).await else { return };
    let life =
        |run| logs.redis.ask(&format!("PTTL test:run:{run}")).trim().trim_start_matches(':').parse::<u64>().unwrap();
    let (run, writer, _, mut far) = begun(&logs).await;
    assert!((LONG.as_millis() as u64 - 60_000..=LONG.as_millis() as u64).contains(&life(run)));
    drop(writer);
    logs.other.seal(run, AgentEvent::Interrupted, None).await.unwrap();
    assert_eq!(rest(&mut far).await.1, Next::Ended);
    assert!((1..=60_000).contains(&life(run)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_sends_what_waits_and_ends_every_reader_of_others() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (_, writer, _, mut far) = begun(&logs).await;
    [turns(2..400), vec![finished()]].concat().into_iter().for_each(|event| writer.emit(event));
    within(logs.owner.close()).await;
    assert_eq!(rest(&mut far).await, (numbered(2, [turns(2..400), vec![finished()]].concat()), Next::Ended));
    assert!(logs.owner.open(RunId::fresh()).await.is_err());

    let (run, _writer) = written(&*logs.other, turns(0..1)).await;
    let third = replica(&logs.redis, ANY_BYTES, LONG);
    let mut waits = Reader::new(found_with(&*third, run, 1).await, 1, Sees::Kept);
    within(third.close()).await;
    assert_eq!(rest(&mut waits).await, (vec![], Next::Lost));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_does_not_wait_for_a_redis_that_is_away() {
    let Some(mut logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (_, writer, _, _) = begun(&logs).await;
    logs.redis.kill();
    writer.emit(finished());
    within(logs.owner.close()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_speaks_no_tls_is_an_error_and_nothing_worse() {
    let Some(redis) = TestRedis::start() else { return };
    let bounds = MirrorBounds { run_bytes: 0, total_bytes: 0, retention: LONG, life: LONG };
    let log = RedisLog::connect(&redis.url().replace("redis://", "rediss://"), "test", &bounds).unwrap();
    assert!(log.open(RunId::fresh()).await.is_err());
    within(log.close()).await;
}

#[test]
fn a_url_of_something_else_is_refused_and_not_repeated() {
    let bounds = MirrorBounds { run_bytes: 0, total_bytes: 0, retention: LONG, life: LONG };
    for url in ["", "nats://user:secret@host", "redis://:secret@host:port"] {
        let error = RedisLog::connect(url, "test", &bounds).err().unwrap();
        assert!(!format!("{error} {error:?}").contains("secret"), "{url}: {error:?}");
    }
}
