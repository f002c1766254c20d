//! Sets of paths that can be asked folder by folder.

use std::collections::{BTreeSet, HashMap};

/// Paths, as the names below a folder.
#[derive(Debug, Default)]
pub(crate) struct Names {
    below: HashMap<Box<[u8]>, Names>,
    is_file: bool,
}

impl Names {
    /// Adds a path relative to this folder.
    pub(crate) fn insert(&mut self, path: &[u8]) {
        let mut place = self;
        for name in path.split(|&byte| byte == b'/') {
            if !place.below.contains_key(name) {
                place.below.insert(name.into(), Self::default());
            }
            match place.below.get_mut(name) {
                Some(next) => place = next,
                None => return,
            }
        }
        place.is_file = true;
    }

    /// What is known of a name in this folder.
    pub(super) fn get(&self, name: &[u8]) -> Option<&Self> {
        self.below.get(name)
    }

    /// Whether this is one of the paths itself.
    pub(super) fn is_file(&self) -> bool {
        self.is_file
    }

    /// Whether paths go on below this one.
    pub(super) fn is_folder(&self) -> bool {
        !self.below.is_empty()
    }

    /// Adds the names that are directly in this folder.
    pub(super) fn collect(&self, names: &mut BTreeSet<Box<[u8]>>) {
        names.extend(self.below.keys().cloned());
    }
}

/// Files that were touched by tools: they are in snapshots although they may be ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched(BTreeSet<Vec<u8>>);

impl Touched {
    /// Adds a path, relative to the project's folder, `/` between its names. Returns `false`, and adds nothing, for what
    /// leads elsewhere: absolute paths, `.`, `..`, empty names, NUL, and everything below a `.git`.
    pub fn insert(&mut self, path: &[u8]) -> bool {
        let is_ours = is_path(path);
        if is_ours {
            self.0.insert(path.to_vec());
        }
        is_ours
    }

    /// The paths, sorted by their bytes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Leaves only those paths that are wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&[u8]) -> bool) {
        self.0.retain(|path| is_wanted(path));
    }

    /// Whether it is one of them.
    #[must_use]
    pub fn contains(&self, path: &[u8]) -> bool {
        self.0.contains(path)
    }
}

/// Whether these are names below the project's folder.
pub(crate) fn is_path(path: &[u8]) -> bool {
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.eq_ignore_ascii_case(b".git");
    !path.contains(&0) && path.split(|&byte| byte == b'/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_within_the_project_are_touched() {
        let mut touched = Touched::default();
        for path in ["", "/etc/passwd", "../a", "a/../b", "a//b", "a/", "./a", ".git/config", "a/.GIT/x", "a\0b"] {
            assert!(!touched.insert(path.as_bytes()), "{path:?}");
        }
        assert!(touched.insert(b"a/.gitignore"));
        assert!(touched.insert(b"b\xff"));
        assert_eq!(touched.iter().collect::<Vec<_>>(), [b"a/.gitignore".as_slice(), b"b\xff"]);
    }
}
