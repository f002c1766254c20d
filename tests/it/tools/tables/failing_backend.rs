//! A backend of any temper: what it answers to the table tools, and what the model reads of that.

use serde_json::{Value, json};

use super::{Asking, Call, ORDERS, Read, assert_refused, config, seeded};
use crate::support::app::ADA;
use crate::support::upstream::{Answer, Request, Upstream};

/// What the model reads of `calls` when `backend` answers, and the requests it got.
async fn against(
    calls: &[Call<'_>],
    backend: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
) -> (Vec<Read>, Vec<Request>) {
    let (_, read, requests) = against_with_token(calls, backend).await;
    (read, requests)
}

/// The same, and before it the user's token.
async fn against_with_token(
    calls: &[Call<'_>],
    backend: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
) -> (String, Vec<Read>, Vec<Request>) {
    let backend = Upstream::choosing(backend).await;
    let url = format!("{}/api/", backend.url());
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", url.as_str())];
    let (token, read, _) = Asking { settings: &settings, ..Asking::default() }.run_with_token(calls).await;
    (token, read, backend.requests())
}

fn json_answer(body: &Value) -> Option<Answer> {
    Some(Answer::ok("application/json", body.to_string()))
}

/// One call of each tool that asks the backend.
fn asking_calls() -> [Call<'static>; 5] {
    [
        ("search_database_schema", json!({"schema": "sales", "table": "orders"})),
        ("get_table_config", json!({"name": "orders_table"})),
        ("list_table_configs", json!({})),
        ("validate_table_config", json!({"config": config(ORDERS)})),
        ("preview_table_config", json!({"id": ORDERS, "config": config(ORDERS), "description_of_changes": "x"})),
    ]
}

#[tokio::test]
async fn whatever_the_backend_answers_the_model_reads_what_went_wrong() {
    let html = Answer::status(502, "text/html", "<html>secret stack</html>");
    let problem = Answer::status(400, "application/json", r#"{"code":"invalid_argument","message":"no"}"#);
    let moved = Answer::status(302, "text/plain", "").header("location", "http://169.254.169.254/");
    let rows: [(Answer, &str); 7] = [
        (Answer::status(500, "text/plain", "boom"), "HTTP 500: boom"),
        (Answer::status(404, "text/plain", ""), "HTTP 404: "),
        (Answer::status(401, "application/json", "{}"), "HTTP 401: {}"),
        (html, "HTTP 502: (an HTML page)"),
        (problem, r#"HTTP 400: {"code":"invalid_argument","message":"no"}"#),
        (moved, "HTTP 302: the backend answered with a redirect: the server is at another host"),
        (Answer::ok("application/json", "{\"id\": "), "the backend's answer is not JSON"),
    ];
    for (answer, expected) in rows {
        let (read, _) = against(&asking_calls(), move |_| Some(answer.clone())).await;
        assert_eq!(read, [(); 5].map(|()| Err(expected.to_owned())), "{expected}");
    }
}

#[tokio::test]
async fn a_forbidden_answer_is_explained_where_administrators_are_needed() {
    let (read, _) = against(&asking_calls(), |_| Some(Answer::status(403, "text/plain", "no"))).await;
    let expected = [
        ("only administrators may look at the database schema", "the schema"),
        ("HTTP 403: no", "one"),
        ("HTTP 403: no", "all"),
        ("HTTP 403: no", "validation"),
        ("HTTP 403: no", "the stored name"),
    ];
    assert_refused(&read, &expected);
}

#[tokio::test]
async fn an_answer_of_another_shape_is_no_configuration() {
    for odd in [json!([]), json!("orders"), json!(7), json!(null)] {
        let calls = [("get_table_config", json!({"id": ORDERS})), asking_calls()[4].clone()];
        let (read, _) = against(&calls, move |_| json_answer(&odd)).await;
        let shape = "the backend's answer has an unexpected shape: a stored configuration";
        assert_refused(&read, &[(shape, "to read"), (shape, "to change")]);
    }
}

#[tokio::test]
async fn a_document_over_the_limit_is_an_error() {
    let settings = [("LIMITS__TOOL_RESULT_BYTES", "300")];
    let calls = [
        ("get_table_config", json!({"id": ORDERS})),
        ("apply_column_change", json!({"config": config(ORDERS), "operation": "add", "columns": ["shipped_date"]})),
        (
            "apply_filter_change",
            json!({"config": config(ORDERS), "operation": "add",
            "filter": {"column": "amount", "operator": "gt", "value": 1}}),
        ),
        ("apply_join_change", json!({"config": config(ORDERS), "operation": "remove", "join": {"table": "customers"}})),
        ("apply_sort_change", json!({"config": config(ORDERS), "operation": "set", "sort": []})),
    ];
    let read = Asking { settings: &settings, ..Asking::default() }.results(&calls).await;
    assert_refused(&read, &[("the result is too large: ", "a part of a document is of no use"); 5]);
    assert!(read[0].as_ref().unwrap_err().contains("at most 300 can be read here"), "{read:?}");
}

#[tokio::test]
async fn lists_are_read_in_the_usual_shapes() {
    let entry = json!({"id": ORDERS, "name": "orders", "config": {"title": "Orders"}});
    let brief = json!([{"id": ORDERS, "name": "orders"}]);
    let rows = [
        (json!([entry]), Ok(brief.clone()), "a bare list"),
        (json!({"items": [entry], "total": 1}), Ok(brief), "a page"),
        (json!({"items": null}), Ok(json!([])), "an empty page of some encoders"),
        (Value::Null, Ok(json!([])), "nothing at all"),
        (
            json!({"orders": entry}),
            Err("the backend's answer has an unexpected shape: not a page of rows".to_owned()),
            "something else",
        ),
    ];
    for (answer, expected, reason) in rows {
        let (read, _) = against(&[("list_table_configs", json!({}))], move |_| json_answer(&answer)).await;
        assert_eq!(read, [expected], "{reason}");
    }
}

#[tokio::test]
async fn an_empty_schema_is_a_list_and_columns_do_without_relationships() {
    let backend = |request: &Request| match request.path.rsplit('/').next().unwrap() {
        "tables" => json_answer(&Value::Null),
        "columns" => json_answer(&json!([{"name": "id"}])),
        "relationships" => Some(Answer::status(500, "text/plain", "boom")),
        _ => None,
    };
    let calls = [
        ("search_database_schema", json!({"schema": "empty"})),
        ("search_database_schema", json!({"schema": "sales", "table": "orders"})),
    ];
    let (read, _) = against(&calls, backend).await;
    assert_eq!(read, [Ok(json!([])), Ok(json!({"columns": [{"name": "id"}]}))]);
}

#[tokio::test]
async fn whatever_a_model_puts_into_a_name_stays_inside_its_segment() {
    let calls = [
        ("get_table_config", json!({"name": "a/b"})),
        ("get_table_config", json!({"name": "x?id=1&y#z"})),
        ("get_table_config", json!({"name": "ü %2e%2e\\"})),
        ("search_database_schema", json!({"schema": "../secrets", "table": "a b"})),
        ("get_table_config", json!({"name": ".."})),
        ("search_database_schema", json!({"schema": "sales", "table": "."})),
        ("get_table_config", json!({"name": "%2e%2E"})),
    ];
    let (read, requests) = against(&calls, |_| json_answer(&json!({"id": "1"}))).await;
    let mut paths: Vec<String> = requests.iter().map(|request| request.path.clone()).collect();
    paths.sort();
    let expected = [
        "/api/v1/data/name/%252e%252E",
        "/api/v1/data/name/%C3%BC%20%252e%252e%5C",
        "/api/v1/data/name/a%2Fb",
        "/api/v1/data/name/x%3Fid=1&y%23z",
        "/api/v1/introspection/tables/..%2Fsecrets/a%20b/columns",
        "/api/v1/introspection/tables/..%2Fsecrets/a%20b/relationships",
    ];
    assert_eq!(paths, expected);
    let dots = [read[4].clone(), read[5].clone()];
    assert_refused(&dots, &[(r#"".." cannot be part of a path"#, "up"), (r#""." cannot be part of a path"#, "here")]);
}

#[tokio::test]
async fn every_request_carries_the_users_token_and_a_preview_saves_nothing() {
    let stored = seeded(ORDERS);
    let (token, read, requests) = against_with_token(&asking_calls(), move |request| match request.path.as_str() {
        "/api/v1/data/validate" => Some(Answer::status(204, "application/json", "")),
        path if path.contains("/id/") || path.contains("/name/") => json_answer(&stored),
        _ => json_answer(&json!([])),
    })
    .await;
    assert_eq!(read[3], Ok(json!({"valid": true})), "a 204 is a yes");
    assert_eq!(read[4].as_ref().unwrap()["status"], "preview_sent");
    assert_eq!(requests.len(), 6, "the schema asks twice: {requests:#?}");
    for request in &requests {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {token}").as_str()));
        let is_reading = request.method == "GET" || request.path == "/api/v1/data/validate";
        assert!(is_reading, "{} {} for {ADA}", request.method, request.path);
    }
    let body = requests.iter().find(|request| request.method == "POST").unwrap().json();
    assert_eq!(body, json!({"name": "Orders", "description": "", "config": config(ORDERS)}));
}
