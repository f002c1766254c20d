//! Which lines expressions match.

use std::time::{Duration, Instant};

use super::expression::Expression;
use super::lines::context;
use crate::workspace::files::Root;
use crate::workspace::files::walk::DEPENDENCY_FOLDERS;

fn texts(expression: &str, text: &str) -> Vec<String> {
    let expression = Expression::parse(expression).unwrap();
    let matches = expression.matches(text, 1_000, Instant::now() + Duration::from_secs(9));
    assert!(!matches.gave_up);
    matches.lines.into_iter().map(|(line, _)| text[line].to_owned()).collect()
}

fn is_backtracking(expression: &str) -> bool {
    matches!(Expression::parse(expression).unwrap(), Expression::Backtracking(_))
}

#[test]
fn an_expression_matches_line_by_line() {
    let text = "one\ntwo\r\n\nthree\nfour";
    for (expression, expected) in [
        ("o", vec!["one", "two", "four"]),
        ("^t", vec!["two", "three"]),
        ("[eo]$", vec!["one", "two", "three"]),
        (r"\At", vec!["two", "three"]),
        (r"r\z", vec!["four"]),
        ("^$", vec![""]),
        ("", vec!["one", "two", "", "three", "four"]),
        (r"e\s+f", vec![]),
        (r"e\nt", vec![]),
        (r"e\n", vec!["one", "three"]),
        ("(?s)e.t", vec![]),
        ("[^x]*f", vec!["four"]),
        ("[^o]{4,}", vec!["three"]),
        ("(?i)TWO", vec!["two"]),
        (r"\bt\w+\b", vec!["two", "three"]),
        ("two$", vec!["two"]),
        ("(?:a|four|one)", vec!["one", "four"]),
        // With look-around and back-references.
        ("t(?=w)", vec!["two"]),
        ("(?<!t)h|(?<=t)h", vec!["three"]),
        (r"(e)\1", vec!["three"]),
        ("^(?!t).+$", vec!["one", "four"]),
    ] {
        assert_eq!(texts(expression, text), expected, "{expression}");
    }
    assert!(!is_backtracking(r"\bfoo\(.*\)$"));
    assert!(is_backtracking(r"(a)\1"));
    assert!(texts("x", "").is_empty() && texts("", "").is_empty());
    assert_eq!(texts("", "a\n"), ["a"]);
}

#[test]
fn what_is_no_expression_is_told_so() {
    for expression in ["(", "[a", "*", "a{3000000}", &"a".repeat(5_000), &"(".repeat(3_000), r"\w{900}{900}", "(?="] {
        let Some(error) = Expression::parse(expression).err() else { panic!("{expression:?} was understood") };
        assert_eq!(error.code(), "regex_error");
        assert!(error.to_string().len() < 13_000);
    }
}

#[test]
fn two_lines_stand_around_a_match_and_long_ones_are_cut() {
    let text = "1\r\n2\r\n3\r\n4\r\n5\r\n";
    assert_eq!(context(text, &(6..7), 6), "1\n2\n3\n4\n5");
    assert_eq!(context(text, &(0..1), 0), "1\n2\n3");
    assert_eq!(context(text, &(12..13), 12), "3\n4\n5");
    assert_eq!(context("a", &(0..1), 0), "a");
    assert_eq!(context("\n\na\n\n\n", &(2..3), 2), "\n\na\n\n");
    let long = "ä".repeat(5_000) + "x" + &"ö".repeat(5_000);
    let shown = context(&long, &(0..long.len()), 10_000);
    assert!(shown.contains('x') && shown.starts_with('…') && shown.ends_with('…') && shown.len() < 1_010);
}

struct Tree {
    folder: tempfile::TempDir,
    root: Root,
}

impl Tree {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let root = Root::open(folder.path(), ".state").unwrap();
        Self { folder, root }
    }

    /// Hits as `path:line`.
    fn hits(&self, path: &str, regex: &str, pattern: Option<&str>) -> Vec<String> {
        let hits = self.root.search(path, regex, pattern).unwrap();
        assert!(!hits.cut);
        let below = format!("{}/", self.folder.path().display());
        hits.hits.iter().map(|hit| format!("{}:{}", hit.file.strip_prefix(&below).unwrap(), hit.line)).collect()
    }
}

#[test]
fn files_are_searched_but_not_hidden_binary_and_installed_ones() {
    let mut files: Vec<(String, &[u8])> = vec![
        ("a.txt".to_owned(), b"x\nneedle\n"),
        ("sub/b.py".to_owned(), b"needle\n\nneedle\n"),
        ("sub/latin.txt".to_owned(), b"gr\xfcn needle\n"),
        ("ignored.log".to_owned(), b"needle\n"),
        (".gitignore".to_owned(), b"*.log\nneedle\n"),
        (".git/config".to_owned(), b"needle\n"),
        (".state/x".to_owned(), b"needle\n"),
        ("sub/.hidden/x".to_owned(), b"needle\n"),
        ("binary".to_owned(), b"needle\n\0"),
    ];
    files.extend(DEPENDENCY_FOLDERS.iter().map(|name| (format!("sub/{name}/x.py"), &b"needle\n"[..])));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, content)| (path.as_str(), *content)).collect();
    let tree = Tree::new(&files);
    std::os::unix::fs::symlink("a.txt", tree.folder.path().join("link")).unwrap();
    assert_eq!(
        tree.hits("", "needle", None),
        ["a.txt:2", "ignored.log:1", "sub/b.py:1", "sub/b.py:3", "sub/latin.txt:1"]
    );
    assert_eq!(tree.hits("sub/node_modules", "needle", None), ["sub/node_modules/x.py:1"]);
    assert_eq!(tree.hits("", "needle", Some("*.py")), ["sub/b.py:1", "sub/b.py:3"]);
    for pattern in ["**/*.txt", "{a,latin}.txt", "[al]*.txt"] {
        assert_eq!(tree.hits("", "needle", Some(pattern)), ["a.txt:2", "sub/latin.txt:1"], "{pattern}");
    }
    for pattern in ["sub/*.txt", "./sub/*.txt", "/sub/*.txt", "s*/l*"] {
        assert_eq!(tree.hits("", "needle", Some(pattern)), ["sub/latin.txt:1"], "{pattern}");
    }
    assert!(tree.hits("", "needle", Some("/*.py")).is_empty());
    assert_eq!(tree.hits("sub", "needle", Some("**/*.txt")), ["sub/latin.txt:1"]);
    assert_eq!(tree.hits("", "needle", Some("")).len(), 5);
}

#[test]
fn only_folders_are_searched_with_what_is_an_expression_and_a_glob() {
    let tree = Tree::new(&[("a.txt", b"x\n")]);
    let code = |path, regex, pattern| tree.root.search(path, regex, pattern).unwrap_err().code();
    assert_eq!(code("a.txt", "x", None), "not_a_directory");
    assert_eq!(code("none", "x", None), "not_found");
    assert_eq!(code("", "(", None), "regex_error");
    assert_eq!(code("", "x", Some("[")), "regex_error");
    assert_eq!(code("", "x", Some(&"*a".repeat(2_000))), "regex_error");
}

#[test]
fn hits_are_bounded_by_number_and_size_and_are_the_first_ones() {
    let many = "x\n".repeat(700);
    let long = "y".repeat(900) + "\n";
    let long = long.repeat(400);
    let files: Vec<(String, &[u8])> =
        (0..20).flat_map(|n| [(format!("a{n:02}"), many.as_bytes()), (format!("b{n:02}"), long.as_bytes())]).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, content)| (path.as_str(), *content)).collect();
    let tree = Tree::new(&files);
    for _ in 0..5 {
        let hits = tree.root.search("", "x", None).unwrap();
        assert_eq!((hits.hits.len(), hits.cut), (1_000, true));
        assert!(hits.hits[999].file.ends_with("a01") && hits.hits[999].line == 300);
        let hits = tree.root.search("", "y", None).unwrap();
        let bytes: usize = hits.hits.iter().map(|hit| hit.context.len()).sum();
        assert!(hits.cut && bytes > 900_000 && bytes <= 1_000_000, "{bytes}");
        assert!(hits.hits[0].file.ends_with("b00"));
    }
}

#[test]
fn files_over_ten_megabytes_are_left_out() {
    let tree = Tree::new(&[("small", b"needle")]);
    for (name, size) in [("just", 10_000_000), ("over", 10_000_001)] {
        let mut content = vec![b'\n'; size];
        content[..6].copy_from_slice(b"needle");
        std::fs::write(tree.folder.path().join(name), content).unwrap();
    }
    assert_eq!(tree.hits("", "needle", None), ["just:1", "small:1"]);
}

#[test]
fn an_exploding_expression_ends_in_time() {
    let long = "a".repeat(4_000) + "\n";
    let files: Vec<(String, String)> = vec![
        ("lines".to_owned(), ("a".repeat(60) + "!\n").repeat(5_000)),
        ("long".to_owned(), long.repeat(50)),
        ("one".to_owned(), "a".repeat(3_000_000)),
    ];
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    let tree = Tree::new(&files);
    for expression in [
        "(?=a)(a+)+$(?!b)x?(?<=b)",
        "^(?=(a+)+$)b",
        r"(a*)*\1b",
        r"(?:(?=.*z)a)*b\b(?=c)",
        r"(.*)(.*)(.*)(.*)(.*)\1\2\3\4\5b",
        "(?:a?){1000}a{1000}b",
        "(?:(?:(?:a{0,30}){0,30}){0,4})b",
        "(a|a)*b",
        ".*.*.*.*b",
        r"(\w|[a-z]|\w\w){1,400}b",
    ] {
        let started = Instant::now();
        let answer = tree.root.search_for(Duration::from_millis(500), "", expression, None);
        let spent = started.elapsed();
        assert!(spent.as_secs() < 120, "{expression}: what would take for ever ends");
        if let Err(error) = answer {
            assert_eq!(error.code(), "regex_error");
        }
    }
}
