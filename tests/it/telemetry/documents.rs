//! What operators are given, and what the code really has, are the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use switchboard::observe::metrics::{ALL, Kind};
use switchboard::observe::names;

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The words in a text that look like metrics of ours.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("switchboard_") || word.starts_with("process_")).collect()
}

fn known() -> BTreeSet<String> {
    let own = ["cpu_seconds_total", "start_time_seconds", "threads", "resident_memory_bytes"];
    let more = ["virtual_memory_bytes", "open_fds", "max_fds"];
    let mut known: BTreeSet<String> = own.iter().chain(&more).map(|name| format!("process_{name}")).collect();
    for metric in ALL {
        known.insert(metric.name.to_owned());
        if let Kind::Histogram(_) = metric.kind {
            known.extend(["_bucket", "_sum", "_count"].map(|part| format!("{}{part}", metric.name)));
        }
    }
    known
}

#[test]
fn dashboards_and_alerts_ask_for_metrics_that_there_are() {
    let known = known();
    for path in ["docs/deploy/grafana/switchboard.json", "docs/deploy/prometheus/alerts.yml", "docs/OBSERVABILITY.md"] {
        let text = text(path);
        let named = named(&text);
        assert!(named.len() > 5, "{path} is about metrics");
        let unknown: Vec<_> = named.into_iter().filter(|name| !known.contains(*name)).collect();
        assert_eq!(unknown, Vec::<&str>::new(), "{path}");
    }
    let dashboard: serde_json::Value = serde_json::from_str(&text("docs/deploy/grafana/switchboard.json")).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 10);
}

#[test]
fn every_metric_and_every_name_of_a_trace_is_documented() {
    let docs = text("docs/OBSERVABILITY.md");
    let metrics = ALL.iter().map(|metric| metric.name);
    let spans = [names::HTTP_REQUEST, names::AGENT_RUN, names::AGENT_TURN, names::AGENT_SUMMARY, names::LLM_CHAT];
    let attributes = [
        names::TOOL_EXECUTE,
        names::SPAN,
        names::OPERATION_NAME,
        names::PROVIDER_NAME,
        names::REQUEST_MODEL,
        names::RESPONSE_MODEL,
        names::RESPONSE_ID,
        names::FINISH_REASONS,
        names::TIME_TO_FIRST_CHUNK,
        names::INPUT_TOKENS,
        names::OUTPUT_TOKENS,
        names::CACHED_INPUT_TOKENS,
        names::REASONING_TOKENS,
        names::TOOL_NAME,
        names::TOOL_CALL_ID,
        names::TOOL_TYPE,
        names::AGENT_NAME,
        names::CONVERSATION_ID,
        names::ERROR_TYPE,
        names::REQUEST_ID,
        names::HTTP_METHOD,
        names::HTTP_ROUTE,
        names::HTTP_STATUS,
        names::RUN_ID,
        names::PROFILE_ID,
        names::COST_USD,
        names::OUTCOME,
    ];
    let all = metrics.chain(spans).chain(attributes);
    let missing: Vec<&str> = all.filter(|name| !docs.contains(&format!("`{name}`"))).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
