//! One thread that starts all processes. The kernel ends a sandbox when the *thread* that started it ends, and threads
//! of the runtime come and go.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;

/// One process to start.
type Job = (Command, Handle, Sender<io::Result<Child>>);

/// The thread's other end. The thread ends with it, and what still runs ends too.
#[derive(Debug)]
pub(super) struct Spawner {
    jobs: Sender<Job>,
}

impl Spawner {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, todo) = channel::<Job>();
        thread::Builder::new().name("commands".to_owned()).spawn(move || {
            for (mut command, runtime, answer) in todo {
                let _inside = runtime.enter();
                // Whoever asked waits for the answer.
                let _ = answer.send(command.spawn());
            }
        })?;
        Ok(Self { jobs })
    }

    /// Starts a process, for the runtime that this is called on. Waits for it as any start of a process does: about a
    /// millisecond, without giving the thread away, so that no child can be lost in between.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn spawn(&self, command: Command) -> io::Result<Child> {
        let (answer, child) = channel();
        let gone = || io::Error::other("the thread that starts commands is gone");
        self.jobs.send((command, Handle::current(), answer)).map_err(|_| gone())?;
        child.recv().map_err(|_| gone())?
    }
}
