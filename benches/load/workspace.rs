//! What a workspace costs: the look at all files that each message and each question for changes takes, a checkpoint after
//! one change, a search, and an edit of a large file with its difference. Beside them `git status`, `grep` and, where
//! it is installed, `rg` on the same files in the same run. Of each it is said how long the runtime's own thread was busy
//! with it, which is what others would wait for.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard::agent::ports::checkpoints::{Changes, Checkpoints};
use switchboard::agent::ports::workspace::{Edit, Pattern, Workspaces};
use switchboard::bounded::memory::{Kind, Memory};
use switchboard::chat::caller::Owner;
use switchboard::chat::ids::{ConversationId, RunId};
use switchboard::workspace::Folders;
use switchboard::workspace::config::{Commands, Sandbox, WorkspaceConfig};

use crate::report::median;

/// Times that each is measured; the median is the figure.
const TIMES: usize = 15;

/// Bytes of a file among many.
const FILE_BYTES: usize = 2_000;

/// Files of 100 KB each that are searched: 50 MB.
const SEARCHED: usize = 500;

/// Measures all of it.
pub async fn measure() {
    for files in [5_000, 50_000] {
        looks(files).await;
    }
    search().await;
    edit().await;
}

async fn looks(files: usize) {
    let root = tempfile::tempdir().unwrap();
    let line = "pub fn total(items: &[Item]) -> u64 { items.iter().map(Item::price).sum() }\n";
    let text = line.repeat(FILE_BYTES / line.len());
    for number in 0..files {
        let folder = root.path().join(format!("src/{}", number / 100));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{number}.rs")), format!("// {number}\n{text}")).unwrap();
    }
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "gc.auto=0"];
        assert!(
            Command::new("git").arg("-C").arg(root.path()).args(identity).args(args).output().unwrap().status.success()
        );
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "first"]);
    let opened = opened(root.path()).await;
    let (owner, id) = (owner(), ConversationId::fresh());
    let of = (&owner, &id);
    let begun = Instant::now();
    drop(opened.begin(of, RunId::fresh(), "first").await.unwrap());
    println!("{files} files: the first checkpoint {:.0?}", begun.elapsed());
    // What has just been written is looked at twice.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let memory = Memory::new(1 << 30);
    let (mut sessions, mut statuses) = (Timed::default(), Vec::new());
    for _ in 0..TIMES {
        drop(sessions.of(opened.session(of, memory.reserve(Kind::Export, 0).unwrap())).await.unwrap());
        let begun = Instant::now();
        git(&["status", "--porcelain"]);
        statuses.push(begun.elapsed());
    }
    figure(&format!("{files} files: changes, none"), sessions, &format!("git status {}", ms(&mut statuses)));
    let (mut changed, mut statuses) = (Timed::default(), Vec::new());
    for turn in 0..TIMES {
        std::fs::write(root.path().join("src/7/700.rs"), format!("// {turn}\n{text}")).unwrap();
        drop(changed.of(opened.begin(of, RunId::fresh(), "next")).await.unwrap());
        let begun = Instant::now();
        git(&["add", "-A"]);
        git(&["commit", "-qm", "next"]);
        statuses.push(begun.elapsed());
    }
    let beside = format!("git add and commit {}", ms(&mut statuses));
    figure(&format!("{files} files: a checkpoint after one change"), changed, &beside);
}

async fn search() {
    let root = tempfile::tempdir().unwrap();
    let text = "fn some_name(argument: &str) -> Result<(), Error> { let x = 1; }\n".repeat(1_500);
    for number in 0..SEARCHED {
        let folder = root.path().join(format!("{}", number % 20));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{number}.rs")), &text).unwrap();
    }
    let opened = opened(root.path()).await;
    let workspace = opened.of(&owner()).await.unwrap();
    for expression in ["nothing_of_this_name", "some_n[a-z]me\\(never", "(?i)SOME_OTHER_NAME"] {
        let (mut ours, mut theirs, mut of_rg) = (Timed::default(), Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let pattern = Pattern { regex: expression.to_owned(), files: None };
            let hits = ours.of(workspace.search(".", pattern)).await.unwrap();
            assert!(hits.hits.is_empty());
            let begun = Instant::now();
            let plain = expression.trim_start_matches("(?i)");
            let case = if plain == expression { "-E" } else { "-iE" };
            Command::new("grep").args(["-rn", case, plain, "."]).current_dir(root.path()).output().unwrap();
            theirs.push(begun.elapsed());
            let begun = Instant::now();
            if Command::new("rg").args(["-n", expression, "."]).current_dir(root.path()).output().is_ok() {
                of_rg.push(begun.elapsed());
            }
        }
        let beside = match of_rg.is_empty() {
            true => format!("grep -rn {}, rg is not installed", ms(&mut theirs)),
            false => format!("grep -rn {}, rg {}", ms(&mut theirs), ms(&mut of_rg)),
        };
        figure(&format!("50 MB: search {expression}"), ours, &beside);
    }
}

async fn edit() {
    let root = tempfile::tempdir().unwrap();
    let text: String =
        (0..16_000).map(|line| format!("line {line} of a file that has one mebibyte in all, or so\n")).collect();
    let opened = opened(root.path()).await;
    let workspace = opened.of(&owner()).await.unwrap();
    let (owner, id) = (owner(), ConversationId::fresh());
    let mut edits = Timed::default();
    for turn in 0..TIMES {
        let changed = text.replace("line 8000 ", &format!("line {turn} changed "));
        edits.of(workspace.edit((&owner, &id), "large.txt", Edit::Write(changed))).await.unwrap();
    }
    figure(&format!("{} KB: an edit with its difference", text.len() / 1_000), edits, "fsync included");
}

/// A workspace as the product opens it.
async fn opened(root: &Path) -> Arc<Folders> {
    let config = WorkspaceConfig {
        root: root.to_str().unwrap().to_owned(),
        state: ".state".to_owned(),
        commands: Commands::Off,
        sandbox: Sandbox::None,
        ..WorkspaceConfig::default()
    };
    let folders = Folders::new(&config, PathBuf::from("/bin/true"), None);
    folders.start().await.unwrap();
    folders
}

fn owner() -> Owner {
    Owner { tenant: String::new(), user: "ada".to_owned() }
}

fn ms(times: &mut Vec<Duration>) -> String {
    let times: Vec<f64> = times.drain(..).map(|time| time.as_secs_f64() * 1_000.0).collect();
    format!("{:.1} ms", median(times))
}

fn figure(name: &str, mut times: Timed, beside: &str) {
    let (all, own) = (ms(&mut times.all), ms(&mut times.own));
    println!("figure {name}: {all}, of the runtime's thread {own} ({beside})");
}

/// How long something took, and how long the thread of the runtime, which has only one here, was busy meanwhile.
#[derive(Default)]
struct Timed {
    all: Vec<Duration>,
    own: Vec<Duration>,
}

impl Timed {
    async fn of<T>(&mut self, work: impl Future<Output = T>) -> T {
        let (begun, busy) = (Instant::now(), busy());
        let done = work.await;
        self.all.push(begun.elapsed());
        self.own.push(self::busy().saturating_sub(busy));
        done
    }
}

/// The CPU time of this thread.
fn busy() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}
