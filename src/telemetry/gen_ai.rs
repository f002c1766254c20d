//! A span as the conventions want it. It happens when spans are sent, on the exporter's thread: nothing of it is on a
//! request's way, and the log keeps our own short names.

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::SpanData;

use crate::llm::Vendor;
use crate::observe::names;

/// The span with the name, the kind and the attributes that the conventions give it.
pub(super) fn named(mut span: SpanData) -> SpanData {
    let ours = span.name.to_string();
    span.attributes.push(KeyValue::new(names::SPAN, ours.clone()));
    match ours.as_str() {
        names::HTTP_REQUEST => {
            span.span_kind = SpanKind::Server;
            let [method, route] = [names::HTTP_METHOD, names::HTTP_ROUTE].map(|name| text(&span, name));
            let method = method.map(|known| if known == names::OTHER_METHOD { "HTTP".to_owned() } else { known });
            span.name = [method, route].into_iter().flatten().collect::<Vec<_>>().join(" ").into();
        }
        names::AGENT_RUN => {
            operation(&mut span, names::INVOKE_AGENT, names::PROFILE_ID);
            copy(&mut span, names::PROFILE_ID, names::AGENT_NAME);
            copy(&mut span, "conversation.id", names::CONVERSATION_ID);
        }
        names::LLM_CHAT => {
            span.span_kind = SpanKind::Client;
            operation(&mut span, names::CHAT, names::REQUEST_MODEL);
            for attribute in &mut span.attributes {
                if attribute.key.as_str() == names::PROVIDER_NAME {
                    attribute.value = provider(&attribute.value.as_str()).to_owned().into();
                } else if attribute.key.as_str() == names::FINISH_REASONS {
                    // A list in the conventions, of one word with us.
                    let word = StringValue::from(attribute.value.as_str().into_owned());
                    attribute.value = Value::Array(Array::String(vec![word]));
                }
            }
        }
        names::TOOL_EXECUTE => {
            operation(&mut span, names::EXECUTE_TOOL, names::TOOL_NAME);
            span.attributes.push(KeyValue::new(names::TOOL_TYPE, "function"));
        }
        _ => {}
    }
    if let Some(code) = text(&span, names::ERROR_TYPE) {
        span.status = Status::error(code);
    }
    span
}

/// The conventions' word for a provider that our settings call `name`. Providers of the operator's own keep their names.
fn provider(name: &str) -> &str {
    Vendor::parse(name).map_or(name, |vendor| vendor.telemetry_name())
}

/// Names the operation and its object: `chat gemini-2.5-flash`.
fn operation(span: &mut SpanData, operation: &'static str, whom: &str) {
    span.attributes.push(KeyValue::new(names::OPERATION_NAME, operation));
    span.name = match text(span, whom) {
        Some(whom) => format!("{operation} {whom}").into(),
        None => operation.into(),
    };
}

fn copy(span: &mut SpanData, from: &str, to: &'static str) {
    if let Some(value) = text(span, from) {
        span.attributes.push(KeyValue::new(to, value));
    }
}

fn text(span: &SpanData, name: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key.as_str() == name)?;
    Some(attribute.value.as_str().into_owned())
}
