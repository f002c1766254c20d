//! Requests that are sent again: within a session, also in the other shape, and by clients that say that they do.

use serde_json::{Value, json};

use super::{MESSAGES, also, ask, message, playing, post, text_of};
use crate::approvals::World;
use crate::support::frames::read_until;
use crate::support::model::{calls, says, turn};
use crate::support::tickets::writes;

const SESSION: (&str, &str) = ("x-claude-code-session-id", "s");
const FIRST: (&str, &str) = ("x-stainless-retry-count", "0");
const AGAIN: (&str, &str) = ("x-stainless-retry-count", "1");

#[tokio::test]
async fn a_request_that_is_sent_again_joins_the_run_of_the_first_time() {
    for headers in [[vec![FIRST], vec![AGAIN]], [vec![SESSION, FIRST], vec![SESSION, FIRST]]] {
        let s = playing([says("Once.")]).await;
        let first = message(post(&s, &headers[0], &ask("Hi")).await).await;
        let again = message(post(&s, &headers[1], &ask("Hi")).await).await;
        assert_eq!((again, s.model.requests().len()), (first, 1), "{headers:?}");
    }
}

#[tokio::test]
async fn the_same_question_in_another_session_is_another_one() {
    let s = playing(["Once.", "Other.", "Twice.", "Longer."].map(says)).await;
    let text = async |headers: &[(&str, &str)], body: &Value| text_of(&message(post(&s, headers, body).await).await);
    assert_eq!(text(&[SESSION], &ask("Hi")).await, "Once.");
    assert_eq!(text(&[("x-claude-code-session-id", "t")], &ask("Hi")).await, "Other.");
    assert_eq!(text(&[FIRST], &ask("Hi")).await, "Twice.", "of a client that names none");
    assert_eq!(text(&[SESSION], &ask("Ho")).await, "Longer.");
    assert_eq!(text(&[SESSION], &also(ask("Hi"), json!({"max_tokens": 5, "system": "Again."}))).await, "Once.");
}

#[tokio::test]
async fn a_stream_that_broke_is_gone_on_with_in_the_other_shape_and_writes_nothing_twice() {
    let w = World::playing([
        calls("n1", "note", &json!({"text": "once"})),
        turn().text("Noted, and").hangs(),
        says(" that is all."),
    ])
    .await;
    let body = json!({"model": "tickets", "max_tokens": 100, "messages": [{"role": "user", "content": "Note it"}]});
    let send = async |body: &Value| {
        let request = w.s.app.http.post(w.s.app.url(MESSAGES)).bearer_auth(&w.s.app.token).header(SESSION.0, SESSION.1);
        request.json(body).send().await.unwrap()
    };
    let mut lost = send(&also(body.clone(), json!({"stream": true}))).await;
    read_until(&mut lost, "Noted").await;
    drop(lost);
    w.s.model.clients_gone(1).await;
    let again = message(send(&body).await).await;
    assert_eq!((text_of(&again).as_str(), &again["stop_reason"]), (" that is all.", &json!("end_turn")));
    assert_eq!(writes(&w.backend).len(), 1);
}

#[tokio::test]
async fn a_run_that_failed_is_gone_on_with_and_writes_nothing_twice() {
    let w = World::playing([
        calls("n1", "note", &json!({"text": "once"})),
        turn().text("Noted, and").breaks(),
        says(" that is all."),
    ])
    .await;
    let body = json!({"model": "tickets", "max_tokens": 100, "messages": [{"role": "user", "content": "Note it"}]});
    let first = post(&w.s, &[SESSION], &also(body.clone(), json!({"stream": true}))).await.text().await.unwrap();
    assert!(first.contains("event: error\n"), "{first}");
    let again = message(post(&w.s, &[SESSION], &body).await).await;
    assert_eq!(text_of(&again), " that is all.");
    assert_eq!(writes(&w.backend).len(), 1);
}
