//! What is said about files of tools and of data that are wrong: everything at once, each with its file, line and key.

use switchboard::app::{self, StartError};
use switchboard::config::{Config, Sources};

/// What is said about these files.
async fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let sources = Sources { dir: Some(folder.path().to_owned()), ..Sources::default() };
    let config = Config::load(&sources).unwrap();
    match app::check(&config, &sources.assets()).await {
        Ok(_) => Vec::new(),
        Err(StartError::Config(problems)) => problems.iter().map(ToString::to_string).collect(),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn every_mistake_in_a_file_of_tools_is_told_at_once() {
    let text = r#"[[tool]]
name = "find tools"
samples = "x"
approval = "user"
invalidates = ["a"]
input_schema = { type = "array" }
frobnicate = 1
[tool.request]
method = "FETCH"
path = "v1/{id}"
query = { q = "{{ args.q" }
headers = { Authorization = "x", "a b" = "y", "Content-Type" = "z" }
timeout_s = 0
effect = "read"
[[tool]]
name = "preview_workflow"
description = "Taken."
[tool.request]
path = "/v1/{id}"
body = { a = 1 }
[tool.inject]
a = "{{ args.b }}"
[tool.resolve.c]
path = "/v1/c"
id = "id"
[tool.result]
projection = "items["
text = "{{ results }}"
payload = "nothing"
[[tool]]
name = "a__b"
description = "Two."
input_schema = '''
{"type": "object",
 "properties": }'''
[tool.request]
path = "/v1"
progress = "xml"
content_type = "text/xml"
accept = "json"
"#;
    let expected = [
        "tools/mine.toml:2: tool[0].name \"find tools\" must be 1 to 64 of A-Z a-z 0-9 _ -",
        "tools/mine.toml:1: tool[0].description is missing",
        "tools/mine.toml:6: tool[0].input_schema must have the type \"object\"",
        "tools/mine.toml:3: tool[0].samples must be a list of texts",
        "tools/mine.toml:9: tool[0].request.method must be one of: GET, POST, PUT, PATCH, DELETE",
        "tools/mine.toml:10: tool[0].request.path must begin with /",
        "tools/mine.toml:11: tool[0].request.query is no template: unexpected end of input, expected end of variable block",
        "tools/mine.toml:12: tool[0].request.headers must not set Authorization",
        "tools/mine.toml:12: tool[0].request.headers \"a b\" is no name of a header",
        "tools/mine.toml:12: tool[0].request.headers must not set Content-Type",
        "tools/mine.toml:13: tool[0].request.timeout_s must be from 1 to 3600",
        "tools/mine.toml:7: tool[0].frobnicate is not a known key",
        "tools/mine.toml:16: tool[1].name preview_workflow is defined twice, first in tools/workflow.json",
        "tools/mine.toml:21: tool[1].inject takes \"args\", which is not there; there are: context, place, user, tenant, roles, \
         conversation_id",
        "tools/mine.toml:23: tool[1].resolve.c.name is missing",
        "tools/mine.toml:27: tool[1].result.projection is no JMESPath: ",
        "tools/mine.toml:28: tool[1].result.text takes \"results\", which is not there; there are: args, context, place, user, \
         tenant, roles, conversation_id, result, projected",
        "tools/mine.toml:29: tool[1].result.payload \"nothing\" is not defined in payloads/*.toml",
        "tools/mine.toml:20: tool[1].request.body must not be given for GET",
        "tools/mine.toml:19: tool[1].request.path {id} is not among the properties of input_schema, nor injected",
        "tools/mine.toml:31: tool[2].name \"a__b\" must not have two _ in a row, as the tools of servers have",
        "tools/mine.toml:35: tool[2].input_schema is no JSON: expected value at line 2 column 16",
        "tools/mine.toml:39: tool[2].request.content_type must be application/json or end with +json, as in \
         application/merge-patch+json",
        "tools/mine.toml:40: tool[2].request.accept must be media types, as in application/vnd.api+json, \
         application/json;q=0.9",
        "tools/mine.toml:38: tool[2].request.progress must be one of: none, ndjson, sse",
    ];
    let told = problems(&[("tools/mine.toml", text)]).await;
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
}

#[tokio::test]
async fn bare_text_is_a_text_of_a_tool_that_reads() {
    let text = "[[tool]]\nname = \"a\"\ndescription = \"A.\"\nbare_text = \"q\"\n\
                input_schema = { type = \"object\", properties = { q = { type = \"integer\" } } }\n\
                request = { path = \"/v1\" }\n[[tool]]\nname = \"b\"\ndescription = \"B.\"\nbare_text = \"q\"\n\
                input_schema = { type = \"object\", properties = { q = { type = \"string\" } } }\n\
                request = { method = \"POST\", path = \"/v1\" }\n\
                [[tool]]\nname = \"c\"\ndescription = \"C.\"\nbare_text = \"q\"\nrequest = { path = \"/v1\" }\n";
    let expected = [
        "tools/mine.toml:4: tool[0].bare_text q is no property of the type \"string\"",
        "tools/mine.toml:10: tool[1].bare_text is only for tools that read",
        "tools/mine.toml:16: tool[2].bare_text q is no property of the type \"string\"",
    ];
    assert_eq!(problems(&[("tools/mine.toml", text)]).await, expected);
}

#[tokio::test]
async fn only_writes_wait_for_approval_and_make_data_stale() {
    let text = "[[tool]]\nname = \"a\"\ndescription = \"A.\"\napproval = \"role:boss\"\ninvalidates = [\"x\"]\n\
                request = { path = \"/v1\" }\n[[tool]]\nname = \"b\"\ndescription = \"B.\"\napproval = \"boss\"\n\
                request = { method = \"POST\", path = \"/v1\" }\n";
    let expected = [
        "tools/mine.toml:4: tool[0].approval is only for tools that write",
        "tools/mine.toml:5: tool[0].invalidates is only for tools that write",
        "tools/mine.toml:10: tool[1].approval must be auto, user or role:NAME",
    ];
    assert_eq!(problems(&[("tools/mine.toml", text)]).await, expected);
}

#[tokio::test]
async fn every_mistake_in_the_data_of_a_profile_is_told_at_once() {
    let profile = r#"id = "mine"
context_type = "mine"
instructions = ["workflow/role.md"]
[[data]]
slot = "a-b"
when = "{{ args.x }}"
request = { path = "/v1/{id}" }
ttl_s = 100000
[[data]]
slot = "a"
request = { method = "POST", path = "/v1" }
[[data]]
slot = "a"
request = { path = "/v1", progress = "sse" }
args = { x = "{{ nobody }}" }
"#;
    let expected = [
        "profiles/mine.toml:5: data[0].slot must be 1 to 64 of A-Z a-z 0-9 _, and not begin with a digit",
        "profiles/mine.toml:6: data[0].when takes \"args\", which is not there; there are: context, place, user, tenant, roles, \
         conversation_id",
        "profiles/mine.toml:8: data[0].ttl_s must be at most 86400",
        "profiles/mine.toml:7: data[0].request.path {id} is not among args",
        "profiles/mine.toml:11: data[1].request must read: POST writes, unless effect = \"read\" says that it does not",
        "profiles/mine.toml:13: data[2].slot \"a\" is there twice",
        "profiles/mine.toml:14: data[2].request.progress is not a known key",
        "profiles/mine.toml:15: data[2].args takes \"nobody\", which is not there; there are: context, place, user, tenant, roles, \
         conversation_id",
    ];
    assert_eq!(problems(&[("profiles/mine.toml", profile)]).await, expected);
}

#[tokio::test]
async fn every_mistake_in_an_openapi_file_is_told_at_once() {
    let petstore = include_str!("../../../fixtures/openapi/petstore.json");
    let text = r#"document = "petstore.json"
base_path = "v2"
operations = ["getPetById", "fly", "uploadFile", "POST /pet"]
[overlay.getPetById]
approval = "user"
colour = "red"
[overlay.deletePet]
description = "No."
"#;
    let expected = [
        "openapi/pets.toml:2: base_path must be empty, or begin with / and not end in one",
        "openapi/pets.toml:6: overlay.getPetById.colour is not a known key",
        "openapi/pets.toml:3: operations \"fly\" is not in the document",
        "openapi/pets.toml:3: operations \"uploadFile\" cannot be a tool: its body is multipart/form-data, and only JSON can \
         be sent",
        "openapi/pets.toml:7: overlay.deletePet \"deletePet\" is not among the operations",
    ];
    let told = problems(&[("openapi/pets.toml", text), ("openapi/petstore.json", petstore)]).await;
    for expected in expected {
        assert!(told.iter().any(|told| told == expected), "{expected}\n{told:#?}");
    }
    let none = problems(&[("openapi/pets.toml", "document = \"x.json\"\noperations = [\"*\"]")]).await;
    assert_eq!(none, ["openapi/pets.toml:1: document openapi/x.json cannot be read"]);
    let swagger = [("openapi/pets.toml", "document = \"x.yaml\""), ("openapi/x.yaml", "swagger: '2.0'")];
    let expected = [
        "openapi/pets.toml:1: document openapi/x.yaml is OpenAPI 2.0, and only 3.0 and 3.1 are known",
        "openapi/pets.toml:1: operations is missing",
    ];
    assert_eq!(problems(&swagger).await, expected);
}

#[tokio::test]
async fn a_template_takes_only_arguments_that_there_are() {
    let file = |schema: &str| {
        format!(
            "[[tool]]\nname = \"more\"\ndescription = \"More.\"\ninput_schema = {schema}\n[tool.request]\npath = \"/v1/more\"\n\
             query = {{ q = \"{{{{ args.q }}}}\", r = \"{{{{ args.nothere or args.given }}}}\" }}\n\
             [tool.inject]\ngiven = \"{{{{ context.given }}}}\"\n"
        )
    };
    let narrow = file(r#"{ type = "object", properties = { q = { type = "string" } } }"#);
    let expected = "tools/more.toml:6: tool[0].request.path stands beside args.nothere, which is taken by a template, and is \
                    not among the properties of input_schema, nor injected";
    assert_eq!(problems(&[("tools/more.toml", &narrow)]).await, [expected]);
    let wide = file(r#"{ type = "object", properties = { q = { type = "string" } }, additionalProperties = true }"#);
    assert_eq!(problems(&[("tools/more.toml", &wide)]).await, [""; 0]);
}

#[tokio::test]
async fn an_expression_that_cannot_be_run_in_linear_time_is_told_with_its_place() {
    let tool = |schema: &str| {
        format!(
            "[[tool]]\nname = \"a\"\ndescription = \"A.\"\ninput_schema = {schema}\n[tool.request]\npath = \"/v1\"\n"
        )
    };
    let rows = [
        (
            "{ type = \"object\", properties = { q = { type = \"string\", pattern = \"^(?=a)b\" } } }",
            Some("properties/q/pattern"),
        ),
        ("{ type = \"object\", patternProperties = { \"(.)\\\\1\" = {} } }", Some("patternProperties")),
        (
            "{ type = \"object\", properties = { q = { pattern = \"(\\\\w{999}){999}\" } } }",
            Some("properties/q/pattern"),
        ),
        ("{ type = \"object\", properties = { q = { type = \"string\", pattern = \"^[a-z]+$\" } } }", None),
    ];
    for (schema, place) in rows {
        let told = problems(&[("tools/mine.toml", &tool(schema))]).await;
        match place {
            Some(place) => {
                let expected = format!("tools/mine.toml:4: tool[0].input_schema is no schema: {place}: ");
                assert!(told.len() == 1 && told[0].starts_with(&expected), "{told:#?}");
            }
            None => assert_eq!(told, [""; 0]),
        }
    }
}

#[tokio::test]
async fn somebody_else_can_only_be_asked_for_with_a_role() {
    let text = "[[tool]]\nname = \"a\"\ndescription = \"A.\"\napproval = \"user\"\nnot_requester = true\n\
                [tool.request]\nmethod = \"POST\"\npath = \"/v1\"\n";
    let told = problems(&[("tools/mine.toml", text)]).await;
    assert_eq!(told, ["tools/mine.toml:5: tool[0].not_requester is of use only with approval = \"role:NAME\""]);
}

#[tokio::test]
async fn a_tool_moves_conversations_only_to_a_screen_that_there_is() {
    let tool = |moves: &str| {
        format!(
            "[[tool]]\nname = \"go\"\ndescription = \"Goes.\"\nrequest = {{ path = \"/go\" }}\n[tool.move]\n{moves}\n"
        )
    };
    let rows = [
        ("to = \"nowhere\"", "tools/mine.toml:6: to: \"nowhere\" is no profile's context_type"),
        ("name = \"x\"", "tools/mine.toml:5: tool[0].move.to is missing"),
        ("to = \"workflow\"\nname = \"x\"", "tools/mine.toml:5: tool[0].move has a name and no entity"),
        (
            "to = \"workflow\"\nentity = \"{{ projected.id }}\"",
            "tools/mine.toml:7: tool[0].move.entity takes \"projected\", which is not there",
        ),
        ("to = \"workflow\"\nwhen = true", "tools/mine.toml:7: tool[0].move.when is not a known key"),
    ];
    for (moves, expected) in rows {
        let told = problems(&[("tools/mine.toml", &tool(moves))]).await;
        assert!(told.iter().any(|told| told.starts_with(expected)), "{moves}: {told:#?}");
    }
}

#[tokio::test]
async fn every_mistake_in_a_directive_is_told_at_once() {
    let text = r#"[[tool]]
name = "one"
description = "One."
[tool.request]
method = "POST"
path = "/v1/one"
body = { page = "{{ context.page }}" }
[tool.directive]
name = "Thread"
runs_as = "somebody"
wait_s = 61
max_attempts = 0
frobnicate = 1
subject = { type = "thread" }
[[tool]]
name = "two"
description = "Two."
[tool.request]
path = "/v1/two"
[tool.directive]
name = "thread.two"
delay_s = 1
[[tool.directive.signal]]
payload = "items["
[[tool]]
name = "three"
description = "Three."
request = { method = "POST", path = "/v1/three" }
[tool.directive]
name = "thread.three"
runs_as = "service"
[[tool]]
name = "four"
description = "Four."
request = { method = "POST", path = "/v1/four", body = { page = "{{ context.page }}" } }
[tool.directive]
name = "thread.three"
"#;
    let said = problems(&[("tools/more.toml", text)]).await;
    let expected = [
        ":9: ",
        "must be two words or more",
        ":10: ",
        "caller",
        ":11: ",
        "must be at most 60",
        "max_attempts = 0",
        "frobnicate",
        ":14: ",
        "id",
        "is only for tools that write",
        "neither put off nor tried again",
        "payload",
        "needs credentials in [backend.service], whose mode is off",
        "thread.three is there twice",
        "what is sent later has no screen",
    ];
    let all = said.join("\n");
    for part in expected {
        assert!(all.contains(part), "{part}:\n{all}");
    }
}

#[tokio::test]
async fn further_calls_of_a_tool_have_to_fit_its_own() {
    let text = r#"[[tool]]
name = "a"
description = "A."
input_schema = { type = "object", properties = { id = { type = "string" } } }
request = { path = "/v1", query = { q = "{{ before.q }}" } }
[[tool.instead]]
path = "/v1/{id}"
[[tool.instead]]
when = "{{ args.other }}"
method = "POST"
path = "/v1/{name}"
[tool.before]
when = "{{ args.id }}"
method = "DELETE"
path = "/v1/{id}"
[[tool]]
name = "b"
description = "B."
[[tool.answers]]
text = "Always."
[[tool.instead]]
when = "{{ true }}"
path = "/v1"
"#;
    let said = problems(&[("tools/mine.toml", text)]).await;
    let expected = [
        "mine.toml:5: tool[0].request.query takes \"before\", which is not there",
        "tool[0].instead[0].when is missing",
        "mine.toml:11: tool[0].instead[1].path must have the effect and the progress of the tool's request",
        "mine.toml:11: tool[0].instead[1].path takes name, which is not among the properties",
        "mine.toml:11: tool[0].instead[1].path takes other, which is not among the properties",
        "tool[0].before must read: DELETE writes",
        "mine.toml:15: tool[0].before.path is of no use: no body takes anything of `before`",
        "tool[1].instead[0].path is only for tools with a request",
    ];
    let all = said.join("\n");
    for part in expected {
        assert!(all.contains(part), "{part}:\n{all}");
    }
    assert_eq!(said.len(), expected.len(), "{all}");
}
