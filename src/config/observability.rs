//! `[metrics]` and `[telemetry]`: what others may see of the running server.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use super::Problem;

/// The default name of the service.
const SERVICE_NAME: &str = "switchboard";

/// The path of a collector for spans, below its address.
const TRACES_PATH: &str = "/v1/traces";

/// `[metrics]`: a page for Prometheus. Both off by default: what is on the product's own port, its proxy may show to the
/// world.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// An address and port of its own, e.g. `127.0.0.1:9090`; empty for none.
    pub bind: String,
    /// Whether `/metrics` is on the product's own port too.
    pub path: bool,
}

impl Metrics {
    /// Whether anything is measured.
    pub fn is_on(&self) -> bool {
        self.path || !self.bind.is_empty()
    }
}

/// Its path for lines of the audit record.
const LOGS_PATH: &str = "/v1/logs";

/// `[telemetry]`: traces, and the audit record, over OTLP.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// The collector, e.g. `http://localhost:4318`; empty turns traces off.
    pub otlp_endpoint: String,
    /// Headers for it, `name=value,name=value`, values percent-encoded as `OTEL_EXPORTER_OTLP_HEADERS` has them.
    pub otlp_headers: SecretString,
    /// What the service is called in traces.
    pub service_name: String,
    /// How many of all traces are kept, from 0 to 1.
    pub sample_ratio: f64,
    /// Whether the audit record goes there too.
    pub audit: bool,
}

impl Telemetry {
    /// Whether spans are exported.
    pub fn is_on(&self) -> bool {
        !self.otlp_endpoint.trim().is_empty()
    }

    /// What the service is called.
    pub fn service_name(&self) -> &str {
        match self.service_name.trim() {
            "" => SERVICE_NAME,
            name => name,
        }
    }

    /// The address for spans: the collector's address with OTLP's path, unless it has it already.
    pub fn traces_url(&self) -> String {
        let base = self.otlp_endpoint.trim().trim_end_matches('/');
        if base.ends_with(TRACES_PATH) { base.to_owned() } else { format!("{base}{TRACES_PATH}") }
    }

    /// The address for lines of the audit record.
    pub fn logs_url(&self) -> String {
        let base = self.otlp_endpoint.trim().trim_end_matches('/');
        format!("{}{LOGS_PATH}", base.strip_suffix(TRACES_PATH).unwrap_or(base))
    }

    /// The headers, or what is wrong with them; never their values.
    ///
    /// # Errors
    /// When one is no `name=value`.
    pub fn headers(&self) -> Result<HashMap<String, String>, &'static str> {
        let pairs = self.otlp_headers.expose_secret().split(',').map(str::trim).filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').ok_or("must be name=value,name=value")?;
                let (name, value) = (name.trim(), value.trim());
                let decoded = percent_decode_str(value).decode_utf8_lossy();
                let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
                let is_good = !name.is_empty() && name.bytes().all(is_name);
                match is_good && decoded.bytes().all(|b| (0x20..0x7f).contains(&b)) {
                    true => Ok((name.to_lowercase(), decoded.into_owned())),
                    false => Err("has characters that no http header can carry"),
                }
            })
            .collect()
    }

    pub(super) fn check(&self, problems: &mut Vec<Problem>) {
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            problems.push(Problem::new("telemetry.sample_ratio", "must be from 0 to 1"));
        }
        if let Err(reason) = self.headers() {
            problems.push(Problem::new("telemetry.otlp_headers", reason));
        }
        if !self.is_on() {
            if self.audit {
                problems.push(Problem::new("telemetry.audit", "needs telemetry.otlp_endpoint"));
            }
            return;
        }
        // Not repeated: some put a key into it.
        let reason = match Url::parse(self.otlp_endpoint.trim()) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => "must begin with http:// or https://",
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                "must not hold a user or password; use telemetry.otlp_headers"
            }
            Ok(url) if url.query().is_some() || url.fragment().is_some() => "must not have a query or fragment",
            Ok(_) => return,
            Err(_) => "is not a URL",
        };
        problems.push(Problem::new("telemetry.otlp_endpoint", reason));
    }
}

impl Metrics {
    pub(super) fn check(&self, problems: &mut Vec<Problem>) {
        use std::net::ToSocketAddrs;
        if let Some(Err(error)) = (!self.bind.is_empty()).then(|| self.bind.to_socket_addrs()) {
            problems.push(Problem::new("metrics.bind", format!("is not an address with a port: {error}")));
        }
    }
}
