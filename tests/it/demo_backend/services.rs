//! A service that speaks for others, and writes that come again.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Backend, SERVICE, refused};

const THREADS: &str = "/v1/forum/threads";
const GENERAL: &str = "cc000000-0000-4000-8000-000000000001";

impl Backend {
    /// A thread is begun with these headers.
    async fn begin(&self, token: &str, title: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        let body = json!({ "category_id": GENERAL, "title": title });
        self.call_with(Method::POST, token, THREADS, Some(&body), headers).await
    }

    async fn count(&self) -> usize {
        self.get("owner@acme", THREADS).await.1["items"].as_array().unwrap().len()
    }
}

#[tokio::test]
async fn a_service_says_who_asks_and_nobody_else_does() {
    let backend = Backend::start().await;
    let tenant = ("x-switchboard-tenant", "acme");
    let [ann, roles] = [("x-switchboard-actor", "user:J%C3%BCrg%20%25"), ("x-switchboard-actor-roles", "a%2Cb,member")];
    let (status, thread) = backend.begin(SERVICE, "One", &[tenant, ann, roles]).await;
    assert_eq!((status, &thread["created_by_user_id"]), (200, &json!("Jürg %")));

    type Row<'a> = (&'a [(&'a str, &'a str)], u16, &'a str);
    let rows: [Row<'_>; 4] = [
        (&[tenant, roles], 400, "X-Switchboard-Actor: must name a user"),
        (&[tenant, ("x-switchboard-actor", "ann"), roles], 400, "X-Switchboard-Actor: must name a user"),
        (&[tenant, ann], 403, "this needs the role owner, admin or member"),
        (&[ann, roles], 400, "missing tenant context"),
    ];
    for (headers, status, message) in rows {
        let (got, answer) = backend.begin(SERVICE, "Two", headers).await;
        assert_eq!((got, &answer["message"]), (status, &json!(message)), "{headers:?}");
    }
    let other = [("x-switchboard-tenant", "globex"), ("x-switchboard-actor", "user:root"), roles];
    let (_, thread) = backend.begin("member@acme", "Three", &other).await;
    assert_eq!(thread["created_by_user_id"], "member", "a member speaks for themselves");
    assert_eq!(backend.begin("the-servic", "Four", &[tenant, ann, roles]).await.0, 401);
}

#[tokio::test]
async fn a_write_that_comes_again_with_its_key_is_done_once() {
    let backend = Backend::start().await;
    let (key, before) = ([("idempotency-key", "k1")], backend.count().await);
    let (first, second) =
        tokio::join!(backend.begin("owner@acme", "One", &key), backend.begin("owner@acme", "One", &key));
    assert_eq!((first.0, &first), (200, &second), "at once");
    assert_eq!(backend.begin("owner@acme", "One", &key).await, first, "and later");
    assert_eq!(backend.count().await, before + 1);

    let mismatch = (422, refused("mismatch", "the Idempotency-Key is that of another request"));
    assert_eq!(backend.begin("owner@acme", "Two", &key).await, mismatch);
    assert_ne!(backend.begin("member@acme", "One", &key).await.1["id"], first.1["id"], "somebody else's key");
    let (status, _) = backend.begin("owner@acme", "One", &[("idempotency-key", "")]).await;
    assert_eq!(status, 400, "an empty key");
    assert_eq!(backend.count().await, before + 2);
}

#[tokio::test]
async fn a_refusal_is_not_kept_and_of_a_thousand_answers_the_oldest_goes() {
    let backend = Backend::start().await;
    let lock = format!("{THREADS}/dd000000-0000-4000-8000-000000000002/unlock");
    let post = json!({ "thread_id": "dd000000-0000-4000-8000-000000000002", "content": "Hello" });
    let key = [("idempotency-key", "first")];
    let write = async || backend.call_with(Method::POST, "owner@acme", "/v1/forum/posts", Some(&post), &key).await;
    assert_eq!(write().await.0, 400, "the thread is locked");
    assert_eq!(backend.post("owner@acme", &lock, &json!({})).await.0, 200);
    let (status, first) = write().await;
    assert_eq!(status, 200, "the same key, now that it can be done");
    for number in 0..1000 {
        assert_eq!(write().await.1, first, "{number}");
        let key = [("idempotency-key", &*format!("more {number}"))];
        assert_eq!(backend.call_with(Method::POST, "owner@acme", &lock, None, &key).await.0, 200);
    }
    assert_ne!(write().await.1, first, "it was the thousand and first");
}
