//! Thousands of directives that are due at one moment: two processes carry each of them out once.
//! `SWITCHBOARD_TEST_LONG=1` makes it ten thousand.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use crate::death::{Client, Machine};
use crate::support::environment::is_long;
use crate::support::model::says;
use crate::support::postgres::TestPostgres;
use crate::support::redis::TestRedis;
use crate::support::upstream::{Answer, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "send"
description = "Sends something."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
request = { method = "POST", path = "/v1/sent/{id}" }
[tool.directive]
name = "post.send"
runs_as = "service"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_that_are_due_at_once_are_each_carried_out_once() {
    let (Some(postgres), Some(redis)) = (TestPostgres::shared(), TestRedis::start()) else { return };
    let count: u64 = if is_long() { 10_000 } else { 1_000 };
    let (database, redis_url) = (postgres.new_database().await, redis.url());
    let model = Upstream::choosing(|_| Some(says("Fine.").answer())).await;
    let backend = Upstream::choosing(|_| Some(Answer::ok("application/json", r#"{"sent": true}"#))).await;
    let settings = [
        ("STORE__URL", database.url.as_str()),
        ("EVENTS__URL", &redis_url),
        ("BACKEND__SERVICE__MODE", "token"),
        ("BACKEND__SERVICE__TOKEN", "the-token-of-the-service"),
        ("DIRECTIVES__POLL_MS", "50"),
        ("DIRECTIVES__MAX_LIVE_PER_USER", "0"),
        ("DIRECTIVES__MAX_LIVE_PER_TENANT", "0"),
    ];
    let machine = Machine::new(&model, &backend, &settings);
    machine.folder.write("config/tools/post.toml", TOOLS);
    let token = machine.token_of(&["--user", "ada", "--ttl", "2h"], |_| {});
    let serving = [machine.serve(), machine.serve()];
    let clients = serving.each_ref().map(|serving| Client::of(serving, &token));
    let tomorrow = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() + 86_400).unwrap().to_string();
    let requests = futures::stream::iter(0..count).for_each_concurrent(8, async |id| {
        let body = json!({"name": "post.send", "payload": {"id": id}, "scheduled_at": tomorrow});
        let response = clients[usize::try_from(id % 2).unwrap()].post("/v1/agent/directives", &body).await;
        assert_eq!(response.status(), 201, "{id}");
    });
    requests.await;
    assert_eq!(backend.requests().len(), 0, "none of them is due");

    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let due = sqlx::query("UPDATE directives SET due_at = 0").execute(&mut connection).await.unwrap();
    assert_eq!(due.rows_affected(), count);
    // As long as some of them come to an end, there is something to wait for.
    let open = "SELECT COUNT(*) FROM directives WHERE status <> 'succeeded'";
    let (mut left, mut still) = (count, 0);
    while left > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now: i64 = sqlx::query_scalar(open).fetch_one(&mut connection).await.unwrap();
        let now = u64::try_from(now).unwrap();
        still = if now < left { 0 } else { still + 1 };
        left = now;
        assert!(still < 600, "{left} of {count} are left");
    }
    let mut sent: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for request in backend.requests() {
        let key = request.header("idempotency-key").unwrap().to_owned();
        sent.entry(request.path).or_default().push(key);
    }
    let expected: Vec<String> = (0..count).map(|id| format!("/v1/sent/{id}")).collect();
    assert!(expected.iter().all(|path| sent.get(path).is_some_and(|keys| keys.len() == 1)), "each was sent once");
    assert_eq!(sent.len(), expected.len());
    let told = "SELECT COUNT(*) FROM signals WHERE name = 'directive.succeeded'";
    let told: i64 = sqlx::query_scalar(told).fetch_one(&mut connection).await.unwrap();
    assert_eq!(u64::try_from(told).unwrap(), count, "each has its signal");
}
