//! Models as these clients know them: at the routes of OpenAI's protocol, told apart by a header.

use serde_json::{Value, json};

use super::{message, refused, with};

const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

#[tokio::test]
async fn models_have_the_shape_of_the_client_that_asks() {
    let s = with(&[], &[("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", "http://127.0.0.1:1")], []).await;
    let get = async |path: &str, key: &str, version: bool| {
        let mut request = s.app.http.get(s.app.url(path)).header("x-api-key", key);
        if version {
            request = request.header(VERSION.0, VERSION.1);
        }
        request.send().await.unwrap()
    };
    let model = |id: &str, name: &str| json!({"type": "model", "id": id, "display_name": name, "created_at": "1970-01-01T00:00:00Z"});
    let open = model("open", "Open");
    let all = json!([open, model("tables", "Table configurations"), model("workflow", "Automation rules")]);
    let list = json!({"data": all, "has_more": false, "first_id": "open", "last_id": "workflow"});
    assert_eq!(message(get("/v1/models?limit=1000", &s.app.token, true).await).await, list);
    assert_eq!(message(get("/v1/models/open", &s.app.token, true).await).await, open);
    let other: Value = get("/v1/models", &s.app.token, false).await.json().await.unwrap();
    assert_eq!((&other["object"], &other["data"][0]["object"]), (&json!("list"), &json!("model")));

    let (status, kind, _) = refused(get("/v1/models/chief", &s.app.token, true).await).await;
    assert_eq!((status, kind.as_str()), (404, "not_found_error"));
    let (status, kind, _) = refused(get("/v1/models", "nonsense", true).await).await;
    assert_eq!((status, kind.as_str()), (401, "authentication_error"));
    let none: Value = get("/v1/models/chief", &s.app.token, false).await.json().await.unwrap();
    assert_eq!(none["error"]["code"], "model_not_found");
}
