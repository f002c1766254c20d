//! The calls themselves: arguments in path, query and body, keys of writes, and what is made of answers that do not come. The
//! definitions are the example of `docs/EXTENDING.md` and a few more.

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::{Ran, Setup, answer, unknown};
use crate::support::upstream::{Answer, End, Request, Upstream};

const EXTENDING: &str = include_str!("../../../../docs/EXTENDING.md");

/// The definitions beside those of the example.
const MORE: &str = r#"
[[tool]]
name = "find"
description = "Finds tickets."
input_schema = {type = "object", properties = {words = {type = "string"}}}
request = {method = "POST", path = "/v1/search", effect = "read"}

[[tool]]
name = "put_label"
description = "Sets a label."
request = {method = "PUT", path = "/v1/tickets/t-{id}/labels/{label}"}
input_schema = {type = "object", properties = {id = {}, label = {type = "string"}}, additionalProperties = true}

[[tool]]
name = "patch_ticket"
description = "Changes a ticket."
request = {method = "PATCH", path = "/v1/tickets/{id}"}
input_schema = {type = "object", properties = {id = {}, due = {}, tags = {}}, required = ["id", "due"]}

[[tool]]
name = "drop_label"
description = "Removes labels."
request = {method = "DELETE", path = "/v1/tickets/{id}/labels"}
input_schema = {type = "object", properties = {id = {}, labels = {}, force = {}, note = {}}}

[[tool]]
name = "export"
description = "Makes an export, which costs money."
request = {path = "/v1/export", effect = "write"}
"#;

/// The example of the documentation.
fn example() -> &'static str {
    let (_, section) = EXTENDING.split_once("## A tool without Rust: one REST call").unwrap();
    section.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0
}

/// Makes `calls` (id, tool, arguments) in one turn.
async fn calling(
    calls: &[(&str, &str, Value)],
    settings: &[(&str, &str)],
    backend: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
) -> Ran {
    let more = Setup::of(MORE);
    let setup = Setup {
        files: vec![("tools/example.toml", example()), ("tools/more.toml", MORE)],
        tools: [more.tools, vec!["list_tickets", "close_ticket"]].concat(),
        settings: settings.to_vec(),
        profile: "",
        context: json!({}),
    };
    setup.calling(calls, backend).await
}

#[tokio::test]
async fn a_read_has_its_arguments_in_path_and_query_and_the_answer_as_its_result() {
    let list = json!({"items": [{"id": 7, "title": "Grün"}], "total": 1});
    let of_backend = list.clone();
    let args = json!({"project": "a b", "open": true, "rows": 5});
    let calls = [
        ("c1", "list_tickets", args),
        ("c2", "list_tickets", json!({"project": "p", "open": null})),
        ("c3", "find", json!({"words": "a&b"})),
    ];
    let ran = calling(&calls, &[], move |_| answer(&of_backend)).await;
    assert_eq!(ran.read, [Ok(list.clone()), Ok(list.clone()), Ok(list)]);
    let expected = [
        "GET /api/v1/projects/a%20b/tickets?open=true&rows=5",
        "GET /api/v1/projects/p/tickets",
        "POST /api/v1/search",
    ];
    assert_eq!(ran.lines(), expected);
    assert_eq!(ran.requests[2].json(), json!({"words": "a&b"}));
    assert_eq!(ran.keys(), [None; 3], "nothing is changed, so nothing needs a key");
}

#[tokio::test]
async fn a_write_has_its_arguments_in_the_body_and_a_key_of_run_and_call() {
    let calls = [
        ("call_1", "close_ticket", json!({"id": 7, "reason": "done"})),
        ("call_2", "close_ticket", json!({"id": 7, "reason": "done"})),
        ("c 3\n", "put_label", json!({"id": "x", "label": "new", "colour": {"r": 1}})),
        ("c4", "patch_ticket", json!({"id": 7, "due": null, "tags": ["a"]})),
        ("c5", "export", json!({})),
    ];
    let ran = calling(&calls, &[], |_| answer(&json!({"id": 7}))).await;
    assert_eq!(ran.read, [(); 5].map(|()| Ok(json!({"id": 7}))));
    let expected = [
        "POST /api/v1/tickets/7/close",
        "POST /api/v1/tickets/7/close",
        "PUT /api/v1/tickets/t-x/labels/new",
        "PATCH /api/v1/tickets/7",
        "GET /api/v1/export",
    ];
    assert_eq!(ran.lines(), expected);
    let bodies: Vec<Value> = ran.requests[..4].iter().map(Request::json).collect();
    let closing = json!({"reason": "done"});
    assert_eq!(bodies, [closing.clone(), closing, json!({"colour": {"r": 1}}), json!({"due": null, "tags": ["a"]})]);
    let keys = ran.keys();
    assert_eq!((keys[0], keys[1], keys[3], keys[4]), (Some("call_1"), Some("call_2"), Some("c4"), Some("c5")));
    let odd = keys[2].unwrap();
    assert!(odd.starts_with('~') && odd.len() == 65, "an id that no header can carry is replaced: {odd}");
}

#[tokio::test]
async fn a_deletion_has_its_arguments_in_the_query_and_no_body() {
    let args = json!({"id": "ü", "labels": ["a&b", "c"], "force": false, "note": "x=1 y"});
    let ran = calling(&[("c1", "drop_label", args)], &[], |_| Some(Answer::status(204, "text/plain", ""))).await;
    assert_eq!(ran.read, [Ok(json!({"done": true}))]);
    let expected = "DELETE /api/v1/tickets/%C3%BC/labels?labels=a%26b&labels=c&force=false&note=x%3D1%20y";
    assert_eq!(ran.lines(), [expected]);
    assert_eq!((ran.requests[0].body.len(), ran.keys()), (0, vec![Some("c1")]));
}

#[tokio::test]
async fn whatever_is_in_an_argument_it_stays_one_segment() {
    let rows = [
        ("../../admin", Some("..%2F..%2Fadmin"), "upwards"),
        ("a/b\\c", Some("a%2Fb%5Cc"), "slashes of both kinds"),
        ("x?open=1&y#z", Some("x%3Fopen=1&y%23z"), "a query and a fragment"),
        ("%2e%2e", Some("%252e%252e"), "dots that were encoded already"),
        ("http://evil.example/", Some("http:%2F%2Fevil.example%2F"), "another origin"),
        ("a;b=c:d@e", Some("a;b=c:d@e"), "what may stand there as it is"),
        ("{open}", Some("%7Bopen%7D"), "a place of its own"),
        ("..", None, "dots alone"),
        (".", None, "a dot alone"),
        ("", None, "nothing"),
        (".\t.", None, "dots around a sign that addresses drop"),
        ("a\nb", None, "a line end, which addresses drop"),
    ];
    let calls: Vec<_> = (0..rows.len()).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> =
        calls.iter().zip(rows).map(|(id, row)| (id.as_str(), "list_tickets", json!({"project": row.0}))).collect();
    let ran = calling(&calls, &[], |_| answer(&json!([]))).await;
    let expected: Vec<String> = rows
        .iter()
        .filter_map(|(_, segment, _)| segment.map(|segment| format!("GET /api/v1/projects/{segment}/tickets")))
        .collect();
    assert_eq!(ran.lines(), expected);
    for ((value, segment, reason), read) in rows.iter().zip(&ran.read) {
        match segment {
            Some(_) => assert_eq!(*read, Ok(json!([])), "{reason}"),
            None => {
                let error = read.as_ref().unwrap_err();
                assert!(error.contains(&format!("{value:?}")), "{reason}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_before_any_request() {
    let rows = [
        ("list_tickets", json!({"open": true}), "missing project"),
        ("list_tickets", json!({"project": null}), "missing project"),
        ("close_ticket", json!({}), "missing id, reason"),
        ("close_ticket", json!({"id": null, "reason": "x"}), "missing id"),
        ("patch_ticket", json!({"id": 1}), "missing due"),
        ("drop_label", json!({}), "missing id"),
        ("list_tickets", json!({"project": {"id": 1}}), "project: {\"id\":1} is not of type \"string\""),
        (
            "list_tickets",
            json!({"project": "p", "admin": true, "x": 1}),
            "no such argument: admin, x; there are: project, open, rows",
        ),
        ("export", json!({"all": true}), "no such argument: all; there are: none"),
    ];
    let ids: Vec<_> = (0..rows.len()).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids.iter().zip(&rows).map(|(id, row)| (id.as_str(), row.0, row.1.clone())).collect();
    let ran = calling(&calls, &[], |_| None).await;
    assert_eq!(ran.read, rows.map(|(_, _, reason)| Err(format!("bad params: {reason}"))));
    assert_eq!(ran.lines(), [""; 0]);
}

#[tokio::test]
async fn a_write_whose_answer_did_not_come_is_not_to_be_repeated() {
    let ok = || Answer::ok("application/json", "{\"id\": ");
    let rows: [(Answer, String, Result<Value, String>, &str); 7] = [
        (
            Answer::status(404, "text/plain", "no ticket"),
            "HTTP 404: no ticket".to_owned(),
            Err("HTTP 404: no ticket".to_owned()),
            "the backend says no",
        ),
        (
            Answer::status(500, "text/plain", "boom"),
            "HTTP 500: boom".to_owned(),
            Err(unknown("HTTP 500: boom")),
            "work that broke off may have been done",
        ),
        (
            Answer::status(504, "text/html", "<html>"),
            "HTTP 504: (an HTML page)".to_owned(),
            Err(unknown("HTTP 504: (an HTML page)")),
            "a gateway does not know",
        ),
        (
            ok().ending(End::Hang),
            "the backend did not answer in time".to_owned(),
            Err(unknown("the backend did not answer in time")),
            "the end does not come",
        ),
        (
            ok().ending(End::Abort),
            "the backend's answer broke off".to_owned(),
            Err(unknown("the backend's answer broke off")),
            "the connection breaks",
        ),
        (
            ok(),
            "the backend's answer is not JSON".to_owned(),
            Ok(json!({"done": true, "note": "the backend's answer is not JSON"})),
            "a good status with odd words",
        ),
        (
            Answer::ok("application/json", json!("x".repeat(100)).to_string()),
            "the backend's answer is larger than 64 bytes".to_owned(),
            Ok(json!({"done": true, "note": "the backend's answer is larger than 64 bytes"})),
            "a good status with too many words",
        ),
    ];
    let calls =
        [("c1", "list_tickets", json!({"project": "p"})), ("c2", "close_ticket", json!({"id": 7, "reason": "done"}))];
    let settings = [("BACKEND__TIMEOUT_S", "1"), ("LIMITS__BACKEND_ANSWER_BYTES", "64")];
    let cases = rows.map(async |(answer, of_read, of_write, reason)| {
        let ran = calling(&calls, &settings, move |_| Some(answer.clone())).await;
        assert_eq!(ran.read, [Err(of_read), of_write], "{reason}");
        assert_eq!(ran.requests.len(), 2, "each is sent once: {reason}");
    });
    futures::future::join_all(cases).await;
}

#[tokio::test]
async fn a_backend_that_says_nothing_may_have_done_it() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let call = [("c1", "close_ticket", json!({"id": 7, "reason": "done"}))];
    let patience = [("BACKEND__BASE_URL", url.as_str()), ("BACKEND__TIMEOUT_S", "1")];
    let ran = calling(&call, &patience, |_| None).await;
    assert_eq!(ran.read, [Err(unknown("the backend did not answer in time"))], "it does not answer");

    let hangs_up = async {
        // The first connection is that of the call above.
        for _ in 0..2 {
            let (mut connection, _) = silent.accept().await.unwrap();
            let mut request = [0; 4096];
            assert!(connection.read(&mut request).await.unwrap() > 0);
        }
    };
    let (ran, ()) = tokio::join!(calling(&call, &patience[..1], |_| None), hangs_up);
    assert_eq!(ran.read, [Err(unknown("the backend could not be reached"))], "it hangs up on the request");
}

#[tokio::test]
async fn a_backend_that_is_not_there_has_done_nothing() {
    let gone = Upstream::script([]).await.url();
    let call = ("c1", "close_ticket", json!({"id": 7, "reason": "done"}));
    let ran = calling(&[call], &[("BACKEND__BASE_URL", &gone)], |_| None).await;
    assert_eq!(ran.read, [Err("the backend could not be reached".to_owned())]);
}

#[tokio::test]
async fn the_users_token_goes_along() {
    let calls =
        [("c1", "list_tickets", json!({"project": "p"})), ("c2", "close_ticket", json!({"id": 7, "reason": "done"}))];
    let ran = calling(&calls, &[], |_| answer(&json!({}))).await;
    let sent: Vec<_> = ran.requests.iter().map(|request| request.header("authorization")).collect();
    assert_eq!(sent, [Some(format!("Bearer {}", ran.token).as_str()); 2]);
}

#[tokio::test]
async fn a_description_is_one_short_line_of_the_prompt_whoever_wrote_it() {
    let tools = format!(
        "[[tool]]\nname = \"look\"\nrequest = {{ path = \"/v1/look\" }}\ndescription = \"\"\"Looks.\n\n# `Rules`\n{}\"\"\"\n",
        "x".repeat(300)
    );
    let mut setup = Setup::of(&tools);
    setup.tools = vec!["look"];
    setup.profile = "closing = [\"parts/capabilities.md\"]";
    let ran = setup.calling(&[("c1", "look", json!({}))], |_| answer(&json!({}))).await;
    let prompt = ran.asked["messages"][0]["content"].as_str().unwrap();
    let expected = format!("\n- `look`: Looks. # 'Rules' {}…\n", "x".repeat(200 - "Looks. # 'Rules' ".len()));
    assert!(prompt.contains(&expected), "{prompt}");
}
