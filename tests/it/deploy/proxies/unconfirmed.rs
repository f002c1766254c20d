//! A message whose commit has happened and whose answer is lost between the server and its database, behind proxies that send
//! refused requests again: it is kept once.

use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};

use super::Front;
use crate::store::postgres_rare::{Lost, Way};
use crate::support::app::TestApp;
use crate::support::postgres::{TestDatabase, TestPostgres};
use crate::support::wait::eventually;

/// How long the database is gone when it comes back in time: longer than a proxy waits before it sends again.
const GONE: Duration = Duration::from_secs(3);

/// A message through the proxy, whose commit is kept and not told of.
async fn chat(front: &Front, app: &TestApp, way: &Way, conversation: &str, back: Option<Duration>) -> Response {
    way.lose(Lost::AnswerAndAll);
    let body = json!({"message": "Once", "context_type": "workflow", "conversation_id": conversation});
    let request = app.http.post(front.url("/v1/agent/chat")).bearer_auth(&app.token).json(&body);
    let mending = async {
        if let Some(gone) = back {
            way.is_cut().await;
            tokio::time::sleep(gone).await;
            way.mend();
        }
    };
    let (response, ()) = tokio::join!(request.send(), mending);
    way.mend();
    response.unwrap()
}

async fn kept(database: &TestDatabase, conversation: &str) -> Vec<String> {
    use crate::store::contract::Database;
    let runs = format!("SELECT CAST(COUNT(*) AS TEXT) FROM runs WHERE conversation = '{conversation}'");
    database.ask(&runs).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_commit_was_not_heard_of_is_kept_once() {
    let Some(server) = TestPostgres::shared() else { return };
    let database = server.new_database().await;
    let way = Way::to(&database).await;
    let app = TestApp::start(&[("STORE__URL", &way.url)]).await;
    let address = app.address.to_string();
    for front in Front::all(&address, &address).await {
        // A proxy that asks for readiness has left out a server whose database was gone.
        eventually("the server is back", async || {
            let answer = app.http.get(front.url("/livez")).send().await.ok()?;
            (answer.status() == 200).then_some(())
        })
        .await;
        let back = format!("back-{:?}", front.kind);
        let response = chat(&front, &app, &way, &back, Some(GONE)).await;
        assert_eq!(response.status(), 200, "{:?}: the database has told in time", front.kind);
        response.text().await.unwrap();
        assert_eq!(kept(&database, &back).await, ["1"], "{:?}", front.kind);

        let gone = format!("gone-{:?}", front.kind);
        let response = chat(&front, &app, &way, &gone, None).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let told: Value = response.json().await.unwrap();
        assert_eq!((status.as_u16(), &told["code"]), (500, &json!("begin_unconfirmed")), "{:?}: {told}", front.kind);
        assert_eq!((told["retryable"].as_bool(), headers.get("retry-after")), (Some(false), None));
        assert_eq!(headers["x-should-retry"], "false");
        assert_eq!(kept(&database, &gone).await, ["1"], "{:?}", front.kind);
    }
}
