//! What the operator asks for, and what this machine gives.

use std::path::PathBuf;

/// Which sandbox the operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// `bwrap` of the search path.
    Bubblewrap,
    /// The kernel's own means, through this program itself.
    Landlock,
    /// The first of both that works here.
    Auto,
    /// An explicit choice to run without.
    None,
}

/// Bounds of every command.
#[derive(Debug, Clone)]
pub struct CommandSettings {
    /// The server's own program: it is started anew with [`super::exec::NAME`] as its first argument.
    pub program: PathBuf,
    /// The `PATH` of commands, where `bwrap` is looked for too. Only its absolute folders count.
    pub path: String,
    /// Folders beside the system's that commands may read, such as one with compilers. What is missing is left out.
    pub readable: Vec<PathBuf>,
    /// Whether commands may reach the network, the machine's own services included.
    pub network: bool,
    /// Most bytes of each of both outputs that a request may ask to keep.
    pub max_output: usize,
    /// Most processes of a command at a time.
    pub processes: u64,
    /// Most bytes of memory of a command: of each process, and of all together.
    pub memory: u64,
    /// Most bytes of one file that a command writes.
    pub file_size: u64,
    /// Most bytes of the temporary folder, and again of the home folder; both are in memory where a sandbox has
    /// mounts of its own.
    pub temporary: u64,
    /// Most open files of each process.
    pub open_files: u64,
}

impl CommandSettings {
    /// Bounds that fit builds and tests of a middling project.
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            readable: Vec::new(),
            network: false,
            max_output: 4_000_000,
            processes: 1_024,
            memory: 4 << 30,
            file_size: 4 << 30,
            temporary: 512 << 20,
            open_files: 4_096,
        }
    }
}

/// What holds commands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Namespaces made by `bwrap`, and below them the filter of system calls.
    Bubblewrap,
    /// Landlock and the filter of system calls.
    Landlock {
        /// Whether the kernel lets us have namespaces, too. Without them commands see which processes and names of files
        /// there are; they make nothing new directly in the root and change no modes, owners and times.
        namespaces: bool,
    },
    /// Nothing, as the operator chose.
    None,
    /// What was asked for does not work here; no command runs.
    Unavailable {
        /// What failed, for the operator.
        why: String,
    },
}

impl Kind {
    /// One line for logs and the health answer.
    pub fn words(&self) -> String {
        match self {
            Self::Bubblewrap => "bubblewrap: own processes, network and files".to_owned(),
            Self::Landlock { namespaces: true } => "landlock: own processes, network and files".to_owned(),
            Self::Landlock { namespaces: false } => "landlock without namespaces: other processes can be seen; no \
                                                     new files directly in the root, no changes of modes, owners \
                                                     and times; .git is read-only"
                .to_owned(),
            Self::None => "none: commands run without a sandbox".to_owned(),
            Self::Unavailable { why } => format!("unavailable: {why}"),
        }
    }
}
