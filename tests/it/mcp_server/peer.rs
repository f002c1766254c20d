//! A client that we did not write: the one of the official Rust SDK, in both eras.

use std::collections::HashMap;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::json;

use crate::openai::playing;
use crate::support::model::{Scripted, says};

async fn connected(s: &Scripted, lifecycle: ClientLifecycleMode) -> RunningService<RoleClient, ClientConfig> {
    let authorization = ("authorization".parse().unwrap(), format!("Bearer {}", s.app.token).parse().unwrap());
    let config =
        StreamableHttpClientTransportConfig::with_uri(s.app.url("/mcp")).custom_headers(HashMap::from([authorization]));
    let transport = StreamableHttpClientTransport::with_client(s.app.http.clone(), config);
    let client = ClientConfig::new(ClientCapabilities::default(), Implementation::new("peer", "1"));
    client.serve_with_lifecycle(transport, lifecycle).await.unwrap()
}

async fn lists_and_calls(lifecycle: ClientLifecycleMode) {
    let s = playing([says("One.")]).await;
    let client = connected(&s, lifecycle).await;
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "ask_workflow"), "{tools:?}");
    let arguments = json!({"message": "First?"}).as_object().unwrap().clone();
    let params = CallToolRequestParams::new("ask_workflow").with_arguments(arguments);
    let result: CallToolResult = client.call_tool(params).await.unwrap();
    assert_eq!(result.structured_content.unwrap()["answer"], "One.");
    assert_ne!(result.is_error, Some(true));
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn the_official_client_lists_and_calls_without_an_initialize() {
    lists_and_calls(ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }).await;
}

#[tokio::test]
async fn the_official_client_lists_and_calls_with_an_initialize() {
    lists_and_calls(ClientLifecycleMode::Initialize).await;
}

#[tokio::test]
async fn the_official_client_finds_out_what_is_spoken_here() {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    lists_and_calls(ClientLifecycleMode::Auto { preferred_versions, legacy_version: None }).await;
}
