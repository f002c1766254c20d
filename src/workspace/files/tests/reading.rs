//! Reading.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::time::Instant;

use super::{Place, code, pipe};

#[test]
fn text_is_read_as_it_is() {
    let place = Place::new();
    place.put("a/b.txt", "eins\r\nzwei ä\n");
    let text = place.root.read_text("a/b.txt").unwrap();
    assert_eq!(text.path, place.inside.join("a/b.txt").to_str().unwrap());
    assert_eq!((text.text.as_str(), text.cut), ("eins\r\nzwei ä\n", false));
    place.put("empty", "");
    assert_eq!(place.root.read_text("empty").unwrap().text, "");
}

#[test]
fn of_a_large_file_one_megabyte_is_read_and_no_character_is_torn() {
    let place = Place::new();
    let file = std::fs::File::create(place.inside.join("sparse")).unwrap();
    file.set_len(30_000_000_000).unwrap();
    let started = Instant::now();
    let text = place.root.read_text("sparse").unwrap();
    assert_eq!((text.text.len(), text.cut), (1_000_000, true));
    assert!(started.elapsed().as_secs() < 2, "not all of it is read");
    place.put("umlauts", "aä".to_owned() + &"ä".repeat(600_000));
    let text = place.root.read_text("umlauts").unwrap();
    assert_eq!((text.text.len(), text.cut), (999_999, true));
    place.put("just", "x".repeat(1_000_000));
    assert!(!place.root.read_text("just").unwrap().cut);
}

#[test]
fn what_is_not_utf_8_is_told_so() {
    let place = Place::new();
    place.put("latin", b"gr\xfc\xdfe\n");
    place.put("half", b"gr\xc3");
    assert_eq!(code(place.root.read_text("latin")), "decode_error");
    assert_eq!(code(place.root.read_text("half")), "decode_error");
}

#[test]
fn what_is_no_file_is_told_so_and_never_waited_for() {
    let place = Place::new();
    pipe(&place.inside.join("pipe"));
    let _listener = UnixListener::bind(place.inside.join("socket")).unwrap();
    place.put("file", "x");
    for path in ["pipe", "socket", "", ".", "file/"] {
        assert_eq!(code(place.root.read_text(path)), "not_a_file", "{path}");
        assert_eq!(code(place.root.write(path, "x")), "not_a_file", "{path}");
        assert_eq!(code(place.root.delete(path)), "not_a_file", "{path}");
    }
    for path in ["none", "none/x", "file/x", "pipe/x"] {
        assert_eq!(code(place.root.read_text(path)), "not_found", "{path}");
    }
    assert_eq!(place.names(""), [".state", "file", "pipe", "socket"]);
}

#[test]
fn a_device_is_no_file() {
    let root = crate::workspace::files::Root::open(std::path::Path::new("/dev"), ".state").unwrap();
    assert_eq!(code(root.read_text("zero")), "not_a_file");
    assert_eq!(code(root.write("zero", "x")), "not_a_file");
    assert_eq!(code(root.delete("null")), "not_a_file");
}

/// As root nothing is refused: then the same test is run once more as nobody.
#[test]
fn permissions_are_respected() {
    if rustix::process::geteuid().is_root() {
        let own = std::env::current_exe().unwrap();
        let mut again = std::process::Command::new(own);
        again.args(["--exact", "workspace::files::tests::reading::permissions_are_respected", "--nocapture"]);
        // Where nobody may not even start the test, there is nothing to see.
        if let Ok(output) = again.uid(65_534).gid(65_534).current_dir("/tmp").output() {
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && told.contains("1 passed"), "{told}");
        }
        return;
    }
    let place = Place::new();
    let set = |path: &str, mode| {
        std::fs::set_permissions(place.inside.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    place.put("closed", "x");
    place.put("fixed", "x");
    place.put("folder/file", "x");
    place.put("dark/file", "x");
    set("closed", 0o000);
    set("fixed", 0o444);
    set("folder", 0o555);
    set("dark", 0o000);
    let block = "------- SEARCH\nx\n=======\ny\n+++++++ REPLACE\n";
    assert_eq!(code(place.root.read_text("closed")), "permission_denied");
    assert_eq!(code(place.root.write("closed", "y")), "permission_denied");
    assert_eq!(code(place.root.write("fixed", "y")), "permission_denied");
    assert_eq!(code(place.root.replace("fixed", block)), "permission_denied");
    assert_eq!(code(place.root.write("folder/file", "y")), "permission_denied");
    assert_eq!(code(place.root.write("folder/new/file", "y")), "permission_denied");
    assert_eq!(code(place.root.delete("folder/file")), "permission_denied");
    assert_eq!(code(place.root.read_text("dark/file")), "permission_denied");
    assert_eq!(code(place.root.list("dark", false, false)), "permission_denied");
    assert_eq!(place.root.list("", true, false).unwrap().items.len(), 5, "what cannot be read is passed over");
    set("folder", 0o755);
    set("dark", 0o755);
    assert_eq!((place.get("fixed"), place.get("folder/file")), ("x".to_owned(), "x".to_owned()));
}
