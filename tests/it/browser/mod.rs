//! What the page draws, in a browser: hostile texts, more than anybody reads, and the drawings as people use them. The scripts in
//! `tests/peers/frontends/page` run on the page's own files; what needs no browser runs in Node alone.

mod diagrams;
mod drawings;
mod hostile;
mod walk;

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::{environment, node};

/// What a script has seen; `None` where there is no browser, or nothing to drive it with.
async fn see(script: &str, args: &[&str]) -> Option<Value> {
    let seen = node::run(&format!("page/{script}"), args, &TestApp::demo().await).await?;
    if let Some(reason) = seen["skipped"].as_str() {
        environment::skip(reason);
        return None;
    }
    Some(seen)
}

/// What a browser reports where nothing happens that should not.
fn nothing() -> Value {
    json!({
        "ran": [], "dialogs": [], "requests": [], "violations": [], "navigations": [], "pages": [], "errors": [], "inFrames": [],
    })
}
