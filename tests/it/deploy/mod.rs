//! What is shipped besides the binary: the image, the proxies before it, the files of compose and Helm, what the supply
//! chain is held to, and the walk of `docs/OPERATIONS.md`.

mod compose;
mod dockerfile;
mod helm;
mod image;
mod proxies;
mod strangers_day;
mod supply;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a program may take to be there on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A file or folder of the repository.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The text of a file of the repository.
fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Nobody listens there, as far as one can tell.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts the program of its arguments, tells its process id, and asks it to end when the standard input ends, which it does
/// however the test's process ends.
const ATTEND: &str = r#""$@" </dev/null & echo $! >&3; exec 3>&-; cat >/dev/null; kill $! 2>/dev/null; wait"#;

/// A program that runs until this is dropped.
struct Attended {
    attendant: Child,
    id: u32,
}

impl Attended {
    /// Starts it; what it says goes to the file `log`.
    fn start(command: &[&str], log: &Path) -> Self {
        let said = std::fs::File::create(log).unwrap();
        let mut attendant = Command::new("sh")
            // The attendant's own standard output is the third descriptor; the program's is the log.
            .args(["-c", &format!("exec 3>&1 1>&2; {ATTEND}"), "sh"])
            .args(command)
            .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()
            .unwrap();
        let mut id = String::new();
        BufReader::new(attendant.stdout.take().unwrap()).read_line(&mut id).unwrap();
        Self { attendant, id: id.trim().parse().unwrap() }
    }

    fn is_running(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id)).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        drop(self.attendant.stdin.take());
        // Nothing can be done about one that has ended already.
        let _ = self.attendant.wait();
    }
}

/// Whether the program can be started at all, here or where those of the administrator are.
fn is_installed(program: &str) -> bool {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
