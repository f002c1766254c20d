//! The alert tools against the demo backend: whose inbox, which page, which right.

use serde_json::{Value, json};

use super::{BEN, Dialogue};
use crate::support::app::{ADA, LOW_STOCK};

const BLUE_WIDGET: &str = "f0000000-0000-4000-8000-000000000001";
const PACKING_TAPE: &str = "f0000000-0000-4000-8000-000000000003";

fn titles(list: &Value) -> Vec<&str> {
    list["results"].as_array().unwrap().iter().map(|alert| alert["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_inbox_is_the_callers_own_in_seven_fields() {
    let d = Dialogue::demo().await;
    let mine = [("list_my_alerts", json!({"severity": "high", "status": "active"}))];
    let ran = d.ask("c", &mine).await;
    let list = ran.ok(0);
    assert_eq!((&list["total"], &list["showing"], &list["has_more"]), (&json!(3), &json!(3), &json!(false)));
    let blue = list["results"].as_array().unwrap().iter().find(|alert| alert["id"] == BLUE_WIDGET).unwrap();
    assert_eq!(
        *blue,
        json!({
            "id": BLUE_WIDGET,
            "severity": "high",
            "status": "active",
            "title": "Low stock: Blue Widget",
            "message": "Only 4 of Blue Widget left in Main Warehouse.",
            "created_at": "2026-06-29T07:12:00Z",
            "recipients": ["Ada Adams", "Ben Brooks", "role:WAREHOUSE_MANAGER"],
        })
    );
    let ben = d.s.app.token_of(BEN, None, &["USER"]);
    let ran = d.ask_as(&ben, "c", json!({}), &mine).await;
    assert_eq!(
        titles(ran.ok(0)),
        ["Not enough stock for an order", "Low stock: Blue Widget"],
        "his own, and his role's"
    );
}

#[tokio::test]
async fn filters_and_pages_are_taken_as_models_write_them() {
    let rows: [(Value, usize, u64, bool, &str); 9] = [
        (json!({}), 9, 9, false, "no status asked for: all of them"),
        (json!({"status": "", "severity": null, "page": "", "rows": null}), 9, 9, false, "blanks are no filters"),
        (json!({"status": "ACTIVE"}), 6, 6, false, "in any case"),
        (json!({"severity": "high,critical"}), 5, 5, false, "two severities"),
        (json!({"severity": "high, critical"}), 5, 5, false, "two severities with a blank between them"),
        (json!({"rows": "4"}), 4, 9, true, "numbers as text"),
        (json!({"rows": 4, "page": 2}), 4, 9, true, "numbers as numbers"),
        (json!({"rows": 4.0, "page": 3}), 1, 9, false, "the last page is not full"),
        (json!({"rows": 3, "page": 3}), 3, 9, false, "the last page is full"),
    ];
    let calls: Vec<(&str, Value)> = rows.iter().map(|row| ("list_my_alerts", row.0.clone())).collect();
    let ran = Dialogue::demo().await.ask("c", &calls).await;
    for (n, (_, showing, total, has_more, reason)) in rows.iter().enumerate() {
        let list = ran.ok(n);
        let seen = (titles(list).len(), list["total"].as_u64().unwrap(), list["has_more"].as_bool().unwrap());
        assert_eq!(seen, (*showing, *total, *has_more), "{reason}");
        assert_eq!(list["showing"], *showing, "{reason}");
    }
}

#[tokio::test]
async fn an_alert_is_shown_whole_to_its_recipients_only() {
    let calls = [
        ("get_alert_detail", json!({"alert_id": format!(" {} ", BLUE_WIDGET.to_uppercase())})),
        ("get_alert_detail", json!({"alert_id": PACKING_TAPE})),
        ("get_alert_detail", json!({"alert_id": LOW_STOCK})),
    ];
    let ran = Dialogue::demo().await.ask("c", &calls).await;
    let alert = ran.ok(0);
    assert_eq!((&alert["id"], &alert["sourceRuleName"]), (&json!(BLUE_WIDGET), &json!("Low Stock Alert")));
    assert_eq!(alert["context"], json!({"product_name": "Blue Widget", "quantity": 4, "minimum": 10}));
    assert_eq!(
        alert["recipients"][0],
        json!({"recipientType": "user", "recipientId": ADA, "name": "Ada Adams", "email": "ada@example.com"})
    );
    for (call, reason) in [(1, "somebody else's, even for an administrator"), (2, "one that does not exist")] {
        assert!(ran.error(call).starts_with("HTTP 403: ") && ran.error(call).contains("permission_denied"), "{reason}");
    }
}

#[tokio::test]
async fn what_a_rule_has_raised_is_for_administrators() {
    let d = Dialogue::demo().await;
    let calls = [
        ("list_alerts_for_rule", json!({"workflow_id": "Low Stock Alert"})),
        ("list_alerts_for_rule", json!({"workflow_id": LOW_STOCK, "status": "active", "rows": 1})),
    ];
    let ran = d.ask("c", &calls).await;
    let all =
        ["Low stock: Blue Widget", "Low stock: Packing Tape", "Low stock: Steel Bolt M8", "Low stock: Green Paint"];
    let mut seen = titles(ran.ok(0));
    seen.sort_unstable();
    let mut expected = all;
    expected.sort_unstable();
    assert_eq!(seen, expected, "for whomever they are");
    let page = ran.ok(1);
    assert_eq!((&page["total"], &page["showing"], &page["has_more"]), (&json!(2), &json!(1), &json!(true)));

    let ben = d.s.app.token_of(BEN, None, &["USER"]);
    let ran = d.ask_as(&ben, "c", json!({}), &calls[..1]).await;
    assert!(ran.error(0).starts_with("HTTP 403: "), "{}", ran.error(0));
    assert!(ran.error(0).contains("administrator rights"), "the model is told what to tell: {}", ran.error(0));
}
