//! Checkpoints: their ids, what keeps them, and what happens when they are forgotten.

use super::kit::{Project, settle};
use crate::workspace::checkpoints::CheckpointError;

#[test]
fn every_checkpoint_has_an_id_of_its_own() {
    let mut project = Project::new();
    project.write("a", "a");
    let tree = project.tree();
    let first = project.checkpoints.keep(&tree, &[], "Before user message: hello").unwrap();
    let second = project.checkpoints.keep(&tree, &[&first], "Before user message: hello").unwrap();
    let third = project.checkpoints.keep(&tree, &[&first], "with \0 and\nlines\n\n").unwrap();
    assert!(first != second && second != third && first != third);
    for id in [&first, &second, &third] {
        assert_eq!(project.checkpoints.tree_of(id).unwrap(), Some(tree.clone()));
    }
    assert!(project.objects(&["log", "--format=%s", &second]).starts_with("Before user message: hello\n"));
    project.check_objects();
}

#[test]
fn only_whole_ids_of_checkpoints_are_known() {
    let mut project = Project::new();
    project.write("a", "a");
    let tree = project.tree();
    let id = project.checkpoints.keep(&tree, &[], "first").unwrap();
    let unknown = "0123456789012345678901234567890123456789";
    for text in ["", "HEAD", "main", "refs/heads/main", &id[..10], &id.to_uppercase(), &tree, unknown, "../../HEAD"] {
        assert_eq!(project.checkpoints.tree_of(text).unwrap(), None, "{text}");
    }
    for tree in [unknown, "HEAD", &id] {
        assert!(matches!(project.checkpoints.restore(tree, tree, &project.touched), Err(CheckpointError::Unknown)));
        assert!(matches!(project.try_changes(tree, tree), Ok(_) | Err(CheckpointError::Unknown)));
        assert!(matches!(project.checkpoints.snapshot(&project.touched, &[tree]), Err(CheckpointError::Unknown)));
    }
    assert!(matches!(project.checkpoints.keep(unknown, &[], ""), Err(CheckpointError::Unknown)));
    assert!(matches!(project.checkpoints.keep(&tree, &[unknown], ""), Err(CheckpointError::Unknown)));
}

#[test]
fn what_is_forgotten_goes_and_the_rest_stays() {
    let mut project = Project::new();
    project.write("shared", "in both");
    project.write("a", "only in the first one");
    let first = project.tree();
    let first_id = project.checkpoints.keep(&first, &[], "first").unwrap();
    project.write("a", "only in the second one");
    let second = project.tree();
    let second_id = project.checkpoints.keep(&second, &[], "second").unwrap();
    settle();
    project.checkpoints.forget(&[&first_id, "no id"]).unwrap();
    project.reopen();
    // The commit, the tree, and the file that only it had.
    assert_eq!(project.checkpoints.prune().unwrap(), 3);
    assert_eq!(project.checkpoints.tree_of(&first_id).unwrap(), None);
    assert_eq!(project.checkpoints.tree_of(&second_id).unwrap(), Some(second.clone()));
    project.check_objects();
    project.write("a", "only in the first one");
    assert_eq!(project.tree(), first, "it is written again");
    project.restore(&second);
    assert_eq!(project.read("a"), b"only in the second one");
}

#[test]
fn what_git_has_packed_is_read_kept_and_forgotten() {
    let mut project = Project::new();
    let long = (0..2000).map(|n| format!("line {n} of a long file\n")).collect::<String>();
    let mut kept = Vec::new();
    for round in 0..6 {
        project.write("long", long.replacen("line 7", &format!("round {round}"), round * 10));
        project.write(format!("f/{round}"), format!("{round}"));
        let tree = project.tree();
        kept.push((project.checkpoints.keep(&tree, &[], "kept").unwrap(), tree, project.files()));
    }
    project.objects(&["gc", "-q", "--prune=now"]);
    assert!(project.objects(&["count-objects"]).starts_with("0 objects"));
    project.reopen();
    settle();
    project.tree();
    for (id, tree, files) in &kept {
        assert_eq!(project.checkpoints.tree_of(id).unwrap().as_ref(), Some(tree));
        project.restore(tree);
        assert_eq!(&project.files(), files);
    }
    assert_eq!(project.changes(&kept[0].1, &kept[5].1).len(), 6);
    project.checkpoints.forget(&[&kept[0].0]).unwrap();
    assert_eq!(project.checkpoints.tree_of(&kept[0].0).unwrap(), None);
    assert_eq!(project.checkpoints.tree_of(&kept[1].0).unwrap().as_ref(), Some(&kept[1].1));
    project.checkpoints.prune().unwrap();
    project.write("new", "after packing");
    let tree = project.tree();
    project.checkpoints.keep(&tree, &[&kept[5].0], "kept").unwrap();
    project.check_objects();
}

#[test]
fn three_rounds_of_work_approval_and_reset_keep_every_id() {
    let mut project = Project::with_git();
    project.write("a", "0");
    project.mode("a", 0o755);
    let mut approved = project.tree();
    let mut told = vec![(project.checkpoints.keep(&approved, &[], "initial").unwrap(), project.files())];
    for round in 1..=3 {
        project.write("a", format!("{round}"));
        project.write(format!("made-{round}/file"), "made");
        let now = project.tree();
        told.push((project.checkpoints.keep(&now, &[], "approved").unwrap(), project.files()));
        assert_eq!(project.changes(&approved, &now).len(), 2);
        approved = now;
        project.write("a", "to be thrown away");
        project.remove(format!("made-{round}/file"));
        let pending = project.tree();
        told.push((project.checkpoints.keep(&pending, &[], "before reset").unwrap(), {
            let mut files = project.files();
            files.remove(format!("made-{round}").as_bytes());
            files
        }));
        let reset = project.restore(&approved);
        assert_eq!(project.changes(&approved, &reset.tree), []);
        project.reopen();
        project.checkpoints.prune().unwrap();
    }
    for (id, files) in told.iter().rev().chain(&told) {
        let tree = project.checkpoints.tree_of(id).unwrap().unwrap();
        project.restore(&tree);
        assert_eq!(&project.files(), files);
    }
    project.check_objects();
}
