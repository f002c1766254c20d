//! A replica dies, or is paused for so long that it counts as dead: the other one ends its runs, once.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use super::super::{background, end_of, message, rest, said};
use super::{Pair, until_broken};
use crate::runs::{gated, hanging, header, read_until};
use crate::support::frames;
use crate::support::model::{calls, says, turn};
use crate::support::postgres::TestPostgres;
use crate::support::upstream::{Answer, Upstream};
use crate::support::wait::eventually;

/// What a reader gets at the end of a run whose process died.
fn is_interrupted(stream: &str) -> bool {
    end_of(stream) == "interrupted"
}

#[tokio::test]
async fn a_run_whose_process_is_killed_ends_once_and_its_user_goes_on_with_it_elsewhere() {
    let answers = [hanging("Once upon a time"), says(" there was a king.").answer(), says("He was old.").answer()];
    // The lease as it is by itself.
    let Some(mut pair) = Pair::start(&[("RUNS__LEASE_S", "12")], answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&background("c", "Tell")).await;
    let run = header(&near, "x-run-id");
    let seen = read_until(&mut near, "Once").await;
    let mut attached = b.events(&run, None).await;
    let mut live = read_until(&mut attached, "Once").await;
    let newest = frames::numbered(&seen).last().unwrap().0;
    // Then the text is in the store, too.
    b.run_when(&run, |run| run["last_event_id"] == json!(newest)).await;

    pair.a.kill();
    let died = std::time::Instant::now();
    assert_eq!(until_broken(near, seen.clone()).await, seen);
    let after = b.events(&run, None).await;
    live += &rest(attached).await;
    assert!(died.elapsed().as_secs() < 20, "{:?}", died.elapsed());
    assert_eq!(rest(after).await, live);
    assert_eq!(rest(b.events(&run, None).await).await, live);
    assert!(live.starts_with(&seen) && is_interrupted(&live), "{live}");
    let numbers: Vec<u64> = frames::numbered(&live).iter().map(|(id, _)| *id).collect();
    assert_eq!(numbers, (0..newest + 2).collect::<Vec<_>>());

    let told = b.run(&run).await;
    assert_eq!((&told["state"], &told["finished_at"].is_string()), (&json!("interrupted"), &true));
    assert_eq!(told["last_event_id"], json!(newest + 1));
    let second = b.go_on(&run).await;
    assert_eq!(second.status(), 200);
    let continued = header(&second, "x-run-id");
    assert_eq!(end_of(&rest(second).await), "message_complete");
    assert_eq!(b.run(&continued).await["continues"], json!(run));
    let asked = said(&pair.model.requests()[1]);
    assert_eq!(asked[..2], ["user: Tell", "assistant: Once upon a time"]);
    assert_eq!(b.says(&message("c", "And then?")).await, "He was old.");
    let asked = said(&pair.model.requests()[2]);
    assert_eq!(asked[1], "assistant: Once upon a time");
    assert_eq!(asked[3..], ["assistant:  there was a king.", "user: And then?"]);
}

#[tokio::test]
async fn what_a_killed_process_had_said_is_in_the_conversation() {
    let Some(mut pair) = Pair::start(&[], [hanging("Half a thought"), says("Hm.").answer()]).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&background("c", "Think")).await;
    let run = header(&near, "x-run-id");
    let seen = read_until(&mut near, "Half").await;
    let newest = frames::numbered(&seen).last().unwrap().0;
    b.run_when(&run, |run| run["last_event_id"] == json!(newest)).await;
    pair.a.kill();
    b.run_in(&run, "interrupted").await;
    // Nobody has read it before.
    let whole = rest(b.events(&run, None).await).await;
    assert!(whole.starts_with(&seen) && is_interrupted(&whole), "{whole}");
    assert_eq!(b.says(&message("c", "Go on")).await, "Hm.");
    let expected = ["user: Think", "assistant: Half a thought", "user: Go on"];
    assert_eq!(said(&pair.model.requests()[1]), expected);
}

#[tokio::test]
async fn a_process_that_comes_back_after_its_lease_has_nothing_to_say() {
    let gate = Arc::new(Notify::new());
    let answers = [gated(&gate, "Once ", "upon a time."), says("Yes.").answer()];
    let Some(pair) = Pair::start(&[], answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&background("c", "Tell")).await;
    let run = header(&near, "x-run-id");
    let mut seen = read_until(&mut near, "Once").await;
    let newest = frames::numbered(&seen).last().unwrap().0;
    b.run_when(&run, |run| run["last_event_id"] == json!(newest)).await;

    pair.a.pause();
    b.run_in(&run, "interrupted").await;
    let whole = rest(b.events(&run, None).await).await;
    let ended = b.run(&run).await;
    assert!(whole.starts_with(&seen) && is_interrupted(&whole), "{whole}");
    // The rest of the answer is there when it wakes.
    gate.notify_one();
    pair.a.resume();
    seen += &rest(near).await;
    assert!(is_interrupted(&seen), "{seen}");
    assert!(!seen.contains("upon a time"), "{seen}");
    for client in [&a, &b] {
        assert_eq!(client.run(&run).await, ended);
    }
    assert_eq!(rest(b.events(&run, None).await).await, whole);
    assert_eq!(a.trail("c").await, ["user_message Tell", "model_turn Once ", "run_ended interrupted"]);
    assert_eq!(a.says(&message("c", "Really?")).await, "Yes.");
    let asked = said(&pair.model.requests()[1]);
    assert_eq!(asked, ["user: Tell", "assistant: Once ", "user: Really?"]);
}

#[tokio::test]
async fn a_process_that_comes_back_after_its_lease_writes_nothing() {
    let gate = Arc::new(Notify::new());
    let call = calls("c1", "close_ticket", &json!({"id": 7}));
    let answers = [turn().text("Done soon. ").answer().gated(&gate, call.bytes()), says("Not yet.").answer()];
    let Some(pair) = Pair::start(&[], answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&background("c", "Close 7")).await;
    let run = header(&near, "x-run-id");
    let mut seen = read_until(&mut near, "Done").await;
    let newest = frames::numbered(&seen).last().unwrap().0;
    b.run_when(&run, |run| run["last_event_id"] == json!(newest)).await;
    pair.a.pause();
    b.run_in(&run, "interrupted").await;
    gate.notify_one();
    pair.a.resume();
    seen += &rest(near).await;
    assert!(is_interrupted(&seen), "{seen}");
    assert_eq!(a.trail("c").await, ["user_message Close 7", "model_turn Done soon. ", "run_ended interrupted"]);
    assert_eq!(a.says(&message("c", "Closed?")).await, "Not yet.");
    assert_eq!(pair.backend.requests().len(), 0);
}

/// The process is paused for longer than its lease, while it waits for something that the write needs: the other replica has
/// ended its run by then, and a write is not noted, and so not sent, of a run that has ended.
#[tokio::test]
async fn a_process_that_was_paused_on_its_way_to_a_write_does_not_send_it() {
    let Some(postgres) = TestPostgres::shared() else { return };
    let gate = Arc::new(Notify::new());
    let opens = Arc::clone(&gate);
    let backend = Upstream::choosing(move |request| {
        let people = json!([{"id": 5, "name": "Bob"}]).to_string();
        Some(match request.method.as_str() {
            "GET" => Answer::ok("application/json", "").gated(&opens, people),
            _ => Answer::ok("application/json", r#"{"done": true}"#),
        })
    })
    .await;
    let call = calls("c1", "assign_ticket", &json!({"id": 7, "who": "Bob"}));
    let answers = [call.answer(), says("Nobody knows.").answer()];
    let Some(pair) = Pair::start_before(backend, postgres, &[], answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let near = a.chat(&background("c", "Give 7 to Bob")).await;
    let run = header(&near, "x-run-id");
    eventually("the name is looked up", async || (!pair.backend.requests().is_empty()).then_some(())).await;
    pair.a.pause();
    b.run_in(&run, "interrupted").await;
    // The name is there when it wakes, and nothing else stands between it and the write.
    gate.notify_one();
    pair.a.resume();
    let seen = rest(near).await;
    assert!(is_interrupted(&seen), "{seen}");
    assert_eq!(a.trail("c").await, ["user_message Give 7 to Bob", "run_ended interrupted"]);
    assert_eq!(a.says(&message("c", "Has he got it?")).await, "Nobody knows.");
    let sent: Vec<String> = pair.backend.requests().iter().map(|request| request.method.clone()).collect();
    assert_eq!(sent, ["GET"], "what was settled is not sent any more");
}

/// A tool whose write needs a token of this server's own, which is fetched when the write is noted.
const BOOKING: &str = r#"
[[tool]]
name = "book"
description = "Writes a line into the ledger."
backend = "ledger"
input_schema = { type = "object", properties = {} }
[tool.request]
method = "POST"
path = "/v1/lines"
"#;

const BOOKKEEPER: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["book"]
"#;

/// The process is paused between the note of a write and the write itself. Whoever settles its run knows of the note alone.
#[tokio::test]
async fn a_process_that_was_paused_between_the_note_of_a_write_and_the_write_does_not_send_it() {
    let Some(postgres) = TestPostgres::shared() else { return };
    let gate = Arc::new(Notify::new());
    let opens = Arc::clone(&gate);
    let backend = Upstream::choosing(move |request| {
        let token = json!({"access_token": "t", "token_type": "Bearer", "expires_in": 600}).to_string();
        Some(match request.path.as_str() {
            "/token" => Answer::ok("application/json", "").gated(&opens, token),
            _ => Answer::ok("application/json", r#"{"done": true}"#),
        })
    })
    .await;
    let (url, token_url) = (backend.url(), format!("{}/token", backend.url()));
    let settings = [
        ("BACKENDS__LEDGER__BASE_URL", url.as_str()),
        ("BACKENDS__LEDGER__CREDENTIALS", "client_credentials"),
        ("BACKENDS__LEDGER__TOKEN_URL", &token_url),
        ("BACKENDS__LEDGER__CLIENT_ID", "switchboard"),
        ("BACKENDS__LEDGER__CLIENT_SECRET", "the secret of this server"),
    ];
    let files = [("config/tools/tickets.toml", BOOKING), ("config/profiles/tickets.toml", BOOKKEEPER)];
    let answers = [calls("c1", "book", &json!({})).answer(), says("Nobody knows.").answer()];
    let Some(pair) = Pair::start_with(backend, postgres, (&settings, &files), answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let near = a.chat(&background("c", "Book it")).await;
    let run = header(&near, "x-run-id");
    eventually("a token is asked for", async || (!pair.backend.requests().is_empty()).then_some(())).await;
    pair.a.pause();
    b.run_in(&run, "interrupted").await;
    gate.notify_one();
    pair.a.resume();
    let seen = rest(near).await;
    assert!(is_interrupted(&seen), "{seen}");
    assert_eq!(
        a.trail("c").await,
        ["user_message Book it", "model_turn ", "tool_call unknown", "run_ended interrupted"]
    );
    assert_eq!(a.says(&message("c", "Is it booked?")).await, "Nobody knows.");
    assert!(pair.model.requests()[1].json().to_string().contains("the state of this call is unknown"));
    let asked: Vec<String> = pair.backend.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(asked, ["/token"], "what was settled as unknown is not sent");
}

#[tokio::test]
async fn a_reader_whose_replica_is_killed_goes_on_at_the_one_that_is_left() {
    let gate = Arc::new(Notify::new());
    let Some(mut pair) = Pair::start(&[], [gated(&gate, "Once ", "upon a time.")]).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&background("c", "Tell")).await;
    let run = header(&near, "x-run-id");
    let whole = read_until(&mut near, "Once").await;
    let mut far = b.events(&run, None).await;
    let seen = read_until(&mut far, "Once").await;
    pair.b.kill();
    let seen = until_broken(far, seen).await;
    let cursor = frames::numbered(&seen).last().unwrap().0;
    // Whoever asks nginx gets the replica that lives.
    let resumed = pair.on_either().events(&run, Some(cursor)).await;
    assert_eq!(resumed.status(), 200);
    gate.notify_one();
    let whole = whole + &rest(near).await;
    assert_eq!(seen + &rest(resumed).await, whole);
    assert_eq!(end_of(&whole), "message_complete");
}

#[tokio::test]
async fn a_run_that_waits_behind_one_whose_process_is_killed_takes_its_turn() {
    let Some(mut pair) = Pair::start(&[], [hanging("Half a thought"), says("Now.").answer()]).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&background("c", "Think")).await;
    let run = header(&near, "x-run-id");
    let newest = frames::numbered(&read_until(&mut near, "Half").await).last().unwrap().0;
    b.run_when(&run, |run| run["last_event_id"] == json!(newest)).await;
    let mut body = background("c", "And then?");
    body["on_busy"] = json!("enqueue");
    let waiting = b.chat(&body).await;
    assert_eq!(b.run(&header(&waiting, "x-run-id")).await["state"], "queued");
    pair.a.kill();
    assert_eq!(end_of(&rest(waiting).await), "message_complete");
    assert_eq!(b.run(&run).await["state"], "interrupted");
    assert!(said(&pair.model.requests()[1]).contains(&"assistant: Half a thought".to_owned()));
}

#[tokio::test]
async fn a_run_that_waits_in_a_process_that_is_killed_keeps_nobody_waiting() {
    let gate = Arc::new(Notify::new());
    let answers = [gated(&gate, "One ", "more."), says("Three.").answer()];
    let Some(mut pair) = Pair::start(&[], answers).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let queued = |text: &str| {
        let mut body = background("c", text);
        body["on_busy"] = json!("enqueue");
        body
    };
    let mut first = b.chat(&background("c", "1")).await;
    let seen = read_until(&mut first, "One").await;
    let second = a.chat(&queued("2")).await;
    let lost = header(&second, "x-run-id");
    let third = b.chat(&queued("3")).await;
    pair.a.kill();
    gate.notify_one();
    assert_eq!(end_of(&(seen + &rest(first).await)), "message_complete");
    assert_eq!(end_of(&rest(third).await), "message_complete");
    assert_eq!(b.run(&lost).await["state"], "interrupted");
    assert_eq!(end_of(&rest(b.events(&lost, None).await).await), "interrupted");
    let asked = said(&pair.model.requests()[1]).join("\n");
    assert!(asked.contains('2') && asked.ends_with('3'), "its message is kept: {asked}");
}

#[tokio::test]
async fn a_run_of_a_killed_process_can_be_cancelled_and_ends_once() {
    let Some(mut pair) = Pair::start(&[], [hanging("Half"), says("Well.").answer()]).await else { return };
    let (a, b) = (pair.on("a"), pair.on("b"));
    let mut near = a.chat(&background("c", "Think")).await;
    let run = header(&near, "x-run-id");
    read_until(&mut near, "Half").await;
    let attached = b.events(&run, None).await;
    pair.a.kill();
    assert_eq!(b.cancel(&run).await.status(), 200);
    let told = b.run_when(&run, |run| run["finished_at"].is_string()).await;
    let end = end_of(&rest(attached).await);
    assert_eq!(told["state"], end);
    assert!(["cancelled", "interrupted"].contains(&end.as_str()), "{end}");
    assert_eq!(b.says(&message("c", "And?")).await, "Well.");
}
