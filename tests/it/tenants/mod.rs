//! Nobody reads or changes what is somebody else's: by the texts of all statements, and by a matrix of two tenants with
//! two users each, every route and every kind of id.

mod routes;
mod statements;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{Scripted, calls, says};
use crate::support::postgres::TestPostgres;
use routes::{Ids, Kind, Row};

const SECRET: &str = "a secret of the tests, long enough for HS256";

/// A word that only the victim says.
const WORD: &str = "zanzibar";

/// Who asks for Ann's things, who is of acme: tenant, user, roles.
const STRANGERS: [(&str, &str, &[&str]); 4] = [
    ("acme", "bob", &[]),
    ("umbrella", "ann", &["ADMIN", "USER"]),
    ("umbrella", "bob", &["ADMIN", "USER"]),
    ("umbrella", "carl", &[]),
];

/// What an answer says: the status, the headers and the body.
type Told = (u16, BTreeMap<String, String>, String);

/// A message of Ann from a page: the conversation's number, its id and the answer's payload.
async fn on_page(app: &TestApp, token: &str, context: Value, message: &str) -> (String, Value) {
    let body = json!({"message": message, "context": context, "interaction_type": "text_input"});
    let request = app.http.post(app.url("/api/chat/stream")).bearer_auth(token).json(&body);
    let text = request.send().await.unwrap().text().await.unwrap();
    let last: Value =
        serde_json::from_str(text.trim_end().lines().last().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(last["type"], "complete", "{text}");
    (last["payload"]["conversation_id"].to_string(), last["payload"].clone())
}

async fn read(app: &TestApp, token: &str, path: &str) -> String {
    let response = app.http.get(app.url(path)).bearer_auth(token).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.text().await.unwrap()
}

async fn document(app: &TestApp, token: &str, path: &str) -> Value {
    serde_json::from_str(&read(app, token, path).await).unwrap()
}

/// What Ann has: of each kind of thing one.
async fn belongings(app: &TestApp, ann: &str) -> Ids {
    let question = format!("Which rules do we have in {WORD}?");
    let body = json!({"message": question, "context_type": "workflow", "conversation_id": "anns-own"});
    let request = app.http.post(app.url("/v1/agent/chat")).bearer_auth(ann).header("idempotency-key", "anns-key");
    let response = request.json(&body).send().await.unwrap();
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    response.text().await.unwrap();
    let shown = document(app, ann, "/v1/agent/conversations/anns-own").await;
    let message = shown["messages"][0]["id"].as_str().unwrap().to_owned();

    let change = json!({"message": "Create a workflow that alerts when stock is low", "context_type": "workflow",
        "conversation_id": "anns-preview"});
    let told = frames::parse(&app.post_as(ann, &change).await.text().await.unwrap());
    let preview = told.iter().find(|frame| frame.event == "workflow_preview");
    let preview = preview.map(|frame| frame.data["preview_id"].as_str().unwrap().to_owned());
    let preview = preview.unwrap_or_else(|| panic!("no preview: {told:#?}"));

    let manage = json!({"current_page": "reports", "active_tab": "manage", "report_id": 456});
    let (chat, held) = on_page(app, ann, manage, "Delete report 457").await;
    let approval = held["custom_payload"]["data"]["approval_id"].as_str().unwrap().to_owned();
    let list = document(app, ann, "/v1/agent/conversations?limit=1").await;
    let cursor = list["next_cursor"].as_str().unwrap().to_owned();
    let key = "anns-key".to_owned();
    let planned = json!({"message": "Plan a look at my rules and alerts", "context_type": "workflow",
        "conversation_id": "anns-plan"});
    let told = frames::parse(&app.post_as(ann, &planned).await.text().await.unwrap());
    let plan = told.iter().find(|frame| frame.event == "plan_created");
    let plan = plan.map(|frame| frame.data["plan"]["id"].as_str().unwrap().to_owned());
    let plan = plan.unwrap_or_else(|| panic!("no plan: {told:#?}"));
    let upload = app.http.post(app.url("/v1/agent/files?name=anns.txt")).bearer_auth(ann).body("a text of Ann's");
    let file: Value = serde_json::from_str(&upload.send().await.unwrap().text().await.unwrap()).unwrap();
    Ids {
        conversation: "anns-own".to_owned(),
        file: file["id"].as_str().unwrap().to_owned(),
        run,
        message,
        approval,
        preview,
        plan,
        chat,
        key,
        cursor,
        user: "ann".to_owned(),
    }
}

/// Of the same kinds, and nobody's.
fn unknown(like: &Ids) -> Ids {
    let id = || Uuid::now_v7().to_string();
    let (_, seq) = like.message.rsplit_once('.').unwrap();
    Ids {
        conversation: "nobodys1".to_owned(),
        run: id(),
        message: format!("{}.{seq}", id()),
        approval: id(),
        preview: id(),
        plan: id(),
        file: id(),
        chat: "999999".to_owned(),
        key: "nobodys1".to_owned(),
        cursor: like.cursor.clone(),
        user: "nobody".to_owned(),
    }
}

async fn told(app: &TestApp, token: &str, row: &Row, ids: &Ids) -> Told {
    let (method, path) = row.asks(ids);
    let mut request = app.http.request(method, app.url(&path)).bearer_auth(token).header("x-request-id", "same");
    if let Some((name, value)) = (row.header)(ids) {
        request = request.header(name, value);
    }
    if let Some(body) = (row.body)(ids) {
        request = request.json(&body);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let headers =
        headers.filter(|(name, _)| !["date", "content-length", "server-timing"].contains(&name.as_str())).collect();
    (status, headers, response.text().await.unwrap())
}

/// The same without what differs from one request to the next: the ids that were asked for, new ids, times.
fn plain((status, headers, body): Told, ids: &Ids) -> Told {
    let headers = headers.into_iter().map(|(name, value)| (name, without_ids(&value, ids))).collect();
    (status, headers, without_ids(&body, ids))
}

/// Whether a text may be an id of its kind.
type Shape<'a> = &'a dyn Fn(&str) -> bool;

fn without_ids(text: &str, ids: &Ids) -> String {
    let mut text = text.to_owned();
    for id in ids.all() {
        text = text.replace(id, "ID");
    }
    let is_uuid = |text: &str| text.len() == 36 && Uuid::parse_str(text).is_ok();
    // Calls are made up with ids of their own.
    let is_simple = |text: &str| text.len() == 32 && Uuid::try_parse(text).is_ok();
    // The AI SDK's parts are named by the end of their run's id; prompts have the mark of their conversation.
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_time = |text: &str| text.starts_with("20") && text.ends_with('Z') && text.contains('T');
    let (mut plain, mut rest) = (String::new(), text.as_str());
    while let Some(first) = rest.chars().next() {
        // When something was made, in seconds.
        if let Some(after) = rest.strip_prefix("\"created_at\":") {
            plain.push_str("\"created_at\":");
            rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            continue;
        }
        // The number that a new chat has got.
        if let Some(after) = rest.strip_prefix("\"conversation_id\":") {
            plain.push_str("\"conversation_id\":");
            rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            continue;
        }
        let new: [(usize, Shape<'_>); 6] =
            [(36, &is_uuid), (32, &is_simple), (24, &is_time), (20, &is_time), (16, &is_hex), (12, &is_hex)];
        let found = new.into_iter().find(|(length, is_it)| rest.get(..*length).is_some_and(is_it));
        match found {
            Some((length, _)) => {
                plain.push_str("NEW");
                rest = &rest[length..];
            }
            None => {
                plain.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    plain
}

/// Everything that Ann sees of her own, to be compared before and after.
async fn seen(app: &TestApp, ann: &str, ids: &Ids) -> Vec<String> {
    let paths = [
        "/v1/agent/conversations".to_owned(),
        "/v1/agent/conversations/anns-own".to_owned(),
        "/v1/agent/conversations/anns-own/export".to_owned(),
        "/v1/agent/conversations/anns-preview/trail".to_owned(),
        "/v1/agent/approvals".to_owned(),
        format!("/v1/agent/approvals/{}", ids.approval),
        format!("/v1/agent/previews/{}", ids.preview),
        format!("/v1/agent/runs/{}", ids.run),
        format!("/v1/agent/runs/{}/events", ids.run),
        format!("/api/chats/{}", ids.chat),
    ];
    let mut all = Vec::new();
    for path in paths {
        all.push(read(app, ann, &path).await);
    }
    all
}

async fn matrix(settings: &[(&str, &str)]) {
    let mut all = vec![("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", SECRET), ("CHAT_MESSAGE__PROFILE", "workflow")];
    all.push(("FILES__URL", "memory:"));
    let root = tempfile::tempdir().unwrap();
    let path = root.path().to_str().unwrap();
    all.extend([("WORKSPACE__ROOT", path), ("WORKSPACE__ROLE", ""), ("WORKSPACE__COMMANDS", "off")]);
    all.extend(settings);
    let app = TestApp::start(&all).await;
    let ann = app.token_of("ann", Some("acme"), &[]);
    let theirs = belongings(&app, &ann).await;
    let before = seen(&app, &ann, &theirs).await;
    assert!(before[1].contains(WORD) && before[5].contains(&theirs.approval), "the control: Ann sees her own");
    let nobodys = unknown(&theirs);
    let (mut asked, mut reads) = (0, Vec::new());
    for (tenant, user, roles) in STRANGERS {
        let token = app.token_of(user, Some(tenant), roles);
        for row in routes::rows() {
            let reason = format!("{user} of {tenant} {roles:?}: {}", row.asks(&theirs).1);
            let of_theirs = told(&app, &token, &row, &theirs).await;
            let of_nobodys = told(&app, &token, &row, &nobodys).await;
            asked += 1;
            let ids = [&theirs.run, &theirs.approval, &theirs.preview];
            let given = row.asks(&theirs).1 + &(row.body)(&theirs).map_or_else(String::new, |body| body.to_string());
            // An id that was not asked for is a read too.
            let leaks = ids.iter().any(|id| of_theirs.2.contains(id.as_str()) && !given.contains(id.as_str()));
            if of_theirs.2.contains(WORD) || leaks || of_theirs.1.get("x-run-id") == Some(&theirs.run) {
                reads.push(format!("{reason}: {of_theirs:?}"));
            }
            assert!(of_theirs.0 < 500, "{reason}: {of_theirs:?}");
            match row.kind {
                Kind::AsUnknown => {
                    assert_eq!(plain(of_theirs, &theirs), plain(of_nobodys, &nobodys), "{reason}");
                }
                Kind::Own(_) => {}
            }
        }
    }
    assert_eq!(reads, [""; 0], "foreign reads");
    assert_eq!(seen(&app, &ann, &theirs).await, before, "nothing of Ann's has changed");
    assert!(asked >= 4 * 40, "{asked} pairs of requests");
}

#[tokio::test]
async fn nobody_reads_or_changes_anothers_things_on_sqlite() {
    matrix(&[]).await;
}

#[tokio::test]
async fn nobody_reads_or_changes_anothers_things_on_postgresql() {
    let Some(server) = TestPostgres::shared() else { return };
    let database = server.new_database().await;
    matrix(&[("STORE__URL", &database.url)]).await;
}

/// The same behind the second wall, by a role that it holds for.
#[tokio::test]
async fn nobody_reads_or_changes_anothers_things_behind_row_level_security() {
    let Some(database) = crate::store::row_security::new_database().await else { return };
    matrix(&[("STORE__URL", &database.url), ("STORE__ROW_SECURITY", "on")]).await;
}

#[tokio::test]
async fn a_payload_is_read_in_its_own_conversation_alone() {
    let settings = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", SECRET)];
    let search = calls("c1", "search_articles", &json!({"query": "mesothelioma"}));
    let s = Scripted::with(&settings, [search.answer(), says("Found.").answer()]).await;
    let page = json!({"current_page": "nowhere"});
    let ann = s.app.token_of("ann", Some("acme"), &[]);
    let (_, told) = on_page(&s.app, &ann, page.clone(), "Search articles about mesothelioma").await;
    let list = document(&s.app, &ann, "/v1/agent/conversations").await;
    let conversation = list["items"][0]["id"].as_str().unwrap().to_owned();
    let export = document(&s.app, &ann, &format!("/v1/agent/conversations/{conversation}/export")).await;
    let payload = export["payloads"][0]["payload_id"].as_str().or(export["payloads"][0]["id"].as_str());
    let payload = payload.unwrap_or_else(|| panic!("{told:#} {export:#}")).to_owned();
    let Scripted { app, model } = s;
    let data = app.stop().await;
    drop(model);

    let reads = |id: &str| calls("c2", "get_payload", &json!({"payload_id": id})).answer();
    let done = || says("Done.").answer();
    let owners = [("acme", "ann"), ("acme", "bob"), ("umbrella", "ann"), ("umbrella", "bob")];
    // Ann asks too, in another conversation of hers.
    let asked = owners.map(|_| [reads(&payload), done(), reads("00000000"), done()]).into_iter().flatten();
    let model = crate::support::upstream::Upstream::script(asked).await;
    let base_url = format!("{}/v1", model.url());
    let mut all = vec![("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", base_url.as_str())];
    all.extend(settings);
    let app = TestApp::start_in(data, &all).await;
    for (tenant, user) in owners {
        let token = app.token_of(user, Some(tenant), &[]);
        let mut results = Vec::new();
        for id in [payload.as_str(), "00000000"] {
            on_page(&app, &token, page.clone(), "Show it").await;
            let messages = crate::support::model::messages(model.requests().last().unwrap());
            let result = messages.iter().rev().find(|message| message["tool_call_id"] == "c2").unwrap();
            results.push(result["content"].as_str().unwrap().replace(id, "ID"));
        }
        assert_eq!(results[0], results[1], "{user} of {tenant}");
        assert!(results[0].contains("error"), "{results:?}");
    }
}
