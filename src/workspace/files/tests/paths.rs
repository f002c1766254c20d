//! Paths that are refused, by every tool.

use super::{Place, code};

/// The codes of read, write, replace, delete, list and search.
fn codes(place: &Place, path: &str) -> [&'static str; 6] {
    let root = &place.root;
    [
        code(root.read_text(path)),
        code(root.write(path, "x")),
        code(root.replace(path, "------- SEARCH\n=======\nx\n+++++++ REPLACE\n")),
        code(root.delete(path)),
        code(root.list(path, false, true)),
        code(root.search(path, "x", None)),
    ]
}

#[test]
fn nothing_outside_of_the_root_is_named_by_any_tool() {
    let place = Place::new();
    let outside = place.outside.join("secret.txt");
    for path in
        ["..", "../outside/secret.txt", outside.to_str().unwrap(), "/etc", "~", "~/x", "a\0b", &"x/".repeat(3_000)]
    {
        assert_eq!(codes(&place, path), ["outside_workspace"; 6], "{path:?}");
    }
    assert_eq!(place.names(""), [".state"]);
}

#[test]
fn the_state_folder_is_protected_from_every_tool_in_any_letter_case() {
    let place = Place::new();
    for path in [".state", ".state/secret", ".STATE/secret", "a/../.state/secret", ".State/new/x", "./.state/"] {
        assert_eq!(codes(&place, path), ["protected"; 6], "{path:?}");
    }
    let absolute = place.inside.join(".state/secret");
    assert_eq!(codes(&place, absolute.to_str().unwrap()), ["protected"; 6]);
    // Only at the top: elsewhere it is a folder like others.
    place.root.write("sub/.state/x", "x").unwrap();
    assert_eq!(place.get("sub/.state/x"), "x");
}

#[test]
fn no_tool_writes_below_a_git_folder_but_reading_there_works() {
    let place = Place::new();
    place.put(".git/config", "[core]\n");
    place.put("sub/.git", "gitdir: elsewhere\n");
    for path in [".git", ".git/config", ".GIT/config", ".Git/hooks/x", "sub/.git", "sub/.gIt/x", "nowhere/.git/x"] {
        let [_, write, replace, delete, list, search] = codes_but_read(&place, path);
        assert_eq!([write, replace, delete, list, search], ["protected"; 5], "{path:?}");
    }
    assert_eq!(place.root.read_text(".git/config").unwrap().text, "[core]\n");
    assert_eq!(place.names("").len(), 3, "no folder was made");
    place.root.write(".gitignore", "x\n").unwrap();
    place.root.write("a.git/x", "x\n").unwrap();
}

fn codes_but_read(place: &Place, path: &str) -> [&'static str; 6] {
    let root = &place.root;
    [
        "",
        code(root.write(path, "x")),
        code(root.replace(path, "------- SEARCH\n=======\nx\n+++++++ REPLACE\n")),
        code(root.delete(path)),
        code(root.list(path, false, true)),
        code(root.search(path, "x", None)),
    ]
}

#[test]
fn the_root_may_be_named_by_a_link_and_absolute_paths_work_either_way() {
    let place = Place::new();
    place.put("a.txt", "a");
    let link = place.outside.join("link");
    std::os::unix::fs::symlink(&place.inside, &link).unwrap();
    let root = crate::workspace::files::Root::open(&link, ".state").unwrap();
    for own in [&link, &place.inside] {
        let text = root.read_text(own.join("a.txt").to_str().unwrap()).unwrap();
        assert_eq!((text.path.as_str(), text.text.as_str()), (link.join("a.txt").to_str().unwrap(), "a"));
    }
}

#[test]
fn a_root_has_to_be_a_folder() {
    let place = Place::new();
    place.put("a.txt", "a");
    let open = |name: &str| crate::workspace::files::Root::open(&place.inside.join(name), ".state");
    assert_eq!(code(open("a.txt")), "not_a_directory");
    assert_eq!(code(open("nowhere")), "not_found");
}

#[test]
fn errors_are_lower_case_without_a_full_stop_and_name_the_path_as_it_was_asked_for() {
    let place = Place::new();
    let error = place.root.read_text("./no/such.txt").unwrap_err().to_string();
    assert_eq!(error, "there is no \"./no/such.txt\"");
}
