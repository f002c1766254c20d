//! The page in a browser, as its user has it: every case is a function of `tests/peers/frontends/chat.mjs`. A browser that
//! is not there is a test left out.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::plans::{desk, desk_over, plans};
use crate::runs::hanging;
use crate::support::app::TestApp;
use crate::support::model::{Scripted, calls, says, turn};

/// What a user has seen in a case.
async fn visit(case: &str, app: &TestApp) -> Option<Value> {
    visit_at_gate(case, app, &Notify::new()).await
}

/// The same, of an answer that goes on when the user has seen its first part.
async fn visit_at_gate(case: &str, app: &TestApp, gate: &Notify) -> Option<Value> {
    super::visit("chat.mjs", case, app, gate).await
}

#[tokio::test]
async fn a_page_that_is_loaded_again_goes_on_with_the_answer() {
    let gate = Arc::new(Notify::new());
    let slow = turn().text("Once").answer().gated(&gate, says(" upon a time").bytes());
    let s = Scripted::with(&[], [slow]).await;
    let Some(seen) = visit_at_gate("reload", &s.app, &gate).await else { return };
    let thread = ["? Tell me", "! Once upon a time"];
    let expected = json!({"before": "live", "thread": thread, "usage": true, "address": true, "wrong": []});
    assert_eq!(seen, expected);
    assert_eq!(s.asked().len(), 1, "the model was asked once");
}

#[tokio::test]
async fn an_answer_is_stopped_continued_and_given_again_and_a_question_changed() {
    let answers = [hanging("Half"), says("the rest").answer(), says("Another").answer(), says("Third").answer()];
    let s = Scripted::with(&[], answers).await;
    let Some(seen) = visit("turns", &s.app).await else { return };
    let expected = json!({
        "seen": [
            ["? First", "! Half Stopped. Continue Retry"],
            ["? First", "! Another"],
            ["? First of all", "! Third"],
            ["? First of all", "! Third"],
        ],
        "focus": "message",
        "wrong": [],
    });
    assert_eq!(seen, expected);
    let asked = s.last_asked();
    assert_eq!(asked.last().unwrap()["content"], "First of all");
    assert!(!asked.iter().any(|message| message["content"] == "First"), "the branch has its own past: {asked:#?}");
}

#[tokio::test]
async fn an_older_answer_is_given_again_and_the_versions_are_a_click_apart() {
    let s = Scripted::playing(["One", "Two", "Again", "Third", "Fourth"].map(says)).await;
    let Some(seen) = visit("versions", &s.app).await else { return };
    let older = ["? First", "! One", "? Second", "! Two"];
    let expected = json!({
        "again": {"thread": ["? First", "! Again"], "at": ["2/2"]},
        "before": {"thread": older, "at": ["1/2"], "focus": "Later version"},
        "third": {"thread": ["? First", "! One", "? Second", "! Two", "? And?", "! Third"], "at": ["1/2"]},
        "reloaded": {"thread": ["? First", "! One", "? Second", "! Two", "? And?", "! Third"], "at": ["1/2"]},
        "anew": ["? Anew", "! Fourth"],
        "wrong": [],
    });
    assert_eq!(seen, expected);
    let branched = &s.model.requests()[3].json()["messages"];
    let said: Vec<Value> = branched.as_array().unwrap().iter().map(|message| message["content"].clone()).collect();
    let has = |text: &str| said.iter().any(|content| content == text);
    assert!(has("Two") && !has("Again"), "what is said on a branch goes on there: {said:#?}");
}

#[tokio::test]
async fn what_failed_looks_the_same_after_a_reload_and_is_tried_again_where_it_stands() {
    let answers = [turn().text("Half").breaks().answer(), says("Two").answer(), says("Whole").answer()];
    let s = Scripted::with(&[], answers).await;
    let Some(seen) = visit("failures", &s.app).await else { return };
    let failed = json!(["? First", "! Half The answer broke off. Continue Retry", "? Second", "! Two"]);
    assert_eq!(
        seen,
        json!({"before": failed, "after": failed, "axe": [], "again": ["? First", "! Whole"], "wrong": []})
    );
}

#[tokio::test]
async fn what_is_said_during_an_answer_is_sent_behind_it() {
    let gate = Arc::new(Notify::new());
    let slow = turn().text("Once").answer().gated(&gate, says(" upon a time").bytes());
    let s = Scripted::with(&[], [slow, says("Two").answer()]).await;
    let Some(seen) = visit_at_gate("queue", &s.app, &gate).await else { return };
    let expected = json!({
        "dropped": "Never", "queued": "And then? More", "written": "",
        "thread": ["? Tell me", "! Once upon a time", "? And then?\n\nMore", "! Two"], "keys": 8, "focus": "message", "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_line_is_broken_with_shift_and_the_last_message_is_edited_from_the_empty_field() {
    let s = Scripted::playing([says("One")]).await;
    let Some(seen) = visit("lines", &s.app).await else { return };
    let expected =
        json!({"written": "One\ntwo", "edits": [0, "One\ntwo"], "thread": ["? One\ntwo", "! One"], "wrong": []});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_conversation_that_was_deleted_elsewhere_is_not_begun_again() {
    let s = Scripted::playing([says("One"), says("Two")]).await;
    s.app.say("c", "First").await;
    let Some(seen) = visit("deleted", &s.app).await else { return };
    assert_eq!(seen, json!({"thread": ["? Second", "! Two"], "isNew": true, "wrong": []}));
}

#[tokio::test]
async fn a_tool_row_unfolds_to_what_was_called_and_said() {
    let Some(seen) = visit("calls", &TestApp::demo().await).await else { return };
    let expected = json!({
        "row": "Get workflow rule 550e8400-e29b-41d4-a716-446655440000", "titles": ["Called with", "Result"],
        "arguments": true, "result": true, "after": true, "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn six_calls_of_one_tool_tell_their_difference_in_their_rows() {
    let id = |nth: u32| format!("550e8400-e29b-41d4-a716-44665544000{nth}");
    let six = (0..6)
        .fold(turn(), |turn, nth| turn.call(&format!("r{nth}"), "get_workflow_rule", &json!({"workflow_id": id(nth)})));
    let s = Scripted::playing([six.done(), says("These.")]).await;
    let Some(seen) = visit("alike", &s.app).await else { return };
    let rows: Vec<String> = (0..6).map(|nth| format!("Get workflow rule {}", id(nth))).collect();
    assert_eq!(seen, json!({"before": rows, "after": rows, "wrong": []}));
}

#[tokio::test]
async fn an_answer_is_drawn_with_all_that_people_write_and_copied_as_it_is() {
    let code = "fn main() { let x = 1; }\n";
    let text = format!(
        "# Report\n\n- [x] done\n- [ ] open\n\nThe sum is $a^2$ and a note[^1].\n\n```rust\n{code}```\n\n| a | b |\n|---|---|\n\
         | 1 | 2 |\n\n<details><summary>More</summary>\n\n**Inside** it.\n\n</details>\n\n\
         ![map](https://elsewhere.example/x.png)\n\n[^1]: The note.\n"
    );
    let s = Scripted::playing([says(&text)]).await;
    let Some(seen) = visit("rich", &s.app).await else { return };
    let expected = json!({
        "drawn": {
            "headings": ["Report"], "tasks": ["☑ done", "☐ open"], "colours": ["fn", "let", "1"], "formula": ["a", "2"],
            "cells": ["1", "2"], "isOpen": false, "images": 0,
        },
        "inside": "Inside", "note": "1. The note.", "code": code.trim_end(), "copy": text.trim_end(), "bold": true, "buttons": false, "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_formula_is_drawn_however_long_what_reads_it_is_loaded() {
    let s = Scripted::playing([says("It is $a^2$.")]).await;
    let Some(seen) = visit("slow", &s.app).await else { return };
    assert_eq!(seen, json!({"formula": ["a", "2"], "wrong": []}));
}

#[tokio::test]
async fn the_page_speaks_german_to_who_reads_german() {
    let s = Scripted::playing([says("Eins")]).await;
    let Some(seen) = visit("german", &s.app).await else { return };
    let expected = json!({
        "lang": "de", "placeholder": "Nachricht schreiben", "new": "Neue Unterhaltung", "again": "Noch einmal antworten",
        "gone": "Diese Unterhaltung gibt es nicht", "tools": ["theme"], "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn who_goes_elsewhere_as_an_answer_ends_is_not_brought_back() {
    let s = Scripted::playing([says("One")]).await;
    let Some(seen) = visit("leaves", &s.app).await else { return };
    assert_eq!(seen, json!({"before": "#/c/none", "title": "There is no such conversation", "wrong": []}));
}

#[tokio::test]
async fn nothing_that_a_model_writes_runs_or_is_fetched() {
    let attack = "<script>alert(1)</script><img src=x onerror=alert(2)><iframe src=\"https://evil.example\"></iframe>\n\n\
        [click](javascript:alert(3)) [data](data:text/html,x) [good](https://example.com/) ![pixel](https://evil.example/p.png)\n\n\
        <style>@import 'https://evil.example/x.css';</style><form action=\"https://evil.example\"></form>\n\n\
        **broken `code [link](\n\n\
        | a | b |\n|--\n\n\
        wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\n\n\
        End of it";
    let s = Scripted::playing([says(attack)]).await;
    let Some(seen) = visit("hostile", &s.app).await else { return };
    // The good one, and where the image would be: links are followed by people, who see where they lead.
    let expected = json!({"links": ["https:", "https:"], "overflows": false, "elements": 0, "said": true, "wrong": []});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_tab_that_is_looked_at_again_has_what_was_said_in_another() {
    let s = Scripted::playing([says("One"), says("Two")]).await;
    let Some(seen) = visit("tabs", &s.app).await else { return };
    assert_eq!(seen, json!({"thread": ["? First", "! One", "? Second", "! Two"], "wrong": []}));
}

#[tokio::test]
async fn an_answer_that_was_given_up_is_read_on_when_the_network_is_back() {
    let s = Scripted::playing([turn().text("Once").text(" upon a time").done()]).await;
    let Some(seen) = visit("network", &s.app).await else { return };
    assert_eq!(seen, json!({"thread": ["? Tell me", "! Once upon a time"], "wrong": []}));
}

#[tokio::test]
async fn what_was_decided_elsewhere_has_no_buttons() {
    let Some(seen) = visit("elsewhere", &TestApp::demo().await).await else { return };
    let failed = "That did not work. You can try again. The server answered 503.";
    let ended = "It was decided elsewhere.";
    let states = json!([["failed", failed, true, "accept"], ["ended", ended, false, "sb-said"]]);
    assert_eq!(seen, json!({"seen": states, "wrong": []}));
}

#[tokio::test]
async fn a_change_is_drawn_accepted_and_waits_no_more() {
    let Some(seen) = visit("decide", &TestApp::demo().await).await else { return };
    assert_eq!(seen, json!({"calls": true, "waiting": "1 waiting for a decision", "wrong": []}));
}

#[tokio::test]
async fn a_plan_waits_for_its_approvals_and_goes_on_where_it_is_shown() {
    let erase = |id: &str| json!({"type": "action", "tools": ["erase"], "arguments": {"id": id}});
    let (s, _backend) = desk([plans(&json!([erase("t1"), erase("t2")])), says("Gone.")]).await;
    let Some(seen) = visit("plan", &s.app).await else { return };
    let expected = json!([
        ["paused", ["awaiting_approval", "awaiting_approval"], ["waiting", "waiting"], 1],
        ["paused", ["awaiting_approval", "done"], ["accepted", "waiting"], 1],
        ["paused", ["awaiting_approval", "done"], ["waiting"], 1],
        ["done", ["done", "done"], ["accepted"], 1],
    ]);
    assert_eq!(seen, json!({"seen": expected, "axe": [], "waits": false, "wrong": []}));
}

#[tokio::test]
async fn a_plan_that_waits_is_made_anew_carried_out_and_dropped() {
    let steps = json!([{"type": "research", "tools": ["look"], "arguments": {"id": "t1"}}]);
    let draft = |call: &str| {
        let asked = json!({"objective": "All of it", "execution_mode": "draft_only", "plan": {"steps": steps}});
        calls(call, "create_plan", &asked)
    };
    let turns = [draft("c1"), says("Look at it."), draft("c2"), says("Look again."), says("Not yet.")];
    let (s, _backend) = desk(turns).await;
    let Some(seen) = visit("draft", &s.app).await else { return };
    let expected = json!([
        ["draft"],
        ["cancelled", "draft"],
        "? Make another plan instead, for this: Only the first",
        "? Carry out the plan ID",
    ]);
    assert_eq!(seen, json!({"seen": expected, "reloaded": ["cancelled", "cancelled"], "wrong": []}));
}

#[tokio::test]
async fn a_plan_is_stopped_with_its_steps() {
    let steps = json!([
        {"type": "research", "tools": ["look"], "arguments": {"id": "t1"}},
        {"type": "research", "tools": ["look"], "arguments": {"id": "t2"}, "depends_on": [1]},
    ]);
    let (s, _backend) = desk_over([plans(&steps)], |_| Some(turn().hangs().answer())).await;
    let Some(seen) = visit("halt", &s.app).await else { return };
    let over = ["cancelled", "cancelled", "cancelled"];
    let expected =
        json!({"before": ["executing", "executing", "pending"], "after": over, "reloaded": over, "wrong": []});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_smallest_screen_has_everything() {
    let Some(seen) = visit("narrow", &TestApp::demo().await).await else { return };
    let expected = json!({
        "wide": [false, false], "focus": "close-side", "listed": 1, "back": ["open-side", true], "hasColours": true,
        "wrong": [],
    });
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_proxy_may_put_it_below_a_path() {
    let Some(seen) = visit("prefix", &TestApp::demo().await).await else { return };
    assert_eq!(seen, json!({"path": "/chat/", "wrong": []}));
}

#[tokio::test]
async fn who_is_not_known_pastes_a_token() {
    let app = TestApp::start(&[("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", &"s".repeat(32))]).await;
    let Some(seen) = visit("token", &app).await else { return };
    let why = "The server did not accept the token: the token is not valid: it cannot be read.";
    assert_eq!(seen, json!({"why": why, "kept": 0, "left": [], "axe": [], "wrong": []}));
}

#[tokio::test]
async fn of_a_long_conversation_the_newest_part_is_shown_first() {
    let s = Scripted::playing((0..25).map(|nth| says(&format!("Answer {nth}")))).await;
    for nth in 0..25 {
        s.app.say("c", &format!("Question {nth}")).await;
    }
    let Some(seen) = visit("long", &s.app).await else { return };
    let expected = json!({"part": [20, 20], "last": true, "whole": [25, 25], "first": "Question 0", "wrong": []});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_newest_words_are_followed_until_the_reader_scrolls_up() {
    let lines = |from: u32, to: u32| (from..=to).map(|line| format!("line {line}\n\n")).collect::<String>();
    let gate = Arc::new(Notify::new());
    let slow = turn().text(&lines(1, 30)).answer().gated(&gate, says(&lines(31, 60)).bytes());
    let s = Scripted::with(&[], [slow]).await;
    let Some(seen) = visit_at_gate("scroll", &s.app, &gate).await else { return };
    assert_eq!(seen, json!({"followed": true, "stayed": true, "jumped": true, "wrong": []}));
}
