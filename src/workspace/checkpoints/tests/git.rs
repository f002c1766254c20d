//! The user's own repository, whatever state it is in: it is read, and never touched.

use std::fs;

use super::kit::{Project, files, git};

/// A repository with commits, packed references, a hook and a tag.
fn packed() -> Project {
    let project = Project::with_git();
    project.write("tracked.log", "tracked");
    project.write(".gitignore", "*.log\n");
    project.git(&["add", "-f", "tracked.log", ".gitignore"]);
    project.git(&["commit", "-q", "-m", "one"]);
    project.git(&["tag", "v1"]);
    project.git(&["branch", "other"]);
    project.git(&["gc", "-q"]);
    project.write("ignored.log", "ignored");
    project
}

#[test]
fn the_repository_of_the_user_is_not_touched() {
    let mut project = packed();
    assert!(project.at(".git/packed-refs").exists());
    fs::create_dir_all(project.at(".git/refs/an/empty/folder")).unwrap();
    project.write("untracked.txt", "untracked");
    let status = project.git(&["status", "--porcelain", "--untracked-files=all"]);
    let before = files(&project.at(".git"));
    let tree = project.tree();
    project.checkpoints.keep(&tree, &[], "first").unwrap();
    project.write("tracked.log", "edited");
    project.write("new/file", "new");
    project.restore(&tree);
    project.checkpoints.prune().unwrap();
    assert_eq!(files(&project.at(".git")), before);
    assert_eq!(project.git(&["status", "--porcelain", "--untracked-files=all"]), status);
    project.git(&["fsck", "--strict"]);
}

#[test]
fn a_working_tree_beside_the_main_one_has_its_own_index() {
    let project = packed();
    let beside = tempfile::tempdir().unwrap();
    let path = beside.path().join("tree");
    project.git(&["worktree", "add", "-q", path.to_str().unwrap(), "other"]);
    fs::write(project.at(".git/info/exclude"), "excluded\n").unwrap();
    for name in ["excluded", "ignored.log", "forced.log", "plain"] {
        fs::write(path.join(name), name).unwrap();
    }
    git(&path, &["add", "-f", "forced.log"]);
    let mut checkpoints = crate::workspace::checkpoints::Checkpoints::open(&path, &path.join(".state")).unwrap();
    let tree = checkpoints.snapshot(&project.touched, &[]).unwrap().tree;
    let names = git(&path.join(".state/checkpoints.git"), &["ls-tree", "-r", "--name-only", &tree]);
    assert_eq!(names, ".gitignore\nforced.log\nplain\ntracked.log\n");
}

#[test]
fn every_form_of_an_index_is_read() {
    for (form, preparation) in [
        ("version 2", &[&["update-index", "--index-version", "2"][..]][..]),
        ("version 4", &[&["update-index", "--index-version", "4"]]),
        ("intent to add", &[&["add", "-f", "-N", "later.log"]]),
        ("skipped files", &[&["update-index", "--skip-worktree", "tracked.log"]]),
        ("split", &[&["update-index", "--split-index"], &["add", "-f", "more.log"]]),
        ("without a checksum", &[&["-c", "index.skipHash=true", "add", "-f", "more.log"]]),
        ("with what it does not track", &[&["update-index", "--untracked-cache"], &["status"]]),
    ] {
        let mut project = packed();
        project.write("later.log", "later");
        project.write("more.log", "more");
        for number in 0..20 {
            project.write(format!("a/long/way/{}/file-{number}.log", "x".repeat(number)), "tracked");
        }
        project.git(&["add", "-f", "a"]);
        for arguments in preparation {
            project.git(arguments);
        }
        let tracked = project.git(&["ls-files", "-z"]);
        let mut wanted: Vec<_> = tracked.split_terminator('\0').collect();
        wanted.sort_unstable();
        assert_eq!(project.paths(), wanted, "{form}");
    }
}

#[test]
fn a_repository_with_longer_ids_is_read() {
    let mut project = Project::new();
    project.git(&["init", "-q", "--object-format=sha256"]);
    project.write(".gitignore", "*.log\n");
    project.write("tracked.log", "tracked");
    project.write("ignored.log", "ignored");
    project.git(&["add", "-f", ".gitignore", "tracked.log"]);
    assert_eq!(project.paths(), [".gitignore", "tracked.log"]);
}

#[test]
fn an_index_that_is_damaged_or_locked_does_not_stop_a_snapshot() {
    let mut project = packed();
    project.write(".git/index.lock", "");
    assert_eq!(project.paths(), [".gitignore", "tracked.log"]);
    let whole = project.read(".git/index");
    for damaged in [Vec::new(), b"DIRC".to_vec(), whole[..whole.len() / 2].to_vec(), vec![0xff; 500]] {
        project.write(".git/index", damaged);
        // As it was known before.
        assert_eq!(project.paths(), [".gitignore", "tracked.log"]);
        // As it is when nothing is known.
        project.reopen();
        assert_eq!(project.paths(), [".gitignore"]);
        project.write(".git/index", &whole);
        assert_eq!(project.paths(), [".gitignore", "tracked.log"]);
    }
    project.remove(".git/index");
    rustix::fs::mkfifoat(rustix::fs::CWD, project.at(".git/index"), rustix::fs::Mode::RWXU).unwrap();
    project.reopen();
    assert_eq!(project.paths(), [".gitignore"]);
}

#[test]
fn repositories_within_count_as_ordinary_files_with_their_own_rules() {
    let mut project = packed();
    let inner = tempfile::tempdir().unwrap();
    git(inner.path(), &["init", "-q"]);
    fs::write(inner.path().join("code.c"), "int x;").unwrap();
    fs::write(inner.path().join("kept.obj"), "kept").unwrap();
    fs::write(inner.path().join(".gitignore"), "*.obj\n").unwrap();
    git(inner.path(), &["add", "-f", "."]);
    git(inner.path(), &["commit", "-q", "-m", "inner"]);
    project.git(&["submodule", "--quiet", "add", inner.path().to_str().unwrap(), "inner"]);
    project.write("inner/a.obj", "left out");
    project.write("inner/new.c", "new");
    assert_eq!(
        project.paths(),
        [
            ".gitignore",
            ".gitmodules",
            "inner/.gitignore",
            "inner/code.c",
            "inner/kept.obj",
            "inner/new.c",
            "tracked.log"
        ]
    );
    let (before, tree) = (project.files(), project.tree());
    project.write("inner/code.c", "changed");
    project.restore(&tree);
    assert_eq!(project.files(), before);
}

#[test]
fn a_project_within_a_repository_has_what_that_says_of_it() {
    let whole = tempfile::tempdir().unwrap();
    git(whole.path(), &["init", "-q"]);
    let root = whole.path().join("apps/one");
    let other = whole.path().join("apps/ignored");
    for (path, content) in [
        (".gitignore", "*.log\n/apps/one/build/\n/build/\napps/ignored/\n"),
        ("apps/.gitignore", "*.tmp\none/*.odd\n"),
        ("apps/one/.gitignore", "!kept.tmp\n"),
        ("apps/one/.state/.gitignore", "*\n"),
        ("apps/one/tracked.log", "x"),
        ("apps/one/src/tracked.log", "x"),
        ("apps/one/a.log", "x"),
        ("apps/one/build/x", "x"),
        ("apps/one/src/build/x", "x"),
        ("apps/one/a.tmp", "x"),
        ("apps/one/kept.tmp", "x"),
        ("apps/one/a.odd", "x"),
        ("apps/one/src/a.odd", "x"),
        ("apps/ignored/a", "x"),
        ("apps/ignored/b.log", "x"),
    ] {
        fs::create_dir_all(whole.path().join(path).parent().unwrap()).unwrap();
        fs::write(whole.path().join(path), content).unwrap();
    }
    git(whole.path(), &["add", "-f", "apps/one/tracked.log", "apps/one/src/tracked.log"]);
    let names = |root: &std::path::Path| {
        let mut checkpoints = crate::workspace::checkpoints::Checkpoints::open(root, &root.join(".state")).unwrap();
        let tree = checkpoints.snapshot(&crate::workspace::checkpoints::Touched::default(), &[]).unwrap().tree;
        git(&root.join(".state/checkpoints.git"), &["ls-tree", "-r", "--name-only", &tree])
    };
    let mut wanted: Vec<_> =
        git(&root, &["ls-files", "--cached", "--others", "--exclude-standard"]).lines().map(str::to_owned).collect();
    wanted.sort();
    assert_eq!(names(&root).lines().collect::<Vec<_>>(), wanted);
    // A repository that ignores a project is not about it.
    assert_eq!(names(&other), "a\nb.log\n");
}
