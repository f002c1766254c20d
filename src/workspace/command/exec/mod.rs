//! The hidden command of this program: it raises walls around itself, then becomes what it holds in. Each step is a
//! process of its own, because the kernel lets a process only tie itself, or be tied by being started.
//!
//! ```text
//! namespaces ─▶ init ─▶ command ─▶ /bin/sh      with bwrap, it stands where `namespaces` does
//! ```
//!
//! **Invariant:** it runs before the program has a second thread; namespaces of users can only be made then.

mod command;
mod descendants;
mod filter;
mod init;
mod landlock;
mod limits;
mod mounts;
mod namespaces;
mod socket;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// The first argument that leads here.
pub const NAME: &str = "sandbox-exec";

/// Makes namespaces, and starts [`INIT`] as their first process.
pub(super) const NAMESPACES: &str = "namespaces";

/// Keeps the machine's network; behind [`NAMESPACES`].
pub(super) const SHARE_NETWORK: &str = "share-network";

/// Reads the order, starts [`COMMAND`], and ends everything when that ends, or nobody wants it any more.
pub(super) const INIT: &str = "init";

/// Ties itself, and becomes the shell.
const COMMAND: &str = "command";

/// This very program, whatever the mounts are.
const SELF: &str = "/proc/self/exe";

/// The exit code when a step fails; the words are on the socket or the standard error.
const FAILED: u8 = 125;

/// Does the step that `args`, what follows [`NAME`], asks for. Not for people to call.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<_> = args.into_iter().collect();
    let args: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let done = match args.as_slice() {
        [NAMESPACES] => namespaces::main(false),
        [NAMESPACES, SHARE_NETWORK] => namespaces::main(true),
        [INIT] => init::main(),
        [COMMAND] => command::main(),
        _ => Err("this is the server's own and not for people to call".to_owned()),
    };
    done.unwrap_or_else(|words| {
        // There is nowhere else to tell it.
        let _ = writeln!(std::io::stderr(), "{NAME}: {words}");
        ExitCode::from(FAILED)
    })
}

/// Names the step that an error is about.
trait Step<T> {
    fn step(self, name: &str) -> Result<T, String>;
}

impl<T, E: std::fmt::Display> Step<T> for Result<T, E> {
    fn step(self, name: &str) -> Result<T, String> {
        self.map_err(|error| format!("{name}: {error}"))
    }
}
