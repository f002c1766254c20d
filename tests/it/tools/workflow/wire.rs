//! What really goes over the wire to the backend: every value in its place, the caller's token, and nothing to anybody else.

use serde_json::{Value, json};

use super::{Dialogue, RULE, backend, json_answer, small};
use crate::support::upstream::{Answer, Upstream};

fn lines(backend: &Upstream) -> Vec<String> {
    backend.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[tokio::test]
async fn a_value_stays_in_its_path_segment_or_parameter() {
    let rows: [(&str, &str, &str, &str); 8] = [
        (
            "list_alerts_for_rule",
            "x&rows=1#f?a=b",
            "/v1/workflow/alerts?page=1&rows=50&sourceRuleId=x%26rows%3D1%23f%3Fa%3Db",
            "separators in a value",
        ),
        (
            "list_alerts_for_rule",
            "a+b c%26ü",
            "/v1/workflow/alerts?page=1&rows=50&sourceRuleId=a%2Bb%20c%2526%C3%BC",
            "signs with a meaning in queries",
        ),
        ("list_alerts_for_rule", "..", "/v1/workflow/alerts?page=1&rows=50&sourceRuleId=..", "dots mean nothing there"),
        ("get_workflow_rule", "a/../b", "/v1/workflow/rules/a%2F..%2Fb", "slashes in a segment"),
        ("get_workflow_rule", "r?dry_run=true#x", "/v1/workflow/rules/r%3Fdry_run=true%23x", "a query in a segment"),
        ("get_workflow_rule", "%2e%2e", "/v1/workflow/rules/%252e%252e", "dots that were encoded already"),
        ("get_workflow_rule", "a\\b;c", "/v1/workflow/rules/a%5Cb;c", "a backslash"),
        (
            "get_workflow_rule",
            "http://evil.example/",
            "/v1/workflow/rules/http:%2F%2Fevil.example%2F",
            "a whole address",
        ),
    ];
    for (tool, open, expected, reason) in rows {
        let backend = Upstream::choosing(|_| Some(json_answer(&json!({"items": [], "total": 0})))).await;
        let d = Dialogue::over(&backend).await;
        d.ask_as(&d.s.app.token, "c", json!({ "workflow_id": open }), &[(tool, json!({}))]).await;
        assert!(lines(&backend).contains(&format!("GET {expected}")), "{reason}: {:?}", lines(&backend));
        assert!(
            backend.requests().iter().all(|request| request.path.starts_with(expected)),
            "{reason}: {:?}",
            lines(&backend)
        );
    }
}

#[tokio::test]
async fn what_cannot_be_a_segment_or_a_filter_is_never_sent() {
    let rows: [(&str, Value, &str, &str); 8] = [
        ("get_workflow_rule", json!({}), "..", "\"..\" cannot be part of a path"),
        ("explain_workflow_node", json!({"node_name": "A"}), ".", "\".\" cannot be part of a path"),
        ("list_my_alerts", json!({"status": "active&rows=1"}), "", "bad params: status must be one of"),
        ("list_my_alerts", json!({"severity": "high&page=9"}), "", "bad params: severity must be one of"),
        ("list_my_alerts", json!({"rows": "50&status=x"}), "", "bad params: rows must be"),
        ("list_alerts_for_rule", json!({"workflow_id": RULE, "page": "2#"}), "", "bad params: page must be"),
        ("get_alert_detail", json!({"alert_id": "../rules"}), "", "is not a UUID"),
        ("get_alert_detail", json!({"alert_id": format!("{RULE}/acknowledge")}), "", "is not a UUID"),
    ];
    let backend = Upstream::script([]).await;
    let d = Dialogue::over(&backend).await;
    for (tool, args, open, expected) in rows {
        let ran = d.ask_as(&d.s.app.token, "c", json!({ "workflow_id": open }), &[(tool, args)]).await;
        assert!(ran.error(0).contains(expected), "{tool}: {}", ran.error(0));
    }
    assert_eq!(lines(&backend), [] as [&str; 0]);
}

#[tokio::test]
async fn filters_are_sent_as_the_backend_reads_them() {
    let backend = Upstream::choosing(|_| Some(json_answer(&json!({"items": []})))).await;
    let d = Dialogue::over(&backend).await;
    let calls = [
        ("list_my_alerts", json!({"status": " Active ", "severity": "High , critical", "page": "2", "rows": 5.0})),
        ("list_alerts_for_rule", json!({"workflow_id": RULE.to_uppercase(), "status": "resolved"})),
    ];
    d.ask("c", &calls).await;
    let expected = [
        "GET /v1/workflow/alerts/mine?page=2&rows=5&status=active&severity=high%2Ccritical".to_owned(),
        format!("GET /v1/workflow/alerts?page=1&rows=50&status=resolved&sourceRuleId={RULE}"),
    ];
    assert_eq!(lines(&backend), expected);
}

#[tokio::test]
async fn ids_that_a_rule_itself_contains_are_not_trusted_either() {
    let user = "../../workflow/rules";
    let backend = backend(move |request| match request.path.strip_prefix("/v1/")? {
        path if path == format!("workflow/rules/{RULE}/actions") => Some(json_answer(&json!([{
            "id": "a", "name": "Tell", "action_type": "create_alert",
            "action_config": {"recipients": {"users": ["..", user], "roles": ["r?x"]}},
        }]))),
        "core/users/..%2F..%2Fworkflow%2Frules" | "core/roles/r%3Fx" => Some(super::refusal(404, "nobody")),
        _ => None,
    })
    .await;
    let calls = [("explain_workflow_node", json!({"workflow_id": RULE, "node_name": "Tell"}))];
    let ran = Dialogue::over(&backend).await.ask("c", &calls).await;
    let expected = json!({
        "users": [{"id": "..", "name": "Unknown User"}, {"id": user, "name": "Unknown User"}],
        "roles": [{"id": "r?x", "name": "Unknown Role"}],
    });
    assert_eq!(ran.ok(0)["action"]["action_config"]["recipients"], expected);
}

#[tokio::test]
async fn the_callers_token_goes_to_the_backend_verbatim_and_nowhere_else() {
    let backend = backend(|_| None).await;
    let d = Dialogue::over(&backend).await;
    let token = d.s.app.token_of("somebody", Some("t"), &["USER", "WEIRD ROLE"]);
    let calls = [
        ("discover_entities", json!({})),
        ("list_workflow_rules", json!({})),
        ("get_workflow_rule", json!({"workflow_id": "Night Shift"})),
        ("preview_workflow", json!({"workflow": small("W"), "description": "d", "workflow_id": RULE})),
    ];
    let ran = d.ask_as(&token, "c", json!({}), &calls).await;
    let requests = backend.requests();
    assert!(requests.len() > 8, "{:?}", lines(&backend));
    for request in &requests {
        let sent: Vec<_> =
            request.headers.iter().filter(|(name, _)| name == "authorization").map(|(_, value)| value).collect();
        assert_eq!(sent, [&format!("Bearer {token}")], "{}", request.path);
        assert!(!request.path.contains(&token) && !String::from_utf8_lossy(&request.body).contains(&token));
    }
    for request in d.s.model.requests() {
        assert!(!format!("{:?}{}", request.headers, String::from_utf8_lossy(&request.body)).contains(&token));
    }
    assert!(!format!("{:?}", ran.frames).contains(&token));
}

#[tokio::test]
async fn the_api_root_may_have_a_path() {
    let backend = Upstream::choosing(|_| Some(json_answer(&json!([])))).await;
    for root in ["/api", "/api/"] {
        let url = format!("{}{root}", backend.url());
        let d = Dialogue::with(&[("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &url)]).await;
        d.ask("c", &[("discover_entities", json!({}))]).await;
    }
    assert_eq!(lines(&backend), ["GET /api/v1/workflow/entities"; 2]);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let target = Upstream::script([]).await;
        let location = format!("{}/v1/stolen", target.url());
        let backend = backend(move |_| {
            let answer = Answer::status(status, "text/html", "<a href=there>moved</a>");
            Some(answer.header("location", &location))
        })
        .await;
        let d = Dialogue::over(&backend).await;
        let mut ids = small("W");
        ids["entity"] = json!(RULE);
        ids["trigger_type"] = json!(RULE);
        let calls = [("discover_entities", json!({})), ("validate_workflow", json!({"workflow": ids}))];
        let ran = d.ask("c", &calls).await;
        for call in 0..2 {
            let told = "the backend answered with a redirect: the server is at another port or scheme of this host";
            assert_eq!(ran.error(call), format!("HTTP {status}: {told}"));
        }
        assert_eq!(target.requests().len(), 0, "{status}");
    }
}

#[tokio::test]
async fn all_pages_of_a_long_list_are_read() {
    let backend = Upstream::choosing(|request| {
        let page: usize = request.path.strip_prefix("/v1/workflow/rules?rows=500&page=")?.parse().ok()?;
        let rows =
            (500 * (page - 1)..1200.min(500 * page)).map(|n| json!({"id": n.to_string(), "name": format!("Rule {n}")}));
        Some(json_answer(
            &json!({"items": rows.collect::<Vec<_>>(), "total": 1200, "page": page, "rows_per_page": 500}),
        ))
    })
    .await;
    let url = backend.url();
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &url), ("LIMITS__TOOL_RESULT_BYTES", "0")];
    let d = Dialogue::with(&settings).await;
    let ran = d.ask("c", &[("list_workflow_rules", json!({}))]).await;
    let list = ran.ok(0);
    assert_eq!((&list["total"], &list["showing"], &list["has_more"]), (&json!(1200), &json!(1200), &json!(false)));
    assert_eq!(list["results"][1199]["name"], "Rule 1199");
    assert_eq!(backend.requests().len(), 3);
}

#[tokio::test]
async fn a_list_that_is_longer_than_a_model_may_read_loses_whole_rows_and_says_so() {
    let rows: Vec<Value> =
        (0..500).map(|n| json!({"id": n.to_string(), "name": format!("Rule {n} {}", "x".repeat(300))})).collect();
    let page = json!({"items": rows, "total": 500, "page": 1, "rows_per_page": 500});
    let backend = Upstream::choosing(move |_| Some(json_answer(&page))).await;
    let url = backend.url();
    let settings = [("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", url.as_str())];
    let d = Dialogue::with(&settings).await;
    let ran = d.ask("c", &[("list_workflow_rules", json!({}))]).await;
    let list = ran.ok(0);
    let shown = list["results"].as_array().unwrap();
    assert!((100..500).contains(&shown.len()), "{}", shown.len());
    assert_eq!((&list["total"], &list["showing"], &list["has_more"]), (&json!(500), &json!(shown.len()), &json!(true)));
    assert_eq!(shown.last().unwrap()["name"], json!(format!("Rule {} {}", shown.len() - 1, "x".repeat(300))), "whole");
}
