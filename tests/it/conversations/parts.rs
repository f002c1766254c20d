//! Long conversations in parts, and exports that are longer than one: each message once, in order, and nothing held for long.

use reqwest::Method;
use serde_json::{Value, json};

use super::{get, refusal};
use crate::runs::body;
use crate::support::app::TestApp;
use crate::support::model::{Scripted, says};

/// The ids of a part's messages.
fn ids(part: &Value) -> Vec<String> {
    part["messages"].as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_conversation_comes_in_parts_the_newest_first() {
    let s = Scripted::playing(["One.", "Two.", "Three.", "Four."].map(says)).await;
    for question in ["1?", "2?", "3?", "4?"] {
        s.app.chat(&body(question)).await;
    }
    let whole = get(&s.app, "/c").await;
    assert_eq!((ids(&whole).len(), &whole["message_count"]), (8, &json!(8)));
    assert!(whole.get("next_cursor").is_none(), "there is nothing before the first");
    for limit in [1, 2, 3, 4, 5, 7] {
        let (mut seen, mut path) = (Vec::new(), format!("/c?limit={limit}"));
        loop {
            let part = get(&s.app, &path).await;
            assert_eq!(part["message_count"], json!(8), "of all of it");
            let of_part = ids(&part);
            // A run is there whole or not at all, and one always is.
            assert!(of_part.len() <= limit.max(2) && of_part.len().is_multiple_of(2), "{limit}: {of_part:?}");
            seen = [of_part, seen].concat();
            let Some(cursor) = part["next_cursor"].as_str() else { break };
            path = format!("/c?limit={limit}&cursor={cursor}");
        }
        assert_eq!(seen, ids(&whole), "each once, with {limit} at a time");
    }
    for (query, code) in [
        ("limit=0", "invalid_request"),
        ("limit=1001", "invalid_request"),
        ("limit=x", "invalid_request"),
        ("cursor=x", "cursor_invalid"),
        ("cursor=-1", "cursor_invalid"),
    ] {
        assert_eq!(refusal(&s.app, Method::GET, &format!("/c?{query}"), None).await, (400, code.to_owned()), "{query}");
    }
    let none = get(&s.app, "/c?cursor=0").await;
    assert_eq!((ids(&none).len(), none.get("next_cursor")), (0, None), "nothing is before the first run");
}

#[tokio::test]
async fn a_part_has_a_mebibyte_at_most_and_an_export_all_of_them() {
    let answer = |nth: usize| format!("{nth} {}", "A sentence of a long answer. ".repeat(14_000));
    let s = Scripted::with(&[("RUNS__SUMMARY_MODEL", "off")], (0..6).map(|nth| says(&answer(nth)).answer())).await;
    for nth in 0..6 {
        s.app.chat(&body(&format!("{nth}?"))).await;
    }
    let part = get(&s.app, "/c").await;
    let newest = ids(&part);
    assert!(newest.len() < 12 && part["next_cursor"].is_string(), "{} messages", newest.len());
    let last = part["messages"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
    assert_eq!(last.trim_end(), answer(5).trim_end());

    let export = get(&s.app, "/c/export").await;
    let said = export["runs"].as_array().unwrap().iter().map(|run| {
        let messages = run["messages"].as_array().unwrap();
        assert_eq!(messages.iter().map(|message| &message["kind"]).collect::<Vec<_>>(), ["user", "assistant"]);
        (messages[0]["body"]["text"].as_str().unwrap().to_owned(), messages[1]["body"].to_string().len())
    });
    let said: Vec<(String, usize)> = said.collect();
    let expected = (0..6).map(|nth| format!("{nth}?"));
    assert_eq!(said.iter().map(|(question, _)| question.clone()).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert!(said.iter().all(|(_, bytes)| *bytes > 400_000), "each whole: {said:?}");
    assert_eq!(export["trail"], get(&s.app, "/c/trail?limit=100").await["items"]);
}

#[tokio::test]
async fn an_export_of_nothing_is_a_document_too_and_counts_as_its_users_memory() {
    let s = Scripted::playing([says("Hello.")]).await;
    s.app.chat(&body("Hi")).await;
    let export = get(&s.app, "/c/export").await;
    assert_eq!((&export["payloads"], &export["approvals"]), (&json!([]), &json!([])));
    assert_eq!((&export["artifacts"], export.as_object().unwrap().len()), (&json!([]), 6), "{export}");

    let tight = TestApp::start(&[("SERVER__BYTES_PER_USER", "1000000")]).await;
    let told = refusal(&tight, Method::GET, "/c/export", None).await;
    assert_eq!(told, (429, "too_many_requests".to_owned()), "before it is looked for");
    let full = TestApp::start(&[("LIMITS__MEMORY_BYTES", "1000000")]).await;
    assert_eq!(refusal(&full, Method::GET, "/c/export", None).await, (503, "memory_exhausted".to_owned()));
}
