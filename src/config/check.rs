//! What types cannot say: settings that contradict each other, or that this version cannot do.

use std::net::{SocketAddr, ToSocketAddrs};

use secrecy::ExposeSecret;
use url::Url;

use super::{BackendMode, Config, Problem};
use crate::http::auth::Mode;
use crate::llm::{self, ConnectError, Vendor};

/// An hour: clocks that differ by more are broken, and a token must end some time.
const MAX_LEEWAY_S: u64 = 3600;

/// Notes every problem of `config`.
pub(super) fn check(config: &Config, problems: &mut Vec<Problem>) {
    server(config, problems);
    auth(config, problems);
    llm(config, problems);
    if config.backend.mode == BackendMode::Http {
        origin("backend.base_url", &config.backend.base_url, problems);
    }
    if !config.store.url.starts_with("sqlite:") {
        problems.push(Problem::new("store.url", "must begin with sqlite:; other databases are not available yet"));
    }
    if config.events.url != "local" {
        problems.push(Problem::new("events.url", "must be \"local\"; other event logs are not available yet"));
    }
    if let Err(error) = config.log.level.parse::<tracing_subscriber::EnvFilter>() {
        problems.push(Problem::new("log.level", format!("is not a log filter: {error}")));
    }
}

fn server(config: &Config, problems: &mut Vec<Problem>) {
    let addresses: Vec<SocketAddr> = match config.server.bind.to_socket_addrs() {
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
    for wanted in &config.server.cors_allowed_origins {
        let is_origin = Url::parse(wanted).is_ok_and(|url| url.origin().ascii_serialization() == *wanted);
        if wanted != "*" && !is_origin {
            let reason = format!("{wanted:?} is not an origin such as \"https://app.example.com\"");
            problems.push(Problem::new("server.cors_allowed_origins", reason));
        }
    }
}

fn auth(config: &Config, problems: &mut Vec<Problem>) {
    let auth = &config.auth;
    if auth.leeway_s > MAX_LEEWAY_S {
        problems.push(Problem::new("auth.leeway_s", format!("must be at most {MAX_LEEWAY_S}")));
    }
    match auth.mode {
        Mode::Dev => {}
        Mode::Hs256 => {
            if auth.hs256_secret.expose_secret().len() < 32 {
                problems.push(Problem::new("auth.hs256_secret", "must have at least 32 bytes"));
            }
        }
        Mode::Rs256 => match auth.rs256_public_key_file.as_str() {
            "" => problems.push(Problem::new("auth.rs256_public_key_file", "is required with auth.mode \"rs256\"")),
            _ => {
                if let Err(error) = crate::http::auth::build(auth) {
                    problems.push(Problem::new("auth.rs256_public_key_file", error.to_string()));
                }
            }
        },
        Mode::Jwks => problems.push(Problem::new("auth.mode", "\"jwks\" is not available yet")),
    }
}

fn llm(config: &Config, problems: &mut Vec<Problem>) {
    let llm = &config.llm;
    if Vendor::parse(&llm.provider).is_none() && !matches!(llm.provider.as_str(), "auto" | "demo") {
        let reason = "must be one of auto, gemini, claude, ollama, openai, demo";
        problems.push(Problem::new("llm.provider", reason));
    }
    if !llm.fallbacks.is_empty() {
        problems.push(Problem::new("llm.fallbacks", "is not available yet; leave it empty"));
    }
    if llm.max_tokens == 0 {
        problems.push(Problem::new("llm.max_tokens", "must be at least 1"));
    }
    let Some(vendor) = llm.vendor() else { return };
    let (section, name) = (llm.section(vendor), vendor.name());
    // A query before the path is appended is how Azure names its API version.
    let base_url = match vendor {
        Vendor::OpenAi => section.base_url.split('?').next().unwrap_or_default(),
        Vendor::Gemini | Vendor::Claude | Vendor::Ollama => section.base_url,
    };
    origin(&format!("llm.{name}.base_url"), base_url, problems);
    if section.model.trim().is_empty() {
        problems.push(Problem::new(format!("llm.{name}.model"), "is required"));
    }
    if vendor.needs_key() && !section.has_key {
        let reason = format!("is required with llm.provider \"{name}\"");
        problems.push(Problem::new(format!("llm.{name}.api_key"), reason));
    }
    match llm::connect(vendor, llm) {
        Err(ConnectError::Header { key, .. }) => {
            let reason = "has characters that no http header can carry";
            problems.push(Problem::new(format!("llm.{name}.{key}"), reason));
        }
        // The first two have been found above; the last is no mistake of the settings.
        Err(ConnectError::BaseUrl { .. } | ConnectError::Model { .. } | ConnectError::Client(_)) | Ok(_) => {}
    }
}

fn origin(key: &str, text: &str, problems: &mut Vec<Problem>) {
    let reason = match Url::parse(text) {
        Err(_) => "is not a URL",
        Ok(url) if !matches!(url.scheme(), "http" | "https") => "must begin with http:// or https://",
        Ok(url) if !url.username().is_empty() || url.password().is_some() => "must not hold a user or password",
        Ok(url) if url.query().is_some() || url.fragment().is_some() => "must not have a query or fragment",
        Ok(_) => return,
    };
    problems.push(Problem::new(key, reason));
}
