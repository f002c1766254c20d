//! Settings of metrics and traces: what the usual variables mean, and mistakes.

use secrecy::ExposeSecret;
use switchboard::config::{Config, Sources};

/// Variables of the environment, by name.
type Variables<'a> = &'a [(&'a str, &'a str)];

fn load(variables: Variables<'_>) -> Result<Config, Vec<String>> {
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
    let expected = |url: &str, name: &str| (Some(url.to_owned()), "api-key=k".to_owned(), name.to_owned());
    assert_eq!(of(load(&usual).unwrap()), expected("http://collector:4318/v1/traces", "theirs"));
    let signal = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:1/v1/traces");
    let ours = ("SWITCHBOARD__TELEMETRY__SERVICE_NAME", "ours");
    let all = [usual.as_slice(), &[signal, ours]].concat();
    assert_eq!(of(load(&all).unwrap()), expected("http://traces:1/v1/traces", "ours"));
    let nothing = load(&[]).unwrap();
    assert!(!nothing.telemetry.is_on() && !nothing.metrics.is_on(), "both are off unless somebody says so");
    assert_eq!(nothing.telemetry.service_name(), "switchboard");
}

/// Where traces and lines of the audit record go with these variables, and what is said about them.
fn addresses(variables: Variables<'_>) -> (Option<String>, Option<String>, Vec<String>) {
    let config = load(variables).unwrap();
    let said = config.weaknesses().into_iter().filter(|said| said.starts_with("OTEL_")).collect();
    (config.telemetry.traces_url(), config.telemetry.logs_url(), said)
}

#[test]
fn a_signals_own_address_is_used_as_it_is() {
    const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318");
    const TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces/insert/opentelemetry/api?key=1");
    const LOGS: (&str, &str) = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs/otlp/");
    const OURS: (&str, &str) = ("SWITCHBOARD__TELEMETRY__OTLP_ENDPOINT", "http://ours/v1/traces");
    const OUR_TRACES: (&str, &str) = ("SWITCHBOARD__TELEMETRY__OTLP_TRACES_ENDPOINT", "http://ours/spans");
    const NONE: (&str, &str) = ("SWITCHBOARD__TELEMETRY__OTLP_ENDPOINT", "");
    type Row<'a> = (Variables<'a>, Option<&'a str>, Option<&'a str>, &'a str);
    let rows: [Row<'_>; 9] = [
        (&[ALL], Some("http://all:4318/v1/traces"), Some("http://all:4318/v1/logs"), "that of all gets a path"),
        (&[TRACES], Some(TRACES.1), None, "another one is not made of it"),
        (&[LOGS], None, Some(LOGS.1), "nor of that of logs"),
        (&[ALL, TRACES, LOGS], Some(TRACES.1), Some(LOGS.1), "the nearer one"),
        (&[ALL, TRACES, OURS], Some("http://ours/v1/traces"), Some("http://ours/v1/logs"), "ours come first"),
        (&[ALL, OUR_TRACES], Some("http://ours/spans"), None, "as it is"),
        (&[ALL, TRACES, NONE], None, None, "even where they say nothing"),
        (&[ALL, ("OTEL_SDK_DISABLED", "TRUE")], None, Some("http://all:4318/v1/logs"), "no traces"),
        (&[ALL, ("OTEL_TRACES_EXPORTER", "none")], None, Some("http://all:4318/v1/logs"), "the same"),
    ];
    for (variables, traces, logs, reason) in rows {
        let expected = (traces.map(str::to_owned), logs.map(str::to_owned), Vec::new());
        assert_eq!(addresses(variables), expected, "{reason}");
    }
}

#[test]
fn a_variable_of_opentelemetry_that_cannot_be_used_is_no_mistake_of_the_settings() {
    const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const GOOD: (&str, &str) = (ALL, "http://all:4318");
    let rows: [(Variables<'_>, &str, &str); 5] = [
        (&[(ALL, "otel-collector:4317")], "OTEL_EXPORTER_OTLP_ENDPOINT must begin with http:// or https://", "no URL"),
        (
            &[GOOD, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "traces:4317")],
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must begin with http:// or https://",
            "the nearer one",
        ),
        (
            &[GOOD, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, which is not spoken here: http/protobuf is",
            "what we do not speak",
        ),
        (
            &[GOOD, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")],
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is grpc, which is not spoken here: http/protobuf is",
            "the nearer one",
        ),
        (
            &[GOOD, ("OTEL_EXPORTER_OTLP_HEADERS", "secret")],
            "OTEL_EXPORTER_OTLP_HEADERS must be name=value,name=value",
            "a key that cannot be sent",
        ),
    ];
    for (variables, said, reason) in rows {
        let (traces, _, warnings) = addresses(variables);
        let expected = vec![format!("{said}; it is not used, and there are no traces")];
        assert_eq!((traces, warnings), (None, expected), "{reason}");
        let ours = ("SWITCHBOARD__TELEMETRY__OTLP_ENDPOINT", "http://ours");
        let traces = addresses(&[variables, &[ours]].concat()).0;
        assert_eq!(traces.as_deref(), Some("http://ours/v1/traces"), "ours are not touched: {reason}");
    }
    let audit = load(&[(ALL, "otel-collector:4317"), ("SWITCHBOARD__TELEMETRY__AUDIT", "true")]);
    let expected = "telemetry.audit: needs telemetry.otlp_endpoint or telemetry.otlp_logs_endpoint; OTEL_EXPORTER_OTLP_ENDPOINT must \
                    begin with http:// or https://; it is not used, and there are no traces";
    assert_eq!(audit.err(), Some(vec![expected.to_owned()]), "the record would stay here");
}

#[test]
fn a_key_for_traces_is_not_told_to_whoever_takes_the_audit_record() {
    const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_HEADERS", "key=all");
    const TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "key=traces");
    const LOGS: (&str, &str) = ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "key=logs");
    const OURS: (&str, &str) = ("SWITCHBOARD__TELEMETRY__OTLP_HEADERS", "key=ours");
    let rows: [(Variables<'_>, &str, &str); 6] = [
        (&[ALL], "all", "all"),
        (&[ALL, TRACES], "traces", "all"),
        (&[TRACES], "traces", ""),
        (&[ALL, LOGS], "all", "logs"),
        (&[TRACES, LOGS], "traces", "logs"),
        (&[TRACES, LOGS, OURS], "ours", "ours"),
    ];
    for (variables, traces, logs) in rows {
        let telemetry = load(variables).unwrap().telemetry;
        let key = |headers: Result<std::collections::HashMap<String, String>, _>| {
            headers.unwrap().remove("key").unwrap_or_default()
        };
        let found = (key(telemetry.headers()), key(telemetry.headers_of_logs()));
        assert_eq!(found, (traces.to_owned(), logs.to_owned()), "{variables:?}");
    }
}

#[test]
fn the_service_is_called_as_the_nearest_variable_says() {
    let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod, service.name = help%20desk");
    let rows: [(Variables<'_>, &str); 3] = [
        (&[attributes], "help desk"),
        (&[attributes, ("OTEL_SERVICE_NAME", "theirs")], "theirs"),
        (&[attributes, ("SWITCHBOARD__TELEMETRY__SERVICE_NAME", "ours")], "ours"),
    ];
    for (variables, expected) in rows {
        assert_eq!(load(variables).unwrap().telemetry.service_name(), expected);
    }
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
        (
            "TELEMETRY__OTLP_LOGS_ENDPOINT",
            "collector:4318",
            "telemetry.otlp_logs_endpoint: must begin with http:// or https://",
            "",
        ),
        (
            "TELEMETRY__OTLP_ENDPOINT",
            "http://collector?a=b",
            "telemetry.otlp_endpoint: must not have a query or fragment",
            "a path comes behind it",
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
