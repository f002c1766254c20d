//! Settings of metrics and traces: what the usual variables mean, and mistakes.

use secrecy::ExposeSecret;
use switchboard::config::{Config, Sources};

fn load(variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let env = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let sources = Sources { env, ..Sources::default() };
    Config::load(&sources).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn the_usual_variables_of_opentelemetry_are_honoured_and_ours_come_first() {
    let usual = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k"),
        ("OTEL_SERVICE_NAME", "theirs"),
    ];
    let of = |config: Config| {
        let telemetry = config.telemetry;
        let headers = telemetry.otlp_headers.expose_secret().to_owned();
        (telemetry.traces_url(), headers, telemetry.service_name().to_owned())
    };
    let expected = |url: &str, name: &str| (url.to_owned(), "api-key=k".to_owned(), name.to_owned());
    assert_eq!(of(load(&usual).unwrap()), expected("http://collector:4318/v1/traces", "theirs"));
    let signal = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:1/v1/traces");
    let ours = ("SWITCHBOARD__TELEMETRY__SERVICE_NAME", "ours");
    let all = [usual.as_slice(), &[signal, ours]].concat();
    assert_eq!(of(load(&all).unwrap()), expected("http://traces:1/v1/traces", "ours"));
    let nothing = load(&[]).unwrap();
    assert!(!nothing.telemetry.is_on() && !nothing.metrics.is_on(), "both are off unless somebody says so");
    assert_eq!(nothing.telemetry.service_name(), "switchboard");
}

#[test]
fn mistakes_are_told_without_repeating_what_may_be_secret() {
    let rows = [
        ("TELEMETRY__SAMPLE_RATIO", "1.5", "telemetry.sample_ratio: must be from 0 to 1", "a share is at most all"),
        ("TELEMETRY__SAMPLE_RATIO", "NaN", "telemetry.sample_ratio: must be from 0 to 1", "and a number"),
        (
            "TELEMETRY__OTLP_ENDPOINT",
            "collector:4318",
            "telemetry.otlp_endpoint: must begin with http:// or https://",
            "",
        ),
        (
            "TELEMETRY__OTLP_ENDPOINT",
            "http://me:secret@collector",
            "telemetry.otlp_endpoint: must not hold a user or password; use telemetry.otlp_headers",
            "the log would have it",
        ),
        ("TELEMETRY__OTLP_HEADERS", "secret", "telemetry.otlp_headers: must be name=value,name=value", "no name"),
        (
            "TELEMETRY__OTLP_HEADERS",
            "a key=secret",
            "telemetry.otlp_headers: has characters that no http header can carry",
            "a name with a space",
        ),
    ];
    for (key, value, expected, reason) in rows {
        let name = format!("SWITCHBOARD__{key}");
        assert_eq!(load(&[(&name, value)]).err(), Some(vec![expected.to_owned()]), "{reason}: {value}");
    }
    let problems = load(&[("SWITCHBOARD__METRICS__BIND", "nowhere")]).unwrap_err();
    assert!(problems[0].starts_with("metrics.bind: is not an address with a port"), "{problems:?}");
}
