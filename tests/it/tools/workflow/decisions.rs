//! From preview to decision: accepting saves through the backend with the decider's own token, once, and the model is told.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{BEN, Dialogue, RULE, Ran, backend, count, json_answer, refusal, small};
use crate::support::app::ADA;
use crate::support::upstream::{Answer, End};

async fn previewed(d: &Dialogue, token: &str, name: &str) -> Ran {
    d.ask_as(token, "c", json!({}), &[("preview_workflow", json!({"workflow": small(name), "description": "d"}))]).await
}

/// What the user said last, as the model read it.
fn last_words(ran: &Ran) -> &str {
    ran.asked.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].as_str().unwrap()
}

fn accept() -> Value {
    json!({"decision": "accept"})
}

#[tokio::test]
async fn an_accepted_workflow_exists_and_the_model_is_told_once() {
    let d = Dialogue::demo().await;
    let token = d.s.app.token.clone();
    let preview = previewed(&d, &token, "Patience").await.preview_id();
    let before = d
        .ask(
            "c",
            &[
                ("get_workflow_rule", json!({"workflow_id": "Patience"})),
                ("create_workflow", json!({"workflow": small("Patience")})),
            ],
        )
        .await;
    assert!(before.error(0).starts_with("workflow rule \"Patience\" not found"), "nothing is saved by showing it");
    assert!(before.error(1).starts_with("nothing was saved"), "nor by asking to");

    let (status, decided) = d.decide(&token, &preview, &accept()).await;
    let id = decided["saved_id"].as_str().unwrap().to_owned();
    assert_eq!((status, decided), (200, json!({"preview_id": preview, "decision": "accept", "saved_id": id})));

    let calls = [
        ("get_workflow_rule", json!({"workflow_id": "Patience"})),
        ("create_workflow", json!({"workflow": small("Patience")})),
        ("update_workflow", json!({"workflow_id": id, "workflow": small("Patience")})),
        ("create_workflow", json!({"workflow": small("Other")})),
    ];
    let ran = d.ask("c", &calls).await;
    let told = format!("[The user accepted the preview of the workflow \"Patience\"; it is saved with id {id}.]");
    assert!(last_words(&ran).starts_with(&told) && last_words(&ran).ends_with("Go on"), "{}", last_words(&ran));
    let rule = ran.ok(0);
    assert_eq!((&rule["rule"]["id"], &rule["rule"]["created_by"]), (&json!(id), &json!(ADA)));
    assert_eq!(rule["summary"]["flow_outline"], "Wait (delay)");
    for call in [1, 2] {
        assert_eq!((&ran.ok(call)["status"], &ran.ok(call)["workflow_id"]), (&json!("already_saved"), &json!(id)));
    }
    assert!(ran.error(3).starts_with("nothing was saved"), "another workflow");
    let ran = d.ask("c", &[("discover_trigger_types", json!({}))]).await;
    assert_eq!(last_words(&ran), "Go on", "told once");
}

#[tokio::test]
async fn a_rejected_workflow_is_not_saved_and_the_model_hears_why() {
    let d = Dialogue::demo().await;
    let token = d.s.app.token.clone();
    let preview = previewed(&d, &token, "Patience").await.preview_id();
    let (status, decided) =
        d.decide(&token, &preview, &json!({"decision": "reject", "comment": "too \"slow\"\n"})).await;
    assert_eq!((status, decided), (200, json!({"preview_id": preview, "decision": "reject"})));

    let calls = [
        ("get_workflow_rule", json!({"workflow_id": "Patience"})),
        ("create_workflow", json!({"workflow": small("Patience")})),
    ];
    let ran = d.ask("c", &calls).await;
    let told = r#"[The user rejected the preview of the workflow "Patience"; nothing was saved. Their comment: "too \"slow\"\n"]"#;
    assert!(last_words(&ran).starts_with(told), "{}", last_words(&ran));
    assert!(ran.error(0).starts_with("workflow rule \"Patience\" not found"));
    assert!(ran.error(1).starts_with("nothing was saved"));
}

#[tokio::test]
async fn a_preview_is_decided_once() {
    let d = Dialogue::demo().await;
    let token = d.s.app.token.clone();
    for (nth, first) in ["accept", "reject"].iter().enumerate() {
        let preview = previewed(&d, &token, &format!("Patience {nth}")).await.preview_id();
        assert_eq!(d.decide(&token, &preview, &json!({ "decision": first })).await.0, 200);
        for second in ["accept", "reject"] {
            let (status, problem) = d.decide(&token, &preview, &json!({ "decision": second })).await;
            assert_eq!((status, &problem["code"]), (409, &json!("already_decided")), "{first}, then {second}");
        }
    }
    let ran = d.ask("c", &[("list_workflow_rules", json!({}))]).await;
    assert_eq!(ran.ok(0)["total"], 15, "one of the two was saved, once");
}

#[tokio::test]
async fn two_decisions_at_once_save_once() {
    let d = Dialogue::demo().await;
    let token = d.s.app.token.clone();
    let preview = previewed(&d, &token, "Patience").await.preview_id();
    let accept = accept();
    let (a, b) = tokio::join!(d.decide(&token, &preview, &accept), d.decide(&token, &preview, &accept));
    let mut statuses = [a.0, b.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    let ran = d.ask("c", &[("list_workflow_rules", json!({}))]).await;
    assert_eq!(ran.ok(0)["total"], 15);
}

#[tokio::test]
async fn a_preview_is_decided_by_its_own_user_only() {
    let d = Dialogue::demo().await;
    let app = &d.s.app;
    let preview = previewed(&d, &app.token, "Patience").await.preview_id();
    let rows = [
        (app.token_of(BEN, None, &["USER", "ADMIN"]), preview.as_str(), "another user, administrator or not"),
        (app.token_of(ADA, Some("elsewhere"), &["ADMIN"]), &preview, "the same id in another tenant"),
        (app.token.clone(), RULE, "no such preview"),
        (app.token.clone(), "x", "no id at all"),
        (app.token.clone(), "..%2F..%2Fhealth", "a path in its place"),
    ];
    for (token, preview, reason) in rows {
        let (status, problem) = d.decide(&token, preview, &accept()).await;
        assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "{reason}");
    }
    assert_eq!(d.decide("no token", &preview, &accept()).await.0, 401);
    assert_eq!(d.decide(&app.token, &preview, &accept()).await.0, 200, "it still waits for its user");
}

#[tokio::test]
async fn a_bad_body_decides_nothing() {
    let d = Dialogue::demo().await;
    let token = d.s.app.token.clone();
    let preview = previewed(&d, &token, "Patience").await.preview_id();
    let rows = [
        (json!({}), "no decision"),
        (json!({"decision": "maybe"}), "neither of the two"),
        (json!({"decision": "Accept"}), "in another case"),
        (json!({"decision": true}), "no word"),
        (json!({"decision": "accept", "comment": 7}), "a comment that is no text"),
        (json!({"decision": "accept", "comment": "x".repeat(4097)}), "a comment that is too long"),
        (json!(["accept"]), "no object"),
    ];
    for (body, reason) in rows {
        let (status, _) = d.decide(&token, &preview, &body).await;
        assert_eq!(status, 422, "{reason}");
    }
    let (status, _) = d.decide(&token, &preview, &json!({"decision": "accept", "comment": "x".repeat(4096)})).await;
    assert_eq!(status, 200, "it still waits");
}

#[tokio::test]
async fn a_plain_users_accept_is_refused_by_the_backend_and_can_be_repeated() {
    let d = Dialogue::demo().await;
    let plain = d.s.app.token_of(BEN, None, &["USER"]);
    let preview = previewed(&d, &plain, "Patience").await.preview_id();
    for _ in 0..2 {
        let (status, problem) = d.decide(&plain, &preview, &accept()).await;
        assert_eq!((status, &problem["code"]), (502, &json!("backend_refused")));
        assert!(problem["detail"].as_str().unwrap().contains("this needs the role ADMIN"), "{problem}");
    }
    let ran = d.ask_as(&plain, "c", json!({}), &[("create_workflow", json!({"workflow": small("Patience")}))]).await;
    assert!(ran.error(0).starts_with("nothing was saved"));
    assert_eq!(last_words(&ran), "Go on", "there is no decision to tell");

    let promoted = d.s.app.token_of(BEN, None, &["USER", "ADMIN"]);
    let (status, decided) = d.decide(&promoted, &preview, &accept()).await;
    assert_eq!(status, 200, "{decided}");
}

#[tokio::test]
async fn a_backend_that_says_no_once_is_asked_again_with_the_same_body() {
    let tries = AtomicUsize::new(0);
    let backend = backend(move |request| {
        let is_save = request.method == "POST" && request.path == "/v1/workflow/rules/full";
        is_save.then(|| match tries.fetch_add(1, Ordering::SeqCst) {
            0 => refusal(503, "database is down").header("retry-after", "1"),
            _ => json_answer(&json!({"id": RULE})),
        })
    })
    .await;
    let d = Dialogue::over(&backend).await;
    let ran = previewed(&d, &d.s.app.token, "Patience").await;
    let preview = ran.preview_id();
    // The same user, but a token of another moment: the one of the decision is the one that saves.
    let token = d.s.app.token_of(ADA, None, &["USER", "ADMIN", "LATER"]);
    let (status, problem) = d.decide(&token, &preview, &accept()).await;
    assert_eq!((status, &problem["code"]), (502, &json!("backend_refused")));
    let (status, decided) = d.decide(&token, &preview, &accept()).await;
    assert_eq!((status, &decided["saved_id"]), (200, &json!(RULE)));
    assert_eq!(d.decide(&token, &preview, &accept()).await.0, 409);

    let requests = backend.requests();
    let saves: Vec<_> = requests.iter().filter(|request| request.path == "/v1/workflow/rules/full").collect();
    assert_eq!(saves.len(), 2, "and never again");
    for save in saves {
        assert_eq!(save.json(), ran.previews()[0]["workflow"], "what was shown is what is saved");
        assert_eq!(save.header("authorization"), Some(format!("Bearer {token}").as_str()));
    }
}

#[tokio::test]
async fn a_save_that_nobody_confirmed_is_not_sent_again_at_once() {
    let lost = [
        Answer::ok("application/json", "").ending(End::Hang),
        Answer::ok("application/json", "{").ending(End::Abort),
        Answer::status(504, "text/html", "gateway timeout"),
        Answer::status(503, "text/html", "a connection ended behind the request"),
        Answer::status(500, "application/json", "{}"),
    ];
    for answer in lost {
        let backend = backend(move |request| {
            let is_save = request.method == "POST" && request.path == "/v1/workflow/rules/full";
            is_save.then(|| answer.clone())
        })
        .await;
        let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &*backend.url()), ("BACKEND__TIMEOUT_S", "1")];
        let d = Dialogue::with(&settings).await;
        let preview = previewed(&d, &d.s.app.token, "Patience").await.preview_id();
        let (status, problem) = d.decide(&d.s.app.token, &preview, &accept()).await;
        assert_eq!((status, &problem["code"]), (502, &json!("save_unconfirmed")));
        assert_eq!(d.decide(&d.s.app.token, &preview, &accept()).await.0, 409, "it may be saved");
        let saves: Vec<_> = backend.requests().into_iter().filter(|r| r.path == "/v1/workflow/rules/full").collect();
        assert_eq!(saves.len(), 1);
        assert_eq!(saves[0].header("idempotency-key"), Some(&*preview), "by which a backend can tell a repeat");
    }
}

#[tokio::test]
async fn a_reject_asks_the_backend_nothing() {
    let backend = backend(|_| None).await;
    let d = Dialogue::over(&backend).await;
    let preview = previewed(&d, &d.s.app.token, "Patience").await.preview_id();
    let before = backend.requests().len();
    assert_eq!(d.decide(&d.s.app.token, &preview, &json!({"decision": "reject"})).await.0, 200);
    assert_eq!(backend.requests().len(), before);
    assert_eq!(count(&backend, "/full"), 1, "only the dry run");
}
