//! What a preview was made against is read again before it is saved: what has changed is never overwritten, what may have been
//! saved is not sent unseen, and what nobody may decide any more says so.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{BEN, Dialogue, RULE, Ran, backend, json_answer, small};
use crate::support::upstream::{Answer, Request, Upstream};

/// One rule in somebody's backend, and how that behaves.
#[derive(Clone)]
struct House {
    /// Each with the name of the part that it is: the rule, its actions, its edges.
    rule: Value,
    actions: Value,
    edges: Value,
    etag: &'static str,
    /// What a save is answered with instead of being done.
    answer: Option<Answer>,
    /// Whether a save that is answered so is done all the same.
    is_done: bool,
    saves: Vec<Request>,
}

type Shared = Arc<Mutex<House>>;

/// Somebody changes it.
type Change = fn(&mut House);

fn house() -> Shared {
    let rule = json!({"id": RULE, "name": "Night Shift", "is_active": true, "updated_date": "2026-01-01T00:00:00Z"});
    let edge = |target: &str| json!({"id": target, "target_action_id": target, "edge_type": "start", "edge_order": 0});
    Arc::new(Mutex::new(House {
        rule,
        actions: json!([{"id": "a1", "name": "A"}, {"id": "a2", "name": "B"}]),
        edges: json!([edge("a1"), edge("a2")]),
        etag: "\"v1\"",
        answer: None,
        is_done: false,
        saves: Vec::new(),
    }))
}

impl House {
    fn special(&mut self, request: &Request) -> Option<Answer> {
        let part = request.path.strip_prefix("/v1/workflow/rules").unwrap_or_default();
        let own = format!("/{RULE}");
        match (request.method.as_str(), part) {
            ("GET", part) if part.starts_with(&own) && self.rule.is_null() => {
                Some(super::refusal(404, "rule not found"))
            }
            ("GET", part) if part == own => Some(json_answer(&self.rule).header("etag", self.etag)),
            ("GET", part) if part == format!("{own}/actions") => Some(json_answer(&self.actions)),
            ("GET", part) if part == format!("{own}/edges") => Some(json_answer(&self.edges)),
            ("GET", part) if part.starts_with('?') => {
                Some(json_answer(&json!({"items": [self.rule], "total": 1, "page": 1, "rows_per_page": 500})))
            }
            ("PUT" | "POST", part) if part.ends_with("/full") => Some(self.save(request)),
            _ => None,
        }
    }

    fn save(&mut self, request: &Request) -> Answer {
        self.saves.push(request.clone());
        let body = request.json();
        if self.answer.is_none() || self.is_done {
            self.rule["name"] = body["name"].clone();
            self.actions = body["actions"].clone();
            self.edges = body["edges"].clone();
            for key in ["entity_id", "trigger_type_id", "is_active", "description"] {
                self.rule[key] = body[key].clone();
            }
        }
        self.answer.clone().unwrap_or_else(|| json_answer(&json!({"id": RULE})))
    }
}

async fn over(house: &Shared) -> (Dialogue, Upstream) {
    let shared = Arc::clone(house);
    let backend = backend(move |request| shared.lock().unwrap().special(request)).await;
    (Dialogue::over(&backend).await, backend)
}

async fn update(d: &Dialogue, conversation: &str, workflow: &str, name: &str) -> Ran {
    let args = json!({"workflow": small(name), "description": "d", "workflow_id": workflow});
    d.ask(conversation, &[("preview_workflow", args)]).await
}

async fn accept(d: &Dialogue, preview: &str) -> (u16, Value) {
    d.decide(&d.s.app.token, preview, &json!({"decision": "accept"})).await
}

/// Status and code of an acceptance.
async fn accepted(d: &Dialogue, preview: &str) -> (u16, String) {
    let (status, body) = accept(d, preview).await;
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

fn told(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// As if so many seconds had passed since somebody claimed a preview.
async fn age(d: &Dialogue, seconds: u32) {
    d.s.app.beside(&format!("UPDATE previews SET claimed_at = claimed_at - {seconds}000")).await;
}

#[tokio::test]
async fn of_two_changes_of_one_rule_the_second_is_not_saved_over_the_first() {
    let d = Dialogue::demo().await;
    let created = d.ask("c", &[("preview_workflow", json!({"workflow": small("Patience"), "description": "d"}))]).await;
    let rule = accept(&d, &created.preview_id()).await.1["saved_id"].as_str().unwrap().to_owned();
    let older = update(&d, "c", &rule, "Older").await.preview_id();
    let newer = update(&d, "elsewhere", &rule, "Newer").await.preview_id();
    assert_eq!(accept(&d, &newer).await.0, 200);
    for _ in 0..2 {
        let (status, problem) = accept(&d, &older).await;
        assert_eq!((status, &problem["code"], &problem["retryable"]), (409, &json!("preview_stale"), &json!(false)));
        assert_eq!(problem["current"]["name"], "Newer", "what is there now, in the shape of a body: {problem}");
        assert!(problem["current"].get("updated_date").is_none(), "{problem}");
    }
    // The same by the other way to decide.
    let url = d.s.app.url(&format!("/v1/agent/approvals/{older}"));
    let body = json!({"decision": "approve"});
    let response = d.s.app.http.post(url).bearer_auth(&d.s.app.token).json(&body).send().await.unwrap();
    assert_eq!(response.status(), 409);
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "preview_stale");
    let rules = d.ask("c", &[("get_workflow_rule", json!({"workflow_id": rule}))]).await;
    assert_eq!(rules.ok(0)["rule"]["name"], "Newer");
    assert_eq!(d.waiting(&d.s.app.token, &older).await.0, 200, "it still waits");
    assert_eq!(d.decide(&d.s.app.token, &older, &json!({"decision": "reject"})).await.0, 200);
}

#[tokio::test]
async fn a_rule_that_is_gone_is_not_made_again() {
    let house = house();
    let (d, _backend) = over(&house).await;
    let preview = update(&d, "c", RULE, "Day Shift").await.preview_id();
    house.lock().unwrap().rule = Value::Null;
    let (status, problem) = accept(&d, &preview).await;
    assert_eq!((status, &problem["code"]), (409, &json!("preview_stale")));
    assert!(problem["current"].is_null() && problem.as_object().unwrap().contains_key("current"), "{problem}");
    assert!(house.lock().unwrap().saves.is_empty());
}

#[tokio::test]
async fn what_changes_by_itself_makes_no_preview_stale() {
    let house = house();
    let (d, _backend) = over(&house).await;
    let preview = update(&d, "c", RULE, "Day Shift").await.preview_id();
    {
        let mut house = house.lock().unwrap();
        house.rule = json!({"updated_date": "2026-02-02T00:00:00Z", "is_active": true, "name": "Night Shift", "runs": 7, "id": RULE});
        house.etag = "\"v2\"";
        for list in ["actions", "edges"] {
            let list = if list == "actions" { &mut house.actions } else { &mut house.edges };
            list.as_array_mut().unwrap().reverse();
        }
    }
    assert_eq!(accept(&d, &preview).await.0, 200);
    let house = house.lock().unwrap();
    assert_eq!(house.saves.len(), 1);
    assert_eq!(house.saves[0].header("if-match"), Some("\"v2\""), "what was read just before");
    assert_eq!(house.saves[0].header("idempotency-key"), Some(&*preview));
}

#[tokio::test]
async fn any_part_that_would_be_overwritten_counts() {
    let changes: [(&str, Change); 4] = [
        ("the name", |house| house.rule["name"] = json!("Late Shift")),
        ("a new action", |house| house.actions.as_array_mut().unwrap().push(json!({"id": "a3", "name": "C"}))),
        ("an action's settings", |house| house.actions[0]["action_config"] = json!({"duration": "1h"})),
        ("an edge", |house| house.edges[1]["source_output"] = json!("failure")),
    ];
    for (what, change) in changes {
        let house = house();
        let (d, _backend) = over(&house).await;
        let preview = update(&d, "c", RULE, "Day Shift").await.preview_id();
        change(&mut house.lock().unwrap());
        assert_eq!(accepted(&d, &preview).await, told(409, "preview_stale"), "{what}");
        assert!(house.lock().unwrap().saves.is_empty(), "{what}");
    }
}

#[tokio::test]
async fn a_backend_that_compares_has_the_last_word() {
    let house = house();
    let (d, _backend) = over(&house).await;
    let preview = update(&d, "c", RULE, "Day Shift").await.preview_id();
    house.lock().unwrap().answer = Some(super::refusal(412, "changed"));
    let (status, problem) = accept(&d, &preview).await;
    assert_eq!((status, &problem["code"]), (409, &json!("preview_stale")));
    assert_eq!(problem["current"]["name"], "Night Shift", "read once more: {problem}");
    house.lock().unwrap().answer = None;
    assert_eq!(accept(&d, &preview).await.0, 200, "it waits again, at once");
    // One that cannot be compared with is not sent (RFC 9110, 13.1.1).
    house.lock().unwrap().etag = "W/\"v3\"";
    let preview = update(&d, "c", RULE, "Late Shift").await.preview_id();
    assert_eq!(accept(&d, &preview).await.0, 200);
    let house = house.lock().unwrap();
    let sent: Vec<_> = house.saves.iter().map(|save| save.header("if-match")).collect();
    assert_eq!(sent, [Some("\"v1\""), Some("\"v1\""), None]);
}

#[tokio::test]
async fn a_failure_inside_the_backend_proves_nothing() {
    for status in [500, 502, 503, 504] {
        let house = house();
        let (d, _backend) = over(&house).await;
        let preview = update(&d, "c", RULE, "Day Shift").await.preview_id();
        house.lock().unwrap().answer = Some(super::refusal(status, "oh"));
        assert_eq!(accepted(&d, &preview).await, told(502, "save_unconfirmed"), "{status}");
        assert_eq!(accepted(&d, &preview).await, told(409, "already_decided"), "{status}: not at once");
        let (_, waits) = d.waiting(&d.s.app.token, &preview).await;
        assert_eq!(waits["may_be_saved"], true, "{waits}");
        // Nothing was done: it is sent again, with the same key.
        house.lock().unwrap().answer = None;
        age(&d, 61).await;
        assert_eq!(accept(&d, &preview).await.0, 200, "{status}");
        let house = house.lock().unwrap();
        let keys: Vec<_> = house.saves.iter().map(|save| save.header("idempotency-key").unwrap()).collect();
        assert_eq!(keys, [&*preview, &*preview], "{status}");
    }
}

#[tokio::test]
async fn a_save_that_was_done_is_found_and_not_sent_again() {
    let house = house();
    let (d, _backend) = over(&house).await;
    let preview = update(&d, "c", RULE, "Day Shift").await.preview_id();
    {
        let mut house = house.lock().unwrap();
        (house.answer, house.is_done) = (Some(super::refusal(504, "late")), true);
    }
    assert_eq!(accepted(&d, &preview).await, told(502, "save_unconfirmed"));
    age(&d, 61).await;
    let (status, decided) = accept(&d, &preview).await;
    assert_eq!((status, &decided["saved_id"]), (200, &json!(RULE)));
    assert_eq!(house.lock().unwrap().saves.len(), 1);
}

#[tokio::test]
async fn a_new_rule_is_not_made_twice_and_a_rejection_does_not_say_that_nothing_is_saved() {
    for (name, again, reason) in [
        ("Night Shift", told(409, "preview_stale"), "one of that name is there: its user has to look"),
        ("Patience", told(200, ""), "none is there: the same key goes out again"),
    ] {
        let house = house();
        let (d, _backend) = over(&house).await;
        let args = json!({"workflow": small(name), "description": "d"});
        let preview = d.ask("c", &[("preview_workflow", args)]).await.preview_id();
        house.lock().unwrap().answer = Some(super::refusal(503, "oh"));
        assert_eq!(accepted(&d, &preview).await, told(502, "save_unconfirmed"), "{reason}");
        house.lock().unwrap().answer = None;
        age(&d, 61).await;
        assert_eq!(accepted(&d, &preview).await, again, "{reason}");
        let saves = house.lock().unwrap().saves.len();
        assert_eq!(saves, if again.0 == 200 { 2 } else { 1 }, "{reason}");
        if again.0 == 409 {
            assert_eq!(d.decide(&d.s.app.token, &preview, &json!({"decision": "reject"})).await.0, 200);
            let asked = d.ask("c", &[("discover_trigger_types", json!({}))]).await.asked;
            let said = asked.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].to_string();
            assert!(said.contains("never confirmed, so it may be saved all the same"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_newer_preview_of_the_same_rule_takes_the_older_ones_place() {
    let backend = backend(|_| None).await;
    let d = Dialogue::over(&backend).await;
    let older = update(&d, "c", RULE, "Older").await.preview_id();
    let newer = update(&d, "c", RULE, "Newer").await.preview_id();
    assert_eq!(accepted(&d, &older).await, told(409, "preview_superseded"));
    assert_eq!(d.waiting(&d.s.app.token, &older).await.0, 404);
    assert_eq!(d.waiting(&d.s.app.token, &newer).await.0, 200);
}

#[tokio::test]
async fn previews_are_bounded_and_expire() {
    let backend = backend(|_| None).await;
    let settings = [
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", &*backend.url()),
        ("LIMITS__PREVIEWS", "2"),
        ("RUNS__PREVIEW_S", "600"),
    ];
    let d = Dialogue::with(&settings).await;
    let make = |name: &str| ("preview_workflow", json!({"workflow": small(name), "description": "d"}));
    let ran = d.ask("c", &[make("A"), make("B"), make("C")]).await;
    assert!(ran.error(2).starts_with("nothing was shown: 2 previews"), "{}", ran.error(2));
    let ids: Vec<&str> = ran.previews().iter().map(|preview| preview["preview_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    let (_, waits) = d.waiting(&d.s.app.token, ids[0]).await;
    assert!(waits["expires_at"].as_str() > waits["created_at"].as_str(), "{waits}");
    d.s.app.beside("UPDATE previews SET expires_at = expires_at - 600000").await;
    assert_eq!(accepted(&d, ids[0]).await, told(410, "preview_expired"));
    assert_eq!(d.waiting(&d.s.app.token, ids[0]).await.0, 404);
    assert_eq!(d.ask("c", &[make("D")]).await.previews().len(), 1, "there is room again");
}

#[tokio::test]
async fn who_lost_the_role_sees_and_decides_nothing() {
    let data = tempfile::tempdir().unwrap();
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/config/profiles/workflow.toml");
    let profile = std::fs::read_to_string(profile).unwrap();
    std::fs::create_dir_all(data.path().join("config/profiles")).unwrap();
    std::fs::write(data.path().join("config/profiles/workflow.toml"), format!("roles = [\"PLANNER\"]\n{profile}"))
        .unwrap();
    let house = house();
    let shared = Arc::clone(&house);
    let backend = backend(move |request| shared.lock().unwrap().special(request)).await;
    let d = Dialogue::with_in(data, &[("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &backend.url())]).await;
    let with = d.s.app.token_of(BEN, None, &["USER", "PLANNER"]);
    let without = d.s.app.token_of(BEN, None, &["USER", "ADMIN"]);
    let args = json!({"workflow": small("Day Shift"), "description": "d", "workflow_id": RULE});
    let preview = d.ask_as(&with, "c", json!({}), &[("preview_workflow", args)]).await.preview_id();
    let listed = async |token: &str| {
        let url = d.s.app.url("/v1/agent/approvals");
        let list: Value = d.s.app.http.get(url).bearer_auth(token).send().await.unwrap().json().await.unwrap();
        list["items"].as_array().unwrap().len()
    };
    assert_eq!((listed(&with).await, listed(&without).await), (1, 0));
    assert_eq!(d.waiting(&without, &preview).await.0, 404);
    for decision in ["accept", "reject"] {
        let (status, problem) = d.decide(&without, &preview, &json!({"decision": decision})).await;
        assert_eq!((status, &problem["code"]), (403, &json!("forbidden")), "{decision}");
    }
    assert!(house.lock().unwrap().saves.is_empty());
    assert_eq!(d.decide(&with, &preview, &json!({"decision": "accept"})).await.0, 200, "it was left as it was");
}
