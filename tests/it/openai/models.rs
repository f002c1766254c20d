//! `GET /v1/models`: a model per profile that the caller may use.

use serde_json::{Value, json};

use super::{refused, with};

#[tokio::test]
async fn each_profile_is_a_model_for_those_who_may_use_it() {
    let s = with(&[], &[("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", "http://127.0.0.1:1")], []).await;
    let list = async |token: &str| -> Value {
        let response = s.app.http.get(s.app.url("/v1/models")).bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    };
    let model = |id: &str, name: &str, description: Option<&str>| {
        let mut model = json!({"id": id, "object": "model", "created": 0, "owned_by": "switchboard", "name": name});
        if let Some(description) = description {
            model["description"] = json!(description);
        }
        model
    };
    let tables = "Builds and changes table views over your database: columns, filters, joins and sorting.";
    let workflow = "Explains and changes the automation rule that is open, and shows every change before it is saved.";
    let open = model("open", "Open", None);
    let tables = model("tables", "Table configurations", Some(tables));
    let workflow = model("workflow", "Automation rules", Some(workflow));
    let of_ada = json!({"object": "list", "data": [open, tables, workflow]});
    assert_eq!(list(&s.app.token).await, of_ada);
    let chief = s.app.token_of("cleo", None, &["CHIEF"]);
    let of_chief = json!({"object": "list", "data": [model("chief", "chief", None), open, tables, workflow]});
    assert_eq!(list(&chief).await, of_chief);

    let one = async |id: &str| {
        s.app.http.get(s.app.url(&format!("/v1/models/{id}"))).bearer_auth(&s.app.token).send().await.unwrap()
    };
    assert_eq!(one("open").await.json::<Value>().await.unwrap(), open);
    for id in ["chief", "nope", "open/x", "open%2Fx"] {
        let (status, error) = refused(one(id).await).await;
        assert_eq!(
            (status, &error["code"], &error["param"]),
            (404, &json!("model_not_found"), &json!("model")),
            "{id}"
        );
    }
}

#[tokio::test]
async fn pages_are_models_too_with_or_without_an_encoded_slash() {
    let page = "id = \"reports\"\npage = \"reports\"\n[tabs.articles]\n";
    let s = with(&[("profiles/reports.toml", page)], &[], []).await;
    for path in ["reports/articles", "reports%2Farticles"] {
        let url = s.app.url(&format!("/v1/models/{path}"));
        let model: Value = s.app.http.get(url).bearer_auth(&s.app.token).send().await.unwrap().json().await.unwrap();
        assert_eq!(model["id"], "reports/articles", "{path}");
    }
}
