//! The chains hold, whoever writes at once; and what was changed behind their back is found.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

use super::{READABLE, audit, audit_at, exported, record};
use crate::support::app::TestApp;
use crate::support::postgres::TestPostgres;

/// Reads that one of two replicas is asked for.
const READS: usize = 30;

async fn beside(data: &TempDir) -> SqliteConnection {
    SqliteConnectOptions::new().filename(data.path().join("test.db")).connect().await.unwrap()
}

/// A product that was looked at `times` times, stopped.
async fn looked_at(times: usize) -> TempDir {
    let app = TestApp::start(&[READABLE]).await;
    for _ in 0..times {
        record(&app, Some("acme")).await;
    }
    app.stop().await
}

#[tokio::test]
async fn what_was_changed_in_the_file_is_found_with_its_place() {
    let data = looked_at(6).await;
    let good = audit(&data, &["verify"]);
    assert_eq!((good.code, good.stderr.as_str()), (0, ""));
    assert!(good.stdout.starts_with("tenant:acme: 6 lines hold, the last one is "), "{}", good.stdout);

    let mut file = beside(&data).await;
    for forbidden in [
        "DELETE FROM audit WHERE seq = 3",
        "UPDATE audit SET actor = 'bob' WHERE seq = 3",
        "UPDATE audit SET seq = 9 WHERE seq = 6",
        "UPDATE audit SET digest = '' WHERE seq = 3",
    ] {
        let refused = sqlx::raw_sql(forbidden).execute(&mut file).await.unwrap_err().to_string();
        assert!(refused.contains("the audit record is append-only"), "{forbidden}: {refused}");
    }
    let rows = [
        ("UPDATE audit SET actor = 'bob' WHERE seq = 3", "line 3 was changed; 2 lines before it hold"),
        ("UPDATE audit SET times = 2 WHERE seq = 4", "line 4 was changed; 3 lines before it hold"),
        ("DELETE FROM audit WHERE seq = 5", "line 5 is missing: line 6 is in its place; 4 lines before it hold"),
        ("DELETE FROM audit WHERE seq = 6", "the chain ends at line 5, and had 6; 5 lines before it hold"),
        (
            "UPDATE audit SET previous = 'x' WHERE seq = 2",
            "line 2 does not follow the one before it; 1 lines before it hold",
        ),
    ];
    for (change, expected) in rows {
        let data = looked_at(6).await;
        let mut file = beside(&data).await;
        for name in ["audit_stays", "audit_is_not_rewritten", "audit_is_chained_once"] {
            sqlx::raw_sql(AssertSqlSafe(format!("DROP TRIGGER {name}"))).execute(&mut file).await.unwrap();
        }
        sqlx::raw_sql(change).execute(&mut file).await.unwrap();
        file.close().await.unwrap();
        let found = audit(&data, &["verify"]);
        assert_eq!((found.code, found.stdout.as_str()), (1, ""), "{change}");
        assert_eq!(found.stderr, format!("switchboard: tenant:acme: {expected}\n"), "{change}");
    }
}

#[tokio::test]
async fn an_export_is_what_the_route_says_line_by_line() {
    let app = TestApp::start(&[READABLE]).await;
    let token = app.token_of("otto", Some("acme"), &["auditor"]);
    let read = |query: &str| app.http.get(app.url(&format!("/v1/agent/audit{query}"))).bearer_auth(&token);
    for _ in 0..4 {
        assert_eq!(read("?limit=1").send().await.unwrap().status(), 200);
    }
    let first: Value = read("?limit=2").send().await.unwrap().json().await.unwrap();
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let cursor = first["next_cursor"].as_str().unwrap();
    let response = read(&format!("?cursor={cursor}")).header("accept", "application/x-ndjson").send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    let rest: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rest.len(), 4, "{text}");
    let routed: Vec<Value> = first["items"].as_array().unwrap().iter().chain(&rest).cloned().collect();
    let data = app.stop().await;
    assert_eq!(exported(&audit(&data, &["export"])), routed);
    assert_eq!(exported(&audit(&data, &["export", "--chain", "tenant:acme"])), routed);
    assert_eq!(exported(&audit(&data, &["export", "--chain", "tokens"])), [Value::Null; 0], "none was refused");
    let unknown = audit(&data, &["export", "--chain", "acme"]);
    assert_eq!((unknown.code, unknown.stderr.as_str()), (1, "switchboard: there is no chain \"acme\"\n"));
    let seqs: Vec<u64> = routed.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn two_replicas_that_write_and_chain_at_once_keep_one_chain() {
    let Some(server) = TestPostgres::shared() else { return };
    let database = server.new_database().await;
    let settings = [READABLE, ("STORE__URL", database.url.as_str())];
    let secret = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", "a secret of the tests, long enough for HS256")];
    let all = [&settings[..], &secret[..]].concat();
    let replicas = [TestApp::start(&all).await, TestApp::start(&all).await];
    let reads = (0..2 * READS).map(|nth| {
        let app = &replicas[nth % 2];
        let token = app.token_of(&format!("otto-{nth}"), Some("acme"), &["auditor"]);
        async move {
            let response = app.http.get(app.url("/v1/agent/audit")).bearer_auth(token).send().await.unwrap();
            assert_eq!(response.status(), 200);
            response.text().await.unwrap()
        }
    });
    futures::future::join_all(reads).await;
    for replica in replicas {
        replica.stop().await;
    }
    let verified = audit_at(&database.url, &["verify"]);
    assert_eq!((verified.code, verified.stderr.as_str()), (0, ""));
    assert!(verified.stdout.starts_with("tenant:acme: 60 lines hold, the last one is "), "{}", verified.stdout);
    let lines = exported(&audit_at(&database.url, &["export"]));
    let actors: BTreeSet<&str> = lines.iter().map(|line| line["actor"].as_str().unwrap()).collect();
    assert_eq!(actors.len(), 2 * READS, "each is there, once");

    let refused = sqlx::raw_sql("DELETE FROM audit").execute(&mut database.beside().await).await.unwrap_err();
    assert!(refused.to_string().contains("the audit record is append-only"), "{refused}");
    let change = "UPDATE audit SET actor = 'bob' WHERE seq = 7";
    let refused = sqlx::raw_sql(change).execute(&mut database.beside().await).await.unwrap_err();
    assert!(refused.to_string().contains("the audit record is append-only"), "{refused}");
    database.execute(&format!("ALTER TABLE audit DISABLE TRIGGER ALL; {change}")).await;
    let found = audit_at(&database.url, &["verify"]);
    assert_eq!((found.code, found.stdout.as_str()), (1, ""));
    assert_eq!(found.stderr, "switchboard: tenant:acme: line 7 was changed; 6 lines before it hold\n");
    assert_eq!(json!(lines[6]["seq"]), json!(7));
}
