//! The first process of a sandbox: it takes the order, starts the command, buries the dead, looks after the bounds of
//! all processes together, and is the end of everything.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, set_child_subreaper,
    set_dumpable_behavior, set_parent_process_death_signal, setsid, wait,
};

use super::{COMMAND, FAILED, NAME, SELF, Step, descendants, limits, mounts, socket};
use crate::workspace::command::spec::{Ground, Spec};
use crate::workspace::command::tree::word;

/// How often the processes are counted where `/proc` shows only them; it also bounds how long a dead one stays.
const LOOK: Duration = Duration::from_millis(50);

/// How often where `/proc` shows the whole machine.
const LOOK_WIDE: Duration = Duration::from_millis(250);

/// Takes the order and sees it through.
pub(super) fn main() -> Result<ExitCode, String> {
    socket::close_inherited().step("closing files")?;
    let (control, mut spec) = socket::take().step("taking the order")?;
    match begin(&mut spec) {
        Ok(first) => {
            let code = oversee(&control, &spec, first);
            if !spec.ground.own_processes() {
                descendants::end_all();
                tidy(&spec);
            }
            if let Some(code) = code {
                let mut bytes = vec![word::ENDED];
                bytes.extend_from_slice(&code.to_le_bytes());
                // Nobody may want to know any more.
                let _ = (&control).write_all(&bytes);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(words) => {
            tidy(&spec);
            let mut bytes = vec![word::FAILED];
            bytes.extend_from_slice(words.as_bytes());
            let _ = (&control).write_all(&bytes);
            Ok(ExitCode::from(FAILED))
        }
    }
}

/// Prepares the ground, and starts the command. Answers with its process.
fn begin(spec: &mut Spec) -> Result<Pid, String> {
    // Nothing inside may look into this process or take it over.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("closing the memory")?;
    match spec.ground {
        Ground::Bubblewrap => {}
        Ground::Namespaces => {
            set_parent_process_death_signal(Some(Signal::KILL)).step("tying to the server")?;
            mounts::make(spec)?;
        }
        Ground::Landlock | Ground::Open => {
            let _ = setsid();
            set_child_subreaper(Some(getpid())).step("becoming everyone's parent")?;
            let folder = folder_of_its_own()?;
            spec.temp = folder.join("tmp");
            spec.home = folder.join("home");
            fs::create_dir(&spec.temp).and_then(|()| fs::create_dir(&spec.home)).step("making folders")?;
        }
    }
    if spec.ground != Ground::Open {
        limits::drop_capabilities()?;
    }
    let (mut ours, theirs) = UnixStream::pair().step("making a socket")?;
    let child = Command::new(SELF)
        .args([NAME, COMMAND])
        .env_clear()
        // A signal to the command's own group must not reach this process.
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .step("starting the command's process")?;
    // One that is gone is heard below.
    let _ = ours.write_all(&spec.to_bytes());
    let mut words = String::new();
    ours.read_to_string(&mut words).step("hearing of the command")?;
    if !words.is_empty() {
        return Err(words);
    }
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| "no process".to_owned())
}

/// A new folder in the machine's temporary one.
fn folder_of_its_own() -> Result<PathBuf, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let folder = PathBuf::from(format!("/tmp/command-{}-{now}", std::process::id()));
    // It fails if somebody else has made it.
    fs::DirBuilder::new().mode(0o700).create(&folder).step("making a folder")?;
    Ok(folder)
}

/// Removes the folder that this process has made.
fn tidy(spec: &Spec) {
    if !spec.ground.own_processes()
        && let Some(folder) = spec.temp.parent()
    {
        // What cannot be removed stays for the system to tidy up.
        let _ = fs::remove_dir_all(folder);
    }
}

/// Waits until the command has ended: its exit code, or `None` where nobody wants it any more.
fn oversee(control: &UnixStream, spec: &Spec, first: Pid) -> Option<i32> {
    // The server waits by it for the end of all. Without one it waits for the process that it started.
    let handle = pidfd_open(getpid(), PidfdFlags::empty()).ok();
    socket::send_with(control, &[word::RUNS], handle.as_ref()).ok()?;
    drop(handle);
    // It can have ended already; then the kernel keeps it until it is buried below.
    let running = pidfd_open(first, PidfdFlags::empty()).ok();
    let look = if spec.ground.own_processes() { LOOK } else { LOOK_WIDE };
    let look = Timespec { tv_sec: 0, tv_nsec: i64::from(look.subsec_nanos()) };
    loop {
        if let Some(code) = bury(first) {
            return Some(code);
        }
        let mut files = vec![PollFd::new(control, PollFlags::IN)];
        files.extend(running.as_ref().map(|running| PollFd::from_borrowed_fd(running.as_fd(), PollFlags::IN)));
        // An interrupted wait is as good as one that is over.
        let _ = poll(&mut files, Some(&look));
        // The server says nothing more: whatever is to be read is the end.
        if !files.first()?.revents().is_empty() {
            return None;
        }
        if let Some(words) = descendants::beyond(spec.limits) {
            let _ = writeln!(std::io::stderr(), "sandbox: {words}; the command was ended");
            return Some(128 + Signal::KILL.as_raw());
        }
    }
}

/// Takes all dead children from the kernel; the exit code of `first` if it is among them.
fn bury(first: Pid) -> Option<i32> {
    let mut code = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == first {
            code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
        }
    }
    code
}
