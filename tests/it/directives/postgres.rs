//! The same commands over PostgreSQL, held to row-level security.

use serde_json::json;

use super::{forum, names, post, until};
use crate::support::postgres::TestPostgres;
use crate::tools::rest::answer;

#[tokio::test]
async fn a_directive_is_requested_approved_and_carried_out_on_postgresql() {
    let Some(postgres) = TestPostgres::shared() else { return };
    let database = postgres.new_database().await;
    let settings = [("STORE__URL", database.url.as_str()), ("STORE__ROW_SECURITY", "on")];
    let (s, backend) = forum(&settings, [], |_| answer(&json!({"id": "t7", "title": "Hello"}))).await;
    let (ann, owner) =
        (s.app.token_of("ann", Some("acme"), &["member"]), s.app.token_of("ole", Some("acme"), &["owner"]));
    let (_, made) =
        post(&s.app, &ann, "/directives", json!({"name": "forum.thread.erase", "payload": {"id": "t1"}})).await;
    let id = &made["directive"]["id"];
    let path = format!("/directives/{}/decision", id.as_str().unwrap());
    assert_eq!(post(&s.app, &owner, &path, json!({"decision": "approve"})).await.0, 200);
    until(&s.app, &ann, id, "succeeded").await;
    let args = json!({"category_id": "c1", "title": "Hello"});
    let (_, made) = post(&s.app, &ann, "/directives", json!({"name": "forum.thread.create", "payload": args})).await;
    until(&s.app, &ann, &made["directive"]["id"], "succeeded").await;
    let auditor = s.app.token_of("olga", Some("acme"), &["auditor"]);
    let told = names(&s.app, &auditor).await;
    assert_eq!(told.len(), 8, "{told:?}");
    assert_eq!(backend.requests().len(), 2);
}
