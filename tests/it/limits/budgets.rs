//! What users and tenants may use: refused before a run, ended within one, told by day and model.

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::{message, refusal, token};
use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{Script, Scripted, calls, says};
use crate::support::upstream::{Answer, Upstream};

/// What each turn of the scripted model has: 10 tokens of input and 5 of output, for a cent of a dollar where these prices
/// count.
const PRICES: &str = "[prices.\"m.1\"]\ninput = 1000\noutput = 0\n";

async fn priced(settings: &[(&str, &str)], turns: Vec<Script>) -> Scripted {
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir(data.path().join("config")).unwrap();
    std::fs::write(data.path().join("config/default.toml"), PRICES).unwrap();
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    let base_url = format!("{}/v1", model.url());
    let own = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &*base_url), ("LLM__OPENAI__MODEL", "m.1")];
    Scripted { app: TestApp::start_in(data, &[&own, settings].concat()).await, model }
}

/// A user's run, read to its end: its status, and the code of its failure, if it has failed.
async fn ask(app: &TestApp, user: &str) -> (u16, Value) {
    let response = app.post_as(&token(app, user), &message("hello")).await;
    let status = response.status().as_u16();
    if status != 200 {
        let (status, code, after) = refusal(response).await;
        assert!(after.is_some_and(|after| after >= 1), "when there is a new budget: {after:?}");
        return (status, json!(code));
    }
    let frames = frames::numbered(&response.text().await.unwrap());
    (200, frames.last().unwrap().1.data["code"].clone())
}

#[tokio::test]
async fn a_user_has_so_many_tokens_a_day() {
    let day = [("LIMITS__TOKENS_PER_USER_DAY", "30")];
    let s = priced(&day, (0..3).map(|_| says("Yes.")).collect()).await;
    assert_eq!(ask(&s.app, "a/ann").await, (200, Value::Null), "15 of 30");
    assert_eq!(ask(&s.app, "a/ann").await, (200, Value::Null), "30 of 30");
    assert_eq!(ask(&s.app, "a/ann").await, (429, json!("quota_exceeded")));
    assert_eq!(ask(&s.app, "a/bob").await, (200, Value::Null), "another user has tokens of their own");
    let data = s.app.stop().await;
    let app = TestApp::start_in(data, &day).await;
    assert_eq!(ask(&app, "a/ann").await, (429, json!("quota_exceeded")), "it is remembered");
}

#[tokio::test]
async fn a_run_ends_when_its_users_tokens_do() {
    let find = |id: &str| calls(id, "discover_trigger_types", &json!({}));
    let s = priced(&[("LIMITS__TOKENS_PER_USER_DAY", "30")], vec![find("1"), find("2")]).await;
    assert_eq!(ask(&s.app, "a/ann").await, (200, json!("quota_exceeded")), "before its third turn");
    assert_eq!(s.asked().len(), 2);
    let s = priced(&[("LIMITS__TOKENS_PER_USER_DAY", "31")], vec![find("1"), find("2"), says("Yes.")]).await;
    assert_eq!(ask(&s.app, "a/ann").await, (200, Value::Null), "a turn that was begun is ended");
}

#[tokio::test]
async fn a_tenant_has_so_much_money_a_month() {
    let month = [("LIMITS__USD_PER_TENANT_MONTH", "0.02")];
    let s = priced(&month, (0..3).map(|_| says("Yes.")).collect()).await;
    assert_eq!(ask(&s.app, "a/ann").await, (200, Value::Null), "a cent of two");
    assert_eq!(ask(&s.app, "a/bob").await, (200, Value::Null), "two cents of two");
    assert_eq!(ask(&s.app, "a/eve").await, (429, json!("quota_exceeded")));
    assert_eq!(ask(&s.app, "b/eve").await, (200, Value::Null), "another tenant has money of its own");
}

#[tokio::test]
async fn openai_clients_are_told_not_to_ask_again() {
    let s = priced(&[("LIMITS__TOKENS_PER_USER_DAY", "1")], vec![says("Yes.")]).await;
    assert_eq!(ask(&s.app, "a/ann").await, (200, Value::Null));
    let body = json!({"messages": [{"role": "user", "content": "hello"}], "model": "workflow"});
    let request = s.app.http.post(s.app.url("/v1/chat/completions")).bearer_auth(token(&s.app, "a/ann"));
    let refused = request.json(&body).send().await.unwrap();
    assert_eq!((refused.status().as_u16(), super::header(&refused, "x-should-retry")), (429, "false"));
    let told: Value = refused.json().await.unwrap();
    assert_eq!(told["error"]["code"], "insufficient_quota");
}

pub(super) async fn usage(app: &TestApp, user: &str, query: &str) -> (u16, Value) {
    let url = app.url(&format!("/v1/agent/usage{query}"));
    let response = app.http.get(url).bearer_auth(token(app, user)).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn what_was_used_is_told_to_its_user_and_a_tenants_to_a_role() {
    let s = priced(&[("SERVER__USAGE_ROLE", "ADMIN")], (0..3).map(|_| says("Yes.")).collect()).await;
    for user in ["a/ann", "a/ann", "a/bob"] {
        assert_eq!(ask(&s.app, user).await, (200, Value::Null));
    }
    let spent = |turns: u64| {
        json!({"runs": turns, "turns": turns, "input_tokens": 10 * turns, "output_tokens": 5 * turns,
               "cached_input_tokens": 0, "cost_usd": turns as f64 / 100.0})
    };
    // A test may run across midnight; then there are two days.
    let by_model = |told: &Value| told["days"].as_array().unwrap().iter().all(|day| day["model"] == "openai:m.1");
    for (query, turns) in [("", 2), ("?of=user", 2), ("?of=tenant", 3)] {
        let (status, told) = usage(&s.app, "a/ann", query).await;
        assert_eq!((status, &told["total"]), (200, &spent(turns)), "{query}: {told}");
        assert!(by_model(&told), "{told}");
    }
    let (_, nothing) = usage(&s.app, "b/ann", "?of=tenant").await;
    assert_eq!((&nothing["total"], &nothing["days"]), (&spent(0), &json!([])), "another tenant");
    let (_, before) = usage(&s.app, "a/ann", "?from=2020-01-01&to=2020-12-31").await;
    assert_eq!(
        (&before["from"], &before["to"], &before["days"]),
        (&json!("2020-01-01"), &json!("2020-12-31"), &json!([]))
    );
    let rows = [
        ("?of=all", 400, "nobody's"),
        ("?from=yesterday", 400, "no day"),
        ("?from=2020-01-02&to=2020-01-01", 400, "backwards"),
        ("?from=2000-01-01&to=2020-01-01", 400, "too many days"),
        ("?from=2020-01-01&from=2020-01-02&to=2020-01-03", 400, "said twice"),
    ];
    for (query, expected, reason) in rows {
        assert_eq!(usage(&s.app, "a/ann", query).await.0, expected, "{reason}");
    }
}

/// A user's use on the first day of 2021, of so many models.
const OF_MANY_MODELS: &str = "
    WITH RECURSIVE model (nth) AS (SELECT 1 UNION ALL SELECT nth + 1 FROM model WHERE nth < 3001)
    INSERT INTO usage_daily (tenant, user_id, day, model, runs, turns, input_tokens, output_tokens, cached_input_tokens, nano_usd)
    SELECT 'a', 'ann', 18628, 'openai:m.' || nth, 1, 1, 10, 5, 0, 0 FROM model";

#[tokio::test]
async fn what_has_more_rows_than_an_answer_is_refused_and_not_told_in_part() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("test.db");
    let app = TestApp::start_in(data, &[]).await;
    let mut beside = SqliteConnectOptions::new().filename(&file).connect().await.unwrap();
    sqlx::query(OF_MANY_MODELS).execute(&mut beside).await.unwrap();
    let day = "?from=2021-01-01&to=2021-01-01";
    for by in ["", "&by=day", "&by=month"] {
        let (status, told) = usage(&app, "a/ann", &format!("{day}{by}")).await;
        assert_eq!((status, &told["code"]), (400, &json!("invalid_request")), "{by}: {told}");
    }
    assert_eq!(usage(&app, "a/ann", "?from=2021-01-02&to=2021-01-31").await.0, 200, "fewer days");
    sqlx::query("DELETE FROM usage_daily WHERE model = 'openai:m.7'").execute(&mut beside).await.unwrap();
    beside.close().await.unwrap();
    for (by, rows) in [("", "days"), ("&by=month", "months")] {
        let (status, told) = usage(&app, "a/ann", &format!("{day}{by}")).await;
        assert_eq!((status, told[rows].as_array().unwrap().len()), (200, 3000), "{by}");
    }
}

#[tokio::test]
async fn without_the_role_nobody_sees_what_the_tenant_has_used() {
    for role in ["", "AUDITOR"] {
        let app = TestApp::start(&[("SERVER__USAGE_ROLE", role)]).await;
        let (status, told) = usage(&app, "a/ann", "?of=tenant").await;
        assert_eq!((status, &told["code"]), (403, &json!("forbidden")), "{role:?}");
        assert_eq!(usage(&app, "a/ann", "").await.0, 200);
    }
}

#[tokio::test]
async fn a_model_server_that_says_any_number_breaks_no_sum() {
    let largest = format!("\"prompt_tokens\":{}", u64::MAX);
    let answer = || Answer::ok("text/event-stream", says("Yes.").bytes().replace("\"prompt_tokens\":10", &largest));
    let s = Scripted::with(&[], [answer(), answer(), answer()]).await;
    for _ in 0..3 {
        assert_eq!(ask(&s.app, "a/ann").await, (200, Value::Null));
    }
    let (status, told) = usage(&s.app, "a/ann", "").await;
    assert_eq!((status, &told["total"]["turns"]), (200, &json!(3)), "{told}");
    // So much of each call is believed.
    assert_eq!(told["total"]["input_tokens"], json!(3_000_000_000_u64), "{told}");
}
