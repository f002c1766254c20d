//! Finding, keeping and looking into conversations, as a user of the page has it: every case is a function of
//! `tests/peers/frontends/library.mjs`.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::runs::hanging;
use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::upstream::Upstream;

async fn visit(case: &str, app: &TestApp) -> Option<Value> {
    super::visit("library.mjs", case, app, &Notify::new()).await
}

async fn asked(app: &TestApp, method: Method, path: &str, body: Option<Value>) -> Value {
    let mut request = app.http.request(method, app.url(path)).bearer_auth(&app.token);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.status());
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_search_by_the_keyboard_finds_and_opens_where_the_words_were_said() {
    let s = Scripted::playing(["In the drawer.", "Gladly.", "Roses."].map(says)).await;
    s.app.say("c", "Where is the **invoice** of <b>May</b>?").await;
    s.app.say("c", "Thank you").await;
    s.app.say("d", "What grows in a garden?").await;
    let Some(seen) = visit("find", &s.app).await else { return };
    let expected = json!({
        "field": "search-field",
        "found": {
            "titles": ["Where is the **invoice** of <b>May</b>?"],
            "snippets": ["You: Where is the **invoice** of <b>May</b>?"],
            "marks": ["invoice", "invoice"],
            "list": false,
        },
        "opened": {"marked": ["invoice", true], "focus": "scroller", "address": "#/c/c/RUN.0"},
        "reloaded": "Where is the **invoice** of <b>May</b>?",
        "again": ["What grows in a garden?"],
        "cleared": ["", true, "search-field"],
        "left": "message",
        "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn what_is_typed_last_is_what_is_found() {
    let s = Scripted::playing(["In the drawer.", "Roses."].map(says)).await;
    s.app.say("c", "Where is the invoice?").await;
    s.app.say("d", "What grows in a garden?").await;
    let Some(seen) = visit("hurried", &s.app).await else { return };
    assert_eq!(seen, json!({"asked": ["inv", "garden"], "titles": ["What grows in a garden?"], "wrong": []}));
}

#[tokio::test]
async fn what_was_found_is_shown_far_back_and_on_another_branch() {
    let s = Scripted::playing((0..27).map(|nth| says(&format!("Answer {nth}")))).await;
    for nth in 0..25 {
        let what = if nth == 1 { "needle" } else { "straw" };
        s.app.say("c", &format!("Question {nth} about a {what}")).await;
    }
    s.app.say("d", "A haystack").await;
    let whole =
        json!({"message": "Other", "context_type": "workflow", "conversation_id": "d", "parent_message_id": "root"});
    s.app.chat(&whole).await;
    let Some(seen) = visit("far", &s.app).await else { return };
    let expected = json!({
        "back": ["needle", true], "question": "Question 1 about a needle", "branch": ["haystack", true], "at": "1/2", "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_conversation_is_pinned_and_archived_and_comes_back() {
    let s = Scripted::playing(["One", "Two", "Three"].map(says)).await;
    for (id, text) in [("a", "First"), ("b", "Second"), ("c", "Third")] {
        s.app.say(id, text).await;
    }
    let Some(seen) = visit("keep", &s.app).await else { return };
    let expected = json!({
        "seen": [
            ["Today", "Third", "Second", "First"],
            ["Pinned", "First", "Today", "Third", "Second"],
            ["Pinned", "First", "Today", "Third"],
            ["Archived", "Today", "Second"],
            ["Today", "Third", "Second", "First"],
        ],
        "tag": "Archived", "focus": "icon-button row-more", "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_menu_is_walked_through_with_keys_and_closes_without_a_trace() {
    let s = Scripted::playing([says("One")]).await;
    s.app.say("a", "First").await;
    let Some(seen) = visit("menu", &s.app).await else { return };
    let walked = ["Pin", "Rename", "Delete", "Pin", "Delete", "Pin", "Export as Markdown"];
    let expected = json!({"walked": walked, "shut": [0, "icon-button row-more"], "left": 0, "away": 0, "wrong": []});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_menu_stays_while_an_answer_is_written_behind_it() {
    let lines = |from: u32, to: u32| (from..=to).map(|line| format!("line {line}\n\n")).collect::<String>();
    let gate = Arc::new(Notify::new());
    let slow = turn().text(&lines(1, 30)).answer().gated(&gate, says(&lines(31, 60)).bytes());
    let s = Scripted::with(&[], [slow]).await;
    let Some(seen) = super::visit("library.mjs", "behind", &s.app, &gate).await else { return };
    assert_eq!(seen, json!({"stays": 1, "left": 0, "focus": "search-field", "wrong": []}));
}

#[tokio::test]
async fn what_a_user_thinks_of_an_answer_is_kept_changed_and_taken_back() {
    let s = Scripted::playing([says("It is.")]).await;
    let Some(seen) = visit("opinion", &s.app).await else { return };
    let (none, up, down) = (json!([false, false]), json!([true, false]), json!([false, true]));
    assert_eq!(seen, json!({"seen": [none, down, down, down, up, none], "wrong": []}));
    let listed = asked(&s.app, Method::GET, "/v1/agent/conversations", None).await;
    let path = format!("/v1/agent/conversations/{}", listed["items"][0]["id"].as_str().unwrap());
    assert_eq!(asked(&s.app, Method::GET, &path, None).await["feedback"], Value::Null);
}

/// The product over a model each of whose turns costs a cent, and Ada may see what everybody has used.
async fn priced(turns: impl IntoIterator<Item = Script>, more: &[(&str, &str)]) -> Scripted {
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir(data.path().join("config")).unwrap();
    let prices = "[prices.\"m.1\"]\ninput = 1000\noutput = 0\n";
    std::fs::write(data.path().join("config/default.toml"), prices).unwrap();
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    let base_url = format!("{}/v1", model.url());
    let own = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &*base_url), ("LLM__OPENAI__MODEL", "m.1")];
    Scripted { app: TestApp::start_in(data, &[&own, more].concat()).await, model }
}

#[tokio::test]
async fn usage_is_told_by_month_by_conversation_and_for_a_role_for_everyone() {
    for (role, all) in [("ADMIN", json!([["4", "40 in 20 out", "$0.040"]])), ("AUDITOR", Value::Null)] {
        let s = priced((0..4).map(|_| says("Yes.")), &[("SERVER__USAGE_ROLE", role)]).await;
        for (id, text) in [("a", "First"), ("a", "Again"), ("b", "Second")] {
            s.app.say(id, text).await;
        }
        let bob = s.app.token_of("bob", None, &["USER"]);
        let theirs = json!({"message": "Third", "context_type": "workflow", "conversation_id": "theirs"});
        assert!(s.app.post_as(&bob, &theirs).await.text().await.unwrap().contains("message_complete"));
        let Some(seen) = visit("usage", &s.app).await else { return };
        let months = json!([["3", "30 in 15 out", "$0.030"]]);
        let conversations = json!([["2", "20 in 10 out", "$0.020"], ["1", "10 in 5 out", "$0.010"]]);
        let expected = json!({
            "heading": "h2", "mine": [months, conversations], "links": ["First", "Second"], "all": all, "wide": false,
            "one": "Answers 2 Tokens in 20 Tokens out 10 Cost $0.020", "wrong": [],
        });
        assert_eq!(seen, expected, "{role}");
        let Some(seen) = visit("zahlen", &s.app).await else { return };
        assert_eq!(seen, json!({"cells": ["3", "30 ein 15 aus", "0,030 $"], "wrong": []}));
    }
}

#[tokio::test]
async fn what_happened_is_told_with_what_calls_were_made_with() {
    let turns = [calls("c1", "discover_trigger_types", &json!({"why": "<b>so</b>"})), says("Here they are.")];
    let s = priced(turns, &[]).await;
    s.app.say("a", "Which triggers are there?").await;
    let Some(mut seen) = visit("trail", &s.app).await else { return };
    let inside = seen.as_object_mut().unwrap().remove("inside").unwrap();
    let inside = inside.as_str().unwrap();
    assert!(inside.contains("Called with { \"why\": \"<b>so</b>\" }") && inside.contains("Result"), "{inside}");
    let expected = json!({
        "lines": [
            "You wrote | Which triggers are there?",
            "m.1 answered | Discover trigger types",
            "Used Discover trigger types | done",
            "m.1 answered | Here they are.",
            "The answer was complete",
        ],
        "wide": false, "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_conversation_is_taken_away_in_three_forms() {
    let s = Scripted::playing([says("In the <b>drawer</b>.")]).await;
    s.app.say("c", "Where is the invoice?").await;
    let Some(seen) = visit("save", &s.app).await else { return };
    let files = seen["files"].as_array().unwrap();
    let names: Vec<&Value> = files.iter().map(|file| &file[0]).collect();
    assert_eq!(names, ["conversation.md", "conversation.txt", "conversation.json"]);
    let texts: Vec<&str> = files.iter().map(|file| file[1].as_str().unwrap()).collect();
    assert!(texts[0].starts_with("# Where is the invoice?") && texts[0].contains("\n> In the &lt;b>drawer&lt;/b>.\n"));
    assert!(texts[1].contains("\n    In the <b>drawer</b>.\n"), "{}", texts[1]);
    let whole: Value = serde_json::from_str(texts[2]).unwrap();
    assert_eq!(
        (&whole["conversation"]["id"], whole["runs"][0]["messages"].as_array().map(Vec::len)),
        (&json!("c"), Some(2))
    );
    let failed = "It could not be exported: The connection to the server was lost.";
    assert_eq!((&seen["failed"], &seen["wrong"]), (&json!(failed), &json!([])));
}

#[tokio::test]
async fn hostile_titles_and_texts_are_text_wherever_they_are_found() {
    let attack = "<img src=x onerror=alert(1)><script>alert(2)</script>";
    let s = Scripted::playing([says("I see.")]).await;
    s.app.say("c", attack).await;
    asked(&s.app, Method::PATCH, "/v1/agent/conversations/c", Some(json!({"title": attack}))).await;
    let Some(seen) = visit("hostile", &s.app).await else { return };
    let expected = json!({
        "found": {"titles": [attack], "marks": ["onerror", "onerror"]}, "text": "onerror", "elements": 0, "overflows": false, "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn every_key_of_the_overview_does_what_it_says() {
    let s = Scripted::with(&[], [hanging("Once")]).await;
    let Some(seen) = visit("keys", &s.app).await else { return };
    let expected = json!({
        "live": "live", "stopped": true,
        "told": ["Enter", "Shift+Enter", "Escape", "↑", "/", "Ctrl+K", "Ctrl+Shift+O", "?"],
        "write": "message", "typed": "/?", "address": "#/",
        "order": ["new", "search-field", "a", "icon-button row-more"], "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_server_that_is_back_is_found_within_three_seconds() {
    let gate = Arc::new(Notify::new());
    let slow = turn().text("Once").answer().gated(&gate, says(" upon a time").bytes());
    let s = Scripted::with(&[("LLM__IDLE_TIMEOUT_S", "120")], [slow]).await;
    let Some(seen) = super::visit("library.mjs", "back", &s.app, &gate).await else { return };
    assert_eq!(seen, json!({"late": [], "thread": ["? Tell me", "! Once upon a time"], "wrong": []}));
}

#[tokio::test]
async fn no_state_of_the_page_breaks_a_rule_of_axe() {
    for size in ["light", "dark", "narrow"] {
        let Some(seen) = super::visit("accessible.mjs", size, &TestApp::demo().await, &Notify::new()).await else {
            return;
        };
        assert_eq!(seen, json!({"states": 28, "found": [], "wrong": []}), "{size}");
    }
}
