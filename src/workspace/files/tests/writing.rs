//! Writing and deleting.

use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::{Place, code};
use crate::workspace::files::Image;

#[test]
fn a_new_file_is_made_with_its_folders() {
    let place = Place::new();
    let change = place.root.write("a/b/c.txt", "neu\n").unwrap();
    assert_eq!(change.path, place.inside.join("a/b/c.txt").to_str().unwrap());
    assert_eq!(change.relative, "a/b/c.txt");
    assert_eq!((change.before, change.after), (Image::Absent, Image::Bytes(b"neu\n".to_vec())));
    assert_eq!(place.get("a/b/c.txt"), "neu\n");
    assert_eq!(place.names("a/b"), ["c.txt"], "no temporary file is left");
    let mode = |path: &str| std::fs::metadata(place.inside.join(path)).unwrap().mode() & 0o777;
    place.put("other", "x");
    assert_eq!(mode("a/b/c.txt"), mode("other"), "as any other new file");
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_permissions() {
    let place = Place::new();
    place.put("run.sh", "old");
    let path = place.inside.join("run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4751)).unwrap();
    let mut reader = std::fs::File::open(&path).unwrap();
    let inode = std::fs::metadata(&path).unwrap().ino();
    let change = place.root.write("run.sh", "new").unwrap();
    assert_eq!(change.before, Image::Bytes(b"old".to_vec()));
    let mut seen = String::new();
    reader.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "old", "who had begun reads on");
    let metadata = std::fs::metadata(&path).unwrap();
    assert_ne!(metadata.ino(), inode);
    assert_eq!(metadata.mode() & 0o7777, 0o751, "without the bits that give away rights");
    assert_eq!(place.names(""), [".state", "run.sh"]);
}

#[test]
fn a_privileged_server_leaves_files_to_their_owners() {
    let place = Place::new();
    place.put("x", "old");
    let path = place.inside.join("x");
    if std::os::unix::fs::chown(&path, Some(1_234), Some(2_345)).is_err() {
        return;
    }
    place.root.write("x", "new").unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (1_234, 2_345));
}

#[test]
fn what_cannot_be_written_leaves_everything_as_it_was() {
    let place = Place::new();
    place.put("file", "x");
    std::fs::create_dir(place.inside.join("folder")).unwrap();
    assert_eq!(code(place.root.write("folder", "x")), "not_a_file");
    assert_eq!(code(place.root.write("new/", "x")), "not_a_file");
    assert_eq!(code(place.root.write("file/x", "x")), "not_a_directory");
    assert_eq!(code(place.root.write("file", &"x".repeat(10_000_001))), "too_large");
    assert_eq!(code(place.root.write(&format!("made/made/{}", "x".repeat(256)), "x")), "outside_workspace");
    assert_eq!(place.names(""), [".state", "file", "folder"]);
    assert_eq!(place.get("file"), "x");
    place.root.write("file", &"x".repeat(10_000_000)).unwrap();
}

/// A full disk is what a limit for the size of files looks like.
#[test]
fn on_a_full_disk_neither_a_temporary_file_nor_a_new_folder_is_left() {
    let Ok(prlimit) = std::process::Command::new("prlimit").arg("--version").output() else { return };
    assert!(prlimit.status.success());
    let name = "workspace::files::tests::writing::on_a_full_disk_neither_a_temporary_file_nor_a_new_folder_is_left";
    let own = std::env::current_exe().unwrap();
    let limits = std::process::Command::new("sh").args(["-c", "ulimit -f"]).output().unwrap();
    if String::from_utf8_lossy(&limits.stdout).trim() == "unlimited" {
        // SIGXFSZ has to be ignored: then the write fails.
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact \"$1\" --nocapture";
        let output = std::process::Command::new("sh").args(["-c", script]).arg(own).arg(name).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let place = Place::new();
    place.put("old", "old");
    assert_eq!(code(place.root.write("a/b/large", &"x".repeat(100_000))), "io_error");
    assert_eq!(code(place.root.write("old", &"x".repeat(100_000))), "io_error");
    assert_eq!(place.names(""), [".state", "old"]);
    assert_eq!(place.get("old"), "old");
}

#[test]
fn deleting_removes_a_file_and_tells_what_it_was() {
    let place = Place::new();
    place.put("a/b", "x\n");
    let change = place.root.delete("a/b").unwrap().unwrap();
    assert_eq!(
        (change.relative.as_str(), &change.before, &change.after),
        ("a/b", &Image::Bytes(b"x\n".to_vec()), &Image::Absent)
    );
    assert!(place.names("a").is_empty(), "the folder stays");
    for path in ["a/b", "none", "none/x", "a/b/c"] {
        assert_eq!(place.root.delete(path).unwrap(), None, "{path}");
    }
    assert_eq!(code(place.root.delete("a")), "not_a_file");
    place.put("file", "x");
    assert_eq!(place.root.delete("file/x").unwrap(), None);
    assert_eq!(place.get("file"), "x");
}

#[test]
fn images_over_one_mebibyte_are_not_kept() {
    let place = Place::new();
    place.put("x", vec![b'x'; (1 << 20) + 1]);
    let change = place.root.write("x", &"y".repeat(1 << 20)).unwrap();
    assert_eq!(change.before, Image::TooLarge);
    assert_eq!(change.after, Image::Bytes(vec![b'y'; 1 << 20]));
    assert_eq!(change.diff(), None);
}
