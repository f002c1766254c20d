//! Paths as a model writes them, in a folder full of links. Each is read, listed, searched, written, edited and deleted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard::agent::ports::workspace::{Edit, Failure, FileEdit, ListOptions, Pattern, Workspace, Workspaces};
use switchboard::chat::caller::Owner;
use switchboard::chat::ids::ConversationId;
use switchboard::workspace::Folders;
use switchboard::workspace::config::{Sandbox, WorkspaceConfig};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::parts;

/// The folder of the server's state.
const STATE: &str = ".state";

/// What stands only where nobody may read: outside, and in the state.
const SECRET: &str = "sesame";

/// Files below the folder of all, which nothing changes.
const KEPT: [(&str, &str); 7] = [
    ("outside/secret.txt", SECRET),
    ("outside/sub/secret.txt", SECRET),
    ("root-sibling/secret.txt", SECRET),
    ("root/.git/config", "[core]\n"),
    ("root/.git/hooks/pre-commit", "exit 0\n"),
    ("root/sub/.git/config", "[core]\n"),
    ("root/sub/tree/.git", "gitdir: ../elsewhere\n"),
];

/// Files that tools may change.
const OPEN: [(&str, &str); 5] = [
    ("root/a.txt", "one\ntwo\n"),
    ("root/sub/b.txt", "one\ntwo\n"),
    ("root/sub/deep/c.txt", "one\ntwo\n"),
    ("root/name with blanks.txt", "one\n"),
    ("root/node_modules/d.js", "one\n"),
];

/// Links in the root, and where each leads; `{root}` and `{outside}` are the folders.
const LINKS: [(&str, &str); 17] = [
    ("inside", "sub"),
    ("inside-file", "sub/b.txt"),
    ("absolute", "{root}/sub"),
    ("dangling", "sub/new.txt"),
    ("far-dangling", "no/such/folder"),
    ("itself", "itself"),
    ("ping", "pong"),
    ("pong", "ping"),
    ("here", "."),
    ("up", ".."),
    ("out", "{outside}"),
    ("out-relative", "../outside"),
    ("out-file", "../outside/secret.txt"),
    ("out-dangling", "{outside}/new.txt"),
    ("around", "/proc/self/root{outside}"),
    ("git", ".git"),
    ("state", "here/sub/../.state"),
];

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Folder,
    File(Vec<u8>),
    Link(PathBuf),
    Socket,
}

type Tree = BTreeMap<PathBuf, Entry>;

/// A workspace, its server's runtime, and all that was laid out.
struct Place {
    base: TempDir,
    runtime: Runtime,
    workspace: Arc<dyn Workspace>,
    laid: Tree,
}

thread_local! {
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// A path, and a file's text or an edit. `{root}` and `{outside}` in the path are the folders.
pub fn paths(input: &[u8]) {
    let (path, text) = parts(input);
    PLACE.with_borrow_mut(|place| place.get_or_insert_with(Place::new).visit(&path, &text));
}

fn owner() -> Owner {
    Owner { tenant: String::new(), user: "a".to_owned() }
}

impl Place {
    fn new() -> Self {
        // In memory where there is such a folder: nothing here has to last.
        let base = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let root = base.path().join("root");
        for folder in ["root", "root/.state"] {
            fs::create_dir(base.path().join(folder)).unwrap();
        }
        for (path, text) in KEPT.into_iter().chain(OPEN) {
            let path = base.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let config = WorkspaceConfig {
            root: root.to_str().unwrap().to_owned(),
            state: STATE.to_owned(),
            sandbox: Sandbox::None,
            ..WorkspaceConfig::default()
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let workspace = runtime.block_on(Folders::new(&config, PathBuf::new(), None).of(&owner())).unwrap();
        fs::write(root.join(STATE).join("secret.txt"), SECRET).unwrap();
        let mut place = Self { base, runtime, workspace, laid: Tree::new() };
        LINKS.iter().for_each(|(link, target)| symlink(place.filled(target), root.join(link)).unwrap());
        drop(UnixListener::bind(root.join("socket")).unwrap());
        place.laid = place.look();
        place
    }

    fn root(&self) -> PathBuf {
        self.base.path().join("root")
    }

    /// Puts these back as they were laid.
    fn restore(&self, changed: &[PathBuf]) {
        for path in changed.iter().rev() {
            match fs::symlink_metadata(path) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
                Ok(_) => fs::remove_file(path).unwrap(),
                Err(_) => {}
            }
        }
        for path in changed {
            match self.laid.get(path) {
                Some(Entry::Folder) => fs::create_dir(path).unwrap(),
                Some(Entry::File(bytes)) => fs::write(path, bytes).unwrap(),
                Some(Entry::Link(target)) => symlink(target, path).unwrap(),
                Some(Entry::Socket) => drop(UnixListener::bind(path).unwrap()),
                None => {}
            }
        }
    }

    fn filled(&self, text: &str) -> String {
        let of = |folder: &str| self.base.path().join(folder).to_str().unwrap().to_owned();
        text.replace("{root}", &of("root")).replace("{outside}", &of("outside"))
    }

    /// All that is there now, but for what the server keeps in its state.
    fn look(&self) -> Tree {
        let (mut tree, mut folders) = (Tree::new(), vec![self.base.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                let found = if kind.is_dir() {
                    if path != self.root().join(STATE) {
                        folders.push(path.clone());
                    }
                    Entry::Folder
                } else if kind.is_symlink() {
                    Entry::Link(fs::read_link(&path).unwrap())
                } else if kind.is_file() {
                    Entry::File(fs::read(&path).unwrap())
                } else {
                    Entry::Socket
                };
                tree.insert(path, found);
            }
        }
        tree
    }

    fn visit(&self, path: &str, text: &str) {
        let path = self.filled(path);
        self.read(&path);
        let edits = [Edit::Write(text.to_owned()), Edit::Replace(text.to_owned()), Edit::Delete];
        for edit in edits {
            let conversation = ConversationId::parse("c").unwrap();
            let edited = self.runtime.block_on(self.workspace.edit((&owner(), &conversation), &path, edit));
            self.restore(&self.changed(&path, &edited));
        }
    }

    /// Nothing is told of what is outside, or in the state.
    fn read(&self, path: &str) {
        if let Ok(file) = self.runtime.block_on(self.workspace.read(path)) {
            assert!(file.content != SECRET, "{path:?} was read");
        }
        for options in [ListOptions::default(), ListOptions { recursive: true, hidden: true }] {
            let listing = self.runtime.block_on(self.workspace.list(path, options));
            for item in listing.iter().flat_map(|listing| &listing.items) {
                assert!(self.is_open(Path::new(item)), "{path:?} lists {item:?}");
                assert!(!item.ends_with("secret.txt"), "{path:?} lists {item:?}");
            }
        }
        let pattern = Pattern { regex: "one|core|exit|sesame".to_owned(), files: None };
        let hits = self.runtime.block_on(self.workspace.search(path, pattern));
        for hit in hits.iter().flat_map(|hits| &hits.hits) {
            assert!(self.is_open(Path::new(&hit.file)), "{path:?} finds {hit:?}");
            assert!(hit.context.contains("one"), "{path:?} finds {hit:?}");
        }
    }

    /// Whether tools may change what is at this path.
    fn is_open(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(self.root()) else { return false };
        let names: Vec<String> = below.iter().map(|name| name.to_string_lossy().to_lowercase()).collect();
        !names.iter().any(|name| name == ".git" || name == "..") && names.first().is_none_or(|first| first != STATE)
    }

    /// What an edit has changed: one file, with the folders that it needed, or nothing.
    fn changed(&self, path: &str, edited: &Result<FileEdit, Failure>) -> Vec<PathBuf> {
        let now = self.look();
        assert_eq!(fs::read_to_string(self.root().join(STATE).join("secret.txt")).unwrap(), SECRET);
        let told = edited.as_ref().ok().map(|edit| PathBuf::from(&edit.path));
        let all = self.laid.keys().chain(now.keys().filter(|path| !self.laid.contains_key(*path)));
        let mut changed: Vec<PathBuf> = all.filter(|path| self.laid.get(*path) != now.get(*path)).cloned().collect();
        changed.sort();
        for changed in &changed {
            assert!(self.is_open(changed), "{path:?} changes {changed:?}: {edited:?}");
            let told = told.as_ref().unwrap_or_else(|| panic!("{path:?} changes {changed:?}: {edited:?}"));
            let is_new_folder = told.starts_with(changed) && !self.laid.contains_key(changed);
            assert!(told == changed || is_new_folder, "{path:?} changes {changed:?}: {edited:?}");
        }
        changed
    }
}
