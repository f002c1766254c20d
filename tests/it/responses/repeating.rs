//! Requests that are sent again: by a key, and without one by clients that say that they do.

use serde_json::{Value, json};

use super::{also, ask, object, playing, post, streamed, text_of, with};
use crate::approvals::World;
use crate::support::frames::read_until;
use crate::support::model::{calls, says, turn};
use crate::support::tickets::writes;

const FIRST: [(&str, &str); 1] = [("x-stainless-retry-count", "0")];
const AGAIN: [(&str, &str); 1] = [("x-stainless-retry-count", "1")];

#[tokio::test]
async fn a_request_that_is_sent_again_joins_the_run_of_the_first_time() {
    for headers in [[FIRST, AGAIN], [[("thread-id", "t")], [("thread-id", "t")]]] {
        let s = playing([says("Once.")]).await;
        let first = object(post(&s, &headers[0], &ask("Hi")).await).await;
        let again = object(post(&s, &headers[1], &ask("Hi")).await).await;
        assert_eq!((again, s.model.requests().len()), (first, 1), "{headers:?}");
    }
}

#[tokio::test]
async fn the_same_question_of_a_user_is_another_one() {
    let s = playing([says("Once."), says("Twice."), says("Other."), says("Bob's.")]).await;
    let texts =
        async |headers: &[(&str, &str)], text: &str| text_of(&object(post(&s, headers, &ask(text)).await).await);
    assert_eq!(texts(&FIRST, "Hi").await, "Once.");
    assert_eq!(texts(&FIRST, "Hi").await, "Twice.", "its client says that it is the first time");
    assert_eq!(texts(&AGAIN, "Hi").await, "Twice.", "the newest");
    assert_eq!(texts(&AGAIN, "Ho").await, "Other.", "another question");
    let bob = s.app.token_of("bob", None, &["USER"]);
    let request = s.app.http.post(s.app.url(super::RESPONSES)).bearer_auth(bob).header("x-stainless-retry-count", "1");
    assert_eq!(text_of(&object(request.json(&ask("Hi")).send().await.unwrap()).await), "Bob's.");
}

#[tokio::test]
async fn a_run_whose_client_was_lost_is_gone_on_with_and_writes_nothing_twice() {
    let w = World::playing([
        calls("n1", "note", &json!({"text": "once"})),
        turn().text("Noted, and").hangs(),
        says(" that is all."),
    ])
    .await;
    let body = json!({"model": "tickets", "input": "Note it", "stream": true, "store": false});
    let send = async || {
        w.s.app
            .http
            .post(w.s.app.url(super::RESPONSES))
            .bearer_auth(&w.s.app.token)
            .header("thread-id", "t")
            .json(&body)
            .send()
            .await
            .unwrap()
    };
    let mut lost = send().await;
    read_until(&mut lost, "Noted").await;
    drop(lost);
    w.s.model.clients_gone(1).await;
    let events: Vec<Value> = streamed(send().await).await;
    let response = &events.last().unwrap()["response"];
    assert_eq!((text_of(response).as_str(), &response["status"]), (" that is all.", &json!("completed")));
    assert_eq!(writes(&w.backend).len(), 1);
}

#[tokio::test]
async fn a_key_finds_the_response_of_the_first_time_also_in_the_background() {
    let s = with(&[], &[], [says("Once.").answer()]).await;
    let key = [("idempotency-key", "k")];
    let body = also(ask("Hi"), json!({"background": true}));
    let first = object(post(&s, &key, &body).await).await;
    let again = object(post(&s, &key, &body).await).await;
    assert_eq!(first["id"], again["id"]);
    let other = post(&s, &key, &ask("Ho")).await;
    assert_eq!(other.status(), 422);
}
