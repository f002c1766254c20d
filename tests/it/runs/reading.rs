//! A run is read from any event on, while it goes on and when it has ended, and what its readers get is the same to the
//! byte.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{background, body, gated, get, header, problem, read_until, run, run_in, scripted};
use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{Scripted, calls, says};

#[tokio::test]
async fn a_run_tells_its_state_its_cost_and_its_newest_event() {
    let s = Scripted::playing([calls("1", "discover_trigger_types", &json!({})), says("Three.")]).await;
    let response = s.app.post(&body("How many?")).await;
    let id = header(&response, "x-run-id");
    assert_eq!(header(&response, "x-conversation-id"), "c");
    let frames = frames::parse(&response.text().await.unwrap());

    let mut told = run_in(&s.app, &id, "completed").await;
    for time in ["created_at", "finished_at"] {
        let text = told.as_object_mut().unwrap().remove(time).unwrap();
        assert!(text.as_str().is_some_and(|text| text.ends_with('Z') && text.len() == 24), "{time} {text}");
    }
    let expected = json!({
        "id": id, "conversation_id": "c", "state": "completed", "turns": 2, "background": false,
        // The ends of both turns and two events of the calls have numbers and are not shown.
        "usage": {"input_tokens": 20, "output_tokens": 10}, "last_event_id": frames.len() + 3,
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_run_in_the_background_goes_on_when_its_client_goes_away() {
    let gate = Arc::new(Notify::new());
    let s = scripted([gated(&gate, "Once upon ", "a time.")]).await;
    let mut response = s.app.post(&background("Tell")).await;
    let id = header(&response, "x-run-id");
    let seen = read_until(&mut response, "Once upon").await;
    drop(response);
    assert_eq!(run(&s.app, &id).await["state"], "running");

    let cursor = frames::numbered(&seen).last().unwrap().0;
    let mut rest = s
        .app
        .http
        .get(s.app.url(&format!("/v1/agent/runs/{id}/events")))
        .bearer_auth(&s.app.token)
        .header("last-event-id", cursor.to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(
        (header(&rest, "x-run-id"), header(&rest, "content-type")),
        (id.clone(), "text/event-stream".to_owned())
    );
    gate.notify_one();
    let rest = read_until(&mut rest, "message_complete").await;
    let whole = get(&s.app, &format!("/v1/agent/runs/{id}/events")).await.text().await.unwrap();
    assert_eq!(whole, seen + &rest, "live or finished, together or in parts: the same bytes");
    let ids: Vec<u64> = frames::numbered(&whole).iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [0, 1, 2, 4], "from 0; the end of the turn has a number and no frame");
    assert_eq!(run_in(&s.app, &id, "completed").await["last_event_id"], json!(4));
}

#[tokio::test]
async fn what_the_first_connection_saw_is_what_every_reader_gets_errors_included() {
    let s = scripted([super::turn().text("Half").breaks().answer()]).await;
    let first = s.app.post(&background("Tell")).await;
    let id = header(&first, "x-run-id");
    let first = first.text().await.unwrap();
    assert!(first.contains("event: error\n"), "{first}");
    for after in 0..frames::numbered(&first).len() {
        let url = format!("/v1/agent/runs/{id}/events?after={after}");
        let rest: String = first.split_inclusive("\n\n").skip(after + 1).collect();
        assert_eq!(get(&s.app, &url).await.text().await.unwrap(), rest, "after {after}");
    }
}

#[tokio::test]
async fn a_run_in_the_foreground_is_read_again_with_numbers() {
    let s = Scripted::playing([says("Hello.")]).await;
    let response = s.app.post(&body("Hi")).await;
    let id = header(&response, "x-run-id");
    let plain = response.text().await.unwrap();
    let again = get(&s.app, &format!("/v1/agent/runs/{id}/events")).await.text().await.unwrap();
    let numbered = frames::numbered(&again);
    // The end of the turn has a number and no frame.
    let expected: Vec<_> = [0, 1, 3].into_iter().zip(frames::parse(&plain)).collect();
    assert_eq!(numbered, expected);
}

#[tokio::test]
async fn two_readers_of_a_live_run_see_the_same() {
    let gate = Arc::new(Notify::new());
    let s = scripted([gated(&gate, "One ", "two.")]).await;
    let mut first = s.app.post(&background("Count")).await;
    let id = header(&first, "x-run-id");
    let mut seen = read_until(&mut first, "One").await;
    let mut second = get(&s.app, &format!("/v1/agent/runs/{id}/events")).await;
    let mut also = read_until(&mut second, "One").await;
    gate.notify_one();
    seen += &first.text().await.unwrap();
    also += &second.text().await.unwrap();
    assert_eq!(seen, also);
}

#[tokio::test]
async fn a_cursor_is_the_id_of_an_event_that_was() {
    let s = Scripted::playing([says("Hello.")]).await;
    let response = s.app.post(&background("Hi")).await;
    let id = header(&response, "x-run-id");
    let last = frames::numbered(&response.text().await.unwrap()).last().unwrap().0;
    let beyond = (last + 1).to_string();
    let rows = [
        ("-1", "negative"),
        ("x", "no number"),
        ("1.5", "no whole number"),
        ("+1", "a sign"),
        ("18446744073709551615", "the largest number, after which none comes"),
        ("99999999999999999999999", "no number that fits"),
        (&beyond, "beyond the end"),
        ("%00", "a nul"),
    ];
    for (cursor, reason) in rows {
        let response = get(&s.app, &format!("/v1/agent/runs/{id}/events?after={cursor}")).await;
        assert_eq!(problem(response).await, (400, "cursor_invalid".to_owned()), "{reason}");
    }
    let over = get(&s.app, &format!("/v1/agent/runs/{id}/events?after={last}")).await;
    assert_eq!(over.status(), 204, "nothing comes after the end");
    let twice = get(&s.app, &format!("/v1/agent/runs/{id}/events?after=0&after=1")).await;
    assert_eq!(problem(twice).await, (400, "cursor_invalid".to_owned()));
}

#[tokio::test]
async fn who_connects_again_says_in_the_header_where_it_stands() {
    let s = Scripted::playing([says("Hello.")]).await;
    let response = s.app.post(&background("Hi")).await;
    let id = header(&response, "x-run-id");
    let whole = response.text().await.unwrap();
    let rows = [
        ("?after=0", Some("1"), 2, "the url is the first connection's"),
        ("?after=x", Some("0"), 1, "so what it says does not matter"),
        ("?after=", Some("0"), 1, "an empty parameter is none"),
        ("?after=1", Some(""), 2, "an empty header is none"),
        ("?after=", Some(""), 0, "neither is one"),
        ("", Some("1"), 2, "the header alone"),
        ("?after=1", None, 2, "the parameter alone"),
    ];
    for (query, last, skipped, reason) in rows {
        let url = s.app.url(&format!("/v1/agent/runs/{id}/events{query}"));
        let mut request = s.app.http.get(url).bearer_auth(&s.app.token);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let rest: String = whole.split_inclusive("\n\n").skip(skipped).collect();
        assert_eq!(request.send().await.unwrap().text().await.unwrap(), rest, "{reason}");
    }
}

#[tokio::test]
async fn a_cursor_beyond_what_a_live_run_has_said_is_invalid() {
    let s = scripted([super::hanging("Once")]).await;
    let mut response = s.app.post(&background("Tell")).await;
    let id = header(&response, "x-run-id");
    read_until(&mut response, "Once").await;
    let response = get(&s.app, &format!("/v1/agent/runs/{id}/events?after=7")).await;
    assert_eq!(problem(response).await, (400, "cursor_invalid".to_owned()));
}

#[tokio::test]
async fn events_that_are_not_kept_any_more_are_an_error_and_no_gap() {
    let s = Scripted::with(
        &[("EVENTS__RUN_BYTES", "600")],
        [(0..20).fold(super::turn(), |turn, n| turn.text(&format!("word {n} "))).done().answer()],
    )
    .await;
    let response = s.app.post(&background("Talk")).await;
    let id = header(&response, "x-run-id");
    response.text().await.unwrap();
    run_in(&s.app, &id, "completed").await;
    for path in ["", "?after=0"] {
        let response = get(&s.app, &format!("/v1/agent/runs/{id}/events{path}")).await;
        assert_eq!(problem(response).await, (410, "cursor_evicted".to_owned()), "{path}");
    }
    let last = run(&s.app, &id).await["last_event_id"].as_u64().unwrap();
    let rest = get(&s.app, &format!("/v1/agent/runs/{id}/events?after={}", last - 1)).await;
    assert_eq!(frames::numbered(&rest.text().await.unwrap()).len(), 1, "what is kept is given");
}

#[tokio::test]
async fn a_run_whose_retention_is_over_is_known_and_its_events_are_not() {
    let s = Scripted::with(&[("RUNS__RETENTION_S", "0")], [says("Hello.").answer()]).await;
    let response = s.app.post(&background("Hi")).await;
    let id = header(&response, "x-run-id");
    response.text().await.unwrap();
    assert_eq!(run_in(&s.app, &id, "completed").await["state"], "completed");
    let response = get(&s.app, &format!("/v1/agent/runs/{id}/events")).await;
    assert_eq!(problem(response).await, (410, "cursor_evicted".to_owned()));
}

#[tokio::test]
async fn nobody_elses_run_is_there() {
    let s = Scripted::playing([says("Hello.")]).await;
    let response = s.app.post(&background("Hi")).await;
    let id = header(&response, "x-run-id");
    response.text().await.unwrap();
    let unknown = uuid::Uuid::now_v7().to_string();
    let strangers =
        [("bob", None, "another user"), (crate::support::app::ADA, Some("other"), "the same user of another tenant")];
    for (user, tenant, reason) in strangers {
        let token = s.app.token_of(user, tenant, &[]);
        for (method, path) in [("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/continue")] {
            let ask = async |id: &str| -> (u16, Value) {
                let url = s.app.url(&format!("/v1/agent/runs/{id}{path}"));
                let request = s.app.http.request(method.parse().unwrap(), url).bearer_auth(&token);
                let response = request.send().await.unwrap();
                let status = response.status().as_u16();
                let mut body: Value = response.json().await.unwrap();
                body.as_object_mut().unwrap().remove("request_id");
                (status, body)
            };
            let theirs = ask(&id).await;
            assert_eq!(theirs.0, 404, "{reason}: {method} {path}");
            assert_eq!(theirs, ask(&unknown).await, "{reason}: as one that never was");
            assert_eq!(theirs, ask("no-id").await, "{reason}: as one that cannot be");
        }
    }
}

#[tokio::test]
async fn a_run_lives_for_its_grace_after_its_last_reader() {
    let gate = Arc::new(Notify::new());
    let s = Scripted::with(&[("RUNS__GRACE_S", "20")], [gated(&gate, "Once ", "more.")]).await;
    let mut response = s.app.post(&body("Tell")).await;
    let id = header(&response, "x-run-id");
    read_until(&mut response, "Once").await;
    drop(response);
    let mut again = get(&s.app, &format!("/v1/agent/runs/{id}/events")).await;
    read_until(&mut again, "Once").await;
    gate.notify_one();
    read_until(&mut again, "message_complete").await;
}

#[tokio::test]
async fn a_run_whose_grace_is_over_is_cancelled() {
    let s = Scripted::with(&[("RUNS__GRACE_S", "1")], [super::hanging("Once")]).await;
    let mut response = s.app.post(&body("Tell")).await;
    let id = header(&response, "x-run-id");
    read_until(&mut response, "Once").await;
    drop(response);
    s.model.clients_gone(1).await;
    run_in(&s.app, &id, "cancelled").await;
}

#[tokio::test]
async fn a_profile_may_say_that_its_runs_go_on() {
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(data.path().join("config/profiles")).unwrap();
    let shipped =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/profiles/workflow.toml")).unwrap();
    std::fs::write(data.path().join("config/profiles/workflow.toml"), format!("background = true\n{shipped}")).unwrap();
    let app = TestApp::start_in(data, &[]).await;
    let text = app.post(&body("hello")).await.text().await.unwrap();
    assert_eq!(frames::numbered(&text).first().unwrap().0, 0, "its frames are numbered");
    let mut plain = body("hello");
    plain["background"] = json!(false);
    frames::parse(&app.post(&plain).await.text().await.unwrap());
}
