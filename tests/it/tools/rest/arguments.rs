//! Arguments: what a model may say, what is filled in for it, which names become ids, and where templates put them.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{Setup, answer};
use crate::support::model::{calls, says};
use crate::support::upstream::Request;

const TOOLS: &str = r#"
[[tool]]
name = "search"
description = "Searches a project."
[tool.input_schema]
type = "object"
required = ["q"]
properties = { q = { type = "string", maxLength = 20 }, rows = { type = "integer", minimum = 1 }, tags = { type = "array", items = { type = "string" } } }
[tool.request]
path = "/v1/projects/{project_id}/articles"
query = { q = "{{ args.q }}", limit = "{{ args.rows }}", tag = "{{ args.tags }}", by = "{{ user }}", kind = "article" }
headers = { "X-Chat-Session" = "{{ conversation_id }}", "X-Note" = "{{ context.note }}" }
[tool.inject]
project_id = "{{ context.project_id }}"

[[tool]]
name = "order"
description = "Orders something."
[tool.input_schema]
type = "object"
required = ["customer", "lines"]
[tool.input_schema.properties]
customer = { type = ["string", "integer"] }
lines = { type = "array", items = { type = "object", required = ["sku"], properties = { sku = { type = "string" }, n = { type = "integer" } } } }
note = { type = "string" }
channel = { type = "string" }
[tool.request]
method = "POST"
path = "/v1/orders"
body = { customer_id = "{{ args.customer }}", lines = "{{ args.lines }}", meta = { note = "{{ args.note }}", text = "By {{ user }}", from = "{{ args.channel }}" } }
[tool.inject]
channel = "chat"
[tool.resolve.customer]
path = "/v1/customers"
items = "items"
id = "id"
name = "name"
"#;

fn setup(context: Value) -> Setup<'static> {
    Setup { context, ..Setup::of(TOOLS) }
}

/// Two customers of the same name, and one more.
fn customers(request: &Request) -> Option<crate::support::upstream::Answer> {
    if request.path == "/api/v1/customers" {
        let names = [(1, "Acme"), (2, "Smith"), (3, "SMITH"), (4, "Globex Corporation")];
        let items: Vec<Value> = names.iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
        return answer(&json!({"items": items, "total": 4}));
    }
    answer(&json!({"ok": true}))
}

#[tokio::test]
async fn templates_put_arguments_and_the_screen_into_their_places() {
    let args = json!({"q": "a&b", "rows": 5, "tags": ["x", "y z"]});
    let ran = setup(json!({"project_id": 7}))
        .calling(&[("c1", "search", args), ("c2", "search", json!({"q": "c", "rows": null}))], |_| answer(&json!([])))
        .await;
    assert_eq!(ran.read, [Ok(json!([])), Ok(json!([]))]);
    let ada = crate::support::app::ADA;
    let expected = [
        format!("GET /api/v1/projects/7/articles?q=a%26b&limit=5&tag=x&tag=y%20z&by={ada}&kind=article"),
        format!("GET /api/v1/projects/7/articles?q=c&by={ada}&kind=article"),
    ];
    assert_eq!(ran.lines(), expected, "what has no value is left out, a list is the parameter several times");
    let header = |name| ran.requests.iter().map(|request| request.header(name).is_some()).collect::<Vec<_>>();
    assert_eq!((header("x-chat-session"), header("x-note")), (vec![true; 2], vec![false; 2]));
}

#[tokio::test]
async fn what_is_filled_in_is_not_asked_of_the_model_and_what_is_hidden_is_not_its_to_say() {
    let calls = [
        ("c1", "search", json!({"q": "a", "project_id": "other"})),
        ("c2", "search", json!({"q": "a"})),
        ("c3", "order", json!({"customer": 1, "lines": [], "channel": "mail"})),
        ("c4", "order", json!({"customer": 1, "lines": []})),
    ];
    let ran = setup(json!({})).calling(&calls, customers).await;
    let read = &ran.read;
    let hidden = "bad params: no such argument: project_id; there are: q, rows, tags";
    assert_eq!(read[0], Err(hidden.to_owned()), "the screen says which project, not the model");
    assert_eq!(read[1], Err("bad params: missing project_id".to_owned()), "and this screen has none");
    let from: Vec<Value> = ran.requests.iter().map(|request| request.json()["meta"]["from"].clone()).collect();
    assert_eq!(from, ["mail", "chat"], "what the schema names is filled in only where the model said nothing");
}

#[tokio::test]
async fn a_name_becomes_an_id_of_the_callers_own_list() {
    let order = |customer: Value| json!({"customer": customer, "lines": [{"sku": "a"}]});
    let calls = [
        ("c1", "order", order(json!("acme"))),
        ("c2", "order", order(json!("Smith"))),
        ("c3", "order", order(json!("smith"))),
        ("c4", "order", order(json!("globex"))),
        ("c5", "order", order(json!("4"))),
        ("c6", "order", order(json!(9))),
        ("c7", "order", order(json!("550e8400-e29b-41d4-a716-446655440000"))),
    ];
    let ran = setup(json!({})).calling(&calls, customers).await;
    let ok = Ok(json!({"ok": true}));
    let ambiguous = "customer \"smith\" fits several: Smith (2), SMITH (3); pass the id";
    let unknown =
        "customer \"globex\" not found; the nearest are: \"Globex Corporation\", \"Acme\", \"SMITH\", \"Smith\"";
    assert_eq!(
        ran.read,
        [
            ok.clone(),
            ok.clone(),
            Err(ambiguous.to_owned()),
            Err(unknown.to_owned()),
            ok.clone(),
            ok.clone(),
            ok.clone(),
        ]
    );
    let ids: Vec<Value> = ran
        .requests
        .iter()
        .filter(|request| request.method == "POST")
        .map(|request| request.json()["customer_id"].clone())
        .collect();
    assert_eq!(ids, [json!(1), json!(2), json!(4), json!(9), json!("550e8400-e29b-41d4-a716-446655440000")]);
    let lists: Vec<_> = ran.requests.iter().filter(|request| request.method == "GET").collect();
    assert_eq!(lists.len(), 2, "the list is kept, and fetched again once for a name that it does not have");
    assert!(lists.iter().all(|list| list.header("authorization") == Some(&format!("Bearer {}", ran.token))));
}

#[tokio::test]
async fn a_name_is_looked_up_again_for_a_token_with_other_roles() {
    let lists = AtomicUsize::new(0);
    let backend = move |request: &Request| match request.method.as_str() {
        // Each time that it is fetched the customer has another id, as if another one were all that this token may see.
        "GET" => answer(&json!({"items": [{"id": 1 + lists.fetch_add(1, Ordering::SeqCst), "name": "Acme"}]})),
        _ => answer(&json!({"ok": true})),
    };
    let order = |call: &str| calls(call, "order", &json!({"customer": "acme", "lines": []}));
    let turns = ["c1", "c2", "c3"].into_iter().flat_map(|call| [order(call), says("Done.")]);
    let (s, backend) = setup(json!({})).start(turns, backend).await;
    let ada = crate::support::app::ADA;
    let tokens = [&["USER", "ADMIN"][..], &["USER"], &["ADMIN", "USER"]].map(|roles| s.app.token_of(ada, None, roles));
    for token in &tokens {
        let body = json!({"message": "Go", "context_type": "mine", "conversation_id": "c"});
        s.app.post_as(token, &body).await.text().await.unwrap();
    }
    let orders = backend.requests().into_iter().filter(|request| request.method == "POST");
    let ids: Vec<Value> = orders.map(|request| request.json()["customer_id"].clone()).collect();
    assert_eq!(
        ids,
        [json!(1), json!(2), json!(1)],
        "what one token sees does not answer another that may be allowed less"
    );
}

/// Two tools that read one answer in two ways.
const TWO_LISTS: &str = r#"
[[tool]]
name = "hire"
description = "Hires somebody."
input_schema = { type = "object", properties = { who = {} } }
request = { method = "POST", path = "/v1/hired" }
resolve = { who = { path = "/v1/customers", items = "people", id = "id", name = "name" } }

[[tool]]
name = "rent"
description = "Rents a room."
input_schema = { type = "object", properties = { who = {} } }
request = { method = "POST", path = "/v1/rented" }
resolve = { who = { path = "/v1/customers", items = "rooms", id = "id", name = "name" } }
"#;

#[tokio::test]
async fn lists_that_are_read_differently_are_not_mixed_up_and_few_names_are_looked_up_at_once() {
    let many: Vec<String> = (0..101).map(|n| format!("n{n}")).collect();
    let calls = [
        ("c1", "hire", json!({"who": "Blue"})),
        ("c2", "rent", json!({"who": "Blue"})),
        ("c3", "rent", json!({"who": many})),
    ];
    let lists = json!({"people": [{"id": 1, "name": "Blue"}], "rooms": [{"id": 2, "name": "Blue"}]});
    let ran = Setup::of(TWO_LISTS).calling(&calls, move |_| answer(&lists)).await;
    let sent = ran.requests.iter().filter(|request| request.method == "POST");
    let sent: Vec<(&str, Value)> = sent.map(|request| (request.path.as_str(), request.json())).collect();
    let expected = [("/api/v1/hired", json!({"who": 1})), ("/api/v1/rented", json!({"who": 2}))];
    assert_eq!(sent, expected, "each name is of its own list");
    assert_eq!(ran.read[2], Err("bad params: who: 101 names, and at most 100 in a call".to_owned()));
}

#[tokio::test]
async fn a_body_is_made_of_templates() {
    let args = json!({"customer": 1, "lines": [{"sku": "{{ user }}", "n": 2}], "note": "x\"y"});
    let ran = setup(json!({})).calling(&[("c1", "order", args)], customers).await;
    let expected = json!({
        "customer_id": 1,
        "lines": [{"sku": "{{ user }}", "n": 2}],
        "meta": {"note": "x\"y", "text": format!("By {}", crate::support::app::ADA), "from": "chat"}
    });
    assert_eq!(ran.requests[0].json(), expected, "values are never templates");
    assert_eq!(ran.keys(), [Some("c1")]);
}

#[tokio::test]
async fn arguments_are_held_to_the_schema_before_any_request() {
    let rows = [
        (json!({"q": 7}), "bad params: q: 7 is not of type \"string\""),
        (json!({"q": "x".repeat(21)}), "bad params: q: \"xxxxxxxxxxxxxxxxxxxxx\" is longer than 20 characters"),
        (
            json!({"q": "a", "rows": 0, "tags": ["b", 1]}),
            "bad params: rows: 0 is less than the minimum of 1; tags/1: 1 is not of type \"string\"",
        ),
        (json!({"rows": 1}), "bad params: missing q"),
    ];
    let ids: Vec<_> = (0..rows.len()).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids.iter().zip(&rows).map(|(id, row)| (id.as_str(), "search", row.0.clone())).collect();
    let ran = setup(json!({"project_id": 7})).calling(&calls, |_| None).await;
    assert_eq!(ran.read, rows.map(|(_, reason)| Err(reason.to_owned())));
}
