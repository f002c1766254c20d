//! Listing.

use super::{Place, code, pipe};

/// What is listed, from the root on.
fn items(place: &Place, path: &str, recursive: bool, hidden: bool) -> Vec<String> {
    let listing = place.root.list(path, recursive, hidden).unwrap();
    assert!(!listing.cut);
    let below = format!("{}/", place.inside.display());
    listing.items.iter().map(|item| item.strip_prefix(&below).unwrap().to_owned()).collect()
}

#[test]
fn a_folder_is_listed_by_name_with_its_folders_and_links() {
    let place = Place::new();
    place.put("b/c.txt", "");
    place.put("b-d.txt", "");
    place.put("a.txt", "");
    place.put(".hidden", "");
    place.put(".config/x", "");
    place.put(".git/config", "");
    place.put("b/.GIT/config", "");
    place.put("node_modules/x/y.js", "");
    place.put("b/target/debug", "");
    place.put("z/target", "a file of that name is none of a tool");
    place.link("../outside", "link");
    place.link("b", "link2");
    pipe(&place.inside.join("pipe"));
    assert_eq!(items(&place, "", false, false), ["a.txt", "b", "b-d.txt", "link", "link2", "pipe", "z"]);
    assert_eq!(
        items(&place, ".", true, false),
        ["a.txt", "b", "b-d.txt", "b/c.txt", "link", "link2", "pipe", "z", "z/target"]
    );
    assert_eq!(
        items(&place, "", true, true),
        [
            ".config",
            ".config/x",
            ".hidden",
            "a.txt",
            "b",
            "b-d.txt",
            "b/c.txt",
            "link",
            "link2",
            "pipe",
            "z",
            "z/target"
        ]
    );
    assert_eq!(items(&place, "node_modules", true, false), ["node_modules/x", "node_modules/x/y.js"]);
    assert_eq!(items(&place, "node_modules/x", true, false), ["node_modules/x/y.js"]);
    assert_eq!(items(&place, ".config", true, false), [".config/x"]);
    assert_eq!(place.root.list("b", false, false).unwrap().path, place.inside.join("b").to_str().unwrap());
}

#[test]
fn only_folders_can_be_listed() {
    let place = Place::new();
    place.put("file", "");
    assert_eq!(code(place.root.list("file", false, false)), "not_a_directory");
    assert_eq!(code(place.root.list("file/x", false, false)), "not_a_directory");
    assert_eq!(code(place.root.list("none", false, false)), "not_found");
    assert_eq!(code(place.root.list("none/x", false, false)), "not_found");
}

#[test]
fn of_too_many_names_those_of_upper_levels_are_told() {
    let place = Place::new();
    for number in 0..60 {
        for inner in 0..100 {
            let path = place.inside.join(format!("a{number:02}"));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::File::create(path.join(format!("{inner:02}"))).unwrap();
        }
    }
    place.put("z.txt", "");
    let listing = place.root.list("", true, false).unwrap();
    assert_eq!((listing.items.len(), listing.cut), (5_000, true));
    assert!(listing.items.iter().any(|item| item.ends_with("/z.txt")));
    assert!(listing.items.is_sorted());
    assert!(!place.root.list("a00", true, false).unwrap().cut);
}

#[test]
fn a_deep_tree_and_names_that_are_not_utf_8_are_listed() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let deep = "d/".repeat(180);
    std::fs::create_dir_all(place.inside.join(&deep)).unwrap();
    assert!(place.root.list("", true, false).unwrap().cut);
    std::fs::remove_dir_all(place.inside.join("d")).unwrap();
    std::fs::write(place.inside.join(std::ffi::OsStr::from_bytes(b"gr\xfcn")), "").unwrap();
    assert_eq!(items(&place, "", true, false), ["gr\u{fffd}n"]);
}
