//! Links of every kind.

use super::{Place, code, names};
use crate::workspace::files::Image;

#[test]
fn a_link_that_leads_outside_is_followed_by_no_tool() {
    let place = Place::new();
    place.put("sub/x", "x");
    place.link("../outside/secret.txt", "file");
    place.link(place.outside.join("secret.txt"), "absolute");
    place.link("../outside", "folder");
    place.link("../../outside", "sub/folder");
    place.link("../outside/new.txt", "dangling");
    place.link("/proc/self/root/etc", "magic");
    place.link("/proc/self/cwd", "cwd");
    place.link("sub/../..", "up");
    place.link("folder", "twice");
    for path in [
        "file",
        "absolute",
        "folder/secret.txt",
        "sub/folder/secret.txt",
        "dangling",
        "magic/passwd",
        "cwd/x",
        "up/outside/secret.txt",
        "twice/secret.txt",
    ] {
        let root = &place.root;
        assert_eq!(code(root.read_text(path)), "outside_workspace", "{path}");
        assert_eq!(code(root.write(path, "x")), "outside_workspace", "{path}");
        assert_eq!(code(root.replace(path, "------- SEARCH\n=======\nx\n+++++++ REPLACE\n")), "outside_workspace");
    }
    for path in ["folder", "sub/folder", "magic", "cwd", "up", "twice"] {
        assert_eq!(code(place.root.list(path, true, true)), "outside_workspace", "{path}");
        assert_eq!(code(place.root.search(path, "secret", None)), "outside_workspace", "{path}");
        assert_eq!(code(place.root.delete(&format!("{path}/secret.txt"))), "outside_workspace", "{path}");
    }
    assert_eq!(names(&place.outside), ["secret.txt"]);
    assert_eq!(std::fs::read_to_string(place.outside.join("secret.txt")).unwrap(), "secret");
}

#[test]
fn a_link_that_stays_inside_is_read_and_written_through() {
    let place = Place::new();
    place.put("real/a.txt", "old\n");
    place.link("real", "folder");
    place.link("../real/a.txt", "sub/file");
    place.link(place.inside.join("real/a.txt"), "absolute");
    place.link("folder/a.txt", "twice");
    for path in ["folder/a.txt", "sub/file", "absolute", "twice"] {
        let text = place.root.read_text(path).unwrap();
        assert_eq!((text.path, text.text), (place.inside.join(path).to_str().unwrap().to_owned(), "old\n".to_owned()));
    }
    for path in ["folder/a.txt", "sub/file", "absolute", "twice"] {
        let change = place.root.write(path, path).unwrap();
        assert_eq!(change.relative, "real/a.txt", "what changed is the target");
        assert_eq!(place.get("real/a.txt"), path);
    }
    assert!(place.inside.join("absolute").is_symlink() && place.inside.join("sub/file").is_symlink());
    let listing = place.root.list("folder", false, false).unwrap();
    assert_eq!(listing.items, [place.inside.join("folder/a.txt").to_str().unwrap()]);
    place.root.write("folder/new/b.txt", "b").unwrap();
    assert_eq!(place.get("real/new/b.txt"), "b");
}

#[test]
fn a_link_to_nothing_inside_becomes_a_file_there() {
    let place = Place::new();
    place.link("later.txt", "link");
    place.link("no/folder/x", "deep");
    assert_eq!(code(place.root.read_text("link")), "not_found");
    assert_eq!(place.root.write("link", "x").unwrap().relative, "later.txt");
    assert_eq!(place.get("later.txt"), "x");
    assert_eq!(code(place.root.write("deep", "x")), "not_found", "folders are made only where they were asked for");
    assert_eq!(place.names(""), [".state", "deep", "later.txt", "link"]);
}

#[test]
fn deleting_a_link_leaves_its_target() {
    let place = Place::new();
    place.put("real/a", "a");
    place.link("real/a", "file");
    place.link("real", "folder");
    place.link("../outside/secret.txt", "outside");
    place.link("nowhere", "dangling");
    place.link("circle", "circle");
    for path in ["file", "folder", "outside", "dangling", "circle"] {
        let change = place.root.delete(path).unwrap().unwrap();
        assert_eq!((change.relative.as_str(), &change.before, change.diff()), (path, &Image::Link, None));
    }
    assert_eq!(place.names(""), [".state", "real"]);
    assert_eq!(place.get("real/a"), "a");
    assert_eq!(names(&place.outside), ["secret.txt"]);
}

#[test]
fn links_in_a_circle_lead_nowhere() {
    let place = Place::new();
    place.link("b", "a");
    place.link("a", "b");
    place.link("c/c", "c");
    for path in ["a", "b", "a/x", "c"] {
        assert_eq!(code(place.root.read_text(path)), "not_found", "{path}");
        assert_eq!(code(place.root.write(path, "x")), "not_found", "{path}");
    }
}

#[test]
fn what_is_protected_is_protected_through_links_too() {
    let place = Place::new();
    place.put(".git/config", "[core]\n");
    place.put(".git/hooks/sample", "x");
    place.put("sub/x", "x");
    place.link(".git/hooks", "hooks");
    place.link(".git/config", "config");
    place.link(".git", "repository");
    place.link(place.inside.join(".git"), "absolute");
    place.link("../.git/hooks/new", "sub/dangling");
    place.link("repository/hooks", "twice");
    place.link("sub/../.git", "around");
    for path in [
        "hooks/post-commit",
        "config",
        "repository/config",
        "repository/new/x",
        "absolute/config",
        "sub/dangling",
        "twice/x",
        "around/config",
    ] {
        assert_eq!(code(place.root.write(path, "x")), "protected", "{path}");
        assert_eq!(
            code(place.root.replace(path, "------- SEARCH\n=======\nx\n+++++++ REPLACE\n")),
            "protected",
            "{path}"
        );
    }
    for path in ["hooks/sample", "repository/config", "twice/sample", "around/config"] {
        assert_eq!(code(place.root.delete(path)), "protected", "{path}");
    }
    assert_eq!(place.root.read_text("config").unwrap().text, "[core]\n");
    assert_eq!(code(place.root.list("repository", true, true)), "protected");
    place.link(".state", "state");
    place.link("state/secret", "secret");
    place.link("sub/../.state/secret", "secret2");
    for path in ["state/secret", "secret", "secret2"] {
        assert_eq!(code(place.root.read_text(path)), "protected", "{path}");
        assert_eq!(code(place.root.write(path, "x")), "protected", "{path}");
    }
    assert_eq!(code(place.root.list("state", true, true)), "protected");
    assert_eq!(code(place.root.search("state", "secret", None)), "protected");
    assert_eq!(
        (place.names(".git/hooks"), place.get(".git/config")),
        (vec!["sample".to_owned()], "[core]\n".to_owned())
    );
    assert_eq!(place.get(".state/secret"), "secret");
}

#[test]
fn a_root_that_is_reached_by_a_link_inside_of_it_still_hides_its_state() {
    let place = Place::new();
    place.put("sub/x", "x");
    place.link("..", "sub/up");
    let listing = place.root.list("sub/up", false, true).unwrap();
    assert_eq!(listing.items, [place.inside.join("sub/up/sub").to_str().unwrap()]);
    assert!(place.root.search("sub/up", "secret", None).unwrap().hits.is_empty());
    assert_eq!(code(place.root.read_text("sub/up/.state/secret")), "protected");
}
