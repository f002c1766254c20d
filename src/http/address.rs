//! The address of this server, as whoever asks it reaches it.

use axum::http::{HeaderMap, header};

use super::Services;

/// Where people reach this server: as the settings say, else as the request does.
pub(super) fn base(services: &Services, headers: &HeaderMap) -> String {
    let public = &services.dialects.public_url;
    if !public.is_empty() {
        return public.to_string();
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    let host = host.filter(|host| !host.is_empty() && host.chars().all(is_plain));
    format!("http://{}", host.unwrap_or("localhost"))
}
