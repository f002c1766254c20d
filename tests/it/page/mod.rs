//! The chat page: what is served and with which headers, who is signed in by it, whom it offers, its client library, and what
//! its user sees in a browser.

mod assets;
mod chat;
mod client;
mod decisions;
mod directives;
mod files;
mod library;
mod profiles;
mod seen;
mod session;
mod unsent;
mod workspace;

use serde_json::Value;
use tokio::sync::Notify;

use crate::support::app::TestApp;
use crate::support::{environment, node};

/// What a user has seen in a case of a script, which lets what waits at `gate` go on when it has seen enough. `None` where there is
/// no browser.
async fn visit(script: &str, case: &str, app: &TestApp, gate: &Notify) -> Option<Value> {
    let seen = node::run_at_gate(script, &[case], app, gate).await?;
    if let Some(reason) = seen["skipped"].as_str() {
        environment::skip(reason);
        return None;
    }
    Some(seen)
}
