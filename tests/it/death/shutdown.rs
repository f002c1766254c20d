//! A process that is told to stop: what is under way gets its time, the rest ends as interrupted and can be gone on
//! with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::{Client, Machine, backend, background, end_of, message, problem, refused, rest, said};
use crate::runs::{header, read_until};
use crate::support::model::{calls, messages, says, turn};
use crate::support::upstream::{Answer, End, Request, Upstream};
use crate::support::wait::eventually;

/// Open streams of each kind.
const OF_EACH: usize = 50;

/// What becomes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It goes on when the process has been told to stop.
    Finishes,
    /// Nothing more comes.
    Hangs,
    /// A tool is called that does not answer.
    Calls,
}

/// A model that does what the message says, `KIND N`; the `N`th gate is that answer's.
fn model(request: &Request, gates: &[Arc<Notify>]) -> Option<Answer> {
    let messages = messages(request);
    let mut words = messages.last().unwrap()["content"].as_str().unwrap().split(' ');
    let (kind, n) = (words.next().unwrap(), words.next().unwrap_or_default());
    Some(match kind {
        "Finishes" => turn().text("Well, ").answer().gated(&gates[n.parse::<usize>().unwrap()], says("yes.").bytes()),
        "Hangs" => turn().text("Well, ").hangs().answer(),
        "Calls" => calls(&format!("call-{n}"), "close_ticket", &json!({"id": n.parse::<u64>().unwrap()})).answer(),
        _ => says("Where were we?").answer(),
    })
}

/// A backend that gets everything and answers nothing.
async fn silent() -> Upstream {
    Upstream::choosing(|_| Some(Answer::ok("application/json", "").ending(End::Hang))).await
}

/// A stream that is in the middle of something.
struct Open {
    kind: Kind,
    run: String,
    seen: String,
    response: reqwest::Response,
}

/// Every second one in the background.
async fn open(client: &Client, n: usize, kind: Kind) -> Open {
    let body = if n.is_multiple_of(2) { message } else { background };
    let mut response = client.chat(&body(&format!("c-{n}"), &format!("{kind:?} {n}"))).await;
    let run = header(&response, "x-run-id");
    let wanted = if kind == Kind::Calls { "tool_call_start" } else { "Well" };
    let seen = read_until(&mut response, wanted).await;
    Open { kind, run, seen, response }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_end_once_each_and_the_process_ends_well() {
    let kinds: Vec<Kind> =
        [Kind::Finishes, Kind::Hangs, Kind::Hangs, Kind::Calls].into_iter().flat_map(|kind| [kind; OF_EACH]).collect();
    let gates: Arc<Vec<Arc<Notify>>> = Arc::new(kinds.iter().map(|_| Arc::default()).collect());
    let of_model = gates.clone();
    let (model, backend) = (Upstream::choosing(move |request| model(request, &of_model)).await, silent().await);
    let machine = Machine::new(&model, &backend, &[("SERVER__DRAIN_S", "2")]);
    let mut serving = machine.serve();
    let token = machine.token();
    let client = Client::of(&serving, &token);
    let streams = join_all(kinds.iter().enumerate().map(|(n, kind)| open(&client, n, *kind))).await;
    eventually("all tools are under way", async || (backend.requests().len() == OF_EACH).then_some(())).await;
    let mut queued = background(&format!("c-{OF_EACH}"), "Queued");
    queued["on_busy"] = json!("enqueue");
    let queued = client.chat(&queued).await;

    let told = Instant::now();
    serving.terminate();
    eventually("not ready", async || (client.get("/readyz").await.status() == 503).then_some(())).await;
    refused(&client, "draining").await;
    gates.iter().for_each(|gate| gate.notify_one());
    let ends = join_all(streams.into_iter().map(async |open| {
        let Open { kind, run, seen, response } = open;
        let whole = seen + &rest(response).await;
        assert_eq!(whole.matches(": draining\n\n").count(), 1, "{whole}");
        (kind, run, end_of(&whole))
    }))
    .await;
    assert_eq!(end_of(&rest(queued).await), "interrupted");
    for (kind, run, end) in &ends {
        let expected = if *kind == Kind::Finishes { "message_complete" } else { "interrupted" };
        assert_eq!(end, expected, "{kind:?} {run}");
    }
    assert_eq!(serving.ended().await, Some(0), "{}", machine.folder.stderr());
    assert!(told.elapsed() < Duration::from_secs(12), "{:?}", told.elapsed());

    let serving = machine.serve();
    let client = Client::of(&serving, &token);
    for (kind, run, _) in &ends {
        let state = if *kind == Kind::Finishes { "completed" } else { "interrupted" };
        assert_eq!(client.run(run).await["state"], state);
    }
    for (n, wanted) in [(OF_EACH, "Well, "), (3 * OF_EACH, "the state of this call is unknown")] {
        let response = client.go_on(&ends[n].1).await;
        assert_eq!(response.status(), 200);
        assert_eq!(end_of(&rest(response).await), "message_complete");
        let asked = said(model.requests().last().unwrap()).join("\n");
        assert!(asked.starts_with(&format!("user: {:?} {n}", ends[n].0)) && asked.contains(wanted), "{asked}");
    }
    assert_eq!(backend.requests().len(), OF_EACH, "no write was repeated");
}

#[tokio::test]
async fn a_second_signal_leaves_no_time() {
    let (model, backend) = (Upstream::choosing(|request| model(request, &[])).await, silent().await);
    let machine = Machine::new(&model, &backend, &[("SERVER__DRAIN_S", "3600")]);
    let mut serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    let streams = [open(&client, 0, Kind::Hangs).await, open(&client, 1, Kind::Calls).await];
    serving.terminate();
    eventually("draining", async || machine.folder.stderr().contains("draining").then_some(())).await;
    serving.terminate();
    for Open { seen, response, .. } in streams {
        assert_eq!(end_of(&(seen + &rest(response).await)), "interrupted");
    }
    assert_eq!(serving.ended().await, Some(0), "{}", machine.folder.stderr());
}

#[tokio::test]
async fn a_process_that_is_told_to_stop_while_it_starts_does_and_leaves_nothing_broken() {
    let (model, backend) = (Upstream::choosing(|request| model(request, &[])).await, backend().await);
    let machine = Machine::new(&model, &backend, &[]);
    for n in 0..20 {
        let mut serving = machine.start();
        tokio::time::sleep(Duration::from_millis(n * 5)).await;
        serving.terminate();
        // Ended by the signal itself, when it came before anything was begun.
        let code = serving.ended().await;
        assert!(matches!(code, Some(0) | None), "{code:?}: {}", machine.folder.stderr());
    }
    let serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    assert_eq!(client.says(&message("c", "Hello?")).await, "Where were we?");
}

#[tokio::test]
async fn a_process_that_waits_for_its_database_stops_at_once() {
    let (model, backend) = (Upstream::script([]).await, backend().await);
    let database = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://nobody@{}/none", database.local_addr().unwrap());
    let machine = Machine::new(&model, &backend, &[("STORE__URL", &url)]);
    let mut serving = machine.start();
    // It takes the connection and says nothing.
    let connection = database.accept().await.unwrap();
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0), "{}", machine.folder.stderr());
    drop(connection);
}

#[tokio::test]
async fn a_request_on_a_kept_connection_is_told_to_come_back() {
    let (model, backend) = (Upstream::choosing(|request| model(request, &[])).await, backend().await);
    let machine = Machine::new(&model, &backend, &[("SERVER__DRAIN_S", "3600")]);
    let mut serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    let hanging = open(&client, 0, Kind::Hangs).await;
    client.says(&message("d", "Hello?")).await;
    serving.terminate();
    eventually("draining", async || machine.folder.stderr().contains("draining").then_some(())).await;
    for path in ["/v1/agent/chat".to_owned(), format!("/v1/agent/runs/{}/continue", hanging.run)] {
        let told = problem(client.post(&path, &message("d", "And?")).await).await;
        assert_eq!(told, (503, "draining".to_owned()), "{path}");
    }
    // What is there can still be looked at, and ended.
    let told: Value = client.cancel(&hanging.run).await.json().await.unwrap();
    assert_eq!(told["state"], "cancelled");
    assert_eq!(end_of(&(hanging.seen + &rest(hanging.response).await)), "cancelled");
    assert_eq!(serving.ended().await, Some(0), "{}", machine.folder.stderr());
}
