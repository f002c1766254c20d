//! The file that tells an editor whether this server runs, and at which port (AgentSmithy protocol, status file). It is
//! replaced as a whole, by rename.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::agent::ports::clock::{Clock, SystemClock};
use crate::chat::day::rfc3339;

/// The status file of a server that has its workspace. When it is dropped it tells that the server has ended.
#[derive(Debug)]
pub struct StatusFile {
    file: PathBuf,
    started_at: String,
    port: Option<u16>,
}

#[derive(Serialize)]
struct Told<'a> {
    server_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    server_started_at: &'a str,
    server_updated_at: String,
}

impl StatusFile {
    /// The file, which tells that the server starts. Relative paths are below `state`.
    pub fn starting(file: &Path, state: &Path) -> Self {
        let status = Self { file: state.join(file), started_at: now(), port: None };
        status.tell("starting", true);
        status
    }

    /// The server answers at `port`.
    pub fn ready(&mut self, port: u16) {
        self.port = Some(port);
        self.tell("ready", true);
    }

    /// It begins no more work.
    pub fn stopping(&self) {
        self.tell("stopping", true);
    }

    fn tell(&self, server_status: &'static str, is_alive: bool) {
        let told = Told {
            server_status,
            server_pid: is_alive.then(std::process::id),
            port: self.port.filter(|_| is_alive),
            server_started_at: &self.started_at,
            server_updated_at: now(),
        };
        if let Err(error) = self.replace(&told) {
            tracing::warn!(file = %self.file.display(), %error, "the status file was not written");
        }
    }

    fn replace(&self, told: &Told<'_>) -> std::io::Result<()> {
        let mut name = self.file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = self.file.with_file_name(name);
        // One of a process that had this number is no use to anybody.
        let _ = std::fs::remove_file(&new);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(told)?)?;
        std::fs::rename(&new, &self.file)
    }
}

impl Drop for StatusFile {
    fn drop(&mut self) {
        self.tell("stopped", false);
    }
}

fn now() -> String {
    rfc3339(SystemClock.now_ms())
}
