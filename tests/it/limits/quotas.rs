//! What may be kept for a user and a tenant: told before a run begins, and given back by deleting.

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::support::app::TestApp;
use crate::support::postgres::TestPostgres;

/// What the counted rows really take; `stored_usage` says the same.
const REALLY: &str = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM (
    SELECT octet_length(body) AS bytes FROM messages UNION ALL
    SELECT octet_length(body) FROM plans UNION ALL SELECT octet_length(body) FROM plan_steps UNION ALL
    SELECT octet_length(body) FROM executions UNION ALL
    SELECT octet_length(data) + octet_length(summary) FROM payloads UNION ALL
    SELECT COALESCE(octet_length(context), 0) + COALESCE(octet_length(answer), 0) + COALESCE(octet_length(diagnostics), 0)
        + COALESCE(octet_length(earlier), 0) + COALESCE(octet_length(client_calls), 0) FROM run_details) AS kept";

const COUNTED: &str = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM stored_usage";

async fn say(app: &TestApp, token: &str, conversation: &str, message: &str) -> (u16, Value) {
    let context = json!({"note": "x".repeat(1000)});
    let body =
        json!({"message": message, "context_type": "workflow", "conversation_id": conversation, "context": context});
    let response = app.post_as(token, &body).await;
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

async fn delete(app: &TestApp, token: &str, conversation: &str) {
    let url = app.url(&format!("/v1/agent/conversations/{conversation}"));
    assert_eq!(app.http.delete(url).bearer_auth(token).send().await.unwrap().status(), 204);
}

async fn bytes_are_counted(app: &TestApp, number: impl AsyncFn(&'static str) -> i64) {
    let (ann, bob) = (app.token_of("ann", Some("acme"), &["USER"]), app.token_of("bob", Some("acme"), &["USER"]));
    let mut runs = 0;
    let refused = loop {
        let (status, body) = say(app, &ann, "long", &format!("Which rules do we have? {}", "x".repeat(4000))).await;
        if status != 200 {
            break (status, body);
        }
        runs += 1;
        assert!(runs < 100, "nothing is ever refused");
    };
    assert_eq!((refused.0, &refused.1["code"]), (507, &json!("storage_quota_exceeded")), "{}", refused.1);
    assert!(runs >= 2, "{runs}: not at once");
    assert_eq!(number(COUNTED).await, number(REALLY).await, "what is counted is what is there");
    assert!(number(COUNTED).await >= 40_000);
    let others = say(app, &bob, "long", "Which rules do we have?").await;
    assert_eq!(others.0, 200, "another user of the tenant: {}", others.1);
    delete(app, &ann, "long").await;
    assert_eq!(say(app, &ann, "new", "Which rules do we have?").await.0, 200, "there is room again");
    delete(app, &ann, "new").await;
    delete(app, &bob, "long").await;
    assert_eq!((number(COUNTED).await, number(REALLY).await), (0, 0), "all of it is given back");
}

#[tokio::test]
async fn what_is_kept_for_a_user_is_counted_and_given_back_on_sqlite() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("test.db");
    let app = TestApp::start_in(data, &[("LIMITS__STORED_BYTES_PER_USER", "40000")]).await;
    let number = async |sql: &'static str| -> i64 {
        let mut beside = SqliteConnectOptions::new().filename(&file).connect().await.unwrap();
        let number = sqlx::query_scalar(sql).fetch_one(&mut beside).await.unwrap();
        beside.close().await.unwrap();
        number
    };
    bytes_are_counted(&app, number).await;
}

#[tokio::test]
async fn what_is_kept_for_a_user_is_counted_and_given_back_on_postgresql() {
    let Some(server) = TestPostgres::shared() else { return };
    let database = server.new_database().await;
    let settings = [("LIMITS__STORED_BYTES_PER_USER", "40000"), ("STORE__URL", database.url.as_str())];
    let app = TestApp::start(&settings).await;
    let number = async |sql: &'static str| -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut database.beside().await).await.unwrap()
    };
    bytes_are_counted(&app, number).await;
    app.stop().await;
}

#[tokio::test]
async fn so_many_conversations_and_no_more_but_those_that_are_there_go_on() {
    let settings = [("LIMITS__CONVERSATIONS_PER_USER", "2"), ("LIMITS__CONVERSATIONS_PER_TENANT", "3")];
    let app = TestApp::start(&settings).await;
    let (ann, bob) = (app.token_of("ann", Some("acme"), &["USER"]), app.token_of("bob", Some("acme"), &["USER"]));
    let full = |(status, body): (u16, Value)| {
        assert_eq!((status, &body["code"]), (507, &json!("conversation_quota_exceeded")), "{body}");
        body["detail"].as_str().unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    for conversation in ["one", "two", "two"] {
        assert_eq!(say(&app, &ann, conversation, "Hello").await.0, 200, "{conversation}");
    }
    assert_eq!(full(say(&app, &ann, "three", "Hello").await), "user");
    assert_eq!(say(&app, &bob, "one", "Hello").await.0, 200);
    assert_eq!(full(say(&app, &bob, "two", "Hello").await), "tenant");
    let stranger = app.token_of("ann", Some("umbrella"), &["USER"]);
    assert_eq!(say(&app, &stranger, "one", "Hello").await.0, 200, "another tenant");
    delete(&app, &ann, "one").await;
    assert_eq!(say(&app, &bob, "two", "Hello").await.0, 200, "there is room again");
}

#[tokio::test]
async fn so_many_exports_on_a_day() {
    let settings = [("LIMITS__EXPORTS_PER_USER_DAY", "2"), ("LIMITS__EXPORTS_PER_TENANT_DAY", "3")];
    let app = TestApp::start(&settings).await;
    let (ann, bob) = (app.token_of("ann", Some("acme"), &["USER"]), app.token_of("bob", Some("acme"), &["USER"]));
    assert_eq!(say(&app, &ann, "one", "Hello").await.0, 200);
    let export = async |token: &str, conversation: &str| {
        let url = app.url(&format!("/v1/agent/conversations/{conversation}/export"));
        let response = app.http.get(url).bearer_auth(token).send().await.unwrap();
        let retry_after_s =
            response.headers().get("retry-after").map(|value| value.to_str().unwrap().parse::<u64>().unwrap());
        (response.status().as_u16(), retry_after_s, response.json::<Value>().await.unwrap()["code"].clone())
    };
    assert_eq!(export(&ann, "one").await.0, 200);
    assert_eq!(export(&ann, "none").await.0, 404, "what is not there counts too");
    let (status, retry_after_s, code) = export(&ann, "one").await;
    assert_eq!((status, code), (429, json!("export_quota_exceeded")));
    assert!((1..=86_400).contains(&retry_after_s.unwrap()), "until midnight: {retry_after_s:?}");
    assert_eq!(export(&bob, "one").await.0, 404, "another user");
    assert_eq!(export(&bob, "one").await.0, 429, "and the tenant's are used up");
    let stranger = app.token_of("ann", Some("umbrella"), &["USER"]);
    assert_eq!(export(&stranger, "one").await.0, 404);
}
