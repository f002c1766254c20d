//! The API's description in OpenAPI: made of the routes' own annotations and their bodies' types, completed by what all
//! of them share (`complete`), served as `/openapi.json` (3.1) and `/openapi-3.2.json`, and printed by
//! `switchboard openapi`.

mod complete;
mod events;
mod parts;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use serde_json::Value;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::files::{self, File, Files};
use super::problem::{Problem, ProblemBody, coded, detail, identified};
use super::{Services, health, wires};
use crate::dialect::Settings;
use crate::dialect::openai_chat::ErrorBody;
use crate::dialect::{ag_ui, ai_sdk, messages};

/// Which OpenAPI a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 3.1, which most tools read. The schema of a stream's events stands in `x-itemSchema`.
    V31,
    /// 3.2, which has a field for it: `itemSchema`.
    V32,
}

impl Version {
    /// The path that it is served at.
    pub const fn path(self) -> &'static str {
        match self {
            Self::V31 => "/openapi.json",
            Self::V32 => "/openapi-3.2.json",
        }
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Switchboard",
        description = "One server that connects any front end to any language model and any REST backend.\n\n\
            Errors before a stream are `application/problem+json` (RFC 9457) with a stable `code`; `docs/ERRORS.md` explains each. \
            The routes of Chat Stream, of OpenAI's protocols and of Messages have the error bodies that their clients know."
    ),
    components(schemas(
        ProblemBody<'static>,
        ErrorBody<'static>,
        messages::ErrorBody<'static>,
        coded::CodedBody<'static>,
        detail::DetailBody<'static>,
        identified::IdentifiedBody<'static>,
        detail::MistakesBody<'static>,
    )),
    tags(
        (name = "Runs", description = "A run apart from the request that began it."),
        (name = "Conversations", description = "What users see of their conversations."),
        (name = "Profiles", description = "Whom the caller may ask."),
        (name = "Usage", description = "What was used, and what it cost."),
        (name = "Users", description = "What is kept of a user."),
        (name = "Audit", description = "Who has written, decided and looked."),
        (name = "Plans", description = "What models lay out, and what came of it."),
        (name = "Workspace", description = "What agents have changed in files, and how it is taken back."),
        (name = "Directives", description = "Commands that outlive their request."),
        (name = "Signals", description = "Facts of a tenant, and who is told of them."),
        (name = "Approvals", description = "What waits for a person."),
        (name = "Previews", description = "Changes that wait for their user."),
        (name = "Health", description = "For whoever watches the server. No token."),
        (name = "Files", description = "What users attach to their messages."),
        (name = "MCP", description = "Profiles, and tools of theirs, as tools of clients of the Model Context Protocol."),
    )
)]
struct Annotated;

/// The whole document.
pub fn document(version: Version) -> Value {
    // The limits on lengths are no part of it.
    let settings = Settings {
        message_bytes: 0,
        context_bytes: 0,
        history_bytes: 0,
        ai_sdk_version: ai_sdk::Version::V5,
        open_interrupts: ag_ui::OpenInterrupts::Error,
        public_url: "".into(),
        chat_message: "".into(),
        smithy: ("".into(), "".into()),
        now_ms: || 0,
    };
    let (protocols, wires) = wires::routes(&settings);
    let (_, mut annotated) =
        OpenApiRouter::with_openapi(Annotated::openapi()).merge(protocols).merge(health::routes()).split_for_parts();
    // The package has none, and one without a name is not allowed.
    annotated.info.license = None;
    let annotated = serde_json::to_value(annotated).unwrap_or_else(|error| {
        // Texts, numbers and maps by texts always serialise.
        tracing::error!(%error, "description not made");
        Value::Null
    });
    complete::complete(annotated, &wires, version)
}

/// The document as it is served, printed and checked in: indented, with a line break at its end.
pub fn text(version: Version) -> String {
    let mut text = serde_json::to_string_pretty(&document(version)).unwrap_or_default();
    text.push('\n');
    text
}

/// Both documents, each made at its first request.
pub(super) fn routes() -> Router<Services> {
    let documents = Arc::new(Documents::default());
    Router::new().route(Version::V31.path(), get(v31)).route(Version::V32.path(), get(v32)).with_state(documents)
}

#[derive(Default)]
struct Documents {
    v31: std::sync::OnceLock<Files>,
    v32: std::sync::OnceLock<Files>,
}

async fn v31(State(documents): State<Arc<Documents>>, headers: HeaderMap) -> Result<Response, Problem> {
    answer(&documents.v31, Version::V31, &headers)
}

async fn v32(State(documents): State<Arc<Documents>>, headers: HeaderMap) -> Result<Response, Problem> {
    answer(&documents.v32, Version::V32, &headers)
}

fn answer(made: &std::sync::OnceLock<Files>, version: Version, headers: &HeaderMap) -> Result<Response, Problem> {
    let files = made.get_or_init(|| {
        let file = File::made("application/json", text(version).into_bytes());
        Arc::new(file.map(|file| (version.path().to_owned(), file)).into_iter().collect::<BTreeMap<_, _>>())
    });
    files::answer(files, version.path(), headers)
}
