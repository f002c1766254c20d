//! What of the root's repository commands cannot write: whatever git would run or obey later, outside of any sandbox.

use std::fs;
use std::path::Path;

use super::mount::Mount;

/// The mounts over the repository of `root`: nothing of it can be written. Its hooks and its configuration are programs, and so
/// is what they, its index and its todo lists lead to. It is bound to itself: what is mounted cannot be renamed, so that no
/// other folder can take its place.
pub(super) fn protection(root: &Path) -> Vec<Mount> {
    let git = root.join(".git");
    match fs::symlink_metadata(&git) {
        // A folder, or a worktree's or submodule's pointer.
        Ok(metadata) if !metadata.is_symlink() => vec![Mount::Read(git)],
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// Whether the repository of `root` is a link: the link itself could be replaced, and no mount holds it.
pub(super) fn is_link(root: &Path) -> bool {
    fs::symlink_metadata(root.join(".git")).is_ok_and(|metadata| metadata.is_symlink())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn repositories_of_all_shapes_are_covered() {
        let base = tempfile::tempdir().unwrap();
        let root = |name: &str| {
            let root = base.path().join(name);
            fs::create_dir(&root).unwrap();
            root
        };
        assert_eq!(protection(&root("none")), []);
        let usual = root("usual");
        fs::create_dir(usual.join(".git")).unwrap();
        assert_eq!((protection(&usual), is_link(&usual)), (vec![Mount::Read(usual.join(".git"))], false));
        let worktree = root("worktree");
        fs::write(worktree.join(".git"), "gitdir: /elsewhere").unwrap();
        assert_eq!(protection(&worktree), [Mount::Read(worktree.join(".git"))]);
        let linked = root("linked");
        symlink(usual.join(".git"), linked.join(".git")).unwrap();
        assert_eq!((protection(&linked), is_link(&linked)), (vec![], true));
    }
}
