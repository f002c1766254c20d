//! Events as JSON lines, for a log outside this process. Whoever reads them may be another version of this program: a
//! line that it does not understand is an error, never a wrong event.

use std::borrow::Cow;
use std::sync::Arc;

use super::line::{CallLine, InputLine, Line, UsageLine};
use super::suggested::SuggestionsLine;
use crate::chat::approval::Consent;
use crate::chat::artifact::Artifact;
use crate::chat::cost::Cost;
use crate::chat::directive::{DirectiveAsks, DirectiveNotice, DirectiveStatus};
use crate::chat::event::{AgentEvent, Within};
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::fate::{CallError, CallFate};
use crate::chat::ids::{ApprovalId, DirectiveId, FileId, PayloadId, ToolCallId};
use crate::chat::message::ModelOrigin;
use crate::chat::notice::Notice;
use crate::chat::origin::CallOrigin;
use crate::chat::payload::{Payload, PayloadSource};
use crate::chat::place::{Entity, Mover, Place};
use crate::chat::plan::PlanEvent;
use crate::chat::screen::ScreenState;
use crate::chat::tool::Progress;

/// One event per line, without a last line break.
pub fn write<'a>(events: impl IntoIterator<Item = &'a AgentEvent>) -> Result<String, serde_json::Error> {
    let mut lines = Vec::new();
    for event in events {
        if !lines.is_empty() {
            lines.push(b'\n');
        }
        serde_json::to_writer(&mut lines, &Line::from(event))?;
    }
    String::from_utf8(lines).map_err(serde::ser::Error::custom)
}

/// The events of such lines.
///
/// # Errors
/// When a line is no event.
pub fn read(lines: &str) -> Result<Vec<AgentEvent>, serde_json::Error> {
    lines.split('\n').map(|line| AgentEvent::try_from(serde_json::from_str::<Line<'_>>(line)?)).collect()
}

impl<'a> From<&'a AgentEvent> for Line<'a> {
    fn from(event: &'a AgentEvent) -> Self {
        match event {
            AgentEvent::TurnStarted { turn } => Self::Turn(*turn),
            AgentEvent::TextDelta { text } => Self::Text(text.into()),
            AgentEvent::ThinkingDelta { text } => Self::Thinking(text.into()),
            AgentEvent::ToolCallStarted { id, name } => Self::Call { id: id.as_str().into(), name: name.into() },
            AgentEvent::TurnEnded { model, usage, cost } => Self::TurnEnded {
                provider: Cow::Borrowed(&model.provider),
                model: Cow::Borrowed(&model.model),
                usage: UsageLine::from_usage(*usage),
                nano_usd: cost.map(|cost| cost.nano_usd),
            },
            AgentEvent::ToolCallHeld { id, name, approval } => {
                Self::Held { id: id.as_str().into(), name: name.into(), approval: approval.to_string().into() }
            }
            AgentEvent::CallDecided { requested_as, name, runs_as } => Self::Decided {
                requested_as: requested_as.as_str().into(),
                name: name.into(),
                runs_as: runs_as.as_ref().map(|id| Cow::Borrowed(id.as_str())),
            },
            AgentEvent::ToolCallReady { id, name, input } => {
                Self::Ready { id: id.as_str().into(), name: name.into(), input: InputLine::from_input(input) }
            }
            AgentEvent::ToolProgress { id, name, progress } => {
                let Progress { stage, message, fraction, data } = &**progress;
                Self::Progress {
                    id: id.as_str().into(),
                    name: name.into(),
                    stage: stage.into(),
                    message: message.into(),
                    fraction: *fraction,
                    data: data.as_ref().map(Cow::Borrowed),
                }
            }
            AgentEvent::ToolCallFinished { id, name, fate, error, result } => Self::Result {
                id: id.as_str().into(),
                name: name.into(),
                is_error: fate.is_error(),
                fate: fate.kept().map(Cow::Borrowed),
                error: error.map(|error| Cow::Borrowed(error.name())),
                result: Cow::Borrowed(result),
            },
            AgentEvent::Artifact(artifact) => {
                Self::Artifact { kind: Cow::Borrowed(&artifact.kind), payload: Cow::Borrowed(&artifact.payload) }
            }
            AgentEvent::Payload(payload) => Self::Payload {
                id: Cow::Borrowed(payload.id.as_str()),
                kind: Cow::Borrowed(&payload.kind),
                data: Cow::Borrowed(payload.data.raw()),
                summary: Cow::Borrowed(&payload.summary),
                by_model: match payload.source {
                    PayloadSource::Tool => false,
                    PayloadSource::Model => true,
                },
            },
            AgentEvent::PlaceChanged { by, place, is_refocused } => {
                let Place { context_type, entity, focus } = &**place;
                Self::Place {
                    by_tool: *by == Mover::Tool,
                    is_refocused: *is_refocused,
                    context_type: context_type.into(),
                    entity_id: entity.as_ref().map(|entity| Cow::Borrowed(entity.id.as_str())),
                    entity_name: entity.as_ref().and_then(|entity| entity.name.as_deref()).map(Cow::Borrowed),
                    focus: focus.as_ref().map(|focus| Cow::Borrowed(focus.as_str())),
                }
            }
            AgentEvent::State(event) => Self::State(Cow::Borrowed(event)),
            AgentEvent::Operation(operation) => Self::Operation(Cow::Borrowed(operation)),
            AgentEvent::Directive(notice) => {
                let DirectiveNotice { id, name, status, asks } = &**notice;
                let (_, role, not_requester) =
                    asks.as_ref().map_or(("", None, false), |asks| asks.consent.wire_fields());
                Self::Directive {
                    id: id.to_string().into(),
                    name: name.into(),
                    status: status.name().into(),
                    digest: asks.as_ref().map(|asks| Cow::Borrowed(asks.digest.as_str())),
                    role: role.map(Cow::Borrowed),
                    not_requester,
                }
            }
            AgentEvent::Plan(event) => {
                let value = serde_json::to_value(event).unwrap_or_default();
                Self::Plan { event: Cow::Borrowed(event.name()), value }
            }
            AgentEvent::Within(within) => {
                let origin = serde_json::to_value(within.origin).unwrap_or_default();
                Self::Within { origin, event: Box::new(Self::from(&within.event)) }
            }
            AgentEvent::Notice(notice) => Self::Notice {
                files: notice.files.iter().map(ToString::to_string).collect(),
                message: Cow::Borrowed(&notice.message),
                said: Cow::Borrowed(&notice.said),
            },
            AgentEvent::Summarising => Self::Summarising,
            AgentEvent::Summarised => Self::Summarised,
            AgentEvent::RoundEnded => Self::RoundEnded,
            AgentEvent::LimitReached => Self::LimitReached,
            AgentEvent::Suggested(suggestions) => Self::Suggested(SuggestionsLine::from_suggestions(suggestions)),
            AgentEvent::Diagnosed(diagnostics) => Self::Diagnosed(Cow::Borrowed(diagnostics)),
            AgentEvent::Observed(observation) => Self::Observed(Cow::Borrowed(observation)),
            AgentEvent::Finished { usage } => Self::Finished(UsageLine::from_usage(*usage)),
            AgentEvent::AwaitingApproval { usage } => Self::AwaitingApproval(UsageLine::from_usage(*usage)),
            AgentEvent::AwaitingClient { usage, calls } => Self::AwaitingClient {
                usage: UsageLine::from_usage(*usage),
                calls: calls.iter().map(CallLine::from_call).collect(),
            },
            AgentEvent::Failed(Failure { code, message, retryable }) => {
                Self::Failed { code: Cow::Borrowed(code.name()), message: message.into(), retryable: *retryable }
            }
            AgentEvent::Cancelled => Self::Cancelled,
            AgentEvent::Interrupted => Self::Interrupted,
        }
    }
}

impl TryFrom<Line<'_>> for AgentEvent {
    type Error = serde_json::Error;

    fn try_from(line: Line<'_>) -> Result<Self, Self::Error> {
        Ok(match line {
            Line::Turn(turn) => Self::TurnStarted { turn },
            Line::Text(text) => Self::TextDelta { text: text.into_owned() },
            Line::Thinking(text) => Self::ThinkingDelta { text: text.into_owned() },
            Line::Call { id, name } => {
                Self::ToolCallStarted { id: ToolCallId::from_model(id), name: name.into_owned() }
            }
            Line::TurnEnded { provider, model, usage, nano_usd } => Self::TurnEnded {
                model: Arc::new(ModelOrigin { provider: provider.into_owned(), model: model.into_owned() }),
                usage: usage.into_usage(),
                cost: nano_usd.map(|nano_usd| Cost { nano_usd }),
            },
            Line::Held { id, name, approval } => Self::ToolCallHeld {
                id: ToolCallId::from_model(id),
                name: name.into_owned(),
                // As with a payload's id below.
                approval: ApprovalId::parse(&approval).unwrap_or_else(|_| ApprovalId::fresh()),
            },
            Line::Decided { requested_as, name, runs_as } => Self::CallDecided {
                requested_as: ToolCallId::from_model(requested_as),
                name: name.into_owned(),
                runs_as: runs_as.map(ToolCallId::from_model),
            },
            Line::Ready { id, name, input } => Self::ToolCallReady {
                id: ToolCallId::from_model(id),
                name: name.into_owned(),
                input: Box::new(input.into_input()),
            },
            Line::Progress { id, name, stage, message, fraction, data } => Self::ToolProgress {
                id: ToolCallId::from_model(id),
                name: name.into_owned(),
                progress: Box::new(Progress {
                    stage: stage.into_owned(),
                    message: message.into_owned(),
                    fraction,
                    data: data.map(Cow::into_owned),
                }),
            },
            Line::Result { id, name, is_error, fate, error, result } => Self::ToolCallFinished {
                id: ToolCallId::from_model(id),
                name: name.into_owned(),
                fate: CallFate::of_kept(fate.as_deref(), is_error),
                error: error.as_deref().map(CallError::of_name),
                result: Arc::from(&*result),
            },
            Line::Artifact { kind, payload } => {
                Self::Artifact(Box::new(Artifact { kind: kind.into_owned().into(), payload: payload.into_owned() }))
            }
            Line::Payload { id, kind, data, summary, by_model } => Self::Payload(Arc::new(Payload {
                // What another replica wrote is one of our ids; anything else must not stop the reader.
                id: PayloadId::parse(&id).unwrap_or_else(|_| PayloadId::fresh()),
                kind: kind.into_owned(),
                data: data.into_owned().into(),
                summary: summary.into_owned(),
                source: if by_model { PayloadSource::Model } else { PayloadSource::Tool },
            })),
            Line::Place { by_tool, is_refocused, context_type, entity_id, entity_name, focus } => Self::PlaceChanged {
                by: if by_tool { Mover::Tool } else { Mover::Request },
                is_refocused,
                place: Box::new(Place {
                    context_type: context_type.into_owned(),
                    entity: entity_id.map(|id| Entity { id: id.into_owned(), name: entity_name.map(Cow::into_owned) }),
                    focus: focus.and_then(|focus| ScreenState::parse(&focus)),
                }),
            },
            Line::State(event) => Self::State(Box::new(event.into_owned())),
            Line::Operation(operation) => Self::Operation(Box::new(operation.into_owned())),
            Line::Directive { id, name, status, digest, role, not_requester } => {
                let unknown = || serde::de::Error::custom("no status of a directive");
                let consent = match role {
                    Some(role) => Consent::Role { role: role.into_owned(), not_requester },
                    None => Consent::User,
                };
                Self::Directive(Box::new(DirectiveNotice {
                    // As with a payload's id above.
                    id: DirectiveId::parse(&id).unwrap_or_else(|_| DirectiveId::fresh()),
                    name: name.into_owned(),
                    status: DirectiveStatus::parse(&status).ok_or_else(unknown)?,
                    asks: digest.map(|digest| DirectiveAsks { digest: digest.into_owned(), consent }),
                }))
            }
            Line::Plan { event, value } => {
                let unknown = || serde::de::Error::custom("no event of a plan");
                Self::Plan(Box::new(PlanEvent::of_value(&event, &value).ok_or_else(unknown)?))
            }
            Line::Within { origin, event } => {
                let (origin, event) = (CallOrigin::of_value(&origin), Self::try_from(*event)?);
                Self::Within(Box::new(Within { origin, event }))
            }
            Line::Notice { files, message, said } => Self::Notice(Box::new(Notice {
                files: files.iter().filter_map(|id| FileId::parse(id).ok()).collect(),
                message: message.into_owned(),
                said: said.into_owned(),
            })),
            Line::Summarising => Self::Summarising,
            Line::Summarised => Self::Summarised,
            Line::RoundEnded => Self::RoundEnded,
            Line::LimitReached => Self::LimitReached,
            Line::Suggested(suggestions) => Self::Suggested(suggestions.into_suggestions()),
            Line::Diagnosed(diagnostics) => Self::Diagnosed(Arc::new(diagnostics.into_owned())),
            Line::Observed(observation) => Self::Observed(Box::new(observation.into_owned())),
            Line::Finished(usage) => Self::Finished { usage: usage.into_usage() },
            Line::AwaitingApproval(usage) => Self::AwaitingApproval { usage: usage.into_usage() },
            Line::AwaitingClient { usage, calls } => Self::AwaitingClient {
                usage: usage.into_usage(),
                calls: calls.into_iter().map(CallLine::into_call).collect(),
            },
            Line::Failed { code, message, retryable } => {
                Self::Failed(Failure { code: FailureCode::of_name(&code), message: message.into_owned(), retryable })
            }
            Line::Cancelled => Self::Cancelled,
            Line::Interrupted => Self::Interrupted,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Number, Value};

    use super::*;
    use crate::chat::ids::ToolCallId;
    use crate::chat::observation::Observation;
    use crate::chat::operation::{Action, Operation, OperationStatus};
    use crate::chat::state::{ContextUsage, Mentioned, Recap, StateEvent, SummaryFigures};
    use crate::chat::stream::Usage;
    use crate::chat::tool::{ToolCall, ToolInput};

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(|n| Number::from_f64(n).map_or(Value::Null, Value::Number)),
            any::<String>().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    fn fate() -> impl Strategy<Value = CallFate> {
        prop_oneof![
            Just(CallFate::Done),
            Just(CallFate::Failed),
            Just(CallFate::NotRun),
            Just(CallFate::AwaitsApproval),
            Just(CallFate::AwaitsClient),
            Just(CallFate::Unknown),
        ]
    }

    fn id() -> impl Strategy<Value = ToolCallId> {
        any::<String>().prop_map(ToolCallId::from_model)
    }

    fn event() -> impl Strategy<Value = AgentEvent> {
        let text = any::<String>;
        prop_oneof![
            any::<u32>().prop_map(|turn| AgentEvent::TurnStarted { turn }),
            text().prop_map(|text| AgentEvent::TextDelta { text }),
            text().prop_map(|text| AgentEvent::ThinkingDelta { text }),
            (id(), text()).prop_map(|(id, name)| AgentEvent::ToolCallStarted { id, name }),
            (id(), text(), fate(), text()).prop_map(|(id, name, fate, result)| {
                let error = fate.is_error().then_some(CallError::TimedOut);
                AgentEvent::ToolCallFinished { id, name, fate, error, result: result.into() }
            }),
            (text(), text(), any::<u64>(), any::<Option<u64>>()).prop_map(
                |(provider, model, output_tokens, nano_usd)| {
                    AgentEvent::TurnEnded {
                        model: Arc::new(ModelOrigin { provider, model }),
                        usage: Usage { output_tokens, ..Usage::default() },
                        cost: nano_usd.map(|nano_usd| Cost { nano_usd }),
                    }
                }
            ),
            (id(), text(), any::<u128>()).prop_map(|(id, name, bits)| {
                let approval = ApprovalId::parse(&uuid::Uuid::from_u128(bits).to_string()).unwrap();
                AgentEvent::ToolCallHeld { id, name, approval }
            }),
            (id(), text(), proptest::option::of(id()))
                .prop_map(|(requested_as, name, runs_as)| AgentEvent::CallDecided { requested_as, name, runs_as }),
            (text(), text(), text(), any::<u64>()).prop_map(|(id, name, invalid, input_tokens)| {
                let call = ToolCall { id: ToolCallId::from_model(id), name, input: ToolInput::Invalid(invalid) };
                AgentEvent::AwaitingClient { usage: Usage { input_tokens, ..Usage::default() }, calls: vec![call] }
            }),
            (text(), proptest::option::of((text(), proptest::option::of(text()))), any::<bool>()).prop_map(
                |(context_type, entity, looks)| {
                    let focus = looks.then(|| ScreenState::parse(r#"{"id": 7}"#).unwrap());
                    let entity = entity.map(|(id, name)| Entity { id, name });
                    let by = if looks { Mover::Tool } else { Mover::Request };
                    let place = Box::new(Place { context_type, entity, focus });
                    AgentEvent::PlaceChanged { by, place, is_refocused: looks }
                }
            ),
            (id(), text(), proptest::option::of(text()), proptest::sample::select(&Action::ALL[..])).prop_map(
                |(call, name, id, action)| {
                    let status = if id.is_some() { OperationStatus::Start } else { OperationStatus::Error };
                    AgentEvent::Operation(Box::new(Operation { call, action, kind: name.clone(), id, name, status }))
                }
            ),
            (text(), any::<[u64; 3]>(), proptest::option::of(text())).prop_map(
                |(id, [tokens, budget, at], is_recap)| {
                    let at_ms = i64::try_from(at / 2).unwrap();
                    AgentEvent::State(Box::new(match is_recap {
                        None => {
                            let summary = Some(SummaryFigures { id, at_ms, original_tokens: budget, tokens });
                            StateEvent::ContextUsage(ContextUsage { tokens, budget, near_percent: 85, summary })
                        }
                        Some(summary) => {
                            let entities = vec![Mentioned { kind: id.clone(), is_one: false, ids: vec![id.clone()] }];
                            let tools = vec![id.clone()];
                            StateEvent::Recap(Recap {
                                summary,
                                context_type: id,
                                entities,
                                tools,
                                at_ms,
                                is_asking: false,
                            })
                        }
                    }))
                }
            ),
            (text(), any::<u64>(), any::<bool>()).prop_map(|(name, duration_ms, is_error)| {
                let error = is_error.then_some(CallError::BadArguments);
                AgentEvent::Observed(Box::new(Observation::Called { id: name.clone(), tool: name, duration_ms, error }))
            }),
            (text(), json()).prop_map(|(kind, payload)| {
                AgentEvent::Artifact(Box::new(Artifact { kind: kind.into(), payload }))
            }),
            any::<[u64; 4]>().prop_map(|[input_tokens, output_tokens, cached_input_tokens, reasoning_tokens]| {
                let usage = Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens };
                AgentEvent::Finished { usage }
            }),
            (proptest::sample::select(&FailureCode::ALL[..]), text(), any::<bool>())
                .prop_map(|(code, message, retryable)| AgentEvent::Failed(Failure { code, message, retryable })),
            (text(), text()).prop_map(|(message, said)| {
                AgentEvent::Notice(Box::new(Notice { files: vec![FileId::fresh()], message, said }))
            }),
            Just(AgentEvent::LimitReached),
            Just(AgentEvent::Cancelled),
            Just(AgentEvent::Interrupted),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_exactly(events in prop::collection::vec(event(), 1..8)) {
            let lines = write(&events).unwrap();
            prop_assert_eq!(lines.split('\n').count(), events.len());
            // The debug output tells -0.0 from 0.0 and shows the order of fields.
            prop_assert_eq!(format!("{:?}", read(&lines).unwrap()), format!("{events:?}"));
        }

        #[test]
        fn no_text_makes_the_reader_fall_over(text: String) {
            let _ = read(&text);
        }
    }

    #[test]
    fn what_another_version_says_is_an_error() {
        for line in ["", "{}", r#"{"later":1}"#, r#"{"call":{"id":"1","name":"n","more":1}}"#, "{\"text\":\"a\"}\n"] {
            assert!(read(line).is_err(), "{line:?}");
        }
    }
}
