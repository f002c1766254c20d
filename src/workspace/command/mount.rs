//! The steps by which what is inside a sandbox is put together.

use std::path::PathBuf;

/// One step; later ones cover earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mount {
    /// What the machine has there, not to be written.
    Read(PathBuf),
    /// What the machine has there, to be written.
    Write(PathBuf),
    /// A link.
    Link {
        /// What it says.
        to: PathBuf,
        /// Where it is.
        at: PathBuf,
    },
    /// A folder in memory.
    Memory {
        /// Where it is.
        at: PathBuf,
        /// How much it may hold.
        bytes: u64,
    },
    /// An empty folder that nobody can write.
    Hidden(PathBuf),
    /// `/proc` of the processes inside.
    Processes,
    /// `/dev` with what every program expects, and nothing of the machine's hardware.
    Devices {
        /// How much shared memory may hold.
        bytes: u64,
    },
}
