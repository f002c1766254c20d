//! Another process exchanges folders and files for links, and back, while the tools work on them. Rounds are counted, and
//! what the tools met: `SWITCHBOARD_TEST_RACES=10000` for many.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use switchboard::agent::ports::workspace::{Edit, Failure, ListOptions, Pattern, Workspace, Workspaces};
use switchboard::chat::caller::Owner;
use switchboard::chat::ids::ConversationId;
use switchboard::workspace::Folders;
use switchboard::workspace::config::{Sandbox, WorkspaceConfig};

use crate::support::environment::races;

/// Names the workspace in which the process below exchanges.
const ROOT: &str = "RACE_TEST_ROOT";

/// What the process says when it has begun, and before the number of its exchanges.
const BEGUN: &str = "exchanging";
const ENDED: &str = "exchanged ";

/// What stands where a link leads, and nowhere else.
const SECRET: &str = "sesame";

/// Folders that no tool gets into, and what their files say. What is in a repository may be read as a file.
const HIDDEN: [(&str, &str); 3] = [("outside", SECRET), ("root/.git", "[core]\n"), ("root/.state/kept", SECRET)];

/// What is exchanged with a link, the link, and where it leads from the folder of all.
const PAIRS: [(&str, &str, &str); 5] = [
    ("folder", "to-outside", "outside"),
    ("above/folder", "above/to-outside", "outside"),
    ("file.txt", "to-file", "outside/file.txt"),
    ("project", "to-git", "root/.git"),
    ("store", "to-state", "root/.state/kept"),
];

/// What the tools are asked for, for each of the pairs.
const FILES: [&str; 5] =
    ["folder/sub/file.txt", "above/folder/sub/file.txt", "file.txt", "project/sub/file.txt", "store/sub/file.txt"];

/// Not a test by itself: a process that exchanges until its input ends.
#[test]
fn somebody_who_exchanges() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else {
        return;
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
    });
    let mut exchanges = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        for (real, link, target) in PAIRS {
            let (real, link) = (root.join(real), root.join(link));
            // The tools delete what bears the file's name, and write it: then one of the two is not there, or no link is.
            exchanges += u64::from(renameat_with(CWD, &real, CWD, &link, RenameFlags::EXCHANGE).is_ok());
            if !real.is_symlink() && !link.is_symlink() {
                let fresh = root.join("fresh");
                symlink(root.with_file_name(target), &fresh).unwrap();
                fs::rename(fresh, link).unwrap();
            }
        }
        if exchanges > 0 && exchanges < 10 {
            writeln!(std::io::stdout(), "\n{BEGUN}").unwrap();
        }
    }
    writeln!(std::io::stdout(), "\n{ENDED}{exchanges}").unwrap();
}

/// That process.
struct Exchanger {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Exchanger {
    fn start(root: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "workspace::races::somebody_who_exchanges", "--nocapture"])
            .env(ROOT, root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == BEGUN), "the other process has begun");
        Self { process, lines }
    }

    /// How often it has exchanged.
    fn end(mut self) -> u64 {
        drop(self.process.stdin.take());
        let count = self.lines.find_map(|line| line.unwrap().strip_prefix(ENDED).map(|count| count.parse().unwrap()));
        assert!(self.process.wait().unwrap().success());
        count.unwrap()
    }
}

/// A workspace, and what lies around it.
struct Field {
    base: tempfile::TempDir,
    workspace: Arc<dyn Workspace>,
    /// How often the tools have ended in which way.
    met: BTreeMap<&'static str, u64>,
}

fn owner() -> Owner {
    Owner { tenant: String::new(), user: "a".to_owned() }
}

impl Field {
    async fn lay() -> Self {
        let base = tempfile::tempdir().unwrap();
        let at = |path: &str| base.path().join(path);
        let config = WorkspaceConfig {
            root: at("root").to_str().unwrap().to_owned(),
            state: ".state".to_owned(),
            sandbox: Sandbox::None,
            ..WorkspaceConfig::default()
        };
        fs::create_dir(at("root")).unwrap();
        let workspace = Folders::new(&config, PathBuf::new(), None).of(&owner()).await.unwrap();
        for (hidden, text) in HIDDEN {
            fs::create_dir_all(at(hidden).join("sub")).unwrap();
            fs::write(at(hidden).join("sub/file.txt"), text).unwrap();
            fs::write(at(hidden).join("sub/only-there.txt"), text).unwrap();
            fs::write(at(hidden).join("file.txt"), text).unwrap();
        }
        for ((real, link, target), file) in PAIRS.into_iter().zip(FILES) {
            let file = at("root").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "mine\n").unwrap();
            assert!(at("root").join(real).exists());
            symlink(at(target), at("root").join(link)).unwrap();
        }
        Self { base, workspace, met: BTreeMap::new() }
    }

    fn root(&self) -> PathBuf {
        self.base.path().join("root")
    }

    fn count<T: Debug>(&mut self, done: &Result<T, Failure>) {
        *self.met.entry(done.as_ref().err().map_or("done", |failure| failure.code)).or_default() += 1;
    }

    /// All six tools, on one file and its folder.
    async fn round(&mut self, file: &str) {
        let folder = file.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let read = self.workspace.read(file).await;
        self.count(&read);
        assert!(read.iter().all(|read| read.content != SECRET), "{file} was read");

        let listing = self.workspace.list(folder, ListOptions { recursive: true, hidden: true }).await;
        self.count(&listing);
        assert!(
            listing.iter().all(|listing| listing.items.iter().all(|item| !item.contains("only-there"))),
            "{listing:?}"
        );

        let found = self.workspace.search(folder, Pattern { regex: "sesame|core".to_owned(), files: None }).await;
        self.count(&found);
        assert!(found.iter().all(|found| found.hits.is_empty()), "{found:?}");

        let replace = "------- SEARCH\nmine\n=======\nmine\nyours\n+++++++ REPLACE\n".to_owned();
        let new = format!("{folder}/made/new.txt");
        let edits = [
            (file, Edit::Replace(replace)),
            (file, Edit::Delete),
            (file, Edit::Write("mine\n".to_owned())),
            (new.as_str(), Edit::Write("mine\n".to_owned())),
            (new.as_str(), Edit::Delete),
        ];
        for (path, edit) in edits {
            let conversation = ConversationId::parse("c").unwrap();
            let edited = self.workspace.edit((&owner(), &conversation), path, edit).await;
            self.count(&edited);
        }
    }

    /// What is outside, in the repository and in the state is as it was laid.
    fn check(&self) {
        for (hidden, text) in HIDDEN {
            let hidden = self.base.path().join(hidden);
            assert_eq!(names(&hidden), ["file.txt", "sub"], "{hidden:?}");
            assert_eq!(names(&hidden.join("sub")), ["file.txt", "only-there.txt"], "{hidden:?}");
            for file in ["file.txt", "sub/file.txt", "sub/only-there.txt"] {
                assert_eq!(fs::read_to_string(hidden.join(file)).unwrap(), text, "{file} in {hidden:?}");
            }
        }
        assert_eq!(names(self.base.path()), ["outside", "root"]);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn no_tool_gets_out_while_another_process_exchanges_folders_for_links() {
    let mut field = Field::lay().await;
    let exchanger = Exchanger::start(&field.root());
    for round in 0..races() {
        field.round(FILES[round % FILES.len()]).await;
        field.check();
    }
    let exchanges = exchanger.end();
    let operations: u64 = field.met.values().sum();
    println!("{} rounds, {operations} operations, {exchanges} exchanges: {:?}", races(), field.met);
    let links: u64 = ["outside_workspace", "protected"].iter().filter_map(|code| field.met.get(code)).sum();
    println!("{links} operations met a link, 0 got through");
    assert!(links > 0 && field.met["done"] > 0, "{:?}", field.met);
}
