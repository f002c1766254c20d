//! What a change shows as its difference.

use super::Place;

#[test]
fn a_change_of_text_has_a_difference_under_absolute_names() {
    let place = Place::new();
    place.put("a.txt", "1\n2\n3\n4\n5\n");
    let change = place.root.write("a.txt", "1\n2\ndrei\n4\n5\n").unwrap();
    let path = place.inside.join("a.txt");
    let path = path.display();
    let diff = change.diff().unwrap();
    assert_eq!(diff.text, format!("--- a{path}\n+++ b{path}\n@@ -1,5 +1,5 @@\n 1\n 2\n-3\n+drei\n 4\n 5\n"));
    assert_eq!((diff.added, diff.removed), (1, 1));
}

#[test]
fn a_new_and_a_deleted_file_have_a_side_that_is_null() {
    let place = Place::new();
    let path = place.inside.join("a.txt");
    let path = path.display();
    let diff = place.root.write("a.txt", "1\n2").unwrap().diff().unwrap();
    assert_eq!(
        diff.text,
        format!("--- /dev/null\n+++ b{path}\n@@ -0,0 +1,2 @@\n+1\n+2\n\\ No newline at end of file\n")
    );
    assert_eq!((diff.added, diff.removed), (2, 0));
    let diff = place.root.delete("a.txt").unwrap().unwrap().diff().unwrap();
    assert_eq!(
        diff.text,
        format!("--- a{path}\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n\\ No newline at end of file\n")
    );
    assert_eq!((diff.added, diff.removed), (0, 2));
}

#[test]
fn what_is_not_text_has_no_difference_and_what_is_equal_an_empty_one() {
    let place = Place::new();
    place.put("nul", "a\0b");
    place.put("latin", b"\xfc");
    assert_eq!(place.root.write("nul", "text").unwrap().diff(), None);
    assert_eq!(place.root.write("latin", "text").unwrap().diff(), None);
    let diff = place.root.write("latin", "text").unwrap().diff().unwrap();
    assert_eq!((diff.text.as_str(), diff.added, diff.removed), ("", 0, 0));
}

#[test]
fn a_file_is_edited_by_blocks_or_left_as_it_is() {
    let place = Place::new();
    let block = |search: &str, more: &str| format!("------- SEARCH\n{search}=======\n{more}+++++++ REPLACE\n");
    place.put("a.txt", "one\r\ntwo\r\nthree");
    let change = place.root.replace("a.txt", &block("two\n", "2\n")).unwrap();
    assert_eq!((change.relative.as_str(), place.get("a.txt").as_str()), ("a.txt", "one\r\n2\r\nthree"));
    assert_eq!(change.diff().map(|diff| (diff.added, diff.removed)), Some((1, 1)));
    let patch = format!("*** Begin Patch\n*** Update File: {}/a.txt\n@@\n-one\n+1\n", place.inside.display());
    place.root.replace("./a.txt", &patch).unwrap();
    assert_eq!(place.get("a.txt"), "1\r\n2\r\nthree");

    let lines: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    place.put("b.txt", &lines);
    place.put("latin", b"gr\xfcn\n");
    place.put("large", vec![b'\n'; 10_000_001]);
    let both = block("line 1\n", "x\n") + &block("nowhere\n", "y\n");
    let error = place.root.replace("b.txt", &both).unwrap_err();
    assert_eq!(error.code(), "no_match");
    let told = error.to_string();
    assert!(told.contains("block 2") && told.ends_with("line 19\nline 20"), "{told}");
    for (path, diff, expected) in [
        ("b.txt", block("line 1\n", "line 1\n"), "no_change"),
        ("b.txt", "nothing".to_owned(), "bad_diff"),
        ("b.txt", patch, "bad_diff"),
        ("b.txt", block("", &("x".repeat(10_000_001) + "\n")), "too_large"),
        ("latin", block("x\n", "y\n"), "decode_error"),
        ("large", block("x\n", "y\n"), "too_large"),
        ("none", block("x\n", "y\n"), "not_found"),
        ("none/x", block("x\n", "y\n"), "not_found"),
        ("b.txt/x", block("x\n", "y\n"), "not_found"),
        ("", block("x\n", "y\n"), "not_a_file"),
    ] {
        assert_eq!(super::code(place.root.replace(path, &diff)), expected, "{path}");
    }
    assert_eq!(place.get("b.txt"), lines);
    assert_eq!(place.names(""), [".state", "a.txt", "b.txt", "large", "latin"]);
}
