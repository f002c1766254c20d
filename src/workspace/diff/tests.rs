//! Differences, and what `patch` makes of them.

use std::process::Command;
use std::time::Instant;

use super::*;

fn text(old: &str, new: &str) -> String {
    unified_diff(old, new, "a/x", "b/x").text
}

#[test]
fn three_lines_stand_around_a_change_and_near_changes_share_a_hunk() {
    let old: String = (1..=30).map(|line| format!("{line}\n")).collect();
    let new = old.replace("\n10\n", "\nten\n").replace("\n17\n", "\n").replace("\n25\n", "\n25\nmore\n");
    let expected = "--- a/x\n+++ b/x\n@@ -7,14 +7,13 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n 14\n 15\n 16\n-17\n 18\n 19\n 20\n\
                    @@ -23,6 +22,7 @@\n 23\n 24\n 25\n+more\n 26\n 27\n 28\n";
    assert_eq!(text(&old, &new), expected);
    let far = old.replace("\n10\n", "\nten\n").replace("\n18\n", "\n");
    assert_eq!(text(&old, &far).matches("@@ -").count(), 2);
}

#[test]
fn a_missing_end_of_line_is_told_on_the_side_where_it_is_missing() {
    assert_eq!(text("a\nb", "a\nb\n"), "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
    assert_eq!(text("a\nb\n", "a\nb"), "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n");
    assert_eq!(text("a\nb", "c\nb"), "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n");
}

#[test]
fn carriage_returns_are_kept() {
    assert_eq!(text("a\r\nb\r\n", "a\r\nc\r\n"), "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n");
    assert_eq!(text("a\r\n", "a\n"), "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+a\n");
}

#[test]
fn nothing_on_one_side_has_no_first_line() {
    assert_eq!(text("", "a\n"), "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n");
    assert_eq!(text("a\n", ""), "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-a\n");
    assert_eq!(text("a\n", "a\n"), "");
    assert_eq!(text("", ""), "");
}

#[test]
fn a_name_cannot_end_the_line_of_the_header() {
    let diff = unified_diff("", "a\n", "/dev/null", "b/x\n+++ \"y\"\u{1}");
    assert!(diff.text.starts_with("--- /dev/null\n+++ \"b/x\\n+++ \\\"y\\\"\\001\"\n@@"), "{}", diff.text);
}

/// Random numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn lines(&mut self, count: u64) -> Vec<String> {
        let end = |dice: &mut Self| if dice.roll(5) == 0 { "\r\n" } else { "\n" };
        (0..count)
            .map(|_| format!("{}{}", "abcdefghij".chars().nth(self.roll(10) as usize).unwrap(), end(self)))
            .collect()
    }
}

#[test]
fn patch_makes_the_new_text_of_the_old_one_without_fuzz() {
    if Command::new("patch").arg("--version").output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for round in 0..150 {
        let count = dice.roll(60);
        let old = dice.lines(count);
        let mut new = old.clone();
        for _ in 0..dice.roll(5) {
            let at = dice.roll(new.len() as u64 + 1) as usize;
            let end = (at + dice.roll(6) as usize).min(new.len());
            let more = dice.roll(6);
            new.splice(at..end, dice.lines(more));
        }
        let join = |lines: Vec<String>, cut: bool| {
            let text = lines.concat();
            if cut { text.strip_suffix('\n').unwrap_or(&text).to_owned() } else { text }
        };
        let (old, new) = (join(old, dice.roll(3) == 0), join(new, dice.roll(3) == 0));
        let diff = unified_diff(&old, &new, "a/x", "b/x");
        let marks = |mark: char| diff.text.lines().skip(2).filter(|line| line.starts_with(mark)).count();
        assert_eq!((diff.added, diff.removed), (marks('+'), marks('-')));
        if diff.text.is_empty() {
            assert_eq!(old, new);
            continue;
        }
        std::fs::write(path("x"), &old).unwrap();
        std::fs::write(path("diff"), &diff.text).unwrap();
        let mut patch = Command::new("patch");
        patch.args(["--binary", "--fuzz=0", "--force", "--quiet", "-o"]).args([path("new"), path("x"), path("diff")]);
        let output = patch.output().unwrap();
        assert!(output.status.success(), "round {round}: {output:?}\n{}", diff.text);
        assert_eq!(std::fs::read_to_string(path("new")).unwrap(), new, "round {round}\n{}", diff.text);
    }
}

/// The new text, of the old one and the changes.
fn remade(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let mut made = Vec::new();
    let mut at = 0;
    for change in changes::of(&old, &new) {
        made.extend_from_slice(&old[at..change.old.start]);
        made.extend_from_slice(&new[change.new]);
        at = change.old.end;
    }
    made.extend_from_slice(&old[at..]);
    made.concat()
}

#[test]
fn a_small_change_of_a_large_text_is_a_small_difference() {
    let old: String = (0..30_000)
        .map(|line| format!("{}\n", if line % 3 == 0 { "}".to_owned() } else { line.to_string() }))
        .collect();
    let new = old.replacen("\n1000\n", "\nx\ny\n", 1).replacen("\n20000\n", "\n", 1);
    let diff = unified_diff(&old, &new, "a", "b");
    assert_eq!((diff.added, diff.removed), (2, 2));
}

/// Time must not grow with the square: these are what makes it do so in careless ways.
#[test]
fn large_texts_of_every_kind_are_compared_in_time() {
    let most = 1 << 19;
    let fill = |line: &dyn Fn(usize) -> String| {
        let mut text = String::with_capacity(most + 20);
        for number in 0.. {
            if text.len() >= most {
                break;
            }
            text.push_str(&line(number));
        }
        text
    };
    let unique = |mark: char, step: usize| {
        move |n: usize| if n.is_multiple_of(step) { format!("{mark}{n}\n") } else { format!("{n}\n") }
    };
    let pairs: Vec<(&str, String, String)> = vec![
        ("empty lines", "\n".repeat(most), "\n".repeat(most / 2)),
        ("two lines", "a\nb\n".repeat(most / 4), "b\na\na\n".repeat(most / 6)),
        ("nothing in common", fill(&|n| format!("a{n}\n")), fill(&|n| format!("b{n}\n"))),
        ("every second line", fill(&unique('x', 2)), fill(&unique('y', 2))),
        ("every fifth line", fill(&unique('x', 5)), fill(&unique('y', 5))),
        ("backwards", fill(&|n| format!("{n}\n")), fill(&|n| format!("{}\n", 100_000usize.saturating_sub(n)))),
        ("one long line", "x".repeat(most), "y".repeat(most)),
        ("blocks", fill(&|n| format!("{}\n", n % 70)), fill(&|n| format!("{}\n", n * 7 % 71))),
        (
            "random",
            {
                let mut d = Dice(1);
                d.lines(most as u64 / 3).concat()
            },
            {
                let mut d = Dice(2);
                d.lines(most as u64 / 3).concat()
            },
        ),
    ];
    for (name, old, new) in &pairs {
        let started = Instant::now();
        let diff = text(old, new);
        let spent = started.elapsed();
        assert!(!diff.is_empty());
        assert_eq!(&remade(old, new), new, "{name}");
        assert!(spent.as_secs() < 120, "{name}: what would take for ever ends");
    }
}
