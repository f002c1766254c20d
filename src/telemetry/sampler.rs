//! Which traces are kept.

use std::hash::{BuildHasher, RandomState};

use opentelemetry::trace::{Link, SpanKind, TraceContextExt, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, SamplingResult, ShouldSample};

/// So many of all traces. Whoever asks us may say that theirs is not kept, and then it is not here either; that theirs is
/// kept decides nothing, or any client could make us keep all of its own. Nor does their trace's id by itself, which they
/// choose: it is hashed with keys that only this process has, so each of its spans is decided alike.
#[derive(Debug, Clone)]
pub(super) struct Sampled {
    ratio: Sampler,
    keys: RandomState,
}

impl Sampled {
    /// A share of 0 to 1.
    pub(super) fn new(ratio: f64) -> Self {
        Self { ratio: Sampler::TraceIdRatioBased(ratio), keys: RandomState::new() }
    }
}

impl ShouldSample for Sampled {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        // Of a trace that is kept or not, so is each span.
        let drawn = TraceId::from_bytes(u128::from(self.keys.hash_one(trace.to_bytes())).to_be_bytes());
        let mut result = self.ratio.should_sample(None, drawn, name, kind, attributes, links);
        if let Some(parent) = parent.filter(|parent| parent.has_active_span()) {
            let parent = parent.span().span_context().clone();
            result.trace_state = parent.trace_state().clone();
            if parent.is_valid() && !parent.is_sampled() {
                result.decision = SamplingDecision::Drop;
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceState};

    use super::*;

    #[test]
    fn whoever_asks_can_have_less_kept_and_not_more() {
        let remote = |flags| {
            let trace = TraceId::from_bytes([7; 16]);
            let span = SpanContext::new(trace, SpanId::from_bytes([7; 8]), flags, true, TraceState::default());
            Context::new().with_remote_span_context(span)
        };
        let (kept, left) = (remote(TraceFlags::SAMPLED), remote(TraceFlags::default()));
        let rows = [
            (1.0, None, SamplingDecision::RecordAndSample, "all of ours"),
            (0.0, None, SamplingDecision::Drop, "none"),
            (1.0, Some(&kept), SamplingDecision::RecordAndSample, "theirs is kept and so is ours"),
            (1.0, Some(&left), SamplingDecision::Drop, "theirs is not"),
            (0.0, Some(&kept), SamplingDecision::Drop, "no client can force one"),
        ];
        for (ratio, parent, expected, reason) in rows {
            let trace = TraceId::from_bytes([7; 16]);
            let result = Sampled::new(ratio).should_sample(parent, trace, "x", &SpanKind::Server, &[], &[]);
            assert_eq!(result.decision, expected, "{reason}");
        }
    }

    #[test]
    fn whoever_chooses_the_ids_of_traces_does_not_choose_which_are_kept() {
        let sampled = Sampled::new(0.5);
        let keeps = |trace: u128| {
            let trace = TraceId::from_bytes(trace.to_be_bytes());
            let result = sampled.should_sample(None, trace, "x", &SpanKind::Server, &[], &[]);
            result.decision == SamplingDecision::RecordAndSample
        };
        // The ratio alone would keep all of these, whose last eight bytes are small.
        let kept = (1..=1000).filter(|trace| keeps(*trace)).count();
        assert!((350..=650).contains(&kept), "{kept}");
        assert!((1..=1000).all(|trace| keeps(trace) == keeps(trace)), "every span of a trace is decided alike");
    }
}
