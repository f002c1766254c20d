//! Blocks and patches, as text in and text out.

use std::time::Instant;

use super::*;

fn replaced(old: &str, diff: &str) -> Result<String, String> {
    let blocks = parse(diff, |path| path == "x.txt").map_err(|reason| format!("bad: {reason}"))?;
    apply::apply(old, &blocks).map_err(|failure| match failure {
        apply::Failure::NoMatch(block) => format!("no match: {block}"),
        apply::Failure::Bad(reason) => format!("bad: {reason}"),
    })
}

fn block(search: &str, replacement: &str) -> String {
    format!("------- SEARCH\n{search}=======\n{replacement}+++++++ REPLACE\n")
}

fn is(old: &str, diff: &str, new: &str) {
    assert_eq!(replaced(old, diff).as_deref(), Ok(new), "{diff}");
}

fn is_bad(old: &str, diff: &str) {
    let failure = replaced(old, diff).unwrap_err();
    assert!(failure.starts_with("bad: "), "{failure}");
}

#[test]
fn lines_are_found_exactly_and_only_whole_ones_before_others() {
    is("a\nb\nc\n", &block("b\n", "B\n"), "a\nB\nc\n");
    is("a\nb\nc\n", &block("a\n", "A\n"), "A\nb\nc\n");
    is("a\nb\nc\n", &block("c\n", "C\n"), "a\nb\nC\n");
    is("a\nb\nc\n", &block("b\n", ""), "a\nc\n");
    is("a\nb\nc\n", &block("b\n", "1\n2\n3\n"), "a\n1\n2\n3\nc\n");
    is("a\nb\nc\n", &block("a\nb\nc\n", ""), "");
    is("ab\nb\nbc\n", &block("b\n", "x\n"), "ab\nx\nbc\n");
    is("aa\naa\nb\n", &block("aa\nb\n", "x\n"), "aa\nx\n");
    is("b\nb\n", &block("b\n", "x\n"), "x\nb\n");
    is("a\n\n\nb\n", &block("\nb\n", "x\n"), "a\n\nx\n");
}

#[test]
fn then_without_blanks_around_lines() {
    is("  a\n\tb  \nc\n", &block("a\nb\n", "  x\n"), "  x\nc\n");
    is("  a\na\n", &block("a\n", "x\n"), "  a\nx\n");
    is("a\n  a\n  b\n", &block("a\nb\n", "x\n"), "a\nx\n");
    is("x\n x\n x\n y\n", &block("x\nx\ny\n", "z\n"), "x\nz\n");
}

#[test]
fn then_by_the_first_and_the_last_line_from_three_lines_on() {
    is("f() {\n  old\n}\nrest\n", &block("f() {\n  wrong\n}\n", "g\n"), "g\nrest\n");
    assert_eq!(replaced("f() {\n}\n", &block("f() {\nwrong\n", "g\n")), Err("no match: 0".to_owned()));
    assert_eq!(replaced("f() {\n a\n b\n}\n", &block("f() {\nwrong\n}\n", "g\n")), Err("no match: 0".to_owned()));
}

#[test]
fn then_as_a_part_of_a_line_that_stands_there_once() {
    is("let a = 1;\nlet b = 2;\n", &block("b = 2\n", "b = 3\n"), "let a = 1;\nlet b = 3;\n");
    is("let a = 1;\r\nlet b = 2;\r\nc\r\n", &block("1;\nlet b\n", "5;\nlet c\n"), "let a = 5;\r\nlet c = 2;\r\nc\r\n");
    assert_eq!(replaced("let a = 1;\nlet b = 1;\n", &block("= 1\n", "= 2\n")), Err("no match: 0".to_owned()));
}

#[test]
fn an_empty_search_is_the_whole_file() {
    is("a\nb\n", &block("", "x\n"), "x\n");
    is("a\nb", &block("", "x\ny\n"), "x\ny");
    is("", &block("", "x\n"), "x\n");
    is("a\r\n", &block("", "x\ny\n"), "x\r\ny\r\n");
    is_bad("a\nb\n", &(block("", "x\n") + &block("a\n", "y\n")));
}

#[test]
fn blocks_stand_in_any_order_and_are_looked_for_in_the_text_as_it_was() {
    is("a\nb\nc\n", &(block("c\n", "a\n") + &block("a\n", "c\n")), "c\nb\na\n");
    is("a\nb\n", &(block("a\n", "b\n") + "\n" + &block("b\n", "x\n")), "b\nx\n");
    is_bad("a\nb\nc\n", &(block("a\nb\n", "x\n") + &block("b\nc\n", "y\n")));
    is_bad("a\na\n", &(block("a\n", "x\n") + &block("a\n", "y\n")));
    assert_eq!(replaced("a\n", &(block("a\n", "x\n") + &block("q\n", "y\n"))), Err("no match: 1".to_owned()));
}

#[test]
fn line_ends_stay() {
    is("a\r\nb\r\nc\r\n", &block("b\n", "1\n2\n"), "a\r\n1\r\n2\r\nc\r\n");
    is("a\nb\nc\n", &block("b\r\n", "1\r\n2\r\n"), "a\n1\n2\nc\n");
    is("a\r\nb\nc\r\n", &block("b\n", "1\n2\n"), "a\r\n1\n2\nc\r\n");
    is("a\r\nb", &block("b\n", "1\n2\n"), "a\r\n1\r\n2");
    is("a\nb", &block("b\n", "1\n"), "a\n1");
    is("a\nb", &block("b\n", ""), "a");
    is("a\nb", &block("a\n", ""), "b");
    is("a\nb\n", &block("b\n", ""), "a\n");
    is("a", &block("a\n", "b\n"), "b");
    is("a\nb\n", &block("b\n", "1\r\r\n"), "a\n1\n");
}

#[test]
fn all_marks_are_understood() {
    for diff in [
        "--- SEARCH\nb\n===\nx\n+++ REPLACE",
        "------------ SEARCH>\nb\n=========\nx\n++++ REPLACE<\n",
        "<<<<<<< SEARCH\nb\n=======\nx\n>>>>>>> REPLACE\n",
        "<<<<<<< SEARCH\r\nb\r\n=======\r\nx\r\n>>>>>>> REPLACE\r\n",
        "------- SEARCH\nb\n+++++++ REPLACE\nx\n",
        "------- SEARCH\nb\n+++++++ REPLACE\nx",
        "------- SEARCH\nb\n+++++++ REPLACE\nx\n+++++++ REPLACE\n",
        "Here it is:\n```diff\n------- SEARCH\nb\n=======\nx\n+++++++ REPLACE\n```\n",
        "```\n------- SEARCH\nb\n+++++++ REPLACE\nx\n```\n",
    ] {
        is("a\nb\nc\n", diff, "a\nx\nc\n");
    }
    is(
        "a\nb\nc\n",
        "------- SEARCH\na\n+++++++ REPLACE\n1\n\n------- SEARCH\nc\n+++++++ REPLACE\n3\n\n",
        "1\nb\n3\n\n",
    );
}

#[test]
fn a_line_of_equal_signs_may_underline_a_heading() {
    is(
        "Title\n=====\ntext\n",
        "------- SEARCH\nTitle\n=====\n=======\nNew\n=====\n+++++++ REPLACE\n",
        "New\n=====\ntext\n",
    );
}

#[test]
fn a_mark_between_that_may_be_any_of_several_changes_nothing() {
    let conflict = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\n";
    is_bad(conflict, &block(conflict, "both\n"));
    is_bad("Install\n=======\n", "------- SEARCH\nInstall\n=======\n=======\nx\n+++++++ REPLACE\n");
    is_bad("a\n====\n", "------- SEARCH\na\n====\n=====\nx\n+++++++ REPLACE\n");
    is(conflict, &format!("--------- SEARCH\n{conflict}=========\nboth\n+++++++ REPLACE\n"), "both\n");
}

#[test]
fn what_is_no_block_is_told_so() {
    for diff in [
        "",
        "just words",
        "------- SEARCH\na\n=======\nx\n",
        "------- SEARCH\na\n",
        "-- SEARCH\na\n==\nx\n++ REPLACE\n",
        "------- SEARCH\na\n=======\nx\n+++++++ REPLACE\nstray\n",
        "*** Begin Patch\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: other.txt\n@@\n-a\n+b\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: x.txt\n@@\n-a\n+b\n*** Update File: y.txt\n@@\n-a\n+b\n*** End Patch\n",
        "*** Begin Patch\n*** Delete File: x.txt\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: x.txt\n@@\n+b\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: x.txt\n@@\na\n*** End Patch\n",
        &block("a\n", "b\n").repeat(101),
    ] {
        is_bad("a\n", diff);
    }
}

#[test]
fn a_patch_is_applied_by_its_hunks() {
    let old = "fn a() {\n    one\n}\n\nfn b() {\n    one\n}\n";
    let patch = |hunks: &str| format!("*** Begin Patch\n*** Update File: x.txt\n{hunks}*** End Patch\n");
    is(old, &patch("@@\n fn a() {\n-    one\n+    two\n }\n"), &old.replacen("one", "two", 1));
    is(old, &patch("@@ fn b() {\n-    one\n+    two\n"), "fn a() {\n    one\n}\n\nfn b() {\n    two\n}\n");
    is(old, &patch("@@ fn b() {\n+    zero\n"), "fn a() {\n    one\n}\n\nfn b() {\n    zero\n    one\n}\n");
    is(
        old,
        &patch("@@ -5,3 +5,3 @@\n fn b() {\n-    one\n+    two\n }\n\n"),
        "fn a() {\n    one\n}\n\nfn b() {\n    two\n}\n",
    );
    is(old, &patch(" fn b() {\n-    one\n+    two\n"), "fn a() {\n    one\n}\n\nfn b() {\n    two\n}\n");
    is(
        old,
        &patch("@@\n fn a() {\n-    one\n+    1\n@@\n fn b() {\n-    one\n+    2\n*** End of File\n"),
        "fn a() {\n    1\n}\n\nfn b() {\n    2\n}\n",
    );
    is("a\r\nb", "*** Update File: x.txt\n@@ b\n+c\n", "a\r\nb\r\nc");
    is("a\nb", "*** Update File: x.txt\n@@ b\n+c\n@@ b\n+d\n", "a\nb\nc\nd");
    is("a\nb", "*** Update File: x.txt\n@@\n-b\n+x\n@@ b\n+c\n", "a\nx\nc");
    let behind_the_end = "*** Update File: x.txt\n@@ b\n-\n+c\n";
    assert_eq!(replaced("a\nb", behind_the_end), Err("no match: 0".to_owned()));
    assert_eq!(replaced(old, &patch("@@\n-three\n+four\n")), Err("no match: 0".to_owned()));
}

#[test]
fn a_hunk_stands_where_its_patch_says() {
    let old = "class A:\n  def run():\n    go\n\nclass B:\n  def run():\n    go\n";
    let patch = |hunks: &str| format!("*** Begin Patch\n*** Update File: x.txt\n{hunks}*** End Patch\n");
    let second = "class A:\n  def run():\n    go\n\nclass B:\n  def run():\n    stop\n";
    for hunks in [
        "@@ class B:\n@@   def run():\n-    go\n+    stop\n",
        "@@ class B:\n   def run():\n-    go\n+    stop\n",
        "@@\n-    go\n+    stop\n*** End of File\n",
        "@@\n class B:\n@@\n-    go\n+    stop\n",
    ] {
        is(old, &patch(hunks), second);
    }
    is("a\nb\n", &patch("@@\n+c\n*** End of File\n"), "a\nb\nc\n");
    is("a\nb\n", &patch("@@\n-b\n+c\n@@\n-a\n+d\n"), "d\nc\n");
    for nowhere in ["@@ class C:\n-    go\n+    stop\n", "@@ class B:\n@@ class A:\n-    go\n+    stop\n"] {
        assert_eq!(replaced(old, &patch(nowhere)), Err("no match: 0".to_owned()));
    }
}

#[test]
fn the_head_of_a_file_is_bounded() {
    let text = ("ä".repeat(1_000) + "\n").repeat(100);
    assert_eq!(head(&text).lines().count(), HEAD_LINES);
    assert!(head(&text).len() <= HEAD_LINES * (HEAD_LINE_BYTES + 1));
}

#[test]
fn many_blocks_in_a_large_text_that_repeats_take_no_square_of_time() {
    let old = "x\n".repeat(500_000);
    let search = "x\n".repeat(2_000) + " y\n";
    let diff = block(&search, "z\n").repeat(20);
    let started = Instant::now();
    assert_eq!(replaced(&old, &diff), Err("no match: 0".to_owned()));
    let old = "x\n".repeat(500_000) + "y\n";
    is_bad(&old, &diff);
    let long = "a".repeat(1_000_000);
    assert_eq!(replaced(&long, &block(&("a".repeat(500_000) + "b\n"), "z\n")), Err("no match: 0".to_owned()));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
