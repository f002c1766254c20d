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
pub(super) const TRACES_PATH: &str = "/v1/traces";

/// Its path for lines of the audit record.
pub(super) const LOGS_PATH: &str = "/v1/logs";

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

/// `[telemetry]`: traces, and the audit record, over OTLP.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// The collector, e.g. `http://localhost:4318`; empty, with the next one, turns traces off.
    pub otlp_endpoint: String,
    /// The address for traces, as it is; empty is the collector's, with OTLP's path.
    pub otlp_traces_endpoint: String,
    /// The same for lines of the audit record.
    pub otlp_logs_endpoint: String,
    /// Headers for it, `name=value,name=value`, values percent-encoded as `OTEL_EXPORTER_OTLP_HEADERS` has them.
    pub otlp_headers: SecretString,
    /// What the service is called in traces.
    pub service_name: String,
    /// How many of all traces are kept, from 0 to 1.
    pub sample_ratio: f64,
    /// Whether the audit record goes there too.
    pub audit: bool,
    /// Which of OpenTelemetry's variables cannot be used, and why.
    #[serde(skip)]
    pub unusable: Vec<String>,
    /// Headers for lines of the audit record, where OpenTelemetry's variables have others for them.
    #[serde(skip)]
    pub logs_headers: Option<SecretString>,
}

impl Telemetry {
    /// Whether spans are exported.
    pub fn is_on(&self) -> bool {
        self.traces_url().is_some()
    }

    /// What the service is called.
    pub fn service_name(&self) -> &str {
        match self.service_name.trim() {
            "" => SERVICE_NAME,
            name => name,
        }
    }

    /// The address for spans.
    pub fn traces_url(&self) -> Option<String> {
        address(&self.otlp_traces_endpoint, &self.otlp_endpoint, TRACES_PATH)
    }

    /// The address for lines of the audit record.
    pub fn logs_url(&self) -> Option<String> {
        address(&self.otlp_logs_endpoint, &self.otlp_endpoint, LOGS_PATH)
    }

    /// The headers, or what is wrong with them; never their values.
    ///
    /// # Errors
    /// When one is no `name=value`.
    pub fn headers(&self) -> Result<HashMap<String, String>, &'static str> {
        headers(self.otlp_headers.expose_secret())
    }

    /// The headers for lines of the audit record.
    ///
    /// # Errors
    /// When one is no `name=value`.
    pub fn headers_of_logs(&self) -> Result<HashMap<String, String>, &'static str> {
        headers(self.logs_headers.as_ref().unwrap_or(&self.otlp_headers).expose_secret())
    }

    pub(super) fn check(&self, problems: &mut Vec<Problem>) {
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            problems.push(Problem::new("telemetry.sample_ratio", "must be from 0 to 1"));
        }
        if let Err(reason) = self.headers() {
            problems.push(Problem::new("telemetry.otlp_headers", reason));
        }
        if self.audit && self.logs_url().is_none() {
            let needs = ["needs telemetry.otlp_endpoint or telemetry.otlp_logs_endpoint".to_owned()];
            // Somebody has set one, which cannot be used.
            let why: Vec<String> = needs.into_iter().chain(self.unusable.iter().cloned()).collect();
            problems.push(Problem::new("telemetry.audit", why.join("; ")));
        }
        let addresses = [
            ("telemetry.otlp_endpoint", &self.otlp_endpoint),
            ("telemetry.otlp_traces_endpoint", &self.otlp_traces_endpoint),
            ("telemetry.otlp_logs_endpoint", &self.otlp_logs_endpoint),
        ];
        for (key, address) in addresses.into_iter().filter(|(_, address)| !address.trim().is_empty()) {
            if let Some(reason) = wrong_address(address.trim(), key != "telemetry.otlp_endpoint") {
                problems.push(Problem::new(key, reason));
            }
        }
    }
}

/// An address of its own as it is, else the one below the collector's.
fn address(own: &str, collector: &str, path: &str) -> Option<String> {
    match (own.trim(), collector.trim()) {
        ("", "") => None,
        ("", collector) => Some(below(collector, path)),
        (own, _) => Some(own.to_owned()),
    }
}

/// The collector's address with one of OTLP's paths; some have written that of traces behind it.
pub(super) fn below(collector: &str, path: &str) -> String {
    let base = collector.trim_end_matches('/');
    format!("{}{path}", base.strip_suffix(TRACES_PATH).unwrap_or(base))
}

/// What is wrong with an address; one that is not whole gets a path. It is not repeated: some put a key into it.
pub(super) fn wrong_address(address: &str, is_whole: bool) -> Option<&'static str> {
    match Url::parse(address) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => Some("must begin with http:// or https://"),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Some("must not hold a user or password; use telemetry.otlp_headers")
        }
        Ok(url) if !is_whole && url.query().is_some() || url.fragment().is_some() => {
            Some("must not have a query or fragment")
        }
        Ok(_) => None,
        Err(_) => Some("is not a URL"),
    }
}

/// The headers of a text, or what is wrong with it.
pub(super) fn headers(text: &str) -> Result<HashMap<String, String>, &'static str> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
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

impl Metrics {
    pub(super) fn check(&self, problems: &mut Vec<Problem>) {
        use std::net::ToSocketAddrs;
        if let Some(Err(error)) = (!self.bind.is_empty()).then(|| self.bind.to_socket_addrs()) {
            problems.push(Problem::new("metrics.bind", format!("is not an address with a port: {error}")));
        }
    }
}
