//! A directive is requested, by a model or a client, and carried out.

use reqwest::Method;
use serde_json::{Value, json};

use super::{SERVICE, asked, forum, get, names, post, send, until};
use crate::support::frames;
use crate::support::model::{calls, says, turn};
use crate::support::upstream::{Answer, Request};
use crate::support::wait::eventually;
use crate::tools::rest::answer;

fn made(_: &Request) -> Option<Answer> {
    answer(&json!({"id": "t7", "title": "Hello", "secret_note": 1}))
}

const ARGS: &str = r#"{"category_id": "c1", "title": "Hello"}"#;

fn args() -> Value {
    serde_json::from_str(ARGS).unwrap()
}

#[tokio::test]
async fn a_models_call_becomes_a_directive_that_the_service_carries_out() {
    let (s, backend) = forum(&[], [calls("c1", "create_thread", &args()), says("Done.")], made).await;
    let ann = s.app.token_of("änn", Some("acme"), &["member", "a,b"]);
    let response = s.app.post_as(&ann, &json!({"message": "Go", "context_type": "mine"})).await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let conversation = response.headers()["x-conversation-id"].to_str().unwrap().to_owned();
    let text = response.text().await.unwrap();
    let events = frames::parse(&text);
    let told: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
    let at = |name: &str| told.iter().position(|known| *known == name).unwrap_or_else(|| panic!("{name}: {told:?}"));
    assert!(at("tool_call_start") < at("directive") && at("directive") < at("tool_call_result"), "{told:?}");
    let statuses: Vec<&str> = events
        .iter()
        .filter(|event| event.event == "directive")
        .map(|event| event.data["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses.last(), Some(&"succeeded"), "{statuses:?}");
    assert!(!text.contains(SERVICE) && !text.contains("secret_note"), "{text}");

    // What the model reads.
    let read: Value = serde_json::from_str(s.model.requests()[1].json()["messages"][3]["content"].as_str().unwrap())
        .unwrap_or_else(|_| panic!("{}", s.model.requests()[1].json()));
    let id = read["directive_id"].clone();
    let expected = json!({
        "ok": true, "type": "forum.thread.create.succeeded", "directive_id": id, "status": "succeeded",
        "subject": {"type": "forum.category", "id": "c1"}, "result": {"id": "t7", "title": "Hello"},
        "human_readable": "Thread Hello is there.",
    });
    assert_eq!(read, expected);

    // What is kept.
    let directive = get(&s.app, &ann, &format!("/directives/{}", id.as_str().unwrap())).await;
    let kept = ["payload", "subject", "requested_by", "requested_roles", "correlation_id", "causation_id", "runs_as"];
    assert_eq!(
        kept.map(|key| directive[key].clone()),
        [
            args(),
            json!({"type": "forum.category", "id": "c1"}),
            json!({"type": "user", "id": "änn"}),
            json!(["member", "a,b"]),
            json!(run),
            json!("c1"),
            json!("service")
        ]
    );
    assert_eq!(
        (&directive["attempt"], &directive["error"], &directive["approval"]),
        (&json!(1), &json!(null), &json!(null))
    );

    // What the backend got.
    let [request] = &backend.requests()[..] else { panic!("{:?}", backend.requests()) };
    let header = |name: &str| request.header(name).unwrap_or_else(|| panic!("{name}: {request:?}")).to_owned();
    assert_eq!(header("authorization"), format!("Bearer {SERVICE}"));
    assert_eq!(header("idempotency-key"), id.as_str().unwrap());
    assert_eq!(header("x-switchboard-directive"), id.as_str().unwrap());
    assert_eq!(header("x-switchboard-tenant"), "acme");
    assert_eq!(header("x-switchboard-actor"), "user:%C3%A4nn");
    assert_eq!(header("x-switchboard-actor-roles"), "member,a%2Cb");
    assert_eq!(header("x-request-id"), run);
    assert_eq!(request.json(), args());
    assert!(!format!("{request:?}").contains(&ann));

    // What is told of it, in order.
    let auditor = s.app.token_of("olga", Some("acme"), &["auditor"]);
    let expected =
        ["directive.requested", "directive.started", "forum.thread.created", "directive.succeeded"].map(str::to_owned);
    assert_eq!(names(&s.app, &auditor).await, expected);
    let signals = get(&s.app, &ann, "/signals?order=asc").await;
    let created = &signals["items"][2];
    assert_eq!(created["subject"], json!({"type": "forum.thread", "id": "t7"}));
    assert_eq!(created["payload"], json!({"thread_id": "t7", "title": "Hello"}));
    assert_eq!(
        (&created["correlation_id"], &created["causation_id"], &created["actor"]),
        (&json!(run), &id, &json!({"type": "user", "id": "änn"}))
    );
    let seqs: Vec<i64> = signals["items"].as_array().unwrap().iter().map(|s| s["seq"].as_i64().unwrap()).collect();
    assert!(seqs.is_sorted() && seqs.len() == 4, "{seqs:?}");

    // The trail tells of each state.
    let trail = get(&s.app, &ann, &format!("/conversations/{conversation}/trail")).await;
    let of_it: Vec<&Value> =
        trail["items"].as_array().unwrap().iter().filter(|item| item["kind"] == "directive").collect();
    let states: Vec<&str> = of_it.iter().map(|item| item["status"].as_str().unwrap_or("?")).collect();
    assert_eq!(states, ["requested", "running", "succeeded"], "{trail}");
}

#[tokio::test]
async fn a_client_requests_one_once_by_its_key_and_once_by_its_intent() {
    let (s, backend) = forum(&[], [], made).await;
    let (ann, bob) =
        (s.app.token_of("ann", Some("acme"), &["member"]), s.app.token_of("bob", Some("acme"), &["member"]));
    let keyed = async |token: &str, key: &str, body: &Value| {
        let request =
            s.app.http.post(s.app.url("/v1/agent/directives")).bearer_auth(token).header("idempotency-key", key);
        let response = request.json(body).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let body = json!({"name": "forum.thread.create", "payload": args(), "correlation_id": "web-1"});
    let (status, first) = keyed(&ann, "k1", &body).await;
    assert_eq!((status, &first["created"]), (201, &json!(true)), "{first}");
    let id = first["directive"]["id"].clone();
    assert_eq!(
        (&first["directive"]["idempotency_key"], &first["directive"]["correlation_id"]),
        (&json!("k1"), &json!("web-1"))
    );
    let (status, again) = keyed(&ann, "k1", &body).await;
    assert_eq!((status, &again["created"], &again["directive"]["id"]), (200, &json!(false), &id));
    let other = json!({"name": "forum.thread.create", "payload": {"category_id": "c1", "title": "Other"}});
    let (status, refused) = keyed(&ann, "k1", &other).await;
    assert_eq!((status, &refused["code"]), (422, &json!("idempotency_mismatch")));
    let (status, of_bob) = keyed(&bob, "k1", &body).await;
    assert_eq!(status, 201);
    assert_ne!(of_bob["directive"]["id"], id, "another user's key is another one");
    until(&s.app, &ann, &id, "succeeded").await;
    until(&s.app, &bob, &of_bob["directive"]["id"], "succeeded").await;
    assert_eq!(backend.requests().len(), 2);

    // Lock, unlock, lock: what is over is no longer the same intent.
    let in_a_while = json!({"name": "forum.thread.lock", "payload": {"id": "t1"}, "scheduled_at": soon(60)});
    let (_, live) = post(&s.app, &ann, "/directives", in_a_while.clone()).await;
    let (status, same) = post(&s.app, &bob, "/directives", in_a_while.clone()).await;
    assert_eq!((status, &same["directive"]["id"]), (200, &live["directive"]["id"]), "one as long as it is live");
    let path = format!("/directives/{}/cancel", live["directive"]["id"].as_str().unwrap());
    let (status, canceled) = post(&s.app, &ann, &path, json!({})).await;
    assert_eq!(
        (status, &canceled["directive"]["status"], &canceled["directive"]["reason"]),
        (200, &json!("canceled"), &json!("canceled"))
    );
    let (status, next) =
        post(&s.app, &ann, "/directives", json!({"name": "forum.thread.lock", "payload": {"id": "t1"}})).await;
    assert_eq!(status, 201, "{next}");
    until(&s.app, &ann, &next["directive"]["id"], "succeeded").await;
}

fn soon(seconds: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let at = jiff::Timestamp::from_second(i64::try_from(now).unwrap() + seconds).unwrap();
    at.to_string()
}

#[tokio::test]
async fn bad_requests_name_their_mistake_and_keep_nothing() {
    let (s, backend) =
        forum(&[("DIRECTIVES__PAYLOAD_BYTES", "200"), ("DIRECTIVES__MAX_LIVE_PER_USER", "2")], [], made).await;
    let (ann, nobody) = (s.app.token_of("ann", Some("acme"), &["member"]), s.app.token_of("eve", Some("acme"), &[]));
    let create = |payload: Value| json!({"name": "forum.thread.create", "payload": payload});
    let rows = [
        (&ann, create(json!({"category_id": "c1"})), 422, "invalid_request", "title", "what is required"),
        (&ann, create(json!({"category_id": 1, "title": "x"})), 422, "invalid_request", "category_id", "a wrong type"),
        (
            &ann,
            create(json!({"category_id": "c", "title": "x", "status": "locked"})),
            422,
            "invalid_request",
            "status",
            "an undeclared one",
        ),
        (&ann, create(json!("x")), 422, "invalid_request", "payload", "no object"),
        (&ann, json!({"name": "forum.nothing.here"}), 404, "not_found", "", "no such directive"),
        (&nobody, create(args()), 403, "role_required", "", "no role"),
        (
            &ann,
            create(json!({"category_id": "c", "title": "x", "config": {"deep": [{"api_key": "1"}]}})),
            422,
            "secret_in_payload",
            "api_key",
            "a secret, at any depth",
        ),
        (&ann, create(json!({"category_id": "c", "title": "x".repeat(300)})), 413, "field_too_large", "", "too large"),
        (
            &ann,
            json!({"name": "forum.thread.create", "payload": args(), "scheduled_at": "soon"}),
            422,
            "invalid_request",
            "scheduled_at",
            "no time",
        ),
        (
            &ann,
            json!({"name": "forum.thread.create", "payload": args(), "scheduled_at": soon(40 * 86_400)}),
            422,
            "invalid_request",
            "scheduled_at",
            "too far ahead",
        ),
        (
            &ann,
            json!({"name": "forum.thread.rename", "payload": {"id": "1", "title": "x"}, "scheduled_at": soon(9)}),
            422,
            "invalid_request",
            "scheduled_at",
            "with a caller's token",
        ),
        (
            &ann,
            json!({"name": "forum.thread.create", "payload": args(), "correlation_id": "ü"}),
            422,
            "invalid_request",
            "correlation_id",
            "not printable",
        ),
        (&ann, json!({"payload": {}}), 422, "invalid_request", "name", "no name"),
        (
            &ann,
            json!({"name": "forum.thread.create", "tenant": "umbrella"}),
            422,
            "invalid_request",
            "tenant",
            "an unknown field",
        ),
    ];
    for (token, body, status, code, place, reason) in rows {
        let (got, problem) = post(&s.app, token, "/directives", body).await;
        assert_eq!((got, problem["code"].as_str().unwrap()), (status, code), "{reason}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(place), "{reason}: {problem}");
    }
    assert_eq!(get(&s.app, &ann, "/directives").await, json!({"items": [], "access": "own"}));
    assert!(backend.requests().is_empty());
    for expected in [201, 201, 429] {
        let body = json!({"name": "forum.thread.create", "payload": args(), "scheduled_at": soon(600)});
        let (status, problem) = post(&s.app, &ann, "/directives", body).await;
        assert_eq!(status, expected, "{problem}");
        let code = if expected == 429 { json!("too_many_directives") } else { json!(null) };
        assert_eq!(problem["code"], code, "{problem}");
    }
}

#[tokio::test]
async fn a_models_bad_request_is_an_error_that_it_reads_and_keeps_nothing() {
    let large = json!({"category_id": "c1", "title": "x".repeat(300)});
    let rows = [
        ("c1", "create_thread", json!({"category_id": "c1"}), "title"),
        ("c2", "create_thread", json!({"category_id": "c", "title": "x", "status": "locked"}), "status"),
        (
            "c3",
            "create_thread",
            json!({"category_id": "c", "title": "x", "config": {"a": [{"api_key": "1"}]}}),
            "api_key",
        ),
        ("c4", "create_thread", large, "larger than 200 bytes"),
        ("c5", "no_thread", json!({}), "unknown tool"),
    ];
    let turn = rows.iter().fold(turn(), |turn, (id, tool, args, _)| turn.call(id, tool, args));
    let turns = [turn.done(), says("No."), calls("c6", "create_thread", &args()), says("Not now.")];
    let settings = [("DIRECTIVES__PAYLOAD_BYTES", "200"), ("DIRECTIVES__MAX_LIVE_PER_USER", "1")];
    let (s, backend) = forum(&settings, turns, made).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let say = async || {
        let response = s.app.post_as(&ann, &json!({"message": "Go", "context_type": "mine"})).await;
        let events = frames::parse(&response.text().await.unwrap());
        assert_eq!(frames::names(&events).last(), Some(&"message_complete"), "{events:#?}");
        assert!(events.iter().all(|event| event.event != "directive"), "{events:#?}");
    };
    say().await;
    for (id, _, _, words) in rows {
        let read = s.result_of(id);
        assert!(read["error"].as_str().is_some_and(|error| error.contains(words)), "{id}: {read}");
    }
    assert_eq!(get(&s.app, &ann, "/directives").await["items"], json!([]));

    // As many as may be are live.
    let live = json!({"name": "forum.thread.create", "payload": args(), "scheduled_at": soon(600)});
    assert_eq!(post(&s.app, &ann, "/directives", live).await.0, 201);
    say().await;
    let read = s.result_of("c6");
    assert!(read["error"].as_str().is_some_and(|error| error.contains("too many directives")), "{read}");
    assert_eq!(get(&s.app, &ann, "/directives").await["items"].as_array().unwrap().len(), 1);
    assert!(backend.requests().is_empty());
}

#[tokio::test]
async fn what_is_canceled_before_its_time_is_never_sent_and_what_is_over_stays() {
    let (s, backend) = forum(&[], [], made).await;
    let (ann, bob) =
        (s.app.token_of("ann", Some("acme"), &["member"]), s.app.token_of("bob", Some("acme"), &["member"]));
    let at = |title: &str, seconds: i64| {
        let payload = json!({"category_id": "c1", "title": title});
        json!({"name": "forum.thread.create", "payload": payload, "scheduled_at": soon(seconds)})
    };
    let (_, first) = post(&s.app, &ann, "/directives", at("first", 2)).await;
    let (_, second) = post(&s.app, &ann, "/directives", at("second", 3)).await;
    let cancel = |made: &Value| format!("/directives/{}/cancel", made["directive"]["id"].as_str().unwrap());
    assert_eq!(post(&s.app, &bob, &cancel(&first), json!({})).await.0, 404, "another's");
    let (status, canceled) = post(&s.app, &ann, &cancel(&first), json!({})).await;
    assert_eq!((status, &canceled["directive"]["status"]), (200, &json!("canceled")));
    let done = until(&s.app, &ann, &second["directive"]["id"], "succeeded").await;
    let sent: Vec<Value> = backend.requests().iter().map(|request| request.json()["title"].clone()).collect();
    assert_eq!(sent, ["second"], "the one that was due before is not sent");
    for (made, as_it_is) in [(&first, &canceled["directive"]), (&second, &done)] {
        let (status, again) = post(&s.app, &ann, &cancel(made), json!({})).await;
        assert_eq!((status, &again["directive"]), (200, as_it_is), "what is over is answered as it is");
    }
    let told = get(&s.app, &ann, "/signals?name=directive.canceled").await;
    assert_eq!(told["items"].as_array().unwrap().len(), 1, "told once");
}

#[tokio::test]
async fn what_is_scheduled_is_sent_at_its_time_and_what_is_past_at_once() {
    let (s, backend) = forum(&[], [], made).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let at = |scheduled: String| json!({"name": "forum.thread.create", "payload": args(), "scheduled_at": scheduled});
    let (_, past) = post(&s.app, &ann, "/directives", at(soon(-3600))).await;
    until(&s.app, &ann, &past["directive"]["id"], "succeeded").await;
    let (_, later) = post(&s.app, &ann, "/directives", at(soon(2))).await;
    let id = later["directive"]["id"].clone();
    let directive = get(&s.app, &ann, &format!("/directives/{}", id.as_str().unwrap())).await;
    assert_eq!(directive["status"], "requested");
    assert_eq!(backend.requests().len(), 1, "not before its time");
    until(&s.app, &ann, &id, "succeeded").await;
    assert_eq!(backend.requests().len(), 2);
}

#[tokio::test]
async fn with_a_callers_token_it_begins_at_once_and_is_sent_with_that() {
    let args = json!({"id": "t1", "title": "New"});
    let (s, backend) = forum(&[], [calls("c1", "rename_thread", &args), says("Done.")], made).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let response = s.app.post_as(&ann, &json!({"message": "Go", "context_type": "mine"})).await;
    let text = response.text().await.unwrap();
    assert!(text.contains(r#""status":"succeeded""#), "{text}");
    let (status, by_client) =
        post(&s.app, &ann, "/directives", json!({"name": "forum.thread.rename", "payload": args})).await;
    assert_eq!(status, 201);
    until(&s.app, &ann, &by_client["directive"]["id"], "succeeded").await;
    for request in backend.requests() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {ann}").as_str()));
        assert_eq!(request.header("x-switchboard-actor"), None, "the backend knows the user by their token");
    }
    assert_eq!(backend.requests().len(), 2);
}

#[tokio::test]
async fn a_slow_backend_does_not_hold_the_model_up() {
    let gate = std::sync::Arc::new(tokio::sync::Notify::new());
    let waits = gate.clone();
    let backend = move |_: &Request| Some(Answer::ok("application/json", "").gated(&waits, r#"{"ok": true}"#));
    let turns = [calls("c1", "lock_thread", &json!({"id": "t1"})), says("It will be done.")];
    let (s, _backend) = forum(&[], turns, backend).await;
    let ann = s.app.token_of("ann", Some("acme"), &[]);
    let response = s.app.post_as(&ann, &json!({"message": "Go", "context_type": "mine"})).await;
    let text = response.text().await.unwrap();
    assert!(text.contains("It will be done.") && text.contains("message_complete"), "{text}");
    let listed = get(&s.app, &ann, "/directives").await;
    let id = listed["items"][0]["id"].clone();
    until(&s.app, &ann, &id, "running").await;
    let (status, refused) =
        post(&s.app, &ann, &format!("/directives/{}/cancel", id.as_str().unwrap()), json!({})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("directive_running")));
    gate.notify_waiters();
    gate.notify_one();
    until(&s.app, &ann, &id, "succeeded").await;
}

#[tokio::test]
async fn nobody_sees_what_is_anothers() {
    let (s, _backend) = forum(&[], [], made).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let (bob, foreign) = (
        s.app.token_of("bob", Some("acme"), &["member"]),
        s.app.token_of("ann", Some("umbrella"), &["member", "auditor", "operator"]),
    );
    let auditor = s.app.token_of("olga", Some("acme"), &["auditor"]);
    let (_, made) = post(&s.app, &ann, "/directives", json!({"name": "forum.thread.create", "payload": args()})).await;
    let id = made["directive"]["id"].as_str().unwrap().to_owned();
    until(&s.app, &ann, &made["directive"]["id"], "succeeded").await;
    let signal = get(&s.app, &ann, "/signals").await["items"][0]["id"].as_str().unwrap().to_owned();
    let without_id = |mut body: Value| {
        body.as_object_mut().unwrap().remove("request_id");
        body.as_object_mut().unwrap().remove("instance");
        body
    };
    let never = without_id(
        asked(&s.app, &bob, Method::GET, &format!("/directives/{}", uuid::Uuid::from_u128(7)), None).await.1,
    );
    for token in [&bob, &foreign] {
        for (method, path) in
            [(Method::GET, format!("/directives/{id}")), (Method::POST, format!("/directives/{id}/cancel"))]
        {
            let (status, body) = asked(&s.app, token, method, &path, None).await;
            assert_eq!((status, without_id(body)), (404, never.clone()), "{path}");
        }
        let (status, _) = asked(&s.app, token, Method::GET, &format!("/signals/{signal}"), None).await;
        assert_eq!(status, 404);
        assert_eq!(get(&s.app, token, "/directives").await["items"], json!([]));
        assert_eq!(get(&s.app, token, "/signals").await, json!({"items": []}));
    }
    let (status, refused) = asked(&s.app, &bob, Method::GET, "/directives?of=tenant", None).await;
    assert_eq!((status, &refused["code"]), (403, &json!("role_required")));
    assert_eq!(get(&s.app, &auditor, &format!("/directives/{id}")).await["id"], json!(id));
    assert_eq!(get(&s.app, &auditor, "/directives?of=tenant").await["items"].as_array().unwrap().len(), 1);
    assert_eq!(get(&s.app, &foreign, "/directives?of=tenant").await["items"], json!([]));
    let (status, _) = asked(&s.app, &auditor, Method::POST, &format!("/directives/{id}/rerun"), None).await;
    assert_eq!(status, 403, "a reader is no operator");
    for method in [Method::PUT, Method::PATCH, Method::DELETE] {
        assert_eq!(send(&s.app, &auditor, method, &format!("/signals/{signal}"), None).await.status(), 405);
    }
}

#[tokio::test]
async fn lists_are_filtered_and_come_in_pages_without_gap_or_repeat() {
    let (s, _backend) = forum(&[], [], made).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let mut ids = Vec::new();
    for number in 0..5 {
        let payload = json!({"category_id": format!("c{}", number % 2), "title": "x"});
        let (_, made) =
            post(&s.app, &ann, "/directives", json!({"name": "forum.thread.create", "payload": payload})).await;
        ids.push(made["directive"]["id"].as_str().unwrap().to_owned());
    }
    eventually("all are done", async || {
        let done = get(&s.app, &ann, "/directives?status=succeeded").await;
        (done["items"].as_array().unwrap().len() == 5).then_some(())
    })
    .await;
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&s.app, &ann, &format!("/directives?limit=2&cursor={cursor}")).await;
        found.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    ids.reverse();
    assert_eq!(found, ids);
    let of = |query: &str| format!("/directives?{query}");
    for (query, count) in [
        ("subject_type=forum.category&subject_id=c0", 3),
        ("subject_id=c1", 2),
        ("name=forum.thread.create", 5),
        ("name=forum.thread.lock", 0),
        ("status=failed", 0),
    ] {
        let listed = get(&s.app, &ann, &of(query)).await;
        assert_eq!(listed["items"].as_array().unwrap().len(), count, "{query}");
    }
    for query in ["limit=0", "limit=101", "status=odd", "cursor=x", "of=all", "limit=2&limit=3"] {
        let (status, problem) = asked(&s.app, &ann, Method::GET, &of(query), None).await;
        assert_eq!(status, 400, "{query}: {problem}");
    }
}

#[tokio::test]
async fn an_id_that_is_too_long_is_refused_and_a_long_intent_is_not() {
    let (s, _backend) = forum(&[], [], made).await;
    let ann = s.app.token_of("ann", Some("acme"), &["member"]);
    let lock = |id: String| json!({"name": "forum.thread.lock", "payload": {"id": id}});
    let (status, problem) = post(&s.app, &ann, "/directives", lock("x".repeat(513))).await;
    assert_eq!((status, problem["code"].as_str()), (422, Some("invalid_request")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("512 bytes"), "{problem}");
    assert_eq!(post(&s.app, &ann, "/directives", lock("x".repeat(512))).await.0, 201);
}
