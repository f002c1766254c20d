//! The rules by which files are left out: the project's own, and folders that programs fill again by themselves.

use gix_ignore::glob::pattern::Case;
use gix_ignore::glob::search::pattern;
use gix_ignore::search::{Ignore, pattern_matching_relative_path};

/// The rules of one file.
pub(crate) type List = pattern::List<Ignore>;

/// 4 MiB: more rules are no rules.
pub(crate) const MOST_RULE_BYTES: usize = 4 << 20;

/// Folders of dependencies and caches, sorted: installed and built again when they are missing, and larger than all the
/// rest of a project.
const DEPENDENCY_FOLDERS: &[&str] = &[
    ".angular",
    ".cache",
    ".dart_tool",
    ".direnv",
    ".eggs",
    ".gradle",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".ruff_cache",
    ".stack-work",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    "__pycache__",
    "bower_components",
    "elm-stuff",
    "jspm_packages",
    "node_modules",
    "target",
    "venv",
];

/// Whether a folder of this name holds what is installed or built.
pub(crate) fn is_dependency_folder(name: &[u8]) -> bool {
    DEPENDENCY_FOLDERS.binary_search_by(|folder| folder.as_bytes().cmp(name)).is_ok()
}

/// The rules in the text of a file that is in the folder `base`: `""`, or a path that ends in a slash.
pub(crate) fn parse(text: &[u8], base: &[u8]) -> List {
    let rules = gix_ignore::parse(text, false);
    List {
        patterns: rules
            .map(|(pattern, line, kind)| pattern::Mapping { pattern, value: kind, sequence_number: line })
            .collect(),
        source: None,
        base: (!base.is_empty()).then(|| base.into()),
    }
}

/// Whether the rules, the most important ones last, leave this path out; `None` when none is about it. Its folder is not
/// left out.
pub(crate) fn is_ignored<'a>(
    lists: impl DoubleEndedIterator<Item = &'a List>,
    path: &[u8],
    is_folder: bool,
) -> Option<bool> {
    let name = path.iter().rposition(|&byte| byte == b'/').map(|slash| slash + 1);
    let mut matches = lists
        .rev()
        .filter_map(|list| pattern_matching_relative_path(list, path.into(), name, Some(is_folder), Case::Sensitive));
    matches.next().map(|found| !found.pattern.is_negative())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_sorted_so_that_they_are_found() {
        assert!(DEPENDENCY_FOLDERS.is_sorted());
        assert!(is_dependency_folder(b"node_modules"));
        assert!(!is_dependency_folder(b"src"));
    }

    #[test]
    fn the_last_rule_of_the_nearest_file_decides() {
        let lists = [parse(b"*.log\n/build/\n", b""), parse(b"!keep.log\n/x\n", b"sub/")];
        let is_ignored = |path: &str, is_folder| is_ignored(lists.iter(), path.as_bytes(), is_folder) == Some(true);
        assert!(is_ignored("a.log", false));
        assert!(is_ignored("sub/a.log", false));
        assert!(!is_ignored("sub/keep.log", false));
        assert!(is_ignored("keep.log", false));
        assert!(is_ignored("build", true));
        assert!(!is_ignored("build", false), "the rule is about a folder");
        assert!(!is_ignored("sub/build", true), "the rule is about the root");
        assert!(is_ignored("sub/x", false));
        assert!(!is_ignored("x", false));
    }
}
