//! The list of mounts as arguments of `bwrap`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::layout::PROGRAM;
use super::mount::Mount;

/// The first `bwrap` in the absolute folders of a search path, without those below `root`: a command could put its own there,
/// and that would run outside of any sandbox.
pub(super) fn find(path: &str, root: &Path) -> Option<PathBuf> {
    let folders = path.split(':').map(Path::new).filter(|folder| folder.is_absolute());
    let programs = folders.filter_map(|folder| folder.join("bwrap").canonicalize().ok());
    programs
        .filter(|program| !program.starts_with(root))
        .find(|program| program.is_file() && rustix::fs::access(program.as_path(), rustix::fs::Access::EXEC_OK).is_ok())
}

/// What in `/proc` is the machine's: who owns it may write it, and a server that runs as root owns it.
const MACHINE: [&str; 8] = [
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/acpi",
    "/proc/fs",
    "/proc/mtrr",
    "/proc/scsi",
];

/// All arguments, the program to start inside included; its own arguments follow.
pub(super) fn arguments(mounts: &[Mount], program: &Path, network: bool) -> Vec<OsString> {
    let mut list = List(Vec::new());
    list.add(&["--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"]);
    list.add(&["--cap-drop", "ALL"]);
    if network {
        list.add(&["--share-net"]);
    }
    for mount in mounts {
        match mount {
            Mount::Read(path) => list.path("--ro-bind", &[path, path]),
            Mount::Write(path) => list.path("--bind", &[path, path]),
            Mount::Link { to, at } => list.path("--symlink", &[to, at]),
            Mount::Memory { at, bytes } => {
                list.add(&["--perms", "1777", "--size", &bytes.to_string()]);
                list.path("--tmpfs", &[at]);
            }
            Mount::Hidden(at) => {
                list.add(&["--size", "4096"]);
                list.path("--tmpfs", &[at]);
                list.path("--remount-ro", &[at]);
            }
            Mount::Processes => {
                list.add(&["--proc", "/proc"]);
                for path in MACHINE {
                    list.add(&["--ro-bind-try", path, path]);
                }
            }
            // The folder itself is in memory without a bound.
            Mount::Devices { bytes } => {
                list.add(&["--dev", "/dev", "--perms", "1777", "--size", &bytes.to_string()]);
                list.add(&["--tmpfs", "/dev/shm", "--remount-ro", "/dev"]);
            }
        }
    }
    list.path("--ro-bind", &[program, Path::new(PROGRAM)]);
    list.add(&["--remount-ro", "/", "--chdir", "/", "--", PROGRAM]);
    list.0
}

/// Arguments in the making.
struct List(Vec<OsString>);

impl List {
    fn add(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn path(&mut self, option: &str, paths: &[&Path]) {
        self.0.push(option.into());
        self.0.extend(paths.iter().map(OsString::from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(mounts: &[Mount], network: bool) -> String {
        let words = arguments(mounts, Path::new("/opt/server"), network);
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_program_in_the_root_is_not_the_sandbox() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let put = |folder: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = base.join(folder);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("bwrap"), "").unwrap();
            std::fs::set_permissions(path.join("bwrap"), std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let (inside, outside) = (put("root/bin"), put("bin"));
        std::os::unix::fs::symlink(&inside, base.join("link")).unwrap();
        let path = format!("relative:{}:{}:{}", inside.display(), base.join("link").display(), outside.display());
        assert_eq!(find(&path, &base.join("root")), Some(outside.join("bwrap")));
        assert_eq!(find(inside.to_str().unwrap(), &base.join("root")), None);
    }

    #[test]
    fn each_mount_has_its_words() {
        let mounts = [
            Mount::Read("/usr".into()),
            Mount::Link { to: "usr/bin".into(), at: "/bin".into() },
            Mount::Memory { at: "/tmp".into(), bytes: 5 },
            Mount::Write("/w".into()),
            Mount::Hidden("/w/.state".into()),
        ];
        assert_eq!(
            words(&mounts, false),
            "--unshare-all --die-with-parent --new-session --as-pid-1 --clearenv --cap-drop ALL --ro-bind /usr /usr \
             --symlink usr/bin /bin --perms 1777 --size 5 --tmpfs /tmp --bind /w /w --size 4096 --tmpfs /w/.state \
             --remount-ro /w/.state --ro-bind /opt/server /run/sandbox-exec --remount-ro / --chdir / -- \
             /run/sandbox-exec"
        );
    }

    #[test]
    fn the_machines_settings_are_read_only() {
        let words = words(&[Mount::Processes], false);
        assert!(words.contains("--proc /proc --ro-bind-try /proc/sys /proc/sys --ro-bind-try /proc/sysrq-trigger"));
    }

    #[test]
    fn the_network_is_shared_only_where_it_is_asked_for() {
        assert!(!words(&[], false).contains("--share-net"));
        assert!(words(&[], true).contains("--share-net"));
    }
}
