//! Changed files as a user of the page has them: every case is a function of `tests/peers/frontends/workspace.mjs`.

use serde_json::json;
use tokio::sync::Notify;

use super::visit;
use crate::support::model::{calls, says};
use crate::workspace::Coding;

#[tokio::test]
async fn files_are_looked_at_approved_taken_back_and_restored() {
    let write =
        |id: &str, path: &str, content: &str| calls(id, "write_to_file", &json!({"path": path, "content": content}));
    let turns = vec![
        write("c1", "a.txt", "one\nTWO\nthree\n"),
        says("Done."),
        write("c2", "a.txt", "one\nTWO\n3\n"),
        write("c3", "b/new.txt", "new\n"),
        says("Done again."),
    ];
    let coding = Coding::with(&[("a.txt", "one\ntwo\nthree\n")], &[], turns).await;
    let Some(seen) = visit("workspace.mjs", "walk", &coding.app, &Notify::new()).await else { return };
    let unified = json!(["unified", " |one", "−|two", "+|TWO", " |three"]);
    let second = json!(["~ a.txt +1 −1", "+ b/new.txt +1"]);
    let expected = json!({
        "answer": unified,
        "first": ["changes-title", ["~ a.txt +1 −1"]],
        "unified": unified,
        "beside": ["beside", " |one| |one", "−|two|+|TWO", " |three| |three"],
        "axe": [],
        "approved": "Nothing has changed since the approval of …",
        "focus": "changes",
        "second": second,
        "back": second,
        "reloaded": ["a.txt", "a.txt", "new.txt"],
        "restored": [],
        "overflows": false,
        "wrong": [],
    });
    assert_eq!(seen, expected);
    assert_eq!((coding.text("a.txt").as_deref(), coding.text("b/new.txt")), (Some("one\nTWO\nthree\n"), None));
}
