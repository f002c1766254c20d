//! A call waits for a time, and with its conversation it goes.

use serde_json::json;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::{World, approve, id, problem};
use crate::support::model::{calls, says};

#[tokio::test]
async fn a_call_whose_time_is_over_is_not_made_and_the_model_hears_of_it() {
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 7})), says("Too late.")]).await;
    let shown = w.held("Close 7").await;
    let w = w
        .restarted(async |data| {
            let options = SqliteConnectOptions::new().filename(data.path().join("test.db"));
            let mut beside = SqliteConnection::connect_with(&options).await.unwrap();
            sqlx::raw_sql("UPDATE approvals SET expires_at = created_at").execute(&mut beside).await.unwrap();
            beside.close().await.unwrap();
        })
        .await;
    assert_eq!(w.waiting(&w.s.app.token).await, [""; 0]);
    let late = w.decide_as(&w.s.app.token, id(&shown), &approve()).await;
    assert_eq!(problem(late).await, (410, "approval_expired".to_owned()));
    w.say("And?").await;
    let told =
        "And?\n\n[Decision on a waiting call: nobody decided the call of close_ticket in time, and it was not made.]";
    assert_eq!(w.told(), told);
    assert_eq!(w.writes(), [""; 0]);
}

#[tokio::test]
async fn an_export_has_what_waited_and_a_deleted_conversation_takes_it_along() {
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 7}))]).await;
    let shown = w.held("Close 7").await;
    let token = w.s.app.token.clone();
    let (_, export) = w.get_as(&token, "/v1/agent/conversations/c/export").await;
    let approval = &export["approvals"][0];
    assert_eq!((&approval["approval_id"], &approval["state"]), (&shown["approval_id"], &json!("pending")));
    assert_eq!(approval["digest"], shown["digest"]);
    let url = w.s.app.url("/v1/agent/conversations/c");
    assert_eq!(w.s.app.http.delete(url).bearer_auth(&token).send().await.unwrap().status(), 204);
    let gone = w.decide_as(&token, id(&shown), &approve()).await;
    assert_eq!(problem(gone).await, (404, "not_found".to_owned()));
    assert_eq!(w.writes(), [""; 0]);
}
