//! Operations of somebody's API as tools, by its OpenAPI document: what the model is told, and what the backend gets.

use serde_json::{Value, json};
use switchboard::config::catalogue::openapi::print::{Import, import};

use super::rest::{Setup, answer};
use crate::support::model::turn;
use crate::support::process::Folder;

const PETSTORE: &str = include_str!("../../fixtures/openapi/petstore.json");
const PETSTORE_31: &str = include_str!("../../fixtures/openapi/petstore-3.1.yaml");

const LIVE: &str = r#"
document = "petstore.json"
prefix = "pets_"
operations = ["findPetsByStatus", "findPetsByTags", "GET /pet/{petId}", "addPet", "deletePet", "createUsersWithListInput"]
[overlay.addPet]
description = "Adds a pet."
samples = ["add a cat"]
approval = "auto"
inject = { status = "available" }
[overlay.deletePet]
approval = "auto"
[overlay.createUsersWithListInput]
approval = "auto"
[overlay.findPetsByStatus]
name = "pets"
result = { projection = "[].name" }
"#;

/// A document with what the Petstore does not have.
const ODD: &str = r##"
openapi: 3.1.0
servers: [{url: "/"}]
paths:
  /things/{thing-id}:
    parameters:
      - {name: thing-id, in: path, required: true, schema: {type: string}}
      - {$ref: "#/components/parameters/Limit"}
    put:
      summary: Replaces a thing.
      operationId: things/replace
      parameters:
        - {name: name, in: query, schema: {type: string}}
        - {name: filter, in: query, style: deepObject, schema: {type: object, properties: {a: {type: integer}, b: {}}}}
        - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: near, in: query, content: {application/json: {schema: {type: object}}}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: X-Api-Key, in: header, schema: {type: string}}
        - {name: Authorization, in: header, required: true, schema: {type: string}}
      requestBody:
        required: true
        content:
          application/merge-patch+json:
            schema:
              allOf:
                - {$ref: "#/components/schemas/Thing"}
                - {type: object, required: [note], properties: {note: {type: [string, "null"]}}}
    post:
      operationId: shareThing
      parameters: [{name: X-Session-Token, in: header, required: true, schema: {type: string}}]
    delete:
      operationId: dropThing
      parameters: [{name: session, in: cookie, required: true, schema: {type: string}}]
components:
  parameters:
    Limit: {name: limit, in: query, schema: {type: integer, maximum: 9}}
  schemas:
    Thing:
      type: object
      required: [name]
      properties:
        name: {type: string}
        parent: {$ref: "#/components/schemas/Thing"}
"##;

/// What is said of the operations that cannot be tools.
const LEFT_OUT: &str = "POST /things/{thing-id} was left out: it needs the header \"X-Session-Token\", which looks like a secret that no model \
                        may say\nDELETE /things/{thing-id} was left out: it needs the cookie \"session\"\n";

fn tools(ran: &super::rest::Ran) -> Vec<&Value> {
    ran.asked["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]).collect()
}

fn live() -> Setup<'static> {
    Setup {
        files: vec![("openapi/pets.toml", LIVE), ("openapi/petstore.json", PETSTORE)],
        tools: vec![
            "pets",
            "pets_findPetsByTags",
            "pets_getPetById",
            "pets_addPet",
            "pets_deletePet",
            "pets_createUsersWithListInput",
        ],
        profile: "",
        settings: Vec::new(),
        context: json!({}),
    }
}

#[tokio::test]
async fn a_turn_calls_operations_of_the_petstore() {
    let pet = json!({"name": "Mia", "photoUrls": [], "category": {"id": 1, "name": "cats"}});
    let calls = [
        ("c1", "pets", json!({"status": ["available", "sold"]})),
        ("c2", "pets_findPetsByTags", json!({"tags": []})),
        ("c3", "pets_getPetById", json!({"petId": 7})),
        ("c4", "pets_addPet", pet),
        ("c5", "pets_deletePet", json!({"petId": 7})),
        ("c6", "pets_createUsersWithListInput", json!({"body": [{"username": "ada"}]})),
        ("c7", "pets_getPetById", json!({"petId": "seven"})),
    ];
    let ran = live().calling(&calls, |_| answer(&json!([{"name": "Mia"}, {"name": "Leo"}]))).await;
    assert_eq!(ran.read[0], Ok(json!(["Mia", "Leo"])), "as the overlay says");
    let wrong = "bad params: petId: \"seven\" is not of type \"integer\"";
    assert_eq!(ran.read[6], Err(wrong.to_owned()));
    let expected = [
        "GET /api/v2/pet/findByStatus?status=available&status=sold",
        "GET /api/v2/pet/findByTags",
        "GET /api/v2/pet/7",
        "POST /api/v2/pet",
        "DELETE /api/v2/pet/7",
        "POST /api/v2/user/createWithList",
    ];
    assert_eq!(ran.lines(), expected);
    let added = json!({
        "category": {"id": 1, "name": "cats"}, "name": "Mia", "photoUrls": [], "status": "available"
    });
    assert_eq!((ran.requests[3].json(), ran.requests[5].json()), (added, json!([{"username": "ada"}])));
    assert_eq!(ran.requests[4].header("api_key"), None, "no model says a secret");
    assert_eq!(ran.keys(), [None, None, None, Some("c4"), Some("c5"), Some("c6")]);
    let add = tools(&ran).into_iter().find(|tool| tool["name"] == "pets_addPet").unwrap();
    assert_eq!(add["description"], "Adds a pet.");
    assert_eq!(add["parameters"]["required"], json!(["name", "photoUrls"]));
}

#[tokio::test]
async fn an_operation_that_writes_waits_for_its_user_where_nothing_else_is_said() {
    let files = vec![
        ("openapi/pets.toml", "document = \"petstore.json\"\noperations = [\"deletePet\"]\n"),
        ("openapi/petstore.json", PETSTORE),
    ];
    let setup = Setup { files, tools: vec!["deletePet"], profile: "", settings: Vec::new(), context: json!({}) };
    let call = turn().call("c1", "deletePet", &json!({"petId": 7})).done();
    let (s, backend) = setup.start([call], |_| None).await;
    let body = json!({"message": "Go", "context_type": "mine"});
    let frames = s.app.chat(&body).await;
    let names: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(names, ["message_start", "tool_call_start", "tool_call_result", "approval_request", "message_complete"]);
    assert_eq!(backend.requests().len(), 0, "nothing is sent before that");
}

#[tokio::test]
async fn parameters_of_every_kind_find_their_place() {
    let setup = Setup {
        files: vec![
            (
                "openapi/odd.toml",
                "document = \"odd.yaml\"\noperations = [\"*\"]\n[overlay.\"things/replace\"]\napproval = \"auto\"\n",
            ),
            ("openapi/odd.yaml", ODD),
        ],
        tools: vec!["things_replace"],
        profile: "",
        settings: Vec::new(),
        context: json!({}),
    };
    let args = json!({
        "thing-id": "a/b", "limit": 3, "name": "q", "filter": {"a": 1}, "ids": [1, 2], "near": {"x": 1},
        "X-Trace": "t", "body_name": "n", "parent": {"name": "p"}, "note": null
    });
    let ran = setup.calling(&[("c1", "things_replace", args)], |_| answer(&json!({"ok": 1}))).await;
    assert_eq!(ran.read, [Ok(json!({"ok": 1}))]);
    let expected = "PUT /api/things/a%2Fb?limit=3&name=q&filter%5Ba%5D=1&ids=1%2C2&near=%7B%22x%22%3A%201%7D";
    assert_eq!(ran.lines(), [expected]);
    assert_eq!(ran.requests[0].json(), json!({"name": "n", "parent": {"name": "p"}, "note": null}));
    assert_eq!(ran.requests[0].header("x-trace"), Some("t"));
    assert_eq!(ran.requests[0].header("authorization"), Some(format!("Bearer {}", ran.token).as_str()));
}

/// A document of what other documents rarely have.
const RARE: &str = r#"
openapi: 3.1.0
servers: [{url: "/"}]
paths:
  /things/:
    get:
      operationId: list
      parameters:
        - {name: tags, in: query, explode: false, schema: {type: [array, "null"], items: {type: string}}}
        - {name: X-Flag, in: header, schema: {type: boolean}}
  /things/{id}/:
    patch:
      operationId: mend
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      requestBody:
        content:
          application/xml: {schema: {type: string}}
          application/merge-patch+json; charset=utf-8: {schema: {type: object, properties: {name: {type: string}}}}
    put:
      operationId: replace
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      requestBody:
        content:
          application/vnd.api+json: {schema: {type: array}}
          application/json: {schema: {type: object, properties: {name: {type: string}}}}
    delete:
      operationId: drop
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      requestBody:
        required: true
        content: {application/json: {schema: {type: object, required: [why], properties: {why: {type: string}}}}}
"#;

#[tokio::test]
async fn rare_forms_are_sent_as_their_document_has_them() {
    let live = "document = \"rare.yaml\"\noperations = [\"*\"]\noverlay.drop = { approval = \"auto\" }\n\
                overlay.mend = { approval = \"auto\" }\noverlay.replace = { approval = \"auto\" }\n";
    let imported = Setup {
        files: vec![("openapi/rare.toml", live), ("openapi/rare.yaml", RARE)],
        tools: vec!["list", "drop", "mend", "replace"],
        profile: "",
        settings: Vec::new(),
        context: json!({}),
    };
    let printed = import(RARE, &Import::default()).unwrap().text.replace("approval = \"user\"\n", "");
    for setup in [imported, Setup::of(&printed)] {
        let calls = [
            ("c1", "list", json!({"tags": ["a", "b"], "X-Flag": false})),
            ("c2", "drop", json!({"id": "7", "why": "old"})),
            ("c3", "mend", json!({"id": "7", "name": "Ada"})),
            ("c4", "replace", json!({"id": "7", "name": "Ada"})),
        ];
        let ran = setup.calling(&calls, |_| answer(&json!([]))).await;
        let lines =
            ["GET /api/things/?tags=a%2Cb", "DELETE /api/things/7/", "PATCH /api/things/7/", "PUT /api/things/7/"];
        assert_eq!(ran.lines(), lines);
        let [list, drop, mend, replace] = [0, 1, 2, 3].map(|nth| &ran.requests[nth]);
        assert_eq!((list.header("x-flag"), drop.json()), (Some("false"), json!({"why": "old"})));
        assert_eq!((mend.json(), replace.json()), (json!({"name": "Ada"}), json!({"name": "Ada"})));
        let kinds = [drop, mend, replace].map(|request| request.header("content-type").unwrap());
        assert_eq!(kinds, ["application/json", "application/merge-patch+json; charset=utf-8", "application/json"]);
    }
}

#[tokio::test]
async fn an_import_is_a_file_of_tools_that_does_the_same() {
    let wanted = Import { prefix: "pets_".to_owned(), ..Import::default() };
    let printed = import(PETSTORE, &wanted).unwrap();
    let left_out = |kind: &str| {
        vec![
            "POST /pet/{petId} was left out: its body is application/x-www-form-urlencoded, and only JSON can be sent"
                .to_owned(),
            format!("POST /pet/{{petId}}/uploadImage was left out: its body is {kind}, and only JSON can be sent"),
        ]
    };
    assert_eq!(printed.notes, left_out("multipart/form-data"));
    let newer = import(PETSTORE_31, &wanted).unwrap();
    assert_eq!(newer.notes, left_out("application/octet-stream"));
    let names =
        |text: &str| text.lines().filter(|line| line.starts_with("name = ")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((names(&newer.text), names(&newer.text).len()), (names(&printed.text), 18), "3.1 as YAML");

    let unasked = printed.text.replace("approval = \"user\"\n", "");
    let setup = Setup::of(&unasked);
    let calls = [
        ("c1", "pets_findPetsByStatus", json!({"status": ["sold"]})),
        ("c2", "pets_createUsersWithListInput", json!({"body": [{"username": "ada"}]})),
        ("c3", "pets_logoutUser", json!({})),
        ("c4", "pets_deletePet", json!({"petId": 7})),
    ];
    let ran = setup.calling(&calls, |_| answer(&json!([]))).await;
    let expected = [
        "GET /api/v2/pet/findByStatus?status=sold",
        "POST /api/v2/user/createWithList",
        "GET /api/v2/user/logout",
        "DELETE /api/v2/pet/7",
    ];
    assert_eq!(ran.lines(), expected);
    assert_eq!((ran.requests[1].json(), ran.requests[3].header("api_key")), (json!([{"username": "ada"}]), None));
    let by_file = tools(&ran).into_iter().find(|tool| tool["name"] == "pets_deletePet").cloned();
    let ran = live().calling(&[("c1", "pets", json!({"status": []}))], |_| answer(&json!([]))).await;
    assert_eq!(tools(&ran).into_iter().find(|tool| tool["name"] == "pets_deletePet").cloned(), by_file);
}

#[test]
fn the_command_prints_tools_or_says_what_is_wrong() {
    let folder = Folder::new();
    folder.write("odd.yaml", ODD);
    folder.write("old.json", "{\"swagger\": \"2.0\"}");
    let ended = folder.run(&["import-openapi", "odd.yaml", "--base-path", "/v3"], &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, LEFT_OUT));
    assert!(!ended.stdout.contains("Api-Key"), "no model is asked for a secret: {}", ended.stdout);
    assert!(ended.stdout.contains("path = \"/v3/things/{thing-id}\"\n"), "{}", ended.stdout);
    let rows: [(&[&str], i32, &str); 4] = [
        (
            &["odd.yaml", "--operation", "dropThing", "--operation", "GET /x"],
            2,
            "odd.yaml: \"dropThing\" cannot be a tool: it needs the cookie \"session\"\nodd.yaml: \"GET /x\" is not in the \
             document\n",
        ),
        (&["old.json"], 2, "old.json: the document is OpenAPI 2.0, and only 3.0 and 3.1 are known\n"),
        (&["odd.yaml", "--prefix", "x_", "--operation", "things/replace"], 0, ""),
        (&["none.json"], 1, "switchboard: none.json cannot be read: No such file or directory (os error 2)\n"),
    ];
    for (args, code, stderr) in rows {
        let ended = folder.run(&[&["import-openapi"], args].concat(), &[]);
        assert_eq!((ended.code, ended.stderr.as_str()), (code, stderr), "{args:?}");
    }
}

/// A document of YAML takes memory as its bytes allow, whatever it is made of: the mistake names the file.
#[test]
fn yaml_that_would_take_too_much_is_a_mistake_of_its_file() {
    let row = |row: &str, bytes: usize| format!("openapi: 3.0.4\nx:\n{}", row.repeat(bytes / row.len()));
    let bomb = (0..30).fold("openapi: 3.0.4\nl0: &l0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
        text + &format!("l{}: &l{} [{}]\n", n + 1, n + 1, vec![format!("*l{n}"); 9].join(", "))
    });
    let too_many = "it has too many values: they would take more than";
    let rows = [
        (bomb, Some(too_many), "aliases that blow up"),
        (row("- {}\n", 2 << 20), Some(too_many), "many small values"),
        (row("- {}\n", 64 << 10) + ODD.trim_start().trim_start_matches("openapi: 3.1.0\n"), None, "few of them"),
    ];
    for (text, mistake, reason) in rows {
        let folder = Folder::new();
        folder.write("config/openapi/odd.toml", "document = \"odd.yaml\"\noperations = [\"things/replace\"]\n");
        folder.write("config/openapi/odd.yaml", &text);
        folder.write("odd.yaml", &text);
        let (checked, printed) = (folder.run(&["check-config"], &[]), folder.run(&["import-openapi", "odd.yaml"], &[]));
        match mistake {
            Some(mistake) => {
                assert_eq!((checked.code, printed.code), (2, 2), "{reason}: {}{}", checked.stderr, printed.stderr);
                let place = "openapi/odd.toml:1: document openapi/odd.yaml cannot be read: ";
                assert!(checked.stderr.contains(&format!("{place}{mistake}")), "{reason}: {}", checked.stderr);
                assert!(
                    printed.stderr.contains(&format!("odd.yaml: the document cannot be read: {mistake}")),
                    "{reason}: {}",
                    printed.stderr
                );
            }
            None => {
                assert_eq!((checked.code, printed.code), (0, 0), "{reason}: {}{}", checked.stderr, printed.stderr);
                assert!(printed.stdout.contains("name = \"things_replace\""), "{reason}: {}", printed.stdout);
            }
        }
    }
}
