//! A Redis server of a test's own, which the test may pause, kill and start anew.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to answer on a busy machine.
const START: Duration = Duration::from_secs(20);

/// Starts the server with the script's arguments, tells its process id, and kills it when the standard input ends,
/// which it does however the test's process ends.
const ATTEND: &str = r#""$@" >/dev/null 2>&1 </dev/null & echo $!; cat >/dev/null; kill -9 $!"#;

/// A private server that keeps nothing on disk. It ends when this is dropped.
pub struct TestRedis {
    port: u16,
    folder: TempDir,
    running: Option<Running>,
}

struct Running {
    attendant: Child,
    id: u32,
}

impl TestRedis {
    /// A server on a free port; `None` where none is installed, and then the test says so and goes without it, unless
    /// `SWITCHBOARD_REQUIRE_SERVICES` is 1.
    pub fn start() -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            let reason = "redis-server is not installed";
            assert!(std::env::var("SWITCHBOARD_REQUIRE_SERVICES").as_deref() != Ok("1"), "{reason}");
            // Not `println!`, which a test that passes keeps to itself.
            writeln!(std::io::stderr(), "SKIPPED: {reason}").unwrap();
            return None;
        }
        let mut redis = Self { port: 0, folder: TempDir::new().unwrap(), running: None };
        // Somebody else may take the free port before the server does.
        for _ in 0..5 {
            redis.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if redis.try_run() {
                return Some(redis);
            }
        }
        panic!("redis-server does not start");
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Stops it in its tracks: its port takes connections and nothing answers.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on after a pause.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    /// Kills it. Nothing is on its port afterwards.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Starts it anew on the same port, empty; it is killed before, where it still runs.
    pub fn restart_empty(&mut self) {
        self.running = None;
        let end = Instant::now() + START;
        while !self.try_run() {
            assert!(Instant::now() < end, "redis-server does not start again");
        }
    }

    /// What it answers to a command whose words have no spaces: the answer's lines as they are on the wire.
    pub fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(START)).unwrap();
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.strip_suffix("+OK\r\n").unwrap().to_owned()
    }

    /// How often commands of this name were carried out since it started.
    pub fn calls(&self, name: &str) -> u64 {
        let stats = self.ask("INFO commandstats");
        let line = format!("cmdstat_{name}:calls=");
        let calls = stats.lines().find_map(|stat| stat.strip_prefix(&line)?.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }

    fn signal(&self, name: &str) {
        let id = self.running.as_ref().unwrap().id.to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Runs it on its port; whether it answers there.
    fn try_run(&mut self) -> bool {
        let mut attendant = Command::new("sh")
            .args(["-c", ATTEND, "sh", "redis-server", "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"])
            .args(["--port", &self.port.to_string(), "--dir", self.folder.path().to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut id = String::new();
        BufReader::new(attendant.stdout.take().unwrap()).read_line(&mut id).unwrap();
        let running = Running { attendant, id: id.trim().parse().unwrap() };
        let end = Instant::now() + START;
        while Instant::now() < end {
            if self.is_there(running.id) {
                self.running = Some(running);
                return true;
            }
            if !std::path::Path::new(&format!("/proc/{}", running.id)).exists() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Whether the process answers on the port, and not somebody else.
    fn is_there(&self, id: u32) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            && self.ask("INFO server").contains(&format!("process_id:{id}\r\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.attendant.stdin.take());
        self.attendant.wait().unwrap();
    }
}
