//! A profile with many tools: the model is told of some, finds the others, and a service for meanings helps and never
//! harms.

use serde_json::{Value, json};

use super::mcp::{Fake, message, offered, product_with, text, tool};
use crate::support::frames;
use crate::support::model::{calls, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};

const PROFILE: &str = r#"
id = "desk"
context_type = "desk"
instructions = ["workflow/role.md"]
tools = ["discover_entities"]
sources = ["peer"]

[select_tools]
core = ["discover_entities"]
most = 2
"#;

async fn many() -> Fake {
    let tools = json!([
        tool("alpha", "Lists the customers.", true),
        tool("beta", "Closes a ticket of the help desk.", true),
        tool("gamma", "The weather of the next days in a city.", true),
        tool("delta", "Searches articles of the library.", true),
    ]);
    Fake::new(tools, |id, params| text(id, params["name"].as_str().unwrap())).await
}

#[tokio::test]
async fn a_model_is_told_of_what_fits_and_finds_the_rest() {
    let fake = many().await;
    let find = calls("c1", "find_tools", &json!({"query": "articles in the library"}));
    let use_it = turn().call("c2", "peer__delta", &json!({})).call("c3", "peer__alpha", &json!({}));
    let again = calls("c4", "peer__alpha", &json!({}));
    let turns = [find, use_it.done(), again, says("Done.")];
    let s = product_with(&fake.section(""), PROFILE, &[], turns).await;
    let frames = s.app.chat(&message("What is the weather in Oslo, and close the ticket")).await;
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");
    let first = ["discover_entities", "peer__beta", "peer__gamma", "find_tools"];
    assert_eq!(
        offered(&s),
        [
            first.to_vec(),
            [&first[..], &["peer__delta"]].concat(),
            [&first[..], &["peer__delta", "peer__alpha"]].concat(),
            [&first[..], &["peer__delta", "peer__alpha"]].concat(),
        ],
        "what was there stays in its place, what is added comes behind"
    );
    let found = json!({
        "tools": [{"name": "peer__delta", "description": "Searches articles of the library."}],
        "note": "these can be called now",
    });
    assert_eq!(s.result_of("c1"), found);
    assert_eq!(s.result_of("c2"), json!("delta"));
    let unseen = "peer__alpha was not loaded; it is now: read its description and call it again";
    assert_eq!(s.result_of("c3")["error"], unseen);
    assert_eq!(s.result_of("c4"), json!("alpha"));
}

#[tokio::test]
async fn a_search_for_nothing_is_told_so() {
    let fake = many().await;
    let asked = turn().call("c1", "find_tools", &json!({"query": "xylophone"})).call("c2", "find_tools", &json!({}));
    let s = product_with(&fake.section(""), PROFILE, &[], [asked.done(), says("Done.")]).await;
    s.app.chat(&message("Go")).await;
    let nothing = "no tool has to do with this; say it in other words, or do without";
    assert_eq!(s.result_of("c1"), json!({"tools": [], "note": nothing}));
    assert_eq!(s.result_of("c2")["error"], "bad params: query must say in words what the tool should do");
}

#[tokio::test]
async fn room_that_is_left_is_used_and_what_fits_whole_needs_no_search() {
    let fake = many().await;
    let s = product_with(&fake.section(""), PROFILE, &[], [says("Hello.")]).await;
    s.app.chat(&message("Hello")).await;
    assert_eq!(offered(&s), [["discover_entities", "peer__alpha", "peer__beta", "find_tools"]], "nothing fits");

    let wide = PROFILE.replace("most = 2", "most = 4");
    let s = product_with(&fake.section(""), &wide, &[], [says("Hello.")]).await;
    s.app.chat(&message("Hello")).await;
    assert_eq!(offered(&s), [["discover_entities", "peer__alpha", "peer__beta", "peer__gamma", "peer__delta"]]);
}

/// Vectors by which rain is weather and everything else is nothing in particular.
fn vectors(request: &Request) -> Option<Answer> {
    let body = request.json();
    let vector = |text: &str| match ["rain", "weather"].iter().any(|word| text.to_lowercase().contains(word)) {
        true => json!([1.0, 0.0]),
        false => json!([0.0, 1.0]),
    };
    let texts = body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let data: Vec<Value> =
        texts.enumerate().map(|(at, text)| json!({"index": at, "embedding": vector(text)})).collect();
    Some(Answer::ok("application/json", json!({ "data": data }).to_string()))
}

#[tokio::test]
async fn meanings_find_what_words_do_not_and_are_asked_once() {
    let fake = many().await;
    let embeddings = Upstream::choosing(vectors).await;
    let url = format!("{}/v1", embeddings.url());
    let settings =
        [("EMBEDDINGS__BASE_URL", url.as_str()), ("EMBEDDINGS__MODEL", "small"), ("EMBEDDINGS__API_KEY", "secret-key")];
    let s = product_with(&fake.section(""), PROFILE, &settings, [says("Yes."), says("Yes.")]).await;
    s.app.chat(&message("Will it rain?")).await;
    s.app.chat(&message("And rain again?")).await;
    for names in offered(&s) {
        assert!(names.contains(&"peer__gamma".to_owned()), "{names:?}");
    }
    let asked: Vec<_> = embeddings.requests();
    let lengths: Vec<usize> = asked.iter().map(|request| request.json()["input"].as_array().unwrap().len()).collect();
    assert_eq!(lengths, [5, 1], "the tools' vectors are fetched once, in one batch");
    assert_eq!(asked[0].path, "/v1/embeddings");
    assert_eq!(asked[0].header("authorization"), Some("Bearer secret-key"), "and never the caller's token");
    assert_eq!(asked[0].json()["model"], "small");
}

#[tokio::test]
async fn a_service_that_fails_costs_no_tool_and_is_left_alone() {
    let broken = [
        (Answer::status(500, "text/plain", "no"), "an error"),
        (Answer::ok("application/json", "{]"), "garbage"),
        (Answer::ok("application/json", json!({"data": []}).to_string()), "no vectors"),
        (Answer::ok("application/json", json!({"data": [{"index": 0, "embedding": []}]}).to_string()), "an empty one"),
    ];
    for (answer, reason) in broken {
        let fake = many().await;
        let embeddings = Upstream::choosing(move |_| Some(answer.clone())).await;
        let url = format!("{}/v1", embeddings.url());
        let settings = [("EMBEDDINGS__BASE_URL", url.as_str()), ("EMBEDDINGS__MODEL", "small")];
        let s = product_with(&fake.section(""), PROFILE, &settings, [says("Yes."), says("Yes.")]).await;
        s.app.chat(&message("the weather in Oslo")).await;
        s.app.chat(&message("search articles")).await;
        let expected = [
            ["discover_entities", "peer__alpha", "peer__gamma", "find_tools"],
            ["discover_entities", "peer__alpha", "peer__delta", "find_tools"],
        ];
        assert_eq!(offered(&s), expected, "{reason}");
        assert_eq!(embeddings.requests().len(), 1, "the second run does not wait for it: {reason}");
    }
}

#[tokio::test]
async fn texts_that_are_too_many_or_too_long_for_a_service_are_asked_for_in_another_way() {
    type Refuses = fn(&[&str]) -> bool;
    let rows: [(Refuses, u16, &[usize], &str); 3] = [
        (|texts| texts.len() > 2, 413, &[5, 2, 2, 1, 1], "fewer at once, and known"),
        (|texts| texts.join("").contains("library"), 400, &[5, 2, 2, 1, 1, 1], "the beginning of one"),
        (|texts| texts.join("").contains("peer__delta"), 422, &[5, 2, 2, 1, 1, 1], "all but one"),
    ];
    for (refuses, status, expected, reason) in rows {
        let fake = many().await;
        let embeddings = Upstream::choosing(move |request| {
            let body = request.json();
            let texts: Vec<&str> =
                body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
            if refuses(&texts) { Some(Answer::status(status, "text/plain", "no")) } else { vectors(request) }
        });
        let embeddings = embeddings.await;
        let url = format!("{}/v1", embeddings.url());
        let settings = [("EMBEDDINGS__BASE_URL", url.as_str()), ("EMBEDDINGS__MODEL", "small")];
        let s = product_with(&fake.section(""), PROFILE, &settings, [says("Yes."), says("Yes.")]).await;
        s.app.chat(&message("Will it rain?")).await;
        s.app.chat(&message("search articles")).await;
        let [first, second] = &offered(&s)[..] else { panic!("{reason}") };
        assert!(first.contains(&"peer__gamma".to_owned()), "{reason}: {first:?}");
        assert!(second.contains(&"peer__delta".to_owned()), "by its words at least, {reason}: {second:?}");
        let asked = embeddings.requests();
        let asked: Vec<usize> = asked.iter().map(|request| request.json()["input"].as_array().unwrap().len()).collect();
        assert_eq!(asked, expected, "{reason}");
    }
}
