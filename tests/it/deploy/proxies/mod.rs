//! The proxies of `docs/deploy/proxies`, each the real program with the file as it is shipped; only addresses and folders are the
//! test's own.

mod heads;
mod smuggling;
mod streams;
mod unconfirmed;

use std::path::PathBuf;

use tempfile::TempDir;

use super::{Attended, PATIENCE, free_port, is_installed, path, text};
use crate::support::environment::skip;

/// Which proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Nginx,
    Haproxy,
    Caddy,
}

/// A proxy before two servers; it ends when this is dropped.
pub struct Front {
    pub kind: Kind,
    pub port: u16,
    log: PathBuf,
    program: Option<Attended>,
    _folder: TempDir,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Nginx, Self::Haproxy, Self::Caddy];

    /// Its program, and the file that is shipped for it.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Nginx => ("nginx", "nginx.conf"),
            Self::Haproxy => ("haproxy", "haproxy.cfg"),
            Self::Caddy => ("caddy", "Caddyfile"),
        }
    }

    /// The place in its file that says where it listens, and what stands there for a port of this machine.
    fn listens(self, port: u16) -> (&'static str, String) {
        match self {
            Self::Nginx => ("    listen 8080;", format!("    listen 127.0.0.1:{port};")),
            Self::Haproxy => ("    bind :8080", format!("    bind 127.0.0.1:{port}")),
            Self::Caddy => ("\n:8080 {", format!("\nhttp://:{port} {{\n\tbind 127.0.0.1")),
        }
    }
}

impl Front {
    /// All proxies that are here, before the servers at `a` and `b`.
    pub async fn all(a: &str, b: &str) -> Vec<Self> {
        let mut fronts = Vec::new();
        for kind in Kind::ALL {
            fronts.extend(Self::before(kind, a, b).await);
        }
        fronts
    }

    /// A proxy before the servers at `a` and `b`. One that is missing is told of; Caddy may be.
    pub async fn before(kind: Kind, a: &str, b: &str) -> Option<Self> {
        Self::changed(kind, a, b, |shipped| shipped).await
    }

    /// The same with another file than the one that is shipped.
    pub async fn changed(kind: Kind, a: &str, b: &str, change: impl Fn(String) -> String) -> Option<Self> {
        let (program, file) = kind.names();
        match (is_installed(program), kind) {
            (true, _) => {}
            (false, Kind::Nginx | Kind::Haproxy) => {
                skip(&format!("{program} is not installed"));
                return None;
            }
            (false, Kind::Caddy) => {
                eprintln!("caddy is not installed: its file is not tried");
                return None;
            }
        }
        // Somebody else may take the free port before the proxy does.
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let port = free_port();
            let config = folder.path().join(file);
            let dir = format!("{}/", folder.path().display());
            let (listens, here) = kind.listens(port);
            let shipped = text(&format!("docs/deploy/proxies/{file}"));
            for wanted in ["replica-1:8080", "replica-2:8080", listens] {
                assert_eq!(shipped.matches(wanted).count(), 1, "{file}: {wanted}");
            }
            let ours = shipped.replace("replica-1:8080", a).replace("replica-2:8080", b).replace(listens, &here);
            let ours = change(ours);
            std::fs::write(&config, ours.replace("/tmp/", &dir)).unwrap();
            let (config, log) = (config.to_str().unwrap(), folder.path().join("log"));
            let command = match kind {
                // Another user's workers could not write into the test's folder.
                Kind::Nginx => vec!["nginx", "-e", "stderr", "-g", "daemon off; user root;", "-c", config],
                Kind::Haproxy => vec!["haproxy", "-db", "-f", config],
                Kind::Caddy => vec!["caddy", "run", "--adapter", "caddyfile", "--config", config],
            };
            let program = Attended::start(&command, &log);
            let mut front = Self { kind, port, log, program: Some(program), _folder: folder };
            if front.is_up().await {
                return Some(front);
            }
            front.program = None;
        }
        panic!("{kind:?} does not start");
    }

    /// Waits until it passes a request on; false when it has ended.
    async fn is_up(&self) -> bool {
        let end = std::time::Instant::now() + PATIENCE;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        while self.program.as_ref().unwrap().is_running() {
            let answer = http.get(self.url("/livez")).send().await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return true;
            }
            assert!(std::time::Instant::now() < end, "{:?} passes nothing on: {}", self.kind, self.log());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        eprintln!("{:?} ended: {}", self.kind, self.log());
        false
    }

    /// A URL through it.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

#[test]
fn each_file_that_is_shipped_is_tried() {
    let mut found: Vec<_> = std::fs::read_dir(path("docs/deploy/proxies"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let mut known = Kind::ALL.map(|kind| kind.names().1.to_owned());
    known.sort();
    assert_eq!(found, known);
}
