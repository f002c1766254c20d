//! Refused tokens are told, each reason by few lines, however many there are.

use serde_json::{Value, json};

use super::{READABLE, audit, exported, told};
use crate::support::app::TestApp;

/// Tokens that are refused for one reason.
const FLOOD: usize = 400;

#[tokio::test]
async fn a_flood_of_bad_tokens_is_a_few_lines_that_count_them_all() {
    let app = TestApp::start(&[READABLE]).await;
    let ask = |token: String| app.http.get(app.url("/v1/agent/profiles")).header("authorization", token).send();
    for nth in 0..FLOOD {
        assert_eq!(ask(format!("Bearer no-token-{nth}")).await.unwrap().status(), 401);
    }
    assert_eq!(ask("Basic dTpw".to_owned()).await.unwrap().status(), 401);
    assert_eq!(ask(format!("Bearer {}", app.token)).await.unwrap().status(), 200);
    let data = app.stop().await;
    let lines = exported(&audit(&data, &["export", "--chain", "tokens"]));
    let text = Value::from(lines.clone()).to_string();
    assert!(!text.contains("no-token"), "nothing of a token: {text}");
    let of = |reason: &str| -> Vec<u64> {
        let own = lines.iter().filter(|line| line["reason"] == json!(reason));
        own.map(|line| line["count"].as_u64().unwrap()).collect()
    };
    let unreadable = of("it cannot be read");
    assert_eq!(unreadable.iter().sum::<u64>(), FLOOD as u64, "{text}");
    assert!(unreadable.len() <= 2, "one at once, and the rest at the end: {unreadable:?}");
    assert_eq!(of("Authorization must be \"Bearer\" and a token"), [1]);
    assert!(told(&lines, &["act", "actor", "user"]).iter().all(|line| *line == json!(["token.refused", "", ""])));
    assert_eq!(audit(&data, &["verify"]).code, 0);
}
