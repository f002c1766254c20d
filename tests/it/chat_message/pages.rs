//! What a page shows of streams, however their bytes come.

use std::time::Duration;

use super::page::Page;
use super::{content, forum, frames, post, said};
use crate::support::app::TestApp;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::upstream::Answer;
use serde_json::json;

#[tokio::test]
async fn a_bubble_grows_with_the_pieces_and_ends_as_the_answer() {
    let (s, _backend) = forum([turn().text("Grüße").text(" — 漢字").text(" \u{1f600}").done()]).await;
    let text = said(&s.app, "One").await;
    let mut page = Page::default();
    let mut shown = Vec::new();
    for block in text.split_inclusive("\n\n") {
        page.read(&[block.as_bytes()]);
        shown.push(page.bubble.clone());
    }
    let grows = ["Grüße", "Grüße — 漢字", "Grüße — 漢字 \u{1f600}"].map(|bubble| Some(bubble.to_owned()));
    assert_eq!(shown, [&[None], &grows[..], &[None]].concat());
    assert_eq!(page.messages[0].content, "Grüße — 漢字 \u{1f600}");
}

#[tokio::test]
async fn it_shows_the_same_however_the_bytes_are_cut() {
    let said_all = "Grüße — 漢字 \u{1f600} \"quoted\"\n\ntwo paragraphs";
    let (s, _backend) = forum([says(said_all)]).await;
    let text = said(&s.app, "One").await;
    for at in 0..text.len() {
        let mut cut = Page::default();
        cut.read(&[&text.as_bytes()[..at], b"", &text.as_bytes()[at..]]);
        assert_eq!((cut.messages[0].content.as_str(), &cut.bubble, cut.skipped.len()), (said_all, &None, 0), "at {at}");
    }
}

#[tokio::test]
async fn comments_while_a_model_is_slow_change_nothing() {
    let rest = turn().text(" and well.").done().bytes();
    let slow = Answer::ok("text/event-stream", turn().text("Slowly").bytes()).later(Duration::from_millis(2500), rest);
    let settings = [("CHAT_MESSAGE__PROFILE", "workflow"), ("SERVER__KEEP_ALIVE_S", "1")];
    let s = Scripted::with(&settings, [slow]).await;
    let text = post(&s.app, &json!({"message": "Hi"})).await.text().await.unwrap();
    assert!(text.contains("\n\n: keep-alive\n\n"), "{text}");
    assert_eq!(content(&frames(&text)), "Slowly and well.");
    let mut page = Page::default();
    page.read(&[text.as_bytes()]);
    assert_eq!((page.messages[0].content.as_str(), page.bubble, page.skipped.len()), ("Slowly and well.", None, 0));
}

#[tokio::test]
async fn one_page_shows_three_messages_with_a_restart_in_between() {
    let (s, _backend) =
        forum([says("One."), calls("c1", "list_categories", &json!({})), says("Two."), says("Three.")]).await;
    let mut page = Page::default();
    for message in ["First", "Second"] {
        page.read(&[said(&s.app, message).await.as_bytes()]);
    }
    let Scripted { app, model } = s;
    let data = app.stop().await;
    let url = format!("{}/v1", model.url());
    let settings =
        [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", url.as_str()), ("CHAT_MESSAGE__PROFILE", "mine")];
    let app = TestApp::start_in(data, &settings).await;
    page.read(&[said(&app, "Third").await.as_bytes()]);
    // That no id comes twice is what the page itself looks at.
    let shown: Vec<&str> = page.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!((shown, page.bubble), (vec!["One.", "Two.", "Three."], None), "nothing goes on behind the end");
}
