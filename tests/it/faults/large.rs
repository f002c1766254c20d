//! Very long runs and very large events: memory stays level, and late readers get all of it or are told.

use std::time::Instant;

use futures::future::join_all;

use crate::death::{Client, Machine, backend, background, end_of, message, problem, rest, without_ids};
use crate::runs::header;
use crate::support::environment::cycles;
use crate::support::frames;
use crate::support::model::{says, turn};
use crate::support::upstream::{Answer, Upstream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_very_many_events_costs_little_and_is_read_by_latecomers() {
    let events = cycles(5_000, 100_000);
    let words: String = (0..events).map(|nth| turn().text(&format!("{nth} ")).bytes()).collect();
    let text: String = (0..events).map(|nth| format!("{nth} ")).chain(["end.".to_owned()]).collect();
    let story = words + &says("end.").bytes();
    let model =
        Upstream::choosing(move |_| Some(Answer::ok("text/event-stream", story.clone()).cut(|| 32 << 10))).await;
    let backend = backend().await;
    let machine = Machine::new(&model, &backend, &[("RUNS__SUMMARY_MODEL", "off")]);
    let serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    // The same once before, so that what any run takes is there.
    client.says(&message("warm-up", "Tell")).await;
    let before = serving.resident_kib();
    let response = client.chat(&background("c", "Tell")).await;
    let run = header(&response, "x-run-id");
    let began = Instant::now();
    let whole = response.text().await.unwrap();
    println!("{events} events told in {:?}", began.elapsed());
    assert_eq!(frames::text(&frames::parse(&without_ids(&whole))), text);
    let last = frames::numbered(&whole).last().unwrap().0;

    let readers = cycles(10, 1000);
    let began = Instant::now();
    let late = join_all((0..readers).map(async |_| {
        let response = client.events(&run, None).await;
        match response.status().as_u16() {
            200 => Some(response.bytes().await.unwrap().len()),
            _ => {
                assert_eq!(problem(response).await, (410, "cursor_evicted".to_owned()));
                None
            }
        }
    }))
    .await;
    let took = began.elapsed();
    let grown = serving.resident_kib().saturating_sub(before);
    let read: usize = late.iter().flatten().count();
    println!("{read} of {readers} latecomers read {} events each in {took:?}; {grown} KiB more", last + 1);
    assert!(late.iter().flatten().all(|bytes| *bytes == whole.len()), "{} bytes: {late:?}", whole.len());
    assert!(late.iter().all(|read| read.is_some()) || events > 20_000, "a short run is there as a whole");
    assert!(grown < 64 << 10, "{grown} KiB more");
    // Whoever comes in the middle gets what is kept behind it.
    let some = client.events(&run, Some(last - 5)).await;
    let tail: String = whole.split_inclusive("\n\n").skip(usize::try_from(last).unwrap() - 4).collect();
    assert_eq!(rest(some).await, tail);
}

#[tokio::test]
async fn an_event_of_a_mebibyte_goes_through_whole() {
    let text = "äx".repeat(350_000);
    let model = Upstream::script([turn().text(&text).done().answer().cut(|| 32 << 10), says("Yes.").answer()]).await;
    let backend = backend().await;
    let machine = Machine::new(&model, &backend, &[("RUNS__SUMMARY_MODEL", "off")]);
    let serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    let response = client.chat(&background("c", "Tell")).await;
    let run = header(&response, "x-run-id");
    let whole = rest(response).await;
    assert_eq!(end_of(&whole), "message_complete");
    assert_eq!(frames::text(&frames::parse(&without_ids(&whole))), text);
    assert_eq!(rest(client.events(&run, None).await).await, whole);
    assert_eq!(client.says(&message("c", "Still there?")).await, "Yes.");
}
