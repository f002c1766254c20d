//! What every event log promises about runs that somebody else ends, or that are forgotten.

use std::time::Duration;

use futures::future::join_all;
use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::RunId;
use switchboard::runs::log::ring::{Next, Reader, Sees};

use super::contract::{
    ANY_BYTES, LONG, Logs, all, finished, found, found_with, numbered, rest, some, text, turns, written,
};
use crate::support::wait::eventually;

pub async fn sealing_a_dead_owners_log_ends_its_readers<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
    let ring = found_with(&*logs.other(), run, 2).await;
    drop(writer);
    let mut reader = Reader::new(ring, 0, Sees::Kept);
    assert_eq!(some(&mut reader, 2).await, numbered(0, turns(0..2)));
    logs.other().seal(run, AgentEvent::Interrupted, None).await.unwrap();
    assert_eq!(rest(&mut reader).await, (numbered(2, [AgentEvent::Interrupted]), Next::Ended));
}

pub async fn a_second_seal_changes_nothing<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, _writer) = written(&*logs.owner(), turns(0..2)).await;
    found_with(&*logs.other(), run, 2).await;
    logs.other().seal(run, AgentEvent::Interrupted, None).await.unwrap();
    logs.other().seal(run, finished(), None).await.unwrap();
    let expected = numbered(0, [turns(0..2), vec![AgentEvent::Interrupted]].concat());
    assert_eq!(all(&found(&*logs.other(), run).await).await, expected);
}

pub async fn what_is_appended_after_a_seal_is_refused<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
    found_with(&*logs.other(), run, 2).await;
    let mut near = Reader::new(writer.ring().clone(), 0, Sees::Kept);
    logs.other().seal(run, AgentEvent::Interrupted, None).await.unwrap();
    writer.emit(text("still here"));
    writer.emit(finished());
    let expected = numbered(0, [turns(0..2), vec![AgentEvent::Interrupted]].concat());
    assert_eq!(all(&found(&*logs.other(), run).await).await, expected);
    assert_eq!(rest(&mut near).await, (expected, Next::Ended), "the owner learns of it");
}

pub async fn a_run_that_has_ended_is_not_sealed<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, _writer) = written(&*logs.owner(), [turns(0..2), vec![finished()]].concat()).await;
    let expected = all(&found(&*logs.other(), run).await).await;
    logs.other().seal(run, AgentEvent::Interrupted, None).await.unwrap();
    logs.owner().seal(run, AgentEvent::Interrupted, None).await.unwrap();
    assert_eq!(all(&found(&*logs.other(), run).await).await, expected);
    assert_eq!(all(&found(&*logs.owner(), run).await).await, expected);
}

pub async fn a_seal_that_knows_its_number_ends_a_whole_log<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
    let mut reader = Reader::new(found_with(&*logs.other(), run, 2).await, 0, Sees::Kept);
    drop(writer);
    logs.other().seal(run, finished(), Some(2)).await.unwrap();
    let expected = numbered(0, [turns(0..2), vec![finished()]].concat());
    assert_eq!(rest(&mut reader).await, (expected.clone(), Next::Ended));
    for other in [0, 1, 2, 3, u64::MAX] {
        logs.other().seal(run, AgentEvent::Interrupted, Some(other)).await.unwrap();
        assert_eq!(all(&found(&*logs.other(), run).await).await, expected, "a log keeps its end: {other}");
    }
}

pub async fn a_seal_with_another_number_gives_the_log_up<L: Logs>() {
    for (at, reason) in [(3, "its last events are missing"), (1, "it is another run's end")] {
        let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
        let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
        let mut reader = Reader::new(found_with(&*logs.other(), run, 2).await, 2, Sees::Kept);
        drop(writer);
        logs.other().seal(run, finished(), Some(at)).await.unwrap();
        assert_eq!(rest(&mut reader).await, (vec![], Next::Lost), "{reason}");
        assert!(logs.other().find(run).await.unwrap().is_none(), "{reason}");
        logs.other().seal(run, finished(), Some(2)).await.unwrap();
        assert!(logs.other().find(run).await.unwrap().is_none(), "what is not kept stays so: {reason}");
    }
}

pub async fn a_run_that_has_said_nothing_can_be_sealed<L: Logs>() {
    for at in [None, Some(0)] {
        let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
        let (run, _writer) = written(&*logs.owner(), []).await;
        let waits = found(&*logs.other(), run).await;
        logs.other().seal(run, AgentEvent::Cancelled, at).await.unwrap();
        for ring in [waits, found(&*logs.other(), run).await] {
            assert_eq!(all(&ring).await, numbered(0, [AgentEvent::Cancelled]), "{at:?}");
        }
    }
}

pub async fn readers_of_a_forgotten_run_read_to_its_end<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
    let near = [Sees::Everything, Sees::Kept].map(|sees| Reader::new(writer.ring().clone(), 2, sees));
    let far = Reader::new(found_with(&*logs.other(), run, 2).await, 2, Sees::Kept);
    logs.owner().forget(&[run]).await;
    assert!(logs.owner().find(run).await.unwrap().is_none());
    writer.emit(AgentEvent::Cancelled);
    for mut reader in near.into_iter().chain([far]) {
        assert_eq!(rest(&mut reader).await, (numbered(2, [AgentEvent::Cancelled]), Next::Ended));
    }
    for log in [logs.owner(), logs.other()] {
        assert!(log.find(run).await.unwrap().is_none());
    }
}

pub async fn a_run_that_was_forgotten_elsewhere_does_not_come_back<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
    let mut far = Reader::new(found_with(&*logs.other(), run, 2).await, 2, Sees::Kept);
    let mut near = Reader::new(writer.ring().clone(), 2, Sees::Kept);
    logs.other().forget(&[run]).await;
    assert!(logs.other().find(run).await.unwrap().is_none());
    let goes_on = async {
        loop {
            writer.emit(text("on and on "));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let forgotten =
        eventually("its owner hears of it", async || logs.owner().find(run).await.unwrap().is_none().then_some(()));
    tokio::select! {
        () = goes_on => {}
        () = forgotten => {}
    }
    writer.emit(AgentEvent::Cancelled);
    for reader in [&mut near, &mut far] {
        let (seen, last) = rest(reader).await;
        assert_eq!((seen.last().map(|(_, event)| event), last), (Some(&AgentEvent::Cancelled), Next::Ended));
    }
    for log in [logs.owner(), logs.other()] {
        assert!(log.find(run).await.unwrap().is_none());
    }
}

pub async fn a_forgotten_log_that_nobody_writes_loses_its_readers<L: Logs>() {
    for forget_first in [true, false] {
        let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
        let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
        let ring = writer.ring().clone();
        found_with(&*logs.other(), run, 2).await;
        let mut near = Reader::new(ring, 2, Sees::Kept);
        if forget_first {
            logs.owner().forget(&[run]).await;
            drop(writer);
        } else {
            drop(writer);
            logs.owner().forget(&[run]).await;
        }
        assert_eq!(rest(&mut near).await, (vec![], Next::Lost), "forgotten first: {forget_first}");
    }
}

pub async fn many_runs_are_forgotten_at_once<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let owner = logs.owner();
    let ended = join_all((0..250).map(|_| written(&*owner, [turns(0..1), vec![finished()]].concat()))).await;
    let (live, writer) = written(&*owner, turns(0..1)).await;
    let (stays, _other) = written(&*owner, turns(0..1)).await;
    for (run, _) in &ended {
        assert_eq!(all(&found(&*logs.other(), *run).await).await.len(), 2);
    }
    let runs: Vec<RunId> = ended.iter().map(|(run, _)| *run).chain([live, RunId::fresh()]).collect();
    owner.forget(&runs).await;
    owner.forget(&[]).await;
    writer.emit(AgentEvent::Cancelled);
    for log in [logs.owner(), logs.other()] {
        for run in &runs {
            assert!(log.find(*run).await.unwrap().is_none());
        }
        found_with(&*log, stays, 1).await;
    }
}
