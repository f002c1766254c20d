//! Where a command starts.

use std::path::{Path, PathBuf};

use super::request::CommandError;

/// The folder `asked` of `root`, without links in its path. It may be a link's target as long as that is in the root.
pub(super) fn place(root: &Path, state: &Path, asked: Option<&str>) -> Result<PathBuf, CommandError> {
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        return Ok(root.to_owned());
    };
    let refuse = |why: &str| Err(CommandError::InvalidCwd { cwd: asked.to_owned(), why: why.to_owned() });
    if asked.contains('\0') {
        return refuse("it has a NUL in it");
    }
    // Joining an absolute path takes it as it is.
    let Ok(found) = root.join(asked).canonicalize() else {
        return refuse("there is no such folder");
    };
    if !found.starts_with(root) {
        return refuse("it is outside");
    }
    if found.starts_with(state) {
        return refuse("it is protected");
    }
    if !found.is_dir() {
        return refuse("it is no folder");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_folders_of_the_root_will_do() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (root, state) = (base.join("ws"), base.join("ws/.state"));
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::create_dir_all(&state).unwrap();
        fs::create_dir_all(base.join("ws-sibling")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        symlink("sub/deep", root.join("inner")).unwrap();
        symlink(base.join("ws-sibling"), root.join("outer")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink(".state", root.join("peek")).unwrap();
        let absolute = root.join("sub").to_str().unwrap().to_owned();
        let table: [(&str, Option<&str>, Option<&str>); 15] = [
            ("nothing asked", None, Some("")),
            ("empty", Some(""), Some("")),
            ("the root", Some("."), Some("")),
            ("below", Some("sub/deep"), Some("sub/deep")),
            ("down and up", Some("sub/../sub"), Some("sub")),
            ("absolute inside", Some(&absolute), Some("sub")),
            ("a link inside", Some("inner"), Some("sub/deep")),
            ("above", Some(".."), None),
            ("a sibling with the same beginning", Some("../ws-sibling"), None),
            ("absolute outside", Some("/etc"), None),
            ("a link outside", Some("outer"), None),
            ("a dangling link", Some("dangling"), None),
            ("a file", Some("file"), None),
            ("the state folder by a link", Some("peek"), None),
            ("a NUL", Some("su\0b"), None),
        ];
        for (reason, asked, expected) in table {
            let found = place(&root, &state, asked);
            match expected {
                Some(expected) => assert_eq!(found.unwrap(), root.join(expected), "{reason}"),
                None => assert_eq!(found.unwrap_err().code(), "invalid_cwd", "{reason}"),
            }
        }
    }
}
