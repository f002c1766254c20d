//! The log: one subscriber, to standard error, as text for people or JSON for machines.
//!
//! Spans nest `http.request` > `agent.run` > `agent.turn` > `llm.chat` or `tool.execute`. Fields are dotted names with
//! their unit at the end (`duration_ms`). **Invariant:** no token, key, prompt or body is ever a field.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Installs the subscriber. A second call changes nothing, so that tests may call it as they like.
pub fn init(log: &Log) {
    let filter = EnvFilter::try_new(&log.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let stderr = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let installed = match log.format {
        LogFormat::Text => stderr.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => stderr.json().try_init(),
    };
    if installed.is_err() {
        tracing::debug!("a subscriber is installed already");
    }
}
