//! A started sandbox with all that runs in it: one process of ours to wait for, one socket to its first process, and
//! the certainty that all of it ends.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, kill_process_group, pidfd_send_signal};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Shared;

/// How long the first process may take to end everything by itself. Without namespaces it has to find all others.
const BY_ITSELF: Duration = Duration::from_millis(2_000);

/// How long the kernel may take after a kill.
const BY_FORCE: Duration = Duration::from_millis(1_500);

/// How often it is looked whether the first process is gone; mostly it is at the first look.
const LOOK: Duration = Duration::from_millis(3);

/// What the first process says, as one byte and what follows it.
pub(super) mod word {
    /// The command runs; the first process's handle comes along.
    pub(in crate::workspace::command) const RUNS: u8 = b'R';
    /// The command has ended: its exit code in four bytes, little end first.
    pub(in crate::workspace::command) const ENDED: u8 = b'E';
    /// The command could not be started: words until the end.
    pub(in crate::workspace::command) const FAILED: u8 = b'X';
}

/// How many sandboxes are being ended after their future was dropped.
#[derive(Debug)]
pub(super) struct Dying {
    count: watch::Sender<usize>,
}

impl Dying {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { count: watch::Sender::new(0) }
    }

    /// Waits until there is none.
    pub(super) async fn none(&self) {
        // The sender is in `self`: it cannot be gone.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    /// One more, until the answer is dropped.
    fn one(self: Arc<Self>) -> One {
        self.count.send_modify(|count| *count += 1);
        One(self)
    }
}

/// One sandbox that is being ended.
struct One(Arc<Dying>);

impl Drop for One {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

/// A started sandbox. Dropping it ends all that runs in it.
pub(super) struct Tree {
    parts: Option<Parts>,
    /// What has come through the socket.
    heard: Vec<u8>,
    dying: Arc<Dying>,
    runtime: Handle,
}

/// What is left to end.
struct Parts {
    child: Child,
    control: UnixStream,
    /// A handle of the first process inside.
    first: Option<OwnedFd>,
}

impl Tree {
    /// Starts `command` with the socket as its standard input. Both outputs are given back for reading.
    pub(super) fn start(shared: &Shared, mut command: Command) -> io::Result<(Self, ChildStdout, ChildStderr)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let control = UnixStream::from_std(ours)?;
        command
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env_clear()
            .current_dir("/")
            .kill_on_drop(true);
        let mut child =
            shared.spawner.as_ref().ok_or_else(|| io::Error::other("no command runs here"))?.spawn(command)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let parts = Some(Parts { child, control, first: None });
        let dying = Arc::clone(&shared.dying);
        let tree = Self { parts, heard: Vec::new(), dying, runtime: Handle::current() };
        let missing = || io::Error::other("no pipe");
        Ok((tree, stdout.ok_or_else(missing)?, stderr.ok_or_else(missing)?))
    }

    /// Gives the order, and waits until the command runs. `Ok(Err(words))`: it could not be started, empty words where
    /// the first process did not come to speak.
    pub(super) async fn order(&mut self, order: &[u8]) -> io::Result<Result<(), String>> {
        if let Some(parts) = &mut self.parts {
            // One that is gone already is heard below.
            let _ = parts.control.write_all(order).await;
        }
        while self.heard.first() != Some(&word::RUNS) {
            if !self.hear().await? {
                let words = self.heard.strip_prefix(&[word::FAILED]).unwrap_or_default();
                return Ok(Err(String::from_utf8_lossy(words).into_owned()));
            }
        }
        Ok(Ok(()))
    }

    /// Waits until the command has ended. `None`: its sandbox ended without a word about it.
    pub(super) async fn ended(&mut self) -> Option<i32> {
        loop {
            if let [word::RUNS, word::ENDED, code @ ..] = self.heard.as_slice()
                && let Some(code) = code.first_chunk()
            {
                return Some(i32::from_le_bytes(*code));
            }
            match self.hear().await {
                Ok(true) => {}
                Ok(false) | Err(_) => return None,
            }
        }
    }

    /// Waits for more to come through the socket; `false` at its end.
    async fn hear(&mut self) -> io::Result<bool> {
        let Some(parts) = &mut self.parts else {
            return Ok(false);
        };
        let mut bytes = [0; 1_024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let control = &parts.control;
        let (count, handle) = control
            .async_io(Interest::READABLE, || {
                let mut ancillary = RecvAncillaryBuffer::new(&mut space);
                let mut slices = [IoSliceMut::new(&mut bytes)];
                let got = recvmsg(control, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
                let handle = ancillary.drain().find_map(|message| match message {
                    RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
                    _ => None,
                });
                Ok((got.bytes, handle))
            })
            .await?;
        if handle.is_some() {
            parts.first = handle;
        }
        self.heard.extend_from_slice(&bytes[..count]);
        Ok(count > 0)
    }

    /// Ends all that runs, and waits until it is gone.
    pub(super) async fn end(mut self) {
        if let Some(parts) = self.parts.take() {
            // From here on dropping the future must not stop the work either.
            let one = Arc::clone(&self.dying).one();
            let work = self.runtime.spawn(async move {
                parts.end().await;
                drop(one);
            });
            // It fails only with the runtime.
            let _ = work.await;
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            let one = Arc::clone(&self.dying).one();
            // `settled` waits for it. A runtime that has ended drops the parts: the socket's end ends the command.
            self.runtime.spawn(async move {
                parts.end().await;
                drop(one);
            });
        }
    }
}

impl Parts {
    async fn end(self) {
        let Self { mut child, control, first } = self;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        // The first process ends when the socket does.
        drop(control);
        if timeout(BY_ITSELF, child.wait()).await.is_err() {
            if let Some(first) = &first {
                // It fails where there is nobody any more.
                let _ = pidfd_send_signal(first, Signal::KILL);
            }
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.start_kill();
            let _ = timeout(BY_FORCE, child.wait()).await;
        }
        // The first process goes after all others of its namespace.
        let begun = Instant::now();
        while let Some(first) = &first
            && !is_gone(first)
            && begun.elapsed() < BY_FORCE
        {
            sleep(LOOK).await;
        }
    }
}

/// Whether the process of a handle has ended: the handle is readable then.
fn is_gone(process: &OwnedFd) -> bool {
    let mut files = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut files, Some(&now)).is_ok_and(|ready| ready > 0)
}
