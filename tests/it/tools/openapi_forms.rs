//! Parameters, bodies and answers in the forms that documents of others have: what the backend gets of them.

use serde_json::{Value, json};
use switchboard::config::catalogue::openapi::print::{Import, import};

use super::rest::{Setup, answer};
use crate::support::upstream::Answer;

/// Parameters as documents of Stripe, Heroku and others have them.
const SHOP: &str = r##"
openapi: 3.1
servers: [{url: "//api.example.com/v2"}]
paths:
  /charges:
    get:
      operationId: charges
      parameters:
        - name: created
          in: query
          style: deepObject
          explode: true
          schema: {anyOf: [{$ref: "#/components/schemas/Range"}, {type: integer}]}
        - {name: expand, in: query, style: deepObject, explode: true, schema: {type: array, items: {type: string}}}
        - {name: filters, in: query, style: deepObject, schema: {type: object, additionalProperties: true}}
        - name: flags
          in: query
          explode: false
          schema: {anyOf: [{type: array, items: {type: boolean}}, {type: boolean}]}
        - {name: ids, in: query, style: pipeDelimited, explode: true, schema: {type: array, items: {type: integer}}}
        - {name: tags, in: query, style: pipeDelimited, schema: {type: array, items: {type: string}}}
        - {name: X-Flags, in: header, schema: {type: array, items: {type: boolean}}}
        - {name: X-Request-ID, in: header, schema: {type: string}}
      responses:
        "200": {description: ok, content: {"application/vnd.shop+json; version=2": {schema: {}}}}
  /search:
    get:
      operationId: search
      parameters: [{name: q, in: query, required: true, schema: {type: object}}]
  /:
    get: {operationId: root, responses: {"200": {description: ok, content: {application/json: {}, application/x+json: {}}}}}
components:
  schemas:
    Range: {properties: {gt: {type: integer}, gte: {type: integer}}}
"##;

#[tokio::test]
async fn parameters_are_written_by_what_their_values_are() {
    let imported = Setup {
        files: vec![
            ("openapi/shop.toml", "document = \"shop.yaml\"\noperations = [\"*\"]\n"),
            ("openapi/shop.yaml", SHOP),
        ],
        tools: vec!["charges", "root"],
        profile: "",
        settings: Vec::new(),
        context: json!({}),
    };
    let printed = import(SHOP, &Import::default()).unwrap();
    let left_out = [
        "GET /charges: an optional part was left out: its parameter \"filters\" is an object of unknown fields",
        "GET /search was left out: its parameter \"q\" is an object of unknown fields",
    ];
    assert_eq!(printed.notes, left_out, "only what has to be sent takes the operation with it");
    for setup in [imported, Setup::of(&printed.text)] {
        let args = json!({
            "created": {"gte": 1}, "expand": ["a", "b"], "flags": [true, false], "ids": [1, 2], "tags": ["x", "y"],
            "X-Flags": [true, false], "X-Request-ID": "mine"
        });
        let calls = [
            ("c1", "charges", args),
            ("c2", "charges", json!({"created": 5, "flags": false})),
            ("c3", "charges", json!({})),
            ("c4", "root", json!({})),
            ("c5", "charges", json!({"filters": {"a": 1}})),
        ];
        let ran = setup.calling(&calls, |_| answer(&json!([]))).await;
        let expected = [
            "GET /api/v2/charges?created%5Bgte%5D=1&expand%5B%5D=a&expand%5B%5D=b&flags=true%2Cfalse&ids=1&ids=2&tags=x%7Cy",
            "GET /api/v2/charges?created=5&flags=false",
            "GET /api/v2/charges",
            "GET /api/v2/",
        ];
        assert_eq!(ran.lines(), expected);
        let refused = ran.read[4].as_ref().unwrap_err();
        assert!(refused.starts_with("bad params: no such argument: filters"), "{refused}");
        assert_eq!(ran.requests[0].header("x-flags"), Some("true,false"));
        let named = ran.requests[0].headers.iter().filter(|(name, _)| name == "x-request-id");
        assert_eq!(named.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["mine"], "once");
        let accepted = [0, 3].map(|nth| ran.requests[nth].header("accept").unwrap());
        let kinds = "application/vnd.shop+json; version=2, application/json;q=0.9";
        assert_eq!(accepted, [kinds, "application/json, image/*;q=0.5"]);
    }
}

#[tokio::test]
async fn the_root_is_a_path_too() {
    let tools = "[[tool]]\nname = \"root\"\ndescription = \"Reads the root.\"\nrequest = { path = \"/\" }\n";
    let ran = Setup::of(tools).calling(&[("c1", "root", json!({}))], |_| answer(&json!({"ok": 1}))).await;
    assert_eq!((ran.lines(), ran.read), (vec!["GET /api/".to_owned()], vec![Ok(json!({"ok": 1}))]));
}

/// Bodies as documents of GitHub and Kubernetes have them.
const BODIES: &str = r#"
openapi: 3.0.3
paths:
  /issues/{id}/assignees:
    parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
    delete:
      operationId: unassign
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [assignees]
              properties: {assignees: {type: array, items: {type: string}}, note: {type: string}}
  /issues/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
    delete:
      operationId: drop
      requestBody: {content: {application/xml: {schema: {type: string}}}}
    patch:
      operationId: mend
      requestBody:
        content:
          application/json-patch+json: {schema: {type: object}}
          application/strategic-merge-patch+json: {schema: {type: object}}
          application/merge-patch+json: {schema: {type: object}}
    put:
      operationId: patch_by_list
      requestBody: {content: {application/json-patch+json: {schema: {type: object}}}}
  /issues:
    post:
      operationId: open
      requestBody:
        content:
          application/json:
            schema: {type: object, required: [title], properties: {title: {type: string}, note: {type: string}}}
    put:
      operationId: sort
      requestBody:
        required: false
        content: {application/json: {schema: {type: object, required: [by], properties: {by: {type: string}}}}}
  /issues/changes:
    patch:
      operationId: change
      requestBody: {content: {application/json-patch+json: {schema: {type: array, items: {type: object}}}}}
"#;

#[tokio::test]
async fn bodies_are_sent_where_their_document_has_them() {
    let printed = import(BODIES, &Import::default()).unwrap();
    let left_out = [
        "DELETE /issues/{id}: an optional part was left out: its body is application/xml, and only JSON can be sent",
        "PUT /issues/{id} was left out: its body is application/json-patch+json, a list, and its schema is of another type",
    ];
    assert_eq!(printed.notes, left_out);
    let tools = printed.text.replace("approval = \"user\"\n", "");
    let calls = [
        ("c1", "unassign", json!({"id": 7, "assignees": ["ada"]})),
        ("c2", "unassign", json!({"id": 7})),
        ("c3", "drop", json!({"id": 7})),
        ("c4", "mend", json!({"id": 7, "body": {"title": "x"}})),
        ("c5", "open", json!({"note": "x"})),
        ("c6", "open", json!({"title": "x"})),
        ("c7", "sort", json!({})),
        ("c8", "change", json!({"body": [{"op": "remove", "path": "/a"}]})),
    ];
    let ran = Setup::of(&tools).calling(&calls, |_| Some(Answer::status(204, "text/plain", ""))).await;
    assert_eq!(ran.read[4], Err("bad params: missing title".to_owned()), "a field that has to be there");
    let lines = ran.lines();
    let expected = [
        "DELETE /api/issues/7/assignees",
        "DELETE /api/issues/7/assignees",
        "DELETE /api/issues/7",
        "PATCH /api/issues/7",
        "POST /api/issues",
        "PUT /api/issues",
        "PATCH /api/issues/changes",
    ];
    assert_eq!(lines, expected);
    let body = |nth: usize| (!ran.requests[nth].body.is_empty()).then(|| ran.requests[nth].json());
    let sent: Vec<Option<Value>> = (0..lines.len()).map(body).collect();
    let expected = [
        Some(json!({"assignees": ["ada"]})),
        None,
        None,
        Some(json!({"title": "x"})),
        Some(json!({"title": "x"})),
        Some(json!({})),
        Some(json!([{"op": "remove", "path": "/a"}])),
    ];
    assert_eq!(sent, expected);
    let kinds = [3, 4, 6].map(|nth| ran.requests[nth].header("content-type").unwrap());
    assert_eq!(kinds, ["application/merge-patch+json", "application/json", "application/json-patch+json"]);
}

/// Two names that share what fits, cut where a `_` is.
#[tokio::test]
async fn long_names_that_are_alike_are_tools_all_the_same() {
    let name = format!("{}_{}", "x".repeat(61), "y".repeat(9));
    let paths = ["a", "b"].map(|end| format!("  /{end}:\n    get: {{operationId: {name}{end}}}\n"));
    let document = format!("openapi: 3.0.3\npaths:\n{}", paths.concat());
    let second = format!("{}_2", "x".repeat(61));
    let setup = Setup {
        files: vec![
            ("openapi/long.toml", "document = \"long.yaml\"\noperations = [\"*\"]\n"),
            ("openapi/long.yaml", document.as_str()),
        ],
        tools: vec![&name[..64], second.as_str()],
        profile: "",
        settings: Vec::new(),
        context: json!({}),
    };
    let calls = [("c1", &name[..64], json!({})), ("c2", second.as_str(), json!({}))];
    let ran = setup.calling(&calls, |_| answer(&json!([]))).await;
    assert_eq!(ran.lines(), ["GET /api/a", "GET /api/b"]);
}
