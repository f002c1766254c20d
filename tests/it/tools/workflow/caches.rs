//! What the resolver remembers: per user, fetched once by however many ask, never an error, and asked anew for what it lacks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};

use super::{BEN, Dialogue, RULE, backend, count, json_answer, refusal, small};
use crate::support::app::ADA;
use crate::support::upstream::{Answer, End, Request};

fn validate() -> [(&'static str, Value); 1] {
    [("validate_workflow", json!({"workflow": small("W")}))]
}

fn is_from(request: &Request, token: &OnceLock<String>) -> bool {
    token.get().is_some_and(|token| request.header("authorization") == Some(&format!("Bearer {token}")))
}

const LISTS: [&str; 3] = ["/entities", "/trigger-types", "/action-types"];

#[tokio::test]
async fn a_users_lists_are_fetched_once_and_shared_with_nobody() {
    let backend = backend(|_| None).await;
    let d = Dialogue::over(&backend).await;
    let app = &d.s.app;
    let counts = || LISTS.map(|list| count(&backend, list));
    let rows = [
        (app.token.clone(), "c", [1, 1, 1], "the first time"),
        (app.token.clone(), "c", [1, 1, 1], "again"),
        (
            app.token_of(ADA, None, &["ADMIN", "USER"]),
            "another",
            [1, 1, 1],
            "another token and conversation of the same user",
        ),
        (app.token_of(ADA, None, &["USER"]), "c", [2, 2, 2], "a token of the same user that may be allowed less"),
        (app.token_of(BEN, None, &["USER"]), "c", [3, 3, 3], "another user"),
        (app.token_of(ADA, Some("elsewhere"), &["USER"]), "c", [4, 4, 4], "the same user id of another tenant"),
        (app.token.clone(), "c", [4, 4, 4], "the first user's are still there"),
    ];
    for (token, conversation, expected, reason) in rows {
        let ran = d.ask_as(&token, conversation, json!({}), &validate()).await;
        assert_eq!(ran.ok(0)["valid"], true, "{reason}");
        assert_eq!(counts(), expected, "{reason}");
    }
}

#[tokio::test]
async fn what_one_user_sees_does_not_answer_another() {
    let bens = Arc::new(OnceLock::new());
    let his = Arc::clone(&bens);
    let backend = backend(move |request| {
        let is_list = request.path.starts_with("/v1/workflow/rules?");
        (is_list && is_from(request, &his)).then(|| json_answer(&json!({"items": [], "total": 0})))
    })
    .await;
    let d = Dialogue::over(&backend).await;
    let calls = [("get_workflow_rule", json!({"workflow_id": "Night Shift"}))];
    assert_eq!(d.ask("c", &calls).await.ok(0)["workflow_id"], RULE);
    let ben = bens.get_or_init(|| d.s.app.token_of(BEN, None, &["USER"])).clone();
    let ran = d.ask_as(&ben, "c", json!({}), &calls).await;
    assert_eq!(ran.error(0), "workflow rule \"Night Shift\" not found; the nearest are: none");
}

#[tokio::test]
async fn runs_that_ask_at_the_same_time_wait_for_one_fetch() {
    let backend = backend(|request| {
        let slow = |body: Value| Answer::ok("application/json", "").later(Duration::from_millis(300), body.to_string());
        match request.path.as_str() {
            "/v1/workflow/entities" => Some(slow(json!([{"id": RULE, "schema_name": "sales", "name": "orders"}]))),
            "/v1/workflow/trigger-types" => Some(slow(json!([{"id": RULE, "name": "on_create"}]))),
            _ => None,
        }
    })
    .await;
    let d = Dialogue::over(&backend).await;
    let calls = validate();
    let asks = ["a", "b", "c", "d"].map(|conversation| d.frames_of(&d.s.app.token, conversation, json!({}), &calls));
    futures::future::join_all(asks).await;
    assert_eq!(LISTS.map(|list| count(&backend, list)), [1, 1, 1]);
    assert_eq!(count(&backend, "/full"), 4, "every run had its own dry run");
}

#[tokio::test]
async fn one_users_slow_fetch_holds_up_nobody_else() {
    let bens = Arc::new(OnceLock::new());
    let his = Arc::clone(&bens);
    let backend = backend(move |request| {
        let is_hers = request.path.ends_with("/entities") && !is_from(request, &his);
        is_hers.then(|| Answer::ok("application/json", "[").ending(End::Hang))
    })
    .await;
    let d = Dialogue::over(&backend).await;
    let ben = bens.get_or_init(|| d.s.app.token_of(BEN, None, &["USER"])).clone();
    let calls = validate();
    let adas = d.frames_of(&d.s.app.token, "c", json!({}), &calls);
    let meanwhile = async {
        while count(&backend, "/entities") == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        d.frames_of(&ben, "c", json!({}), &calls).await
    };
    tokio::select! {
        _ = adas => panic!("Ada's list never comes"),
        done = tokio::time::timeout(Duration::from_secs(10), meanwhile) => drop(done.unwrap()),
    }
    backend.clients_gone(1).await;
}

#[tokio::test]
async fn a_failed_fetch_is_not_remembered() {
    let tries = AtomicUsize::new(0);
    let backend = backend(move |request| {
        let is_first = request.path.ends_with("/entities") && tries.fetch_add(1, Ordering::SeqCst) == 0;
        is_first.then(|| refusal(503, "starting"))
    })
    .await;
    let d = Dialogue::over(&backend).await;
    assert!(d.ask("c", &validate()).await.error(0).starts_with("could not look up entities: HTTP 503"));
    assert_eq!(d.ask("c", &validate()).await.ok(0)["valid"], true);
}

#[tokio::test]
async fn a_name_that_is_not_in_a_remembered_list_is_looked_for_once_more() {
    let new = "aaaaaaaa-0000-4000-8000-000000000002";
    let lists = AtomicUsize::new(0);
    let backend = backend(move |request| {
        if request.path.starts_with("/v1/workflow/rules?") && lists.fetch_add(1, Ordering::SeqCst) > 0 {
            let items = json!([{"id": RULE, "name": "Night Shift"}, {"id": new, "name": "Day Shift"}]);
            return Some(json_answer(&json!({"items": items, "total": 2})));
        }
        let part = request.path.strip_prefix(&format!("/v1/workflow/rules/{new}"))?;
        Some(json_answer(&if part.is_empty() { json!({"id": new}) } else { json!([]) }))
    })
    .await;
    let d = Dialogue::over(&backend).await;
    let rows = [
        ("Night Shift", true, 1, "the list is fetched"),
        ("night_shift", true, 1, "and remembered"),
        ("Day Shift", true, 2, "made since then"),
        ("Late Shift", false, 3, "not there at all: asked once more"),
        ("Day Shift", true, 3, "still remembered"),
    ];
    for (name, is_found, fetches, reason) in rows {
        let ran = d.ask("c", &[("get_workflow_rule", json!({ "workflow_id": name }))]).await;
        assert_eq!(!ran.results[0].0, is_found, "{reason}: {}", ran.results[0].1);
        assert_eq!(count(&backend, "/rules?"), fetches, "{reason}");
    }
}

#[tokio::test]
async fn a_name_that_several_rules_have_is_told_with_their_ids() {
    let other = "aaaaaaaa-0000-4000-8000-000000000002";
    let backend = backend(move |request| {
        let items = json!([{"id": RULE, "name": "Night Shift"}, {"id": other, "name": "NIGHT SHIFT"}]);
        request.path.starts_with("/v1/workflow/rules?").then(|| json_answer(&json!({"items": items, "total": 2})))
    })
    .await;
    let d = Dialogue::over(&backend).await;
    let show = |name: &str| ("get_workflow_rule", json!({ "workflow_id": name }));
    let ran = d.ask("c", &[show("night shift"), show("Night Shift")]).await;
    let choices = format!("Night Shift ({RULE}), NIGHT SHIFT ({other})");
    assert_eq!(ran.error(0), format!("\"night shift\" fits several workflow rules: {choices}; pass the id"));
    assert_eq!(ran.ok(1)["workflow_id"], RULE, "the exact spelling is one of them");
    let ran = d.ask_as(&d.s.app.token, "c", json!({"workflow_id": RULE}), &[show("night shift")]).await;
    assert_eq!(ran.ok(0)["workflow_id"], RULE, "the open one is meant");
}
