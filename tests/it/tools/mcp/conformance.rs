//! The protocol's conformance suite for clients, which we did not write (`tests/peers/mcp-conformance client`). It starts servers, runs a
//! command for each, and looks at what comes: the command sends the client of this process there.

use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard::agent::ports::tools::OfferedTool;
use switchboard::tools::Source;
use tokio::net::TcpListener;

use super::{call, peer};
use crate::support::conformance::{REVISIONS, is_as_expected, is_installed, run};

/// A server of the suite.
#[derive(Deserialize)]
struct Visit {
    url: String,
    scenario: String,
    /// What an operator would know of it.
    context: Value,
}

/// Connects to a server of the suite and calls each of its tools; what came of it, for who reads the suite's output.
async fn visit(Json(visit): Json<Visit>) -> String {
    let mut keys = format!("url = {:?}\nconnect_timeout_s = 10\ntimeout_s = 10\n", visit.url);
    if visit.scenario == "auth/client-credentials-basic" {
        let id = (visit.context["client_id"].as_str().unwrap(), visit.context["client_secret"].as_str().unwrap());
        let token_url = token_url(&visit.url).await;
        keys += &format!("token_url = {token_url:?}\nclient_id = {:?}\nclient_secret = {:?}\n", id.0, id.1);
    }
    let servers = peer(&keys).await;
    let offered = servers.offered("peer");
    let mut said = Vec::new();
    for (tool, args) in calls(&offered, &visit.context) {
        said.push(format!("{tool}: {:?}", call(&servers, &tool, &args).await.0));
    }
    servers.close().await;
    format!("{}: {} tools. {}", visit.scenario, offered.len(), said.join("; "))
}

/// Where an operator finds that tokens for the server at `url` are given.
async fn token_url(url: &str) -> String {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let read = async |url: String| http.get(url).send().await.unwrap().json::<Value>().await.unwrap();
    let resource = read(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")).await;
    let issuer = resource["authorization_servers"][0].as_str().unwrap();
    let issuer = read(format!("{issuer}/.well-known/oauth-authorization-server")).await;
    issuer["token_endpoint"].as_str().unwrap().to_owned()
}

/// The calls that a model might make: those that the scenario names, else one of each tool.
fn calls(offered: &[OfferedTool], context: &Value) -> Vec<(String, Value)> {
    let Some(named) = context["toolCalls"].as_array() else {
        return offered.iter().map(|tool| (tool.def.name.clone(), arguments(tool, offered))).collect();
    };
    let call = |call: &Value| {
        // What is null is left out.
        let given: Map<_, _> =
            call["arguments"].as_object().unwrap().clone().into_iter().filter(|(_, value)| !value.is_null()).collect();
        (format!("peer__{}", call["name"].as_str().unwrap()), json!(given))
    };
    named.iter().map(call).collect()
}

/// Arguments that fit a tool's schema. One that wants a `schema` gets what a model reads of the tool before it.
fn arguments(tool: &OfferedTool, offered: &[OfferedTool]) -> Value {
    let value = |name: &str, schema: &Value| match (name, schema["type"].as_str()) {
        ("schema", _) => offered[0].def.input_schema.clone(),
        (_, Some("integer" | "number")) => json!(5),
        (_, Some("boolean")) => json!(true),
        (_, Some("array")) => json!([]),
        (_, Some("object")) => json!({}),
        (_, Some("null")) => Value::Null,
        (_, Some(_) | None) => json!("some"),
    };
    let schema = &tool.def.input_schema;
    let wanted = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    wanted.map(|name| (name.to_owned(), value(name, &schema["properties"][name]))).collect::<Map<_, _>>().into()
}

#[tokio::test]
async fn our_client_does_what_is_expected_of_one_in_each_revision() {
    if !is_installed() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(visit))).await });
    let passed = [
        &["initialize", "tools_call", "sse-retry"][..],
        &["tools_call", "http-custom-headers", "auth/client-credentials-basic"],
    ];
    for (revision, passed) in REVISIONS.into_iter().zip(passed) {
        is_as_expected(&run(&["client", revision, &address], "", "").await, passed);
    }
    serving.abort();
}
