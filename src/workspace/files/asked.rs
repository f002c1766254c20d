//! A path as a model writes it, and the names below the root that it means. Nothing is looked up here.

use std::path::Path;

use super::Root;
use super::error::FileError;

/// What Linux takes as a path, in bytes.
const MOST_PATH_BYTES: usize = 4_096;

/// What Linux takes as a name, in bytes.
const MOST_NAME_BYTES: usize = 255;

/// Folders that are open at once while a path is followed: 1,024 is what a process may have in many places.
const MOST_NAMES: usize = 200;

/// Bytes of a path that an error shows.
const SHOWN_BYTES: usize = 300;

/// A path that was asked for.
#[derive(Debug)]
pub(super) struct Asked {
    /// As it was written, for errors: bounded, and without control characters.
    pub(super) shown: String,
    /// The names from the root on, without `.` and `..`; none for the root itself.
    pub(super) names: Vec<String>,
    /// Whether it ends as only folders' paths do.
    pub(super) is_folder: bool,
}

impl Asked {
    /// What `path` means below `root`. `..` takes back the name before it, as it is written: links are not asked.
    ///
    /// # Errors
    /// [`FileError::Outside`] for what leaves the root, and for what is no path at all.
    pub(super) fn parse(path: &str, root: &Root) -> Result<Self, FileError> {
        let shown = shown(path);
        let outside = |reason| FileError::Outside { path: shown.clone(), reason };
        if path.len() > MOST_PATH_BYTES {
            return Err(outside("it is too long"));
        }
        if path.contains('\0') {
            return Err(outside("it has a NUL in it"));
        }
        let is_absolute = path.starts_with('/');
        let mut names: Vec<&str> = Vec::new();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." if names.pop().is_none() && !is_absolute => {
                    return Err(outside("it leaves the workspace by \"..\""));
                }
                ".." => {}
                name if name.len() > MOST_NAME_BYTES => return Err(outside("a name in it is longer than 255 bytes")),
                name => names.push(name),
            }
        }
        if is_absolute {
            let below = [&root.path, &root.canonical].into_iter().find_map(|own| below(&names, own));
            names = below.ok_or_else(|| outside("it is an absolute path that does not begin with the workspace's"))?;
        } else if names.first().is_some_and(|first| *first == "~" || (first.starts_with('~') && names.len() > 1)) {
            return Err(outside("\"~\" is not expanded: write it relative to the workspace"));
        }
        if names.len() > MOST_NAMES {
            return Err(outside("it has too many folders"));
        }
        let is_folder = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..") || names.is_empty();
        Ok(Self { names: names.into_iter().map(str::to_owned).collect(), is_folder, shown })
    }

    /// The names, joined.
    pub(super) fn relative(&self) -> String {
        self.names.join("/")
    }
}

/// The names below `own`, when `names` begin with it.
fn below<'a>(names: &[&'a str], own: &Path) -> Option<Vec<&'a str>> {
    let mut names = names.iter();
    for part in own.components().skip(1) {
        if part.as_os_str() != names.next().copied()? {
            return None;
        }
    }
    Some(names.copied().collect())
}

fn shown(path: &str) -> String {
    let end = path.floor_char_boundary(SHOWN_BYTES);
    let mut shown = path[..end].replace(char::is_control, "\u{fffd}");
    if end < path.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Root, path: &str) -> Result<String, &'static str> {
        Asked::parse(path, root).map(|asked| asked.relative()).map_err(|error| error.code())
    }

    #[test]
    fn a_path_is_what_it_says_below_the_root_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().canonicalize().unwrap();
        let root = Root::open(&own, ".state").unwrap();
        let own = own.to_str().unwrap();
        let inside = |path: &str, expected: &str| assert_eq!(names(&root, path).as_deref(), Ok(expected), "{path}");
        inside("a/b.txt", "a/b.txt");
        inside("./a//b.txt", "a/b.txt");
        inside("a/../b", "b");
        inside("", "");
        inside(".", "");
        inside("a/..", "");
        inside("~notes", "~notes");
        inside("a/~", "a/~");
        inside(own, "");
        inside(&format!("{own}/a/b"), "a/b");
        inside(&format!("{own}/x/../a/./b"), "a/b");
        inside(&format!("/..{own}/a"), "a");
        let long = "x".repeat(256);
        let deep = "x/".repeat(201);
        for path in [
            "..",
            "../x",
            "a/../../x",
            "/",
            "/etc/passwd",
            "~",
            "~/x",
            "~root/.bashrc",
            "a\0b",
            &format!("{own}x/a"),
            &format!("{own}/../x"),
            &format!("a/{long}/b"),
            &"x/".repeat(2_500),
            &deep,
        ] {
            assert_eq!(names(&root, path), Err("outside_workspace"), "{path:?}");
        }
    }

    #[test]
    fn an_error_shows_a_path_without_control_characters_and_not_all_of_a_long_one() {
        assert_eq!(shown("a\nb\0c"), "a\u{fffd}b\u{fffd}c");
        assert!(shown(&"ä".repeat(5_000)).len() < SHOWN_BYTES + 4);
    }
}
