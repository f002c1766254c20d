//! The usual variables of OpenTelemetry, which fill what our own settings of `[telemetry]` leave empty. Platforms set them for
//! all that runs on them: one that cannot be used is a warning and no mistake of the settings, and there are no traces then.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use toml::{Table, Value};

use super::fitting::{PREFIX, find, lookup};
use super::observability::{LOGS_PATH, TRACES_PATH, below, headers, wrong_address};

/// The variables' texts; an empty one says nothing.
struct Variables<'a>(&'a BTreeMap<String, String>);

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
    }

    /// What one of the export says for a signal, else for all of them, with its name.
    fn of_export(&self, signal: &str, what: &str) -> Option<(String, &str)> {
        let names = [format!("OTEL_EXPORTER_OTLP_{signal}_{what}"), format!("OTEL_EXPORTER_OTLP_{what}")];
        names.into_iter().find_map(|name| Some((name.clone(), self.get(&name)?)))
    }

    /// The address for a signal, which its own variable has as it is, and the one for all of them without its `path`.
    fn address(&self, signal: &str, path: &str) -> Option<Result<String, String>> {
        let (name, address) = self.of_export(signal, "ENDPOINT")?;
        if let Some((protocol, "grpc")) = self.of_export(signal, "PROTOCOL") {
            return Some(Err(format!("{protocol} is grpc, which is not spoken here: http/protobuf is")));
        }
        let is_whole = name.contains(signal);
        Some(match wrong_address(address, is_whole) {
            Some(reason) => Err(format!("{name} {reason}")),
            None if is_whole => Ok(address.to_owned()),
            None => Ok(below(address, path)),
        })
    }

    /// The service's name.
    fn service(&self) -> Option<String> {
        let of_attributes = || {
            let mut pairs = self.get("OTEL_RESOURCE_ATTRIBUTES")?.split(',').filter_map(|pair| pair.split_once('='));
            let (_, name) = pairs.find(|(key, _)| key.trim() == "service.name")?;
            Some(percent_decode_str(name.trim()).decode_utf8_lossy().into_owned())
        };
        self.get("OTEL_SERVICE_NAME").map(str::to_owned).or_else(of_attributes)
    }

    /// Whether a setting of `[telemetry]` is ours to say: a file has it, or a variable of ours, even to say nothing.
    fn are_behind(&self, key: &str, merged: &Table) -> bool {
        let is_it =
            |name: &String| name.to_lowercase().starts_with(&format!("{PREFIX}telemetry__{key}").to_lowercase());
        lookup(merged, &["telemetry", key]).and_then(Value::as_str) != Some("") || self.0.keys().any(is_it)
    }
}

/// What the variables say that no setting of ours has a place for.
#[derive(Default)]
pub(super) struct Besides {
    /// Which variables cannot be used, and why, in words for the operator.
    pub(super) unusable: Vec<String>,
    /// Headers for lines of the audit record, where they are others than those for traces.
    pub(super) logs_headers: Option<SecretString>,
}

/// Fills what is empty in `merged`.
pub(super) fn fill(merged: &mut Table, env: &BTreeMap<String, String>) -> Besides {
    let (variables, mut besides) = (Variables(env), Besides::default());
    let (mut no_traces, mut unused) = (Vec::new(), Vec::new());
    let mut filled = vec![("service_name", variables.service())];
    if !variables.are_behind("otlp_headers", merged) {
        let of = |signal, wrong: &mut Vec<String>| match variables.of_export(signal, "HEADERS") {
            Some((name, text)) => match headers(text) {
                Ok(_) => Some(text.to_owned()),
                Err(reason) => {
                    wrong.push(format!("{name} {reason}"));
                    None
                }
            },
            None => None,
        };
        let (traces, logs) = (of("TRACES", &mut no_traces), of("LOGS", &mut unused));
        // A key of the one vendor is none of the other's business.
        besides.logs_headers = (logs != traces).then(|| logs.unwrap_or_default().into());
        filled.push(("otlp_headers", traces));
    }
    let addresses = ["otlp_endpoint", "otlp_traces_endpoint", "otlp_logs_endpoint"];
    let are_ours = addresses.iter().any(|key| variables.are_behind(key, merged));
    if !are_ours {
        let is_off = variables.get("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"))
            || variables.get("OTEL_TRACES_EXPORTER") == Some("none");
        match variables.address("TRACES", TRACES_PATH).filter(|_| !is_off) {
            Some(Err(wrong)) => no_traces.push(wrong),
            Some(Ok(address)) if no_traces.is_empty() => filled.push(("otlp_traces_endpoint", Some(address))),
            Some(Ok(_)) | None => {}
        }
        match variables.address("LOGS", LOGS_PATH) {
            Some(Err(wrong)) => unused.push(wrong),
            Some(Ok(address)) => filled.push(("otlp_logs_endpoint", Some(address))),
            None => {}
        }
    }
    for (key, text) in filled {
        let slot = find(merged, &["telemetry", key]).filter(|slot| slot.as_str() == Some(""));
        if let (Some(slot), Some(text)) = (slot, text) {
            *slot = Value::String(text);
        }
    }
    unused.retain(|wrong| !no_traces.contains(wrong));
    let so = if are_ours { "it is not used" } else { "it is not used, and there are no traces" };
    let no_traces = no_traces.into_iter().map(|wrong| format!("{wrong}; {so}"));
    besides.unusable = no_traces.chain(unused.into_iter().map(|wrong| format!("{wrong}; it is not used"))).collect();
    besides
}
