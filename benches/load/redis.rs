//! A Redis of the bench's own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::sleep;

/// A Redis that listens at a socket and keeps nothing on the disk.
pub struct Redis {
    child: Child,
    socket: String,
}

impl Redis {
    /// `None` where its program is not installed.
    pub async fn start(folder: &Path) -> Option<Self> {
        let socket = folder.join("redis.sock").display().to_string();
        let args = ["--port", "0", "--unixsocket", &socket, "--save", "", "--appendonly", "no", "--dir"];
        let child = Command::new("redis-server").args(args).arg(folder).stdout(Stdio::null()).spawn().ok()?;
        while !Path::new(&socket).exists() {
            sleep(Duration::from_millis(10)).await;
        }
        Some(Self { child, socket })
    }

    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What `INFO` says of it in this section.
    pub fn info(&self, section: &str) -> String {
        let asked = Command::new("redis-cli").args(["-s", &self.socket, "info", section]).output().unwrap();
        String::from_utf8(asked.stdout).unwrap()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        self.child.wait().unwrap();
        // A killed one leaves its socket, and the next one is there when its own is.
        let _ = std::fs::remove_file(&self.socket);
    }
}
