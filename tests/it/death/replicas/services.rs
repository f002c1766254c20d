//! Redis or PostgreSQL goes away under two replicas and comes back.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use super::super::{answered, background, end_of, message, refused, rest, said};
use super::Pair;
use crate::runs::{gated, header, read_until};
use crate::support::model::{says, turn};
use crate::support::postgres::TestPostgres;
use crate::support::upstream::Answer;
use crate::support::wait::eventually;

fn hello() -> Answer {
    says("Hello.").answer()
}

/// A run on `a` with a reader at each replica, while Redis is taken away and given back.
async fn without_redis(take: impl Fn(&mut Pair), give_back: impl Fn(&mut Pair)) {
    let gate = Arc::new(Notify::new());
    let answer = turn().text("One ").answer().gated(&gate, turn().text("two ").bytes());
    let answers = [answer.gated(&gate, says("three.").bytes()), hello(), hello(), gated(&gate, "A", "b.")];
    let Some(mut pair) = Pair::start(&[], answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&background("c", "Count")).await;
    let run = header(&near, "x-run-id");
    let mut seen = read_until(&mut near, "One").await;
    let mut far = b.events(&run, None).await;
    let also = read_until(&mut far, "One").await;
    assert_eq!(also, seen);

    take(&mut pair);
    gate.notify_one();
    seen += &read_until(&mut near, "two").await;
    // What the other replica had got by then comes first, and nothing is left out of that.
    let also = also + &rest(far).await;
    let (got, end) = also.split_at(also.find("event: error").unwrap());
    assert!(seen.starts_with(got), "{also}");
    assert!(end.contains(r#""code":"resync""#), "{also}");
    for client in [&a, &b] {
        refused(client, "events_unavailable").await;
    }
    let status = b.events(&run, None).await.status().as_u16();
    assert!([410, 503].contains(&status), "{status}");
    assert_eq!(b.run(&run).await["state"], "running");
    gate.notify_one();
    seen += &rest(near).await;
    assert_eq!(end_of(&seen), "message_complete");
    let last = crate::support::frames::numbered(&seen).last().unwrap().0;
    assert_eq!(last, b.run_in(&run, "completed").await["last_event_id"]);

    give_back(&mut pair);
    answered(&a, "d").await;
    answered(&b, "e").await;
    let mut near = a.chat(&background("f", "Go")).await;
    let run = header(&near, "x-run-id");
    let seen = read_until(&mut near, "A").await;
    let mut far = b.events(&run, None).await;
    let also = read_until(&mut far, "A").await;
    gate.notify_one();
    assert_eq!(also + &rest(far).await, seen + &rest(near).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_redis_ends_no_run_and_everything_works_again_with_an_empty_one() {
    without_redis(|pair| pair.redis.kill(), |pair| pair.redis.restart_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_redis_ends_no_run_and_everything_works_again_when_it_goes_on() {
    without_redis(|pair| pair.redis.pause(), |pair| pair.redis.resume()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_crashes_loses_nothing_that_was_acknowledged() {
    let Some(postgres) = TestPostgres::private() else { return };
    let gate = Arc::new(Notify::new());
    let answers = [
        says("Noted.").answer(),
        gated(&gate, "Half ", "a thought."),
        gated(&gate, "Another ", "one."),
        hello(),
        hello(),
        says("I know.").answer(),
        says("That too.").answer(),
    ];
    let Some(pair) = Pair::start_on(&postgres, &[], answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    assert_eq!(a.says(&message("c", "Remember 7")).await, "Noted.");
    let mut ends_without = a.chat(&background("c", "Think")).await;
    let run = header(&ends_without, "x-run-id");
    let seen = read_until(&mut ends_without, "Half").await;

    postgres.stop_immediate();
    for client in [&a, &b] {
        refused(client, "store_unavailable").await;
    }
    // Its answer is there when it cannot be kept.
    gate.notify_one();
    assert_eq!(end_of(&(seen + &rest(ends_without).await)), "store_unavailable");

    postgres.start();
    let told = b.run_when(&run, |run| run["finished_at"].is_string()).await;
    assert!([json!("failed"), json!("interrupted")].contains(&told["state"]), "{told}");
    // Its own time is over by now, so that what comes is in order.
    let mut again = b.chat(&background("d", "Think")).await;
    assert_eq!(again.status(), 200);
    let second = header(&again, "x-run-id");
    let seen = read_until(&mut again, "Another").await;
    gate.notify_one();
    assert_eq!(end_of(&(seen + &rest(again).await)), "message_complete");
    b.run_in(&second, "completed").await;
    answered(&a, "e").await;
    answered(&b, "f").await;
    assert_eq!(b.says(&message("c", "What was it?")).await, "I know.");
    let asked = said(&pair.model.requests()[5]);
    assert_eq!(asked[..3], ["user: Remember 7", "assistant: Noted.", "user: Think"]);
    assert_eq!(a.says(&message("d", "And?")).await, "That too.");
    let asked = said(&pair.model.requests()[6]);
    assert_eq!(asked, ["user: Think", "assistant: Another one.", "user: And?"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_outlives_a_short_restart_of_the_database() {
    let Some(postgres) = TestPostgres::private() else { return };
    let gate = Arc::new(Notify::new());
    let answers = [gated(&gate, "Half ", "a thought."), says("Yes.").answer()];
    // Long enough for a slow machine's database.
    let Some(pair) = Pair::start_on(&postgres, &[("RUNS__LEASE_S", "120")], answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut response = a.chat(&background("c", "Think")).await;
    let run = header(&response, "x-run-id");
    let seen = read_until(&mut response, "Half").await;
    postgres.stop_immediate();
    postgres.start();
    eventually("a is ready", async || (a.get("/readyz").await.status() == 200).then_some(())).await;
    gate.notify_one();
    assert_eq!(end_of(&(seen + &rest(response).await)), "message_complete");
    b.run_in(&run, "completed").await;
    assert_eq!(b.says(&message("c", "Sure?")).await, "Yes.");
    let asked = said(&pair.model.requests()[1]);
    assert_eq!(asked, ["user: Think", "assistant: Half a thought.", "user: Sure?"]);
}
