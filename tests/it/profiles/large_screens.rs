//! Prompts that show a large screen state, which are made where large inputs are read.

use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;

use futures::future::join_all;
use futures::poll;
use serde_json::json;
use switchboard::agent::ports::store::RunStart;
use switchboard::bounded::intake::{Intake, LARGE};
use switchboard::bounded::memory::Memory;
use switchboard::chat::event::AgentEvent;
use switchboard::chat::screen::ScreenState;
use tokio::task::yield_now;

use super::diagnosis::{says, told_beside};

/// How often a run that has nothing to wait for is polled until it has ended, and more.
const POLLS: usize = 100;

/// The events of a run with so many bytes on its screen.
async fn run_of(intake: &Intake, bytes: usize) -> Vec<AgentEvent> {
    let screen = json!({"rows": "x".repeat(bytes)}).to_string();
    let change = |start: &mut RunStart| start.context = ScreenState::parse(&screen);
    told_beside((intake.clone(), false), ("reports/short", &[]), [says("Two.")], change).await
}

#[tokio::test]
async fn a_prompt_of_a_large_screen_waits_behind_other_large_work_and_that_of_a_small_one_does_not() {
    let intake = Intake::new(Memory::new(0));
    // Two at once are the most that any machine does.
    let (ends, waits): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel::<()>()).unzip();
    let mut busy = pin!(join_all(waits.into_iter().map(|wait| intake.work(LARGE + 1, move || wait.recv().is_ok()))));
    assert!(poll!(&mut busy).is_pending());
    let (mut small, mut large) = (pin!(run_of(&intake, 10)), pin!(run_of(&intake, LARGE)));
    let (mut ended, mut waits) = (None, true);
    for _ in 0..POLLS {
        if ended.is_none()
            && let Poll::Ready(events) = poll!(&mut small)
        {
            ended = Some(events);
        }
        waits = waits && poll!(&mut large).is_pending();
        yield_now().await;
    }
    assert!(matches!(ended.unwrap().last(), Some(AgentEvent::Finished { .. })), "a small one is served meanwhile");
    assert!(waits, "a large one is not made on this thread");
    ends.iter().for_each(|end| end.send(()).unwrap());
    let (done, events) = futures::join!(busy, large);
    assert_eq!(done, [true, true]);
    assert!(matches!(events.last(), Some(AgentEvent::Finished { .. })), "and in its turn");
}
