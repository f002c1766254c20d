//! The list of mounts as calls, for where there is no `bwrap`: a new root in memory, on it what the list names, and
//! nothing else of the machine.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change, mount_remount,
    move_mount, open_tree, unmount,
};
use rustix::process::pivot_root;

use super::Step;
use crate::workspace::command::layout::layout;
use crate::workspace::command::mount::Mount;
use crate::workspace::command::spec::Spec;

/// Where the new root is built. What was there is hidden in this process's own mounts only.
const BASE: &str = "/tmp";

/// Devices of the new `/dev`.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Bytes of the new root itself: folders and links.
const SMALL: u64 = 1 << 20;

/// Makes the list's mounts this process's root.
pub(super) fn make(spec: &Spec) -> Result<(), String> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).step("parting the mounts")?;
    // What is taken along is taken while it can be seen.
    let mut taken = Vec::new();
    for step in layout(spec) {
        let tree = match &step {
            Mount::Read(path) | Mount::Write(path) => Some(take(path)?),
            Mount::Link { .. } | Mount::Memory { .. } | Mount::Hidden(_) | Mount::Processes | Mount::Devices { .. } => {
                None
            }
        };
        taken.push((step, tree));
    }
    let devices = DEVICES.iter().map(|name| Ok((*name, take(&Path::new("/dev").join(name))?)));
    let mut devices: Option<Vec<(&str, OwnedFd)>> = Some(devices.collect::<Result<_, String>>()?);
    memory(Path::new(BASE), SMALL, 0o755)?;
    for (step, tree) in taken {
        match (step, tree) {
            (Mount::Read(path), Some(tree)) => put(&tree, &path, true)?,
            (Mount::Write(path), Some(tree)) => put(&tree, &path, false)?,
            (Mount::Link { to, at }, _) => symlink(&to, inside(&at)).step("making a link")?,
            (Mount::Memory { at, bytes }, _) => {
                fs::create_dir_all(inside(&at)).step("making a folder")?;
                memory(&inside(&at), bytes, 0o1777)?;
            }
            (Mount::Hidden(at), _) => {
                memory(&inside(&at), 4_096, 0o555)?;
                restrict(&inside(&at), true)?;
            }
            (Mount::Processes, _) => {
                let at = inside(Path::new("/proc"));
                fs::create_dir(&at).step("making /proc")?;
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
                mount("proc", &at, "proc", flags, None).step("mounting /proc")?;
            }
            (Mount::Devices { bytes }, _) => own_devices(devices.take().unwrap_or_default(), bytes)?,
            (Mount::Read(_) | Mount::Write(_), None) => {}
        }
    }
    restrict(Path::new(BASE), true)?;
    std::env::set_current_dir(BASE).step("entering the new root")?;
    // The old root is put over the new one and taken away from there: it needs no folder of its own.
    pivot_root(".", ".").step("changing the root")?;
    unmount(".", UnmountFlags::DETACH).step("leaving the old root")?;
    std::env::set_current_dir("/").step("entering the new root")
}

/// A path of the sandbox as it is seen while it is built.
fn inside(path: &Path) -> PathBuf {
    Path::new(BASE).join(path.strip_prefix("/").unwrap_or(path))
}

/// A copy of what is mounted at a path, in the air.
fn take(path: &Path) -> Result<OwnedFd, String> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags).step(&format!("taking {}", path.display()))
}

/// Puts down what was taken.
fn put(tree: &OwnedFd, path: &Path, read_only: bool) -> Result<(), String> {
    let at = inside(path);
    if fs::symlink_metadata(&at).is_err() {
        let parent = at.parent().unwrap_or(Path::new(BASE));
        fs::create_dir_all(parent).step("making a folder")?;
        if rustix::fs::fstat(tree).is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir()) {
            fs::create_dir(&at).step("making a folder")?;
        } else {
            File::create(&at).step("making a file")?;
        }
    }
    move_mount(tree, "", CWD, &at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .step(&format!("mounting {}", path.display()))?;
    restrict(&at, read_only)
}

/// Takes privileges and devices, or writing too, from what is mounted at a path. What it lacks already stays lacking.
fn restrict(at: &Path, read_only: bool) -> Result<(), String> {
    let now = statvfs(at).step("looking at a mount")?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::NOSUID;
    let kept = [
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    for (has, flag) in kept {
        if now.contains(has) {
            flags |= flag;
        }
    }
    if !at.starts_with(inside(Path::new("/dev"))) {
        flags |= MountFlags::NODEV;
    }
    if read_only {
        flags |= MountFlags::RDONLY;
    }
    mount_remount(at, flags, c"").step(&format!("restricting {}", at.display()))
}

/// A folder in memory.
fn memory(at: &Path, bytes: u64, mode: u32) -> Result<(), String> {
    let data = CString::new(format!("size={bytes},mode={mode:o}")).step("naming a size")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", at, "tmpfs", flags, Some(data.as_c_str())).step(&format!("mounting {}", at.display()))
}

/// The new `/dev`.
fn own_devices(devices: Vec<(&str, OwnedFd)>, bytes: u64) -> Result<(), String> {
    let folder = inside(Path::new("/dev"));
    fs::create_dir(&folder).step("making /dev")?;
    memory(&folder, SMALL, 0o755)?;
    for (name, tree) in devices {
        put(&tree, &Path::new("/dev").join(name), false)?;
    }
    for (name, to) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        symlink(format!("/proc/self/fd{to}"), folder.join(name)).step("making a link")?;
    }
    let terminals = folder.join("pts");
    fs::create_dir(&terminals).step("making /dev/pts")?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", &terminals, "devpts", flags, Some(c"newinstance,ptmxmode=0666,mode=620"))
        .step("mounting /dev/pts")?;
    symlink("pts/ptmx", folder.join("ptmx")).step("making a link")?;
    let shared = folder.join("shm");
    fs::create_dir(&shared).step("making /dev/shm")?;
    memory(&shared, bytes, 0o1777)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).step("closing /dev")?;
    restrict(&folder, true)
}
