//! Table configs: read, try, make, change.

use serde_json::{Value, json};

use super::{ADA, BEN, Backend, NOW, NOWHERE, pluck, refused};

const ORDERS: &str = "99000000-0000-4000-8000-000000000001";
const SYSTEM: &str = "99000000-0000-4000-8000-000000000004";

fn config() -> Value {
    json!({ "title": "Offices", "widget_type": "table", "data_source": [{ "type": "query", "source": "offices", "schema": "hr" }] })
}

#[tokio::test]
async fn configs_are_listed_and_found_by_id_and_name() {
    let backend = Backend::start().await;
    let all = backend.read("/v1/data/configs/all").await;
    assert_eq!(pluck(&all, "name"), ["orders_table", "inventory_table", "customers_table", "suppliers_table"]);
    assert_eq!(backend.read(&format!("/v1/data/id/{ORDERS}")).await, all[0]);
    assert_eq!(backend.read("/v1/data/name/orders_table").await, all[0]);
    let missing = (404, refused("not_found", "table config not found"));
    assert_eq!(backend.get("ada", &format!("/v1/data/id/{NOWHERE}")).await, missing);
    assert_eq!(backend.get("ada", "/v1/data/name/no%2Fsuch").await, missing);
}

#[tokio::test]
async fn every_shipped_config_is_valid_for_its_own_backend() {
    let backend = Backend::start().await;
    for config in backend.read("/v1/data/configs/all").await.as_array().unwrap() {
        assert_eq!(backend.post("ben", "/v1/data/validate", config).await, (204, Value::Null), "{}", config["name"]);
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_config_is_told_by_field() {
    let backend = Backend::start().await;
    let spoilt = |path: &str, value: Value| {
        let mut config = config();
        *config.pointer_mut(path).expect("a place in the config") = value;
        json!({ "name": "offices", "config": config })
    };
    let source = |extra: Value| spoilt("/data_source", json!([extra]));
    let cases = [
        (json!({ "name": "ab", "config": config() }), "name", "must have 3 to 100 characters"),
        (json!({ "config": config() }), "name", "must have 3 to 100 characters"),
        (json!({ "name": "offices" }), "config", "must be an object"),
        (json!({ "name": "offices", "config": "x" }), "config", "must be an object"),
        (spoilt("/title", json!("")), "config.title", "is required"),
        (spoilt("/widget_type", json!("map")), "config.widget_type", "must be one of table, chart"),
        (spoilt("/data_source", json!([])), "config.data_source", "must not be empty"),
        (source(json!({ "type": "query" })), "config.data_source[0].source", "is required"),
        (
            source(json!({ "source": "a", "sort": [{ "column": "b", "direction": "up" }] })),
            "config.data_source[0].sort[0].direction",
            "must be one of asc, desc",
        ),
        (
            source(json!({ "source": "a", "select": { "foreign_tables": [{ "table": "b", "columns": [{}] }] } })),
            "config.data_source[0].select.foreign_tables[0].columns[0].name",
            "is required",
        ),
    ];
    for (body, field, error) in cases {
        let expected = refused("invalid_argument", &json!([{ "field": field, "error": error }]).to_string());
        for path in ["/v1/data/validate", "/v1/data"] {
            assert_eq!(backend.post("ada", path, &body).await, (400, expected.clone()), "{path} {body}");
        }
    }
    let (status, body) = backend.post("ada", "/v1/data/validate", &spoilt("/title", json!(7))).await;
    assert_eq!(status, 400);
    assert!(body["message"].as_str().unwrap().contains("config.title"), "{body}");
    let answer = backend.post("ada", "/v1/data/validate", &config()).await.0;
    assert_eq!(answer, 400, "a bare config is no body");
}

#[tokio::test]
async fn a_config_is_made_read_back_and_changed_in_part() {
    let backend = Backend::start().await;
    let (status, made) = backend.post("ben", "/v1/data", &json!({ "name": "offices", "config": config() })).await;
    assert_eq!(status, 200);
    let id = made["id"].as_str().unwrap();
    let expected = |description: &str, author: &str| {
        json!({
            "id": id, "name": "offices", "description": description, "config": config(), "is_system": false,
            "created_by": BEN, "updated_by": author, "created_date": NOW, "updated_date": NOW,
        })
    };
    assert_eq!(made, expected("", BEN));
    assert_eq!(backend.read(&format!("/v1/data/id/{id}")).await, made);

    let change = json!({ "description": "where we work" });
    let answer = backend.put("ada", &format!("/v1/data/{id}"), &change).await;
    assert_eq!(answer, (200, expected("where we work", ADA)));

    let taken = backend.post("ben", "/v1/data", &json!({ "name": "offices", "config": config() })).await;
    assert_eq!(taken, (409, refused("already_exists", "a table config named \"offices\" exists already")));
    let taken = backend.put("ben", &format!("/v1/data/{id}"), &json!({ "name": "orders_table" })).await;
    assert_eq!(taken.0, 409);
    assert_eq!(
        backend.put("ben", &format!("/v1/data/{id}"), &json!({ "name": "offices" })).await.0,
        200,
        "its own name"
    );
}

#[tokio::test]
async fn a_change_is_refused_when_it_changes_nothing_or_may_not() {
    let backend = Backend::start().await;
    let bare = backend.put("ada", &format!("/v1/data/{ORDERS}"), &config()).await;
    assert_eq!(bare, (400, refused("invalid_argument", "the body needs at least one of name, description, config")));
    let change = json!({ "description": "x" });
    assert_eq!(backend.put("ada", &format!("/v1/data/{NOWHERE}"), &change).await.0, 404);
    let system = backend.put("ada", &format!("/v1/data/{SYSTEM}"), &change).await;
    assert_eq!(system, (403, refused("permission_denied", "a table config of the system cannot be changed")));
}

#[tokio::test]
async fn the_thousandth_config_is_the_last() {
    let backend = Backend::start().await;
    for number in 4..1000 {
        let body = json!({ "name": format!("table {number}"), "config": config() });
        assert_eq!(backend.post("ada", "/v1/data", &body).await.0, 200);
    }
    let answer = backend.post("ada", "/v1/data", &json!({ "name": "one more", "config": config() })).await;
    assert_eq!(answer, (409, refused("aborted", "there are already 1000 table configs")));
}
