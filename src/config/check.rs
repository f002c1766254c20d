//! What types cannot say: settings that contradict each other, or that this version cannot do.

use std::net::{SocketAddr, ToSocketAddrs};

use secrecy::ExposeSecret;
use url::Url;

use super::{BackendMode, Config, Problem, own_data};
use crate::bounded::address::is_metadata_host;
use crate::chat::input::OnBusy;
use crate::chat::message::ModelOrigin;
use crate::chat::model::Helper;
use crate::http::Brand;
use crate::http::auth::Mode;
use crate::http::server::Network;
use crate::llm::{self, ConnectError, UnknownModel, Vendor};
use crate::runs::log;
use crate::tools::backend::{ServiceConfig, ServiceMode};

/// 100 calls that wait are all that is counted; see [`crate::agent::ports::approvals::ApprovalStore::waiting_in`].
const MOST_APPROVALS: usize = 100;

/// 100 previews that wait are all that is listed; see [`crate::agent::ports::previews::PreviewClaims::waiting_previews`].
const MOST_PREVIEWS: usize = 100;

/// An hour: a run holds its conversation while it waits for decisions.
const MOST_DECISIONS_S: u64 = 3600;

/// Seconds of a lease: longer than a few beats, and short enough that a dead process is noticed while a client still
/// waits.
const LEASE_S: std::ops::RangeInclusive<u64> = 5..=300;

/// Bytes of a request's head: less than a token and what browsers send besides would refuse all users.
const LEAST_HEAD_BYTES: usize = 8192;

/// A billionth of a dollar, the smallest amount that is counted.
const LEAST_USD: f64 = 1e-9;

/// Events of a run: a turn begins and ends, says something, and the run ends.
const LEAST_EVENTS: u64 = 8;

/// The address of the demo backend, which has no fixed one.
pub(crate) const DEMO: &str = "demo";

/// Why there is no demo backend.
pub(crate) fn no_demo_backend() -> Problem {
    let reason =
        "is \"demo\", and this server is built without the feature demo: set it to \"http\", and backend.base_url";
    Problem::new("backend.mode", reason)
}

/// Notes every problem of `config`.
pub(super) fn check(config: &Config, problems: &mut Vec<Problem>) {
    server(config, problems);
    auth(config, problems);
    llm(config, problems);
    match config.backend.mode {
        BackendMode::Http => origin("backend.base_url", &config.backend.base_url, problems),
        BackendMode::Demo if cfg!(feature = "demo") => {}
        BackendMode::Demo => problems.push(no_demo_backend()),
    }
    backends(config, problems);
    signals(config, problems);
    web(config, problems);
    let mistakes = Brand::mistakes(&config.page).into_iter().chain(config.page.mistakes());
    problems.extend(mistakes.map(|(key, reason)| Problem::new(format!("page.{key}"), reason)));
    let mistakes = config.workspace.mistakes().into_iter();
    problems.extend(mistakes.map(|(key, reason)| Problem::new(format!("workspace.{key}"), reason)));
    own_data::check(config, problems);
    mcp(config, problems);
    embeddings(config, problems);
    if !["sqlite:", "postgres://", "postgresql://"].iter().any(|scheme| config.store.url.starts_with(scheme)) {
        problems.push(Problem::new("store.url", "must begin with sqlite: or postgres://"));
    }
    files(config, problems);
    if config.store.max_connections == 0 {
        problems.push(Problem::new("store.max_connections", "must be at least 1"));
    }
    if config.limits.approvals > MOST_APPROVALS {
        problems.push(Problem::new("limits.approvals", format!("must be at most {MOST_APPROVALS}")));
    }
    if config.limits.previews > MOST_PREVIEWS {
        problems.push(Problem::new("limits.previews", format!("must be at most {MOST_PREVIEWS}")));
    }
    runs(config, problems);
    config.metrics.check(problems);
    // Of port 0 each has another one.
    if config.metrics.bind == config.server.bind().0 && !config.metrics.bind.ends_with(":0") {
        problems.push(Problem::new("metrics.bind", "is the address of server.bind"));
    }
    config.telemetry.check(problems);
    limits(config, problems);
    if let Err(error) = config.log.level.parse::<tracing_subscriber::EnvFilter>() {
        problems.push(Problem::new("log.level", format!("is not a log filter: {error}")));
    }
}

fn backends(config: &Config, problems: &mut Vec<Problem>) {
    let of_service = |path: &str, service: &ServiceConfig| {
        let named = |(key, reason)| Problem::new(format!("{path}.service.{key}"), reason);
        service.mistakes().into_iter().map(named).collect::<Vec<_>>()
    };
    problems.extend(of_service("backend", &config.backend.service));
    if config.backend.cookie && config.auth.cookie.is_empty() {
        problems.push(Problem::new("backend.cookie", "is of use only with auth.cookie"));
    }
    for (name, backend) in &config.backends {
        let path = format!("backends.{name}");
        let mistakes = backend.mistakes().into_iter();
        problems.extend(mistakes.map(|(key, reason)| Problem::new(format!("{path}.{key}"), reason)));
        problems.extend(of_service(&path, &backend.service));
        match (config.backend.mode, backend.base_url.as_str()) {
            (BackendMode::Demo, DEMO) => {}
            (BackendMode::Http, DEMO) => {
                problems.push(Problem::new(format!("{path}.base_url"), "is of use only with backend.mode = \"demo\""));
            }
            (_, base_url) => origin(&format!("{path}.base_url"), base_url, problems),
        }
        if config.auth.may_share_tenants() {
            let reason = "must not name the tenant: with several issuers two tenants may have one name";
            problems.extend(backend.naming_tenant().map(|key| Problem::new(format!("{path}.{key}"), reason)));
            let named = backend.service.naming_tenant();
            problems.extend(named.map(|key| Problem::new(format!("{path}.service.{key}"), reason)));
        }
    }
    if config.auth.may_share_tenants() {
        let reason = "must not name the tenant: with several issuers two tenants may have one name";
        let named = config.backend.service.naming_tenant();
        problems.extend(named.map(|key| Problem::new(format!("backend.service.{key}"), reason)));
        let of_tenants = config.signals.subscribers.iter().filter(|(_, subscriber)| !subscriber.tenants.is_empty());
        problems
            .extend(of_tenants.map(|(name, _)| Problem::new(format!("signals.subscribers.{name}.tenants"), reason)));
        if config.backend.service.mode != ServiceMode::Off {
            let reason =
                "must be \"off\": with several issuers two tenants may have one name, by which the backend knows them";
            problems.push(Problem::new("backend.service.mode", reason));
        }
    }
}

fn signals(config: &Config, problems: &mut Vec<Problem>) {
    let mistakes = config.signals.mistakes().into_iter();
    problems.extend(mistakes.map(|(key, reason)| Problem::new(format!("signals.{key}"), reason)));
    if config.directives.workers == 0 {
        problems.push(Problem::new("directives.workers", "must be at least 1"));
    }
    if config.directives.poll_ms == 0 {
        problems.push(Problem::new("directives.poll_ms", "must be at least 1"));
    }
}

fn files(config: &Config, problems: &mut Vec<Problem>) {
    let files = &config.files;
    problems.extend(files.mistakes().into_iter().map(|(key, reason)| Problem::new(format!("files.{key}"), reason)));
    if files.is_s3() {
        if !files.s3.endpoint.is_empty() {
            origin("files.s3.endpoint", &files.s3.endpoint, problems);
        }
        problems.extend(files.aws.mistake().map(|(name, reason)| Problem::new(name, reason)));
    }
}

fn web(config: &Config, problems: &mut Vec<Problem>) {
    let mistakes = config.web.mistakes().into_iter();
    problems.extend(mistakes.map(|(key, reason)| Problem::new(format!("web.{key}"), reason)));
}

fn mcp(config: &Config, problems: &mut Vec<Problem>) {
    for (name, server) in &config.mcp {
        let path = format!("mcp.{name}");
        let mistakes = server.mistakes().into_iter();
        problems.extend(mistakes.map(|(key, reason)| Problem::new(format!("{path}.{key}"), reason)));
        if !server.url.expose().is_empty() {
            origin(&format!("{path}.url"), server.url.expose(), problems);
        }
        if server.backend.is_empty() {
            continue;
        }
        match config.backends.get(&server.backend) {
            Some(backend) => {
                let mistakes = server.mistakes_with(backend).into_iter();
                problems.extend(mistakes.map(|(key, reason)| Problem::new(format!("{path}.{key}"), reason)));
            }
            None => {
                let reason = format!("{:?} is no section of [backends]", server.backend);
                problems.push(Problem::new(format!("{path}.backend"), reason));
            }
        }
    }
}

fn embeddings(config: &Config, problems: &mut Vec<Problem>) {
    let embeddings = &config.embeddings;
    if !embeddings.is_on() {
        if !embeddings.model.trim().is_empty() || !embeddings.api_key.expose_secret().is_empty() {
            problems.push(Problem::new("embeddings.base_url", "is required when there is a model or a key"));
        }
        return;
    }
    origin("embeddings.base_url", &embeddings.base_url, problems);
    if embeddings.model.trim().is_empty() {
        problems.push(Problem::new("embeddings.model", "is required"));
    }
    if !(1..=60).contains(&embeddings.timeout_s) {
        problems.push(Problem::new("embeddings.timeout_s", "must be 1 to 60"));
    }
    match llm::embeddings::Embeddings::connect(embeddings) {
        Err(ConnectError::Header { key, .. }) => {
            let reason = "has characters that no http header can carry";
            problems.push(Problem::new(format!("embeddings.{key}"), reason));
        }
        // The address has been looked at above; the others are no mistakes of this section.
        Err(
            ConnectError::BaseUrl { .. }
            | ConnectError::Provider { .. }
            | ConnectError::Extra { .. }
            | ConnectError::Client(_),
        )
        | Ok(_) => {}
    }
}

fn runs(config: &Config, problems: &mut Vec<Problem>) {
    let (runs, events) = (&config.runs, &config.events);
    if OnBusy::parse(&runs.on_busy).is_none() {
        let policies = OnBusy::ALL.map(OnBusy::name).join(", ");
        problems.push(Problem::new("runs.on_busy", format!("must be one of: {policies}")));
    }
    if runs.decisions_s > MOST_DECISIONS_S {
        problems.push(Problem::new("runs.decisions_s", format!("must be at most {MOST_DECISIONS_S}")));
    }
    if runs.approval_s == 0 {
        problems.push(Problem::new("runs.approval_s", "must be at least 1"));
    }
    if runs.preview_s == 0 {
        problems.push(Problem::new("runs.preview_s", "must be at least 1"));
    }
    if !LEASE_S.contains(&runs.lease_s) {
        let reason = format!("must be {} to {}", LEASE_S.start(), LEASE_S.end());
        problems.push(Problem::new("runs.lease_s", reason));
    }
    for (key, name) in config.helper_names() {
        helper(config, key, name, problems);
    }
    plans(config, problems);
    // The url may hold a password, so it is not repeated.
    if events.url != "local" && !log::is_shared(&events.url) {
        problems.push(Problem::new("events.url", "must be \"local\" or begin with redis:// or rediss://"));
    } else if let Some(mistake) = Some(&events.url).filter(|url| *url != "local").and_then(|url| log::mistake(url)) {
        problems.push(Problem::new("events.url", format!("cannot be understood: {mistake}")));
    }
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':' | b'.' | b'{' | b'}');
    if events.prefix.is_empty() || events.prefix.len() > 64 || !events.prefix.bytes().all(is_plain) {
        problems.push(Problem::new("events.prefix", "must be 1 to 64 of A-Z a-z 0-9 _ - : . { }"));
    }
}

fn limits(config: &Config, problems: &mut Vec<Problem>) {
    let limits = &config.limits;
    if limits.starts_per_minute != 0 && limits.starts_burst == 0 {
        problems.push(Problem::new("limits.starts_burst", "must be at least 1 with limits.starts_per_minute"));
    }
    if limits.run_events != 0 && limits.run_events < LEAST_EVENTS {
        problems.push(Problem::new("limits.run_events", format!("must be 0 or at least {LEAST_EVENTS}")));
    }
    let usd = limits.usd_per_tenant_month;
    if !usd.is_finite() || usd < 0.0 || (usd > 0.0 && usd < LEAST_USD) {
        problems.push(Problem::new("limits.usd_per_tenant_month", "must be 0 or a number from 0.000000001"));
    }
    if !(1..=86_400).contains(&config.server.idle_timeout_s) {
        problems.push(Problem::new("server.idle_timeout_s", "must be 1 to 86400"));
    }
    let head = config.server.head_bytes;
    if head != 0 && head < LEAST_HEAD_BYTES {
        problems.push(Problem::new("server.head_bytes", format!("must be 0 or at least {LEAST_HEAD_BYTES}")));
    }
}

/// The model that does the job of the setting `key`, which says `name`; an unknown model is noted.
pub(super) fn helper(config: &Config, key: &str, name: &str, problems: &mut Vec<Problem>) -> Helper {
    let origin = match name.trim() {
        "" => return Helper::SameModel,
        "off" => return Helper::Off,
        name => config.llm.model_or_demo(name),
    };
    match origin {
        Ok(origin) => {
            let mut wrong = Vec::new();
            provider(&origin.provider, &config.llm, &mut wrong);
            // It may be a provider that answers too, of which all is known already.
            wrong.retain(|problem| !problems.contains(problem));
            problems.append(&mut wrong);
            Helper::Model(origin)
        }
        Err(error) => {
            problems.push(Problem::new(key, error.to_string()));
            Helper::Off
        }
    }
}

fn plans(config: &Config, problems: &mut Vec<Problem>) {
    let plans = &config.plans;
    for (key, value) in [("parallel", plans.parallel), ("max_steps", plans.max_steps)] {
        if value == 0 {
            problems.push(Problem::new(format!("plans.{key}"), "must be at least 1"));
        }
    }
    if !["hold", "approve"].contains(&plans.on_reviewer_failure.as_str()) {
        problems.push(Problem::new("plans.on_reviewer_failure", "must be one of: hold, approve"));
    }
}

fn server(config: &Config, problems: &mut Vec<Problem>) {
    let addresses: Vec<SocketAddr> = match config.server.bind().0.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            problems.push(Problem::new("server.bind", format!("is not an address with a port: {error}")));
            return;
        }
    };
    if config.auth.mode == Mode::Dev && !addresses.iter().all(|address| address.ip().is_loopback()) {
        let reason = "auth.mode is \"dev\", which hands out tokens and therefore only listens on loopback; \
                      set auth.mode or bind to 127.0.0.1";
        problems.push(Problem::new("server.bind", reason));
    }
    if !config.server.public_url.is_empty() {
        origin("server.public_url", &config.server.public_url, problems);
    }
    for network in config.server.trusted_proxies.iter().filter(|text| Network::parse(text).is_none()) {
        let reason = format!("{network:?} is not an address or a network such as \"10.0.0.0/8\"");
        problems.push(Problem::new("server.trusted_proxies", reason));
    }
    for wanted in &config.server.cors_allowed_origins {
        let is_origin = Url::parse(wanted).is_ok_and(|url| url.origin().ascii_serialization() == *wanted);
        if wanted != "*" && !is_origin {
            let reason = format!("{wanted:?} is not an origin such as \"https://app.example.com\"");
            problems.push(Problem::new("server.cors_allowed_origins", reason));
        }
    }
}

fn auth(config: &Config, problems: &mut Vec<Problem>) {
    if !config.workspace.user.is_empty() && !matches!(config.auth.mode, Mode::Dev | Mode::Hs256) {
        let reason = "needs auth.mode dev or hs256: this server makes the local user's tokens itself";
        problems.push(Problem::new("workspace.user", reason));
    }
    let mistakes = config.auth.mistakes().into_iter();
    problems.extend(mistakes.map(|(key, reason)| Problem::new(format!("auth.{key}"), reason)));
    if !config.page.oidc_issuer.is_empty() && config.auth.mode == Mode::Dev {
        let reason = "needs another auth.mode than dev, which takes no tokens of others";
        problems.push(Problem::new("page.oidc_issuer", reason));
    }
}

fn llm(config: &Config, problems: &mut Vec<Problem>) {
    let llm = &config.llm;
    for name in llm.providers.keys() {
        if Vendor::parse(name).is_some()
            || matches!(name.as_str(), "auto" | llm::DEMO | llm::NO_MODEL)
            || !is_provider_name(name)
        {
            let reason = "a provider's name has a-z 0-9 _ - and is none of the built-in ones";
            problems.push(Problem::new(format!("llm.providers.{name}"), reason));
        }
    }
    problems.extend(llm.no_model_reason().map(|reason| Problem::new("llm.provider", reason)));
    if llm.retry.attempts == 0 {
        problems.push(Problem::new("llm.retry.attempts", "must be at least 1"));
    }
    if llm.retry.budget_percent > 100 {
        problems.push(Problem::new("llm.retry.budget_percent", "must be at most 100"));
    }
    if llm.default_provider().is_none() && !llm.fallbacks.is_empty() {
        problems.push(Problem::new("llm.fallbacks", "needs a provider before it; the demo model never fails"));
    }
    configured_models(llm, problems);
    // By name: what is wrong with a section is found even when it has no model.
    let names = llm.default_provider().into_iter().chain(llm.fallbacks.iter().map(String::as_str));
    let mut providers: Vec<&str> = names.filter_map(|name| name.split(':').next()).map(str::trim).collect();
    providers.sort_unstable();
    providers.dedup();
    for name in providers {
        provider(name, llm, problems);
    }
}

/// `[llm] provider` and its fallbacks, in order of trying, each once; what is no model is noted. Empty when the demo
/// model answers.
pub(super) fn configured_models(llm: &llm::LlmConfig, problems: &mut Vec<Problem>) -> Vec<ModelOrigin> {
    let Some(provider) = llm.default_provider() else { return Vec::new() };
    let mut models = Vec::new();
    match llm.model(provider) {
        Ok(model) => models.push(model),
        Err(error @ (UnknownModel::Provider(..) | UnknownModel::NoDemo)) => {
            problems.push(Problem::new("llm.provider", error.to_string()))
        }
        Err(error @ UnknownModel::Model(_)) if provider.contains(':') => {
            problems.push(Problem::new("llm.provider", error.to_string()));
        }
        Err(UnknownModel::Model(_)) => {
            problems.push(Problem::new(format!("{}.model", llm::LlmConfig::section_path(provider)), "is required"));
        }
    }
    for name in &llm.fallbacks {
        match llm.model(name) {
            Ok(model) if models.contains(&model) => {}
            Ok(model) => models.push(model),
            Err(error) => problems.push(Problem::new("llm.fallbacks", error.to_string())),
        }
    }
    models
}

fn is_provider_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    !name.is_empty() && name.bytes().all(allowed)
}

/// The mistakes in the section of a provider that may be called.
pub(super) fn provider(name: &str, llm: &llm::LlmConfig, problems: &mut Vec<Problem>) {
    let Some(section) = llm.section(name) else { return };
    let path = llm::LlmConfig::section_path(name);
    let vendor = section.vendor();
    // A query before the path is appended is how Azure names its API version.
    let base_url = match vendor.is_spoken_by_others() {
        true => section.common.base_url.split('?').next().unwrap_or_default(),
        false => &section.common.base_url,
    };
    match base_url.trim() {
        "" => problems.push(Problem::new(format!("{path}.base_url"), "is required")),
        base_url => origin(&format!("{path}.base_url"), base_url, problems),
    }
    if section.lacks_key() {
        problems.push(Problem::new(format!("{path}.api_key"), "is required"));
    }
    let any = ModelOrigin { provider: name.to_owned(), model: "any".to_owned() };
    match llm::connect(&any, llm) {
        Err(ConnectError::Header { key, .. }) => {
            let reason = "has characters that no http header can carry";
            problems.push(Problem::new(format!("{path}.{key}"), reason));
        }
        Err(ConnectError::Extra { key, reason, .. }) => problems.push(Problem::new(format!("{path}.{key}"), reason)),
        // The first has been found above; the others are no mistakes of this section.
        Err(ConnectError::BaseUrl { .. } | ConnectError::Provider { .. } | ConnectError::Client(_)) | Ok(_) => {}
    }
}

fn origin(key: &str, text: &str, problems: &mut Vec<Problem>) {
    let reason = match Url::parse(text) {
        Err(_) => "is not a URL",
        Ok(url) if !matches!(url.scheme(), "http" | "https") => "must begin with http:// or https://",
        Ok(url) if !url.username().is_empty() || url.password().is_some() => "must not hold a user or password",
        Ok(url) if url.query().is_some() || url.fragment().is_some() => "must not have a query or fragment",
        // Where clouds tell their machines' secrets.
        Ok(url) if is_metadata_host(&url) => "is a link-local address, where there is no such server",
        Ok(_) => return,
    };
    problems.push(Problem::new(key, reason));
}
