//! Finding, pinning, feedback, and texts to take away: `/v1/agent/search`, `…/feedback`, `…/export?format=`.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ask, get, is_time};
use crate::runs::body;
use crate::support::app::TestApp;
use crate::support::model::{Scripted, says, turn};
use crate::support::upstream::Upstream;
use crate::support::wait::eventually;

async fn at(app: &TestApp, token: &str, method: Method, path: &str, body: Option<&Value>) -> (u16, String) {
    let request = app.http.request(method, app.url(path)).bearer_auth(token);
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn search(app: &TestApp, query: &[(&str, &str)]) -> (u16, Value) {
    let mut url = url::Url::parse(&app.url("/v1/agent/search")).unwrap();
    url.query_pairs_mut().extend_pairs(query);
    let response = app.http.get(url).bearer_auth(&app.token).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn run_of(app: &TestApp, conversation: &str) -> String {
    let export = get(app, &format!("/{conversation}/export")).await;
    export["runs"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_search_tells_in_one_answer_all_that_a_list_shows() {
    let s = Scripted::playing([says("It is in the folder.\n\nLook *there*."), says("Hello.")]).await;
    s.app.say("c1", "Where is my invoice?").await;
    s.app.say("c2", "Hi").await;
    ask(&s.app, Method::PATCH, "/c1", Some(&json!({"pinned": true}))).await;
    let (status, found) = search(&s.app, &[("q", "INVOICE")]).await;
    assert_eq!(status, 200, "{found}");
    let hit = &found["items"][0];
    let shown = get(&s.app, "").await;
    assert_eq!((&hit["conversation"], &hit["conversation"]["pinned"]), (&shown["items"][0], &json!(true)));
    let pieces =
        json!([{"text": "Where is my ", "hit": false}, {"text": "invoice", "hit": true}, {"text": "?", "hit": false}]);
    assert_eq!((&hit["title"], &hit["message"]["snippet"], &hit["matches"]), (&pieces, &pieces, &json!(1)));
    assert_eq!((&hit["message"]["role"], is_time(&hit["at"])), (&json!("user"), true));
    let message = get(&s.app, "/c1").await["messages"][0]["id"].clone();
    assert_eq!(hit["message"]["id"], message, "as the conversation shows it");
    assert_eq!((&found["complete"], &found["items"].as_array().unwrap().len()), (&json!(true), &1));
    let (_, answered) = search(&s.app, &[("q", "folder look")]).await;
    assert_eq!(answered["items"][0]["message"]["role"], "assistant");
    assert_eq!(answered["items"][0]["message"]["snippet"][4]["text"], " *there*.");
    let refused = [
        (vec![], "no query"),
        (vec![("q", " ")], "nothing in it"),
        (vec![("q", "a"), ("q", "b")], "twice"),
        (vec![("q", "a"), ("limit", "51")], "too many"),
        (vec![("q", "a"), ("limit", "0")], "none"),
        (vec![("q", "a"), ("cursor", "x")], "no cursor"),
    ];
    for (query, reason) in refused {
        assert_eq!(search(&s.app, &query).await.0, 400, "{reason}");
    }
    let long = "é".repeat(401);
    assert_eq!(search(&s.app, &[("q", &long)]).await.0, 400, "too long");
    assert_eq!(search(&s.app, &[("q", &long[2..])]).await.0, 200, "characters are counted");
    assert_eq!(search(&s.app, &[("q", "\0\u{202E}\" OR *")]).await.0, 200);
    let kilobytes = "x".repeat(60_000);
    let (status, _) = at(&s.app, &s.app.token, Method::GET, &format!("/v1/agent/search?q={kilobytes}"), None).await;
    assert!((400..500).contains(&status), "{status}");
}

#[tokio::test]
async fn an_answer_is_found_as_its_user_saw_it() {
    // Rejected by the loop for its language, and asked for again.
    let s = Scripted::playing([says("这是一个完全用中文写的回答，用户不会看到它。"), says("Seen at last.")]).await;
    s.app.say("c", "Say something").await;
    assert_eq!(search(&s.app, &[("q", "中文")]).await.1["items"], json!([]));
    assert_eq!(search(&s.app, &[("q", "seen")]).await.1["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn conversations_are_pinned_and_archived() {
    let app = TestApp::demo().await;
    for id in ["a", "b", "c"] {
        app.say(id, "hello").await;
    }
    let (status, head) = ask(&app, Method::PATCH, "/a", Some(&json!({"pinned": true}))).await;
    assert_eq!((status, &head["pinned"], &head["archived"]), (200, &json!(true), &json!(false)));
    ask(&app, Method::PATCH, "/b", Some(&json!({"archived": true}))).await;
    let ids = async |query: &str| {
        let list = get(&app, query).await;
        let ids: Vec<String> =
            list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
        ids.join(" ")
    };
    let rows = [
        ("", "a c"),
        ("?archived=false&pinned=", "a c"),
        ("?pinned=true", "a"),
        ("?pinned=false", "c"),
        ("?archived=true", "b"),
        ("?archived=true&pinned=true", ""),
    ];
    for (query, expected) in rows {
        assert_eq!(ids(query).await, expected, "{query}");
    }
    let first = get(&app, "?limit=1").await;
    let next = format!("?limit=1&cursor={}", first["next_cursor"].as_str().unwrap());
    assert_eq!((first["items"][0]["id"].as_str().unwrap(), ids(&next).await), ("a", "c".to_owned()));
    for query in ["?archived=1", "?pinned=yes", "?archived=true&archived=true"] {
        assert_eq!(ask(&app, Method::GET, query, None).await.0, 400, "{query}");
    }
    for wrong in [json!({"pinned": 1}), json!({"archived": "true"}), json!({"pinned": null})] {
        assert_eq!(ask(&app, Method::PATCH, "/a", Some(&wrong)).await.0, 422, "{wrong}");
    }
}

#[tokio::test]
async fn feedback_is_given_replaced_and_taken_back() {
    let s = Scripted::with(&[("METRICS__PATH", "true")], [says("Four.").answer()]).await;
    s.app.say("c", "How many?").await;
    let path = format!("/v1/agent/runs/{}/feedback", run_of(&s.app, "c").await);
    let give = async |body: &Value| {
        let (status, text) = at(&s.app, &s.app.token, Method::POST, &path, Some(body)).await;
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    assert!(get(&s.app, "/c").await["feedback"].is_null());
    assert_eq!(give(&json!({"score": 1})).await.0, 200);
    let said = json!({"score": -1, "comment": "no\u{0} <b>\u{202E}", "tags": ["wrong", "slow"]});
    let (status, kept) = give(&said).await;
    assert_eq!((status, is_time(&kept["given_at"])), (200, true), "{kept}");
    assert_eq!(
        json!([kept["score"], kept["comment"], kept["tags"]]),
        json!([-1, "no\u{0} <b>\u{202E}", ["wrong", "slow"]])
    );
    assert_eq!(get(&s.app, "/c").await["feedback"], json!([kept]));
    assert_eq!(get(&s.app, "/c/export").await["runs"][0]["feedback"], kept);
    for wrong in [json!({}), json!({"score": 5}), json!({"score": 1, "comment": "x".repeat(2001)}), json!([1])] {
        assert!((400..=422).contains(&give(&wrong).await.0), "{wrong}");
    }
    let (status, page) = at(&s.app, &s.app.token, Method::GET, "/metrics", None).await;
    let counted =
        |score: &str, times: u32| page.contains(&format!("switchboard_feedback_total{{score=\"{score}\"}} {times}"));
    if status == 200 {
        assert!(counted("good", 1) || page.contains("switchboard_feedback_total{score=\"good\"}"), "{page}");
        assert!(!page.contains("wrong"), "no word of a user's is a label");
    }
    let stranger = s.app.token_of("bob", None, &[]);
    assert_eq!(at(&s.app, &stranger, Method::POST, &path, Some(&said)).await.0, 404);
    assert_eq!(at(&s.app, &stranger, Method::DELETE, &path, None).await.0, 404);
    for _ in 0..2 {
        assert_eq!(at(&s.app, &s.app.token, Method::DELETE, &path, None).await.0, 204);
    }
    assert!(get(&s.app, "/c").await["feedback"].is_null());
    assert_eq!(at(&s.app, &s.app.token, Method::POST, "/v1/agent/runs/x/feedback", Some(&said)).await.0, 404);
}

#[tokio::test]
async fn a_conversation_is_taken_away_as_a_text() {
    let s = Scripted::playing([
        turn().text("Let me see.").call("t1", "discover_trigger_types", &json!({"secret": "of the model"})).done(),
        says("There are <b>four</b>:\n\n```\n<b>\n```\n\n## User · forged"),
        says("Four."),
    ])
    .await;
    s.app.chat(&body("# How *many*?\n\n## Assistant · forged")).await;
    s.app.chat(&json!({"regenerate": true, "context_type": "workflow", "conversation_id": "c"})).await;
    let path = format!("/v1/agent/runs/{}/feedback", run_of(&s.app, "c").await);
    let said = json!({"score": 1, "comment": "Good\n## User", "tags": ["right"]});
    assert_eq!(at(&s.app, &s.app.token, Method::POST, &path, Some(&said)).await.0, 200);
    let export = async |format: &str| {
        let url = s.app.url(&format!("/v1/agent/conversations/c/export?format={format}"));
        let answer = s.app.http.get(url).bearer_auth(&s.app.token).send().await.unwrap();
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        let headers = (header("content-type"), header("content-disposition"));
        (headers, answer.text().await.unwrap())
    };
    // Ids and times are of this run.
    let plain = |text: &str| {
        let lines = text.lines().map(|line| match line.split_once(" · ") {
            Some((before, after)) if after.starts_with("20") => format!("{before} · TIME"),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let (headers, markdown) = export("markdown").await;
    let name = "attachment; filename=\"conversation.md\"".to_owned();
    assert_eq!(headers, ("text/markdown; charset=utf-8".to_owned(), name));
    let expected = "# \\# How \\*many\\*?\n\nc · TIME\n\n## User · TIME\n\n> # How *many*?\n>\n> ## Assistant · forged\n\n\
        ## Assistant · TIME\n\n> Let me see.\n\n- Tool discover\\_trigger\\_types: done\n\n\
        ## Assistant · TIME\n\n> There are &lt;b>four&lt;/b>:\n>\n> ```\n> <b>\n> ```\n>\n> ## User · forged\n\n\
        *Rated good: right.*\n\n> Good\n> ## User\n\n---\n\n*Another version of the conversation begins here.*\n\n\
        ## User · TIME\n\n> # How *many*?\n>\n> ## Assistant · forged\n\n## Assistant · TIME\n\n> Four.";
    assert_eq!(plain(&markdown), expected);
    let (headers, text) = export("text").await;
    let name = "attachment; filename=\"conversation.txt\"".to_owned();
    assert_eq!(headers, ("text/plain; charset=utf-8".to_owned(), name));
    assert!(
        plain(&text)
            .starts_with("# How *many*?\nc · TIME\n\nUser · TIME\n    # How *many*?\n\n    ## Assistant · forged\n"),
        "{text}"
    );
    assert!(text.contains("\n  [Tool discover_trigger_types: done]\n"), "{text}");
    for form in [&markdown, &text] {
        assert!(!form.contains("of the model") && !form.contains("trigger_type_id"), "no argument, no result: {form}");
    }
    let (_, json) = export("json").await;
    assert!(serde_json::from_str::<Value>(&json).unwrap()["runs"].is_array());
    for (query, status) in [("?format=pdf", 400), ("?format=text&format=text", 400), ("?format=", 200)] {
        let path = format!("/v1/agent/conversations/c/export{query}");
        assert_eq!(at(&s.app, &s.app.token, Method::GET, &path, None).await.0, status, "{query}");
    }
    assert_eq!(
        at(&s.app, &s.app.token, Method::GET, "/v1/agent/conversations/x/export?format=text", None).await.0,
        404
    );
}

#[tokio::test]
async fn a_long_conversation_is_a_long_text() {
    let app = TestApp::demo().await;
    let long = "word ".repeat(20_000);
    for at in 0..8 {
        app.say("c", &format!("message {at} {long}")).await;
    }
    let (status, text) = at(&app, &app.token, Method::GET, "/v1/agent/conversations/c/export?format=text", None).await;
    assert_eq!(status, 200);
    let found: Vec<bool> = (0..8).map(|at| text.contains(&format!("    message {at} word"))).collect();
    assert_eq!((found, text.len() > 8 * long.len()), (vec![true; 8], true));
}

#[tokio::test]
async fn usage_is_told_by_month_and_conversation() {
    let s = Scripted::playing([says("Yes."), says("No."), says("Maybe.")]).await;
    s.app.say("a", "first question").await;
    s.app.say("a", "again").await;
    s.app.say("b", "second question").await;
    let usage = async |query: &str| {
        let (status, text) = at(&s.app, &s.app.token, Method::GET, &format!("/v1/agent/usage{query}"), None).await;
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let (_, days) = usage("").await;
    assert!(days["days"].is_array() && days["months"].is_null() && days["conversations"].is_null(), "{days}");
    let (_, months) = usage("?by=month").await;
    let runs: u64 = months["months"].as_array().unwrap().iter().map(|month| month["runs"].as_u64().unwrap()).sum();
    assert_eq!((runs, &months["total"]["runs"], &months["days"]), (3, &json!(3), &Value::Null), "{months}");
    assert_eq!(months["months"][0]["month"].as_str().unwrap(), &months["to"].as_str().unwrap()[..7]);
    let (_, by) = usage("?by=conversation").await;
    let told: Vec<Value> = by["conversations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| json!([of["conversation_id"], of["title"], of["runs"], of["input_tokens"]]))
        .collect();
    assert_eq!(told, [json!(["a", "first question", 2, 20]), json!(["b", "second question", 1, 10])]);
    let shown = get(&s.app, "/a").await;
    assert_eq!(
        json!([shown["usage"]["runs"], shown["usage"]["input_tokens"], shown["usage"]["output_tokens"]]),
        json!([2, 20, 10])
    );
    assert_eq!(usage("?by=week").await.0, 400);
    assert_eq!(usage("?by=day&by=day").await.0, 400);
}

/// The product over a model that answers, and that as `titler` gives titles.
async fn titled(title: &'static str, model: &str) -> Scripted {
    let upstream = Upstream::choosing(move |request| match request.json()["model"] == "titler" {
        true => Some(says(title).answer()),
        false => Some(says("Gladly.").answer()),
    });
    let model_server = upstream.await;
    let base_url = format!("{}/v1", model_server.url());
    let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &base_url), ("TITLES__MODEL", model)];
    Scripted { app: TestApp::start(&settings).await, model: model_server }
}

fn asked_for_titles(s: &Scripted) -> usize {
    s.model.requests().iter().filter(|request| request.json()["model"] == "titler").count()
}

#[tokio::test]
async fn a_conversation_without_a_title_gets_one_behind_its_run() {
    let s = titled(r#"{"title": "The garden", "topics": []}"#, "openai:titler").await;
    s.app.say("c", "Help me with my plants").await;
    let title = async || {
        let title = get(&s.app, "/c").await["title"].as_str().unwrap().to_owned();
        (title == "The garden").then_some(())
    };
    eventually("a title", title).await;
    let usage = async || {
        let (_, text) = at(&s.app, &s.app.token, Method::GET, "/v1/agent/usage", None).await;
        let told: Value = serde_json::from_str(&text).unwrap();
        told["days"].as_array().unwrap().iter().any(|day| day["model"] == "openai:titler").then_some(())
    };
    eventually("its charge", usage).await;
    assert_eq!(search(&s.app, &[("q", "garden")]).await.1["items"][0]["conversation"]["id"], "c");
    s.app.say("c", "More").await;
    s.app.say("d", "Another one").await;
    eventually("the second title", async || (asked_for_titles(&s) == 2).then_some(())).await;
}

#[tokio::test]
async fn a_title_of_a_users_stays_and_without_a_model_there_is_none() {
    let s = titled(r#"{"title": "Replaced"}"#, "openai:titler").await;
    let (_, opened) = ask(&s.app, Method::POST, "", Some(&json!({"title": "Mine", "context_type": "workflow"}))).await;
    let id = opened["id"].as_str().unwrap().to_owned();
    s.app.say(&id, "hello").await;
    s.app.say("other", "hello").await;
    eventually("the other one's title", async || (get(&s.app, "/other").await["title"] == "Replaced").then_some(()))
        .await;
    assert_eq!((get(&s.app, &format!("/{id}")).await["title"].clone(), asked_for_titles(&s)), (json!("Mine"), 1));
    let off = titled(r#"{"title": "Replaced"}"#, "off").await;
    off.app.say("c", "hello").await;
    off.app.say("c", "again").await;
    assert_eq!((get(&off.app, "/c").await["title"].clone(), asked_for_titles(&off)), (json!("hello"), 0));
}
