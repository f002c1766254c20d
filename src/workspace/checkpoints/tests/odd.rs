//! Files that are none, that go, that change, that are too many or too long.

use std::fs;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, mkfifoat};

use super::kit::{Project, settle};
use crate::workspace::checkpoints::CheckpointError;

#[test]
fn pipes_and_sockets_are_passed_over_and_stay() {
    let mut project = Project::new();
    project.write("a", "a");
    mkfifoat(CWD, project.at("pipe"), Mode::RWXU).unwrap();
    mkfifoat(CWD, project.at(".gitignore"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(project.at("socket")).unwrap();
    project.touched.insert(b"pipe");
    let tree = project.tree();
    assert_eq!(project.paths(), ["a"]);
    project.write("a", "b");
    project.restore(&tree);
    assert!(project.exists("pipe") && project.exists("socket"));
}

#[test]
fn a_file_over_64_mib_is_told_and_left_out() {
    let mut project = Project::new();
    fs::File::create(project.at("large")).unwrap().set_len((64 << 20) + 1).unwrap();
    project.write("a", "a");
    let snapshot = project.snapshot();
    assert_eq!((snapshot.files, snapshot.too_large), (1, vec![b"large".to_vec()]));
}

#[test]
fn an_empty_folder_has_the_empty_tree() {
    let mut project = Project::new();
    let tree = project.tree();
    assert_eq!(tree, "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    project.write("a/b", "made");
    project.write("c", "made");
    let restored = project.restore(&tree);
    assert_eq!((restored.removed, restored.tree), (2, tree));
    assert!(project.files().is_empty());
    project.check_objects();
}

#[test]
fn files_that_come_and_go_meanwhile_do_not_stop_a_snapshot() {
    let mut project = Project::new();
    for number in 0..300 {
        project.write(format!("{}/stays-{number}", number % 5), "stays");
    }
    let root = project.root().to_owned();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let path = root.join(format!("{}/goes-{}", number % 5, number % 40));
                let folder = root.join(format!("{}/folder", number % 5));
                let _ = fs::create_dir(&folder).and_then(|()| fs::write(folder.join("x"), "x"));
                if fs::write(&path, number.to_string().repeat(100)).is_err() || number.is_multiple_of(3) {
                    let _ = fs::remove_file(&path);
                    let _ = fs::remove_dir_all(&folder);
                    let _ = std::os::unix::fs::symlink("nowhere", &path);
                }
                let _ = fs::remove_file(&path);
            }
        });
        let over = Over(&is_over);
        for _ in 0..15 {
            let snapshot = project.checkpoints.snapshot(&project.touched, &[]).unwrap();
            assert!(snapshot.files >= 300, "{}", snapshot.files);
            assert_eq!(snapshot.unreadable, Vec::<Vec<u8>>::new());
        }
        drop(over);
    });
    project.check_objects();
}

/// Ends the other thread, also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn folders_within_folders_end_somewhere() {
    let mut project = Project::new();
    let mut folder = rustix::fs::open(project.root(), rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..250 {
        rustix::fs::mkdirat(&folder, "a-folder-with-a-long-name", Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY;
        folder = rustix::fs::openat(&folder, "a-folder-with-a-long-name", flags, Mode::empty()).unwrap();
    }
    rustix::fs::openat(&folder, "deep", rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY, Mode::RWXU).unwrap();
    project.write("a", "a");
    let snapshot = project.snapshot();
    assert_eq!((snapshot.files, snapshot.unreadable.len()), (1, 1));
}

#[test]
fn a_rule_that_explodes_ends() {
    let mut project = Project::new();
    project.write(".gitignore", format!("{}b\n{}b\n", "*a".repeat(60), "**/a".repeat(40)));
    project.write("a".repeat(200), "a");
    project.write(vec!["a"; 60].join("/"), "deep");
    let began = std::time::Instant::now();
    assert_eq!(project.snapshot().files, 3);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}

#[test]
fn a_project_that_is_gone_is_told() {
    let mut project = Project::new();
    project.write("a", "a");
    let tree = project.tree();
    let moved = project.root().with_extension("moved");
    fs::rename(project.root(), &moved).unwrap();
    assert!(matches!(project.checkpoints.snapshot(&project.touched, &[]), Err(CheckpointError::Gone)));
    assert!(matches!(
        super::super::Checkpoints::open(project.root(), &project.at(".state")),
        Err(CheckpointError::Gone)
    ));
    fs::rename(&moved, project.root()).unwrap();
    assert_eq!(project.tree(), tree);
}

#[test]
fn what_stays_of_a_write_that_was_broken_off_does_no_harm() {
    let mut project = Project::new();
    project.write("a", "content");
    project.write(".state/checkpoints.git/incoming/12345", "half of an ob");
    project.write(".state/checkpoints.git/reference.new", "half");
    project.write(".state/checkpoints.new", "half");
    project.write(".state/checkpoints.git/HEAD", "");
    project.reopen();
    let tree = project.tree();
    project.checkpoints.keep(&tree, &[], "kept").unwrap();
    project.check_objects();
    assert!(!project.exists(".state/checkpoints.git/incoming/12345"));
}

#[test]
fn damage_is_told_and_nothing_is_changed() {
    let mut project = Project::new();
    project.write("a", "the old content of a file");
    project.write("b", "b");
    settle();
    let tree = project.tree();
    project.write("a", "new");
    project.write("b", "new");
    let newest = project.tree();
    let blob = project.objects(&["rev-parse", &format!("{tree}:a")]);
    let object = format!(".state/checkpoints.git/objects/{}/{}", &blob[..2], blob[2..].trim_end());
    let whole = project.read(&object);
    project.write(&object, &whole[..whole.len() / 2]);
    assert!(matches!(project.try_changes(&tree, &newest), Err(CheckpointError::Corrupt { .. })));
    let before = project.files();
    let restored = project.checkpoints.restore(&tree, &newest, &project.touched);
    assert!(matches!(restored, Err(CheckpointError::Corrupt { .. })));
    assert_eq!(project.files(), before);
    project.remove(&object);
    assert!(project.checkpoints.restore(&tree, &newest, &project.touched).is_err());
    assert_eq!(project.files(), before);
}
