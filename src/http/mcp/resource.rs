//! Who may come in: a token's own user, from no page of a foreign site; and where clients learn who gives tokens (RFC 9728).

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, RequestPartsExt};
use serde::Serialize;
use utoipa::ToSchema;

use super::open::OpenCalls;
use crate::chat::caller::Caller;
use crate::http::Services;
use crate::http::address::{base, is_of_this_machine};
use crate::http::auth::{AuthConfig, Authenticated, Mode, Pages, Sender};
use crate::http::problem::Problem;

const METADATA: &str = "/.well-known/oauth-protected-resource";

/// What is known of those who come in.
pub struct ProtectedResource {
    /// Who gives tokens.
    issuers: Vec<String>,
    /// What a token has to be asked for.
    scopes: Vec<String>,
    pages: Pages,
    /// The calls that are being answered.
    pub(super) open: OpenCalls,
}

impl ProtectedResource {
    /// Of these settings; pages of `origins` may come in too.
    pub fn new(auth: &AuthConfig, origins: &[String]) -> Self {
        let own = [&auth.issuer].into_iter().filter(|_| auth.mode != Mode::Dev);
        let all = own.chain(auth.issuers.values().map(|issuer| &issuer.issuer));
        let mut issuers: Vec<String> = all.filter(|issuer| issuer.starts_with("http")).cloned().collect();
        issuers.dedup();
        Self { issuers, scopes: auth.scopes.clone(), pages: Pages::new(origins), open: OpenCalls::default() }
    }
}

/// The caller of a message. One without a good token reads who gives one.
pub(super) struct Client(pub(super) Caller);

impl FromRequestParts<Services> for Client {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        if is_foreign(services, &parts.headers) {
            return Err(Problem::forbidden("a page of this origin may not call tools here"));
        }
        let metadata = format!("{}{METADATA}{}", base(services, &parts.headers), plain(parts.uri.path()));
        let caller = parts.extract_with_state::<Authenticated, _>(services).await;
        caller.map(|Authenticated(caller)| Self(caller)).map_err(|problem| problem.pointing_to(&metadata))
    }
}

/// Whether a page has sent a request that is neither of this server nor listed. A name that leads here by a trick is in `Origin` and
/// `Host` alike: of those, only names of this machine count, and that of the settings.
fn is_foreign(services: &Services, headers: &HeaderMap) -> bool {
    let is_here = match services.mcp.pages.sender(headers) {
        None | Some(Sender::Listed) => return false,
        Some(Sender::Own) => is_of_this_machine(headers),
        Some(Sender::Foreign) => false,
    };
    let public = services.dialects.public_url.as_ref();
    let own = public.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    !is_here
        && (public.is_empty()
            || headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok()) != Some(own.as_str()))
}

/// The path of one of these routes, as far as it needs no quoting.
fn plain(path: &str) -> &str {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'-' | b'_' | b'~' | b'%');
    if path.starts_with("/mcp") && path.bytes().all(is_plain) { path } else { "/mcp" }
}

/// What clients need to know to get a token (RFC 9728).
#[derive(Serialize, ToSchema)]
#[schema(as = ProtectedResource)]
pub(super) struct ResourceBody {
    /// What a token has to be for.
    resource: String,
    /// Who gives tokens; none where that is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    authorization_servers: Vec<String>,
    /// What a client asks for with a token; none where any will do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    scopes_supported: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// 200 with who gives tokens for `/mcp`.
#[utoipa::path(
    get,
    path = "/.well-known/oauth-protected-resource",
    operation_id = "protectedResource",
    tag = "MCP",
    summary = "Say who gives tokens",
    description = "The same as that of `/mcp`.",
    responses(
        (status = 200, description = "Who does (RFC 9728).", body = ResourceBody),
    ),
)]
pub(super) async fn of_server(State(services): State<Services>, headers: HeaderMap) -> Response {
    document(&services, &headers, "/mcp")
}

/// 200 with who gives tokens for `/mcp`.
#[utoipa::path(
    get,
    path = "/.well-known/oauth-protected-resource/mcp",
    operation_id = "protectedResourceOfMcp",
    tag = "MCP",
    summary = "Say who gives tokens for all tools",
    responses(
        (status = 200, description = "Who does (RFC 9728).", body = ResourceBody),
    ),
)]
pub(super) async fn of_all(State(services): State<Services>, headers: HeaderMap) -> Response {
    document(&services, &headers, "/mcp")
}

/// 200 with who gives tokens for one profile's tools, whether there is such a profile or not.
#[utoipa::path(
    get,
    path = "/.well-known/oauth-protected-resource/mcp/{profile}",
    operation_id = "protectedResourceOfProfile",
    tag = "MCP",
    summary = "Say who gives tokens for the tools of a profile",
    params(
        ("profile" = String, Path, description = "A profile's `context_type`."),
    ),
    responses(
        (status = 200, description = "Who does (RFC 9728).", body = ResourceBody),
    ),
)]
pub(super) async fn of_one(
    State(services): State<Services>,
    profile: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    uri: axum::http::Uri,
) -> Response {
    let path = uri.path().strip_prefix(METADATA).filter(|_| profile.is_ok()).map_or("/mcp", plain);
    document(&services, &headers, path)
}

fn document(services: &Services, headers: &HeaderMap, path: &str) -> Response {
    let body = ResourceBody {
        resource: format!("{}{path}", base(services, headers)),
        authorization_servers: services.mcp.issuers.clone(),
        scopes_supported: services.mcp.scopes.clone(),
        bearer_methods_supported: ["header"],
        resource_name: "Switchboard",
    };
    // Any page may read it: it is the same for all.
    let open = [(HeaderName::from_static("access-control-allow-origin"), HeaderValue::from_static("*"))];
    (open, Json(body)).into_response()
}
