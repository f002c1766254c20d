//! The audit record at the boundary: what happened is done over HTTP, and what the record says of it is read over HTTP or by
//! the command line.

mod chains;
mod lines;
mod reads;
mod sent;
mod tokens;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::app::TestApp;
use crate::support::process::{Ended, Folder};

/// The settings of a record that somebody may read.
pub const READABLE: (&str, &str) = ("SERVER__AUDIT_ROLE", "auditor");

/// Who reads it.
pub const OTTO: &str = "33333333-3333-4333-8333-333333333333";

/// The record of a tenant, as its auditor reads it: all of it, but for the reads of the record itself.
pub async fn record(app: &TestApp, tenant: Option<&str>) -> Vec<Value> {
    let token = app.token_of(OTTO, tenant, &["auditor"]);
    let response = app.http.get(app.url("/v1/agent/audit?limit=1000")).bearer_auth(token).send().await.unwrap();
    let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["next_cursor"], Value::Null, "all of it on one page");
    let lines = body["items"].as_array().unwrap().iter().cloned();
    lines.filter(|line| line["subject"] != json!("/v1/agent/audit")).collect()
}

/// These fields of each line.
pub fn told(lines: &[Value], fields: &[&str]) -> Vec<Value> {
    lines.iter().map(|line| fields.iter().map(|field| line[*field].clone()).collect()).collect()
}

/// What `switchboard audit …` says of the database of a product that has stopped.
pub fn audit(data: &TempDir, args: &[&str]) -> Ended {
    let url = format!("sqlite://{}", data.path().join("test.db").display());
    audit_at(&url, args)
}

/// The same of the database at a URL.
pub fn audit_at(url: &str, args: &[&str]) -> Ended {
    Folder::new().run(&[&["audit"], args].concat(), &[("STORE__URL", url)])
}

/// The lines that `switchboard audit export` prints.
pub fn exported(ended: &Ended) -> Vec<Value> {
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
