//! What is in Redis, entry by entry, and what a replica makes of it.

use std::time::Duration;

use futures::future::join_all;
use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::RunId;
use switchboard::runs::log::EventLog;
use switchboard::runs::log::redis::{MirrorBounds, RedisLog};
use switchboard::runs::log::ring::{Next, Reader, Sees};
use tokio::io::{copy, copy_bidirectional, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::contract::{
    ANY_BYTES, LONG, Logs, all, finished, found, found_with, numbered, rest, text, turns, within, written,
};
use super::redis::{Replicas, replica};
use crate::support::redis::TestRedis;
use crate::support::wait::eventually;

fn number(answer: &str) -> u64 {
    answer.trim().trim_start_matches(':').parse().unwrap()
}

impl Replicas {
    fn entries(&self, run: RunId) -> u64 {
        number(&self.redis.ask(&format!("XLEN test:run:{run}")))
    }

    fn lives_ms(&self, run: RunId) -> u64 {
        number(&self.redis.ask(&format!("PTTL test:run:{run}")))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_whole_pages_is_read_to_its_end() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    for entries in [32, 64] {
        // One of them is the beginning, one the end, and every event that was waited for is one.
        let events = [turns(0..entries - 2), vec![finished()]].concat();
        let (run, writer) = written(&*logs.owner, []).await;
        let mut kept = Reader::new(writer.ring().clone(), 0, Sees::Kept);
        for event in events.clone() {
            writer.emit(event);
            within(kept.next()).await;
        }
        let ring = found_with(&*logs.other, run, u64::from(entries) - 1).await;
        assert_eq!(logs.entries(run), u64::from(entries));
        assert_eq!(all(&ring).await, numbered(0, events));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_may_be_told_is_what_redis_has() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (_, writer) = written(&*logs.owner, turns(0..2)).await;
    let ring = writer.ring();
    eventually("both are there", async || (ring.kept_next() == 2).then_some(())).await;
    logs.redis.pause();
    writer.emit(text("not there yet"));
    assert_eq!((ring.next_id(), ring.kept_next()), (3, 2));
    // Redis is given up after a while, and clients are told what there is.
    eventually("nobody waits for redis", async || (ring.kept_next() == 3).then_some(())).await;
    logs.redis.resume();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_was_given_up_is_lost_everywhere_and_what_comes_later_is_right() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner, turns(0..2)).await;
    let third = replica(&logs.redis, ANY_BYTES, LONG);
    let mut elsewhere = Reader::new(found_with(&*third, run, 2).await, 2, Sees::Kept);
    logs.other.seal(run, finished(), Some(4)).await.unwrap();
    assert_eq!(rest(&mut elsewhere).await, (vec![], Next::Lost));
    // Its owner was only slow.
    [turns(2..4), vec![finished()]].concat().into_iter().for_each(|event| writer.emit(event));
    let ring = found_with(&*logs.other, run, 5).await;
    let expected = numbered(2, [turns(2..4), vec![finished()]].concat());
    assert_eq!(rest(&mut Reader::new(ring.clone(), 2, Sees::Kept)).await, (expected, Next::Ended));
    assert_eq!(rest(&mut Reader::new(ring, 0, Sees::Kept)).await, (vec![], Next::Lost));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_whose_own_run_has_another_end_gives_it_up() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner, turns(0..2)).await;
    let readers = [
        Reader::new(writer.ring().clone(), 2, Sees::Kept),
        Reader::new(found_with(&*logs.other, run, 2).await, 2, Sees::Kept),
    ];
    logs.owner.seal(run, finished(), Some(3)).await.unwrap();
    for mut reader in readers {
        assert_eq!(rest(&mut reader).await, (vec![], Next::Lost));
    }
    writer.emit(finished());
    for log in [&logs.owner, &logs.other] {
        assert!(log.find(run).await.unwrap().is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_forgotten_run_nothing_is_left_but_what_refuses_its_owner() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner, [text("a secret")]).await;
    let (ended, _) = written(&*logs.owner, [text("a secret"), finished()]).await;
    found_with(&*logs.other, run, 1).await;
    found_with(&*logs.other, ended, 2).await;
    logs.other.forget(&[ended, run]).await;
    logs.other.forget(&[run]).await;
    assert_eq!(logs.redis.ask(&format!("EXISTS test:run:{ended}")).trim(), ":0");
    let mut near = Reader::new(writer.ring().clone(), 1, Sees::Kept);
    writer.emit(text("another secret"));
    writer.emit(finished());
    assert_eq!(rest(&mut near).await, (numbered(1, [AgentEvent::Cancelled]), Next::Ended));
    assert_eq!(logs.entries(run), 1);
    assert!((1..=60_000).contains(&logs.lives_ms(run)));
    assert!(!logs.redis.ask(&format!("XRANGE test:run:{run} - +")).contains("secret"));
    let third = replica(&logs.redis, ANY_BYTES, LONG);
    assert!(third.find(run).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_elsewhere_are_told_when_redis_cannot_be_told_to_forget() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner, turns(0..2)).await;
    let mut far = Reader::new(found_with(&*logs.other, run, 2).await, 2, Sees::Kept);
    let mut near = Reader::new(writer.ring().clone(), 2, Sees::Kept);
    logs.redis.pause();
    logs.other.forget(&[run]).await;
    assert_eq!(rest(&mut far).await, (vec![], Next::Lost));
    logs.owner.forget(&[run]).await;
    writer.emit(AgentEvent::Cancelled);
    assert_eq!(rest(&mut near).await, (numbered(2, [AgentEvent::Cancelled]), Next::Ended));
    logs.redis.resume();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seal_waits_for_one_answer_and_no_longer() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let (run, _writer) = written(&*logs.owner, turns(0..2)).await;
    found_with(&*logs.other, run, 2).await;
    logs.other.open(RunId::fresh()).await.unwrap();
    logs.redis.pause();
    // Whatever the machine is busy with, the shorter of two timers comes first.
    tokio::select! {
        biased;
        sealed = logs.other.seal(run, AgentEvent::Interrupted, None) => assert!(sealed.is_err()),
        () = tokio::time::sleep(Duration::from_millis(1_400)) => panic!("it takes too long"),
    }
    logs.redis.resume();
    logs.other.seal(run, AgentEvent::Interrupted, None).await.unwrap();
    assert_eq!(found(&*logs.other, run).await.end().as_deref(), Some(&AgentEvent::Interrupted));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_look_for_a_run_while_redis_is_away_do_not_wait_for_each_other() {
    let Some(logs) = Replicas::start(ANY_BYTES, LONG).await else { return };
    let run = RunId::fresh();
    assert!(logs.other.find(run).await.unwrap().is_none());
    logs.redis.pause();
    tokio::select! {
        biased;
        found = join_all((0..20).map(|_| logs.other.find(run))) => assert!(found.iter().all(Result::is_err)),
        () = tokio::time::sleep(Duration::from_secs(6)) => panic!("it takes too long"),
    }
    logs.redis.resume();
    eventually("it is looked for again", async || logs.other.find(run).await.ok()).await;
}

/// The way to a server, on which connections can stop leading anywhere without anybody being told.
struct Way {
    port: u16,
    silenced: watch::Sender<()>,
}

impl Way {
    async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Self { port: listener.local_addr().unwrap().port(), silenced: watch::Sender::new(()) };
        let silenced = way.silenced.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut silent = silenced.subscribe();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        // Whatever comes from now on is swallowed, until the one who says it goes away.
                        _ = silent.changed() => { let _ = copy(&mut near, &mut sink()).await; }
                    }
                });
            }
        });
        way
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_leads_nowhere_is_dialled_anew() {
    let Some(redis) = TestRedis::start() else { return };
    let way = Way::to(redis.url().rsplit(':').next().unwrap().parse().unwrap()).await;
    let bounds = MirrorBounds { run_bytes: 0, total_bytes: 0, retention: LONG, life: LONG };
    let log = RedisLog::connect(&format!("redis://127.0.0.1:{}", way.port), "test", &bounds).unwrap();
    log.open(RunId::fresh()).await.unwrap();
    assert!(log.find(RunId::fresh()).await.unwrap().is_none());
    way.silenced.send_replace(());
    // Each of them gives up before the command's own time is over.
    assert!(log.open(RunId::fresh()).await.is_err());
    // A new one may need longer than a command has, on a machine that is busy.
    eventually("runs are begun again", async || log.open(RunId::fresh()).await.ok()).await;
    eventually("runs are looked for again", async || log.find(RunId::fresh()).await.ok()).await;
}
