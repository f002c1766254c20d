//! Files as a user of the page has them: every case is a function of `tests/peers/frontends/files.mjs`.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use super::visit;
use crate::files::{PIXEL, playing};
use crate::openai;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::node;
use crate::support::upstream::Answer;
use crate::tools::mcp::{Fake, product, product_with, tool};

/// A model that sees pictures.
const SEES: &str = "gpt-4o";

/// The user's newest message as the model got it, in words.
fn asked(s: &Scripted) -> String {
    s.last_asked().iter().rev().find(|message| message["role"] == "user").unwrap()["content"].to_string()
}

#[tokio::test]
async fn files_come_by_paste_drop_and_button_and_are_there_after_a_reload() {
    let s = playing(SEES, [says("A pixel.")]).await;
    let Some(seen) = visit("files.mjs", "attach", &s.app, &Notify::new()).await else { return };
    let files = ["Show Pasted picture 1.png larger", "Save notes.md 7 B"];
    let expected = json!({
        "given": {
            "chips": ["Pasted picture 1.png: kept", "table.csv: kept", "notes.md: kept"],
            "isOver": true,
            "isLeft": true,
            "axe": [],
        },
        "removed": {"chips": ["Pasted picture 1.png: kept", "notes.md: kept"], "focus": "Remove notes.md"},
        "sent": {"shown": files, "chips": [], "axe": []},
        "again": files,
        "saved": ["notes.md", "# Notes"],
        "wrong": [],
    });
    assert_eq!(seen, expected);
    let asked = asked(&s);
    assert!(asked.contains(PIXEL) && asked.contains("# Notes") && asked.contains("What is it?"), "{asked}");
    assert!(!asked.contains("table.csv"), "{asked}");
}

#[tokio::test]
async fn a_file_that_is_not_taken_is_told_where_it_stands_and_loses_nothing() {
    let s = playing(SEES, [says("Nothing.")]).await;
    let Some(seen) = visit("files.mjs", "refused", &s.app, &Notify::new()).await else { return };
    let expected = json!({
        "note": "Only pictures (PNG, JPEG, WebP, GIF), PDF documents and texts in UTF-8 are taken.",
        "problem": "A file could not be attached. Remove it, or try it again.",
        "kept": {"text": "Look", "thread": [], "button": true},
        "focus": "Message",
        "thread": ["? Look", "! Nothing."],
        "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn what_a_model_cannot_see_is_told_before_and_after() {
    let s = playing("gpt-3.5-turbo", [says("I cannot see it.")]).await;
    let Some(seen) = visit("files.mjs", "unseen", &s.app, &Notify::new()).await else { return };
    let expected = json!({
        "models": ["Usual model · no pictures · no PDF"],
        "isQuiet": true,
        "before": "This model takes no pictures: it reads their names only.",
        "axe": [],
        "after": "Not shown to the model: Pasted picture 1.png (this model takes no images)",
        "reloaded": ["Not shown to the model: Pasted picture 1.png (this model takes no images)"],
        "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn where_no_files_are_kept_there_is_no_button_and_a_sentence() {
    let settings = [("LLM__OPENAI__MODEL", SEES), ("FILES__URL", "off")];
    let s = openai::with(&[], &settings, [says("Well.").answer()]).await;
    let Some(seen) = visit("files.mjs", "off", &s.app, &Notify::new()).await else { return };
    let expected = json!({
        "button": false, "problem": "This server keeps no files.", "chips": [],
        "thread": ["? Then not", "! Well."], "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_message_of_files_alone_keeps_them_when_it_is_changed_and_answered_again() {
    let s = playing(SEES, ["One", "Two", "Three"].map(says)).await;
    let Some(seen) = visit("files.mjs", "alone", &s.app, &Notify::new()).await else { return };
    let files = ["Show Pasted picture 1.png larger"];
    assert_eq!(seen, json!({"text": "And this?", "files": files, "again": files, "wrong": []}));
    let asked = asked(&s);
    assert!(asked.contains(PIXEL) && asked.contains("And this?"), "{asked}");
}

#[tokio::test]
async fn what_waits_for_its_turn_keeps_its_files() {
    let gate = Arc::new(Notify::new());
    let slow = turn().text("Once").answer().gated(&gate, says(" upon a time").bytes());
    let s = openai::with(&[], &[("LLM__OPENAI__MODEL", SEES)], [slow, says("Two").answer()]).await;
    let Some(seen) = visit("files.mjs", "queued", &s.app, &gate).await else { return };
    let expected = json!({
        "queued": {"words": "And this? · Pasted picture 1.png", "chips": []},
        "thread": ["? Tell me", "! Once upon a time", "? And this?", "! Two"],
        "files": ["Show Pasted picture 1.png larger"],
        "wrong": [],
    });
    assert_eq!(seen, expected);
    assert!(asked(&s).contains(PIXEL));
}

#[tokio::test]
async fn who_writes_on_while_a_file_is_uploaded_sends_nothing_yet_and_a_reload_keeps_it() {
    let s = playing(SEES, [says("Seen.")]).await;
    let Some(seen) = visit("files.mjs", "held", &s.app, &Notify::new()).await else { return };
    let chips = ["Pasted picture 1.png: kept"];
    let expected = json!({
        "words": "Sent when the files are uploaded.",
        "kept": {"text": "Look here", "chips": chips, "thread": []},
        "again": {"text": "Look here", "chips": chips},
        "thread": ["? Look here", "! Seen."],
        "files": ["Show Pasted picture 1.png larger"],
        "wrong": [],
    });
    assert_eq!(seen, expected);
    assert!(asked(&s).contains(PIXEL));
}

#[tokio::test]
async fn a_file_that_is_gone_is_marked_and_can_be_uploaded_again() {
    let s = playing(SEES, [says("Seen.")]).await;
    let Some(seen) = visit("files.mjs", "gone", &s.app, &Notify::new()).await else { return };
    let expected = json!({
        "lost": {
            "text": "Look",
            "chips": ["image.png: failed", "notes.md: failed", "table.csv: kept"],
            "problem": "One of the files is not kept any more. Attach it again.",
            "thread": [],
            "notes": ["not kept any more", "not kept any more", "3 B"],
            "axe": [],
        },
        "thread": ["? Look", "! Seen."],
        "files": ["Show image.png larger", "Save table.csv 3 B"],
        "wrong": [],
    });
    assert_eq!(seen, expected);
    let asked = asked(&s);
    assert!(asked.contains(PIXEL) && !asked.contains("# Notes"), "{asked}");
}

#[tokio::test]
async fn a_picture_that_a_tool_has_made_is_shown_below_its_call() {
    let peer = Fake::new(json!([tool("draw", "Draws a picture.", true)]), |id, _| {
        let content = json!([{"type": "image", "data": PIXEL, "mimeType": "image/png"}]);
        let result = json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}});
        Answer::ok("application/json", result.to_string())
    })
    .await;
    let s = product(&peer.section(""), [calls("c", "peer__draw", &json!({})), says("Here it is.")]).await;
    let Some(seen) = visit("files.mjs", "answer", &s.app, &Notify::new()).await else { return };
    let files = ["Show image.png larger"];
    assert_eq!(seen, json!({"first": files, "again": files, "axe": [], "wrong": []}));
}

/// A chart, as a user would paste one.
const CHART: &[u8] = include_bytes!("../../fixtures/pictures/chart.png");

/// The pictures are in `target/page-screenshots`, and in `docs/page` too where `SWITCHBOARD_UPDATE_SCREENSHOTS=1`.
#[tokio::test]
async fn pictures_of_users_and_of_tools_are_drawn_in_both_colours() {
    use base64::Engine;

    let chart = base64::engine::general_purpose::STANDARD.encode(CHART);
    let peer = Fake::new(json!([tool("draw_chart", "Draws a chart.", true)]), move |id, _| {
        let content = json!([{"type": "image", "data": chart, "mimeType": "image/png"}]);
        let result = json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}});
        Answer::ok("application/json", result.to_string())
    })
    .await;
    let turns = [
        says("**Saturday**: 135 orders, ten more than on Sunday, the next one."),
        calls("c", "peer__draw_chart", &json!({"highlight": "weekend"})),
        says("Here it is: Saturday in green, Sunday in orange."),
    ];
    let settings = [("LLM__OPENAI__MODEL", SEES)];
    let s = product_with(&peer.section(""), DESK, &settings, turns).await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("target/page-screenshots").display().to_string()];
    if std::env::var("SWITCHBOARD_UPDATE_SCREENSHOTS").is_ok_and(|value| value == "1") {
        folders.push(root.join("docs/page").display().to_string());
    }
    let args: Vec<&str> = ["drawn"].into_iter().chain(folders.iter().map(String::as_str)).collect();
    let Some(seen) = node::run("files.mjs", &args, &s.app).await else { return };
    assert_eq!(seen, json!({"pictures": 2, "wrong": []}));
    let asked: Vec<String> = s.model.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(asked[0].contains("data:image/png;base64,"), "{}", asked[0]);
}

/// An assistant with a name that people would give it.
const DESK: &str = r#"
id = "desk"
context_type = "desk"
title = "Orders"
instructions = ["workflow/role.md"]
tools = ["discover_entities"]
sources = ["peer"]
"#;
