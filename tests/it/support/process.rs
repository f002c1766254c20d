//! The real binary, run in a folder of its own with an environment that holds nothing but what the test says.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long the binary may take for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder to run the binary in.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The names of what is in it, sorted.
    pub fn entries(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn command(&self, args: &[&str], settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
        command.args(args).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command.envs(settings.iter().map(|(key, value)| (format!("SWITCHBOARD__{key}"), value)));
        command
    }

    /// Runs a command that ends by itself.
    pub fn run(&self, args: &[&str], settings: &[(&str, &str)]) -> Ended {
        self.command(args, settings).output().unwrap().into()
    }

    /// A token of the folder's secret.
    pub fn token(&self, args: &[&str]) -> String {
        self.token_with(args, &[])
    }

    /// A token of the settings' secret.
    pub fn token_with(&self, args: &[&str], settings: &[(&str, &str)]) -> String {
        self.token_as(args, settings, |_| {})
    }

    /// The same by a command that `change` has changed.
    pub fn token_as(&self, args: &[&str], settings: &[(&str, &str)], change: impl FnOnce(&mut Command)) -> String {
        let mut command = self.command(&[&["token"], args].concat(), settings);
        change(&mut command);
        let ended = Ended::from(command.output().unwrap());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        ended.stdout.trim_end().to_owned()
    }

    /// Starts `serve` on a free port, and waits until it has said its address.
    pub fn serve(&self, settings: &[(&str, &str)]) -> Serving {
        self.serve_as(settings, |_| {})
    }

    /// The same with a command that `change` has changed.
    pub fn serve_as(&self, settings: &[(&str, &str)], change: impl FnOnce(&mut Command)) -> Serving {
        let mut serving = self.start_as(settings, change);
        serving.greeting = serving.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{}", self.stderr()));
        let rest = serving.greeting.strip_prefix("switchboard listening on http://").unwrap();
        serving.address = rest.split_once(' ').unwrap().0.to_owned();
        serving
    }

    /// The same without waiting: it has said nothing yet.
    pub fn start(&self, settings: &[(&str, &str)]) -> Serving {
        self.start_as(settings, |_| {})
    }

    /// Starts it with nothing but these arguments, and does not wait.
    pub fn start_with(&self, args: &[&str]) -> Serving {
        let stderr = File::create(self.path().join("stderr.log")).unwrap();
        Self::spawned(self.command(args, &[]), stderr)
    }

    fn start_as(&self, settings: &[(&str, &str)], change: impl FnOnce(&mut Command)) -> Serving {
        let stderr = File::create(self.path().join("stderr.log")).unwrap();
        // One user asks for what a hundred would.
        let own = [
            ("SERVER__BIND", "127.0.0.1:0"),
            ("LIMITS__STARTS_PER_MINUTE", "0"),
            ("LIMITS__ACTIVE_RUNS_PER_USER", "0"),
            ("LIMITS__ACTIVE_RUNS_PER_TENANT", "0"),
            ("LIMITS__READERS_PER_RUN", "0"),
            ("SERVER__REQUESTS_PER_USER", "0"),
        ];
        let mut command = self.command(&["serve"], &[&own, settings].concat());
        change(&mut command);
        Self::spawned(command, stderr)
    }

    fn spawned(mut command: Command, stderr: File) -> Serving {
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        Serving { child, lines, greeting: String::new(), address: String::new() }
    }

    /// What `serve` has logged.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.path().join("stderr.log")).unwrap()
    }
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("not ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A running `serve`; it is killed when dropped.
pub struct Serving {
    child: Child,
    pub lines: Receiver<String>,
    /// The first line it printed.
    pub greeting: String,
    /// Its address and port.
    pub address: String,
}

impl Serving {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The lines after the greeting, up to one that satisfies `is_last`.
    pub fn lines_until(&self, is_last: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &String| !is_last(line)) {
            lines.push(self.lines.recv_timeout(PATIENCE).unwrap());
        }
        lines
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How much memory it holds.
    pub fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// How much memory it has held at most.
    pub fn peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// How much more memory it holds at most while `doing`, than before.
    pub async fn grows_by(&self, doing: impl Future<Output = ()>) -> u64 {
        let before = self.resident_kib();
        // From now on the kernel notes the peak anew.
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
        doing.await;
        self.peak_kib().saturating_sub(before)
    }

    /// How many files and sockets it has open.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Asks it to stop.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Kills it, as a crash or a lack of memory does, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it in its tracks.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on after a pause.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("/bin/sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for its end: the exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(started.elapsed() < PATIENCE, "it does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Nothing can be done about a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
