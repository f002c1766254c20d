//! Alerts: who sees which, and what a reader can do with one.

use serde_json::json;

use super::{ADA, BEN, Backend, LOW_STOCK, NOW, NOWHERE, pluck, refused};

const SHARED: &str = "f0000000-0000-4000-8000-000000000001";
const BENS: &str = "f0000000-0000-4000-8000-000000000003";
const DISMISSED: &str = "f0000000-0000-4000-8000-000000000008";

#[tokio::test]
async fn an_inbox_holds_what_is_for_me_or_one_of_my_roles() {
    let backend = Backend::start().await;
    let everybodys = ["Maintenance on Sunday", "Supplier removed"];
    let (_, page) = backend.get("newcomer", "/v1/workflow/alerts/mine?rows=50").await;
    assert_eq!(pluck(&page["items"], "title"), everybodys, "what is for USER is for everybody, newest first");

    let (_, page) = backend.get("ben", "/v1/workflow/alerts/mine?rows=50").await;
    assert_eq!(
        pluck(&page["items"], "title"),
        [
            "Low stock: Packing Tape",
            "Not enough stock for an order",
            "Low stock: Blue Widget",
            "Maintenance on Sunday",
            "Low stock: Steel Bolt M8",
            "Low stock: Green Paint",
            "Supplier removed",
        ]
    );
    let (_, page) = backend.get("ada", "/v1/workflow/alerts/mine?rows=3").await;
    assert_eq!((&page["total"], &page["rows_per_page"]), (&json!(9), &json!(3)));
}

#[tokio::test]
async fn alerts_are_found_by_every_filter() {
    let backend = Backend::start().await;
    let cases = [
        ("status=dismissed".to_owned(), 1, "one status"),
        ("status=dismissed,resolved".to_owned(), 2, "several"),
        ("severity=critical".to_owned(), 2, "severity"),
        ("status=active&severity=low,medium".to_owned(), 4, "both"),
        (format!("sourceRuleId={LOW_STOCK}"), 4, "the rule"),
        ("alertType=order_value".to_owned(), 2, "the type"),
        ("sourceEntityName=sales.orders".to_owned(), 3, "the entity"),
        ("sourceEntityId=f1000000-0000-4000-8000-000000000009".to_owned(), 1, "the record"),
        ("createdAfter=2026-06-29T00:00:00Z".to_owned(), 4, "later than"),
        ("createdBefore=2026-05-20T11:30:01%2B02:00".to_owned(), 2, "earlier than, in another zone"),
    ];
    for (filter, total, reason) in cases {
        let page = backend.read(&format!("/v1/workflow/alerts?{filter}")).await;
        assert_eq!(page["total"], total, "{reason}: {filter}");
    }
    for query in ["status=new", "severity=high,urgent", "sourceRuleId=x", "createdAfter=yesterday", "orderBy=id"] {
        let (status, body) = backend.get("ada", &format!("/v1/workflow/alerts?{query}")).await;
        assert_eq!((status, &body["code"]), (400, &json!("invalid_argument")), "{query}");
    }
}

#[tokio::test]
async fn an_alert_names_its_rule_and_its_recipients() {
    let backend = Backend::start().await;
    let alert = backend.read(&format!("/v1/workflow/alerts/{SHARED}")).await;
    assert_eq!(
        alert,
        json!({
            "id": SHARED,
            "alertType": "low_stock",
            "severity": "high",
            "title": "Low stock: Blue Widget",
            "message": "Only 4 of Blue Widget left in Main Warehouse.",
            "context": { "product_name": "Blue Widget", "quantity": 4, "minimum": 10 },
            "sourceEntityName": "inventory.inventory_items",
            "sourceEntityId": "f1000000-0000-4000-8000-000000000001",
            "sourceRuleId": LOW_STOCK,
            "actionUrl": "/inventory/items",
            "status": "active",
            "createdDate": "2026-06-29T07:12:00Z",
            "updatedDate": "2026-06-29T07:12:00Z",
            "sourceRuleName": "Low Stock Alert",
            "recipients": [
                { "recipientType": "user", "recipientId": ADA, "name": "Ada Adams", "email": "ada@example.com" },
                { "recipientType": "user", "recipientId": BEN, "name": "Ben Brooks", "email": "ben@example.com" },
                {
                    "recipientType": "role",
                    "recipientId": "a0000000-0000-4000-8000-000000000003",
                    "name": "WAREHOUSE_MANAGER",
                },
            ],
        })
    );
}

#[tokio::test]
async fn an_alert_for_others_is_refused_like_one_that_does_not_exist() {
    let backend = Backend::start().await;
    let no = (403, refused("permission_denied", "there is no such alert for you"));
    assert_eq!(backend.get("ada", &format!("/v1/workflow/alerts/{BENS}")).await, no, "administrators too");
    assert_eq!(backend.get("ada", &format!("/v1/workflow/alerts/{NOWHERE}")).await, no);
    for verb in ["acknowledge", "dismiss"] {
        assert_eq!(backend.post("ada", &format!("/v1/workflow/alerts/{BENS}/{verb}"), &json!({})).await, no, "{verb}");
    }
    assert_eq!(backend.get("ben", &format!("/v1/workflow/alerts/{BENS}")).await.0, 200);
}

#[tokio::test]
async fn an_alert_is_acknowledged_once_and_then_dismissed() {
    let backend = Backend::start().await;
    let path = format!("/v1/workflow/alerts/{SHARED}");
    let (status, body) =
        backend.post("ben", &format!("{path}/acknowledge"), &json!({ "notes": "x".repeat(1001) })).await;
    assert_eq!((status, &body["code"]), (400, &json!("invalid_argument")));

    let (status, alert) = backend.post("ben", &format!("{path}/acknowledge"), &json!({ "notes": "on my way" })).await;
    assert_eq!((status, &alert["status"], &alert["updatedDate"]), (200, &json!("acknowledged"), &json!(NOW)));
    let note = &alert["acknowledgments"][0];
    assert_eq!(
        (&note["acknowledgedBy"], &note["acknowledgedDate"], &note["notes"]),
        (&json!(BEN), &json!(NOW), &json!("on my way"))
    );
    assert_eq!(backend.read(&path).await, alert, "the other recipient sees the same");

    let again = backend.post("ada", &format!("{path}/acknowledge"), &json!({})).await;
    assert_eq!(again, (400, refused("failed_precondition", "the alert is not active")));
    let (status, alert) = backend.post("ada", &format!("{path}/dismiss"), &json!({})).await;
    assert_eq!((status, &alert["status"]), (200, &json!("dismissed")));
    let again = backend.post("ada", &format!("/v1/workflow/alerts/{DISMISSED}/dismiss"), &json!({})).await;
    assert_eq!(again, (400, refused("failed_precondition", "the alert is not active or acknowledged")));
}
