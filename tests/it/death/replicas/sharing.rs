//! Each replica knows the runs of the other.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::super::{background, end_of, message, problem, rest, said};
use super::{Pair, more};
use crate::runs::{gated, hanging, header, read_until};
use crate::support::frames;
use crate::support::model::{says, turn};

#[tokio::test]
async fn a_run_of_the_other_replica_is_read_byte_for_byte_from_any_event_on() {
    let gate = Arc::new(Notify::new());
    let answer = turn().text("One ").answer().gated(&gate, turn().text("two ").bytes());
    let answer = answer.gated(&gate, says("three.").bytes());
    let Some(pair) = Pair::start(&[], [answer]).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));

    // Each piece comes before the next one is let go: nginx keeps nothing back.
    let mut near = a.chat(&background("c", "Count")).await;
    let run = header(&near, "x-run-id");
    let mut seen = read_until(&mut near, "One").await;
    let mut far = b.events(&run, None).await;
    let mut also = read_until(&mut far, "One").await;
    assert_eq!(seen, also);
    gate.notify_one();
    more(&mut near, &mut seen, "two").await;
    more(&mut far, &mut also, "two").await;
    let cursor = frames::numbered(&seen).last().unwrap().0;
    let returned = b.events(&run, Some(cursor)).await;
    let told = b.run(&run).await;
    assert_eq!((&told["state"], &told["conversation_id"]), (&json!("running"), &json!("c")));

    gate.notify_one();
    let last = rest(near).await;
    assert_eq!(rest(far).await, last);
    assert_eq!(rest(returned).await, last);
    let whole = seen + &last;
    assert_eq!(also + &last, whole);
    assert_eq!(end_of(&whole), "message_complete");

    let told = b.run_in(&run, "completed").await;
    assert_eq!(told, a.run(&run).await);
    for client in [&a, &b] {
        assert_eq!(rest(client.events(&run, None).await).await, whole);
        for (after, _) in frames::numbered(&whole) {
            let expected: String = whole.split_inclusive("\n\n").skip(usize::try_from(after).unwrap() + 1).collect();
            assert_eq!(rest(client.events(&run, Some(after)).await).await, expected, "after {after}");
        }
        let over = told["last_event_id"].as_u64().unwrap();
        assert_eq!(client.events(&run, Some(over)).await.status(), 204);
    }
}

#[tokio::test]
async fn a_stream_comes_piece_by_piece_through_nginx_whichever_replica_it_takes() {
    let gate = Arc::new(Notify::new());
    let answers = [(); 4].map(|()| gated(&gate, "First. ", "Second."));
    let Some(pair) = Pair::start(&[], answers).await else { return };
    let client = pair.on_either();
    for _ in 0..4 {
        let body = json!({"message": "Tell", "context_type": "tickets"});
        let mut response = client.chat(&body).await;
        assert_eq!(header(&response, "content-type"), "text/event-stream");
        let first = read_until(&mut response, "First.").await;
        gate.notify_one();
        assert_eq!(end_of(&(first + &rest(response).await)), "message_complete");
    }
}

#[tokio::test]
async fn a_cancel_at_one_replica_ends_the_run_of_the_other() {
    let Some(pair) = Pair::start(&[], [hanging("Half"), says("Well.").answer()]).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut response = a.chat(&background("c", "Think")).await;
    let run = header(&response, "x-run-id");
    let seen = read_until(&mut response, "Half").await;

    let asked = std::time::Instant::now();
    assert_eq!(b.cancel(&run).await.status(), 200);
    assert_eq!(end_of(&(seen + &rest(response).await)), "cancelled");
    assert!(asked.elapsed().as_secs() < 5, "{:?}", asked.elapsed());
    pair.model.clients_gone(1).await;
    let told = b.run_in(&run, "cancelled").await;
    let again: Value = b.cancel(&run).await.json().await.unwrap();
    assert_eq!(again, told, "a second cancel changes nothing");
    assert_eq!(b.says(&message("c", "And?")).await, "Well.");
    assert_eq!(said(&pair.model.requests()[1]), ["user: Think", "assistant: Half", "user: And?"]);
}

#[tokio::test]
async fn a_conversation_is_busy_at_both_replicas_and_another_request_may_wait_or_interrupt() {
    let gate = Arc::new(Notify::new());
    let answers = [gated(&gate, "One", " more."), says("Two.").answer(), hanging("Three"), says("Four.").answer()];
    let Some(pair) = Pair::start(&[], answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let with = |on_busy: &str, text: &str| {
        let mut body = background("c", text);
        body["on_busy"] = json!(on_busy);
        body
    };
    let mut first = a.chat(&background("c", "1")).await;
    let seen = read_until(&mut first, "One").await;
    assert_eq!(problem(b.chat(&background("c", "x")).await).await, (409, "conversation_busy".to_owned()));

    let second = b.chat(&with("enqueue", "2")).await;
    let queued = header(&second, "x-run-id");
    assert_eq!(a.run(&queued).await["state"], "queued");
    let waiting = a.events(&queued, None).await;
    assert_eq!(waiting.status(), 200, "before its first event, too");
    gate.notify_one();
    assert_eq!(end_of(&(seen + &rest(first).await)), "message_complete");
    let whole = rest(second).await;
    assert_eq!(end_of(&whole), "message_complete");
    assert_eq!(rest(waiting).await, whole);
    a.run_in(&queued, "completed").await;

    let mut third = a.chat(&background("c", "3")).await;
    let seen = read_until(&mut third, "Three").await;
    let fourth = b.chat(&with("interrupt", "4")).await;
    assert_eq!(fourth.status(), 200);
    assert_eq!(end_of(&(seen + &rest(third).await)), "cancelled");
    assert_eq!(end_of(&rest(fourth).await), "message_complete");
    let expected = ["1", "One more.", "2", "Two.", "3", "Three", "4"];
    let said: Vec<String> =
        said(&pair.model.requests()[3]).iter().map(|line| line.split_once(": ").unwrap().1.to_owned()).collect();
    assert_eq!(said, expected);
}

#[tokio::test]
async fn a_request_that_is_repeated_at_the_other_replica_finds_its_run() {
    let gate = Arc::new(Notify::new());
    let Some(pair) = Pair::start(&[], [gated(&gate, "Once ", "only.")]).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let body = background("c", "Tell");
    let mut first = a.chat_with_key("k-1", &body).await;
    let run = header(&first, "x-run-id");
    let mut seen = read_until(&mut first, "Once").await;
    let mut second = b.chat_with_key("k-1", &body).await;
    assert_eq!((second.status().as_u16(), header(&second, "x-run-id")), (200, run));
    let mut also = read_until(&mut second, "Once").await;
    let other = b.chat_with_key("k-1", &background("c", "Tell me more")).await;
    assert_eq!(problem(other).await, (422, "idempotency_mismatch".to_owned()));
    gate.notify_one();
    seen += &rest(first).await;
    also += &rest(second).await;
    assert_eq!(seen, also);
    assert_eq!(rest(b.chat_with_key("k-1", &body).await).await, seen, "and when it is over");
    assert_eq!(pair.model.requests().len(), 1);
}

#[tokio::test]
async fn a_reader_that_comes_back_through_the_other_replica_keeps_the_run_alive() {
    let gate = Arc::new(Notify::new());
    let answers = [gated(&gate, "Stay ", "here."), hanging("Stay")];
    let settings = [("RUNS__GRACE_S", "3"), ("SERVER__KEEP_ALIVE_S", "1")];
    let Some(pair) = Pair::start(&settings, answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&message("c", "Wait")).await;
    let run = header(&near, "x-run-id");
    read_until(&mut near, "Stay").await;
    drop(near);
    let mut far = b.events(&run, None).await;
    let mut seen = read_until(&mut far, "Stay").await;
    // Twice its grace.
    while seen.matches(": keep-alive").count() < 6 {
        more(&mut far, &mut seen, ": keep-alive").await;
    }
    assert_eq!(b.run(&run).await["state"], "running");
    gate.notify_one();
    assert_eq!(end_of(&(seen + &rest(far).await)), "message_complete");

    // And one that nobody comes back to does not stay.
    let mut near = a.chat(&message("d", "Wait")).await;
    let run = header(&near, "x-run-id");
    read_until(&mut near, "Stay").await;
    drop(near);
    b.run_in(&run, "cancelled").await;
}
