//! A run as a trace; and what becomes of runs when nobody takes traces.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message;
use serde_json::Value;
use tokio::net::TcpListener;

use super::collector::{Seen, collector, spans};
use super::{Client, SECRET, TRACEPARENT, ask, machine, question};
use crate::support::upstream::{Answer, Upstream};

/// How long the process may take to end when a collector is silent: a second for the collector, and some for a machine
/// that has others to run.
const END: Duration = Duration::from_millis(3500);

#[tokio::test]
async fn a_run_is_one_tree_of_spans_below_its_clients_and_above_its_backends() {
    let collector = collector().await;
    let settings = [
        ("TELEMETRY__OTLP_ENDPOINT", collector.url()),
        ("TELEMETRY__OTLP_HEADERS", "x-key=a%20b==".to_owned()),
        ("TELEMETRY__SERVICE_NAME", "desk".to_owned()),
        ("LOG__FORMAT", "json".to_owned()),
    ];
    let settings = settings.each_ref().map(|(key, value)| (*key, value.as_str()));
    let (machine, model, backend) = machine(&settings).await;
    let mut serving = machine.serve_as(|command| {
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=theirs,x-more=1");
        command.env("OTEL_RESOURCE_ATTRIBUTES", "service.name=theirs,deployment.environment.name=prod");
    });
    let token = machine.token();
    ask(&serving.url(""), &token).await;
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));

    let (spans, resource) = spans(&collector);
    assert_eq!((&*resource["service.name"], &*resource["deployment.environment.name"]), ("desk", "prod"));
    let [ours, theirs] = ["x-key", "x-more"].map(|name| collector.requests()[0].header(name).map(str::to_owned));
    assert_eq!((ours.as_deref(), theirs), (Some("a b=="), None), "the variable is not for those who have a setting");
    let by_id: BTreeMap<&str, &Seen> = spans.iter().map(|span| (span.id.as_str(), span)).collect();
    let mut tree: Vec<String> = spans
        .iter()
        .map(|span| {
            let above = by_id.get(span.parent.as_str()).map_or(span.parent.as_str(), |above| above.name.as_str());
            format!("{} ({}, {}) < {above}", span.name, span.get("switchboard.span").unwrap(), span.kind)
        })
        .collect();
    tree.sort();
    let expected = [
        "POST /v1/agent/chat (http.request, 2) < 00f067aa0ba902b7",
        "agent.turn (agent.turn, 1) < invoke_agent tickets",
        "agent.turn (agent.turn, 1) < invoke_agent tickets",
        "chat gpt-5.5-mini (llm.chat, 3) < agent.turn",
        "chat gpt-5.5-mini (llm.chat, 3) < agent.turn",
        "execute_tool close_ticket (tool.execute, 1) < agent.turn",
        "invoke_agent tickets (agent.run, 1) < POST /v1/agent/chat",
    ];
    assert_eq!(tree, expected);
    assert!(spans.iter().all(|span| span.trace == "4bf92f3577b34da6a3ce929d0e0e4736"));

    let chat = spans.iter().find(|span| span.name.starts_with("chat ")).unwrap();
    let told = [
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.model",
        "gen_ai.response.finish_reasons",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "error.type",
    ]
    .map(|name| chat.get(name));
    let model_name = Some("gpt-5.5-mini");
    let expected = [Some("chat"), Some("openai"), model_name, model_name, Some("[stop]"), Some("10"), Some("5"), None];
    assert_eq!(told, expected);
    assert!(chat.get("gen_ai.response.time_to_first_chunk").is_some());
    let run = spans.iter().find(|span| span.name.starts_with("invoke_agent")).unwrap();
    let told = ["gen_ai.agent.name", "switchboard.outcome", "gen_ai.usage.input_tokens"].map(|name| run.get(name));
    assert_eq!(told, [Some("tickets"), Some("completed"), Some("20")]);
    assert_eq!(run.get("gen_ai.conversation.id"), run.get("conversation.id"));
    let tool = spans.iter().find(|span| span.name.starts_with("execute_tool")).unwrap();
    assert_eq!(tool.get("gen_ai.tool.name"), Some("close_ticket"));

    let asked = &backend.requests()[0];
    let parent = format!("00-{}-{}-01", tool.trace, tool.id);
    assert_eq!([asked.header("traceparent"), asked.header("x-request-id")], [Some(parent.as_str()), Some("asked-1")]);
    let to_model = &model.requests()[0];
    let told = ["traceparent", "x-request-id"].map(|name| to_model.header(name));
    assert_eq!(told, [None, None], "no vendor is told whom it works for");

    for request in collector.requests() {
        let sent = String::from_utf8_lossy(&request.body).into_owned();
        for secret in [SECRET, token.as_str(), "Closed as you wished", "0123456789abcdef0123456789abcdef"] {
            assert!(!sent.contains(secret), "{secret}");
        }
    }

    let log = machine.folder.stderr();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = lines.iter().find(|line| line["fields"]["message"] == "run ended").unwrap();
    let told = ["outcome", "gen_ai.usage.input_tokens", "gen_ai.request.model", "turns"].map(|key| &end["fields"][key]);
    assert_eq!(told.map(Value::to_string), ["\"completed\"", "20", "\"gpt-5.5-mini\"", "2"]);
    assert_eq!(end["spans"][0]["request.id"], "asked-1", "{end}");
}

#[tokio::test]
async fn a_collector_that_never_answers_costs_nobody_anything() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let accepting = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            held.push(stream);
        }
    });
    // And one where nobody listens.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for collector in [address, gone] {
        let endpoint = format!("http://{collector}");
        let (machine, _model, _backend) = machine(&[("TELEMETRY__OTLP_ENDPOINT", endpoint.as_str())]).await;
        let mut serving = machine.serve();
        ask(&serving.url(""), &machine.token()).await;
        serving.terminate();
        let since = Instant::now();
        assert_eq!(serving.ended().await, Some(0));
        assert!(since.elapsed() < END, "{:?}", since.elapsed());
    }
    accepting.abort();
}

#[tokio::test]
async fn spans_that_a_collector_refuses_are_dropped_and_counted_and_told_once() {
    let partial_success = Some(ExportTracePartialSuccess { rejected_spans: 1, ..Default::default() });
    let in_part = ExportTraceServiceResponse { partial_success }.encode_to_vec();
    let rows = [
        (Answer::status(400, "text/plain", "no"), 7, "all"),
        (Answer::ok("application/x-protobuf", in_part), 1, "one of each batch"),
    ];
    for (answer, least, reason) in rows {
        let refusing = Upstream::choosing(move |_| Some(answer.clone())).await;
        let endpoint = refusing.url();
        let settings = [("TELEMETRY__OTLP_ENDPOINT", endpoint.as_str()), ("METRICS__PATH", "true")];
        let (machine, _model, _backend) = machine(&settings).await;
        let serving = machine.serve();
        let client = Client::of(&serving, &machine.token());
        client.says(&question()).await;
        let counted = async || {
            let page = client.get("/metrics").await.text().await.unwrap();
            let count = |name: &str| -> u64 {
                let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
                line.map_or(0, |count| count.parse().unwrap())
            };
            let [dropped, exported] =
                ["switchboard_spans_dropped_total", "switchboard_spans_exported_total"].map(count);
            (dropped >= least && dropped + exported >= 7).then_some((dropped, exported))
        };
        let (dropped, exported) = crate::support::wait::eventually("the spans of a run are dropped", counted).await;
        let sent = refusing.requests().len() as u64;
        assert!(
            if least == 1 { dropped <= sent && exported > 0 } else { exported == 0 },
            "{reason}: {dropped}, {exported}"
        );
        assert_eq!(machine.folder.stderr().matches("the collector does not take spans").count(), 1, "{reason}");
    }
}

#[tokio::test]
async fn a_trace_that_its_client_does_not_keep_is_not_kept_here_either() {
    let collector = collector().await;
    let endpoint = collector.url();
    let (machine, _model, _backend) = machine(&[("TELEMETRY__OTLP_ENDPOINT", endpoint.as_str())]).await;
    let mut serving = machine.serve();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for traceparent in [TRACEPARENT.replace("-01", "-00"), "00-not-a-traceparent-01".to_owned()] {
        http.get(serving.url("/livez")).header("traceparent", traceparent).send().await.unwrap();
    }
    let made_up = reqwest::Method::from_bytes(b"MADEUP").unwrap();
    http.request(made_up, serving.url("/livez")).send().await.unwrap();
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
    let (spans, _) = spans(&collector);
    let mut told: Vec<_> = spans.iter().map(|span| (span.name.as_str(), span.parent.as_str())).collect();
    told.sort_unstable();
    let expected = [("GET /livez", ""), ("HTTP /livez", "")];
    assert_eq!(told, expected, "not the first; the second as a trace of its own; the third without what it made up");
}
