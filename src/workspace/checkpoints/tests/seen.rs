//! What is read again, and what is not.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, SystemTime};

use super::kit::{Project, settle};

#[test]
fn only_what_is_new_is_read() {
    let mut project = Project::new();
    for number in 0..20 {
        project.write(format!("{}/{number}", number % 3), format!("{number}"));
    }
    settle();
    assert_eq!(project.snapshot().read, 20);
    assert_eq!(project.snapshot().read, 0);
    project.write("1/1", "other");
    settle();
    assert_eq!(project.snapshot().read, 1);
    project.reopen();
    assert_eq!(project.snapshot().read, 0);
}

#[test]
fn an_edit_of_the_same_size_whose_time_is_set_back_is_found() {
    let mut project = Project::new();
    project.write("a", "first");
    let modified = fs::metadata(project.at("a")).unwrap().modified().unwrap();
    settle();
    let first = project.tree();
    project.write("a", "other");
    let file = File::options().write(true).open(project.at("a")).unwrap();
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
    let second = project.tree();
    assert_ne!(first, second);
    assert_eq!(project.objects(&["show", &format!("{second}:a")]), "other");
}

#[test]
fn edits_of_the_same_size_right_after_each_other_are_found() {
    let mut project = Project::new();
    for number in 0..100 {
        project.write("a", format!("{number:03}"));
        let tree = project.tree();
        assert_eq!(project.changes(&tree, &tree), []);
        let blob = project.try_changes(&tree, "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        if number == 0 {
            // The empty tree is an object like others: there is none yet.
            assert!(blob.is_err());
            project.remove("a");
            project.tree();
            continue;
        }
        assert_eq!(blob.unwrap()[0].base_content, Some(format!("{number:03}")));
    }
}

#[test]
fn a_time_of_the_future_hides_no_edit() {
    let mut project = Project::new();
    project.write("a", "first");
    let future = SystemTime::now() + Duration::from_secs(1_000_000);
    let set = || {
        let file = File::options().write(true).open(project.folder.path().join("a")).unwrap();
        file.set_times(FileTimes::new().set_modified(future)).unwrap();
    };
    set();
    settle();
    let first = project.checkpoints.snapshot(&project.touched, &[]).unwrap().tree;
    project.write("a", "other");
    set();
    assert_ne!(project.checkpoints.snapshot(&project.touched, &[]).unwrap().tree, first);
}

#[test]
fn a_kept_file_that_is_damaged_or_gone_is_made_again() {
    let mut project = Project::new();
    for number in 0..5 {
        project.write(format!("f/{number}"), format!("{number}"));
    }
    settle();
    let tree = project.tree();
    let path = ".state/checkpoints.seen";
    let whole = project.read(path);
    for len in [0, 4, 11, whole.len() / 2, whole.len() - 1] {
        project.write(path, &whole[..len]);
        project.reopen();
        let snapshot = project.snapshot();
        assert_eq!((snapshot.tree.as_str(), snapshot.read), (tree.as_str(), 5), "cut to {len} bytes");
    }
    let mut flipped = whole.clone();
    flipped[30] ^= 1;
    project.write(path, flipped);
    project.reopen();
    assert_eq!(project.snapshot().read, 5);
    project.remove(path);
    project.reopen();
    assert_eq!(project.snapshot().read, 5);
    project.reopen();
    assert_eq!(project.snapshot().read, 0);
}

#[test]
fn objects_that_are_gone_are_written_again() {
    let mut project = Project::new();
    project.write("a/b/c", "content");
    settle();
    let tree = project.tree();
    // Nothing keeps it.
    assert_eq!(project.checkpoints.prune().unwrap(), 4);
    let again = project.snapshot();
    assert_eq!((again.tree.as_str(), again.read), (tree.as_str(), 1));
    project.checkpoints.keep(&tree, &[], "kept").unwrap();
    assert_eq!(project.checkpoints.prune().unwrap(), 0);
    fs::remove_dir_all(project.at(".state/checkpoints.git/objects")).unwrap();
    fs::remove_dir_all(project.at(".state/checkpoints.git/refs")).unwrap();
    project.reopen();
    assert_eq!(project.tree(), tree);
    project.check_objects();
}

#[test]
fn many_folders_looked_at_by_two_threads_are_one_tree() {
    let mut project = Project::with_git();
    for number in 0..1500 {
        project.write(format!("{}/{}/{number}", number % 7, number % 31), format!("{}", number % 40));
    }
    settle();
    let first = project.snapshot();
    project.git(&["add", "."]);
    assert_eq!(project.git(&["write-tree"]).trim_end(), first.tree);
    project.write("3/3/3", "edited");
    settle();
    let second = project.snapshot();
    assert_eq!((second.files, second.read), (1500, 1));
    project.git(&["add", "."]);
    assert_eq!(project.git(&["write-tree"]).trim_end(), second.tree);
    project.check_objects();
}
