//! The routes beside `POST /chat/message` that install packages: a button of an application's page requests a directive of
//! the operator's, and asks how it stands (`docs/protocol/chat-message.md`).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::directives::{client_key, refuse_while_draining};
use super::problem::Problem;
use super::request_id::RequestId;
use crate::agent::ports::directives::{Asked, DirectiveFilter, Requested};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::tools::{KeepsFiles, OfferedTool, Reporter, ToolContext, ToolExecutor};
use crate::bounded::json::{self, Tree};
use crate::chat::caller::Caller;
use crate::chat::day::rfc3339 as time;
use crate::chat::directive::{Directive, DirectiveStatus};
use crate::chat::ids::{ConversationId, RunId, ToolCallId};
use crate::chat::tool::{ToolCall, ToolInput};

/// The newest installations that the answer about all of them looks at.
const NEWEST: u32 = 100;

/// What installs packages, where something does.
#[derive(Clone)]
pub struct Packages {
    /// The name of the directive that installs; empty: none does.
    pub install: String,
    /// The name of the directive that uninstalls; empty: none does.
    pub uninstall: String,
    /// The tool that tells what is installed.
    pub installations: Option<OfferedTool>,
    /// Calls it.
    pub tools: Arc<dyn ToolExecutor>,
}

/// The routes, each of which serves nothing where its setting is empty.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(install)).routes(routes!(uninstall)).routes(routes!(status))
}

/// A package that is meant.
#[derive(Serialize, ToSchema)]
#[schema(as = Package)]
struct PackageBody {
    slug: String,
    version: Option<String>,
}

/// A directive that was requested for a package.
#[derive(Serialize, ToSchema)]
#[schema(as = PackageRequested)]
struct PackageRequestedBody {
    /// `true`.
    ok: bool,
    /// Of an installation; the id that its backend gave it, once it is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    installation_id: Option<Value>,
    /// Of an installation: `requested` or `installed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    directive_id: String,
    directive_status: &'static str,
    /// Whether this request has made it.
    directive_created: bool,
    /// `true`.
    enqueued: bool,
    tenant: Option<String>,
    package: PackageBody,
}

/// How each package stands, by its slug.
#[derive(Serialize, ToSchema)]
#[schema(as = InstallationStatus)]
struct StatusBody {
    /// `true`.
    ok: bool,
    tenant: Option<String>,
    installation_status: BTreeMap<String, InstallationBody>,
}

/// How a package stands; what the tool does not tell is null.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = Installation)]
struct InstallationBody {
    id: Value,
    /// `requested`, `installing`, `installed` or `failed`, or what else the tool tells.
    status: Option<String>,
    enabled: bool,
    installed_at: Value,
    updated_at: Value,
    last_error: Option<String>,
    last_error_at: Value,
}

/// 200: a package is being installed.
#[utoipa::path(
    post,
    path = "/marketplace/install",
    operation_id = "installPackage",
    tag = "Chat Message",
    summary = "Install a package",
    description = "Requests the directive of `chat_message.install` with `slug`, `version` and `config`.",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key with the same request is the same directive.")),
    request_body = Object,
    responses(
        (status = 200, description = "It is requested, or was.", body = PackageRequestedBody),
        (status = 400, description = "`invalid_request`: no slug."),
        (status = 403, description = "`role_required`: none of the caller's roles may do it."),
        (status = 404, description = "`not_found`: nothing installs packages here."),
        (status = 422, description = "`invalid_request`, `secret_in_payload`, `idempotency_mismatch`."),
    ),
)]
async fn install(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(request_id): Extension<RequestId>,
    headers: HeaderMap,
    body: Taken,
) -> Result<Json<PackageRequestedBody>, Problem> {
    let name = &services.packages.install;
    let (Requested { directive, created }, package) =
        request(&services, &caller, name, ["version", "config"], (&headers, request_id.0, &body)).await?;
    let is_there = directive.status == DirectiveStatus::Succeeded;
    let id = directive.result.as_ref().and_then(|result| result.get("id")).cloned().unwrap_or_default();
    Ok(Json(PackageRequestedBody {
        installation_id: Some(id),
        status: Some(if is_there { "installed" } else { "requested" }),
        ..requested(&directive, created, &caller, package)
    }))
}

/// 200: a package is being uninstalled.
#[utoipa::path(
    post,
    path = "/marketplace/uninstall",
    operation_id = "uninstallPackage",
    tag = "Chat Message",
    summary = "Uninstall a package",
    description = "Requests the directive of `chat_message.uninstall` with `slug`, `version` and `purge`.",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key with the same request is the same directive.")),
    request_body = Object,
    responses(
        (status = 200, description = "It is requested, or was.", body = PackageRequestedBody),
        (status = 400, description = "`invalid_request`: no slug."),
        (status = 403, description = "`role_required`: none of the caller's roles may do it."),
        (status = 404, description = "`not_found`: nothing uninstalls packages here."),
        (status = 422, description = "`invalid_request`, `secret_in_payload`, `idempotency_mismatch`."),
    ),
)]
async fn uninstall(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(request_id): Extension<RequestId>,
    headers: HeaderMap,
    body: Taken,
) -> Result<Json<PackageRequestedBody>, Problem> {
    let name = &services.packages.uninstall;
    let (Requested { directive, created }, package) =
        request(&services, &caller, name, ["version", "purge"], (&headers, request_id.0, &body)).await?;
    Ok(Json(requested(&directive, created, &caller, package)))
}

fn requested(directive: &Directive, created: bool, caller: &Caller, package: PackageBody) -> PackageRequestedBody {
    PackageRequestedBody {
        ok: true,
        installation_id: None,
        status: None,
        directive_id: directive.id.to_string(),
        directive_status: directive.status.name(),
        directive_created: created,
        enqueued: true,
        tenant: caller.owner.tenant_name().map(str::to_owned),
        package,
    }
}

/// Requests the directive of that name for a package.
async fn request(
    services: &Services,
    caller: &Caller,
    name: &str,
    more: [&str; 2],
    (headers, correlation, body): (&HeaderMap, String, &[u8]),
) -> Result<(Requested, PackageBody), Problem> {
    if name.is_empty() {
        return Err(Problem::not_found("there is nothing at this path"));
    }
    refuse_while_draining(services)?;
    let fields = match json::parse_bytes(body) {
        Ok(Tree(Value::Object(fields))) => fields,
        Ok(_) => return Err(Problem::bad_request("the body must be an object with slug")),
        Err(error) => return Err(Problem::bad_request(format!("the body must be {{\"slug\", …}}: {error}"))),
    };
    let given = |name: &str| fields.get(name).filter(|value| !is_blank(value)).cloned();
    let Some(slug) = fields.get("slug").and_then(Value::as_str).map(str::trim).filter(|slug| !slug.is_empty()) else {
        return Err(Problem::bad_request("missing required param: slug"));
    };
    let mut payload = Map::from_iter([("slug".to_owned(), Value::from(slug))]);
    payload.extend(more.into_iter().filter_map(|name| Some((name.to_owned(), given(name)?))));
    let key = client_key(headers)?;
    let asked = Asked { name, payload: &payload, correlation, key, scheduled_at_ms: None };
    let requested = services.directives.ask(asked, caller).await?;
    let version = given("version").and_then(|version| version.as_str().map(str::to_owned));
    Ok((requested, PackageBody { slug: slug.to_owned(), version }))
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// 200 with how packages stand.
#[utoipa::path(
    get,
    path = "/marketplace/installations/status",
    operation_id = "getInstallations",
    tag = "Chat Message",
    summary = "Read how packages stand",
    description = "What the tool of `chat_message.installations` tells, and of a package whose newest installation has not succeeded, how that stands.",
    responses(
        (status = 200, description = "How each package stands.", body = StatusBody),
        (status = 403, description = "`role_required`: none of the caller's roles may read it."),
        (status = 404, description = "`not_found`: nothing tells what is installed here."),
        (status = 502, description = "`backend_refused`: the backend did not tell."),
    ),
)]
async fn status(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
) -> Result<Json<StatusBody>, Problem> {
    let Packages { install, installations, .. } = &services.packages;
    let Some(tool) = installations else { return Err(Problem::not_found("there is nothing at this path")) };
    if !tool.policy.lets(&caller) {
        return Err(Problem::role_required("none of your roles may read what is installed"));
    }
    let mut standing = installed(&services.packages, tool, &caller).await?;
    let filter =
        DirectiveFilter { name: Some(install.clone()), of_tenant: true, limit: NEWEST, ..DirectiveFilter::default() };
    let newest = match install.is_empty() {
        true => Vec::new(),
        false => {
            let read = services.directive_records.directives(&caller, &filter).await;
            read.map_err(|error: StoreError| Problem::store_failed("directives not read", error))?.items
        }
    };
    let mut seen = HashSet::new();
    for directive in newest {
        let Some(slug) = directive.payload.get("slug").and_then(Value::as_str) else { continue };
        if seen.insert(slug.to_owned()) {
            tell(&directive, slug, &mut standing);
        }
    }
    let tenant = caller.owner.tenant_name().map(str::to_owned);
    Ok(Json(StatusBody { ok: true, tenant, installation_status: standing }))
}

/// What the tool tells, by slug.
async fn installed(
    packages: &Packages,
    tool: &OfferedTool,
    caller: &Caller,
) -> Result<BTreeMap<String, InstallationBody>, Problem> {
    let conversation = ConversationId::fresh();
    let call = ToolCall {
        id: ToolCallId::from_model("installations"),
        name: tool.def.name.clone(),
        input: ToolInput::Object(Map::new()),
    };
    let cx = ToolContext {
        caller,
        conversation: &conversation,
        number: None,
        run: RunId::fresh(),
        call: Some(&call.id),
        context: None,
        place: None,
        completed: None,
        first_try: None,
        progress: Reporter::default(),
        files: KeepsFiles::default(),
    };
    let output = packages.tools.execute(&call, &cx).await;
    match json::parse_bytes(output.content.as_bytes()) {
        Ok(by_slug) if !output.fate.is_error() => Ok(by_slug),
        Ok(_) | Err(_) => Err(Problem::backend_refused("what is installed could not be read")),
    }
}

/// Tells of the package of `slug` how its newest installation stands, where that has not succeeded.
fn tell(directive: &Directive, slug: &str, standing: &mut BTreeMap<String, InstallationBody>) {
    let status = match directive.status {
        DirectiveStatus::PendingApproval | DirectiveStatus::Requested => "requested",
        DirectiveStatus::Running => "installing",
        DirectiveStatus::Failed | DirectiveStatus::Unknown => "failed",
        DirectiveStatus::Succeeded | DirectiveStatus::Canceled => return,
    };
    let at = Value::from(time(directive.updated_at_ms));
    let package = standing.entry(slug.to_owned()).or_default();
    package.status = Some(status.to_owned());
    package.updated_at = at.clone();
    if status == "failed" {
        package.last_error = directive.error.as_ref().map(|error| error.message.clone());
        package.last_error_at = at;
    }
}
