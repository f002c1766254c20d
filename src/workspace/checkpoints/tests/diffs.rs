//! What is told of changes, and that patch(1) makes the new file from the old one.

use std::fs;
use std::process::Command;

use super::kit::{Project, no_limit};
use crate::bounded::memory::{Kind, Memory};
use crate::workspace::checkpoints::{ChangedFile, CheckpointError, Mode, Status};
use crate::workspace::diff::unified_diff;

/// The two trees of an edit.
fn edit(project: &mut Project, work: impl FnOnce(&Project)) -> Vec<ChangedFile> {
    let before = project.tree();
    work(project);
    let after = project.tree();
    project.changes(&before, &after)
}

fn file(path: &str, status: Status) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        raw_path: path.as_bytes().to_vec(),
        status,
        additions: 0,
        deletions: 0,
        diff: None,
        base_content: None,
        is_binary: false,
        is_too_large: false,
    }
}

#[test]
fn all_kinds_of_changes_are_told() {
    let mut project = Project::new();
    for (path, content) in [
        ("modified", b"one\ntwo\nthree".as_slice()),
        ("deleted", b"one\ntwo"),
        ("binary", b"a\0b"),
        ("latin", b"caf\xe9\n"),
        ("becomes-binary", b"text\n"),
        ("mode", b"#!/bin/sh\n"),
        ("emptied", b"x\n"),
        ("a/b", b"folder\n"),
        ("same", b"same\n"),
    ] {
        project.write(path, content);
    }
    project.write("becomes-large", "small\n");
    project.write("deleted-large", vec![b'x'; (1 << 20) + 1]);
    project.link("link", "modified");
    let changes = edit(&mut project, |project| {
        project.write("modified", "one\n2\nthree");
        project.remove("deleted");
        project.remove("deleted-large");
        project.write("binary", "a\0c");
        project.write("latin", "café\n");
        project.write("becomes-binary", "\0");
        project.mode("mode", 0o755);
        project.write("emptied", "");
        project.write("added", "one\r\ntwo");
        project.write("added-empty", "");
        project.write("becomes-large", "x\n".repeat(1 << 19) + "y");
        fs::remove_dir_all(project.at("a")).unwrap();
        project.write("a", "a file\n");
        project.write(b"odd\xff", "odd\n");
        project.remove("link");
        project.link("link", "elsewhere");
    });
    let diff = |path: &str, rest: &str| Some(format!("--- a/{path}\n+++ b/{path}\n{rest}"));
    let text = |text: &str| Some(text.to_owned());
    let end = "\\ No newline at end of file\n";
    let wanted = [
        ChangedFile { additions: 1, ..file("a", Status::Added) },
        ChangedFile { deletions: 1, base_content: text("folder\n"), ..file("a/b", Status::Deleted) },
        ChangedFile { additions: 2, ..file("added", Status::Added) },
        file("added-empty", Status::Added),
        ChangedFile { is_binary: true, ..file("becomes-binary", Status::Modified) },
        ChangedFile { is_too_large: true, ..file("becomes-large", Status::Modified) },
        ChangedFile { is_binary: true, ..file("binary", Status::Modified) },
        ChangedFile { deletions: 2, base_content: text("one\ntwo"), ..file("deleted", Status::Deleted) },
        ChangedFile { is_too_large: true, ..file("deleted-large", Status::Deleted) },
        ChangedFile {
            deletions: 1,
            diff: diff("emptied", "@@ -1 +0,0 @@\n-x\n"),
            base_content: text("x\n"),
            ..file("emptied", Status::Modified)
        },
        ChangedFile { is_binary: true, ..file("latin", Status::Modified) },
        ChangedFile {
            additions: 1,
            deletions: 1,
            diff: diff("link", &format!("@@ -1 +1 @@\n-modified\n{end}+elsewhere\n{end}")),
            base_content: text("modified"),
            ..file("link", Status::Modified)
        },
        ChangedFile { base_content: text("#!/bin/sh\n"), ..file("mode", Status::Modified) },
        ChangedFile {
            additions: 1,
            deletions: 1,
            diff: diff("modified", &format!("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n{end}")),
            base_content: text("one\ntwo\nthree"),
            ..file("modified", Status::Modified)
        },
        ChangedFile {
            path: "odd\u{fffd}".to_owned(),
            raw_path: b"odd\xff".to_vec(),
            additions: 1,
            ..file("", Status::Added)
        },
    ];
    assert_eq!(changes, wanted);
}

#[test]
fn a_list_is_not_longer_than_it_may_be() {
    let mut project = Project::new();
    let before = project.tree();
    let content = "x".repeat(1 << 20);
    for number in 0..70 {
        project.write(format!("{number:02}"), &content);
    }
    let after = project.tree();
    let changes = project.changes(&after, &before);
    assert_eq!(changes.iter().filter(|file| file.base_content.is_some()).count(), 64);
    assert!(changes[64..].iter().all(|file| file.is_too_large && file.base_content.is_none()));
}

#[test]
fn random_edits_are_applied_by_patch() {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap() % most
    };
    let words = [
        "",
        "a",
        "b",
        "the same",
        "}",
        "\r",
        "x\r",
        "- minus",
        "+ plus",
        "\\ No newline at end of file",
        "@@ -1 +1 @@",
        "é",
    ];
    for round in 0..150 {
        let mut lines: Vec<String> = (0..random(60)).map(|_| words[random(words.len())].to_owned()).collect();
        let text = |lines: &[String], has_end: bool| {
            let text = lines.join("\n");
            if has_end && !lines.is_empty() { text + "\n" } else { text }
        };
        let before = text(&lines, random(3) > 0);
        for _ in 0..random(8) {
            let place = random(lines.len() + 1);
            match random(3) {
                0 => lines.insert(place, words[random(words.len())].to_owned()),
                1 if place < lines.len() => drop(lines.remove(place)),
                _ if place < lines.len() => lines[place] = format!("edited {round}"),
                _ => lines.push("at the end".to_owned()),
            }
        }
        let after = text(&lines, random(3) > 0);
        check_patch(folder.path(), &before, &after);
    }
}

#[test]
fn edges_of_files_are_applied_by_patch() {
    let folder = tempfile::tempdir().unwrap();
    let numbered = |count: usize| (0..count).map(|number| format!("{number}\n")).collect::<String>();
    for (before, after, reason) in [
        (numbered(9), format!("first\n{}", numbered(9)), "at the start"),
        (numbered(9), format!("{}last\n", numbered(9)), "at the end"),
        (numbered(9), numbered(5), "less at the end"),
        (numbered(20), numbered(20).replace("5\n", "x\n"), "seven lines in between"),
        ("a\nb".to_owned(), "a\nb\n".to_owned(), "an end of line comes"),
        ("a\nb\n".to_owned(), "a\nb".to_owned(), "an end of line goes"),
        ("a\r\nb\r\n".to_owned(), "a\nb\n".to_owned(), "CR goes"),
        ("a\rb\rc".to_owned(), "a\rx\rc".to_owned(), "CR ends no line"),
        ("a\n".to_owned(), "\n".to_owned(), "an empty line"),
    ] {
        assert!(!unified_diff(&before, &after, "a/f", "b/f").text.is_empty(), "{reason}");
        check_patch(folder.path(), &before, &after);
    }
}

#[test]
fn headers_with_odd_names_are_understood() {
    for name in ["plain.txt", "with blank.txt", "quo\"te", "back\\slash", "tab\tname", "line\nname", "é.txt", "a/b c/d"]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "old\n").unwrap();
        fs::write(
            folder.path().join("the.patch"),
            unified_diff("old\n", "new\n", &format!("a/{name}"), &format!("b/{name}")).text,
        )
        .unwrap();
        let patch = Command::new("patch")
            .args(["-p1", "--fuzz=0", "--batch", "--silent", "--input=the.patch"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(patch.status.success(), "{name:?}: {}", String::from_utf8_lossy(&patch.stdout));
        assert_eq!(fs::read_to_string(path).unwrap(), "new\n", "{name:?}");
    }
}

/// Lets patch(1) apply the diff.
fn check_patch(folder: &std::path::Path, before: &str, after: &str) {
    let diff = unified_diff(before, after, "a/f", "b/f");
    assert_eq!(diff.text.is_empty(), before == after);
    if before == after {
        return;
    }
    fs::write(folder.join("f"), before).unwrap();
    fs::write(folder.join("the.patch"), &diff.text).unwrap();
    let patch = Command::new("patch")
        .args(["--binary", "--fuzz=0", "--batch", "--silent", "--no-backup-if-mismatch", "f", "the.patch"])
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&patch.stdout).into_owned();
    assert!(patch.status.success(), "{said}\n{before:?}\n{after:?}\n{}", diff.text);
    let made = fs::read(folder.join("f")).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&made), after, "{}", diff.text);
}

#[test]
fn a_look_tells_what_snapshots_would_and_leaves_nothing_in_the_store() {
    let mut project = Project::new();
    project.write("same.txt", "1\n");
    project.write("changed.txt", "1\n");
    project.write(".gitignore", "ignored.txt\n");
    let tree = project.tree();
    project.write("changed.txt", "2\n");
    project.write("below/new.txt", "3\n");
    project.write("ignored.txt", "4\n");
    let kept = project.checkpoints.keep_before(b"ignored.txt", Some((b"before\n", Mode::File))).unwrap();
    project.touched.insert(b"ignored.txt");
    let objects = project.stored();
    let before = [kept];
    for _ in 0..2 {
        let touched = project.touched.clone();
        let looked = project.checkpoints.compare((&tree, &before), &touched, &mut no_limit()).unwrap();
        let told: Vec<(&str, Option<&str>)> =
            looked.iter().map(|file| (&*file.path, file.base_content.as_deref())).collect();
        let expected = [("below/new.txt", None), ("changed.txt", Some("1\n")), ("ignored.txt", Some("before\n"))];
        assert_eq!(told, expected);
        assert_eq!(project.stored(), objects, "nothing is written for a look");
    }
    let from = project.checkpoints.with_files_before(&tree, &before).unwrap();
    let now = project.snapshot().tree;
    assert!(project.stored() > objects);
    let touched = project.touched.clone();
    let looked = project.checkpoints.compare((&tree, &before), &touched, &mut no_limit()).unwrap();
    assert_eq!(looked, project.changes(&from, &now), "as two snapshots tell it");
}

#[test]
fn without_memory_there_is_no_list_and_nothing_is_lost() {
    let mut project = Project::new();
    project.write("a.txt", "1\n");
    let tree = project.tree();
    project.write("a.txt", "2\n");
    let memory = Memory::new(1 << 20);
    let mut held = memory.reserve(Kind::Export, 0).unwrap();
    let touched = project.touched.clone();
    let refused = project.checkpoints.compare((&tree, &[]), &touched, &mut held);
    assert!(matches!(refused, Err(CheckpointError::Exhausted(_))), "{refused:?}");
    assert_eq!(project.checkpoints.compare((&tree, &[]), &touched, &mut no_limit()).unwrap().len(), 1);
    let now = project.snapshot().tree;
    assert_eq!(project.changes(&tree, &now).len(), 1);
}
