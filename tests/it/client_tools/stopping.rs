//! All of a conversation's runs are stopped at once.

use switchboard::agent::ports::store::{MostRuns, NewRun, Question};
use switchboard::agent::ports::summaries::HistoryBound;
use switchboard::chat::ids::RunId;
use switchboard::chat::input::Ask;
use switchboard::chat::place::PlaceUpdate;
use switchboard::chat::run::RunState;

use super::{Desk, ada, input};

#[tokio::test]
async fn no_run_that_waits_gets_its_turn_when_all_are_stopped() {
    let d = Desk::playing([]).await;
    let (owner, conversation) = (ada().owner, input(Ask::Again, &[]).conversation.unwrap());
    assert_eq!(d.runs.cancel_all(&owner, &conversation).await.unwrap(), None, "nothing lives");
    let ask = Ask::message("Go on");
    let mut begun = Vec::new();
    for _ in 0..3 {
        // In another replica, which does not answer.
        let new = NewRun {
            id: RunId::fresh(),
            owner: &owner,
            conversation: &conversation,
            context_type: "tickets",
            context: None,
            place: &PlaceUpdate::NONE,
            question: Question::Ask { ask: &ask, parent: None },
            earlier: &[],
            unlisted: false,
            asked_as: None,
            gathers: false,
            direct: false,
            form: None,
            key: None,
            queue: Some(9),
            background: true,
            request_id: "r",
            replica: "there",
            lease_ms: 60_000,
            history: HistoryBound::ALL,
            most: MostRuns::default(),
        };
        d.store.begin_run(new).await.unwrap();
        begun.push(new.id);
    }
    assert_eq!(d.runs.live_run(&owner, &conversation).await.unwrap(), Some(begun[0]), "the one that runs");
    let first = d.runs.cancel_all(&owner, &conversation).await.unwrap().unwrap();
    assert_eq!((first.id, first.state), (begun[0], RunState::Running), "its replica has not heard of it yet");
    assert_eq!(d.store.live_runs(&owner, &conversation).await.unwrap(), [begun[0]]);
    for waits in &begun[1..] {
        let run = d.store.find_run(&owner, *waits).await.unwrap().unwrap();
        assert_eq!(run.state, RunState::Cancelled);
    }
}
