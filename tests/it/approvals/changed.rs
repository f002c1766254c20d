//! What is let through is a call of a tool as it was shown. Where either is another one by now, nothing is sent, and whoever
//! decides is asked again, with what it is now.

use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tempfile::TempDir;

use super::{HELD, World, approve, assert_made, id};
use crate::support::frames::{data, names};
use crate::support::model::{Script, calls, says};
use crate::support::tickets::write;

fn closing() -> Script {
    calls("c1", "close_ticket", &json!({"id": 7}))
}

const CLOSED: &str = "POST /v1/tickets/7/close {}";

/// Decides a call that is another one by now: what is shown instead.
async fn asked_again(w: &World, shown: &Value) -> Value {
    let frames = w.decide(shown, &approve()).await;
    assert_eq!(names(&frames), HELD, "{frames:#?}");
    assert_eq!(w.writes(), [""; 0], "nothing is sent that nobody was shown");
    let again = data(&frames, "approval_request").clone();
    assert_ne!(again["approval_id"], shown["approval_id"]);
    assert_ne!(again["digest"], shown["digest"]);
    assert_eq!(w.waiting(&w.s.app.token).await, [id(&again)], "the first one is decided");
    again
}

#[tokio::test]
async fn a_tool_that_changed_since_it_was_shown_is_asked_for_again() {
    let rows = [
        ("Closes a ticket.", "Closes a ticket and deletes it.", CLOSED, "its description"),
        (
            "path = \"/v1/tickets/{id}/close\"",
            "path = \"/v1/tickets/{id}/delete\"",
            "POST /v1/tickets/7/delete {}",
            "its path",
        ),
        ("reason = { type = \"string\" }", "reason = { type = \"integer\" }", CLOSED, "its schema"),
    ];
    for (before, after, written, reason) in rows {
        let w = World::playing([closing(), says("Done.")]).await;
        let shown = w.held("Close 7").await;
        let changed = super::TOOLS.replacen(before, after, 1);
        assert_ne!(changed, super::TOOLS, "{reason}");
        let w = w.restarted(async |data| write(data, "tools/tickets.toml", &changed)).await;
        let again = asked_again(&w, &shown).await;
        assert_eq!(again["arguments"], shown["arguments"], "{reason}");
        assert_made(&w.decide(&again, &approve()).await, true);
        assert_eq!(w.writes(), [written], "{reason}");
        let told = w.s.last_asked();
        let words = told.iter().filter_map(|message| message["content"].as_str());
        assert!(
            words.into_iter().any(|words| words.contains("is not what was approved")),
            "the model reads why: {told:#?}"
        );
    }
}

#[tokio::test]
async fn other_arguments_than_were_shown_are_asked_for_again() {
    let inject = |reason: &str| {
        let keys = format!("approval = \"user\"\ninject = {{ reason = \"{reason}\" }}");
        super::TOOLS.replacen("approval = \"user\"", &keys, 1)
    };
    let w = World::playing([closing(), says("Done.")]).await;
    let w = w.restarted(async |data| write(data, "tools/tickets.toml", &inject("sold"))).await;
    let shown = w.held("Close 7").await;
    assert_eq!(shown["arguments"], json!({"id": 7, "reason": "sold"}));
    let w = w.restarted(async |data| write(data, "tools/tickets.toml", &inject("stolen"))).await;
    let again = asked_again(&w, &shown).await;
    assert_eq!(again["arguments"], json!({"id": 7, "reason": "stolen"}));
    assert_made(&w.decide(&again, &approve()).await, true);
    assert_eq!(w.writes(), [r#"POST /v1/tickets/7/close {"reason":"stolen"}"#]);
}

#[tokio::test]
async fn a_tool_that_needs_nobody_by_now_is_still_asked_for_when_it_changed() {
    let w = World::playing([closing(), says("Done.")]).await;
    let shown = w.held("Close 7").await;
    let freed =
        super::TOOLS.replacen("approval = \"user\"", "approval = \"auto\"", 1).replacen("Closes a", "Ends a", 1);
    let w = w.restarted(async |data| write(data, "tools/tickets.toml", &freed)).await;
    let again = asked_again(&w, &shown).await;
    assert_eq!(again["needs"], json!("user"));
}

/// Makes what waits what the version before this one kept.
async fn age(data: &TempDir) {
    let options = SqliteConnectOptions::new().filename(data.path().join("test.db"));
    let mut beside = SqliteConnection::connect_with(&options).await.unwrap();
    let old = "UPDATE approvals SET definition = NULL, digest = 'a0b1'";
    sqlx::raw_sql(old).execute(&mut beside).await.unwrap();
    beside.close().await.unwrap();
}

#[tokio::test]
async fn a_call_that_was_kept_before_definitions_were_is_asked_for_again() {
    let w = World::playing([closing(), says("Done.")]).await;
    let shown = w.held("Close 7").await;
    let w = w.restarted(async |data| age(data).await).await;
    let again = asked_again(&w, &json!({"approval_id": shown["approval_id"], "digest": "a0b1"})).await;
    assert_eq!(again["digest"], shown["digest"], "as this version shows it");
    assert_made(&w.decide(&again, &approve()).await, true);
    assert_eq!(w.writes(), [CLOSED]);
}
