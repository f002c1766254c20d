//! Namespaces without `bwrap`: of users, processes, mounts, network, messages, names and control groups.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

use nix::sched::{CloneFlags, unshare};
use rustix::process::{Signal, getgid, getuid, set_parent_process_death_signal, setsid};
use rustix::thread::{CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities};

use super::{INIT, NAME, SELF, Step};

/// Makes them, starts their first process, and ends as it does.
pub(super) fn main(share_network: bool) -> Result<ExitCode, String> {
    set_parent_process_death_signal(Some(Signal::KILL)).step("tying to the server")?;
    // It fails for who leads a group already, who is out of any terminal's reach too.
    let _ = setsid();
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut wanted = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if !share_network {
        wanted |= CloneFlags::CLONE_NEWNET;
    }
    unshare(wanted).step("making namespaces")?;
    fs::write("/proc/self/setgroups", "deny").step("giving up groups")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).step("mapping the user")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).step("mapping the group")?;
    keep_capabilities().step("keeping the right to mount")?;
    let status = Command::new(SELF).args([NAME, INIT]).env_clear().status().step("starting the first process")?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Lets the first process have the rights in the new namespaces that it needs for its mounts; a user who is not root
/// would lose them with the start of a program. It gives them up before the command begins.
fn keep_capabilities() -> rustix::io::Result<()> {
    let needed = [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP];
    let mut sets = capabilities(None)?;
    sets.inheritable |= needed[0] | needed[1];
    set_capabilities(None, sets)?;
    for capability in needed {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
