//! The wire protocols: which there are, where they are served, and how their errors look. A new one is a folder under
//! `dialect/` and a line here.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, State};
use axum::http::{HeaderMap, Uri};
use axum::routing::{any, post};
use utoipa_axum::router::OpenApiRouter;

use super::auth::Authenticated;
use super::body::Taken;
use super::problem::ErrorFormat;
use super::request_id::RequestId;
use super::serve::{Call, serve};
use super::wire_info::{NATIVE, WireInfo, WiresByRoute};
use super::{
    Services, agent_stream, ai_sdk, chat_stream, copilotkit, mcp, messages, native, nothing, openai_chat, packages,
    responses, smithy,
};
use crate::dialect::ag_ui::AgUi;
use crate::dialect::agent_chat::AgentChat;
use crate::dialect::agent_stream::AgentStream;
use crate::dialect::ai_sdk::AiSdk;
use crate::dialect::chat_message::ChatMessage;
use crate::dialect::chat_stream::ChatStream;
use crate::dialect::messages::Messages;
use crate::dialect::ndjson::Ndjson;
use crate::dialect::openai_chat::OpenAiChat;
use crate::dialect::responses::Responses;
use crate::dialect::smithy::Smithy;
use crate::dialect::{Dialect, Settings};

/// The protocols: the name of each in metrics, the format of its errors, the dialect, and what is served beside the
/// routes that begin runs. Where two have the same route, the first that is meant answers.
fn table(settings: &Settings) -> Vec<Wire> {
    let agent_chat = AgentChat::from(settings);
    vec![
        wire(NATIVE, ErrorFormat::Problem, agent_chat, native),
        wire("ndjson", ErrorFormat::Problem, Ndjson(agent_chat), OpenApiRouter::new),
        Wire {
            nothing_at: &["/api/chat/{*rest}", "/api/chats/{chat_id}/{*rest}"],
            ..wire("chat-stream", ErrorFormat::Detail, ChatStream::from(settings), chat_stream::routes)
        },
        Wire {
            nothing_at: &["/api/agent", "/api/agent/{*rest}", "/api/agentic-chat/{*rest}", "/api/chat/sessions"],
            ..wire("agent-stream", ErrorFormat::Coded, AgentStream::from(settings), agent_stream::routes)
        },
        Wire {
            errors_beside: ErrorFormat::NotOk,
            ..wire("chat-message", ErrorFormat::Identified, ChatMessage::from(settings), packages::routes)
        },
        with_files(wire("ag-ui", ErrorFormat::Problem, AgUi::from(settings), copilotkit::routes)),
        with_files(wire("ai-sdk", ErrorFormat::Problem, AiSdk::from(settings), ai_sdk::routes)),
        Wire {
            info: WireInfo {
                local_user: true,
                says_json: true,
                body_bytes: OPEN_DOCUMENT_BYTES,
                ..WireInfo::named("smithy", ErrorFormat::Detail)
            },
            ..wire("smithy", ErrorFormat::Detail, Smithy::from(settings), smithy::routes)
        },
        Wire {
            // Clients of Messages list models, and keep files, at the same routes.
            info: WireInfo {
                api_key: true,
                body_bytes: HISTORY_BYTES,
                ..WireInfo::named("openai-chat", ErrorFormat::OpenAi("messages"))
            },
            errors_beside: ErrorFormat::Models,
            ..wire("openai-chat", ErrorFormat::OpenAi("messages"), OpenAiChat::from(settings), openai_chat::routes)
        },
        Wire {
            info: WireInfo { body_bytes: HISTORY_BYTES, ..WireInfo::named("responses", ErrorFormat::OpenAi("input")) },
            ..wire("responses", ErrorFormat::OpenAi("input"), Responses::from(settings), responses::routes)
        },
        Wire {
            info: WireInfo {
                api_key: true,
                body_bytes: HISTORY_BYTES,
                ..WireInfo::named("messages", ErrorFormat::Messages)
            },
            nothing_at: &["/v1/messages/{*rest}"],
            ..wire("messages", ErrorFormat::Messages, Messages::from(settings), messages::routes)
        },
        Wire {
            info: WireInfo {
                says_json: true,
                body_bytes: MESSAGE_BYTES,
                ..WireInfo::named("mcp", ErrorFormat::JsonRpc)
            },
            dialect: None,
            beside: mcp::routes,
            errors_beside: ErrorFormat::JsonRpc,
            nothing_at: &[],
        },
    ]
}

/// Editors send the whole open document with each message.
const OPEN_DOCUMENT_BYTES: usize = 16 << 20;

/// Agents that keep their conversations send all of one with each message, and others send pictures in them.
const HISTORY_BYTES: usize = 32 << 20;

/// What counts the tokens of whole conversations.
const COUNTS: [&str; 2] = ["/v1/responses/input_tokens", "/v1/messages/count_tokens"];

/// As much as the usual servers of tools take of a message.
const MESSAGE_BYTES: usize = 4 << 20;

/// A protocol as it is served.
struct Wire {
    info: WireInfo,
    /// What reads the requests that begin runs; `None` where these come on the same route as others, and are told apart there.
    dialect: Option<Arc<dyn Dialect>>,
    beside: fn() -> OpenApiRouter<Services>,
    /// How the errors of those look.
    errors_beside: ErrorFormat,
    /// Routes that serve nothing, and answer 404 in the format of its errors.
    nothing_at: &'static [&'static str],
}

fn wire(
    name: &'static str,
    errors: ErrorFormat,
    dialect: impl Dialect + 'static,
    beside: fn() -> OpenApiRouter<Services>,
) -> Wire {
    let info = WireInfo::named(name, errors);
    Wire { info, dialect: Some(Arc::new(dialect)), beside, errors_beside: errors, nothing_at: &[] }
}

/// A protocol whose clients send files within their messages.
fn with_files(wire: Wire) -> Wire {
    Wire { info: WireInfo { body_bytes: HISTORY_BYTES, ..wire.info }, ..wire }
}

/// The routes of all protocols with their description, and the protocol of each.
pub(super) fn routes(settings: &Settings) -> (OpenApiRouter<Services>, WiresByRoute) {
    let mut router = OpenApiRouter::new();
    let mut by_route = HashMap::new();
    let mut chats: Vec<(String, Vec<Arc<dyn Dialect>>)> = Vec::new();
    for Wire { info, dialect, beside, errors_beside, nothing_at } in table(settings) {
        let (beside, is_alone) = (beside(), dialect.is_none());
        if let Some(dialect) = dialect {
            let api = dialect.api();
            for route in api.paths.paths.keys() {
                match chats.iter_mut().find(|(known, _)| known == route) {
                    Some((_, dialects)) => dialects.push(dialect.clone()),
                    None => chats.push((route.clone(), vec![dialect.clone()])),
                }
                by_route.entry(route.clone()).or_insert(info);
            }
            router = router.merge(OpenApiRouter::with_openapi(api));
        }
        for route in beside.get_openapi().paths.paths.keys() {
            let body_bytes = if is_alone || COUNTS.contains(&route.as_str()) { info.body_bytes } else { 0 };
            by_route.entry(route.clone()).or_insert(WireInfo { errors: errors_beside, body_bytes, ..info });
        }
        router = router.merge(beside);
        for route in nothing_at {
            by_route.insert((*route).to_owned(), info);
            router = router.route(route, any(nothing));
        }
    }
    for (route, dialects) in chats {
        let dialects: Arc<[Arc<dyn Dialect>]> = dialects.into();
        let handler = move |State(services): State<Services>,
                            Extension(request_id): Extension<RequestId>,
                            Authenticated(caller): Authenticated,
                            path: Result<RawPathParams, RawPathParamsRejection>,
                            uri: Uri,
                            headers: HeaderMap,
                            body: Taken| {
            let path = path.ok().and_then(|path| path.iter().next().map(|(_, value)| value.to_owned()));
            let dialect = dialects.iter().find(|dialect| dialect.is_meant(&headers)).or(dialects.first()).cloned();
            serve(dialect, Call { services, caller, request_id, path, uri, headers, body })
        };
        router = router.route(&route, post(handler));
    }
    (router, WiresByRoute::new(by_route))
}
