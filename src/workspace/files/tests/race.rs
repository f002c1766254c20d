//! A folder that is exchanged for a link, again and again, while tools work in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Place, names};

/// The link leads to `target`; `tools` run all the while, and must change nothing in it.
fn exchange(place: &Place, target: &std::path::Path, tools: impl Fn(usize)) -> usize {
    place.put("real/sub/secret.txt", "mine");
    place.link(target, "other");
    let (real, other) = (place.inside.join("real"), place.inside.join("other"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut swaps = 0;
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &real, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        });
        let over = Over(&is_over);
        let until = Instant::now() + Duration::from_millis(1_200);
        let mut round = 0;
        while Instant::now() < until {
            tools(round);
            round += 1;
        }
        drop(over);
        assert!(swapper.join().unwrap() > 1_000);
        round
    })
}

/// Ends the other thread, also when a tool fails the test.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nothing_outside_is_read_written_or_deleted() {
    let place = Place::new();
    std::fs::create_dir(place.outside.join("sub")).unwrap();
    std::fs::write(place.outside.join("sub/secret.txt"), "secret").unwrap();
    let rounds = exchange(&place, &place.outside, |round| {
        if let Ok(text) = place.root.read_text("real/sub/secret.txt") {
            assert_ne!(text.text, "secret");
        }
        if let Ok(hits) = place.root.search("real", "secret", None) {
            assert!(hits.hits.is_empty());
        }
        if let Ok(listing) = place.root.list("real", true, true) {
            assert!(!listing.items.iter().any(|item| item.ends_with("real/secret.txt")), "{listing:?}");
        }
        _ = place.root.write("real/sub/secret.txt", "mine");
        _ = place.root.write(&format!("real/sub/new{}/x", round % 3), "mine");
        _ = place.root.delete(&format!("real/sub/new{}/x", round % 3));
    });
    assert!(rounds > 50, "{rounds}");
    assert_eq!(names(&place.outside), ["secret.txt", "sub"]);
    assert_eq!(names(&place.outside.join("sub")), ["secret.txt"]);
    assert_eq!(std::fs::read_to_string(place.outside.join("sub/secret.txt")).unwrap(), "secret");
}

#[test]
fn nothing_in_a_git_folder_is_written_or_deleted() {
    let place = Place::new();
    place.put(".git/sub/secret.txt", "secret");
    let git = place.inside.join(".git");
    exchange(&place, &git, |round| {
        _ = place.root.write("real/sub/secret.txt", "mine");
        _ = place.root.write(&format!("real/sub/new{round}"), "mine");
        _ = place.root.delete(&format!("real/sub/new{round}"));
    });
    assert_eq!(names(&git.join("sub")), ["secret.txt"]);
    assert_eq!(place.get(".git/sub/secret.txt"), "secret");
}
