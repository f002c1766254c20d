//! Every span, each made by one function. Their names in the log are those of [`super::names`]; what an exporter makes of
//! them is `telemetry/gen_ai.rs`.
//!
//! Spans nest `http.request` > `agent.run` > `agent.turn` > `llm.chat` or `tool.execute`. Fields are in every log line
//! below a span; [`tell`] adds what only a trace gets.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use opentelemetry::{Context, Value};
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::metrics::known_method;
use super::names;
use super::trace_context::TraceParent;

/// Whether spans are exported. Set once, before the first span.
static EXPORTED: AtomicBool = AtomicBool::new(false);

/// Says that spans are exported from now on.
pub fn are_exported() {
    EXPORTED.store(true, Ordering::Relaxed);
}

fn is_exported() -> bool {
    EXPORTED.load(Ordering::Relaxed)
}

/// A request, below the caller's span. An unknown method is [`names::OTHER_METHOD`], since spans are named
/// after theirs.
pub fn http_request(id: &str, method: &str, path: &str, route: &str, parent: Option<TraceParent>) -> Span {
    let method = known_method(method).unwrap_or(names::OTHER_METHOD);
    let span = info_span!(names::HTTP_REQUEST, request.id = id, http.request.method = method, url.path = path,);
    if is_exported() {
        if let Some(parent) = parent {
            let flags = if parent.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
            let (trace, above) = (parent.trace.to_be_bytes(), parent.span.to_be_bytes());
            let (trace, above) = (TraceId::from_bytes(trace), SpanId::from_bytes(above));
            let remote = SpanContext::new(trace, above, flags, true, TraceState::default());
            // Fails only where the span is filtered out.
            let _ = span.set_parent(Context::new().with_remote_span_context(remote));
        }
        tell(&span, names::HTTP_ROUTE, || route.to_owned());
    }
    span
}

/// A run.
pub fn agent_run(run: &impl Display, conversation: &impl Display, profile: &str) -> Span {
    info_span!(names::AGENT_RUN, run.id = %run, conversation.id = %conversation, profile.id = profile)
}

/// A turn of a run.
pub fn agent_turn(turn: u32) -> Span {
    info_span!(names::AGENT_TURN, turn)
}

/// A summary that is made after a run.
pub fn agent_summary(run: &impl Display, conversation: &impl Display) -> Span {
    info_span!(names::AGENT_SUMMARY, run.id = %run, conversation.id = %conversation)
}

/// Labels of a conversation that are made.
pub fn agent_labels(conversation: &impl Display) -> Span {
    info_span!(names::AGENT_LABELS, conversation.id = %conversation)
}

/// An answer beside all conversations.
pub fn agent_message() -> Span {
    info_span!(names::AGENT_MESSAGE)
}

/// A model's answer. The model is known when it begins to answer; see [`answered_by`].
pub fn llm_chat() -> Span {
    info_span!(names::LLM_CHAT, gen_ai.provider.name = Empty, gen_ai.request.model = Empty)
}

/// Notes in the current span of [`llm_chat`] who answers.
pub fn answered_by(provider: &str, model: &str) {
    let span = Span::current();
    span.record(names::PROVIDER_NAME, provider);
    span.record(names::REQUEST_MODEL, model);
    tell(&span, names::RESPONSE_MODEL, || model.to_owned());
}

/// A tool's call.
pub fn tool_execute(tool: &str, call: &str) -> Span {
    info_span!(names::TOOL_EXECUTE, gen_ai.tool.name = tool, gen_ai.tool.call.id = call)
}

/// Adds an attribute to the trace of a span, and to no log line; `value` is only evaluated where there is an exporter.
pub fn tell<V: Into<Value>>(span: &Span, name: &'static str, value: impl FnOnce() -> V) {
    if is_exported() {
        span.set_attribute(name, value());
    }
}

/// The same of the span at hand.
pub fn tell_current<V: Into<Value>>(name: &'static str, value: impl FnOnce() -> V) {
    if is_exported() {
        Span::current().set_attribute(name, value());
    }
}

/// The span at hand, for the `traceparent` of a request that is made in it; `None` where nothing is exported.
pub fn current_parent() -> Option<TraceParent> {
    if !is_exported() {
        return None;
    }
    let context = Span::current().context();
    let span = context.span().span_context().clone();
    span.is_valid().then(|| TraceParent {
        trace: u128::from_be_bytes(span.trace_id().to_bytes()),
        span: u64::from_be_bytes(span.span_id().to_bytes()),
        is_sampled: span.is_sampled(),
    })
}
