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
use super::{Services, agent_stream, ai_sdk, chat_stream, copilotkit, native, nothing, openai_chat, packages, smithy};
use crate::dialect::ag_ui::AgUi;
use crate::dialect::agent_chat::AgentChat;
use crate::dialect::agent_stream::AgentStream;
use crate::dialect::ai_sdk::AiSdk;
use crate::dialect::chat_message::ChatMessage;
use crate::dialect::chat_stream::ChatStream;
use crate::dialect::ndjson::Ndjson;
use crate::dialect::openai_chat::OpenAiChat;
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
        wire("ag-ui", ErrorFormat::Problem, AgUi::from(settings), copilotkit::routes),
        wire("ai-sdk", ErrorFormat::Problem, AiSdk::from(settings), ai_sdk::routes),
        Wire {
            info: WireInfo {
                local_user: true,
                says_json: true,
                body_bytes: OPEN_DOCUMENT_BYTES,
                ..WireInfo::named("smithy", ErrorFormat::Detail)
            },
            ..wire("smithy", ErrorFormat::Detail, Smithy::from(settings), smithy::routes)
        },
        wire("openai-chat", ErrorFormat::OpenAi, OpenAiChat::from(settings), openai_chat::routes),
    ]
}

/// Editors send the whole open document with each message.
const OPEN_DOCUMENT_BYTES: usize = 16 << 20;

/// A protocol as it is served.
struct Wire {
    info: WireInfo,
    dialect: Arc<dyn Dialect>,
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
    Wire { info, dialect: Arc::new(dialect), beside, errors_beside: errors, nothing_at: &[] }
}

/// The routes of all protocols with their description, and the protocol of each.
pub(super) fn routes(settings: &Settings) -> (OpenApiRouter<Services>, WiresByRoute) {
    let mut router = OpenApiRouter::new();
    let mut by_route = HashMap::new();
    let mut chats: Vec<(String, Vec<Arc<dyn Dialect>>)> = Vec::new();
    for Wire { info, dialect, beside, errors_beside, nothing_at } in table(settings) {
        let (api, beside) = (dialect.api(), beside());
        for route in api.paths.paths.keys() {
            match chats.iter_mut().find(|(known, _)| known == route) {
                Some((_, dialects)) => dialects.push(dialect.clone()),
                None => chats.push((route.clone(), vec![dialect.clone()])),
            }
        }
        for route in api.paths.paths.keys() {
            by_route.entry(route.clone()).or_insert(info);
        }
        for route in beside.get_openapi().paths.paths.keys() {
            by_route.entry(route.clone()).or_insert(WireInfo { errors: errors_beside, body_bytes: 0, ..info });
        }
        router = router.merge(OpenApiRouter::with_openapi(api)).merge(beside);
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
