//! What a restore brings back, and what it leaves alone.

use std::fs;
use std::path::Path;

use super::kit::{Project, settle};
use crate::workspace::checkpoints::{Checkpoints, Left, Mode, Reason};

/// A project with every kind of content.
fn full() -> Project {
    let project = Project::with_git();
    project.write("binary", [0, 1, 2, 0xff, 0xfe, b'\n', 0]);
    project.write("crlf.txt", "one\r\ntwo\r\n");
    project.write("no-end", "no end of line");
    project.write("empty", "");
    project.write(b"odd \"names\"\n\xff\xfe/\xc3\xa9 \\ *", "odd");
    project.write("-dash", "a name like an option");
    project.write("bin/run.sh", "#!/bin/sh\n");
    project.mode("bin/run.sh", 0o755);
    project.write("deep/er/and/deeper/file", "deep");
    project.write("large", (0..1_500_000_u32).map(|n| (n * 31 % 251) as u8).collect::<Vec<_>>());
    project.link("link", "crlf.txt");
    project.link("deep/dangling", "../nowhere");
    project.link("folder-link", "deep");
    project
}

#[test]
fn everything_comes_back_byte_for_byte() {
    let mut project = full();
    let (before, tree) = (project.files(), project.tree());
    project.write("binary", [9, 0, 9]);
    project.write("crlf.txt", "one\ntwo\n");
    project.write("no-end", "no end of line\n");
    project.remove("empty");
    fs::remove_dir_all(project.at(b"odd \"names\"\n\xff\xfe")).unwrap();
    project.mode("bin/run.sh", 0o644);
    project.write("large", "small");
    project.remove("link");
    project.write("link", "a file now");
    project.remove("folder-link");
    project.write("folder-link/is/a/folder", "now");
    fs::rename(project.at("deep/er"), project.at("moved")).unwrap();
    project.write("deep/er", "a file where a folder was");
    project.write("new/one", "new");
    let restored = project.restore(&tree);
    assert_eq!(project.files(), before);
    assert_eq!((restored.tree, restored.left, restored.overwritten), (tree, vec![], None));
    project.check_objects();
}

#[test]
fn a_restore_can_be_undone_and_redone() {
    let mut project = full();
    let (first, tree) = (project.files(), project.tree());
    project.write("crlf.txt", "edited by the user");
    project.write("src/new.rs", "fn main() {}\n");
    let (second, saved) = (project.files(), project.tree());
    project.restore(&tree);
    assert_eq!(project.files(), first);
    project.restore(&saved);
    assert_eq!(project.files(), second);
    project.restore(&tree);
    assert_eq!(project.files(), first);
}

#[test]
fn files_that_are_as_they_should_be_are_not_written() {
    let mut project = full();
    let tree = project.tree();
    project.write("crlf.txt", "other");
    project.write("added", "added");
    let restored = project.restore(&tree);
    assert_eq!((restored.written, restored.removed), (1, 1));
    let again = project.restore(&tree);
    assert_eq!((again.written, again.removed), (0, 0));
}

#[test]
fn a_restore_leaves_alone_what_it_does_not_know() {
    let mut project = full();
    project.write(".gitignore", "*.ignored\nignored/\n");
    project.write("a.ignored", "ignored");
    project.write("ignored/b", "ignored");
    project.write("node_modules/m/index.js", "installed");
    fs::create_dir_all(project.at("the/users/empty/folder")).unwrap();
    let tree = project.tree();
    project.write("made/by/command", "known to the newest snapshot");
    project.write("kept/by/command", "known to the newest snapshot");
    let newest = project.tree();
    project.write("kept/younger", "younger than the newest snapshot");
    let mut wanted = project.files();
    wanted.retain(|path, _| !path.starts_with(b"made") && !path.starts_with(b"kept/by"));
    let restored = project.checkpoints.restore(&tree, &newest, &project.touched).unwrap();
    assert_eq!(project.files(), wanted);
    assert_eq!(restored.removed, 2);
}

#[test]
fn what_was_ignored_then_is_left_alone_although_it_is_not_ignored_any_more() {
    let mut project = Project::with_git();
    project.write(".gitignore", "*.log\n.env\ndata/\n!kept.log\n");
    project.write("sub/.gitignore", "own\n");
    for path in [".env", "data/rows.csv", "sub/own", "sub/a.log", "node_modules/m/index.js"] {
        project.write(path, "the user's");
    }
    // Without what git itself keeps.
    let files = |project: &Project| {
        let mut files = project.files();
        files.retain(|path, _| !path.starts_with(b".git/"));
        files
    };
    let (before, initial) = (files(&project), project.tree());
    project.write(".gitignore", "");
    project.write("sub/.gitignore", "");
    project.git(&["add", "-f", "node_modules/m/index.js"]);
    for path in ["kept.log", "sub/made", "made.log"] {
        project.write(path, "by the agent");
    }
    assert!(project.touched.insert(b"made.log"));
    assert!(project.paths().iter().any(|path| path == "data/rows.csv"), "it is known now");
    project.restore(&initial);
    assert_eq!(files(&project), before);
}

#[test]
fn ignored_files_that_tools_touched_are_brought_back() {
    let mut project = Project::with_git();
    project.write(".gitignore", "*.env\nout/\n");
    project.write("edited.env", "KEY=1\n");
    project.write("deleted.env", "KEY=2\n");
    project.write("untouched.env", "KEY=3\n");
    project.mode("deleted.env", 0o755);
    let before = project.files();
    let initial = project.tree();
    let kept = [
        project.checkpoints.keep_before(b"edited.env", Some((b"KEY=1\n", Mode::File))).unwrap(),
        project.checkpoints.keep_before(b"deleted.env", Some((b"KEY=2\n", Mode::Executable))).unwrap(),
        project.checkpoints.keep_before(b"out/made.txt", None).unwrap(),
    ];
    for path in ["edited.env", "deleted.env", "out/made.txt"] {
        assert!(project.touched.insert(path.as_bytes()));
    }
    project.write("edited.env", "KEY=edited\n");
    project.remove("deleted.env");
    project.write("out/made.txt", "made");
    project.write("untouched.env", "KEY=by the user\n");
    let target = project.checkpoints.with_files_before(&initial, &kept).unwrap();
    let after = project.files();
    let newest = project.tree();
    let restored = project.restore(&target);
    let mut wanted = before;
    wanted.get_mut(b"untouched.env".as_slice()).unwrap().1 = b"KEY=by the user\n".to_vec();
    assert_eq!(project.files(), wanted);
    assert_eq!(restored.tree, target);
    project.restore(&newest);
    assert_eq!(project.files(), after);
    // What keeps the old content outlives a cleaning up, and goes when it is forgotten.
    assert!(project.objects(&["for-each-ref"]).lines().count() == 2);
    project.checkpoints.prune().unwrap();
    assert_eq!(
        project.checkpoints.with_files_before(&initial, &kept).err().map(|e| e.to_string()),
        Some("no such checkpoint".into())
    );
    let now = project.tree();
    project.checkpoints.with_files_before(&now, &kept).unwrap();
}

#[test]
fn edits_that_no_snapshot_has_are_kept_before_they_are_replaced() {
    let mut project = Project::new();
    project.write("a", "first");
    let first = project.tree();
    project.write("a", "second");
    project.write("b", "second");
    let second = project.tree();
    project.write("a", "edited since");
    project.write("b", "edited since");
    let restored = project.checkpoints.restore(&first, &second, &project.touched).unwrap();
    assert_eq!(project.files().len(), 1);
    assert_eq!(project.read("a"), b"first");
    let kept = restored.overwritten.unwrap();
    project.checkpoints.prune().unwrap();
    assert_eq!(project.objects(&["show", &format!("{kept}:a")]), "edited since");
    assert_eq!(project.objects(&["show", &format!("{kept}:b")]), "edited since");
}

#[test]
fn a_restore_that_was_broken_off_is_made_whole_by_another_one() {
    let mut project = full();
    let (before, tree) = (project.files(), project.tree());
    fs::remove_dir_all(project.at("deep")).unwrap();
    for number in 0..10 {
        project.write(format!("new/{number}/file"), "new");
        project.write(format!("{number}.txt"), "new");
    }
    let newest = project.tree();
    // Half of it is done: some files are removed, their folders are still there; some are written.
    for number in 0..5 {
        project.remove(format!("new/{number}/file"));
    }
    project.write("deep/er/and/deeper/file", "deep");
    fs::create_dir_all(project.at(".state/checkpoints.git/outgoing")).unwrap();
    project.write(".state/checkpoints.git/outgoing/0", "half of a fi");
    project.reopen();
    let restored = project.checkpoints.restore(&tree, &newest, &project.touched).unwrap();
    assert_eq!(project.files(), before);
    assert_eq!((restored.left, restored.overwritten), (vec![], None));
}

#[test]
fn what_is_not_kept_is_not_replaced() {
    let mut project = Project::new();
    project.write("large", "small yet");
    project.write("folder", "a file");
    let tree = project.tree();
    fs::File::create(project.at("large")).unwrap().set_len((64 << 20) + 1).unwrap();
    project.remove("folder");
    fs::create_dir(project.at("folder")).unwrap();
    let newest = project.snapshot();
    assert_eq!(newest.too_large, [b"large"]);
    project.write("folder/younger", "than the newest snapshot");
    let restored = project.checkpoints.restore(&tree, &newest.tree, &project.touched).unwrap();
    let left = |path: &[u8], reason| Left { path: path.to_vec(), reason };
    assert_eq!(restored.left, [left(b"folder", Reason::InTheWay), left(b"large", Reason::NotKept)]);
    assert_eq!(fs::metadata(project.at("large")).unwrap().len(), (64 << 20) + 1);
    assert_eq!(project.read("folder/younger"), b"than the newest snapshot");
}

#[test]
fn a_folder_that_became_a_link_is_not_written_through() {
    let mut project = Project::new();
    let elsewhere = tempfile::tempdir().unwrap();
    project.write("src/a", "a");
    project.write("src/b", "b");
    let tree = project.tree();
    fs::remove_dir_all(project.at("src")).unwrap();
    project.link("src", elsewhere.path().to_str().unwrap());
    // Known to the newest snapshot, it is replaced by the folder.
    project.restore(&tree);
    assert_eq!(project.read("src/a"), b"a");
    let newest = project.tree();
    fs::remove_dir_all(project.at("src")).unwrap();
    project.link("src", elsewhere.path().to_str().unwrap());
    // Younger than the newest snapshot, it stays.
    let restored = project.checkpoints.restore(&tree, &newest, &project.touched).unwrap();
    assert_eq!(restored.left.iter().map(|left| left.reason).collect::<Vec<_>>(), [Reason::InTheWay; 2]);
    assert!(fs::symlink_metadata(project.at("src")).unwrap().is_symlink());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn permissions_stay_where_a_file_is_replaced() {
    let mut project = Project::new();
    project.write("secret", "1");
    project.mode("secret", 0o600);
    project.write("tool", "1");
    project.mode("tool", 0o750);
    let tree = project.tree();
    project.write("secret", "2");
    project.write("tool", "2");
    project.mode("tool", 0o640);
    project.restore(&tree);
    let files = project.files();
    assert_eq!(files[b"secret".as_slice()].0 & 0o777, 0o600);
    assert_eq!(files[b"tool".as_slice()].0 & 0o777, 0o750);
}

#[test]
fn readers_that_have_begun_keep_the_old_content() {
    use std::io::Read;
    let mut project = Project::new();
    project.write("a", "old");
    let tree = project.tree();
    project.write("a", "new content");
    settle();
    let mut open = fs::File::open(project.at("a")).unwrap();
    project.restore(&tree);
    let mut read = String::new();
    open.read_to_string(&mut read).unwrap();
    assert_eq!((read.as_str(), project.read("a").as_slice()), ("new content", b"old".as_slice()));
}

#[test]
fn a_state_folder_on_another_file_system_will_do() {
    let elsewhere = Path::new("/dev/shm");
    if !elsewhere.is_dir() {
        return;
    }
    let state = tempfile::tempdir_in(elsewhere).unwrap();
    let mut project = full();
    project.checkpoints = Checkpoints::open(project.root(), state.path()).unwrap();
    let (before, tree) = (project.files(), project.tree());
    for path in ["binary", "empty", "link", "bin/run.sh"] {
        project.remove(path);
    }
    project.write("crlf.txt", "other");
    project.mode("crlf.txt", 0o600);
    let restored = project.restore(&tree);
    assert_eq!((restored.written, restored.left), (5, vec![]));
    let mut wanted = before;
    wanted.get_mut(b"crlf.txt".as_slice()).unwrap().0 = 0o100_600;
    assert_eq!(project.files(), wanted);
}
