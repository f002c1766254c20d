//! The last step before the shell: everything that a process can only give up by itself.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::{FAILED, Step, filter, landlock, limits, socket};
use crate::workspace::command::spec::{Ground, Spec};

/// Ties itself and becomes the shell. What fails goes back through the socket; its silent end says that all went well.
pub(super) fn main() -> Result<ExitCode, String> {
    socket::close_inherited().step("closing files")?;
    let (mut control, spec) = socket::take().step("taking the order")?;
    let words = tie(&spec).err().unwrap_or_else(|| {
        let error = shell(&spec).exec();
        format!("starting the shell: {error}")
    });
    // The first process may be gone.
    let _ = control.write_all(words.as_bytes());
    Ok(ExitCode::from(FAILED))
}

/// Raises what walls the ground asks for.
fn tie(spec: &Spec) -> Result<(), String> {
    if !spec.ground.own_processes() {
        set_parent_process_death_signal(Some(Signal::KILL)).step("tying to the first process")?;
        if getppid().is_none() {
            return Err("the first process is gone".to_owned());
        }
    }
    limits::set(spec)?;
    if spec.ground == Ground::Open {
        return Ok(());
    }
    limits::drop_capabilities()?;
    rustix::thread::set_no_new_privs(true).step("giving up new privileges")?;
    landlock::restrict(spec)?;
    filter::apply(spec)
}

/// The shell with the command, and nothing but the command's own environment.
fn shell(spec: &Spec) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(&spec.command).env_clear().current_dir(&spec.cwd);
    shell.env("HOME", &spec.home).env("TMPDIR", &spec.temp);
    for (name, value) in &spec.env {
        shell.env(name, value);
    }
    shell
}
