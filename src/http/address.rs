//! The address of this server, as whoever asks it reaches it.

use std::sync::Arc;

use axum::http::{HeaderMap, header};

use super::Services;

/// Where people reach this server: as the settings say, else as the request does.
pub(super) fn base(services: &Services, headers: &HeaderMap) -> String {
    let public = &services.dialects.public_url;
    if !public.is_empty() {
        return public.to_string();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    let host = host(headers).filter(|host| !host.is_empty() && host.chars().all(is_plain));
    format!("http://{}", host.unwrap_or("localhost"))
}

/// The same for links that people follow, empty where it is not known: behind a proxy a request does not say where it came to.
pub(super) fn for_people(services: &Services, headers: &HeaderMap) -> Arc<str> {
    match is_of_this_machine(headers) {
        true => base(services, headers).into(),
        false => Arc::clone(&services.dialects.public_url),
    }
}

/// Whether a request names this machine by a name that every machine has.
pub(super) fn is_of_this_machine(headers: &HeaderMap) -> bool {
    host(headers).is_some_and(|host| {
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        let name = name.map_or(host, |(name, _)| name);
        ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
    })
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST).and_then(|host| host.to_str().ok())
}
