//! What every event log promises.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use switchboard::chat::artifact::Artifact;
use switchboard::chat::event::AgentEvent;
use switchboard::chat::failure::{Failure, FailureCode};
use switchboard::chat::fate::CallFate;
use switchboard::chat::ids::{FileId, RunId, ToolCallId};
use switchboard::chat::notice::Notice;
use switchboard::runs::log::ring::{Next, Reader, Sees};

use super::contract::{
    ANY_BYTES, LONG, Logs, all, finished, found, found_with, joined, numbered, rest, some, text, turns, within, written,
};
use crate::support::wait::eventually;

/// One event of every kind, as odd as they get, and an end.
fn every_kind() -> Vec<AgentEvent> {
    vec![
        AgentEvent::Summarising,
        AgentEvent::Summarised,
        AgentEvent::TurnStarted { turn: u32::MAX },
        text("nul \u{0}, \u{2028}\u{202e}\u{1F600} \"}]\\\n\r\n"),
        text(""),
        AgentEvent::Notice(Box::new(Notice {
            files: vec![FileId::parse("11111111-1111-4111-8111-111111111111").unwrap()],
            message: "Not shown: \"a\n\"".into(),
            said: String::new(),
        })),
        AgentEvent::ThinkingDelta { text: "\u{feff}so\tbe it".into() },
        AgentEvent::ToolCallStarted { id: ToolCallId::from_model("call \"1\""), name: "lookup\n".into() },
        AgentEvent::ToolCallFinished {
            id: ToolCallId::from_model("call \"1\""),
            name: "lookup\n".into(),
            fate: CallFate::Failed,
            error: None,
            result: "done".into(),
        },
        AgentEvent::ToolCallFinished {
            id: ToolCallId::from_model(""),
            name: String::new(),
            fate: CallFate::Done,
            error: None,
            result: "done".into(),
        },
        AgentEvent::Artifact(Box::new(Artifact {
            kind: "preview".into(),
            payload: json!({ "z": [1, 0.1, -1e300, u64::MAX, null, "\u{0}"], "a": { "": {} } }),
        })),
        AgentEvent::Failed(Failure { code: FailureCode::EmptyAnswer, message: "So\nit is".into(), retryable: true }),
    ]
}

pub async fn events_are_numbered_from_0_without_a_gap<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), every_kind()).await;
    let expected = numbered(0, every_kind());
    let count = u64::try_from(expected.len()).unwrap();
    assert_eq!(all(writer.ring()).await, expected);
    assert_eq!(all(&found(&*logs.owner(), run).await).await, expected);
    assert_eq!(all(&found(&*logs.other(), run).await).await, expected);
    let ring = found_with(&*logs.other(), run, count).await;
    assert_eq!((ring.first_kept(), ring.next_id()), (0, count));
    assert_eq!(ring.end().as_deref(), every_kind().last());
}

pub async fn a_reader_that_begins_later_gets_what_comes_from_there<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..3)).await;
    for log in [logs.owner(), logs.other()] {
        let ring = found(&*log, run).await;
        let mut among = Reader::new(ring.clone(), 2, Sees::Kept);
        assert_eq!(some(&mut among, 1).await, numbered(2, turns(2..3)));
    }
    let ring = found(&*logs.other(), run).await;
    let mut next = Reader::new(ring.clone(), 3, Sees::Kept);
    let mut ahead = Reader::new(ring, 5, Sees::Kept);
    assert_eq!((next.try_next(), ahead.try_next()), (None, None));
    turns(3..6).into_iter().for_each(|event| writer.emit(event));
    assert_eq!(some(&mut next, 3).await, numbered(3, turns(3..6)));
    assert_eq!(some(&mut ahead, 1).await, numbered(5, turns(5..6)));
}

pub async fn what_is_read_live_is_what_is_replayed<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..1)).await;
    let ring = found(&*logs.other(), run).await;
    let live = tokio::spawn(async move { all(&ring).await });
    for n in 0..500 {
        writer.emit(text(format!("{n} ")));
        if n % 50 == 0 {
            tokio::task::yield_now().await;
        }
    }
    writer.emit(finished());
    let live = live.await.unwrap();
    assert_eq!(joined(&live), (0..500).map(|n| format!("{n} ")).collect::<String>());
    assert_eq!(all(writer.ring()).await, live);
    assert_eq!(all(&found(&*logs.other(), run).await).await, live);
}

pub async fn a_reader_that_waits_is_woken<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..1)).await;
    let ring = found_with(&*logs.other(), run, 1).await;
    let mut reader = Reader::new(ring.clone(), 1, Sees::Kept);
    let waits = tokio::spawn(async move { some(&mut reader, 1).await });
    let reaches = tokio::spawn(async move { ring.reaches(2).await });
    tokio::task::yield_now().await;
    writer.emit(finished());
    assert_eq!(within(waits).await.unwrap(), numbered(1, [finished()]));
    within(reaches).await.unwrap();
}

pub async fn a_reader_whose_wait_is_dropped_loses_nothing<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..1)).await;
    let mut reader = Reader::new(found(&*logs.other(), run).await, 0, Sees::Kept);
    let writes = tokio::spawn(async move {
        for event in turns(1..200).into_iter().chain([finished()]) {
            writer.emit(event);
            tokio::task::yield_now().await;
        }
    });
    let mut seen = Vec::new();
    loop {
        // Another branch wins as often as not, and drops the wait.
        let next = tokio::select! {
            next = reader.next() => next,
            () = tokio::task::yield_now() => continue,
        };
        match next {
            Next::Event { id, event } => seen.push((id, (*event).clone())),
            last => break assert_eq!(last, Next::Ended),
        }
    }
    writes.await.unwrap();
    assert_eq!(seen, numbered(0, [turns(0..200), vec![finished()]].concat()));
}

pub async fn a_reader_that_falls_out_of_the_ring_is_told<L: Logs>() {
    let Some(logs) = L::start(20_000, LONG).await else { return };
    let (_, writer) = written(&*logs.owner(), turns(0..1)).await;
    let mut reader = Reader::new(writer.ring().clone(), 0, Sees::Kept);
    assert_eq!(some(&mut reader, 1).await, numbered(0, turns(0..1)));
    for _ in 0..10 {
        writer.emit(text("x".repeat(10_000)));
    }
    assert_eq!(rest(&mut reader).await, (vec![], Next::Lost));
}

pub async fn a_reader_of_what_is_no_longer_held_is_told<L: Logs>() {
    let Some(logs) = L::start(20_000, LONG).await else { return };
    let long = (0..10).map(|_| text("x".repeat(10_000))).chain([finished()]);
    let (run, writer) = written(&*logs.owner(), long).await;
    within(writer.ring().reaches(11)).await;
    assert_eq!(rest(&mut Reader::new(writer.ring().clone(), 0, Sees::Everything)).await, (vec![], Next::Lost));
    for log in [logs.owner(), logs.other()] {
        let ring = eventually("the end is there", async || {
            log.find(run).await.unwrap().filter(|ring| ring.end().is_some() && ring.first_kept() > 0)
        })
        .await;
        assert_eq!(rest(&mut Reader::new(ring.clone(), 0, Sees::Kept)).await, (vec![], Next::Lost));
        let last = ring.next_id() - 1;
        let end = (numbered(last, [finished()]), Next::Ended);
        assert_eq!(rest(&mut Reader::new(ring, last, Sees::Kept)).await, end, "what is held can be read");
    }
}

pub async fn a_terminal_event_ends_every_reader_and_nothing_follows_it<L: Logs>() {
    for end in [finished(), AgentEvent::Cancelled, AgentEvent::Interrupted] {
        let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
        let (run, writer) = written(&*logs.owner(), turns(0..1)).await;
        let near = Reader::new(writer.ring().clone(), 0, Sees::Everything);
        let far = Reader::new(found(&*logs.other(), run).await, 0, Sees::Kept);
        writer.emit(end.clone());
        for late in [text("late"), finished(), AgentEvent::Cancelled] {
            writer.emit(late);
        }
        let expected = (numbered(0, [turns(0..1), vec![end]].concat()), Next::Ended);
        for mut reader in [near, far] {
            assert_eq!(rest(&mut reader).await, expected);
        }
        assert_eq!(writer.ring().next_id(), 2);
    }
}

pub async fn a_run_that_has_ended_is_read_to_its_end<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let events = [turns(0..300), vec![finished()]].concat();
    let (run, writer) = written(&*logs.owner(), events.clone()).await;
    drop(writer);
    for log in [logs.owner(), logs.other(), logs.other()] {
        assert_eq!(all(&found(&*log, run).await).await, numbered(0, events.clone()));
    }
}

pub async fn a_reader_that_has_seen_the_end_gets_nothing_more<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
    let ring = found_with(&*logs.other(), run, 2).await;
    let mut before = Reader::new(ring.clone(), 3, Sees::Kept);
    writer.emit(finished());
    assert_eq!(rest(&mut before).await, (vec![], Next::Ended), "the replica was behind its client");
    assert_eq!(rest(&mut Reader::new(ring, 3, Sees::Kept)).await, (vec![], Next::Ended));
}

pub async fn a_number_beyond_the_end_is_lost<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
    let ring = found_with(&*logs.other(), run, 2).await;
    let mut before = Reader::new(ring.clone(), 4, Sees::Kept);
    writer.emit(finished());
    assert_eq!(rest(&mut before).await, (vec![], Next::Lost));
    assert_eq!(rest(&mut Reader::new(ring, u64::MAX, Sees::Kept)).await, (vec![], Next::Lost));
}

pub async fn an_ended_run_is_forgotten_after_its_retention<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, Duration::from_millis(50)).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..2)).await;
    let ring = found(&*logs.other(), run).await;
    writer.emit(finished());
    for log in [logs.owner(), logs.other()] {
        eventually("it is forgotten", async || log.find(run).await.unwrap().is_none().then_some(())).await;
    }
    let expected = numbered(0, [turns(0..2), vec![finished()]].concat());
    assert_eq!(all(&ring).await, expected, "who reads it already goes on");
}

pub async fn a_live_run_outlives_the_retention<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, Duration::from_millis(1)).await else { return };
    let (live, writer) = written(&*logs.owner(), turns(0..2)).await;
    found_with(&*logs.other(), live, 2).await;
    let (ended, _) = written(&*logs.owner(), [finished()]).await;
    for log in [logs.owner(), logs.other()] {
        eventually("the other is forgotten", async || log.find(ended).await.unwrap().is_none().then_some(())).await;
        let ring = found(&*log, live).await;
        assert_eq!(some(&mut Reader::new(ring, 0, Sees::Kept), 2).await, numbered(0, turns(0..2)));
    }
    drop(writer);
}

pub async fn a_run_that_nobody_opened_is_not_found<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let run = RunId::fresh();
    assert!(logs.owner().find(run).await.unwrap().is_none());
    logs.owner().seal(run, AgentEvent::Interrupted, None).await.unwrap();
    logs.owner().forget(&[run]).await;
    assert!(logs.owner().find(run).await.unwrap().is_none());
    assert!(logs.other().find(run).await.unwrap().is_none());
}

pub async fn runs_are_kept_apart<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let log = logs.owner();
    let writers = join_all((0..20).map(|_| written(&*log, turns(0..1)))).await;
    for (at, (_, writer)) in (0..).zip(&writers) {
        writer.emit(text(format!("run {at}")));
        writer.emit(finished());
    }
    for (at, (run, _)) in (0..).zip(&writers) {
        let seen = all(&found(&*logs.other(), *run).await).await;
        let expected = [turns(0..1), vec![text(format!("run {at}")), finished()]].concat();
        assert_eq!(seen, numbered(0, expected));
    }
}

pub async fn many_readers_see_the_same<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..1)).await;
    let mut readers = Vec::new();
    for n in 0..40 {
        let log = if n % 2 == 0 { logs.owner() } else { logs.other() };
        let ring = found(&*log, run).await;
        readers.push(tokio::spawn(async move { all(&ring).await }));
    }
    for n in 1..1_000 {
        turns(n..n + 1).into_iter().for_each(|event| writer.emit(event));
        if n % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    writer.emit(finished());
    let expected = numbered(0, [turns(0..1_000), vec![finished()]].concat());
    for seen in join_all(readers).await {
        assert_eq!(seen.unwrap(), expected);
    }
}

pub async fn a_huge_event_is_kept<L: Logs>() {
    let Some(logs) = L::start(1 << 20, LONG).await else { return };
    let huge: Arc<str> = "huge \u{1F600}".repeat(1 << 18).into();
    let (run, writer) = written(&*logs.owner(), [text(&*huge)]).await;
    let ring = found_with(&*logs.other(), run, 1).await;
    for ring in [writer.ring().clone(), ring] {
        let seen = some(&mut Reader::new(ring, 0, Sees::Kept), 1).await;
        assert!(seen == numbered(0, [text(&*huge)]), "it is another text");
    }
}

pub async fn twenty_thousand_events_are_all_read<L: Logs>() {
    let Some(logs) = L::start(ANY_BYTES, LONG).await else { return };
    let (run, writer) = written(&*logs.owner(), turns(0..1)).await;
    let ring = found(&*logs.other(), run).await;
    let live = tokio::spawn(async move { all(&ring).await });
    for n in 0..20_000 {
        writer.emit(if n % 2 == 0 { text(format!("{n} ")) } else { AgentEvent::TurnStarted { turn: n } });
    }
    writer.emit(finished());
    let live = live.await.unwrap();
    assert_eq!(live.len(), 20_002);
    assert_eq!(all(writer.ring()).await, live);
    assert_eq!(all(&found(&*logs.other(), run).await).await, live);
}
