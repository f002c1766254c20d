//! Which files are in a snapshot, and which are not.

use std::fs;

use super::kit::Project;

#[test]
fn what_git_tracks_is_never_left_out() {
    let mut project = Project::with_git();
    let tracked =
        ["Cargo.lock", "a.log", "bin/tool", "dist/app.js", "node_modules/patched.js", "vendor/x", "venv/kept"];
    for path in tracked {
        project.write(path, path);
    }
    project.write(".gitignore", "*.lock\n*.log\nbin/\ndist\nvendor/*\n");
    project.git(&["add", "-f", "."]);
    for untracked in ["b.log", "bin/other", "dist/other.js", "node_modules/other.js", "vendor/y", "venv/lib/z"] {
        project.write(untracked, "untracked");
    }
    let mut wanted: Vec<_> = tracked.iter().map(|path| (*path).to_owned()).chain([".gitignore".to_owned()]).collect();
    wanted.sort();
    assert_eq!(project.paths(), wanted);
    // Changed by a command, they are told and brought back.
    let (before, tree) = (project.files(), project.tree());
    project.write("Cargo.lock", "changed");
    project.write("dist/app.js", "changed");
    project.remove("bin/tool");
    let now = project.tree();
    let changed: Vec<_> = project.changes(&tree, &now).into_iter().map(|file| file.path).collect();
    assert_eq!(changed, ["Cargo.lock", "bin/tool", "dist/app.js"]);
    project.restore(&tree);
    assert_eq!(project.files(), before);
}

#[test]
fn rules_hold_as_git_has_them() {
    let mut project = Project::with_git();
    project.write(
        ".gitignore",
        "*.tmp\n!keep.tmp\n/build\n/logs/*\n!/logs/keep\ndeep/**/x\n\\#odd\ntrailing  \n# comment\n",
    );
    project.write("sub/.gitignore", "!*.tmp\n*.txt\n!important.txt\n/only-here\n");
    project.write(".git/info/exclude", "excluded-*\n*.both\n");
    project.write("sub/deeper/.gitignore", "!excluded-but-here\n");
    for path in [
        "a.tmp",
        "keep.tmp",
        "build/x",
        "src/build/x",
        "logs/a",
        "logs/keep",
        "deep/a/b/x",
        "deep/x",
        "deep/y",
        "#odd",
        "trailing",
        "sub/a.tmp",
        "sub/a.txt",
        "sub/important.txt",
        "sub/only-here",
        "sub/deeper/only-here",
        "excluded-1",
        "sub/excluded-2",
        "sub/deeper/excluded-but-here",
        "c.both",
        "sub/deeper/d.txt",
        "plain",
    ] {
        project.write(path, path);
    }
    let others = project.git(&["ls-files", "-z", "--others", "--exclude-standard"]);
    let mut wanted: Vec<_> = others.split_terminator('\0').map(str::to_owned).collect();
    wanted.sort();
    assert_eq!(project.paths(), wanted);
}

#[test]
fn folders_of_dependencies_stay_out_without_any_rule() {
    let mut project = Project::new();
    for path in [
        "node_modules/a/index.js",
        "sub/node_modules/b.js",
        ".venv/bin/python",
        "venv/x",
        "__pycache__/a.pyc",
        "target/debug/app",
        ".mypy_cache/x",
        ".pytest_cache/x",
        ".tox/x",
        ".gradle/x",
    ] {
        project.write(path, "installed");
    }
    project.write("target-practice/a", "ours");
    project.write("src/venv", "a file of this name");
    assert_eq!(project.paths(), ["src/venv", "target-practice/a"]);
    assert!(project.touched.insert(b"node_modules/a/index.js"));
    assert_eq!(project.paths(), ["node_modules/a/index.js", "src/venv", "target-practice/a"]);
}

#[test]
fn state_folders_and_git_folders_are_never_in() {
    let mut project = Project::with_git();
    project.write("a", "a");
    project.write("sub/.git/config", "not a repository");
    project.write("sub/.GIT/config", "in another spelling");
    project.write("sub/b", "b");
    project.write("other/.state/checkpoints.git/HEAD", "another project's state");
    project.write("other/state", "c");
    for path in [".git/config", "sub/.git/config", ".state/checkpoints.git/HEAD", "sub/.GIT/config"] {
        project.touched.insert(path.as_bytes());
    }
    assert_eq!(project.paths(), ["a", "other/state", "sub/b"]);
    assert!(project.checkpoints.keep_before(b".state/x", None).is_err());
    assert!(project.checkpoints.keep_before(b"sub/.git/x", None).is_err());
}

#[test]
fn what_was_seen_before_is_looked_at_although_it_is_ignored_now() {
    let mut project = Project::new();
    project.write("a.log", "first");
    let first = project.tree();
    project.write(".gitignore", "*.log\n");
    project.write("a.log", "second");
    let without = project.tree();
    assert_eq!(project.changes(&first, &without).len(), 2);
    let with = project.checkpoints.snapshot(&project.touched, &[&first]).unwrap().tree;
    assert_eq!(project.objects(&["show", &format!("{with}:a.log")]), "second");
    project.restore(&first);
    assert_eq!(project.read("a.log"), b"first");
    project.restore(&with);
    assert_eq!(project.read("a.log"), b"second");
}

#[test]
fn rules_and_index_are_read_again_when_they_change() {
    let mut project = Project::with_git();
    project.write("a.log", "a");
    project.write("b.log", "b");
    assert_eq!(project.paths(), ["a.log", "b.log"]);
    project.write(".gitignore", "*.log\n");
    assert_eq!(project.paths(), [".gitignore"]);
    project.git(&["add", "-f", "a.log"]);
    assert_eq!(project.paths(), [".gitignore", "a.log"]);
    project.git(&["rm", "-q", "--cached", "a.log"]);
    assert_eq!(project.paths(), [".gitignore"]);
    fs::remove_file(project.at(".gitignore")).unwrap();
    assert_eq!(project.paths(), ["a.log", "b.log"]);
}

#[test]
fn an_ignore_file_that_is_none_is_passed_over() {
    let mut project = Project::new();
    project.write("rules", "*\n");
    project.link(".gitignore", "rules");
    fs::create_dir_all(project.at("sub/.gitignore")).unwrap();
    project.write("sub/a", "a");
    assert_eq!(project.paths(), [".gitignore", "rules", "sub/a"]);
}
