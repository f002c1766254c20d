//! The event logs' contract: a log to open, the words that the stories are told in, and the list of all stories. A kind
//! of log passes with one line: `contract!(Kind)`.

use std::sync::Arc;
use std::time::Duration;

use crate::support::wait::eventually;
use async_trait::async_trait;
use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::RunId;
use switchboard::chat::stream::Usage;
use switchboard::runs::log::ring::{Next, Reader, Ring, Sees};
use switchboard::runs::log::{EventLog, Writer};

/// Long enough for any story.
pub const LONG: Duration = Duration::from_secs(600);
/// Longer than anything here takes; a story that waits longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// No bound.
pub const ANY_BYTES: usize = 0;

/// A kind of event log.
#[async_trait]
pub trait Logs: Send + Sync + Sized {
    /// An empty log, opened twice where that is possible; `None` where what it needs is not installed.
    async fn start(run_bytes: usize, retention: Duration) -> Option<Self>;
    /// The log as runs' owners have it.
    fn owner(&self) -> Arc<dyn EventLog>;
    /// The log as another replica has it; the owner's where there is only one.
    fn other(&self) -> Arc<dyn EventLog>;
}

/// Makes a test of every story for the kind `$logs`.
macro_rules! contract {
    ($logs:ident) => {
        crate::events::contract::contract!(@ $logs, stories:
            events_are_numbered_from_0_without_a_gap
            a_reader_that_begins_later_gets_what_comes_from_there
            what_is_read_live_is_what_is_replayed
            a_reader_that_waits_is_woken
            a_reader_whose_wait_is_dropped_loses_nothing
            a_reader_that_falls_out_of_the_ring_is_told
            a_reader_of_what_is_no_longer_held_is_told
            a_terminal_event_ends_every_reader_and_nothing_follows_it
            a_run_that_has_ended_is_read_to_its_end
            a_reader_that_has_seen_the_end_gets_nothing_more
            a_number_beyond_the_end_is_lost
            an_ended_run_is_forgotten_after_its_retention
            a_live_run_outlives_the_retention
            a_run_that_nobody_opened_is_not_found
            runs_are_kept_apart
            many_readers_see_the_same
            a_huge_event_is_kept
            twenty_thousand_events_are_all_read
        );
        crate::events::contract::contract!(@ $logs, ends:
            sealing_a_dead_owners_log_ends_its_readers
            a_second_seal_changes_nothing
            what_is_appended_after_a_seal_is_refused
            a_run_that_has_ended_is_not_sealed
            a_seal_that_knows_its_number_ends_a_whole_log
            a_seal_with_another_number_gives_the_log_up
            a_run_that_has_said_nothing_can_be_sealed
            readers_of_a_forgotten_run_read_to_its_end
            a_run_that_was_forgotten_elsewhere_does_not_come_back
            a_forgotten_log_that_nobody_writes_loses_its_readers
            many_runs_are_forgotten_at_once
        );
    };
    (@ $logs:ident, $file:ident: $($story:ident)+) => {
        mod $file {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $story() {
                    crate::events::$file::$story::<super::$logs>().await;
                }
            )+
        }
    };
}
pub(crate) use contract;

pub type Seen = (u64, AgentEvent);

/// A piece of text.
pub fn text(text: impl Into<String>) -> AgentEvent {
    AgentEvent::TextDelta { text: text.into() }
}

/// The end of a run that went well.
pub fn finished() -> AgentEvent {
    AgentEvent::Finished { usage: Usage { input_tokens: 7, ..Usage::default() } }
}

/// Events that no log may merge.
pub fn turns(numbers: std::ops::Range<u32>) -> Vec<AgentEvent> {
    numbers.map(|turn| AgentEvent::TurnStarted { turn }).collect()
}

/// Events with their numbers.
pub fn numbered(from: u64, events: impl IntoIterator<Item = AgentEvent>) -> Vec<Seen> {
    (from..).zip(events).collect()
}

/// Opens a run and writes `events`.
pub async fn written(log: &dyn EventLog, events: impl IntoIterator<Item = AgentEvent>) -> (RunId, Arc<dyn Writer>) {
    let run = RunId::fresh();
    let writer = log.open(run).await.unwrap();
    for event in events {
        writer.emit(event);
    }
    (run, writer)
}

/// The log of `run`, as soon as it is there.
pub async fn found(log: &dyn EventLog, run: RunId) -> Arc<Ring> {
    eventually("the run is found", async || log.find(run).await.unwrap()).await
}

/// The log of `run`, as soon as so many of its events are there.
pub async fn found_with(log: &dyn EventLog, run: RunId, events: u64) -> Arc<Ring> {
    let ring = found(log, run).await;
    within(ring.reaches(events)).await;
    ring
}

/// What `future` gives, within all patience.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// The next `count` events.
pub async fn some(reader: &mut Reader, count: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    while seen.len() < count {
        match within(reader.next()).await {
            Next::Event { id, event } => seen.push((id, (*event).clone())),
            last @ (Next::Lost | Next::Ended) => panic!("{last:?} after {} events", seen.len()),
        }
    }
    seen
}

/// All that follows, and how that ended.
pub async fn rest(reader: &mut Reader) -> (Vec<Seen>, Next) {
    let mut seen = Vec::new();
    loop {
        match within(reader.next()).await {
            Next::Event { id, event } => seen.push((id, (*event).clone())),
            last @ (Next::Lost | Next::Ended) => {
                assert_eq!(within(reader.next()).await, last, "and it stays so");
                return (seen, last);
            }
        }
    }
}

/// Everything from the first event to the run's end.
pub async fn all(ring: &Arc<Ring>) -> Vec<Seen> {
    let (seen, last) = rest(&mut Reader::new(ring.clone(), 0, Sees::Kept)).await;
    assert_eq!(last, Next::Ended);
    seen
}

/// The texts of events, joined.
pub fn joined(seen: &[Seen]) -> String {
    seen.iter()
        .filter_map(|(_, event)| match event {
            AgentEvent::TextDelta { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
