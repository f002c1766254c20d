//! A collector of our own: takes spans as OTLP sends them, and reads them back.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message;

use crate::support::upstream::{Answer, Upstream};

/// One span as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub name: String,
    pub trace: String,
    pub id: String,
    /// The span above; empty where there is none.
    pub parent: String,
    /// 1 internal, 2 server, 3 client.
    pub kind: i32,
    pub attributes: BTreeMap<String, String>,
}

impl Seen {
    /// The attribute of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }
}

/// A collector that takes everything.
pub async fn collector() -> Upstream {
    Upstream::choosing(|_| Some(Answer::ok("application/x-protobuf", ""))).await
}

/// The spans that have come, in order of their end, and the attributes of who sent them.
pub fn spans(collector: &Upstream) -> (Vec<Seen>, BTreeMap<String, String>) {
    let (mut spans, mut resource) = (Vec::new(), BTreeMap::new());
    for request in collector.requests() {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
        let export = ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap();
        for of in export.resource_spans {
            resource.extend(read(of.resource.unwrap().attributes));
            for span in of.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                assert_eq!((span.events.len(), span.links.len()), (0, 0), "log lines stay in the log");
                spans.push(Seen {
                    name: span.name,
                    trace: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    kind: span.kind,
                    attributes: read(span.attributes),
                });
            }
        }
    }
    (spans, resource)
}

fn read(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    attributes.into_iter().map(|pair| (pair.key, text(pair.value))).collect()
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Any::StringValue(text)) => text,
        Some(Any::IntValue(number)) => number.to_string(),
        Some(Any::DoubleValue(number)) => number.to_string(),
        Some(Any::BoolValue(is)) => is.to_string(),
        Some(Any::ArrayValue(list)) => {
            let items: Vec<String> = list.values.into_iter().map(|item| text(Some(item))).collect();
            format!("[{}]", items.join(","))
        }
        other => format!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
